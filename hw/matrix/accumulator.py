"""Accumulator RAM of one array column: two banks, one accumulating while the other drains."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import memory
from amaranth.lib.wiring import In, Out

from hw.lib.component import Component

__all__ = ["AccumulatorColumn"]


class AccumulatorColumn(Component):
    """Ping-pong accumulator RAM of one column: two banks of ``rows`` 32-bit partial sums.

    Each bank has one read and one write port. The array uses one bank while the other is drained; a
    read takes one cycle. A read of a row in the cycle of its write gives the old sum.

    Parameters
    ----------
    rows : int
        Partial sums per bank.

    Members
    -------
    i_read_bank, i_read_row, o_sum
        Partial sum for the top of the column, one cycle after its address.
    i_write_enable, i_write_bank, i_write_row, i_write_sum
        Partial sum that leaves the column.
    i_drain_active, i_drain_bank, i_drain_enable, i_drain_row, o_drained
        While active, the bank belongs to the drain. ``o_drained`` follows one cycle after an
        enabled address and holds its value until the next.
    """

    i_read_bank: Signal
    i_read_row: Signal
    o_sum: Signal
    i_write_enable: Signal
    i_write_bank: Signal
    i_write_row: Signal
    i_write_sum: Signal
    i_drain_active: Signal
    i_drain_bank: Signal
    i_drain_enable: Signal
    i_drain_row: Signal
    o_drained: Signal

    def __init__(self, *, rows: int) -> None:
        self._rows = rows
        super().__init__(
            {
                "i_read_bank": In(1),
                "i_read_row": In(range(rows)),
                "o_sum": Out(32),
                "i_write_enable": In(1),
                "i_write_bank": In(1),
                "i_write_row": In(range(rows)),
                "i_write_sum": In(32),
                "i_drain_active": In(1),
                "i_drain_bank": In(1),
                "i_drain_enable": In(1),
                "i_drain_row": In(range(rows)),
                "o_drained": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        data = []
        for index in range(2):
            bank: memory.Memory = memory.Memory(shape=32, depth=self._rows, init=[])
            m.submodules[f"bank_{index}"] = bank
            write = bank.write_port()
            read = bank.read_port(domain="sync")
            drained = self.i_drain_active & (self.i_drain_bank == index)
            m.d.comb += [
                write.addr.eq(self.i_write_row),
                write.data.eq(self.i_write_sum),
                write.en.eq(self.i_write_enable & (self.i_write_bank == index)),
                read.addr.eq(Mux(drained, self.i_drain_row, self.i_read_row)),
                read.en.eq(~drained | self.i_drain_enable),
            ]
            data.append(read.data)
        read_bank = Signal()
        m.d.sync += read_bank.eq(self.i_read_bank)
        m.d.comb += [
            self.o_sum.eq(Mux(read_bank, data[1], data[0])),
            self.o_drained.eq(Mux(self.i_drain_bank, data[1], data[0])),
        ]
        return m
