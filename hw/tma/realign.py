"""Realignment between a box's vectors and memory beats: byte rotator and carry register."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hw.arch.descriptor import TmaFeature
from hw.lib.component import Component
from hw.tma.layouts import TmaLayouts

__all__ = ["BeatsToVectors", "VectorsToBeats"]


def _rotate_right(m: Module, value: Value, positions: Value, unit: int) -> Value:
    """Barrel rotator to the right by whole units, one stage per bit of ``positions``."""
    for number in range(len(positions)):
        # A signal each: an expression of all stages would grow threefold by stage.
        stage = Signal(len(value), name=f"rotated{number}")
        m.d.comb += stage.eq(value)
        value = Mux(positions[number], stage.rotate_right(unit << number), stage)
    return value


def _below(count: Value, width: int) -> Value:
    """Thermometer mask: positions below an unsigned count."""
    most = (1 << len(count)) - 1
    return Cat(position < count if position < most else Const(0, 1) for position in range(width))


def _spread(mask: Value) -> Value:
    """Bit mask of a byte mask."""
    return Cat(bit.replicate(8) for bit in mask)


def _select(mask: Value, chosen: Value, other: Value) -> Value:
    """Byte-wise multiplexer: the first value where the mask is set, the second elsewhere."""
    bits = _spread(mask)
    return (chosen & bits) | (other & ~bits)


class _Slots:
    """Counter of the beats that a row's vectors span: one slot per cycle."""

    def __init__(self, m: Module, layouts: TmaLayouts, plan: Any, step: Value) -> None:
        slot = Signal.like(plan.end)
        self.slot = slot
        beat_bytes = layouts.beat_bytes
        #: The row does not start at a beat boundary, so it spans one beat more than it has vectors.
        self.skewed = plan.offset != 0
        if layouts.packs:
            # One short vector may lie in one beat all the same.
            end = plan.offset + (plan.units << layouts.unit_shift)
            self.skewed &= ~((plan.vectors == 1) & (plan.units != 0) & (end <= beat_bytes))
        self.final = slot + 1 == plan.vectors + self.skewed
        #: The beat is in memory.
        self.present = (slot >= plan.first) & (slot < plan.end)
        first_bytes = Mux(slot == plan.first, plan.head, 0)
        ends = (slot + 1 == plan.end) & (plan.tail != 0)
        last_bytes = Mux(ends, plan.tail, beat_bytes)
        keep = ~_below(first_bytes, beat_bytes) & _below(last_bytes, beat_bytes)
        #: Bytes of the beat that lie in the tensor.
        self.keep = Signal(beat_bytes)
        m.d.comb += self.keep.eq(Mux(self.present, keep, 0))
        with m.If(step):
            m.d.sync += slot.eq(Mux(self.final, 0, slot + 1))


class BeatsToVectors(Component):
    """Realigner from beats to vectors, with the fill outside the tensor.

    One beat per cycle. A row takes as many cycles as it spans beats, present in memory or not: one
    per vector, plus one if it does not start at a beat boundary.

    Parameters
    ----------
    layouts : TmaLayouts

    Members
    -------
    i_plans : stream of :attr:`TmaLayouts.plan`
    i_beats : stream of :attr:`TmaLayouts.beat`
        Beats read from memory, in order.
    o_stream : stream of :attr:`TmaLayouts.row_vector`
        Vectors; not registered.
    """

    i_plans: stream.Interface
    i_beats: stream.Interface
    o_stream: stream.Interface

    def __init__(self, layouts: TmaLayouts) -> None:
        self._layouts = layouts
        super().__init__(
            {
                "i_plans": In(stream.Signature(layouts.plan)),
                "i_beats": In(stream.Signature(layouts.beat)),
                "o_stream": Out(stream.Signature(layouts.row_vector)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        beat_bytes = self._layouts.beat_bytes
        plan: Any = self.i_plans.payload
        vector: Any = self.o_stream.payload
        beat: Any = self.i_beats.payload
        step = Signal()
        slots = _Slots(m, self._layouts, plan, step)

        # The first beat of a skewed row only fills the carry register.
        emits = ~(slots.skewed & (slots.slot == 0))
        ready = Signal()
        supplied = Signal()
        m.d.comb += [
            ready.eq(~emits | self.o_stream.ready),
            supplied.eq(self.i_plans.valid & (~slots.present | self.i_beats.valid)),
            step.eq(supplied & ready),
            self.o_stream.valid.eq(supplied & emits),
            self.i_beats.ready.eq(self.i_plans.valid & slots.present & ready),
            self.i_plans.ready.eq(step & slots.final),
        ]

        carry = Signal(self._layouts.width_bits, reset_less=True)
        rotated = Signal(self._layouts.width_bits)
        fresh = Signal(beat_bytes)
        kept = beat.data & _spread(slots.keep)
        if TmaFeature.NAN_FILL in self._layouts.features:
            kept |= ~_spread(slots.keep) & self._fill(plan.fill)
        m.d.comb += [
            rotated.eq(_rotate_right(m, kept, plan.offset, 8)),
            # In a skewed row, the last `offset` bytes of a vector come with the newer beat.
            fresh.eq(_below(plan.offset, beat_bytes)[::-1] | ~slots.skewed.replicate(beat_bytes)),
            vector.data.eq(_select(fresh, rotated, carry)),
            vector.last.eq(plan.last & slots.final),
            vector.stream.eq(plan.stream),
        ]
        with m.If(step):
            m.d.sync += carry.eq(rotated)
        if self._layouts.packs:
            m.d.comb += vector.units.eq(Mux(slots.final, plan.units, 0))
        if TmaFeature.PARALLEL_BOXES in self._layouts.features:
            response = Signal(2)
            m.d.comb += vector.response.eq(response | Mux(slots.present, beat.response, 0))
            with m.If(step):
                m.d.sync += response.eq(Mux(vector.last, 0, vector.response))
        return m

    def _fill(self, shift: Value) -> Value:
        """Zeros, or the NaN of elements of 2 or 4 bytes; elements never cross a beat."""
        width = self._layouts.width_bits
        nans = [Cat(Const(-1, size - 1), Const(0, 1)).replicate(width // size) for size in (16, 32)]
        return Mux(shift == 1, nans[0], 0) | Mux(shift == 2, nans[1], 0)


class VectorsToBeats(Component):
    """Realigner from vectors to write beats with byte strobes; issues the bursts' addresses.

    One beat per cycle; a row takes the cycles stated in :class:`BeatsToVectors`. A burst's address
    leaves with its first beat, so memory never waits for data that have not arrived.

    Parameters
    ----------
    layouts : TmaLayouts

    Members
    -------
    i_plans : stream of :attr:`TmaLayouts.plan`
    i_bursts : stream of :attr:`TmaLayouts.burst`
    i_vectors, o_select
        Stream of vectors' data, and the number of the vector stream that it must come from.
    o_units, o_ends
        Units that the vector must have, 0 if all, and whether it is the last of its box; with
        `TmaFeature.PACKED_ROWS`.
    o_address : stream of :attr:`TmaLayouts.burst`
    o_write : stream of :attr:`TmaLayouts.write`
    o_record : stream of :attr:`TmaLayouts.record`
        The three must feed buffers, whose ready ignores valid: each is valid only while the
        others that it needs are ready.
    i_drain
        Open no burst; complete the open one with empty strobes.
    o_open
        A burst is open: more beats are to come.
    """

    i_plans: stream.Interface
    i_bursts: stream.Interface
    i_vectors: stream.Interface
    o_select: Signal
    o_units: Signal
    o_ends: Signal
    o_address: stream.Interface
    o_write: stream.Interface
    o_record: stream.Interface
    i_drain: Signal
    o_open: Signal

    def __init__(self, layouts: TmaLayouts) -> None:
        self._layouts = layouts
        super().__init__(
            {
                "i_plans": In(stream.Signature(layouts.plan)),
                "i_bursts": In(stream.Signature(layouts.burst)),
                "i_vectors": In(stream.Signature(layouts.width_bits)),
                "o_select": Out(range(layouts.streams)),
                **({"o_units": Out(layouts.unit_bits), "o_ends": Out(1)} if layouts.packs else {}),
                "o_address": Out(stream.Signature(layouts.burst)),
                "o_write": Out(stream.Signature(layouts.write)),
                "o_record": Out(stream.Signature(layouts.record)),
                "i_drain": In(1),
                "o_open": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        beat_bytes = self._layouts.beat_bytes
        plan: Any = self.i_plans.payload
        burst: Any = self.i_bursts.payload
        vector: Any = self.i_vectors.payload
        write: Any = self.o_write.payload
        record: Any = self.o_record.payload
        step = Signal()
        slots = _Slots(m, self._layouts, plan, step)
        takes = slots.slot < plan.vectors
        left = Signal(9)
        opened = left != 0
        opens = Signal()
        ends_box = plan.last & slots.final
        records = Signal()
        # All is there but the vector, if the slot takes one; then the vector as well.
        willing = Signal()
        supplied = Signal()
        m.d.comb += [
            self.o_open.eq(opened),
            self.o_select.eq(plan.stream),
            opens.eq(slots.present & ~opened),
            records.eq(opens | ends_box),
            willing.eq(self.i_plans.valid & (~opens | self.i_bursts.valid) & ~self.i_drain),
            supplied.eq(willing & (~takes | self.i_vectors.valid)),
        ]
        if self._layouts.packs:
            short = slots.slot + 1 == plan.vectors
            m.d.comb += [
                self.o_units.eq(Mux(short, plan.units, 0)),
                self.o_ends.eq(short & plan.last),
            ]
        # All parts of a slot transfer in one cycle or none does.
        address_free = ~opens | self.o_address.ready
        write_free = ~slots.present | self.o_write.ready
        record_free = ~records | self.o_record.ready
        ending = Signal()
        m.d.comb += [
            step.eq(supplied & address_free & write_free & record_free),
            ending.eq(self.i_drain & opened),
            self.i_vectors.ready.eq(willing & takes & address_free & write_free & record_free),
            self.i_plans.ready.eq(step & slots.final),
            self.i_bursts.ready.eq(step & opens),
            self.o_address.valid.eq(supplied & opens & write_free & record_free),
            self.o_address.payload.eq(burst),
            self.o_write.valid.eq((supplied & slots.present & address_free & record_free) | ending),
            self.o_record.valid.eq(supplied & records & address_free & write_free),
            record.responds.eq(opens),
            record.ends.eq(ends_box),
            record.stream.eq(plan.stream),
        ]
        with m.If(self.o_write.valid & self.o_write.ready):
            m.d.sync += left.eq(Mux(opened, left - 1, burst.length))

        carry = Signal(self._layouts.width_bits, reset_less=True)
        rotated = Signal(self._layouts.width_bits)
        older = Signal(beat_bytes)
        # A left rotation by the offset, as a right rotation by its complement.
        m.d.comb += [
            rotated.eq(_rotate_right(m, vector, (-plan.offset)[: len(plan.offset)], 8)),
            older.eq(_below(plan.offset, beat_bytes)),
            write.data.eq(_select(older, carry, rotated)),
            write.strobe.eq(Mux(self.i_drain, 0, slots.keep)),
            write.last.eq(Mux(opened, left == 1, burst.length == 0)),
        ]
        with m.If(step):
            m.d.sync += carry.eq(rotated)
        return m
