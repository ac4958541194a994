"""A design with a checker of AXI4 beside its port, for Amaranth's simulator."""

from amaranth.hdl import Elaboratable, Module

from hw.lib.axi_assertions import state_rules, watch
from hw.lib.axi_checker import AxiChecker

__all__ = ["CheckedPort"]


class CheckedPort(Elaboratable):
    """A design of which one port is checked: the first broken rule ends the simulation.

    ``outstanding`` is the most bursts outstanding of each side that the port has.
    """

    def __init__(self, design, axi, *, outstanding):
        self.design = design
        self.axi = axi
        self.reads = outstanding * hasattr(axi, "arvalid")
        self.writes = outstanding * hasattr(axi, "awvalid")

    def elaborate(self, platform):
        m = Module()
        axi = self.axi
        m.submodules.design = self.design
        address, data, id = (
            (axi.araddr, axi.rdata, axi.arid) if self.reads else (axi.awaddr, axi.wdata, axi.awid)
        )
        m.submodules.checker = checker = AxiChecker(
            data_bits=len(data),
            address_bits=len(address),
            id_bits=len(id),
            reads=self.reads,
            writes=self.writes,
            qos_bits=4 * (hasattr(axi, "arqos") or hasattr(axi, "awqos")),
        )
        watch(m, checker, axi)
        state_rules(m, checker)
        return m
