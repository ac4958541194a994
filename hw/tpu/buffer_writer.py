"""Write engines of the unified buffer: vectors of the host, and results."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hw.lib.component import Component
from hw.matrix.output_stage import result_layout
from hw.tpu.tensor_config import TensorConfig

__all__ = ["ACTIVATES", "HostWriter", "ResultWriter"]

#: Activates in progress at once: the array continues while results of small tiles still come.
ACTIVATES = 4


class HostWriter(Component):
    """Write engine for vectors of the host, at the addresses of a command.

    Parameters
    ----------
    config : TensorConfig

    Members
    -------
    i_start, i_order, o_free, o_span
        As of :class:`hw.tpu.buffer_reader.Reader`.
    i_host : stream of vectors
    i_port
        The write port of the buffer is free.
    o_write, o_address
        The vector of the host is written in this cycle; its address.
    """

    i_start: Signal
    i_order: data.View[data.StructLayout]
    o_free: Signal
    o_span: data.View[data.StructLayout]
    i_host: stream.Interface
    i_port: Signal
    o_write: Signal
    o_address: Signal

    def __init__(self, config: TensorConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i_start": In(1),
                "i_order": In(config.order),
                "o_free": Out(1),
                "o_span": Out(config.span),
                "i_host": In(stream.Signature(config.vector_bits)),
                "i_port": In(1),
                "o_write": Out(1),
                "o_address": Out(range(config.buffer_rows)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        span, place = self.o_span, self.o_address
        last = place + 1 == span.end
        m.d.comb += [
            self.i_host.ready.eq(span.busy & self.i_port),
            self.o_write.eq(self.i_host.valid & self.i_host.ready),
            self.o_free.eq(~span.busy | (self.o_write & last)),
        ]
        with m.If(self.o_write):
            m.d.sync += place.eq(place + 1)
            with m.If(last):
                m.d.sync += span.busy.eq(0)
        with m.If(self.i_start):
            m.d.sync += [
                span.busy.eq(1),
                span.address.eq(self.i_order.address),
                span.end.eq(self.i_order.end),
                place.eq(self.i_order.address),
            ]
        return m


class ResultWriter(Component):
    """Write engine for rows of results; up to `ACTIVATES` commands wait in order.

    A row is written to one slot of a vector, with zeros in all later slots, or to several vectors,
    ``rows`` apart.

    Parameters
    ----------
    config : TensorConfig

    Members
    -------
    i_start, i_order, o_free
        As of :class:`hw.tpu.buffer_reader.Reader`.
    o_spans
        Commands in progress.
    i_result : stream of `result_layout`
    o_write, o_address, o_data
        Write enable per granule, address and data.
    """

    i_start: Signal
    i_order: data.View[data.StructLayout]
    o_free: Signal
    o_spans: data.View[data.ArrayLayout]
    i_result: stream.Interface
    o_write: Signal
    o_address: Signal
    o_data: Signal

    def __init__(self, config: TensorConfig) -> None:
        self._config = config
        columns = config.unit.array.columns
        super().__init__(
            {
                "i_start": In(1),
                "i_order": In(config.order),
                "o_free": Out(1),
                "o_spans": Out(data.ArrayLayout(config.span, ACTIVATES)),
                "i_result": In(stream.Signature(result_layout(columns, config.format.bits))),
                "o_write": Out(config.sizes.elements // config.granule),
                "o_address": Out(range(config.buffer_rows)),
                "o_data": Out(config.vector_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        parts = config.sizes.parts
        begun = Signal(range(ACTIVATES))
        done = Signal(range(ACTIVATES))
        commands: Any = Signal(data.ArrayLayout(config.order, ACTIVATES))
        command: Any = Signal(config.order)
        busy = Signal()
        row, part = Signal(config.order.members["rows"]), Signal(range(max(2, parts)))
        offset = Signal(range(config.buffer_rows + 1))
        writes = Signal()
        last_part = part == parts - 1
        last = last_part & (row + 1 == command.rows)
        m.d.comb += [
            command.eq(commands[done]),
            busy.eq(self.o_spans[done].busy),
            writes.eq(busy & self.i_result.valid),
            self.i_result.ready.eq(busy & last_part),
            self.o_address.eq(command.address + offset),
            self.o_free.eq(~self.o_spans[begun].busy),
        ]
        with m.If(writes):
            m.d.sync += [
                part.eq(Mux(last_part, 0, part + 1)),
                row.eq(row + last_part),
                offset.eq(Mux(last_part, row + 1, offset + command.rows)),
            ]
            with m.If(last):
                m.d.sync += [
                    row.eq(0),
                    offset.eq(0),
                    done.eq(done + 1),
                    self.o_spans[done].busy.eq(0),
                ]
        with m.If(self.i_start):
            m.d.sync += [
                commands[begun].eq(self.i_order),
                begun.eq(begun + 1),
                self.o_spans[begun].busy.eq(1),
                self.o_spans[begun].address.eq(self.i_order.address),
                self.o_spans[begun].end.eq(self.i_order.end),
            ]
        data_, enables = self._placed(command.slot, part)
        m.d.comb += [self.o_data.eq(data_), self.o_write.eq(Mux(writes, enables, 0))]
        return m

    def _placed(self, slot: Value, part: Value) -> tuple[Value, Value]:
        """Vector of a row of results, and its write enables per granule."""
        config, sizes = self._config, self._config.sizes
        row = self.i_result.payload.data
        granules = sizes.elements // config.granule
        if sizes.parts > 1:
            return row.word_select(part, config.vector_bits), Const((1 << granules) - 1, granules)
        if sizes.slots == 1:
            return row, Const((1 << granules) - 1, granules)
        step = sizes.columns // config.granule
        data_ = Cat(Mux(slot == index, row, 0)[: len(row)] for index in range(sizes.slots))
        # Slot of each granule; those of the last slot and beyond are always written.
        firsts = [granule // step for granule in range(granules)]
        last = sizes.slots - 1
        return data_, Cat(Const(1) if each >= last else slot <= each for each in firsts)
