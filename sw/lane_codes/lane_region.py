"""A region of the tile IR as words of lanes: its nodes, inputs and outputs entered into a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from hw.arch.lanes.phase_word import ElementForm, Reduction, ResultForm
from sw.ir import nodes as ir
from sw.ir.affine import Axis
from sw.ir.element_operations import notation
from sw.ir.format_rules import Format, bf16, common, fp32, int8, int32, pred
from sw.ir.tails import identity
from sw.ir.types import TileType
from sw.lane_codes.lane_arithmetic import Arithmetic, Condition
from sw.lane_codes.lane_number import EXACT, Number, constant
from sw.lane_codes.lane_words import Place, Send, Word, WordTable, float_bits
from sw.language.program_error import ProgramError, refused

__all__ = ["LANE_FORMATS", "RegionWords"]

_FORMS = {
    fp32: (ElementForm.WORD, ResultForm.WORD),
    int32: (ElementForm.WORD, ResultForm.WORD),
    bf16: (ElementForm.BF16, ResultForm.BF16),
    int8: (ElementForm.INT8, ResultForm.INT8),
}
#: Formats of the tensors that lanes take.
LANE_FORMATS = tuple(_FORMS)
_NAMES = ", ".join(each.name for each in _FORMS)
_REDUCTIONS = {"sum": Reduction.SUM, "max": Reduction.MAXIMUM, "min": Reduction.MINIMUM}


class RegionWords:
    """Words of a region.

    Parameters
    ----------
    inputs : mapping of str to TileType
    nodes : tuple of Node
    lane_axis : int
        Axis on the positions of a vector.
    function_bits, repeated, kept, numbered, pairs
        As of `lane_codes`.

    Members
    -------
    table : WordTable

    Raises
    ------
    ProgramError
        At the first node that lanes cannot compute.
    """

    def __init__(
        self,
        nodes: tuple[ir.Node, ...],
        inputs: Mapping[str, TileType],
        lane_axis: int,
        function_bits: int | None,
        repeated: Collection[str] = (),
        kept: Collection[str] = (),
        numbered: bool = False,
        pairs: bool = False,
    ) -> None:
        self._numbered = numbered
        self.table = WordTable(function_bits, pairs=pairs)
        self._math = Arithmetic(self.table)
        self._lane, self._step = lane_axis, 1 - lane_axis
        self._numbers: dict[str, Number | Condition] = {}
        self._types: dict[str, TileType] = dict(inputs)
        for node in nodes:
            if isinstance(node.result.type, TileType):
                self._types[node.result.name] = node.result.type
        # An axis that is one everywhere broadcasts nothing.
        self._one = [all(each.axis(axis).one for each in self._types.values()) for axis in (0, 1)]
        steps = [each.axis(self._step) for each in self._types.values()]
        #: Axis of the vectors of tiles that vary along them.
        self._vectors = next((each for each in steps if not each.one), steps[0])
        for name, type_ in inputs.items():
            self._input(name, type_, nodes[0] if nodes else None, name in repeated, name in kept)
        for node in nodes:
            self._enter(node)

    def send(self, name: str, format_: Format, node: ir.Node | None) -> None:
        """Enter an output in the format in which it is stored."""
        number = self._numbers[name]
        if isinstance(number, Condition) or format_ not in _FORMS:
            rule = f"`{name}` stored in {format_.name} is not supported by hardware yet: lanes send"
            raise refused(node, f"{rule} {_NAMES}", format_.name)
        type_ = self._types[name]
        if type_.axis(self._lane).one and not self._one[self._lane]:
            noun = ("row", "column")[self._lane]
            raise refused(node, f"Lanes do not send `{name}`, which has one {noun}", name)
        if number.loaded and number.format == format_ == bf16:
            raise refused(node, f"`{name}` is stored as it is loaded, which is no work of lanes")
        word = self._converted(name, number, format_, node)
        cast = self.table.casts.get(name)
        if cast is not None and cast.format != format_:
            self.table.rename(name, f"{name}#{cast.format.name}")
        form = _FORMS[format_][1]
        if not isinstance(word, int) and self._narrow(type_):
            word = self.table.last(word, f"{name}#last", self._vectors)
        self.table.outputs.append(Send(name, self._sent(word, type_), form, format_))

    def _converted(self, name: str, number: Number, format_: Format, node: ir.Node | None) -> Word:
        """Word of a number, as it is stored in a format."""
        whole = not format_.is_float
        if name in self.table.casts and number.format == format_:
            return self.table.casts[name].word
        word = number.integer if whole else number.real
        if word is None:
            what = f"{number.format.name} as {format_.name}"
            raise refused(node, f"Lanes do not send `{name}` of {what}", format_.name)
        return word

    def _narrow(self, type_: TileType) -> bool:
        """Whether a tile has one element for each position, and others have more."""
        return type_.axis(self._step).one and not self._one[self._step]

    def _sent(self, word: Word, type_: TileType) -> str:
        """A result that varies as a tile of a type does, or comes for every vector as the word."""
        place = None if isinstance(word, int) else self.table.places[word]
        wide = not type_.axis(self._step).one
        if self._narrow(type_) and place is Place.FULL:
            computed = word in self.table.operations
            return str(word) if computed else self.table.passed(word, Place.FULL, self._vectors)
        direct = place is Place.FULL or (place is Place.LANE and not wide)
        if direct and word in self.table.operations:
            return str(word)
        if not wide and (place in (Place.LANE, Place.HELD) or not self._one[self._step]):
            return self.table.passed(word, Place.LANE)
        return self.table.passed(word, Place.FULL, type_.axis(self._step))

    def _input(
        self, name: str, type_: TileType, node: ir.Node | None, repeated: bool, kept: bool
    ) -> None:
        if type_.format not in _FORMS:
            rule = f"Lanes take tiles of {_NAMES}, and `{name}` is {type_.format.name}"
            raise ProgramError("format", rule, node.span if node else None, value=name)
        lane_one = type_.axis(self._lane).one and not self._one[self._lane]
        step_one = type_.axis(self._step).one and not self._one[self._step]
        if lane_one and step_one:
            raise refused(node, f"Lanes do not spread `{name}`, a tile of one element", name)
        place = Place.SPREAD if lane_one else Place.HELD if step_one else Place.FULL
        place = Place.FULL if repeated else place
        number = self._port(name, type_, place)._replace(loaded=True)
        if kept:
            real, integer = map(self.table.keep, (number.real, number.integer))
            number = number._replace(real=real, integer=integer)
        self._numbers[name] = number

    def _port(self, name: str, type_: TileType, place: Place) -> Number:
        """Number that comes at a port."""
        form, axis = _FORMS[type_.format][0], type_.axis(self._step)
        axis = self._vectors if axis.one and place is Place.FULL else axis
        word = self.table.port(name, form, place, axis)
        if type_.format == int8:
            real = self.table.port(name, ElementForm.INT8_TO_FP32, place, axis)
            return Number(int8, real, word, 1 << int8.bits - 1)
        if type_.format == int32:
            self.table.integers.add(word)
            return Number(int32, None, word)
        if type_.format == fp32:
            self.table.payloads.add(word)
        return Number(type_.format, word, None)

    def _enter(self, node: ir.Node) -> None:
        match node:
            case ir.Map():
                result = self._map(node)
            case ir.Reduce():
                result = self._reduce(node)
            case ir.Full():
                result = constant(node.value.value, node.format)
            case ir.Iota():
                result = self._iota(node)
            case ir.Cast():
                result = self._cast(node)
            case ir.Buffer() | ir.Mask():
                # Tails along the vectors do not come, and those along positions stay there.
                result = self._numbers[node.values[0].name]
            case _:
                raise refused(node, f"`{node.kind}` is not an operation of lanes", node.kind)
        name = node.result.name
        self._numbers[name] = result
        if isinstance(result, Number):
            for word in (result.real, result.integer):
                if isinstance(word, str):
                    self.table.labels.setdefault(word, name)

    def _number(self, operand: ir.Operand, format_: Format, node: ir.Node) -> Word:
        """Word of an operand of element math in int32 or fp32."""
        if isinstance(operand, ir.Constant):
            number = constant(operand.value, format_)
        else:
            found = self._numbers[operand.name]
            assert not isinstance(found, Condition)
            number = found
        word = number.integer if format_ == int32 else number.real
        if word is None:
            raise refused(node, f"Lanes do not take {number.format.name} as {format_.name}")
        return word

    def _map(self, node: ir.Map) -> Number | Condition:
        operation = node.operation
        assert operation is not None
        numbers = list(node.operands)
        condition = None
        if operation.chooses:
            first = numbers.pop(0)
            condition = self._numbers[first.name] if isinstance(first, ir.Value) else None
        format_ = _math_format(node, numbers)
        whole = format_ == int32
        if whole and node.op == "mul":
            product = self._product(numbers)
            if product is not None:
                return product
        words = tuple(self._number(each, format_, node) for each in numbers)
        if operation.compares:
            return self._condition(node, words[0], words[1], whole)
        if isinstance(condition, Condition):
            word: Word | None = self._math.chosen(condition, words[0], words[1], whole)
        elif node.function is not None:
            word = self._math.function(node.function, words[0])
        elif self._math.computes(node.op, whole):
            word = self._math.apply(node.op, words, whole)
        else:
            rule = f"`{notation(node.op)}` of {format_.name} is no operation of lanes"
            raise refused(node, rule, node.op)
        if word is None and node.op == "fma":
            rule = "takes a tile as a factor and as many operands as one phase fetches on chips"
            raise refused(node, f"`fma` {rule}; write x * y + z", node.op)
        if word is None:
            rule = "takes a power of two on chips: write `.to(tw.fp32)` before it"
            raise refused(node, f"`{notation(node.op)}` of int32 {rule}", node.op)
        if not whole:
            return Number(format_, word, None)
        ordered = operation.chooses and all(self._ordered(each) for each in numbers)
        return Number(format_, None, word, ordered=ordered)

    def _known(self, operand: ir.Operand) -> Number | Condition:
        """An operand of int32."""
        if isinstance(operand, ir.Constant):
            return constant(operand.value, int32)
        return self._numbers[operand.name]

    def _ordered(self, operand: ir.Operand) -> bool:
        """Whether an operand of int32 has that order as fp32."""
        number = self._known(operand)
        return isinstance(number, Number) and number.ordered

    def _iota(self, node: ir.Iota) -> Number:
        """Numbers of the vectors in a packet: it has all of an axis of which tiles are blocks."""
        axis = (node.rows, node.cols)[node.axis]
        if axis.one and not node.start.terms:
            return constant(node.start.constant, int32)
        if node.axis != self._step or not self._numbered or node.start != axis.start:
            noun = ("row", "col")[node.axis]
            rule = "along one axis, all of it in one tile; load others from a tensor of int32"
            raise refused(node, f"`{noun}_index` is not supported here: lanes have numbers {rule}")
        return Number(int32, None, self.table.number(axis), ordered=True)

    def _condition(self, node: ir.Map, a: Word, b: Word, whole: bool) -> Condition:
        """A comparison; two selections are one if it is an equality with numbers of vectors."""
        for word, other, operand in ((a, b, node.operands[1]), (b, a, node.operands[0])):
            if node.op in ("eq", "ne") and self.table.is_number(word):
                known = self._math.counted(other)
                column = isinstance(operand, ir.Value) and self._narrow(self._types[operand.name])
                if column and isinstance(known, str):
                    name = f"{node.result.name}#counted"
                    known = self.table.last(known, name, self._vectors)
                return Condition(node.op, word, known, integer=False)
        return Condition(node.op, a, b, whole)

    def _product(self, operands: list[ir.Operand]) -> Number | None:
        """Product of whole numbers that is exact in fp32, or None."""
        reals: list[Word] = []
        bound = 1
        for operand in operands:
            number = self._known(operand)
            assert isinstance(number, Number)
            if number.real is None:
                return None
            reals.append(number.real)
            bound *= number.bound
        if bound > EXACT:
            return None
        # The sum with +0 is no -0, which is no whole number.
        first, second = self.table.near(*reals)
        word = self._math.fma(first, second, np.float32(0))
        return Number(int32, word, self._math.rounded(word), bound)

    def _reduce(self, node: ir.Reduce) -> Number:
        value, name = node.values[0], node.result.name
        number, type_ = self._numbers[value.name], self._types[value.name]
        axis = type_.axis(self._step)
        if node.axis != self._step:
            raise refused(node, "A reduction over positions of a vector is no work of lanes")
        assert isinstance(number, Number)
        if (
            number.ordered
            and node.op != "sum"
            and number.real is None
            and number.integer is not None
        ):
            least = self._reduced(node, name, number.integer, axis)
            if isinstance(least, str):
                self.table.integers.add(least)
            return Number(int32, None, least, ordered=True)
        if number.real is None:
            rule = f"other than numbers of columns and constants from 0 to {fp32.infinity:,}"
            raise refused(node, f"Lanes do not reduce {number.format.name} {rule}")
        whole = not number.format.is_float
        bound = number.bound
        if whole and node.op == "sum":
            bound *= EXACT if isinstance(axis.size, str) else axis.size
            if bound > EXACT:
                rule = f"whole numbers whose sum is at most {EXACT:,}"
                raise refused(node, f"Lanes sum {rule}, not {bound:,}", str(bound))
        word = self._reduced(node, f"{name}#fp32" if whole else name, number.real, axis)
        return Number(int32, None, self._math.rounded(word)) if whole else Number(fp32, word, None)

    def _reduced(self, node: ir.Reduce, name: str, word: Word, axis: Axis) -> Word:
        """Reduction of an fp32: a statistic, or one step if there is one term."""
        place = self.table.places[word] if isinstance(word, str) else Place.LANE
        narrow = place in (Place.LANE, Place.HELD) or not self._one[self._step]
        if narrow and axis.one:
            start = float_bits(identity(node.op, fp32).value)
            op = "add" if node.op == "sum" else node.op
            result = self._math.apply(op, (word, start), False)
            assert result is not None
            return result
        computed = word in self.table.operations and place is Place.FULL
        operand = str(word) if computed else self.table.passed(word, Place.FULL, axis)
        return self.table.statistic(name, _REDUCTIONS[node.op], operand)

    def _cast(self, node: ir.Cast) -> Number:
        number, format_ = self._numbers[node.values[0].name], node.format
        assert isinstance(number, Number)
        source, name = number.format, node.result.name
        if format_ not in _FORMS or (source == int32 and format_ == bf16):
            raise refused(node, f"Lanes do not cast {source.name} to {format_.name}", format_.name)
        if source.is_float > format_.is_float:
            assert number.real is not None
            number = Number(int32, None, self._math.rounded(number.real))
        if number.format == format_:
            return number
        if (source, number.real) == (int32, None) and format_ == fp32:
            assert number.integer is not None
            return Number(fp32, self._math.widened(number.integer), None)
        if source == int8 or format_ == fp32:
            # Exact: the same number in a longer format.
            return number._replace(format=format_, loaded=False)
        word = number.real if format_.is_float else number.integer
        assert word is not None
        type_ = self._types[name]
        sent = self._sent(word, type_)
        self.table.casts[name] = Send(name, sent, _FORMS[format_][1], format_)
        place = Place.HELD if self.table.places[sent] is Place.LANE else Place.FULL
        return self._port(name, type_, place)


def _math_format(node: ir.Map, numbers: list[ir.Operand]) -> Format:
    """Format of element math, as golden chooses it."""
    assert isinstance(node.result.type, TileType)
    if node.result.type.format != pred:
        return node.result.type.format
    real = any(isinstance(each, ir.Constant) and isinstance(each.value, float) for each in numbers)
    formats = [
        each.type.format
        for each in numbers
        if isinstance(each, ir.Value) and isinstance(each.type, TileType)
    ]
    return common(*formats, *((fp32,) if real else ())) or fp32
