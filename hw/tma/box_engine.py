"""Base class of the load and the store engine: from commands to row plans and bursts."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.descriptor import WORD_BITS, TmaFeature, descriptor_layout
from hw.arch.error_codes import TmaError
from hw.emit.shared import shared
from hw.lib.axi import RESP_DECERR
from hw.lib.component import Component
from hw.lib.fifo import Queue
from hw.lib.stream import ElasticBuffer
from hw.tma.box_reader import BoxReader
from hw.tma.box_readers import BoxReaders, readers_of
from hw.tma.box_walker import BoxWalker
from hw.tma.burst_splitter import BurstSplitter
from hw.tma.commands import tagged_command_layout
from hw.tma.im2col.pixel_walker import PixelWalker
from hw.tma.layouts import TmaLayouts

__all__ = ["BoxEngine"]

#: Depth of the FIFO of reports.
_REPORTS = 4


class BoxEngine(Component):
    """Base class of the load and the store engine: box reader, box walker, burst splitter.

    Parameters
    ----------
    layouts : TmaLayouts
    outstanding : int
        Most bursts in flight.
    descriptors : int
        Descriptors in the file.
    vectors : dict of str to Member
        Members of the subclass: its vector streams.
    axi : Signature
        Half of an AXI4 manager port.

    Members
    -------
    i_stream : stream of :func:`hw.tma.commands.tagged_command_layout`
    o_index, o_read, i_descriptor, i_stride : arrays
        Read ports of the descriptor file, as in :class:`hw.tma.box_reader.BoxReader`.
    o_reports : stream of :attr:`TmaLayouts.report`
        One per command, in order; present with `TmaFeature.PARALLEL_BOXES`.
    axi : half of an AXI4 manager port
    i_drain
        Start no new burst.
    o_idle
        No burst is open or unanswered.
    o_error
        First error since reset, an :class:`hw.arch.error_codes.TmaError`.
    """

    i_stream: stream.Interface
    o_index: Sequence[Signal]
    o_read: Sequence[Signal]
    i_descriptor: Sequence[Any]
    i_stride: Sequence[Signal]
    o_reports: stream.Interface
    i_drain: Signal
    o_idle: Signal
    o_error: Signal

    def __init__(
        self,
        layouts: TmaLayouts,
        *,
        outstanding: int,
        descriptors: int,
        vectors: dict[str, wiring.Member],
        axi: wiring.Signature,
    ) -> None:
        self._layouts = layouts
        self._outstanding = outstanding
        self._descriptors = descriptors
        commands = tagged_command_layout(descriptors, layouts.streams, layouts.features)
        readers = readers_of(layouts)
        reports = {}
        if TmaFeature.PARALLEL_BOXES in layouts.features:
            reports = {"o_reports": Out(stream.Signature(layouts.report))}
        super().__init__(
            {
                "i_stream": In(stream.Signature(commands)),
                **vectors,
                "o_index": Out(range(descriptors)).array(readers),
                "o_read": Out(1).array(readers),
                "i_descriptor": In(descriptor_layout).array(readers),
                "i_stride": In(signed(WORD_BITS)).array(readers),
                **reports,
                "axi": Out(axi),
                "i_drain": In(1),
                "o_idle": Out(1),
                "o_error": Out(8),
            }
        )

    @property
    def _reports(self) -> bool:
        return TmaFeature.PARALLEL_BOXES in self._layouts.features

    def _boxes(
        self, m: Module, *, burst_beats: int, plans: int
    ) -> tuple[stream.Interface, stream.Interface, Signal]:
        """Row plans from a FIFO of depth ``plans``; bursts of at most that length; refusal code."""
        layouts = self._layouts
        walker = BoxWalker(layouts)
        splitter = BurstSplitter(layouts, burst_beats=burst_beats)
        waiting = Queue(layouts.plan, depth=plans)
        boxes, refusal = self._read(m)
        m.submodules.walker = shared(walker)
        m.submodules.splitter = shared(splitter)
        m.submodules.plans = shared(waiting)
        if TmaFeature.IM2COL in layouts.features:
            pixels = PixelWalker(layouts)
            m.submodules.pixels = shared(pixels)
            wiring.connect(m, boxes, pixels.i_stream)
            boxes = pixels.o_stream
        wiring.connect(m, boxes, walker.i_stream)
        wiring.connect(m, walker.o_stream, splitter.i_stream)
        wiring.connect(m, splitter.o_plans, waiting.i_stream)
        return waiting.o_stream, splitter.o_bursts, refusal

    def _read(self, m: Module) -> tuple[stream.Interface, Signal]:
        """Boxes of the commands, and refusal code: of one box reader, or of several."""
        layouts = self._layouts
        if TmaFeature.PARALLEL_BOXES in layouts.features:
            group = BoxReaders(layouts, descriptors=self._descriptors)
            m.submodules.readers = shared(group)
            buffer = ElasticBuffer(layouts.box)
            m.submodules.boxes = shared(buffer)
            reports = Queue(layouts.report, depth=_REPORTS)
            m.submodules.reports = shared(reports)
            wiring.connect(m, wiring.flipped(self.i_stream), group.i_stream)
            wiring.connect(m, group.o_stream, buffer.i_stream)
            wiring.connect(m, group.o_reports, reports.i_stream)
            wiring.connect(m, reports.o_stream, wiring.flipped(self.o_reports))
            for number in range(readers_of(layouts)):
                m.d.comb += [
                    self.o_index[number].eq(group.o_index[number]),
                    self.o_read[number].eq(group.o_read[number]),
                    group.i_descriptor[number].eq(self.i_descriptor[number]),
                    group.i_stride[number].eq(self.i_stride[number]),
                ]
            return buffer.o_stream, group.o_error
        reader = BoxReader(layouts, descriptors=self._descriptors)
        m.submodules.reader = shared(reader)
        wiring.connect(m, wiring.flipped(self.i_stream), reader.i_stream)
        m.d.comb += [
            self.o_index[0].eq(reader.o_index),
            self.o_read[0].eq(reader.o_read),
            reader.i_descriptor.eq(self.i_descriptor[0]),
            reader.i_stride.eq(self.i_stride[0]),
        ]
        return reader.o_stream, reader.o_error

    def _keep_error(
        self,
        m: Module,
        refusal: Signal,
        failed: Value,
        response: Signal,
        *,
        slverr: TmaError,
        decerr: TmaError,
    ) -> None:
        """Keep the first error; a failed response precedes a refusal in the same cycle."""
        with m.If(self.o_error == TmaError.NONE.value):
            with m.If(failed):
                m.d.sync += self.o_error.eq(
                    Mux(response == RESP_DECERR, decerr.value, slverr.value)
                )
            with m.Else():
                m.d.sync += self.o_error.eq(refusal)
