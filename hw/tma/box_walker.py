"""Box walker: the rows of a box in order, each with its address and extent in memory."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.descriptor import MAX_BOX, MAX_ELEMENT_STRIDE, MAX_RANK, TmaFeature
from hw.lib.component import Component
from hw.lib.stream import ElasticBuffer
from hw.tma.layouts import MAX_ROW_BYTES, TmaLayouts

__all__ = ["BoxWalker"]


class BoxWalker(Component):
    """Box walker: the rows of each box, dimension 1 fastest; one per cycle, boxes back to back.

    Parameters
    ----------
    layouts : TmaLayouts

    Members
    -------
    i_stream : stream of :attr:`TmaLayouts.box`
    o_stream : stream of :attr:`TmaLayouts.row`
        Rows; a register output.

    Attributes
    ----------
    active, box, index, levels, row, step : Signal
        The box at work, if there is one, its indices and the addresses at which the current
        iteration of each loop began; the row that leaves if it may (``step``), for proofs.
    """

    i_stream: stream.Interface
    o_stream: stream.Interface

    def __init__(self, layouts: TmaLayouts) -> None:
        outer = MAX_RANK - 1
        self._layouts = layouts
        self.active = Signal()
        self.box: Any = Signal(layouts.box)
        self.index = [Signal(range(MAX_BOX), name=f"index{number}") for number in range(outer)]
        self.levels = [Signal(layouts.address_bits, name=f"level{n}") for n in range(outer)]
        self.row: Any = Signal(layouts.row)
        self.step = Signal()
        super().__init__(
            {
                "i_stream": In(stream.Signature(layouts.box)),
                "o_stream": Out(stream.Signature(layouts.row)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        outer = MAX_RANK - 1
        address_bits = self._layouts.address_bits
        source: Any = self.i_stream.payload
        box, active, step = self.box, self.active, self.step
        # Without this buffer `ready` would chain combinationally through splitter and walker adder.
        m.submodules.output = output = ElasticBuffer(self._layouts.row)
        wiring.connect(m, output.o_stream, wiring.flipped(self.o_stream))
        # Level 0 is the row itself.
        levels, index = self.levels, self.index
        strided = TmaFeature.ELEMENT_STRIDES in self._layouts.features
        steps = [box.steps[number] if strided else Const(1) for number in range(outer)]
        # A stride above 1 may step over the box's last index.
        later = [index[number] + steps[number] for number in range(outer)]
        ends = [
            later[number] > box.extents[number] if strided else index[number] == box.extents[number]
            for number in range(outer)
        ]

        last = Signal()
        inside = Signal()
        tail = Signal.like(box.tail)
        m.d.comb += tail.eq(box.tail)
        if TmaFeature.SHORTFALL in self._layouts.features:
            with m.If(index[0] + 1 == box.high[0]):
                m.d.comb += tail.eq(box.shorter)
        m.d.comb += [
            last.eq(ends[0] & ends[1] & ends[2] & ends[3]),
            inside.eq(box.head < tail),
            output.i_stream.valid.eq(active),
            output.i_stream.payload.eq(self.row),
            step.eq(active & output.i_stream.ready),
            self.i_stream.ready.eq(~active | (step & last)),
        ]
        for number in range(outer):
            with m.If((index[number] < box.low[number]) | (index[number] >= box.high[number])):
                m.d.comb += inside.eq(0)

        # The innermost loop that is not at its end advances; the loops inside it restart there.
        base = Signal(address_bits)
        stride = Signal(36)
        step_of = Signal(range(MAX_ELEMENT_STRIDE + 1), init=1)
        following = Signal(address_bits)
        m.d.comb += following.eq(base + ((stride * step_of if strided else stride) << 4))
        with m.If(step):
            for number in range(outer):
                moves = ~ends[number]
                with m.If(moves) if number == 0 else m.Elif(moves):
                    m.d.comb += [base.eq(levels[number]), stride.eq(box.strides[number])]
                    m.d.comb += step_of.eq(steps[number])
                    m.d.sync += index[number].eq(later[number])
                    m.d.sync += [index[inner].eq(0) for inner in range(number)]
                    m.d.sync += [levels[inner].eq(following) for inner in range(number + 1)]
        with m.If(self.i_stream.ready):
            m.d.sync += [active.eq(self.i_stream.valid), box.eq(source)]
            m.d.sync += [level.eq(source.address) for level in levels]
            m.d.sync += [position.eq(0) for position in index]

        self._describe(m, self.row, box, levels[0], tail, inside, last)
        return m

    def _describe(
        self,
        m: Module,
        row: Any,
        box: Any,
        address: Signal,
        tail: Signal,
        inside: Signal,
        last: Signal,
    ) -> None:
        """Plan and beats of the box's row that begins at an address and ends at its tail."""
        beat_bytes, beat_shift = self._layouts.beat_bytes, self._layouts.beat_shift
        head = Signal(beat_shift)
        offset = Signal(beat_shift)
        span = Signal(range(MAX_ROW_BYTES + beat_bytes))
        continued = self._layouts.continues
        first = (offset + box.head) >> beat_shift
        beats = (span + (beat_bytes - 1)) >> beat_shift
        m.d.comb += [
            head.eq(address),
            offset.eq(address[:beat_shift] - box.head[:beat_shift]),
            span.eq(head + tail - box.head),
        ]
        m.d.comb += [
            row.plan.stream.eq(box.stream),
            row.plan.vectors.eq(box.vectors),
            # A row without a byte in memory needs no realignment.
            row.plan.offset.eq(Mux(inside, offset, 0)),
            row.plan.first.eq(first),
            row.plan.end.eq(first + Mux(inside, beats, 0)),
            row.plan.head.eq(head),
            row.plan.tail.eq(span),
            row.plan.last.eq(last & ~box.continues if continued else last),
            row.address.eq(address >> beat_shift),
            row.beats.eq(Mux(inside, beats, 0)),
        ]
        if self._layouts.packs:
            m.d.comb += row.plan.units.eq(box.units)
        if TmaFeature.REDUCE in self._layouts.features:
            m.d.comb += row.reduction.eq(box.reduction)
        if TmaFeature.NAN_FILL in self._layouts.features:
            m.d.comb += row.plan.fill.eq(box.fill)
