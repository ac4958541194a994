"""Property of the barrier: exact completion of its phases."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from gen.properties.support import always
from hw.lib.barrier import Barrier

__all__ = ["BarrierCompletes"]


class BarrierCompletes(wiring.Component):
    """A phase completes exactly when no arrival is pending and the transaction count is zero."""

    init: Signal
    expected: Signal
    arrive: Signal
    drop: Signal
    expect: Signal
    complete: Signal
    reached: Signal

    def __init__(self, arrivals: int, tx_bytes: int) -> None:
        self._dut = Barrier(arrivals=arrivals, tx_bytes=tx_bytes)
        count, size = range(arrivals + 1), range(tx_bytes + 1)
        super().__init__(
            {
                "init": In(1),
                "expected": In(count),
                "arrive": In(count),
                "drop": In(count),
                "expect": In(size),
                "complete": In(size),
                "reached": Out(3),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self._dut
        for name in ("init", "expected", "arrive", "drop", "expect", "complete"):
            m.d.comb += getattr(dut, f"i_{name}").eq(getattr(self, name))
        # Arrivals and drops since the phase began, and the number it was to wait for.
        came, dropped, wanted = Signal(8), Signal(8), Signal(8)
        asked, done = Signal(16), Signal(16)
        error, phase = Signal(), Signal()
        came_now, dropped_now = came + self.arrive + self.drop, dropped + self.drop
        surplus = asked + self.expect - done - self.complete
        some = Cat(self.arrive, self.drop, self.expect, self.complete).any()
        most = self._dut.tx_bytes
        wrong = (came_now > wanted) | (surplus > most) | (surplus < -most)
        # After its last phase a barrier no longer takes part in anything.
        wrong |= (wanted == 0) & some
        with m.If(self.init):
            m.d.sync += [each.eq(0) for each in (came, dropped, asked, done, error, phase)]
            m.d.sync += wanted.eq(self.expected)
        with m.Elif(some & ~error):
            with m.If(wrong):
                m.d.sync += error.eq(1)
            with m.Elif((came_now == wanted) & (surplus == 0)):
                m.d.sync += [each.eq(0) for each in (came, dropped, asked, done)]
                m.d.sync += [phase.eq(~phase), wanted.eq(wanted - dropped_now)]
            with m.Else():
                m.d.sync += [came.eq(came_now), dropped.eq(dropped_now)]
                m.d.sync += asked.eq(Mux(surplus > 0, surplus, 0)[: len(asked)])
                m.d.sync += done.eq(Mux(surplus < 0, -surplus, 0)[: len(done)])
        m.d.comb += [
            always(dut.o_phase == phase),
            always(dut.o_error == error),
            always(came + dut.o_pending == wanted),
            always(dropped + dut.o_expected == wanted),
            always(dropped <= came),
            always(dut.o_tx == asked - done),
            always((asked == 0) | (done == 0)),
            always((asked <= most) & (done <= most)),
            always(wanted <= self._dut.arrivals),
            # A complete phase never persists.
            always((wanted == 0) | (dut.o_pending != 0) | (dut.o_tx != 0)),
            self.reached.eq(
                Cat(phase, (dut.o_pending == 0) & (dut.o_tx < 0), error & (asked != 0))
            ),
        ]
        return m
