"""Property of load completions: one for each load, in order, with its own code."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from gen.properties.support import always
from hw.arch.error_codes import BarrierError, TmaError
from hw.tma.standalone.box_loader import loaded_layout
from hw.tma.standalone.load_ends import LoadEnds

__all__ = ["LoadsAreCompleted"]


class LoadsAreCompleted(wiring.Component):
    """Completions of loads: one for each that has ended, with its code, or else its barrier's.

    Barriers answer at any time, with any error. The harness chooses any load and counts those
    before it.
    """

    loaded: stream.Interface
    free: Signal
    error: Signal
    reached: Signal

    def __init__(self, *, arrivals: int, tx_bytes: int) -> None:
        self._dut = LoadEnds(unit_shift=1, arrivals=arrivals, tx_bytes=tx_bytes)
        super().__init__(
            {
                "loaded": In(stream.Signature(loaded_layout())),
                "free": In(4),
                "error": In(BarrierError),
                "reached": Out(3),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self._dut
        operated, answered, completed, chooses = self.free
        load: Any = self.loaded.payload
        done: Any = dut.o_completions.payload
        operation: Any = dut.o_operation.payload
        wiring.connect(m, wiring.flipped(self.loaded), dut.i_loaded)
        enters, leaves, asks = Signal(), Signal(), Signal()
        owed = Signal(range(12))
        # The answer comes in the cycle of the operation or in the next one.
        m.d.comb += [
            dut.o_operation.ready.eq(operated),
            dut.o_completions.ready.eq(completed),
            enters.eq(self.loaded.valid & self.loaded.ready),
            leaves.eq(dut.o_completions.valid & completed),
            asks.eq(dut.o_operation.valid & operated),
            dut.i_answer.valid.eq(answered),
            dut.i_answer.payload.error.eq(self.error),
        ]
        m.d.sync += owed.eq(owed + enters - leaves)
        follows = Signal()
        ahead = Signal.like(owed)
        id, code, signals, told = Signal.like(load.id), Signal(8), Signal(), Signal()
        with m.If(~follows & enters & chooses):
            m.d.sync += [
                follows.eq(1),
                ahead.eq(owed - leaves),
                id.eq(load.id),
                code.eq(load.code),
                signals.eq(load.signals),
                told.eq(0),
            ]
        with m.If(follows & leaves):
            m.d.sync += [ahead.eq(ahead - 1), follows.eq(ahead != 0)]
        first = Signal()
        m.d.comb += first.eq(follows & (ahead == 0))
        with m.If(first & asks):
            m.d.sync += told.eq(1)
        ends = Signal()
        none = TmaError.NONE.value
        m.d.comb += [
            ends.eq(first & leaves),
            always(~leaves | (owed != 0)),
            always(~ends | (done.id == id)),
            always(~ends | (code == none) | (done.code == code)),
            always(~ends | (code != none) | signals | (done.code == none)),
            # The barrier is told once, with the failure, before the completion.
            always(~ends | (told == signals)),
            always(~(first & asks) | (signals & ~told)),
            always(~(first & asks) | (operation.failed == (code != none))),
            self.reached.eq(
                Cat(ends & (code != none), ends & signals & (done.code != none), owed == 9)
            ),
        ]
        return m
