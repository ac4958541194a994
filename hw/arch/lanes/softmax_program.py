"""Program of a PCU's part in fused softmax: its role, the mask of its keys, and its lanes."""

from __future__ import annotations

import dataclasses
import functools
import struct
from typing import Any

from amaranth.lib import enum

from hw.arch.checks import refusal
from hw.arch.lanes.key_mask import KeyMask, key_mask_layout
from hw.arch.lanes.lane_function import LaneFunction
from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_program import lane_word
from hw.arch.lanes.phase_word import (
    Fetched,
    Operand,
    PhaseSource,
    Reduction,
    ResultForm,
    UnitOrder,
    lane_layout,
)
from hw.arch.words.word_layout import WordLayout
from hw.numeric.alu_codes import AluOperation
from hw.numeric.formats import fp32
from hw.numeric.function_codes import SpecialFunction

__all__ = ["SoftmaxProgram", "SoftmaxRole", "softmax_layout"]


class SoftmaxRole(enum.Enum, shape=2):
    """Part that a PCU has in attention (docs/fused_softmax.md)."""

    #: None.
    NONE = 0
    #: Product of keys and queries, to powers of two of the scores.
    SCORES = 1
    #: Product of those powers and values, to rows of the output.
    VALUES = 2


_NOTHING = (Operand.ZERO,) * 3
#: Phases of a scores unit, for each block: its maxima twice, then its rows. Statistic 0 is m',
#: statistic 1 is m. All phases have the same times, so only the second one waits, for m'.
_SCORES = (
    LanePhase(
        PhaseSource.ACCUMULATORS,
        order=UnitOrder.FMA_ALU_LATE,
        fma=(Operand.X, Operand.CONSTANT_0, Operand.MINUS_ZERO),
        alu=AluOperation.CEIL,
        alu_operands=(Operand.PREVIOUS, *_NOTHING),
        reduction=Reduction.MAXIMUM,
    ),
    LanePhase(
        PhaseSource.ACCUMULATORS,
        y=Fetched.STATISTIC_0,
        z=Fetched.STATISTIC_1,
        order=UnitOrder.FMA_ALU_LATE,
        fma=(Operand.Y, Operand.ONE, Operand.Z),
        negate_addend=True,
        alu=AluOperation.TO_INT32,
        alu_operands=(Operand.PREVIOUS, *_NOTHING),
        result=ResultForm.INT8,
    ),
    LanePhase(
        PhaseSource.ACCUMULATORS,
        y=Fetched.STATISTIC_0,
        order=UnitOrder.FMA_SFU_ALU,
        fma=(Operand.X, Operand.CONSTANT_0, Operand.Y),
        negate_addend=True,
        function=SpecialFunction.EXP2,
        argument=Operand.PREVIOUS,
        alu=AluOperation.OR,
        alu_operands=(Operand.PREVIOUS, *_NOTHING),
        result=ResultForm.BF16,
    ),
)
#: Phases of a values unit, for each pass: the denominators, then the rows of the output.
_VALUES = (
    LanePhase(
        PhaseSource.ACCUMULATORS,
        order=UnitOrder.ALU_SFU_FMA,
        function=SpecialFunction.RECIPROCAL,
        argument=Operand.X,
        fma=(Operand.PREVIOUS, Operand.ONE, Operand.MINUS_ZERO),
        reduction=Reduction.REPLACE,
    ),
    LanePhase(
        PhaseSource.ACCUMULATORS,
        y=Fetched.STATISTIC_0,
        order=UnitOrder.ALU_SFU_FMA,
        fma=(Operand.X, Operand.Y, Operand.MINUS_ZERO),
        result=ResultForm.BF16,
    ),
)


@functools.cache
def softmax_layout() -> WordLayout:
    """Layout of a PCU's part in fused softmax; all zero: none."""
    return WordLayout({"role": SoftmaxRole, "mask": key_mask_layout()})


@dataclasses.dataclass(frozen=True)
class SoftmaxProgram:
    """Part of a PCU in fused softmax, which takes its lanes as well.

    Parameters
    ----------
    role : SoftmaxRole
        `SCORES` or `VALUES`.
    factor : float
        c of a scores unit (`hw.numeric.fused_softmax.score_scale`), a positive fp32; else 0.
    mask : KeyMask
        Keys that each query sees; of a values unit the default.

    Raises
    ------
    BadInputError
        If there is no role, the factor is no such number, or a values unit has a factor or a mask.
    """

    role: SoftmaxRole
    factor: float = 0.0
    mask: KeyMask = KeyMask()

    def __post_init__(self) -> None:
        scores = self.role is SoftmaxRole.SCORES
        if self.role is SoftmaxRole.NONE:
            raise refusal("Role in fused softmax", "be SCORES or VALUES", self.role.name)
        if not scores and self.mask != KeyMask():
            raise refusal("Mask of a values unit", "hide no key", self.mask)
        if not scores and self.factor != 0:
            raise refusal("Factor of a values unit", "be 0", self.factor)
        if scores and not (0 < self._bits < fp32.infinity and self.factor == _value(self._bits)):
            raise refusal("Factor of a scores unit", "be a positive, finite fp32", self.factor)

    @property
    def _bits(self) -> int:
        """Bits of the factor; those of infinity if it is beyond fp32."""
        try:
            return int(struct.unpack("<I", struct.pack("<f", self.factor))[0])
        except OverflowError:
            return fp32.infinity

    def lane_word(self, functions: tuple[LaneFunction, ...] = ()) -> int:
        """Word of the lanes' phases, laid out by `lane_layout`."""
        if self.role is SoftmaxRole.VALUES:
            return lane_word(_VALUES, (), functions)
        return lane_word(_SCORES, (self._bits,), functions)

    def pack(self) -> int:
        """Word of the part, laid out by `softmax_layout`."""
        fields: dict[int | str, Any] = {"role": self.role, "mask": self.mask.fields()}
        return softmax_layout().pack(fields)

    @classmethod
    def unpack(
        cls, word: int, lanes: int, functions: tuple[LaneFunction, ...] = ()
    ) -> SoftmaxProgram | None:
        """Part of a word and of the word of the lanes, or None.

        Raises
        ------
        BadInputError
            If there is no such part, or the lanes' phases are not its own.
        """
        if not word:
            return None
        code = word & (1 << softmax_layout()["role"].width) - 1
        if code not in [each.value for each in SoftmaxRole if each is not SoftmaxRole.NONE]:
            raise refusal("Role in fused softmax", "be SCORES or VALUES", code)
        role = SoftmaxRole(code)
        fields: Any = softmax_layout().unpack(word)
        constants = lanes >> lane_layout(len(functions))["constants"].offset & 0xFFFFFFFF
        program = cls(role, _value(constants), KeyMask.of_fields(fields["mask"]))
        if program.lane_word(functions) != lanes:
            raise refusal("Phases of lanes in fused softmax", f"be those of {role.name}", lanes)
        return program


def _value(bits: int) -> float:
    """fp32 of bits."""
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])
