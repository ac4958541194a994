"""AXI4 port of a TMA unit: boxes, descriptors and replaced fields on one AXI4 port."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.arch.tma_sizes import TmaSizes
from hw.emit.shared import shared
from hw.lib.axi import (
    Axi4Interface,
    Axi4ReadInterface,
    Axi4ReadSignature,
    Axi4Signature,
    Axi4WriteInterface,
    Axi4WriteSignature,
)
from hw.lib.component import Component
from hw.tma.load import id_bits_of
from hw.tma.standalone.axi_attributes import AxiAttributes
from hw.tma.standalone.read_mux import ReadMux
from hw.tma.standalone.write_mux import WriteMux

__all__ = ["UnitPort"]


class UnitPort(Component):
    """AXI4 port of a unit, shared by its managers, with the attributes of its bursts.

    Parameters
    ----------
    sizes : TmaSizes
    attributes : AxiAttributes
        Of all bursts.

    Members
    -------
    i_boxes : AXI4 port, seen from memory
        Of the engine.
    i_descriptors : read half of an AXI4 port, seen from memory
    i_fields : write half of an AXI4 port, seen from memory
    i_asks, o_granted
        As of :class:`hw.tma.standalone.write_mux.WriteMux`.
    axi : AXI4 manager port
    """

    i_boxes: Axi4Interface
    i_descriptors: Axi4ReadInterface
    i_fields: Axi4WriteInterface
    i_asks: Signal
    o_granted: Signal
    axi: Axi4Interface

    def __init__(self, sizes: TmaSizes, attributes: AxiAttributes) -> None:
        self._sizes = sizes
        self._attributes = attributes
        port = {"data_bits": sizes.width_bits, "address_bits": sizes.address_bits}
        super().__init__(
            {
                "i_boxes": In(Axi4Signature(**port, id_bits=id_bits_of(sizes.read_ids))),
                "i_descriptors": In(Axi4ReadSignature(**port)),
                "i_fields": In(Axi4WriteSignature(**port)),
                "i_asks": In(1),
                "o_granted": Out(1),
                "axi": Out(Axi4Signature(**port, id_bits=attributes.id_bits(sizes), qos_bits=4)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sizes = self._sizes
        port = {"data_bits": sizes.width_bits, "address_bits": sizes.address_bits}
        reads = ReadMux(**port, read_ids=sizes.read_ids)
        writes = WriteMux(**port, id_bits=sizes.id_bits)
        m.submodules.reads = shared(reads)
        m.submodules.writes = shared(writes)
        wiring.connect(m, wiring.flipped(self.i_descriptors), reads.i_descriptors)
        wiring.connect(m, wiring.flipped(self.i_fields), writes.i_fields)
        m.d.comb += [writes.i_asks.eq(self.i_asks), self.o_granted.eq(writes.o_granted)]
        _join(m, wiring.flipped(self.i_boxes), reads.i_boxes)
        _join(m, wiring.flipped(self.i_boxes), writes.i_stores)
        for manager in (reads.axi, writes.axi):
            self._drive_port(m, manager)
        return m

    def _drive_port(self, m: Module, manager: Any) -> None:
        """Connect a half of the port, with the attributes of its bursts."""
        attributes = self._attributes
        _join(m, manager, self.axi)
        for wire, value in attributes.constants.items():
            if f"{wire[:2]}valid" in manager.signature.members:
                m.d.comb += getattr(self.axi, wire).eq(value)
        for wire in ("arid", "awid"):
            if wire in manager.signature.members:
                # A multiple of the number of IDs: the low bits of answers are the unit's.
                m.d.comb += getattr(self.axi, wire).eq(getattr(manager, wire) | attributes.first_id)


def _join(m: Module, manager: Any, port: Any) -> None:
    """Connect a manager to a port, as far as both have the wires."""
    for wire, member in manager.signature.members.items():
        if wire in port.signature.members:
            inner, outer = getattr(manager, wire), getattr(port, wire)
            m.d.comb += outer.eq(inner) if member.flow == Out else inner.eq(outer)
