"""Instruction sequencer of a tensor unit: in-order start with hazard checks on the buffer."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hw.arch.tensor_instructions import Fault, Opcode
from hw.lib.component import Component
from hw.tpu.buffer_writer import ACTIVATES
from hw.tpu.tensor_config import TensorConfig

__all__ = ["STATUS", "Sequencer"]

#: Layout of the status: fault of the next instruction, and number of instructions before it.
STATUS = data.StructLayout({"fault": 4, "begun": 32})

_FLOAT_ONE = 0x3F800000


class Sequencer(Component):
    """Instruction sequencer: in-order start, overlapped execution, address-overlap hazard checks.

    A program gives the same results as if each command ended before the next began.

    Parameters
    ----------
    config : TensorConfig

    Members
    -------
    i_orders : stream of :attr:`TensorConfig.order`
    o_order
        The command that starts.
    o_start, i_free
        For each of `ENGINES`: a command starts; the engine may start one.
    i_read_host, i_multiply, i_write_host, i_activates
        Commands in progress, as spans; of the multiply engine also the last one.
    relu, scale, shift
        Output-stage settings of the results to come.
    status
    """

    i_orders: stream.Interface
    o_order: data.View[data.StructLayout]
    o_start: data.View[data.StructLayout]
    i_free: data.View[data.StructLayout]
    i_read_host: data.View[data.StructLayout]
    i_multiply: data.View[data.StructLayout]
    i_write_host: data.View[data.StructLayout]
    i_activates: data.View[data.ArrayLayout]
    relu: Signal
    scale: Signal
    shift: Signal
    status: data.View[data.StructLayout]

    def __init__(self, config: TensorConfig) -> None:
        self._config = config
        engines = data.StructLayout(
            dict.fromkeys(("read_host", "multiply", "activate", "write_host"), 1)
        )
        super().__init__(
            {
                "i_orders": In(stream.Signature(config.order)),
                "o_order": Out(config.order),
                "o_start": Out(engines),
                "i_free": In(engines),
                "i_read_host": In(config.span),
                "i_multiply": In(config.span),
                "i_write_host": In(config.span),
                "i_activates": In(data.ArrayLayout(config.span, ACTIVATES)),
                "relu": Out(1),
                "scale": Out(32),
                "shift": Out(6),
                "status": Out(STATUS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        order = self.i_orders.payload
        one = 1 if self._config.unit.integer_only else _FLOAT_ONE
        scale = Signal(32, init=one)
        m.d.comb += [self.o_order.eq(order), self.scale.eq(scale)]
        # Rows of partial sums left in the accumulators; rows of results due next; 0 for none.
        rows_left, rows_due = (
            Signal(self._config.order.members["rows"], name=name)
            for name in ("rows_left", "rows_due")
        )
        fault, waits, start = Signal(Fault), Signal(), Signal()
        halted = self.status.fault != Fault.NONE
        self._find_hazard(m, waits)
        self._find_fault(m, fault, rows_left, rows_due)
        m.d.comb += [
            start.eq(self.i_orders.valid & ~halted & (fault == Fault.NONE) & ~waits),
            self.i_orders.ready.eq(start),
        ]
        with m.If(self.i_orders.valid & ~halted):
            m.d.sync += self.status.fault.eq(fault)
        with m.If(start):
            m.d.sync += self.status.begun.eq(self.status.begun + 1)
            with m.Switch(order.opcode):
                with m.Case(Opcode.READ_HOST):
                    m.d.comb += self.o_start.read_host.eq(1)
                with m.Case(Opcode.MULTIPLY):
                    m.d.comb += self.o_start.multiply.eq(1)
                    m.d.sync += [
                        rows_left.eq(Mux(order.finish, 0, order.rows)),
                        rows_due.eq(Mux(order.finish, order.rows, 0)),
                    ]
                with m.Case(Opcode.ACTIVATE):
                    m.d.comb += self.o_start.activate.eq(1)
                    m.d.sync += rows_due.eq(0)
                with m.Case(Opcode.WRITE_HOST):
                    m.d.comb += self.o_start.write_host.eq(1)
                with m.Case(Opcode.CONFIGURE):
                    m.d.sync += [
                        self.relu.eq(order.relu),
                        scale.eq(order.scale),
                        self.shift.eq(order.shift),
                    ]
        return m

    def _meets(self, span: data.View[data.StructLayout]) -> Value:
        """Whether the next command's addresses overlap a span's."""
        order = self.i_orders.payload
        overlap: Value = (order.address < span.end) & (span.address < order.end)
        return overlap

    def _find_hazard(self, m: Module, waits: Signal) -> None:
        """Commands in progress that write (host, results) or read (host, array) the same rows."""
        filling = self.i_read_host.busy & self._meets(self.i_read_host)
        activates = [self.i_activates[index] for index in range(ACTIVATES)]
        activating = Cat(span.busy & self._meets(span) for span in activates).any()
        draining = self.i_write_host.busy & self._meets(self.i_write_host)
        multiplying = self.i_multiply.busy & self._meets(self.i_multiply)
        with m.Switch(self.i_orders.payload.opcode):
            with m.Case(Opcode.READ_HOST):
                m.d.comb += waits.eq(~self.i_free.read_host | activating | draining | multiplying)
            with m.Case(Opcode.MULTIPLY):
                m.d.comb += waits.eq(~self.i_free.multiply | filling | activating)
            with m.Case(Opcode.ACTIVATE):
                m.d.comb += waits.eq(~self.i_free.activate | filling | draining)
            with m.Case(Opcode.WRITE_HOST):
                m.d.comb += waits.eq(~self.i_free.write_host | filling | activating)
            with m.Case(Opcode.CONFIGURE):
                # The results of an activate in progress still need the old settings.
                m.d.comb += waits.eq(Cat(span.busy for span in activates).any())

    def _find_fault(self, m: Module, fault: Signal, rows_left: Signal, rows_due: Signal) -> None:
        """Fault of the next command, also in the light of the commands before it."""
        order = self.i_orders.payload
        m.d.comb += fault.eq(order.fault)
        with m.If(order.fault == Fault.NONE):
            with m.If((rows_due != 0) != (order.opcode == Opcode.ACTIVATE)):
                m.d.comb += fault.eq(Fault.ORDER)
            with m.Elif(order.opcode == Opcode.ACTIVATE):
                # Deadlock otherwise: results written where their multiply still reads would wait
                # for it, and it for them.
                with m.If(rows_due != order.rows):
                    m.d.comb += fault.eq(Fault.ROWS)
                with m.Elif(self._meets(self.i_multiply)):
                    m.d.comb += fault.eq(Fault.OVERLAP)
            with m.Elif((order.opcode == Opcode.MULTIPLY) & order.accumulate):
                with m.If(rows_left == 0):
                    m.d.comb += fault.eq(Fault.ORDER)
                with m.Elif(rows_left != order.rows):
                    m.d.comb += fault.eq(Fault.ROWS)
