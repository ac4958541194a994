"""Write multiplexer: an engine's stores and single bursts of a second manager on one port."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hw.lib.axi import Axi4WriteInterface, Axi4WriteSignature
from hw.lib.component import Component

__all__ = ["WriteMux"]

_ADDRESS = ("awvalid", "awaddr", "awprot", "awlen", "awsize", "awburst", "awcache")
_DATA = ("wvalid", "wdata", "wstrb", "wlast")


class WriteMux(Component):
    """Write multiplexer: the first manager's bursts have ID 0, those of the second ID 1.

    The second has the port only while it asks for it and nothing of the first is on the port: no
    address, no data, and no burst of which the one or the other is still to come.

    Parameters
    ----------
    data_bits, address_bits, id_bits : int
        Those of the port; those of the managers are one bit wide.

    Members
    -------
    i_stores, i_fields : write halves of an AXI4 port, seen from memory
    i_asks, o_granted
        The second manager wants the port, and has it while it does.
    axi : write half of an AXI4 manager port
    """

    i_stores: Axi4WriteInterface
    i_fields: Axi4WriteInterface
    i_asks: Signal
    o_granted: Signal
    axi: Axi4WriteInterface

    def __init__(self, *, data_bits: int, address_bits: int, id_bits: int) -> None:
        widths = {"data_bits": data_bits, "address_bits": address_bits}
        port = Axi4WriteSignature(**widths)
        super().__init__(
            {
                "i_stores": In(port),
                "i_fields": In(port),
                "i_asks": In(1),
                "o_granted": Out(1),
                "axi": Out(Axi4WriteSignature(**widths, id_bits=id_bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi, stores, fields = self.axi, self.i_stores, self.i_fields
        granted = self.o_granted
        # Bursts whose address has been taken and whose data have not, or the other way round.
        ahead = Signal(range(-256, 257))
        begun = Signal()  # a burst's first beat is taken, its last is not
        quiet = ~stores.awvalid & ~stores.wvalid & (ahead == 0) & ~begun
        address = stores.awvalid & stores.awready
        beat = stores.wvalid & stores.wready
        m.d.sync += ahead.eq(ahead + address - (beat & stores.wlast))
        with m.If(beat):
            m.d.sync += begun.eq(~stores.wlast)
        second = axi.bvalid & axi.bid[0]
        m.d.sync += granted.eq(self.i_asks & (granted | quiet))
        m.d.comb += [
            *(
                getattr(axi, name).eq(Mux(granted, getattr(fields, name), getattr(stores, name)))
                for name in (*_ADDRESS, *_DATA)
            ),
            axi.awid.eq(granted),
            axi.bready.eq(Mux(second, fields.bready, stores.bready)),
        ]
        for number, manager in enumerate((stores, fields)):
            mine = granted == number
            m.d.comb += [
                manager.awready.eq(axi.awready & mine),
                manager.wready.eq(axi.wready & mine),
                manager.bvalid.eq(axi.bvalid & (axi.bid[0] == number)),
                manager.bresp.eq(axi.bresp),
                manager.bid.eq(Const(0)),
            ]
        return m
