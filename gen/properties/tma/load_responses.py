"""Property of the load engine: R never waits, and every beat that comes was reserved a place."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from gen.properties.support import always, given
from gen.properties.tma.open_engines import OpenLoads, ReadMemory
from hw.arch.descriptor import TmaFeature
from hw.tma.layouts import TmaLayouts

__all__ = ["ReadsLand"]


class ReadsLand(wiring.Component):
    """R never waits, whatever bursts leave and however slowly vectors do; errors are kept.

    The memory answers in order, at any time; the bursts are free, of the engine's lengths.
    """

    plans: stream.Interface
    bursts: stream.Interface
    free: Signal
    response: Signal
    reached: Signal

    def __init__(
        self, *, width_bits: int, landing_beats: int, outstanding: int, joined: bool
    ) -> None:
        features = (TmaFeature.PARALLEL_BOXES, *[TmaFeature.JOINED_BURSTS] * joined)
        layouts = TmaLayouts(width_bits, 12, streams=1, features=features)
        self._landing_beats = landing_beats
        self._outstanding = outstanding
        self._dut = OpenLoads(layouts, landing_beats=landing_beats, outstanding=outstanding)
        super().__init__(
            {
                "plans": In(stream.Signature(layouts.plan)),
                "bursts": In(stream.Signature(layouts.burst)),
                "free": In(4),
                "response": In(2),
                "reached": Out(3),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self._dut
        axi: Any = dut.axi
        target: Any = dut.o_streams[0]
        accepts, answers, leaves, drains = self.free
        wiring.connect(m, wiring.flipped(self.plans), wiring.flipped(dut.plans))
        wiring.connect(m, wiring.flipped(self.bursts), wiring.flipped(dut.bursts))
        burst: Any = self.bursts.payload
        longest = self._landing_beats // 4
        within = burst.address[: (longest - 1).bit_length()]
        memory = ReadMemory(m, axi, accepts=accepts, answers=answers, outstanding=self._outstanding)
        failed = Signal()
        with m.If(memory.beat & axi.rresp[1]):
            m.d.sync += failed.eq(1)
        m.d.comb += [
            given(burst.length + within < longest),
            axi.rresp.eq(self.response),
            dut.i_drain.eq(drains),
            target.ready.eq(leaves),
            always(~axi.rvalid | axi.rready),
            always((dut.o_error != 0) == failed),
            always(dut.o_idle == ((memory.open == 0) & ~axi.arvalid)),
            self.reached.eq(
                Cat(
                    memory.open == self._outstanding,
                    memory.beat & (memory.left[0] != 0) & failed,
                    axi.arvalid & (axi.arlen + 1 == longest) & (memory.open != 0),
                )
            ),
        ]
        return m
