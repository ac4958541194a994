"""Read multiplexer: two AXI4 read managers on one port, distinguished by ID."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hw.lib.axi import Axi4ReadInterface, Axi4ReadSignature
from hw.lib.component import Component

__all__ = ["ReadMux"]

_ADDRESS = ("araddr", "arprot", "arlen", "arsize", "arburst", "arcache")
_DATA = ("rdata", "rresp", "rlast")


class ReadMux(Component):
    """Read multiplexer: bursts of both managers, with the manager's number above their own ID.

    A manager of one ID has none of its own, so the two have IDs 0 and 1.

    The second goes first. Data of the two may come in any order and interleaved.

    Parameters
    ----------
    data_bits, address_bits : int
        Those of the ports.
    read_ids : int
        IDs of the first manager.

    Members
    -------
    i_boxes, i_descriptors : read halves of an AXI4 port, seen from memory
        The first and the second manager.
    axi : read half of an AXI4 manager port
    """

    i_boxes: Axi4ReadInterface
    i_descriptors: Axi4ReadInterface
    axi: Axi4ReadInterface

    def __init__(self, *, data_bits: int, address_bits: int, read_ids: int = 1) -> None:
        self._own_bits = read_ids.bit_length() - 1
        port = {"data_bits": data_bits, "address_bits": address_bits}
        super().__init__(
            {
                "i_boxes": In(Axi4ReadSignature(**port, id_bits=max(1, self._own_bits))),
                "i_descriptors": In(Axi4ReadSignature(**port)),
                "axi": Out(Axi4ReadSignature(**port, id_bits=self._own_bits + 1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi = self.axi
        boxes, others, own = self.i_boxes, self.i_descriptors, self._own_bits
        # What has been shown stays until it is taken.
        held = Signal()
        former = Signal()
        second = Signal()
        m.d.comb += [
            second.eq(Mux(held, former, others.arvalid)),
            axi.arvalid.eq(Mux(second, others.arvalid, boxes.arvalid)),
            axi.arid.eq(Cat(Mux(second, 0, boxes.arid)[:own], second)),
            boxes.arready.eq(axi.arready & ~second),
            others.arready.eq(axi.arready & second),
            axi.rready.eq(Mux(axi.rid[own], others.rready, boxes.rready)),
            *(
                getattr(axi, name).eq(Mux(second, getattr(others, name), getattr(boxes, name)))
                for name in _ADDRESS
            ),
        ]
        m.d.sync += [held.eq(axi.arvalid & ~axi.arready), former.eq(second)]
        for number, manager in enumerate((boxes, others)):
            m.d.comb += [
                manager.rvalid.eq(axi.rvalid & (axi.rid[own] == number)),
                manager.rid.eq(Const(0) if number else axi.rid[:own]),
                *(getattr(manager, name).eq(getattr(axi, name)) for name in _DATA),
            ]
        return m
