"""Base class of the load and the store engine: from commands to row plans and bursts."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.descriptor import WORD_BITS, descriptor_layout
from hw.arch.error_codes import TmaError
from hw.emit.shared import shared
from hw.lib.axi import RESP_DECERR
from hw.lib.component import Component
from hw.lib.fifo import Queue
from hw.tma.box_reader import BoxReader
from hw.tma.box_walker import BoxWalker
from hw.tma.burst_splitter import BurstSplitter
from hw.tma.commands import tagged_command_layout
from hw.tma.layouts import TmaLayouts

__all__ = ["BoxEngine"]


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
    o_index, o_read, i_descriptor, i_stride
        Read port of the descriptor file, as in :class:`hw.tma.box_reader.BoxReader`.
    axi : half of an AXI4 manager port
    i_drain
        Start no new burst.
    o_idle
        No burst is open or unanswered.
    o_error
        First error since reset, an :class:`hw.arch.error_codes.TmaError`.
    """

    i_stream: stream.Interface
    o_index: Signal
    o_read: Signal
    i_descriptor: Any
    i_stride: Signal
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
        commands = tagged_command_layout(descriptors, layouts.streams)
        super().__init__(
            {
                "i_stream": In(stream.Signature(commands)),
                **vectors,
                "o_index": Out(range(descriptors)),
                "o_read": Out(1),
                "i_descriptor": In(descriptor_layout),
                "i_stride": In(signed(WORD_BITS)),
                "axi": Out(axi),
                "i_drain": In(1),
                "o_idle": Out(1),
                "o_error": Out(8),
            }
        )

    def _boxes(
        self, m: Module, *, burst_beats: int, plans: int
    ) -> tuple[stream.Interface, stream.Interface, Signal]:
        """Row plans from a FIFO of depth ``plans``; bursts of at most that length; refusal code."""
        layouts = self._layouts
        reader = BoxReader(layouts, descriptors=self._descriptors)
        walker = BoxWalker(layouts)
        splitter = BurstSplitter(layouts, burst_beats=burst_beats)
        waiting = Queue(layouts.plan, depth=plans)
        m.submodules.reader = shared(reader)
        m.submodules.walker = shared(walker)
        m.submodules.splitter = shared(splitter)
        m.submodules.plans = shared(waiting)
        wiring.connect(m, wiring.flipped(self.i_stream), reader.i_stream)
        wiring.connect(m, reader.o_stream, walker.i_stream)
        wiring.connect(m, walker.o_stream, splitter.i_stream)
        wiring.connect(m, splitter.o_plans, waiting.i_stream)
        m.d.comb += [
            self.o_index.eq(reader.o_index),
            self.o_read.eq(reader.o_read),
            reader.i_descriptor.eq(self.i_descriptor),
            reader.i_stride.eq(self.i_stride),
        ]
        return waiting.o_stream, splitter.o_bursts, reader.o_error

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
