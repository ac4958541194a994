"""Abort of a TMA unit: drain its port, reset it, raise the flags of its barriers."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hw.lib.component import Component
from hw.tma.barriers.barrier_layouts import BarrierOperation, barrier_operation_layout

__all__ = ["AbortSequence"]


class AbortSequence(Component):
    """Sequence of an abort.

    It drains until the unit is idle. It resets the unit for two cycles, so that what the scratchpad
    and the bank answer to it in the first of them is lost. Then it completes 0 bytes at every
    barrier, as failed.

    Parameters
    ----------
    barriers : int
        Barriers of the bank.
    arrivals, tx_bytes : int
        Those of the bank.

    Members
    -------
    i_abort
        Begin; ignored while an abort is under way.
    i_idle
        No burst of the unit is open or unanswered.
    o_drain, o_reset
        To the unit.
    o_operation : stream of :func:`hw.tma.barriers.barrier_layouts.barrier_operation_layout`
    o_busy
        An abort is under way.
    """

    i_abort: Signal
    i_idle: Signal
    o_drain: Signal
    o_reset: Signal
    o_operation: stream.Interface
    o_busy: Signal

    def __init__(self, *, barriers: int, arrivals: int, tx_bytes: int) -> None:
        self._barriers = barriers
        operations = barrier_operation_layout(arrivals=arrivals, tx_bytes=tx_bytes)
        super().__init__(
            {
                "i_abort": In(1),
                "i_idle": In(1),
                "o_drain": Out(1),
                "o_reset": Out(1),
                "o_operation": Out(stream.Signature(operations)),
                "o_busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        barrier = Signal(range(self._barriers))
        operation: Any = self.o_operation.payload
        m.d.comb += [
            operation.operation.eq(BarrierOperation.COMPLETE),
            operation.barrier.eq(barrier),
            operation.failed.eq(1),
            self.o_busy.eq(1),
        ]
        with m.FSM():
            with m.State("WAIT"):
                m.d.comb += self.o_busy.eq(0)
                with m.If(self.i_abort):
                    m.next = "DRAIN"
            with m.State("DRAIN"):
                m.d.comb += self.o_drain.eq(1)
                with m.If(self.i_idle):
                    m.next = "RESET"
            with m.State("RESET"):
                m.d.comb += [self.o_drain.eq(1), self.o_reset.eq(1)]
                m.next = "SETTLE"
            with m.State("SETTLE"):
                m.d.comb += [self.o_drain.eq(1), self.o_reset.eq(1)]
                m.d.sync += barrier.eq(0)
                m.next = "RAISE"
            with m.State("RAISE"):
                m.d.comb += self.o_operation.valid.eq(1)
                with m.If(self.o_operation.ready):
                    m.d.sync += barrier.eq(barrier + 1)
                    with m.If(barrier == self._barriers - 1):
                        m.next = "WAIT"
        return m
