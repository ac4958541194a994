"""Properties of the way of a read beat: none is lost, doubled or moved to another box.

A beat passes the landing FIFO, or with several IDs the reorder buffer, then the realigner, then an
elastic buffer (block ``stream``). Each unit is proved alone, with any environment that keeps the
rules of its ports; the last vector of a box, which leaves the elastic buffer, has the response.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from gen.properties.support import always, given, offers_stay
from hw.arch import limits
from hw.arch.descriptor import TmaFeature
from hw.lib.fifo import Queue
from hw.tma.layouts import TmaLayouts
from hw.tma.realign import BeatsToVectors
from hw.tma.reorder_buffer import ReorderBuffer
from hw.tma.row_packing import RowPacker

__all__ = ["BeatsKeepOrder", "BoxesHaveTheirBeats", "BurstsKeepOrder"]


class _Followed:
    """One beat of a sequence, any of them: what it is, and how many are before it.

    Parameters
    ----------
    m : Module
    most : int
        Most beats on their way.
    bits : int
        Bits of a beat.
    """

    def __init__(self, m: Module, *, most: int, bits: int) -> None:
        self.follows = Signal()
        self.ahead = Signal(range(most + 1))
        self.beat = Signal(bits)
        #: It leaves in this cycle.
        self.leaves = Signal()

    def move(self, m: Module, *, leaves: Value) -> None:
        """Count the beats that leave."""
        m.d.comb += self.leaves.eq(self.follows & leaves & (self.ahead == 0))
        with m.If(self.follows & leaves):
            m.d.sync += [self.ahead.eq(self.ahead - 1), self.follows.eq(self.ahead != 0)]


class BeatsKeepOrder(wiring.Component):
    """Order of the landing FIFO: what comes leaves once, unchanged, in the order of coming.

    The harness chooses any payload that comes, and counts those that leave before it.
    """

    given: stream.Interface
    free: Signal
    reached: Signal

    def __init__(self, *, depth: int, bits: int) -> None:
        self._depth = depth
        self._dut = Queue(bits, depth=depth)
        super().__init__({"given": In(stream.Signature(bits)), "free": In(2), "reached": Out(2)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self._dut
        leaves, chooses = self.free
        wiring.connect(m, wiring.flipped(self.given), dut.i_stream)
        out = dut.o_stream
        enters, left = Signal(), Signal()
        inside = Signal(range(self._depth + 2))
        m.d.comb += [
            out.ready.eq(leaves),
            enters.eq(self.given.valid & self.given.ready),
            left.eq(out.valid & out.ready),
        ]
        m.d.sync += inside.eq(inside + enters - left)
        followed = _Followed(m, most=self._depth + 1, bits=len(self.given.payload))
        followed.move(m, leaves=left)
        with m.If(~followed.follows & enters & chooses):
            m.d.sync += [
                followed.follows.eq(1),
                followed.beat.eq(self.given.payload),
                followed.ahead.eq(inside - left),
            ]
        held = Signal()
        shown = Signal.like(out.payload)
        m.d.sync += [held.eq(out.valid & ~out.ready), shown.eq(out.payload)]
        m.d.comb += [
            always(~out.valid | (inside != 0)),
            always(~followed.leaves | (out.payload == followed.beat)),
            always(~held | (out.valid & (out.payload == shown))),
            always(self.given.ready | (inside >= self._depth)),
            self.reached.eq(Cat(inside == self._depth + 1, followed.leaves & (inside == 1))),
        ]
        return m


class BoxesHaveTheirBeats(wiring.Component):
    """Realigner of loads: a box takes its own beats, and its last vector has their responses.

    Plans and beats are free. Of each row as many beats are taken as it has in memory, before the
    next row begins; the response of a box's last vector is that of all beats of the box together.
    With ``packed``, rows end within a vector, and the packer is behind the realigner.
    """

    plans: stream.Interface
    beats: stream.Interface
    free: Signal
    reached: Signal

    def __init__(self, *, width_bits: int, vectors: int, packed: bool) -> None:
        features = (TmaFeature.PARALLEL_BOXES, *[TmaFeature.PACKED_ROWS] * packed)
        self._layouts = TmaLayouts(width_bits, 12, streams=1, features=features)
        self._vectors = vectors
        self._dut = BeatsToVectors(self._layouts)
        super().__init__(
            {
                "plans": In(stream.Signature(self._layouts.plan)),
                "beats": In(stream.Signature(self._layouts.beat)),
                "free": In(1),
                "reached": Out(3),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layouts = self._layouts
        m.submodules.dut = dut = self._dut
        wiring.connect(m, wiring.flipped(self.plans), dut.i_plans)
        wiring.connect(m, wiring.flipped(self.beats), dut.i_beats)
        rows: Any = dut.o_stream
        out = rows
        if layouts.packs:
            m.submodules.packer = packer = RowPacker(layouts)
            wiring.connect(m, rows, packer.i_stream)
            out = packer.o_stream
        plan: Any = self.plans.payload
        beat: Any = self.beats.payload
        vector: Any = out.payload
        offers_stay(m, self.plans.valid, self.plans.ready, plan.as_value())
        row_ends, takes, leaves, ends = Signal(), Signal(), Signal(), Signal()
        skewed = plan.offset != 0
        if layouts.packs:
            end = plan.offset + (plan.units << layouts.unit_shift)
            short = (plan.vectors == 1) & (plan.units != 0) & (end <= layouts.beat_bytes)
            skewed &= ~short
        m.d.comb += [
            given((plan.vectors != 0) & (plan.vectors <= self._vectors)),
            given((plan.first <= plan.end) & (plan.end <= plan.vectors + skewed)),
            out.ready.eq(self.free),
            row_ends.eq(self.plans.valid & self.plans.ready),
            takes.eq(self.beats.valid & self.beats.ready),
            leaves.eq(rows.valid & rows.ready),
            ends.eq(out.valid & out.ready & vector.last),
        ]
        taken, vectors = Signal(range(self._vectors + 2)), Signal(range(self._vectors + 2))
        failed = Signal(2)
        now = Signal(2)
        m.d.comb += now.eq(failed | Mux(takes, beat.response, 0))
        m.d.sync += [
            taken.eq(Mux(row_ends, 0, taken + takes)),
            vectors.eq(Mux(row_ends, 0, vectors + leaves)),
            failed.eq(Mux(row_ends & plan.last, 0, now)),
        ]
        m.d.comb += [
            always(~row_ends | (taken + takes == plan.end - plan.first)),
            always(~row_ends | (vectors + leaves == plan.vectors)),
            always((row_ends & plan.last) == ends),
            always(~ends | (vector.response == now)),
            always(~takes | self.plans.valid),
            self.reached.eq(
                Cat(
                    ends & (now == 3),
                    ends & (now == 0) & (plan.first == plan.end),
                    row_ends & ~plan.last & (failed == 1) & skewed,
                )
            ),
        ]
        return m


class _Narrow(ReorderBuffer):
    """Reorder buffer with fewer entries than the hardware may have."""

    def __init__(self, *, depth: int, outstanding: int, read_ids: int) -> None:
        least = limits.LANDING_BEATS.low
        super().__init__(1, depth=least, outstanding=outstanding, read_ids=read_ids)
        self._depth = depth


class BurstsKeepOrder(wiring.Component):
    """Order of the reorder buffer: beats leave in that of their bursts, each once, unchanged.

    Memory answers the bursts of an ID in order, and those of different IDs in any order and
    interleaved. The harness chooses one beat of any burst, keeps what comes for it, and counts the
    beats that leave before it.
    """

    length: Signal
    beat: Signal
    free: Signal
    id: Signal
    place: Signal
    reached: Signal

    def __init__(self, *, depth: int, outstanding: int, read_ids: int, longest: int) -> None:
        self._depth = depth
        self._ids = range(read_ids)
        self._share = outstanding // read_ids
        self._longest = longest
        self._dut = _Narrow(depth=depth, outstanding=outstanding, read_ids=read_ids)
        super().__init__(
            {
                "length": In(range(longest)),
                "beat": In(1),
                "free": In(4),
                "id": In(range(read_ids)),
                "place": In(range(longest)),
                "reached": Out(3),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self._dut
        issues, arrives, leaves, chooses = self.free
        out = dut.o_stream
        issue, arrive, left = Signal(), Signal(), Signal()
        # Beats less one that the bursts of each ID still have, oldest first, and how many.
        entries = [
            [
                Signal(range(self._longest), name=f"left{each}_{place}")
                for place in range(self._share)
            ]
            for each in self._ids
        ]
        opened = [Signal(range(self._share + 1), name=f"open{each}") for each in self._ids]
        coming = Signal(range(self._longest))
        m.d.comb += [
            dut.i_length.eq(self.length),
            issue.eq(issues & dut.o_free),
            dut.i_issue.eq(issue),
            coming.eq(Array(each[0] for each in entries)[self.id]),
            arrive.eq(arrives & (Array(opened)[self.id] != 0)),
            dut.i_arrives.eq(arrive),
            dut.i_id.eq(self.id),
            dut.i_last.eq(coming == 0),
            dut.i_beat.eq(self.beat),
            out.ready.eq(leaves),
            left.eq(out.valid & out.ready),
        ]
        for each in self._ids:
            begins = issue & (dut.o_id == each)
            beat = arrive & (self.id == each)
            ends = beat & (coming == 0)
            after = Signal.like(opened[each], name=f"after{each}")
            m.d.comb += after.eq(opened[each] - ends)
            m.d.sync += opened[each].eq(after + begins)
            for number, entry in enumerate(entries[each]):
                with m.If(ends):
                    if number + 1 < self._share:
                        m.d.sync += entry.eq(entries[each][number + 1])
                if number == 0:
                    with m.Elif(beat):
                        m.d.sync += entry.eq(entry - 1)
                with m.If(begins & (after == number)):
                    m.d.sync += entry.eq(self.length)
        inside = Signal(range(self._depth + 2))
        m.d.sync += inside.eq(inside + Mux(issue, self.length + 1, 0) - left)
        self._follow(m, issue, arrive, left, chooses, inside, opened)
        return m

    def _follow(
        self,
        m: Module,
        issue: Value,
        arrive: Value,
        left: Value,
        chooses: Value,
        inside: Signal,
        opened: list[Signal],
    ) -> None:
        dut, out = self._dut, self._dut.o_stream
        followed = _Followed(m, most=self._depth + 1, bits=1)
        followed.move(m, leaves=left)
        owner = Signal(self._ids)
        # Bursts of its ID before its own, and beats of its own before it; whether it came.
        bursts, beats, came = Signal(range(self._share + 1)), Signal(range(self._longest)), Signal()
        mine = Signal()
        m.d.comb += mine.eq(followed.follows & ~came & arrive & (self.id == owner))
        with m.If(mine & (bursts != 0) & dut.i_last):
            m.d.sync += bursts.eq(bursts - 1)
        with m.If(mine & (bursts == 0)):
            m.d.sync += beats.eq(beats - 1)
            with m.If(beats == 0):
                m.d.sync += [came.eq(1), followed.beat.eq(self.beat)]
        ends = arrive & dut.i_last & (self.id == dut.o_id)
        with m.If(~followed.follows & issue & chooses & (self.place <= self.length)):
            m.d.sync += [
                followed.follows.eq(1),
                came.eq(0),
                owner.eq(dut.o_id),
                bursts.eq(Array(opened)[dut.o_id] - ends),
                beats.eq(self.place),
                followed.ahead.eq(inside - left + self.place),
            ]
        m.d.comb += [
            always(~out.valid | (inside != 0)),
            always(inside <= self._depth + 1),
            always(~followed.leaves | (came & (out.payload == followed.beat))),
            self.reached.eq(
                Cat(
                    followed.leaves & (inside > self._longest),
                    followed.follows & came & (followed.ahead > self._longest),
                    inside == self._depth + 1,
                )
            ),
        ]
