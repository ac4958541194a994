"""Burst reducer: reducing bursts of a store engine as read, combine and write."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, enum, stream
from amaranth.lib.wiring import In, Out

from hw.arch.boxes.reductions import FLOAT_FORMATS
from hw.emit.shared import shared
from hw.lib.axi import (
    RESP_DECERR,
    RESP_OKAY,
    RESP_SLVERR,
    Axi4ReadInterface,
    Axi4ReadSignature,
    Axi4WriteInterface,
    Axi4WriteSignature,
    failed_bits,
    read_constants,
    write_constants,
)
from hw.lib.bursts import longest_burst
from hw.lib.component import Component
from hw.lib.fifo import Queue
from hw.tma.reduction.beat_combiner import BeatCombiner
from hw.tma.reduction.float_adder import FloatAdder
from hw.tma.reduction.reduction_fields import reduction_layout
from hw.tma.reduction.reduction_interlock import PAGE_SHIFT, interlock_signature

__all__ = ["BurstReducer"]

#: Bursts collected ahead of the one at work.
_AHEAD = 2


class _State(enum.Enum, shape=3):
    IDLE = 0
    #: Waits for the page.
    ASKING = 1
    #: The address of the read is on the port.
    READING = 2
    #: Beats are read and combined.
    COMBINING = 3
    #: Beats are written, until the response.
    WRITING = 4
    #: Takes the beats of a burst that an abort has ended.
    DROPPING = 5
    #: Answers that burst.
    ANSWERING = 6


class BurstReducer(Component):
    """Burst reducer: combines each reducing burst with memory; other bursts pass, in order.

    A reducing burst is collected. It begins when every burst before it is answered and its page is
    granted. It is read whole and combined, then written; the page is held until the response, and
    bursts behind it wait until then. A beat that could not be read is not written. A burst of n
    beats takes 2 n cycles and the latencies of a read, a write and the interlock; floats are added
    32 bits per cycle.

    Parameters
    ----------
    data_bits, address_bits : int
        Those of the ports.
    outstanding : int
        Most bursts of the engine without a response.

    Members
    -------
    i_stores : write half of an AXI4 port, seen from memory
    i_reduction : ``reduction_layout``
        Of the burst whose address `i_stores` has.
    o_failed_read
        The response that `i_stores` gets is that of the read.
    reads, writes : halves of an AXI4 manager port
    interlock : :func:`hw.tma.reduction.reduction_interlock.interlock_signature`
        Grants without a condition if the unit is the only one.
    i_drain
        Begin no reducing burst: it ends without an access.
    """

    i_stores: Axi4WriteInterface
    i_reduction: Any
    o_failed_read: Signal
    reads: Axi4ReadInterface
    writes: Axi4WriteInterface
    interlock: Any
    i_drain: Signal

    def __init__(self, *, data_bits: int, address_bits: int, outstanding: int) -> None:
        port = {"data_bits": data_bits, "address_bits": address_bits}
        self._data_bits = data_bits
        self._outstanding = outstanding
        self._failures = Signal(2)  # of the read of the burst at work: SLVERR, DECERR
        self._burst = data.StructLayout(
            {"address": address_bits, "length": 8, "reduction": reduction_layout}
        )
        self._beat = data.StructLayout({"data": data_bits, "strobe": data_bits // 8, "last": 1})
        super().__init__(
            {
                "i_stores": In(Axi4WriteSignature(**port)),
                "i_reduction": In(reduction_layout),
                "o_failed_read": Out(1),
                "reads": Out(Axi4ReadSignature(**port)),
                "writes": Out(Axi4WriteSignature(**port)),
                "interlock": Out(interlock_signature(address_bits)),
                "i_drain": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        state = Signal(_State)
        waiting = Queue(self._burst, depth=_AHEAD)
        beats = Queue(self._beat, depth=longest_burst(self._data_bits))
        m.submodules.waiting = shared(waiting)
        m.submodules.beats = shared(beats)
        stores, writes = self.i_stores, self.writes
        answered = stores.bvalid & stores.bready
        ended = Signal()  # a reducing burst
        m.d.comb += ended.eq(answered & (state != _State.IDLE))

        # Whole bursts of beats collected; the beats of another one are still to come.
        whole, collecting = Signal(range(_AHEAD + 2)), Signal()
        # Of plain bursts: addresses less last beats that have passed, and those not answered.
        ahead, unanswered = Signal(signed(10)), Signal(range(self._outstanding + 1))
        passes, enters, streams = Signal(), Signal(), Signal()
        opens = stores.awvalid & ~self.i_reduction.request.combines
        m.d.comb += [
            passes.eq(opens & (state == _State.IDLE) & (whole == 0) & ~collecting),
            enters.eq(stores.awvalid & ~opens & ~collecting & (ahead == 0)),
            # A beat is not before its address, whose kind decides about it.
            streams.eq((ahead > 0) | ((ahead == 0) & passes)),
        ]
        given: Any = waiting.i_stream.payload
        beat: Any = beats.i_stream.payload
        m.d.comb += [
            waiting.i_stream.valid.eq(enters),
            given.address.eq(stores.awaddr),
            given.length.eq(stores.awlen),
            given.reduction.eq(self.i_reduction),
            beats.i_stream.valid.eq(stores.wvalid & collecting),
            beat.data.eq(stores.wdata),
            beat.strobe.eq(stores.wstrb),
            beat.last.eq(stores.wlast),
            waiting.o_stream.ready.eq(ended),
            stores.awready.eq(Mux(passes, writes.awready, enters & waiting.i_stream.ready)),
            stores.wready.eq(Mux(collecting, beats.i_stream.ready, streams & writes.wready)),
        ]
        passed = passes & writes.awready
        streamed = streams & stores.wvalid & writes.wready & stores.wlast
        collected = beats.i_stream.valid & beats.i_stream.ready & stores.wlast
        m.d.sync += [
            ahead.eq(ahead + passed - streamed),
            unanswered.eq(unanswered + passed - (answered & ~ended)),
            whole.eq(whole + collected - ended),
            collecting.eq((collecting & ~collected) | (enters & waiting.i_stream.ready)),
        ]
        begins = (whole != 0) & waiting.o_stream.valid & (unanswered == 0)
        read = self._read(m, state, waiting.o_stream.payload, beats.o_stream)
        self._execute(m, state, begins, beats.o_stream)
        self._write(m, state, passes, streams, waiting.o_stream.payload, read)
        return m

    def _execute(self, m: Module, state: Signal, begins: Value, beats: stream.Interface) -> None:
        """States of the burst at work."""
        reads, drains = self.reads, self.i_drain
        beat: Any = beats.payload
        with m.Switch(state):
            with m.Case(_State.IDLE):
                with m.If(begins):
                    m.d.sync += state.eq(Mux(drains, _State.DROPPING, _State.ASKING))
            with m.Case(_State.ASKING):
                with m.If(drains):
                    m.d.sync += state.eq(_State.DROPPING)
                with m.Elif(self.interlock.granted):
                    m.d.sync += state.eq(_State.READING)
            with m.Case(_State.READING):
                with m.If(reads.arready):
                    m.d.sync += state.eq(_State.COMBINING)
            with m.Case(_State.COMBINING):
                with m.If(reads.rvalid & reads.rready & reads.rlast):
                    m.d.sync += state.eq(_State.WRITING)
            with m.Case(_State.WRITING):
                with m.If(self.writes.bvalid & self.writes.bready):
                    m.d.sync += state.eq(_State.IDLE)
            with m.Case(_State.DROPPING):
                with m.If(beats.valid & beat.last):
                    m.d.sync += state.eq(_State.ANSWERING)
            with m.Case(_State.ANSWERING):
                with m.If(self.i_stores.bready):
                    m.d.sync += state.eq(_State.IDLE)

    def _read(
        self, m: Module, state: Signal, burst: Any, beats: stream.Interface
    ) -> stream.Interface:
        """Combined beats of the burst, and what was wrong with its read."""
        reads = self.reads
        combiner = BeatCombiner(width_bits=self._data_bits)
        combined = Queue(self._beat, depth=longest_burst(self._data_bits))
        adder = FloatAdder(width_bits=self._data_bits)
        m.submodules.combiner = shared(combiner)
        m.submodules.adder = shared(adder)
        floats = Signal()
        m.submodules.combined = shared(combined)
        beat: Any = beats.payload
        result: Any = combined.i_stream.payload
        combines = Signal()
        moves = Signal()
        m.d.comb += read_constants(reads)
        m.d.comb += [
            reads.arvalid.eq(state == _State.READING),
            reads.araddr.eq(burst.address),
            reads.arlen.eq(burst.length),
            self.interlock.page.eq(burst.address[PAGE_SHIFT:]),
            combiner.i_reduction.eq(burst.reduction),
            combiner.i_memory.eq(reads.rdata),
            combiner.i_stored.eq(beat.data),
            floats.eq(burst.reduction.format.matches(*(each.value for each in FLOAT_FORMATS))),
            adder.i_format.eq(burst.reduction.format),
            adder.i_memory.eq(reads.rdata),
            adder.i_stored.eq(beat.data),
            adder.i_valid.eq((state == _State.COMBINING) & floats & beats.valid & reads.rvalid),
            adder.i_take.eq(moves),
            combines.eq(
                (state == _State.COMBINING)
                & beats.valid
                & combined.i_stream.ready
                & (adder.o_done | ~floats)
            ),
            reads.rready.eq(combines),
            moves.eq(combines & reads.rvalid),
            beats.ready.eq(moves | (state == _State.DROPPING)),
            combined.i_stream.valid.eq(moves),
            result.data.eq(Mux(floats, adder.o_sums, combiner.o_combined)),
            result.strobe.eq(Mux(reads.rresp[1], 0, beat.strobe)),
            result.last.eq(beat.last),
        ]
        with m.Switch(state):
            with m.Case(_State.ASKING, _State.READING, _State.COMBINING, _State.WRITING):
                m.d.comb += self.interlock.asks.eq(1)
        with m.If(state == _State.IDLE):
            m.d.sync += self._failures.eq(0)
        with m.Elif(moves):
            m.d.sync += self._failures.eq(self._failures | failed_bits(reads.rresp))
        return combined.o_stream

    def _write(
        self,
        m: Module,
        state: Signal,
        passes: Signal,
        streams: Signal,
        burst: Any,
        combined: stream.Interface,
    ) -> None:
        """The write port: what passes of plain bursts, or the combined one; all responses."""
        stores, writes = self.i_stores, self.writes
        failures = self._failures
        result: Any = combined.payload
        writing, addressed = state == _State.WRITING, Signal()
        with m.If(~writing):
            m.d.sync += addressed.eq(0)
        with m.Elif(writes.awready):
            m.d.sync += addressed.eq(1)
        m.d.comb += write_constants(writes)
        m.d.comb += [
            writes.awvalid.eq(passes | (writing & ~addressed)),
            writes.awaddr.eq(Mux(writing, burst.address, stores.awaddr)),
            writes.awlen.eq(Mux(writing, burst.length, stores.awlen)),
            writes.wvalid.eq(Mux(writing, combined.valid, stores.wvalid & streams)),
            writes.wdata.eq(Mux(writing, result.data, stores.wdata)),
            writes.wstrb.eq(Mux(writing, result.strobe, stores.wstrb)),
            writes.wlast.eq(Mux(writing, result.last, stores.wlast)),
            combined.ready.eq(writing & writes.wready),
            stores.bvalid.eq(writes.bvalid | (state == _State.ANSWERING)),
            stores.bresp.eq(Mux(state == _State.ANSWERING, RESP_OKAY, writes.bresp)),
            writes.bready.eq(stores.bready),
            self.o_failed_read.eq(failures.any()),
        ]
        with m.If(failures.any()):
            m.d.comb += stores.bresp.eq(Mux(failures[1], RESP_DECERR, RESP_SLVERR))
