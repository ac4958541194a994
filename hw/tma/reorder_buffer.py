"""Reorder buffer: beats read under several IDs, in any order, back in the order of their bursts."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Shape, Signal, Value, unsigned
from amaranth.lib import memory, stream
from amaranth.lib.wiring import In, Out

from hw.arch import limits
from hw.arch.checks import Domain
from hw.emit.shared import shared
from hw.lib.axi import MAX_BURST_BEATS
from hw.lib.component import Component
from hw.lib.fifo import Queue

__all__ = ["ReorderBuffer"]


class ReorderBuffer(Component):
    """Reorder buffer: bursts take IDs in turn, and reserve entries for their beats when issued.

    Beats of different IDs may come in any order and interleaved, those of one ID in the order of
    its bursts. One beat per cycle comes and leaves; a beat leaves at least three cycles after it
    came.

    Parameters
    ----------
    payload_shape : ShapeLike
        Shape of a beat.
    depth : int
        Entries (`limits.LANDING_BEATS`).
    outstanding : int
        Most bursts whose last beat has not come; each ID may have an equal share of them, rounded
        up to a power of two.
    read_ids : int
        IDs, at least 2 (`limits.READ_IDS`).

    Members
    -------
    i_issue, i_length
        A burst of so many beats plus one is issued in this cycle; only while `o_free`.
    o_free
        There are entries for a burst of `i_length`, and its ID has not all of its share.
    o_id
        ID of the next burst.
    i_arrives, i_beat, i_id, i_last
        A beat comes in this cycle: its payload, its ID and whether it ends its burst. It is always
        taken.
    o_stream : stream of ``payload_shape``
        Beats in the order in which their bursts were issued.

    Raises
    ------
    BadInputError
        If a parameter lies outside its domain.
    """

    i_issue: Signal
    i_length: Signal
    o_free: Signal
    o_id: Signal
    i_arrives: Signal
    i_beat: Any
    i_id: Signal
    i_last: Signal
    o_stream: stream.Interface

    def __init__(self, payload_shape: Any, *, depth: int, outstanding: int, read_ids: int) -> None:
        limits.LANDING_BEATS.require("Landing beats", depth)
        limits.OUTSTANDING.require("Outstanding bursts", outstanding)
        Domain(2, limits.READ_IDS.high, power=True).require("Read IDs", read_ids)
        self._width = Shape.cast(payload_shape).width
        self._depth = depth
        self._ids = range(read_ids)
        # A power of two, so that the number of a burst of an ID wraps.
        self._share = 1 << (max(outstanding // read_ids, 1) - 1).bit_length()
        super().__init__(
            {
                "i_issue": In(1),
                "i_length": In(range(MAX_BURST_BEATS)),
                "o_free": Out(1),
                "o_id": Out(self._ids),
                "i_arrives": In(1),
                "i_beat": In(payload_shape),
                "i_id": In(self._ids),
                "i_last": In(1),
                "o_stream": Out(stream.Signature(payload_shape)),
            }
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """Width of a beat, whose fields the buffer does not use, and the sizes."""
        sizes = {"depth": self._depth, "read_ids": len(self._ids), "share": self._share}
        return {"payload_bits": self._width, **sizes}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cells: Any = memory.Memory(shape=unsigned(self._width), depth=self._depth, init=[])
        m.submodules.cells = cells
        # Beats of each ID in the cells. They come, and leave, in the order of the ID's bursts, so
        # the next beat to leave has come if any of its ID has.
        present = [Signal(range(self._depth + 1), name=f"present{each}") for each in self._ids]
        placed, owner = self._place(m, cells.write_port())
        leaves, turn = self._leave(m, cells.read_port(), Array(each != 0 for each in present))
        for number, count in enumerate(present):
            m.d.sync += count.eq(count + (placed & (owner == number)) - (leaves & (turn == number)))
        return m

    def _place(self, m: Module, writer: Any) -> tuple[Signal, Signal]:
        """Write a beat to its entry, one cycle after it came; whether one is written, and its ID.

        A burst's beats lie one after another from the first entry free when it was issued.
        """
        ids, share, places = self._ids, self._share, range(self._depth)
        first_entry = Shape.cast(places)
        starts: Any = memory.Memory(shape=first_entry, depth=len(ids) * share, init=[])
        m.submodules.starts = starts
        noted, found = starts.write_port(), starts.read_port()
        number = Signal(range(len(ids) * share))  # of the next burst; its low bits are the ID
        free = Signal(places)
        m.d.comb += [
            self.o_id.eq(number),
            noted.en.eq(self.i_issue),
            noted.addr.eq(number),
            noted.data.eq(free),
        ]
        with m.If(self.i_issue):
            m.d.sync += [number.eq(number + 1), free.eq(free + self.i_length + 1)]

        # By ID: number of the burst that comes, among those of the ID; its next beat is its first,
        # or else has this entry.
        coming = Array(Signal(range(share), name=f"coming{each}") for each in ids)
        begins = Array(Signal(name=f"begins{each}", init=1) for each in ids)
        following = Array(Signal(places, name=f"following{each}") for each in ids)
        placed, first = Signal(), Signal()
        owner, entry = Signal(ids), Signal(places)
        beat = Signal(self._width, reset_less=True)
        arrives, ends = self.i_arrives, self.i_arrives & self.i_last
        m.d.comb += [
            found.addr.eq(Cat(self.i_id, coming[self.i_id])),
            entry.eq(Mux(first, found.data, following[owner])),
            writer.en.eq(placed),
            writer.addr.eq(entry),
            writer.data.eq(beat),
        ]
        m.d.sync += [
            placed.eq(arrives),
            first.eq(begins[self.i_id]),
            owner.eq(self.i_id),
            beat.eq(self.i_beat),
        ]
        with m.If(arrives):
            m.d.sync += begins[self.i_id].eq(self.i_last)
        with m.If(ends):
            m.d.sync += coming[self.i_id].eq(coming[self.i_id] + 1)
        with m.If(placed):
            m.d.sync += following[owner].eq(entry + 1)
        return placed, owner

    def _leave(self, m: Module, reader: Any, present: Any) -> tuple[Signal, Signal]:
        """Read the beats of each burst in turn; whether one leaves the cells, and its ID."""
        bursts = len(self._ids) * self._share
        lengths = Queue(len(self.i_length), depth=min(self._depth, 2 * bursts))
        m.submodules.lengths = shared(lengths)
        room = Signal(range(self._depth + 1), init=self._depth)
        oldest = Signal(range(self._depth))
        turn = Signal(self._ids)
        left = Signal(len(self.i_length))  # beats of the burst that have left
        shown, leaves, ends = Signal(), Signal(), Signal()
        m.d.comb += [
            self.o_free.eq((room > self.i_length) & lengths.i_stream.ready & self._shares(m)),
            lengths.i_stream.valid.eq(self.i_issue),
            lengths.i_stream.payload.eq(self.i_length),
            lengths.o_stream.ready.eq(ends),
            reader.en.eq(~shown | self.o_stream.ready),
            reader.addr.eq(oldest),
            leaves.eq(reader.en & lengths.o_stream.valid & present[turn]),
            ends.eq(leaves & (left == lengths.o_stream.payload)),
            self.o_stream.valid.eq(shown),
            Value.cast(self.o_stream.payload).eq(reader.data),
        ]
        m.d.sync += room.eq(room + leaves - Mux(self.i_issue, self.i_length + 1, 0))
        with m.If(reader.en):
            m.d.sync += shown.eq(leaves)
        with m.If(leaves):
            m.d.sync += [oldest.eq(oldest + 1), left.eq(Mux(ends, 0, left + 1))]
        with m.If(ends):
            m.d.sync += turn.eq(turn + 1)
        return leaves, turn

    def _shares(self, m: Module) -> Value:
        """Whether the ID of the next burst has not all of its share outstanding."""
        share = self._share
        opened = [Signal(range(share + 1), name=f"opened{each}") for each in self._ids]
        for number, count in enumerate(opened):
            begins = self.i_issue & (self.o_id == number)
            ends = self.i_arrives & self.i_last & (self.i_id == number)
            m.d.sync += count.eq(count + begins - ends)
        free: Value = Array(count != share for count in opened)[self.o_id]
        return free
