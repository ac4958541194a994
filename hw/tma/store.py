"""Store engine: vector streams to boxes in memory."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.descriptor import TmaFeature
from hw.arch.error_codes import TmaError
from hw.emit.shared import shared
from hw.lib.axi import Axi4WriteInterface, Axi4WriteSignature, failed_bits, write_constants
from hw.lib.fifo import Queue
from hw.lib.stream import ElasticBuffer, vector_layout, vector_signature
from hw.tma.box_engine import BoxEngine
from hw.tma.burst_joiner import BurstJoiner
from hw.tma.layouts import TmaLayouts
from hw.tma.realign import VectorsToBeats
from hw.tma.reduction.reduction_fields import reduction_layout
from hw.tma.row_packing import RowUnpacker

__all__ = ["StoreEngine"]

#: Depth of the FIFOs of rows and bursts computed ahead of the vectors.
_AHEAD = 4


class StoreEngine(BoxEngine):
    """Store engine: executes store commands in order, with many outstanding bursts.

    One beat per cycle on W, without a bubble between bursts. A burst's address leaves together with
    its first beat. Strobes of bytes outside the tensor are always low.

    Parameters
    ----------
    layouts, outstanding, descriptors
        As :class:`hw.tma.box_engine.BoxEngine`; the streams are inputs, and a burst is outstanding
        until its response.

    Members
    -------
    i_streams : array of vector streams
        Boxes in order of commands, row by row, each row in whole vectors, or without gaps with
        `TmaFeature.PACKED_ROWS`; flags are ignored. Only the stream of the oldest box moves.
    o_stored
        One bit per stream, high for one cycle per box. It comes when the box's last byte is
        visible in memory, or at once if none of its bytes lies in the tensor.
    o_stored_response
        With `o_stored`: bit 0 if a burst of the box was answered with SLVERR, bit 1 if one was
        with DECERR; present with `TmaFeature.PARALLEL_BOXES`.
    o_reduction, i_failed_read
        Reduction of the burst whose address is on the port, and whether the response there is that
        of the burst's read; with `TmaFeature.REDUCE`. Then `o_stored_response` has the bits of
        reads above those of writes.
    axi : write half of an AXI4 manager port
    i_drain
        Open no new burst; complete an open one with empty strobes.
    """

    i_streams: Sequence[stream.Interface]
    o_stored: Signal
    o_stored_response: Signal
    o_reduction: Any
    i_failed_read: Signal
    axi: Axi4WriteInterface

    def __init__(self, layouts: TmaLayouts, *, outstanding: int, descriptors: int) -> None:
        width_bits, streams = layouts.width_bits, layouts.streams
        self._reduces = TmaFeature.REDUCE in layouts.features
        response: dict[str, wiring.Member] = {}
        if TmaFeature.PARALLEL_BOXES in layouts.features:
            response = {"o_stored_response": Out(layouts.stored_bits)}
        if self._reduces:
            response |= {"o_reduction": Out(reduction_layout), "i_failed_read": In(1)}
        super().__init__(
            layouts,
            outstanding=outstanding,
            descriptors=descriptors,
            vectors={
                "i_streams": In(vector_signature(width_bits)).array(streams),
                "o_stored": Out(streams),
                **response,
            },
            axi=Axi4WriteSignature(data_bits=width_bits, address_bits=layouts.address_bits),
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layouts = self._layouts
        joins = TmaFeature.JOINED_BURSTS in layouts.features
        # Rows to be joined must all be known before the first of them leaves.
        depth = self._outstanding + 2 if joins else _AHEAD
        plans, ahead, refusal = self._boxes(m, burst_beats=layouts.burst_beats, plans=depth)
        bursts = Queue(layouts.burst, depth=_AHEAD)
        scatter = VectorsToBeats(layouts)
        # A box needs a record of its own at its end if its last burst opened earlier.
        records = Queue(layouts.record, depth=2 * self._outstanding)
        m.submodules.bursts = shared(bursts)
        m.submodules.scatter = shared(scatter)
        m.submodules.records = shared(records)
        addresses, beats = ElasticBuffer(layouts.burst), ElasticBuffer(layouts.write)
        m.submodules.addresses = shared(addresses)
        m.submodules.beats = shared(beats)
        unanswered = Signal(range(self._outstanding + 1))
        if joins:
            self._join(m, ahead, bursts.i_stream, unanswered)
        else:
            wiring.connect(m, ahead, bursts.i_stream)
        wiring.connect(m, plans, scatter.i_plans)
        wiring.connect(m, scatter.o_address, addresses.i_stream)
        wiring.connect(m, scatter.o_write, beats.i_stream)
        wiring.connect(m, scatter.o_record, records.i_stream)
        m.d.comb += scatter.i_drain.eq(self.i_drain)

        self._take_vectors(m, scatter)
        self._drive_writes(m, addresses.o_stream, beats.o_stream)

        record: Any = records.o_stream.payload
        recorded: Any = records.i_stream.payload
        axi = self.axi
        answered = Signal()
        opened = Signal()
        done = Signal()
        m.d.comb += [
            axi.bready.eq(records.o_stream.valid & record.responds),
            answered.eq(axi.bvalid & axi.bready),
            records.o_stream.ready.eq(~record.responds | axi.bvalid),
            done.eq(records.o_stream.valid & records.o_stream.ready & record.ends),
            opened.eq(records.i_stream.valid & records.i_stream.ready & recorded.responds),
            scatter.i_bursts.valid.eq(bursts.o_stream.valid & (unanswered != self._outstanding)),
            scatter.i_bursts.payload.eq(bursts.o_stream.payload),
            bursts.o_stream.ready.eq(scatter.i_bursts.ready),
            self.o_idle.eq((unanswered == 0) & ~scatter.o_open),
        ]
        m.d.sync += [
            unanswered.eq(unanswered + opened - answered),
            self.o_stored.eq(Mux(done, 1 << record.stream, 0)),
        ]
        if self._reports:
            failures = Signal(layouts.stored_bits)
            latest = Signal(layouts.stored_bits)
            failed: Value = failed_bits(axi.bresp)
            if self._reduces:
                failed = Mux(self.i_failed_read, failed << 2, failed)
            m.d.comb += latest.eq(failures | Mux(answered, failed, 0))
            m.d.sync += [
                failures.eq(Mux(done, 0, latest)),
                self.o_stored_response.eq(latest),
            ]
        self._keep_error(
            m,
            refusal,
            answered & axi.bresp[1],
            axi.bresp,
            slverr=TmaError.WRITE_SLVERR,
            decerr=TmaError.WRITE_DECERR,
        )
        return m

    def _join(
        self, m: Module, given: stream.Interface, joined: stream.Interface, in_flight: Signal
    ) -> None:
        """Join a box's bursts that continue one another while earlier ones are unanswered."""
        joiner = BurstJoiner(
            self._layouts,
            burst_beats=self._layouts.burst_beats,
            outstanding=self._outstanding,
            by_box=True,
        )
        buffer = ElasticBuffer(self._layouts.burst)
        m.submodules.joiner = shared(joiner)
        m.submodules.ahead = shared(buffer)
        wiring.connect(m, given, buffer.i_stream)
        wiring.connect(m, buffer.o_stream, joiner.i_stream)
        m.d.comb += [
            joiner.i_in_flight.eq(in_flight),
            joined.valid.eq(joiner.o_valid),
            joined.payload.eq(joiner.o_burst),
            joiner.i_take.eq(joiner.o_valid & joined.ready),
        ]

    def _take_vectors(self, m: Module, scatter: VectorsToBeats) -> None:
        """Buffer every input stream, and pass on the one that the realigner selects."""
        target = scatter.i_vectors
        if self._layouts.packs:
            unpacker = RowUnpacker(self._layouts)
            m.submodules.unpacker = shared(unpacker)
            m.d.comb += [unpacker.i_units.eq(scatter.o_units), unpacker.i_ends.eq(scatter.o_ends)]
            wiring.connect(m, unpacker.o_stream, target)
            target = unpacker.i_stream
        for number in range(self._layouts.streams):
            port = ElasticBuffer(vector_layout(self._layouts.width_bits))
            m.submodules[f"input{number}"] = shared(port)
            wiring.connect(m, wiring.flipped(self.i_streams[number]), port.i_stream)
            vector: Any = port.o_stream.payload
            with m.If(scatter.o_select == number):
                m.d.comb += [
                    target.valid.eq(port.o_stream.valid),
                    target.payload.eq(vector.data),
                    port.o_stream.ready.eq(target.ready),
                ]

    def _drive_writes(
        self, m: Module, addresses: stream.Interface, beats: stream.Interface
    ) -> None:
        axi = self.axi
        address: Any = addresses.payload
        beat: Any = beats.payload
        if self._reduces:
            m.d.comb += self.o_reduction.eq(address.reduction)
        m.d.comb += write_constants(axi)
        m.d.comb += [
            axi.awvalid.eq(addresses.valid),
            axi.awaddr.eq(address.address << (len(axi.awaddr) - len(address.address))),
            axi.awlen.eq(address.length),
            addresses.ready.eq(axi.awready),
            axi.wvalid.eq(beats.valid),
            axi.wdata.eq(beat.data),
            axi.wstrb.eq(beat.strobe),
            axi.wlast.eq(beat.last),
            beats.ready.eq(axi.wready),
        ]
