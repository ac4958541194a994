"""Word of a lane program: its codes and its layout."""

from __future__ import annotations

import functools

from amaranth.lib import data, enum

from hw.arch.words.word_layout import WordLayout
from hw.numeric.alu_codes import AluOperation
from hw.numeric.function_codes import SpecialFunction

__all__ = [
    "CONSTANTS",
    "FIXED_WORDS",
    "PHASES",
    "STATISTICS",
    "AuxiliaryUse",
    "ElementForm",
    "Fetched",
    "Operand",
    "PhaseSource",
    "Reduction",
    "ResultForm",
    "UnitOrder",
    "lane_layout",
    "phase_layout",
]

#: Most phases of a lane program.
PHASES = 6
#: Constants of a lane program, words of 32 bits.
CONSTANTS = 4
#: Statistics of an element's position in a vector, words of 32 bits.
STATISTICS = 2


class PhaseSource(enum.Enum, shape=2):
    """Source of a phase: what its elements x come from."""

    #: The statistics: one vector of W/16 elements, without x.
    STATISTICS = 0
    #: A packet of the activation stream.
    ACTIVATION = 1
    #: A packet of the auxiliary stream.
    AUXILIARY = 2
    #: A pass of accumulator rows.
    ACCUMULATORS = 3


class ElementForm(enum.Enum, shape=3):
    """Form of a stream's elements.

    A phase's word has the two low bits of its code, and the program's word the third one.
    """

    #: 32 bits, fp32 or int32.
    WORD = 0
    #: bf16, widened to fp32.
    BF16 = 1
    #: int8, widened to int32.
    INT8 = 2
    #: int8, converted to fp32.
    INT8_TO_FP32 = 3
    #: bf16 in the lower half of each vector, widened to fp32; the upper half is passed over.
    BF16_LOWER = 5

    @functools.cached_property
    def per_word(self) -> int:
        """Elements in 32 bits of a vector."""
        return (1, 2, 4, 4, 0, 1)[int(self.value)]


class AuxiliaryUse(enum.Enum, shape=3):
    """Use of the auxiliary stream beside another source; the packet's end drops what is left."""

    #: Nothing is taken.
    NONE = 0
    #: An element for every element of the source.
    VECTOR = 1
    #: One vector for the packet: its elements by their positions.
    HELD = 2
    #: An element for every vector of the source, the same in all positions.
    SPREAD = 3
    #: Two elements for every vector of the source, the same in all positions.
    SPREAD_PAIR = 4
    #: One vector for the packet, as `HELD`, that leaves the stream behind the first strip: another
    #: joined phase takes the stream then.
    LATCHED = 5


class Fetched(enum.Enum, shape=3):
    """Origin of an element's operand y or z."""

    #: Zero.
    NONE = 0
    #: Element of the auxiliary stream, the first of a pair.
    AUXILIARY = 1
    #: Second element of a pair of the auxiliary stream.
    AUXILIARY_SECOND = 2
    #: Statistic 0 of the element's position.
    STATISTIC_0 = 3
    #: Statistic 1 of the element's position.
    STATISTIC_1 = 4
    #: int32 number of the vector in its packet, modulo 2^16.
    ROW = 5
    #: int32 position of the element in its vector.
    POSITION = 6
    #: Kept word of the element: word 0 as y, word 1 as z.
    KEPT = 7

    @property
    def statistic(self) -> int | None:
        """Number of the statistic that it is."""
        return {Fetched.STATISTIC_0: 0, Fetched.STATISTIC_1: 1}.get(self)


class UnitOrder(enum.Enum, shape=3):
    """Order in which an element passes the units of a lane."""

    #: Multiply-add, ALU, function.
    FMA_ALU_SFU = 0
    #: Multiply-add, function, ALU.
    FMA_SFU_ALU = 1
    #: ALU, multiply-add, function.
    ALU_FMA_SFU = 2
    #: ALU, function, multiply-add.
    ALU_SFU_FMA = 3
    #: Function, multiply-add, ALU.
    SFU_FMA_ALU = 4
    #: Function, ALU, multiply-add.
    SFU_ALU_FMA = 5
    #: Multiply-add, ALU, at their times in `FMA_SFU_ALU`; no function.
    FMA_ALU_LATE = 6

    @property
    def units(self) -> tuple[str, ...]:
        """Names of the units that it passes, the first one first."""
        return ("fma", "alu") if self is UnitOrder.FMA_ALU_LATE else self.times

    @property
    def times(self) -> tuple[str, ...]:
        """Names of all units, in the order of the cycles in which an element reaches them."""
        late = self is UnitOrder.FMA_ALU_LATE
        return tuple((UnitOrder.FMA_SFU_ALU if late else self).name.lower().split("_"))


class Operand(enum.Enum, shape=4):
    """Operand of a unit; the first four are those of `fma_a` and of the function, too."""

    #: Element of the source.
    X = 0
    #: Second word of the element, as `Fetched` says.
    Y = 1
    #: Third word of the element, as `Fetched` says.
    Z = 2
    #: Result of the unit before this one.
    PREVIOUS = 3
    #: +0, and the int32 0.
    ZERO = 4
    #: 1 in fp32.
    ONE = 5
    #: -0: the addend that changes no product.
    MINUS_ZERO = 6
    #: Constants of the program.
    CONSTANT_0 = 8
    CONSTANT_1 = 9
    CONSTANT_2 = 10
    CONSTANT_3 = 11


#: Words of the operands that are the same in every program.
FIXED_WORDS = {Operand.ZERO: 0, Operand.ONE: 0x3F80_0000, Operand.MINUS_ZERO: 0x8000_0000}


class Reduction(enum.Enum, shape=3):
    """Change of a statistic by the results of a phase, one after another in each position.

    Or what an element of the phases joined to it finds as kept words (`LanePhase`).
    """

    #: No change.
    NONE = 0
    #: It becomes the result.
    REPLACE = 1
    #: Sum in fp32 from +0 on, over the packet.
    SUM = 2
    #: Maximum in fp32 from minus infinity on, over the packet.
    MAXIMUM = 3
    #: Minimum in fp32 from infinity on, over the packet.
    MINIMUM = 4
    #: The result is a kept word of the element; `statistic` is the word's number.
    KEEP = 5
    #: x is kept word 0, and the result kept word 1.
    KEEP_BOTH = 6

    @property
    def keeps(self) -> bool:
        """Whether it leaves kept words, and no statistic changes."""
        return self in (Reduction.KEEP, Reduction.KEEP_BOTH)

    @property
    def runs(self) -> bool:
        """Whether a statistic changes by one result after another: a sum or an extreme."""
        return self in (Reduction.SUM, Reduction.MAXIMUM, Reduction.MINIMUM)

    @property
    def changes(self) -> bool:
        """Whether a statistic changes."""
        return self is not Reduction.NONE and not self.keeps


class ResultForm(enum.Enum, shape=2):
    """Form in which results are sent, packed without gaps."""

    #: They are not sent.
    NONE = 0
    #: 32 bits as they are.
    WORD = 1
    #: fp32 rounded to bf16, two in 32 bits.
    BF16 = 2
    #: int32 saturated to int8, four in 32 bits.
    INT8 = 3

    @functools.cached_property
    def per_word(self) -> int:
        """Results in 32 bits of a vector."""
        return (1, 1, 2, 4)[int(self.value)]


#: Bits of a form in a phase's word.
_FORM_BITS = 2


@functools.cache
def phase_layout(function_units: int = 0) -> WordLayout:
    """Layout of one phase; codes behind the special functions are those of function units."""
    functions = len(SpecialFunction) + function_units
    return WordLayout(
        {
            "source": PhaseSource,
            "form": _FORM_BITS,
            "auxiliary": AuxiliaryUse,
            "auxiliary_form": _FORM_BITS,
            "y": Fetched,
            "z": Fetched,
            "order": UnitOrder,
            "fma_a": 2,
            "fma_b": Operand,
            "fma_c": Operand,
            "negate_product": 1,
            "negate_addend": 1,
            "alu": AluOperation,
            "alu_a": Operand,
            "alu_b": Operand,
            "alu_c": Operand,
            "alu_d": Operand,
            "function": range(functions) if function_units else SpecialFunction,
            "argument": 2,
            "reduction": Reduction,
            "statistic": range(STATISTICS),
            "result": ResultForm,
        }
    )


@functools.cache
def lane_layout(function_units: int = 0) -> WordLayout:
    """Layout of a lane program; without phases the lanes are off.

    ``lower``: sources, and vectors beside them, of bf16 are `ElementForm.BF16_LOWER`.
    """
    return WordLayout(
        {
            "count": range(PHASES + 1),
            "phases": data.ArrayLayout(phase_layout(function_units), PHASES),
            "constants": data.ArrayLayout(32, CONSTANTS),
            "lower": 1,
        }
    )
