"""The counter chain: a loop nest in hardware, and its program."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.component import Component
from hw.errors import BadInputError, shown

__all__ = ["ChainProgram", "CounterChain", "LoopProgram", "Step", "chain_layout"]


def chain_layout(*, loops: int, count_bits: int, offset_bits: int) -> data.StructLayout:
    """Layout of a chain's program: ``loops`` entries, outermost first.

    ``base`` and ``slope`` give the count, ``outer`` the loop whose index the slope multiplies,
    ``stride`` what one iteration adds to the offset.
    """
    loop = data.StructLayout(
        {
            "base": signed(count_bits + 1),
            "slope": signed(count_bits + 1),
            "outer": range(max(loops - 1, 2)),
            "stride": signed(offset_bits),
        }
    )
    return data.StructLayout({"loops": data.ArrayLayout(loop, loops)})


@dataclasses.dataclass(frozen=True)
class LoopProgram:
    """One loop of a nest: ``base + slope * index[outer]`` iterations, none if that is negative.

    Parameters
    ----------
    base : int
        Iterations at index 0 of the outer loop.
    stride : int
        What one iteration adds to the offset, in the unit of the offset.
    slope : int
        Iterations more for each step of the outer loop; 0 for a constant count.
    outer : int
        Position of the outer loop in the nest.
    """

    base: int = 1
    stride: int = 0
    slope: int = 0
    outer: int = 0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise BadInputError(f"Loop {field.name} must be an integer, not {shown(value)}")


@dataclasses.dataclass(frozen=True)
class Step:
    """One step of a chain: what its outputs show.

    Parameters
    ----------
    indices : tuple of int
        Index of each loop.
    offset : int
        Sum of index × stride.
    first, end, last : tuple of bool
        Entry i: loops i and inward are at index 0; loop i alone is at its last index; loops i and
        inward are at their last index.
    """

    indices: tuple[int, ...]
    offset: int
    first: tuple[bool, ...]
    end: tuple[bool, ...]
    last: tuple[bool, ...]


@dataclasses.dataclass(frozen=True)
class ChainProgram:
    """Program of a counter chain: its loops, outermost first.

    Parameters
    ----------
    loops : tuple of LoopProgram
        Fewer loops than the chain has are completed at the inner end by loops of one iteration.

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

    def counts(self) -> tuple[tuple[int, int], ...]:
        """Least and greatest count of each loop, before a negative one becomes none."""
        counts: list[tuple[int, int]] = []
        for loop in self.loops:
            ends = [loop.base]
            if loop.slope:
                ends.append(loop.base + loop.slope * max(counts[loop.outer][1] - 1, 0))
            counts.append((min(ends), max(ends)))
        return tuple(counts)

    def steps(self) -> Iterator[Step]:
        """Steps in order: what the hardware must do."""
        return (step for step in self.cycles() if step is not None)

    def cycles(self) -> Iterator[Step | None]:
        """What each cycle brings if the consumer is always ready: a step, or an empty loop."""
        return self._walk((), (), 0)

    def _walk(
        self, indices: tuple[int, ...], end: tuple[bool, ...], offset: int
    ) -> Iterator[Step | None]:
        depth = len(indices)
        if depth == len(self.loops):
            first = tuple(not any(indices[i:]) for i in range(depth))
            last = tuple(all(end[i:]) for i in range(depth))
            yield Step(indices, offset, first, end, last)
            return
        loop = self.loops[depth]
        count = loop.base + (loop.slope * indices[loop.outer] if loop.slope else 0)
        if count <= 0:
            yield None
        for index in range(count):
            yield from self._walk(
                (*indices, index), (*end, index == count - 1), offset + index * loop.stride
            )

    def pack(self, layout: data.StructLayout) -> int:
        """Word of this program in a chain's layout.

        Raises
        ------
        BadInputError
            If the program has more loops than the chain, or a number the layout cannot hold.
        """
        entries = layout["loops"].shape
        if len(self.loops) > entries.length:
            raise BadInputError(
                f"Chain program must have at most {entries.length} loops, not {len(self.loops)}"
            )
        limit = entries.elem_shape["base"].shape.width - 1
        reach = entries.elem_shape["stride"].shape.width - 1
        for index, (loop, (least, most)) in enumerate(zip(self.loops, self.counts())):
            if not all(
                -(1 << limit) <= number < 1 << limit for number in (least, most, loop.slope)
            ):
                raise BadInputError(
                    f"Count of loop {index} must be below {1 << limit}, not {least} to {most}"
                )
            if not -(1 << reach) <= loop.stride < 1 << reach:
                raise BadInputError(
                    f"Stride of loop {index} must be from {-(1 << reach)} to {(1 << reach) - 1}, "
                    f"not {loop.stride}"
                )
        padding = (LoopProgram(),) * (entries.length - len(self.loops))
        loops = [dataclasses.asdict(loop) for loop in self.loops + padding]
        return Const.cast(layout.const({"loops": loops})).value

    @classmethod
    def unpack(cls, layout: data.StructLayout, word: int) -> ChainProgram:
        """Program of a word; loops that ``pack`` added stay."""
        fields: Any = layout.from_bits(word)
        names = [field.name for field in dataclasses.fields(LoopProgram)]
        count = layout["loops"].shape.length
        entries = [fields["loops"][index] for index in range(count)]
        return cls(tuple(LoopProgram(**{name: e[name] for name in names}) for e in entries))


class CounterChain(Component):
    """Loop nest of one step a cycle; loop 0 is the outermost.

    Loop i runs ``base + slope * index[outer]`` iterations. A count of zero or less is an empty
    loop: it costs one cycle without a step, and the next outer loop advances. Marks state
    positions, so those of an outer iteration whose inner loops are empty are not shown.
    Counts and offsets advance by addition alone. The first step comes one cycle after ``i_start``.

    Parameters
    ----------
    loops : int
        Depth of the nest (at least 1).
    count_bits : int
        Bits of an index; a count lies below ``2**count_bits``.
    offset_bits : int
        Bits of the offset, which wraps.

    Members
    -------
    config : ``In(chain_layout(...))``
        The program; it must not change from ``i_start`` on.
    i_start : ``In(1)``
        Begin at the first step, in the next cycle, whatever the chain is doing.
    i_next : ``In(1)``
        Take the step (where ``o_valid``) and go on.
    o_valid : ``Out(1)``
        The outputs show a step; they hold it until ``i_next``.
    o_offset : ``Out(offset_bits)``
    o_indices : ``Out(ArrayLayout(count_bits, loops))``
    o_first, o_end, o_last : ``Out(loops)``
        Marks of the step, see ``Step``.
    o_done : ``Out(1)``
        The nest is over, or has not been started.
    """

    config: data.View[data.StructLayout]
    i_start: Signal
    i_next: Signal
    o_valid: Signal
    o_offset: Signal
    o_indices: data.View[data.ArrayLayout]
    o_first: Signal
    o_end: Signal
    o_last: Signal
    o_done: Signal

    def __init__(self, *, loops: int, count_bits: int, offset_bits: int) -> None:
        for noun, value in (
            ("Chain loops", loops),
            ("Count bits", count_bits),
            ("Offset bits", offset_bits),
        ):
            if not isinstance(value, int) or value < 1:
                raise BadInputError(f"{noun} must be an integer of at least 1, not {shown(value)}")
        self._loops = loops
        self._count_bits = count_bits
        self._offset_bits = offset_bits
        self.layout = chain_layout(loops=loops, count_bits=count_bits, offset_bits=offset_bits)
        super().__init__(
            {
                "config": In(self.layout),
                "i_start": In(1),
                "i_next": In(1),
                "o_valid": Out(1),
                "o_offset": Out(offset_bits),
                "o_indices": Out(data.ArrayLayout(count_bits, loops)),
                "o_first": Out(loops),
                "o_end": Out(loops),
                "o_last": Out(loops),
                "o_done": Out(1),
            }
        )

    @property
    def definition_name(self) -> str:
        """Name of the module that this component becomes."""
        return f"counter_chain_l{self._loops}_c{self._count_bits}_o{self._offset_bits}"

    def elaborate(self, platform: object) -> Module:
        m = Module()
        loops = self._loops
        active = Signal()
        program = [self.config.loops[i] for i in range(loops)]
        counts = [Signal(signed(self._count_bits + 1), name=f"count_{i}") for i in range(loops)]
        # Offset at which the current iteration of each loop begins.
        starts = [Signal(self._offset_bits, name=f"start_{i}") for i in range(loops)]
        empty = Signal(loops)
        over = Signal(loops + 1)  # loops i and inward have nothing left after this step
        advance = Signal(loops)  # one-hot: the loop that goes on
        move = Signal()
        m.d.comb += over[loops].eq(1)
        for i in range(loops):
            m.d.comb += [
                empty[i].eq(counts[i] <= 0),
                self.o_end[i].eq(self.o_indices[i] + 1 == counts[i]),
                self.o_first[i].eq(Cat(self.o_indices[j] for j in range(i, loops)) == 0),
                self.o_last[i].eq(self.o_end[i:].all()),
                over[i].eq(empty[i] | (self.o_end[i] & over[i + 1])),
                advance[i].eq(over[i + 1] & ~over[i]),
            ]
        m.d.comb += [
            self.o_offset.eq(starts[-1]),
            self.o_valid.eq(active & ~empty.any()),
            self.o_done.eq(~active),
            move.eq(active & (self.i_next | empty.any())),
        ]
        # An empty loop hides what lies inside it, so the innermost candidate may not be the one:
        # everything inside the advancing loop restarts, and `over` of the outermost empty loop
        # makes all loops between it and the advancing one count as over.
        chosen = Signal(loops)
        for i in range(loops):
            m.d.comb += chosen[i].eq(advance[i] & ~(advance[:i].any() if i else Const(0)))
        start = Signal(self._offset_bits)
        for i in range(loops):
            with m.If(chosen[i]):
                m.d.comb += start.eq(starts[i] + program[i].stride)
        with m.If(move & over[0]):
            m.d.sync += active.eq(0)
        for i in range(loops):
            restarts = chosen[:i].any() if i else Const(0)
            with m.If(move & (chosen[i] | restarts)):
                m.d.sync += [
                    self.o_indices[i].eq(Mux(restarts, 0, self.o_indices[i] + 1)),
                    starts[i].eq(start),
                ]
            if i:
                outer = program[i].outer
                grows, renews = Signal(name=f"grows_{i}"), Signal(name=f"renews_{i}")
                m.d.comb += [
                    grows.eq(Cat(chosen[j] & (outer == j) for j in range(i)).any()),
                    renews.eq(Cat(chosen[:j].any() & (outer == j) for j in range(1, i)).any()),
                ]
                with m.If(move & (grows | renews)):
                    m.d.sync += counts[i].eq(
                        Mux(grows, counts[i] + program[i].slope, program[i].base)
                    )
        with m.If(self.i_start):
            m.d.sync += active.eq(1)
            for i in range(loops):
                m.d.sync += [
                    self.o_indices[i].eq(0),
                    starts[i].eq(0),
                    counts[i].eq(program[i].base),
                ]
        return m
