"""Property of the realigner of stores: no byte outside the rows is written."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from gen.properties.support import always, given, offers_stay
from hw.tma.layouts import TmaLayouts
from hw.tma.realign import VectorsToBeats

__all__ = ["StrobesStayInside"]


class StrobesStayInside(wiring.Component):
    """Beat n of a row goes to the row's address + n, with strobes of its bytes in the tensor alone.

    Assumed of the splitter: a burst begins at the next beat of its row and does not pass its end.
    """

    plans: stream.Interface
    bursts: stream.Interface
    address: Signal
    free: Signal
    reached: Signal

    def __init__(self, *, width_bits: int, address_bits: int, vectors: int) -> None:
        self._layouts = TmaLayouts(width_bits, address_bits, streams=1)
        self._vectors = vectors
        super().__init__(
            {
                "plans": In(stream.Signature(self._layouts.plan)),
                "bursts": In(stream.Signature(self._layouts.burst)),
                "address": In(address_bits - self._layouts.beat_shift),
                "free": In(5),
                "reached": Out(4),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = VectorsToBeats(self._layouts)
        plan: Any = self.plans.payload
        burst: Any = self.bursts.payload
        wiring.connect(m, wiring.flipped(self.plans), dut.i_plans)
        wiring.connect(m, wiring.flipped(self.bursts), dut.i_bursts)
        # The address of the row stays with its plan.
        offers_stay(m, self.plans.valid, self.plans.ready, Cat(plan.as_value(), self.address))
        offers_stay(m, self.bursts.valid, self.bursts.ready, burst.as_value())
        drained = Signal()
        m.d.sync += drained.eq(dut.i_drain)
        beats = plan.end - plan.first
        one = (beats == 1) & (plan.tail != 0)
        m.d.comb += [
            given(plan.vectors <= self._vectors),
            given((plan.first <= plan.end) & (plan.end <= plan.vectors + (plan.offset != 0))),
            given(~one | (plan.head < plan.tail)),
            given(~drained | dut.i_drain),
            Cat(
                dut.i_vectors.valid,
                dut.o_address.ready,
                dut.o_write.ready,
                dut.o_record.ready,
                dut.i_drain,
            ).eq(self.free),
        ]
        # Beats written of the row, and of the burst that is open.
        sent = Signal.like(plan.end)
        left = Signal(9)
        current = Signal.like(burst.address)
        opens = dut.o_address.valid & dut.o_address.ready
        writes = dut.o_write.valid & dut.o_write.ready
        place = Signal.like(burst.address)
        write: Any = dut.o_write.payload
        m.d.comb += [
            given(~dut.o_address.valid | (burst.address == (self.address + sent)[: len(place)])),
            given(~dut.o_address.valid | (burst.length < beats - sent)),
            place.eq(Mux(opens, burst.address, current)),
        ]
        with m.If(writes):
            m.d.sync += [current.eq(place + 1), left.eq(Mux(opens, burst.length, left - 1))]
        m.d.sync += sent.eq(Mux(self.plans.valid & self.plans.ready, 0, sent + writes))
        final = (sent + 1 == beats) & (plan.tail != 0)
        stays = ~dut.i_drain
        for byte in range(self._layouts.beat_bytes):
            lies = ((sent != 0) | (byte >= plan.head)) & (~final | (byte < plan.tail))
            strobe = write.strobe[byte]
            # Every byte of the row is written, and no other.
            m.d.comb += always(~writes | (strobe == (stays & lies)))
        m.d.comb += [
            always(~writes | dut.i_drain | (self.plans.valid & (sent < beats))),
            always(~writes | dut.i_drain | (place == (self.address + sent)[: len(place)])),
            # A beat belongs to a burst, and the burst's address leaves with its first.
            always(~writes | opens | (left != 0)),
            always(~opens | (writes & (left == 0))),
            always(~self.plans.valid | ~self.plans.ready | (sent + writes == beats)),
            self.reached.eq(
                Cat(
                    writes & final & (sent != 0),
                    writes & (plan.head != 0) & (plan.first != 0),
                    writes & drained & (left == 1),
                    self.plans.ready & self.plans.valid & (beats == 0),
                )
            ),
        ]
        return m
