"""Completion multiplexer: the ends of several kinds of command on one stream."""

from collections.abc import Sequence

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.fifo import Queue
from hw.tma.standalone.unit_commands import completion_layout

__all__ = ["CompletionMux"]

#: Completions that the user has not taken.
_WAITING = 8


class CompletionMux(Component):
    """Completion multiplexer: one per cycle, from the sources in turn.

    Parameters
    ----------
    sources : int
        Sources.

    Members
    -------
    i_streams, o_stream : streams of :data:`hw.tma.standalone.unit_commands.completion_layout`
    """

    i_streams: Sequence[stream.Interface]
    o_stream: stream.Interface

    def __init__(self, *, sources: int) -> None:
        self._sources = sources
        signature = stream.Signature(completion_layout)
        super().__init__({"i_streams": In(signature).array(sources), "o_stream": Out(signature)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queue = Queue(completion_layout, depth=_WAITING)
        m.submodules.queue = shared(queue)
        wiring.connect(m, queue.o_stream, wiring.flipped(self.o_stream))
        sources = range(self._sources)
        turn = Signal(sources)
        chosen = Signal(sources)
        with m.Switch(turn):
            for former in sources:
                with m.Case(former):
                    # The last assignment wins: the source right after the former one.
                    m.d.comb += chosen.eq(former)
                    for distance in reversed(sources[1:]):
                        candidate = (former + distance) % self._sources
                        with m.If(self.i_streams[candidate].valid):
                            m.d.comb += chosen.eq(candidate)
        with m.Switch(chosen):
            for number, source in enumerate(self.i_streams):
                with m.Case(number):
                    m.d.comb += [
                        queue.i_stream.valid.eq(source.valid),
                        queue.i_stream.payload.eq(source.payload),
                        source.ready.eq(queue.i_stream.ready),
                    ]
        with m.If(queue.i_stream.valid & queue.i_stream.ready):
            m.d.sync += turn.eq(chosen)
        return m
