"""Property of the TMA engine's stores: no rule of AXI4 is broken on AW and W."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Assume, Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from gen.properties.support import always, given, offers_stay
from hw.lib.axi import (
    BOUNDARY_BYTES,
    Axi4WriteInterface,
    Axi4WriteSignature,
    full_width_size,
    write_constants,
)
from hw.lib.axi_assertions import state_rules, watch
from hw.lib.axi_checker import AxiChecker
from hw.lib.axi_rules import AxiRule, Side
from hw.lib.stream import ElasticBuffer
from hw.tma.layouts import TmaLayouts
from hw.tma.realign import VectorsToBeats

__all__ = ["WritesKeepAxi"]


class _Writes(wiring.Component):
    """What drives AW and W in a store engine: realigner and buffers, in its order."""

    i_plans: stream.Interface
    i_bursts: stream.Interface
    i_vector_valid: Signal
    i_record_ready: Signal
    i_drain: Signal
    axi: Axi4WriteInterface

    def __init__(self, *, width_bits: int, address_bits: int) -> None:
        self._layouts = TmaLayouts(width_bits, address_bits, streams=1)
        super().__init__(
            {
                "i_plans": In(stream.Signature(self._layouts.plan)),
                "i_bursts": In(stream.Signature(self._layouts.burst)),
                "i_vector_valid": In(1),
                "i_record_ready": In(1),
                "i_drain": In(1),
                "axi": Out(Axi4WriteSignature(data_bits=width_bits, address_bits=address_bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layouts = self._layouts
        m.submodules.scatter = scatter = VectorsToBeats(layouts)
        m.submodules.addresses = addresses = ElasticBuffer(layouts.burst)
        m.submodules.beats = beats = ElasticBuffer(layouts.write)
        wiring.connect(m, wiring.flipped(self.i_plans), scatter.i_plans)
        wiring.connect(m, wiring.flipped(self.i_bursts), scatter.i_bursts)
        wiring.connect(m, scatter.o_address, addresses.i_stream)
        wiring.connect(m, scatter.o_write, beats.i_stream)
        axi = self.axi
        address: Any = addresses.o_stream.payload
        beat: Any = beats.o_stream.payload
        m.d.comb += write_constants(axi)
        m.d.comb += [
            scatter.i_vectors.valid.eq(self.i_vector_valid),
            scatter.o_record.ready.eq(self.i_record_ready),
            scatter.i_drain.eq(self.i_drain),
            axi.awvalid.eq(addresses.o_stream.valid),
            axi.awaddr.eq(address.address << layouts.beat_shift),
            axi.awlen.eq(address.length),
            addresses.o_stream.ready.eq(axi.awready),
            axi.wvalid.eq(beats.o_stream.valid),
            axi.wdata.eq(beat.data),
            axi.wstrb.eq(beat.strobe),
            axi.wlast.eq(beat.last),
            beats.o_stream.ready.eq(axi.wready),
        ]
        return m


class WritesKeepAxi(wiring.Component):
    """Whatever rows and bursts come, AW and W keep every rule of a manager.

    Assumed are that B keeps the rules of a subordinate, that bursts have at most ``most_beats`` and
    cross no boundary, that a drain goes on until reset, and the most bursts outstanding.
    """

    plans: stream.Interface
    bursts: stream.Interface
    free: Signal
    memory: Signal
    reached: Signal

    def __init__(self, *, most_beats: int, outstanding: int, **sizes: int) -> None:
        self._sizes = sizes
        self._most_beats = most_beats
        self._outstanding = outstanding
        self._dut = _Writes(**sizes)
        super().__init__(
            {
                "plans": In(self._dut.i_plans.signature.flip()),
                "bursts": In(self._dut.i_bursts.signature.flip()),
                "free": In(4),
                "memory": In(6),
                "reached": Out(2),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self._dut
        axi: Any = dut.axi
        wiring.connect(m, wiring.flipped(self.plans), dut.i_plans)
        wiring.connect(m, wiring.flipped(self.bursts), dut.i_bursts)
        for offers in (self.plans, self.bursts):
            payload: Any = offers.payload
            offers_stay(m, offers.valid, offers.ready, payload.as_value())
        burst: Any = self.bursts.payload
        beats = BOUNDARY_BYTES >> full_width_size(len(axi.wdata))
        within = burst.address[: beats.bit_length() - 1]
        drained = Signal()
        m.d.sync += drained.eq(dut.i_drain)
        m.d.comb += [
            given((burst.length < self._most_beats) & (within + burst.length < beats)),
            given(~drained | dut.i_drain),
            Cat(dut.i_vector_valid, dut.i_record_ready, dut.i_drain, axi.bready).eq(self.free),
            Cat(axi.awready, axi.wready, axi.bvalid, axi.bid, axi.bresp).eq(self.memory),
        ]
        # Two bursts fit the buffer of addresses, so no more data come early.
        m.submodules.checker = checker = AxiChecker(
            data_bits=self._sizes["width_bits"],
            address_bits=self._sizes["address_bits"],
            reads=0,
            writes=self._outstanding,
            early_beats=2 * self._most_beats,
        )
        watch(m, checker, axi)
        state_rules(m, checker, [Side.MANAGER], domain="comb")
        state_rules(m, checker, [Side.SUBORDINATE], domain="comb", kind=Assume)
        broken = checker.o_breaks
        accepts = axi.wvalid & axi.wready & axi.wlast
        m.d.comb += [
            always(~broken[AxiRule.EARLY_BOUND.value]),
            given(~broken[AxiRule.WRITES_BOUND.value]),
            self.reached.eq(Cat(accepts & ~axi.awready, axi.bvalid & axi.bready)),
        ]
        return m
