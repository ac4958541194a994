"""Errors of an emulated launch, and of programs without a unique result."""

from __future__ import annotations

from hw.arch.error_codes import LaunchError
from hw.arch.errors import BadInputError

__all__ = ["EmulatorError", "LaunchFault"]


class EmulatorError(BadInputError):
    """A program whose values depend on timing or are never produced; ``where`` names the part."""

    kind = "undetermined-program"


class LaunchFault(Exception):
    """A launch that ends with an error code of the chip.

    Parameters
    ----------
    code : LaunchError
    detail, unit : int
        As in the register ``ERROR``.
    """

    def __init__(self, code: LaunchError, detail: int = 0, unit: int = 0) -> None:
        super().__init__(f"{code.name}, detail {detail}, unit {unit}")
        self.code = code
        self.detail = detail
        self.unit = unit
