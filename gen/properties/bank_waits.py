"""Property of the waiter of a barrier bank: what ends a wait, and when."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from gen.properties.support import always
from hw.arch.error_codes import BarrierError
from hw.tma.barriers.barrier_layouts import barrier_result_layout, barrier_wait_layout
from hw.tma.barriers.barrier_waiter import BarrierWaiter

__all__ = ["WaitsEnd"]


class WaitsEnd(wiring.Component):
    """A wait has one result, that of the first cycle that ends it, and is never longer than said.

    The barriers may do anything in any cycle, and results may be refused for any time.
    """

    waits: stream.Interface
    ready: Signal
    phases: Signal
    flags: Signal
    valid: Signal
    reached: Signal

    def __init__(self, *, barriers: int) -> None:
        self._barriers = barriers
        super().__init__(
            {
                "waits": In(stream.Signature(barrier_wait_layout)),
                "ready": In(1),
                "phases": In(barriers),
                "flags": In(barriers),
                "valid": In(barriers),
                "reached": Out(4),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = BarrierWaiter(barriers=self._barriers)
        wiring.connect(m, wiring.flipped(self.waits), dut.i_wait)
        m.d.comb += [
            dut.o_result.ready.eq(self.ready),
            dut.i_phases.eq(self.phases),
            dut.i_flags.eq(self.flags),
            dut.i_valid.eq(self.valid),
        ]
        wait: Any = Signal(barrier_wait_layout)
        waits, owes = Signal(), Signal()
        expected: Any = Signal(barrier_result_layout)
        tests_left = Signal(33)
        accepted = self.waits.valid & self.waits.ready
        gives = dut.o_result.valid & self.ready
        # Each barrier by itself, not by an index into all of them.
        mine = Cat(wait.barrier == number for number in range(self._barriers))
        there, known = mine.any(), (mine & self.valid).any()
        passed = known & ((mine & self.phases).any() ^ wait.parity)
        flag = known & (mine & self.flags).any()
        late = tests_left == 1
        ends = ~known | passed | flag | late
        with m.If(waits):
            m.d.sync += tests_left.eq(tests_left - 1)
            with m.If(ends):
                missing = Mux(there, BarrierError.UNINITIALISED, BarrierError.INDEX)
                m.d.sync += [
                    waits.eq(0),
                    owes.eq(1),
                    expected.passed.eq(passed),
                    expected.flag.eq(flag),
                    expected.timed_out.eq(known & ~passed & ~flag),
                    expected.error.eq(Mux(known, BarrierError.NONE, missing)),
                ]
        with m.If(gives):
            m.d.sync += owes.eq(0)
        with m.If(accepted):
            # A wait of n cycles is tested n + 1 times.
            m.d.sync += [waits.eq(1), wait.eq(self.waits.payload)]
            m.d.sync += tests_left.eq(self.waits.payload.cycles + 1)
        m.d.comb += [
            # Invariants of the waiter: it has the wait, and counts its tests.
            always(dut.waits == waits),
            always(~waits | (dut.wait.barrier == wait.barrier)),
            always(~waits | (dut.wait.parity == wait.parity)),
            always(~waits | (dut.wait.cycles + 1 == tests_left)),
        ]
        result = dut.o_result.payload
        m.d.comb += [
            always(dut.o_result.valid == owes),
            always(~owes | (result.as_value() == expected.as_value())),
            always(~(waits & owes)),
            always(~waits | (tests_left != 0)),
            # It is free again in the cycle in which its result is taken.
            always(self.waits.ready == (~waits & (~owes | self.ready))),
            self.reached.eq(
                Cat(
                    owes & result.passed & result.flag,
                    owes & result.timed_out & (wait.cycles == 2),
                    owes & (result.error == BarrierError.INDEX),
                    gives & accepted,
                )
            ),
        ]
        return m
