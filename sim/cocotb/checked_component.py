"""A component with a checker of AXI4 beside its memory port, as the design of a testbench."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import Out

from hw.emit.shared import shared
from hw.lib.axi_assertions import watch
from hw.lib.axi_checker import AxiChecker
from hw.lib.axi_rules import AxiRule
from hw.lib.component import Component

__all__ = ["CheckedComponent"]


class CheckedComponent(Component):
    """Component with the ports of another one, which has a port ``axi``, and a checker beside it.

    Parameters
    ----------
    component : Component
        Component with a whole AXI4 port ``axi``.
    outstanding : int
        Most bursts outstanding, of reads and of writes each.

    Members
    -------
    every member of the component
    o_broken
        The checker's (:class:`hw.lib.axi_checker.AxiChecker`).
    """

    axi: Any
    o_broken: Signal

    def __init__(self, component: Component, *, outstanding: int) -> None:
        self._component: Any = component
        self._outstanding = outstanding
        super().__init__(
            {**component.signature.members, "o_broken": Out(len(AxiRule))},
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """Name of the component's definition, which states its parameters, and the bound."""
        return {"of": self._component.definition_name, "outstanding": self._outstanding}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        inner = self._component
        m.submodules.component = shared(inner)
        ports = zip(inner.signature.flatten(inner), inner.signature.flatten(self), strict=True)
        for (_, member, within), (_, _, outside) in ports:
            pair = (outside, within) if member.flow == Out else (within, outside)
            m.d.comb += pair[0].eq(pair[1])
        checker = AxiChecker(
            data_bits=len(self.axi.rdata),
            address_bits=len(self.axi.araddr),
            id_bits=len(self.axi.arid),
            qos_bits=4 * hasattr(self.axi, "arqos"),
            reads=self._outstanding,
            writes=self._outstanding,
        )
        m.submodules.checker = shared(checker)
        watch(m, checker, self.axi)
        m.d.comb += self.o_broken.eq(checker.o_broken)
        return m
