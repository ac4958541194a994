"""Load engine: boxes from memory to vector streams."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import Out

from hw.arch.descriptor import TmaFeature
from hw.arch.error_codes import TmaError
from hw.emit.shared import shared
from hw.lib.axi import Axi4ReadInterface, Axi4ReadSignature, failed_bits
from hw.lib.bursts import issue_reads
from hw.lib.fifo import Queue
from hw.lib.stream import ElasticBuffer, vector_signature
from hw.tma.box_engine import BoxEngine
from hw.tma.burst_joiner import BurstJoiner
from hw.tma.layouts import TmaLayouts
from hw.tma.realign import BeatsToVectors
from hw.tma.reorder_buffer import ReorderBuffer
from hw.tma.row_packing import RowPacker

__all__ = ["LoadEngine", "id_bits_of"]


def id_bits_of(read_ids: int) -> int:
    """Width of so many IDs on AXI, at least 1."""
    return max(1, read_ids.bit_length() - 1)


class LoadEngine(BoxEngine):
    """Load engine: executes load commands in order, with many outstanding bursts.

    One beat per cycle, and one vector per cycle for rows that start at a beat boundary. A burst is
    issued only when it can reserve landing-buffer entries for all its beats, so R never stalls.

    Parameters
    ----------
    layouts, outstanding, descriptors
        As :class:`hw.tma.box_engine.BoxEngine`; the streams are outputs.
    landing_beats : int
        Depth of the landing buffer in beats (a power of two of at least 16).
    read_ids : int
        IDs of the bursts. Beats of one ID come in the order of its bursts, those of several in any.

    Members
    -------
    o_streams : array of vector streams
        Boxes in order of commands, row by row, each row in whole vectors, or without gaps with
        `TmaFeature.PACKED_ROWS`; ``last`` ends a box.
        While the stream of the oldest box is stalled, all are (head-of-line blocking).
    o_loaded_response
        With the last vector of a box: bit 0 if a beat of it came with SLVERR, bit 1 if one came
        with DECERR; present with `TmaFeature.PARALLEL_BOXES`.
    axi : read half of an AXI4 manager port
    """

    o_streams: Sequence[stream.Interface]
    o_loaded_response: Signal
    axi: Axi4ReadInterface

    def __init__(
        self,
        layouts: TmaLayouts,
        *,
        landing_beats: int,
        outstanding: int,
        descriptors: int,
        read_ids: int = 1,
    ) -> None:
        self._landing_beats = landing_beats
        self._read_ids = read_ids
        width_bits = layouts.width_bits
        response = {}
        if TmaFeature.PARALLEL_BOXES in layouts.features:
            response = {"o_loaded_response": Out(2)}
        super().__init__(
            layouts,
            outstanding=outstanding,
            descriptors=descriptors,
            vectors={
                "o_streams": Out(vector_signature(width_bits)).array(layouts.streams),
                **response,
            },
            axi=Axi4ReadSignature(
                data_bits=width_bits,
                address_bits=layouts.address_bits,
                id_bits=id_bits_of(read_ids),
            ),
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layouts = self._layouts
        # A quarter of the buffer per burst: one in use, one arriving and two outstanding fit.
        burst_beats = min(layouts.burst_beats, self._landing_beats // 4)
        joins = TmaFeature.JOINED_BURSTS in layouts.features
        # A burst of joined rows has a plan per row, of one beat or more.
        depth = self._landing_beats if joins else self._outstanding + 2
        plans, ahead, refusal = self._boxes(m, burst_beats=burst_beats, plans=depth)
        gather = BeatsToVectors(layouts)
        m.submodules.gather = shared(gather)
        output = ElasticBuffer(layouts.vector)
        m.submodules.output = shared(output)
        vector: Any = output.o_stream.payload
        wiring.connect(m, plans, gather.i_plans)
        rows = gather.o_stream
        if layouts.packs:
            packer = RowPacker(layouts)
            m.submodules.packer = shared(packer)
            wiring.connect(m, rows, packer.i_stream)
            rows = packer.o_stream
        wiring.connect(m, rows, output.i_stream)

        axi = self.axi
        buffer = ElasticBuffer(layouts.burst)
        m.submodules.bursts = shared(buffer)
        wiring.connect(m, ahead, buffer.i_stream)
        burst: Any = buffer.o_stream.payload
        offered: Value = buffer.o_stream.valid
        taken = buffer.o_stream.ready
        if joins:
            joiner = BurstJoiner(
                layouts, burst_beats=burst_beats, outstanding=self._outstanding, by_box=False
            )
            m.submodules.joiner = shared(joiner)
            wiring.connect(m, buffer.o_stream, joiner.i_stream)
            burst, offered, taken = joiner.o_burst, joiner.o_valid, joiner.i_take
        landing = self._land if self._read_ids == 1 else self._reorder
        beats, in_flight = landing(m, burst, offered, taken)
        wiring.connect(m, beats, gather.i_beats)
        m.d.comb += self.o_idle.eq(in_flight == 0)
        if joins:
            m.d.comb += joiner.i_in_flight.eq(in_flight)
        failed = axi.rresp[1]
        if self._reports:
            m.d.comb += self.o_loaded_response.eq(vector.response)
        self._keep_error(
            m,
            refusal,
            axi.rvalid & axi.rready & failed,
            axi.rresp,
            slverr=TmaError.READ_SLVERR,
            decerr=TmaError.READ_DECERR,
        )

        for number in range(layouts.streams):
            target = self.o_streams[number]
            payload: Any = target.payload
            mine = vector.stream == number
            m.d.comb += [
                target.valid.eq(output.o_stream.valid & mine),
                payload.data.eq(vector.data),
                payload.last.eq(vector.last),
            ]
            with m.If(mine):
                m.d.comb += output.o_stream.ready.eq(target.ready)
        return m

    def _land(
        self, m: Module, burst: Any, offered: Value, taken: Value
    ) -> tuple[stream.Interface, Signal]:
        """Issue bursts of one ID; their beats, which come in order, and the bursts in flight."""
        landing = Queue(self._layouts.beat, depth=self._landing_beats)
        m.submodules.landing = shared(landing)
        room = Signal(range(self._landing_beats + 1), init=self._landing_beats)
        issue, in_flight = issue_reads(
            m,
            self.axi,
            offered=offered & (room > burst.length) & ~self.i_drain,
            address=burst.address,
            length=burst.length,
            most=self._outstanding,
        )
        used = Signal()
        m.d.comb += [
            taken.eq(issue),
            used.eq(landing.o_stream.valid & landing.o_stream.ready),
            landing.i_stream.valid.eq(self.axi.rvalid),
            self.axi.rready.eq(landing.i_stream.ready),
        ]
        m.d.sync += room.eq(room + used - Mux(issue, burst.length + 1, 0))
        self._receive(m, landing.i_stream.payload)
        return landing.o_stream, in_flight

    def _reorder(
        self, m: Module, burst: Any, offered: Value, taken: Value
    ) -> tuple[stream.Interface, Signal]:
        """As `_land`, of several IDs, whose beats come in any order."""
        landing = ReorderBuffer(
            self._layouts.beat,
            depth=self._landing_beats,
            outstanding=self._outstanding,
            read_ids=self._read_ids,
        )
        m.submodules.landing = shared(landing)
        issue, in_flight = issue_reads(
            m,
            self.axi,
            offered=offered & landing.o_free & ~self.i_drain,
            address=burst.address,
            length=burst.length,
            most=self._outstanding,
            id=landing.o_id,
        )
        axi = self.axi
        m.d.comb += [
            taken.eq(issue),
            landing.i_issue.eq(issue),
            landing.i_length.eq(burst.length),
            landing.i_arrives.eq(axi.rvalid),
            landing.i_id.eq(axi.rid),
            landing.i_last.eq(axi.rlast),
            axi.rready.eq(1),
        ]
        self._receive(m, landing.i_beat)
        return landing.o_stream, in_flight

    def _receive(self, m: Module, beat: Any) -> None:
        """Data of the beat on R, or zeros if it failed, and its response."""
        axi = self.axi
        m.d.comb += beat.data.eq(Mux(axi.rresp[1], 0, axi.rdata))
        if self._reports:
            m.d.comb += beat.response.eq(failed_bits(axi.rresp))
