"""Read multiplexer: two AXI4 read managers on one port, told apart by ID."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hw.lib.axi import Axi4ReadInterface, Axi4ReadSignature
from hw.lib.component import Component

__all__ = ["ReadMux"]

_ADDRESS = ("araddr", "arprot", "arlen", "arsize", "arburst", "arcache")
_DATA = ("rdata", "rresp", "rlast")


class ReadMux(Component):
    """Read multiplexer: bursts of both managers, each with the manager's number as ID.

    The second goes first. Data of the two may come in any order and interleaved.

    Parameters
    ----------
    data_bits, address_bits : int
        Those of the ports.

    Members
    -------
    i_managers : two read halves of an AXI4 port, seen from memory
    axi : read half of an AXI4 manager port
    """

    i_managers: tuple[Axi4ReadInterface, Axi4ReadInterface]
    axi: Axi4ReadInterface

    def __init__(self, *, data_bits: int, address_bits: int) -> None:
        port = Axi4ReadSignature(data_bits=data_bits, address_bits=address_bits)
        super().__init__({"i_managers": In(port).array(2), "axi": Out(port)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi = self.axi
        boxes, others = self.i_managers
        # What has been shown stays until it is taken.
        held = Signal()
        former = Signal()
        second = Signal()
        m.d.comb += [
            second.eq(Mux(held, former, others.arvalid)),
            axi.arvalid.eq(Mux(second, others.arvalid, boxes.arvalid)),
            axi.arid.eq(second),
            boxes.arready.eq(axi.arready & ~second),
            others.arready.eq(axi.arready & second),
            axi.rready.eq(Mux(axi.rid[0], others.rready, boxes.rready)),
            *(
                getattr(axi, name).eq(Mux(second, getattr(others, name), getattr(boxes, name)))
                for name in _ADDRESS
            ),
        ]
        m.d.sync += [held.eq(axi.arvalid & ~axi.arready), former.eq(second)]
        for number, manager in enumerate(self.i_managers):
            m.d.comb += [
                manager.rvalid.eq(axi.rvalid & (axi.rid[0] == number)),
                manager.rid.eq(Const(0)),
                *(getattr(manager, name).eq(getattr(axi, name)) for name in _DATA),
            ]
        return m
