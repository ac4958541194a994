"""A checker of AXI4 beside a port, and its rules as assertions of a simulation or a proof."""

from collections.abc import Callable, Collection
from typing import Any

from amaranth.hdl import Assert, Module, Value

from hw.lib.axi_checker import AxiChecker
from hw.lib.axi_rules import AxiRule, Side

__all__ = ["state_rules", "watch"]


def watch(m: Module, checker: AxiChecker, port: Any) -> None:
    """Connect a checker to a port; neither the port nor its driver sees it."""
    for name in checker.monitor.signature.members:
        m.d.comb += getattr(checker.monitor, name).eq(getattr(port, name))


def state_rules(
    m: Module,
    checker: AxiChecker,
    sides: Collection[Side] = tuple(Side),
    *,
    domain: str = "sync",
    kind: Callable[[Value, str], Any] = Assert,
) -> None:
    """State that the rules of some sides hold.

    Parameters
    ----------
    m : Module
        It gets one statement per rule, whose message names the rule.
    checker : AxiChecker
    sides : collection of Side
        All by default.
    domain : str
        ``"sync"`` in simulations, where values settle before an edge; ``"comb"`` in proofs.
    kind : callable
        ``Assert``, or ``Assume`` for what a proof expects of the environment.
    """
    for rule in AxiRule:
        if rule.side in sides:
            holds = ~checker.o_breaks[rule.value]
            m.d[domain] += kind(holds, f"{rule.name}: {rule.statement}")
