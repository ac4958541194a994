"""Ends of loads: bytes completed at the barrier, then the completion of the command."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.error_codes import BarrierError, TmaError
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.fifo import Queue
from hw.tma.barriers.barrier_layouts import (
    BarrierOperation,
    barrier_answer_layout,
    barrier_operation_layout,
)
from hw.tma.standalone.box_loader import loaded_layout
from hw.tma.standalone.unit_commands import completion_layout

__all__ = ["LoadEnds"]

#: Loads that have ended and are not completed yet.
_ENDED = 8


class LoadEnds(Component):
    """Ends of loads, in order: the barrier's answer is awaited, so that its error is reported.

    A load without a barrier takes one cycle, one with a barrier two.

    Parameters
    ----------
    unit_shift : int
        log2 of the bytes of a unit.
    arrivals, tx_bytes : int
        Those of the bank of barriers.
    scratchpads : int
        Scratchpads of the unit.

    Members
    -------
    i_loaded : stream of :func:`hw.tma.standalone.box_loader.loaded_layout`
    o_operation : stream of :func:`hw.tma.barriers.barrier_layouts.barrier_operation_layout`
    i_answer : :func:`hw.tma.barriers.barrier_layouts.barrier_answer_layout` with ``valid``
    o_completions : stream of :data:`hw.tma.standalone.unit_commands.completion_layout`
        The code is that of the load, or else that of the barrier.
    o_pads
        With several scratchpads: a bit for each, set if the operation is for its bank.
    """

    i_loaded: stream.Interface
    o_operation: stream.Interface
    i_answer: Any
    o_completions: stream.Interface
    o_pads: Signal

    def __init__(
        self, *, unit_shift: int, arrivals: int, tx_bytes: int, scratchpads: int = 1
    ) -> None:
        self._loaded = loaded_layout(scratchpads)
        self._several = scratchpads > 1
        self._unit_shift = unit_shift
        most = {"arrivals": arrivals, "tx_bytes": tx_bytes}
        answer = wiring.Signature({"valid": Out(1), "payload": Out(barrier_answer_layout(**most))})
        super().__init__(
            {
                "i_loaded": In(stream.Signature(self._loaded)),
                "o_operation": Out(stream.Signature(barrier_operation_layout(**most))),
                "i_answer": In(answer),
                "o_completions": Out(stream.Signature(completion_layout)),
                **({"o_pads": Out(scratchpads)} if self._several else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queue = Queue(self._loaded, depth=_ENDED)
        m.submodules.queue = shared(queue)
        wiring.connect(m, wiring.flipped(self.i_loaded), queue.i_stream)
        ended = queue.o_stream
        load: Any = ended.payload
        operation: Any = self.o_operation.payload
        completion: Any = self.o_completions.payload
        asked = Signal()
        error = Signal(BarrierError)
        latest = Signal(BarrierError)
        m.d.comb += [
            self.o_operation.valid.eq(ended.valid & load.signals & ~asked),
            operation.operation.eq(BarrierOperation.COMPLETE),
            operation.barrier.eq(load.barrier),
            operation.bytes.eq(load.count << self._unit_shift),
            operation.failed.eq(load.code != TmaError.NONE.value),
            latest.eq(Mux(self.i_answer.valid, self.i_answer.payload.error, error)),
            self.o_completions.valid.eq(ended.valid & (asked | ~load.signals)),
            completion.id.eq(load.id),
            completion.code.eq(
                Mux(load.code != TmaError.NONE.value, load.code, Mux(asked, latest, 0))
            ),
            ended.ready.eq(self.o_completions.valid & self.o_completions.ready),
        ]
        if self._several:
            m.d.comb += self.o_pads.eq(load.pads)
        m.d.sync += error.eq(latest)
        with m.If(ended.ready):
            m.d.sync += [asked.eq(0), error.eq(BarrierError.NONE)]
        with m.Elif(self.o_operation.valid & self.o_operation.ready):
            m.d.sync += [asked.eq(1), error.eq(BarrierError.NONE)]
        return m
