"""Interlock of reducing stores: no two units hold the same page of memory."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.arch import limits
from hw.arch.errors import BadInputError, shown
from hw.lib.axi import BOUNDARY_BYTES
from hw.lib.component import Component

__all__ = ["PAGE_SHIFT", "ReductionInterlock", "interlock_signature"]

#: log2 of the bytes of a page, which no burst leaves.
PAGE_SHIFT = (BOUNDARY_BYTES - 1).bit_length()


def interlock_signature(address_bits: int) -> wiring.Signature:
    """Port of a unit at the interlock: it ``asks`` for a page until it needs it no more.

    The page stays while it asks, and it asks for no cycle between two pages. It holds the page
    while it asks and the page is ``granted``.
    """
    return wiring.Signature(
        {"asks": Out(1), "page": Out(address_bits - PAGE_SHIFT), "granted": In(1)}
    )


class ReductionInterlock(Component):
    """Interlock of reducing stores: a page has one holder; those that wait are served in order.

    A free page is granted two cycles after a port has asked for it. Who asks first is first; of
    ports that ask in the same cycle, the one of the lower number.

    Parameters
    ----------
    ports : int
        Units (`limits.INTERLOCK_PORTS`).
    address_bits : int
        Width of a byte address of memory.

    Members
    -------
    i_ports : array of :func:`interlock_signature`

    Attributes
    ----------
    seen, behind : Signal
        Ports that asked in the last cycle; ``behind[i][j]``, for i < j: port i came after port j.
        For proofs.

    Raises
    ------
    BadInputError
        If a parameter lies outside its domain.
    """

    i_ports: Sequence[Any]

    def __init__(self, *, ports: int, address_bits: int = 48) -> None:
        limits.INTERLOCK_PORTS.require("Ports of an interlock", ports)
        if not isinstance(address_bits, int) or not PAGE_SHIFT < address_bits <= 64:
            raise BadInputError(
                f"Address bits of an interlock must be an integer from {PAGE_SHIFT + 1} to 64, "
                f"not {shown(address_bits)}"
            )
        self._ports = ports
        self.seen = Signal(ports)
        self.behind = {
            (i, j): Signal(name=f"behind{i}_{j}") for j in range(ports) for i in range(j)
        }
        super().__init__({"i_ports": In(interlock_signature(address_bits)).array(ports)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        seen = self.seen
        asks = [port.asks for port in self.i_ports]
        for (i, j), behind in self.behind.items():
            with m.If(asks[i] & ~seen[i]):
                m.d.sync += behind.eq(asks[j] & seen[j])
            with m.Elif(asks[j] & ~seen[j]):
                m.d.sync += behind.eq(0)
        for i, port in enumerate(self.i_ports):
            free: Value = asks[i] & seen[i]
            for j, other in enumerate(self.i_ports):
                if i != j:
                    before = self.behind[i, j] if i < j else ~self.behind[j, i]
                    free &= ~(asks[j] & seen[j] & before & (port.page == other.page))
            m.d.sync += [seen[i].eq(asks[i]), port.granted.eq(free)]
        return m
