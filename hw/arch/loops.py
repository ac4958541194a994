"""Program of a counter chain (hardware loop nest): its loops, their layout and packing."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any

from amaranth.hdl import signed
from amaranth.lib import data

from hw.arch.checks import Domain, refusal
from hw.arch.descriptor import MAX_RANK
from hw.arch.errors import BadInputError, shown
from hw.arch.words.word_layout import WordLayout

__all__ = [
    "COUNT_BITS",
    "COUNT_SHIFT",
    "STEP_BITS",
    "BoxLoop",
    "ChainProgram",
    "LoopProgram",
    "chain_layout",
]

#: Width of the count and of the index of a loop, in AGCUs and PMUs.
COUNT_BITS = 16
#: Bits by which the sum of a loop's base and slope is shifted right; the result is its count.
COUNT_SHIFT = Domain(0, 7)
#: Width of the step of a coordinate.
STEP_BITS = 18
#: Indices of a loop that are looked at one by one, where counts depend on it.
_MOST_TURNS = 16
#: Least and greatest index of each loop of a nest.
Spans = tuple[tuple[int, int], ...]


@functools.cache
def chain_layout(*, loops: int, count_bits: int, offset_bits: int) -> WordLayout:
    """Layout of a chain's program: ``loops`` entries, outermost first.

    ``base``, ``slope`` and ``shift`` give the count, ``outer`` the loop whose index the slope
    multiplies, ``stride`` the offset increment per iteration.
    """
    loop = WordLayout(
        {
            "base": signed(count_bits + 1),
            "slope": signed(count_bits + 1),
            "outer": range(max(loops - 1, 2)),
            "shift": range(COUNT_SHIFT.high + 1),
            "stride": signed(offset_bits),
        }
    )
    return WordLayout({"loops": data.ArrayLayout(loop, loops)})


@dataclasses.dataclass(frozen=True)
class LoopProgram:
    """One loop of a nest: ``(base + slope * index[outer]) >> shift`` iterations.

    The shift rounds toward minus infinity; a count of zero or less is an empty loop.

    Parameters
    ----------
    base : int
        The sum at index 0 of the outer loop: the count if there is no shift.
    stride : int
        Offset increment per iteration, in the unit of the offset.
    slope : int
        Added to the sum per step of the outer loop; 0 for a constant count.
    outer : int
        Position of the outer loop in the nest.
    shift : int
        Bits by which the sum is shifted right (`COUNT_SHIFT`).

    Raises
    ------
    BadInputError
        If a field is not an integer, the shift is out of its range, or there is a shift but no
        slope.
    """

    base: int = 1
    stride: int = 0
    slope: int = 0
    outer: int = 0
    shift: int = 0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            # A compilation makes very many loops, of plain integers.
            if type(value) is not int and (not isinstance(value, int) or isinstance(value, bool)):
                raise BadInputError(f"Loop {name} must be an integer, not {shown(value)}")
        if self.shift:
            COUNT_SHIFT.require("Loop shift", self.shift)
            if not self.slope:
                raise refusal("Loop shift", "be 0 without a slope", self.shift)


@dataclasses.dataclass(frozen=True)
class ChainProgram:
    """Program of a counter chain: its loops, outermost first.

    Parameters
    ----------
    loops : tuple of LoopProgram
        If shorter than the chain, the nest is padded at the inner end with loops of one iteration.

    Raises
    ------
    BadInputError
        If a loop's count depends on a loop that does not lie outside it.
    """

    loops: tuple[LoopProgram, ...]

    def __post_init__(self) -> None:
        if not self.loops:
            raise BadInputError("Chain program must have a loop, not ()")
        for index, loop in enumerate(self.loops):
            if loop.slope and not 0 <= loop.outer < index:
                raise BadInputError(
                    f"Outer loop of loop {index} must lie outside it, not be {loop.outer}"
                )

    def _sums(self) -> tuple[tuple[int, int], ...]:
        """Least and greatest sum of each loop, before its shift."""
        sums: list[tuple[int, int]] = []
        for loop in self.loops:
            ends = [loop.base]
            if loop.slope:
                most = sums[loop.outer][1] >> self.loops[loop.outer].shift
                ends.append(loop.base + loop.slope * max(most - 1, 0))
            sums.append((min(ends), max(ends)))
        return tuple(sums)

    def counts(self) -> tuple[tuple[int, int], ...]:
        """Least and greatest count of each loop; a negative one means no iteration."""
        return tuple(
            (least >> loop.shift, most >> loop.shift)
            for loop, (least, most) in zip(self.loops, self._sums(), strict=True)
        )

    def spans(self, ranges: Mapping[int, tuple[int, int]]) -> Iterator[Spans]:
        """Least and greatest index of each loop where those of some loops lie in ranges.

        If counts depend on one loop, which has few iterations, its indices are taken one by one:
        then every combination of indices inside a result occurs.

        Parameters
        ----------
        ranges : mapping of int to (int, int)
            Least and greatest index that a loop may have.

        Yields
        ------
        tuple of (int, int)
        """
        outer = {each.outer for each in self.loops if each.slope}
        spans = self._span(ranges)
        number = outer.pop() if len(outer) == 1 else None
        if number is None or spans is None or spans[number][1] - spans[number][0] >= _MOST_TURNS:
            turns: list[Mapping[int, tuple[int, int]]] = [ranges]
        else:
            first, last = spans[number]
            turns = [{**ranges, number: (index, index)} for index in range(first, last + 1)]
        yield from (found for turn in turns if (found := self._span(turn)) is not None)

    def _span(self, ranges: Mapping[int, tuple[int, int]]) -> Spans | None:
        """Bounds of `spans`, of each loop by itself; None if there is no such step."""
        found: list[tuple[int, int]] = []
        for number, each in enumerate(self.loops):
            ends = found[each.outer] if each.slope else (0, 0)
            most = (max(each.base + each.slope * end for end in ends) >> each.shift) - 1
            first, last = ranges.get(number, (0, most))
            span = (first, min(last, most))
            if span[1] < span[0]:
                return None
            found.append(span)
        return tuple(found)

    def check(self, layout: WordLayout) -> None:
        """Refuse a program that a chain of this layout cannot run.

        Raises
        ------
        BadInputError
            If the program has more loops than the chain, or a number is out of the layout's range.
        """
        entries = layout["loops"].shape
        if len(self.loops) > entries.length:
            raise BadInputError(
                f"Chain program must have at most {entries.length} loops, not {len(self.loops)}"
            )
        limit = entries.elem_shape["base"].shape.width - 1
        reach = entries.elem_shape["stride"].shape.width - 1
        for index, (loop, (least, most)) in enumerate(zip(self.loops, self._sums())):
            if not all(
                -(1 << limit) <= number < 1 << limit for number in (least, most, loop.slope)
            ):
                raise BadInputError(
                    f"Count of loop {index}{' before its shift' if loop.shift else ''} "
                    f"must be below {1 << limit}, not {least} to {most}"
                )
            if not -(1 << reach) <= loop.stride < 1 << reach:
                raise BadInputError(
                    f"Stride of loop {index} must be from {-(1 << reach)} to {(1 << reach) - 1}, "
                    f"not {loop.stride}"
                )

    def pack(self, layout: WordLayout) -> int:
        """Word of this program in a chain's layout.

        Raises
        ------
        BadInputError
            If `check` refuses it.
        """
        self.check(layout)
        entries = layout["loops"].shape
        padding = (LoopProgram(),) * (entries.length - len(self.loops))
        return layout.pack({"loops": [vars(loop) for loop in self.loops + padding]})

    @classmethod
    def unpack(cls, layout: WordLayout, word: int) -> ChainProgram:
        """Program of a word; padding loops of ``pack`` remain.

        Raises
        ------
        BadInputError
            If a chain of this layout cannot run it.
        """
        fields: Any = layout.unpack(word)
        names = [field.name for field in dataclasses.fields(LoopProgram)]
        count = layout["loops"].shape.length
        entries = [fields["loops"][index] for index in range(count)]
        program = cls(tuple(LoopProgram(**{name: e[name] for name in names}) for e in entries))
        program.check(layout)
        return program


@dataclasses.dataclass(frozen=True)
class BoxLoop:
    """One loop over boxes: each iteration moves one coordinate by ``step`` elements.

    Parameters
    ----------
    count : int
        The sum at index 0 of the outer loop: the count if there is no shift.
    dimension : int
        Dimension of the tensor whose coordinate moves, 0 the innermost.
    step : int
        Step of the coordinate per iteration, in elements.
    slope, outer, shift : int
        Added to the sum per step of loop ``outer`` of the nest; bits by which it is shifted right,
        as of `LoopProgram`.
    """

    count: int
    dimension: int = 0
    step: int = 0
    slope: int = 0
    outer: int = 0
    shift: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.dimension < MAX_RANK:
            raise BadInputError(
                f"Box loop dimension must be from 0 to {MAX_RANK - 1}, not {self.dimension}"
            )
        limit = 1 << (STEP_BITS - 1)
        if not -limit <= self.step < limit:
            raise BadInputError(
                f"Box loop step must be from {-limit} to {limit - 1} elements, not {self.step}"
            )
