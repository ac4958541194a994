"""Read turns: two AXI4 read managers on one port and one ID, a burst at a time."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hw.lib.axi import Axi4ReadInterface, Axi4ReadSignature, read_constants
from hw.lib.component import Component

__all__ = ["ReadTurns"]


class ReadTurns(Component):
    """Read turns: one burst at a time, of the two managers in turn if both have one.

    Parameters
    ----------
    data_bits, address_bits : int
        Those of the ports, whose IDs are 0.

    Members
    -------
    i_first, i_second : read halves of an AXI4 port, seen from memory
    axi : read half of an AXI4 manager port
    """

    i_first: Axi4ReadInterface
    i_second: Axi4ReadInterface
    axi: Axi4ReadInterface

    def __init__(self, *, data_bits: int, address_bits: int) -> None:
        port = Axi4ReadSignature(data_bits=data_bits, address_bits=address_bits)
        super().__init__({"i_first": In(port), "i_second": In(port), "axi": Out(port)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi, first, second = self.axi, self.i_first, self.i_second
        busy, held = Signal(), Signal()
        owner = Signal()  # whose burst is open, or was the last one, or is on AR
        turn = Signal()
        m.d.comb += read_constants(axi)
        m.d.comb += [
            turn.eq(Mux(held, owner, second.arvalid & (~first.arvalid | ~owner))),
            axi.arvalid.eq(Mux(turn, second.arvalid, first.arvalid) & ~busy),
            axi.araddr.eq(Mux(turn, second.araddr, first.araddr)),
            axi.arlen.eq(Mux(turn, second.arlen, first.arlen)),
            axi.rready.eq(Mux(owner, second.rready, first.rready)),
        ]
        with m.If(axi.arvalid):
            m.d.sync += [owner.eq(turn), held.eq(~axi.arready), busy.eq(axi.arready)]
        with m.If(axi.rvalid & axi.rready & axi.rlast):
            m.d.sync += busy.eq(0)
        for number, manager in enumerate((first, second)):
            m.d.comb += [
                manager.arready.eq(axi.arready & ~busy & (turn == number)),
                manager.rvalid.eq(axi.rvalid & (owner == number)),
                manager.rdata.eq(axi.rdata),
                manager.rresp.eq(axi.rresp),
                manager.rlast.eq(axi.rlast),
            ]
        return m
