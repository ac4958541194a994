"""Property of the TMA engine's loads: no rule of AXI4 is broken on AR."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Assume, Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from gen.properties.support import offers_stay
from hw.lib.axi import BOUNDARY_BYTES, Axi4ReadInterface, Axi4ReadSignature, full_width_size
from hw.lib.axi_assertions import state_rules, watch
from hw.lib.axi_checker import AxiChecker
from hw.lib.axi_rules import Side
from hw.lib.bursts import issue_reads
from hw.lib.stream import ElasticBuffer
from hw.tma.burst_splitter import BurstSplitter
from hw.tma.layouts import TmaLayouts

__all__ = ["ReadsKeepAxi"]


class _Reads(wiring.Component):
    """What puts bursts on AR in a load engine: splitter, buffer and issue, in its order.

    ``i_room`` stands for all that may hold a burst back: the landing buffer and a drain.
    """

    i_row: stream.Interface
    i_plans_ready: Signal
    i_room: Signal
    axi: Axi4ReadInterface

    def __init__(
        self, *, width_bits: int, address_bits: int, burst_beats: int, outstanding: int
    ) -> None:
        self._layouts = TmaLayouts(width_bits, address_bits, streams=1)
        self._burst_beats = burst_beats
        self._outstanding = outstanding
        super().__init__(
            {
                "i_row": In(stream.Signature(self._layouts.row)),
                "i_plans_ready": In(1),
                "i_room": In(1),
                "axi": Out(Axi4ReadSignature(data_bits=width_bits, address_bits=address_bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.splitter = splitter = BurstSplitter(
            self._layouts, burst_beats=self._burst_beats
        )
        m.submodules.buffer = buffer = ElasticBuffer(self._layouts.burst)
        wiring.connect(m, wiring.flipped(self.i_row), splitter.i_stream)
        wiring.connect(m, splitter.o_bursts, buffer.i_stream)
        burst: Any = buffer.o_stream.payload
        issue, _ = issue_reads(
            m,
            self.axi,
            offered=buffer.o_stream.valid & self.i_room,
            address=burst.address,
            length=burst.length,
            most=self._outstanding,
        )
        m.d.comb += [
            splitter.o_plans.ready.eq(self.i_plans_ready),
            buffer.o_stream.ready.eq(issue),
        ]
        return m


class ReadsKeepAxi(wiring.Component):
    """Whatever rows come, AR keeps every rule of a manager, if R keeps those of a subordinate."""

    row: stream.Interface
    free: Signal
    memory: Signal
    reached: Signal

    def __init__(self, **sizes: int) -> None:
        self._sizes = sizes
        self._dut = _Reads(**sizes)
        super().__init__(
            {
                "row": In(self._dut.i_row.signature.flip()),
                "free": In(3),
                "memory": In(6),
                "reached": Out(3),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self._dut
        axi: Any = dut.axi
        wiring.connect(m, wiring.flipped(self.row), dut.i_row)
        row: Any = self.row.payload
        offers_stay(m, self.row.valid, self.row.ready, row.as_value())
        m.d.comb += [
            Cat(dut.i_plans_ready, dut.i_room, axi.rready).eq(self.free),
            Cat(axi.arready, axi.rvalid, axi.rlast, axi.rid, axi.rresp).eq(self.memory),
        ]
        m.submodules.checker = checker = AxiChecker(
            data_bits=self._sizes["width_bits"],
            address_bits=self._sizes["address_bits"],
            reads=self._sizes["outstanding"],
            writes=0,
        )
        watch(m, checker, axi)
        state_rules(m, checker, [Side.MANAGER, Side.CHECKER], domain="comb")
        state_rules(m, checker, [Side.SUBORDINATE], domain="comb", kind=Assume)
        # A burst of several beats waits that ends at a boundary; an open one gets its last beat.
        size = full_width_size(len(axi.rdata))
        end = axi.araddr + ((axi.arlen + 1) << size)
        at_boundary = (axi.arlen > 1) & (end[: (BOUNDARY_BYTES - 1).bit_length()] == 0)
        ends = axi.rvalid & axi.rready & axi.rlast
        m.d.comb += self.reached.eq(
            Cat(axi.arvalid & ~axi.arready & at_boundary, ends & axi.arvalid, ends & ~axi.arvalid)
        )
        return m
