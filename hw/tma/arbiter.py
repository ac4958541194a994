"""Command arbiter: one FIFO per stream, served round robin."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.descriptor import TmaFeature
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.fifo import Queue
from hw.tma.commands import command_layout, tagged_command_layout

__all__ = ["CommandArbiter"]


class CommandArbiter(Component):
    """Round-robin arbiter of the command streams, one box at a time.

    One command per cycle; latency two cycles. A stream waits for at most one command of each other
    stream.

    Parameters
    ----------
    descriptors : int
        Descriptors in the file.
    streams : int
        Streams.
    depth : int
        Commands per FIFO.
    features : tuple of TmaFeature
        Those of the engine.

    Members
    -------
    i_streams : array of streams of :func:`hw.tma.commands.command_layout`
    o_stream : stream of :func:`hw.tma.commands.tagged_command_layout`
    """

    i_streams: Sequence[stream.Interface]
    o_stream: stream.Interface

    def __init__(
        self,
        *,
        descriptors: int,
        streams: int,
        depth: int,
        features: tuple[TmaFeature, ...] = (),
    ) -> None:
        self._command = command_layout(descriptors, features)
        self._streams = streams
        self._depth = depth
        super().__init__(
            {
                "i_streams": In(stream.Signature(self._command)).array(streams),
                "o_stream": Out(
                    stream.Signature(tagged_command_layout(descriptors, streams, features))
                ),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queues = [Queue(self._command, depth=self._depth) for _ in range(self._streams)]
        for number, queue in enumerate(queues):
            m.submodules[f"queue{number}"] = shared(queue)
            wiring.connect(m, wiring.flipped(self.i_streams[number]), queue.i_stream)

        # A choice that has been offered stays until it is taken, as stream rules require.
        turn = Signal(range(self._streams))
        shown = Signal()
        nearest = Signal(range(self._streams))
        chosen = Signal(range(self._streams))
        m.d.comb += chosen.eq(Mux(shown, turn, nearest))
        with m.Switch(turn):
            for previous in range(self._streams):
                with m.Case(previous):
                    # The last assignment wins: the stream right after the previous one.
                    m.d.comb += nearest.eq(previous)
                    for distance in range(self._streams - 1, 0, -1):
                        candidate = (previous + distance) % self._streams
                        with m.If(queues[candidate].o_stream.valid):
                            m.d.comb += nearest.eq(candidate)

        payload: Any = self.o_stream.payload
        m.d.comb += payload.stream.eq(chosen)
        with m.Switch(chosen):
            for number, queue in enumerate(queues):
                with m.Case(number):
                    m.d.comb += [
                        self.o_stream.valid.eq(queue.o_stream.valid),
                        payload.command.eq(queue.o_stream.payload),
                        queue.o_stream.ready.eq(self.o_stream.ready),
                    ]
        with m.If(self.o_stream.valid):
            m.d.sync += [turn.eq(chosen), shown.eq(~self.o_stream.ready)]
        return m
