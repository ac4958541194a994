"""Words of a lane and the unit operations that make them, each with the same bits as golden's."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Collection, Iterable

import numpy as np

from hw.arch.lanes.lane_function import AnyFunction, LaneFunction
from hw.arch.lanes.phase_word import CONSTANTS, FIXED_WORDS, ElementForm, Reduction, ResultForm
from hw.numeric.alu import alu, fused_multiply_add
from hw.numeric.alu_codes import AluOperation
from hw.numeric.formats import fp32
from hw.numeric.function_codes import SpecialFunction
from hw.numeric.functions import special_function
from sw.ir.affine import Axis
from sw.ir.format_rules import Format

__all__ = [
    "MINUS_ZERO",
    "ONE",
    "ZERO",
    "Place",
    "Port",
    "Send",
    "UnitOperation",
    "Word",
    "WordTable",
    "float_bits",
    "keeping",
]

#: A word of a lane: its name, or the bits of a constant.
Word = str | int

ZERO, ONE, MINUS_ZERO = FIXED_WORDS.values()


class Place(enum.Enum):
    """How a word varies in a tile, and so how a phase gets it."""

    #: One for each element: the source, or a `VECTOR` of the auxiliary stream.
    FULL = enum.auto()
    #: One for each position, computed: a statistic.
    LANE = enum.auto()
    #: One for each position, of a port: `HELD`.
    HELD = enum.auto()
    #: One for each vector, of a port: `SPREAD`.
    SPREAD = enum.auto()
    #: One for each vector: its number in the packet.
    NUMBER = enum.auto()


#: Places of words that vary from vector to vector.
_VARYING = Place.FULL, Place.SPREAD, Place.NUMBER


@dataclasses.dataclass(frozen=True)
class Port:
    """Origin of a word that comes at a port: a value, and the form of its elements."""

    value: str
    form: ElementForm


@dataclasses.dataclass(frozen=True)
class Send:
    """Word that is sent: the name and the format that its packet has, and the form of results."""

    value: str
    word: str
    form: ResultForm
    format: Format


@dataclasses.dataclass(frozen=True)
class UnitOperation:
    """Operation of one unit of a lane.

    Parameters
    ----------
    unit : str
        ``fma``, ``alu`` or ``sfu``.
    operands : tuple of Word
        Three, four or one; those that the operation does not take are 0.
    code : AluOperation, SpecialFunction, LaneFunction or None
        None for the FMA.
    negate_product, negate_addend : bool
        Signs of the FMA.
    """

    unit: str
    operands: tuple[Word, ...]
    code: AluOperation | AnyFunction | None = None
    negate_product: bool = False
    negate_addend: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Operands that are no constants, each once."""
        found = (each for each in self.operands if isinstance(each, str))
        return tuple(dict.fromkeys(found))

    def computed(self, function_bits: int | None) -> int | None:
        """Result of constants, or None.

        Parameters
        ----------
        function_bits : int or None
            Significand bits of the functions; None if they are not known.
        """
        words = [np.array([each], np.uint32) for each in self.operands]
        if isinstance(self.code, AluOperation):
            return int(alu(self.code, *words)[0])
        floats = [fp32.from_bits(each) for each in words]
        if isinstance(self.code, LaneFunction):
            return float_bits(self.code.applied(floats[0])[0])
        if isinstance(self.code, SpecialFunction):
            if function_bits is None:
                return None
            return float_bits(special_function(self.code, floats[0], function_bits)[0])
        signs = {"negate_product": self.negate_product, "negate_addend": self.negate_addend}
        return float_bits(fused_multiply_add(*floats, **signs)[0])


def keeping(word: Word) -> UnitOperation:
    """Operation that gives a word unchanged."""
    return UnitOperation("alu", (word, ZERO, ZERO, ZERO), AluOperation.OR)


def float_bits(value: object) -> int:
    """Bits of a number in fp32."""
    return int(fp32.bits_of(np.asarray(value, np.float32).reshape(1))[0])


class WordTable:
    """Words of a region: operations, places and ports, and what is reduced and sent.

    Parameters
    ----------
    function_bits : int or None
        Significand bits of the functions, with which functions of constants are computed; None
        leaves those to the lanes.
    pairs : bool
        Whether a phase may take two words of each vector from its auxiliary stream.

    Members
    -------
    operations : dict of str to tuple of UnitOperation
        Alternatives for each word that a unit computes, on the same operands, in their order.
    places : dict of str to Place
    lengths : dict of str to Axis or None
        Axis of the vectors of a word that varies along them; None for the others.
    ports : dict of str to Port
    reductions : dict of str to (Reduction, str)
        Statistics, and the words that they are of.
    casts : dict of str to Send
        Sent words that later phases take, by the value's name.
    outputs : list of Send
    integers : set of str
        Words of int32.
    payloads : set of str
        Words of fp32 whose NaN may be others than the canonical one.
    labels : dict of str to str
        Names of the IR's values for words.
    kept : set of str
        Words of one element per position that come once a packet, to be made statistics.
    """

    def __init__(self, function_bits: int | None, *, pairs: bool = False) -> None:
        self.function_bits = function_bits
        self._pairs = pairs
        self.operations: dict[str, tuple[UnitOperation, ...]] = {}
        self.places: dict[str, Place] = {}
        self.lengths: dict[str, Axis | None] = {}
        self.ports: dict[str, Port] = {}
        self.reductions: dict[str, tuple[Reduction, str]] = {}
        self.casts: dict[str, Send] = {}
        self.outputs: list[Send] = []
        self.integers: set[str] = set()
        self.labels: dict[str, str] = {}
        self.payloads: set[str] = set()
        self.kept: set[str] = set()
        self._known: dict[object, str] = {}

    def port(self, value: str, form: ElementForm, place: Place, length: Axis | None) -> str:
        """Word of a value that comes at a port."""
        word = value if form is not ElementForm.INT8_TO_FP32 else f"{value}#fp32"
        self.ports[word] = Port(value, form)
        self.places[word] = place
        self.lengths[word] = length if place in (Place.FULL, Place.SPREAD) else None
        if form is ElementForm.INT8:
            self.integers.add(word)
        return word

    def keep(self, word: Word | None) -> Word | None:
        """Statistic that keeps a word of a port: one element per position, once a packet."""
        if not isinstance(word, str):
            return word
        self.kept.add(word)
        return self.passed(word, Place.LANE)

    def number(self, length: Axis) -> str:
        """Word of the number of a vector in its packet, an int32."""
        word = "#number"
        self.places[word], self.lengths[word] = Place.NUMBER, length
        self.integers.add(word)
        return word

    def is_number(self, word: Word) -> bool:
        """Whether a word is the number of a vector."""
        return isinstance(word, str) and self.places[word] is Place.NUMBER

    def rename(self, value: str, name: str) -> None:
        """Give a cast value another name at the ports."""
        self.casts[name] = dataclasses.replace(self.casts.pop(value), value=name)
        for word, port in self.ports.items():
            if port.value == value:
                self.ports[word] = Port(name, port.form)

    def statistic(self, name: str, reduction: Reduction, operand: str) -> str:
        """Statistic of a word over the vectors of a packet."""
        self.reductions[name] = reduction, operand
        self.places[name], self.lengths[name] = Place.LANE, None
        return name

    def last(self, word: str, name: str, length: Axis) -> str:
        """A word of one element per position as a statistic, if it comes for every vector."""
        if self.places[word] not in (Place.FULL, Place.SPREAD):
            return word
        operand = word if word in self.operations else self.passed(word, Place.FULL, length)
        for words in (self.integers, self.payloads):
            if operand in words:
                words.add(name)
        return self.statistic(name, Reduction.REPLACE, operand)

    def make(
        self,
        *alternatives: UnitOperation,
        integer: bool = False,
        place: Place | None = None,
        length: Axis | None = None,
    ) -> Word:
        """Result of an operation, which one of several units may compute.

        Constants are folded, and equal operations on equal words have one result.

        Parameters
        ----------
        alternatives : UnitOperation
        integer : bool
            Whether the result is an int32.
        place, length : Place, Axis
            Where the result is needed; by default as its operands are.
        """
        names = alternatives[0].names
        if not names and place is None:
            constant = alternatives[0].computed(self.function_bits)
            if constant is not None:
                return constant
            # A function takes no constant as its argument.
            (argument,) = alternatives[0].operands
            operands = (self.passed(argument, Place.LANE),)
            return self.make(dataclasses.replace(alternatives[0], operands=operands))
        key = alternatives[0], place, length
        if key in self._known:
            return self._known[key]
        word = f"#{len(self.operations)}"
        varies = any(self.places[each] in _VARYING for each in names)
        lengths = {self.lengths[each] for each in names} - {None}
        self.operations[word] = alternatives
        self.places[word] = place or (Place.FULL if varies else Place.LANE)
        self.lengths[word] = length or next(iter(lengths), None)
        if integer:
            self.integers.add(word)
        self._known[key] = word
        return word

    def fits(self, words: Iterable[Word]) -> bool:
        """Whether one phase can fetch words beside one another."""
        distinct = set(words)
        names = [each for each in distinct if isinstance(each, str)]
        places = [self.places[each] for each in names]
        constants = {each for each in distinct if isinstance(each, int)}
        constants -= set(FIXED_WORDS.values())
        beside = sum(each in (Place.HELD, Place.SPREAD) for each in places)
        beside += max(0, places.count(Place.FULL) - 1)
        fetched = beside + places.count(Place.LANE) + places.count(Place.NUMBER)
        spread = [each for each in names if self.places[each] is Place.SPREAD]
        streams = beside - self.is_pair(spread)
        if self.kept.intersection(names) and any(each in _VARYING for each in places):
            return False
        return streams <= 1 and fetched <= 2 and len(constants) <= CONSTANTS

    def is_pair(self, words: Collection[str]) -> bool:
        """Whether the auxiliary stream can give words as pairs: two of each vector, of one form."""
        spread = all(self.places[each] is Place.SPREAD for each in words)
        return (
            self._pairs
            and spread
            and len(words) == 2
            and len({self.ports[each].form for each in words}) == 1
        )

    def passed(self, word: Word, place: Place, length: Axis | None = None) -> str:
        """A word unchanged, as a result in another place."""
        also = []
        integer = isinstance(word, str) and word in self.integers
        if isinstance(word, str) and not integer and word not in self.payloads:
            also.append(UnitOperation("fma", (word, ONE, MINUS_ZERO)))
        result = self.make(keeping(word), *also, integer=integer, place=place, length=length)
        if word in self.payloads:
            self.payloads.add(str(result))
        return str(result)

    def copied(self, word: str, name: str) -> str:
        """A new word that is the same as another."""
        self.operations[name] = (keeping(word),)
        self.places[name], self.lengths[name] = self.places[word], self.lengths[word]
        if word in self.integers:
            self.integers.add(name)
        return name

    def near(self, *operands: Word) -> tuple[Word, ...]:
        """Operands that one phase can fetch, as far as words of ports can become results."""
        taken = list(operands)
        for each in operands:
            if self.fits(taken) or not isinstance(each, str):
                continue
            place = {Place.HELD: Place.LANE, Place.SPREAD: Place.FULL}.get(self.places[each])
            if place is not None:
                moved = self.passed(each, place, self.lengths[each])
                taken = [moved if word == each else word for word in taken]
        return tuple(taken)
