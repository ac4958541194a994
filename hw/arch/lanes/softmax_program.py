"""Program of a PCU's part in fused softmax: its role, and the mask of its keys."""

from __future__ import annotations

import dataclasses
from typing import Any

from amaranth.lib import data, enum

from hw.arch.checks import refusal
from hw.arch.lanes.key_mask import KeyMask, key_mask_layout

__all__ = ["SoftmaxProgram", "SoftmaxRole", "softmax_layout"]


class SoftmaxRole(enum.Enum, shape=2):
    """Part that a PCU has in attention (docs/fused_softmax.md)."""

    #: None.
    NONE = 0
    #: Product of keys and queries, to powers of two of the scores.
    SCORES = 1
    #: Product of those powers and values, to rows of the output.
    VALUES = 2


def softmax_layout() -> data.StructLayout:
    """Layout of a PCU's part in fused softmax; all zero: none."""
    return data.StructLayout({"role": SoftmaxRole, "mask": key_mask_layout()})


@dataclasses.dataclass(frozen=True)
class SoftmaxProgram:
    """Part of a PCU in fused softmax.

    Parameters
    ----------
    role : SoftmaxRole
        `SCORES` or `VALUES`.
    mask : KeyMask
        Keys that each query sees; the default for `VALUES`.

    Raises
    ------
    BadInputError
        If there is no role, or a values unit has a mask.
    """

    role: SoftmaxRole
    mask: KeyMask = KeyMask()

    def __post_init__(self) -> None:
        if self.role is SoftmaxRole.NONE:
            raise refusal("Role in fused softmax", "be SCORES or VALUES", self.role.name)
        if self.role is SoftmaxRole.VALUES and self.mask != KeyMask():
            raise refusal("Mask of a values unit", "hide no key", self.mask)

    def fields(self) -> dict[str, Any]:
        """Values of the fields of `softmax_layout`."""
        return {"role": self.role, "mask": self.mask.fields()}

    @classmethod
    def of_fields(cls, fields: Any) -> SoftmaxProgram | None:
        """Part of the fields of `softmax_layout`, or None; the inverse of `fields`.

        Raises
        ------
        BadInputError
            If there is no such part.
        """
        mask = KeyMask.of_fields(fields["mask"])
        try:
            role = SoftmaxRole(fields["role"])
        except ValueError as error:
            raise refusal("Role in fused softmax", "be 0, 1 or 2", int(fields["role"])) from error
        if role is SoftmaxRole.NONE:
            if mask != KeyMask():
                raise refusal("Mask of a PCU without a role in softmax", "be 0", mask)
            return None
        return cls(role, mask)
