"""Address generation for a box: its rows, then each row's AXI bursts."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.descriptor import MAX_BOX, MAX_RANK
from hw.arch.errors import BadInputError, shown
from hw.lib.axi import BOUNDARY_BYTES, MAX_BURST_BEATS
from hw.lib.component import Component
from hw.lib.stream import ElasticBuffer
from hw.tma.commands import MAX_ROW_BYTES, box_layout

__all__ = [
    "BoxWalker",
    "RowSplitter",
    "burst_layout",
    "largest_burst",
    "plan_layout",
    "row_layout",
]


def largest_burst(width_bits: int) -> int:
    """Beats of the longest aligned burst that AXI allows: 256, or 4 KiB."""
    return min(MAX_BURST_BEATS, BOUNDARY_BYTES // (width_bits // 8))


def _plan_members(width_bits: int, streams: int) -> dict[str, Any]:
    beat_bytes = width_bits // 8
    vectors = MAX_ROW_BYTES // beat_bytes
    return {
        "stream": range(streams),
        "vectors": range(vectors + 1),
        "offset": range(beat_bytes),
        "first": range(vectors + 1),
        "end": range(vectors + 2),
        "head": range(beat_bytes),
        "tail": range(beat_bytes),
        "last": 1,
    }


def plan_layout(width_bits: int, streams: int) -> data.StructLayout:
    """Layout of a row plan: the geometry of a row for realignment.

    The row starts at byte ``offset`` of its beat 0. Beats ``first`` to ``end`` - 1 are in memory
    (none if they are equal), from byte ``head`` of the first to the byte before ``tail`` of the
    last (0 means the whole beat). ``last`` ends the box.
    """
    return data.StructLayout(_plan_members(width_bits, streams))


def row_layout(width_bits: int, address_bits: int, streams: int) -> data.StructLayout:
    """Layout of a row: its plan, the address of its first beat in memory, and its beats there."""
    beat_bytes = width_bits // 8
    return data.StructLayout(
        {
            "plan": plan_layout(width_bits, streams),
            "address": address_bits - (beat_bytes - 1).bit_length(),
            "beats": range(MAX_ROW_BYTES // beat_bytes + 2),
        }
    )


def burst_layout(width_bits: int, address_bits: int) -> data.StructLayout:
    """Layout of a burst: address in beats, and its beats minus one, as AXI encodes them."""
    beat_bytes = width_bits // 8
    return data.StructLayout({"address": address_bits - (beat_bytes - 1).bit_length(), "length": 8})


class BoxWalker(Component):
    """Row iterator of a box, dimension 1 fastest: one row per cycle, boxes back to back.

    Parameters
    ----------
    width_bits, address_bits, streams : int
        As :class:`hw.tma.commands.BoxReader`.

    Members
    -------
    i_stream : stream of :func:`hw.tma.commands.box_layout`
    o_stream : stream of :func:`row_layout`
        Rows; a register output.
    """

    i_stream: stream.Interface
    o_stream: stream.Interface

    def __init__(self, *, width_bits: int, address_bits: int, streams: int) -> None:
        self._width_bits = width_bits
        self._address_bits = address_bits
        self._streams = streams
        super().__init__(
            {
                "i_stream": In(stream.Signature(box_layout(width_bits, address_bits, streams))),
                "o_stream": Out(stream.Signature(row_layout(width_bits, address_bits, streams))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        outer = MAX_RANK - 1
        beat_bytes = self._width_bits // 8
        beat_shift = (beat_bytes - 1).bit_length()
        source: Any = self.i_stream.payload
        box: Any = Signal(box_layout(self._width_bits, self._address_bits, self._streams))
        active = Signal()
        step = Signal()
        layout = row_layout(self._width_bits, self._address_bits, self._streams)
        # Without this buffer `ready` would chain combinationally through splitter and walker adder.
        m.submodules.output = output = ElasticBuffer(layout)
        wiring.connect(m, output.o_stream, wiring.flipped(self.o_stream))
        # Address at which the current iteration of each loop began; level 0 is the row itself.
        levels = [Signal(self._address_bits, name=f"level{index}") for index in range(outer)]
        index = [Signal(range(MAX_BOX), name=f"index{number}") for number in range(outer)]
        ends = [index[number] == box.extents[number] for number in range(outer)]

        last = Signal()
        inside = Signal()
        m.d.comb += [
            last.eq(ends[0] & ends[1] & ends[2] & ends[3]),
            inside.eq(box.head < box.tail),
            output.i_stream.valid.eq(active),
            step.eq(active & output.i_stream.ready),
            self.i_stream.ready.eq(~active | (step & last)),
        ]
        for number in range(outer):
            with m.If((index[number] < box.low[number]) | (index[number] >= box.high[number])):
                m.d.comb += inside.eq(0)

        # The innermost loop that is not at its end advances; the loops inside it restart there.
        base = Signal(self._address_bits)
        stride = Signal(36)
        following = Signal(self._address_bits)
        m.d.comb += following.eq(base + (stride << 4))
        with m.If(step):
            for number in range(outer):
                moves = ~ends[number]
                with m.If(moves) if number == 0 else m.Elif(moves):
                    m.d.comb += [base.eq(levels[number]), stride.eq(box.strides[number])]
                    m.d.sync += index[number].eq(index[number] + 1)
                    m.d.sync += [index[inner].eq(0) for inner in range(number)]
                    m.d.sync += [levels[inner].eq(following) for inner in range(number + 1)]
        with m.If(self.i_stream.ready):
            m.d.sync += [active.eq(self.i_stream.valid), box.eq(source)]
            m.d.sync += [level.eq(source.address) for level in levels]
            m.d.sync += [position.eq(0) for position in index]

        row: Any = output.i_stream.payload
        head = Signal(beat_shift)
        offset = Signal(beat_shift)
        span = Signal(range(MAX_ROW_BYTES + beat_bytes))
        first = (offset + box.head) >> beat_shift
        beats = (span + (beat_bytes - 1)) >> beat_shift
        m.d.comb += [
            head.eq(levels[0]),
            offset.eq(levels[0][:beat_shift] - box.head[:beat_shift]),
            span.eq(head + box.tail - box.head),
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
            row.plan.last.eq(last),
            row.address.eq(levels[0] >> beat_shift),
            row.beats.eq(Mux(inside, beats, 0)),
        ]
        return m


class RowSplitter(Component):
    """Burst splitter: rows into bursts that cross no multiple of ``burst_beats``, one per cycle.

    A row's plan leaves with its first burst, or alone if the row has none.

    Parameters
    ----------
    width_bits, address_bits, streams : int
        As :class:`hw.tma.commands.BoxReader`.
    burst_beats : int
        Beats of the longest burst (a power of two), at most :func:`largest_burst`.

    Members
    -------
    i_stream : stream of :func:`row_layout`
    o_plans : stream of :func:`plan_layout`
    o_bursts : stream of :func:`burst_layout`
        Both must feed buffers, whose ready ignores valid: each is valid only while the other
        is ready.

    Attributes
    ----------
    started, later_address, later_beats : Signal
        The row's first burst has left; the rest of the row, for proofs.

    Raises
    ------
    BadInputError
        If ``burst_beats`` lies outside its domain.
    """

    i_stream: stream.Interface
    o_plans: stream.Interface
    o_bursts: stream.Interface

    def __init__(
        self, *, width_bits: int, address_bits: int, streams: int, burst_beats: int
    ) -> None:
        most = largest_burst(width_bits)
        if burst_beats not in [1 << power for power in range(most.bit_length())]:
            raise BadInputError(
                f"Beats of a burst must be a power of two of at most {most}, "
                f"not {shown(burst_beats)}"
            )
        self._width_bits = width_bits
        self._address_bits = address_bits
        self._streams = streams
        self._burst_beats = burst_beats
        layout = row_layout(width_bits, address_bits, streams)
        self.started = Signal()
        self.later_address = Signal(layout["address"].shape)
        self.later_beats = Signal(layout["beats"].shape)
        super().__init__(
            {
                "i_stream": In(stream.Signature(layout)),
                "o_plans": Out(stream.Signature(plan_layout(width_bits, streams))),
                "o_bursts": Out(stream.Signature(burst_layout(width_bits, address_bits))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        row: Any = self.i_stream.payload
        plans, bursts = self.o_plans, self.o_bursts
        burst: Any = bursts.payload
        started, later_address, later_beats = self.started, self.later_address, self.later_beats
        address = Signal.like(row.address)
        beats = Signal.like(row.beats)
        within = (self._burst_beats - 1).bit_length()
        # Beats to the next boundary.
        room = Signal(range(self._burst_beats + 1))
        ends = Signal()
        some = Signal()
        m.d.comb += [
            address.eq(Mux(started, later_address, row.address)),
            beats.eq(Mux(started, later_beats, row.beats)),
            room.eq(Const(self._burst_beats) - address[:within]),
            ends.eq(beats <= room),
            some.eq(beats != 0),
            burst.address.eq(address),
            burst.length.eq(Mux(ends, beats, room) - 1),
            plans.payload.eq(row.plan),
            bursts.valid.eq(self.i_stream.valid & some & (started | plans.ready)),
            plans.valid.eq(self.i_stream.valid & ~started & (~some | bursts.ready)),
            self.i_stream.ready.eq((started | plans.ready) & (~some | (ends & bursts.ready))),
        ]
        with m.If(bursts.valid & bursts.ready):
            m.d.sync += [
                started.eq(~ends),
                later_address.eq(address + room),
                later_beats.eq(beats - room),
            ]
        return m
