"""Property of the interlock of reducing stores: one holder per page, and each in its turn."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from gen.properties.support import always, given
from hw.tma.reduction.reduction_interlock import PAGE_SHIFT, ReductionInterlock

__all__ = ["PagesHaveOneHolder"]


class PagesHaveOneHolder(wiring.Component):
    """Whatever ports ask for, for as long as they like: no two hold a page, and none is overtaken.

    A port that asks waits for those alone that asked for the page before it. When the last of them
    has given it back, the page is granted within two cycles. So if every holder gives its page
    back, each port is granted, after at most ``ports`` - 1 others. A holder keeps its page.

    Parameters
    ----------
    ports, page_bits : int
        Of the interlock.
    """

    asks: Signal
    pages: Any
    reached: Signal

    def __init__(self, *, ports: int, page_bits: int) -> None:
        self._ports = ports
        self._page_bits = page_bits
        super().__init__(
            {
                "asks": In(ports),
                "pages": In(data.ArrayLayout(page_bits, ports)),
                "reached": Out(4),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ports = range(self._ports)
        dut = ReductionInterlock(ports=self._ports, address_bits=PAGE_SHIFT + self._page_bits)
        m.submodules.dut = dut
        asked, held = Signal(self._ports), Signal(self._ports)
        holds = Cat(self.asks[i] & dut.i_ports[i].granted for i in ports)
        m.d.sync += [asked.eq(self.asks), held.eq(holds)]
        behind_all = Signal(self._ports)
        for i, port in enumerate(dut.i_ports):
            page, former = self.pages[i], Signal(self._page_bits, name=f"former{i}")
            m.d.sync += former.eq(page)
            # Ports that asked before this one and have not stopped since.
            before = Signal(self._ports, name=f"before{i}")
            earlier = Signal(self._ports, name=f"earlier{i}")
            with m.If(asked[i]):
                m.d.comb += earlier.eq(before & self.asks)
            with m.Else():
                others = (1 << self._ports) - 1 - (1 << i)
                lower = (1 << i) - 1
                m.d.comb += earlier.eq(self.asks & (asked | lower) & others)
            m.d.sync += before.eq(earlier)
            rivals = Cat(earlier[j] & (self.pages[j] == page) for j in ports)
            # Cycles in which it has waited for no other.
            alone = Signal(2, name=f"alone{i}")
            with m.If(~self.asks[i] | rivals.any()):
                m.d.sync += alone.eq(0)
            with m.Elif(alone != 2):
                m.d.sync += alone.eq(alone + 1)
            m.d.comb += [
                port.asks.eq(self.asks[i]),
                port.page.eq(page),
                given(~(self.asks[i] & asked[i]) | (page == former)),
                always(~holds[i] | ~rivals.any()),
                always(~self.asks[i] | ~held[i] | holds[i]),
                always(~self.asks[i] | (alone != 2) | holds[i]),
                *(always(~(holds[i] & holds[j]) | (page != self.pages[j])) for j in range(i)),
                behind_all[i].eq(self.asks[i] & (rivals | 1 << i).all()),
            ]
        m.d.comb += self.reached.eq(
            Cat(
                behind_all.any(),
                holds.all(),
                holds[0] & self.asks[1] & ~holds[1],
                holds[self._ports - 1] & self.asks[0] & ~holds[0],
            )
        )
        return m
