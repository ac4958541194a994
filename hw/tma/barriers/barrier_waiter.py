"""Waiter of a barrier bank: tests a phase by parity until it has completed or the time is over."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hw.arch.error_codes import BarrierError
from hw.lib.barrier import has_passed
from hw.lib.component import Component
from hw.tma.barriers.barrier_layouts import barrier_result_layout, barrier_wait_layout, is_above

__all__ = ["BarrierWaiter"]


class BarrierWaiter(Component):
    """Waiter on one barrier at a time: try_wait by parity, with time-out.

    It tests first in the cycle after it accepts a wait, and offers the result in the cycle after
    its last test.

    Parameters
    ----------
    barriers : int
        Barriers of the bank.

    Members
    -------
    i_wait : stream of :data:`hw.tma.barriers.barrier_layouts.barrier_wait_layout`
    o_result : stream of :data:`hw.tma.barriers.barrier_layouts.barrier_result_layout`
    i_phases, i_flags, i_valid : ``In(barriers)``
        State of the barriers.

    Attributes
    ----------
    wait, waits : View, Signal
        The wait, with the cycles that are left, and whether there is one, for proofs.
    """

    i_wait: stream.Interface
    o_result: stream.Interface
    i_phases: Signal
    i_flags: Signal
    i_valid: Signal

    def __init__(self, *, barriers: int) -> None:
        self._barriers = barriers
        super().__init__(
            {
                "i_wait": In(stream.Signature(barrier_wait_layout)),
                "o_result": Out(stream.Signature(barrier_result_layout)),
                "i_phases": In(barriers),
                "i_flags": In(barriers),
                "i_valid": In(barriers),
            }
        )
        self.wait: Any = Signal(barrier_wait_layout)
        self.waits = Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        wait, waits = self.wait, self.waits
        found: Any = Signal(barrier_result_layout)
        result: Any = self.o_result.payload
        offered = self.o_result.valid

        absent = is_above(wait.barrier, self._barriers - 1)
        known = self.i_valid.bit_select(wait.barrier, 1)
        phase = self.i_phases.bit_select(wait.barrier, 1)
        with m.If(~known):
            missing = Mux(absent, BarrierError.INDEX, BarrierError.UNINITIALISED)
            m.d.comb += found.error.eq(missing)
        with m.Else():
            m.d.comb += [
                found.passed.eq(has_passed(phase, wait.parity)),
                found.flag.eq(self.i_flags.bit_select(wait.barrier, 1)),
                found.timed_out.eq(~found.passed & ~found.flag & (wait.cycles == 0)),
            ]

        m.d.comb += self.i_wait.ready.eq(~waits & (~offered | self.o_result.ready))
        with m.If(self.o_result.ready):
            m.d.sync += offered.eq(0)
        with m.If(waits):
            m.d.sync += wait.cycles.eq(wait.cycles - 1)
            with m.If(found.as_value().any()):
                m.d.sync += [waits.eq(0), offered.eq(1), result.eq(found)]
        with m.If(self.i_wait.valid & self.i_wait.ready):
            m.d.sync += [waits.eq(1), wait.eq(self.i_wait.payload)]
        return m
