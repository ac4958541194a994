"""Property of the TMA engine's bursts: no boundary crossed, no beat lost."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from gen.properties.support import always, offers_stay
from hw.tma.burst_splitter import BurstSplitter
from hw.tma.layouts import TmaLayouts

__all__ = ["BurstsStayInside"]


class BurstsStayInside(wiring.Component):
    """Bursts cross no boundary, are contiguous, and add up to their row."""

    row: stream.Interface
    plans_ready: Signal
    bursts_ready: Signal
    reached: Signal

    def __init__(
        self, *, burst_beats: int, width_bits: int, address_bits: int, streams: int
    ) -> None:
        self._layouts = TmaLayouts(width_bits, address_bits, streams)
        self._burst_beats = burst_beats
        super().__init__(
            {
                "row": In(stream.Signature(self._layouts.row)),
                "plans_ready": In(1),
                "bursts_ready": In(1),
                "reached": Out(2),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = BurstSplitter(self._layouts, burst_beats=self._burst_beats)
        wiring.connect(m, wiring.flipped(self.row), dut.i_stream)
        m.d.comb += [
            dut.o_plans.ready.eq(self.plans_ready),
            dut.o_bursts.ready.eq(self.bursts_ready),
        ]
        row: Any = self.row.payload
        offers_stay(m, self.row.valid, self.row.ready, row.as_value())
        burst: Any = Signal(self._layouts.burst)
        m.d.comb += burst.eq(dut.o_bursts.payload)
        sent = Signal.like(row.beats)
        bursts = dut.o_bursts.valid & self.bursts_ready
        sent_now = Signal.like(row.beats)
        m.d.comb += sent_now.eq(sent + Mux(bursts, burst.length + 1, 0))
        m.d.sync += sent.eq(Mux(self.row.valid & self.row.ready, 0, sent_now))
        within = self._burst_beats.bit_length() - 1
        waits = self.row.valid
        m.d.comb += [
            always(dut.started == (sent != 0)),
            always((sent == 0) | waits),
            always((sent == 0) | (sent < row.beats)),
            always((sent == 0) | (dut.later_beats == row.beats - sent)),
            always((sent == 0) | (dut.later_address == (row.address + sent)[: len(row.address)])),
            always(~bursts | (burst.address[:within] + burst.length < self._burst_beats)),
            always(~bursts | (burst.address == (row.address + sent)[: len(row.address)])),
            always(sent_now <= Mux(waits, row.beats, 0)),
            always(~(waits & self.row.ready) | (sent_now == row.beats)),
            self.reached.eq(Cat(bursts & (sent != 0), waits & (row.beats == 0) & self.row.ready)),
        ]
        # Between two offers no row is in progress.
        held = Signal()
        m.d.sync += held.eq(self.row.valid & ~self.row.ready)
        m.d.comb += always((sent == 0) | held)
        return m
