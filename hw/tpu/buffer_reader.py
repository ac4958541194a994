"""Read engine of the unified buffer, for the array and for the host."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.component import Component
from hw.lib.stream import ElasticBuffer
from hw.matrix.stationary_core import operand_layout
from hw.matrix.systolic_unit import FLAGS
from hw.tpu.tensor_config import TensorConfig

__all__ = ["Reader"]


class Reader(Component):
    """Read engine: vectors of a command in order, one per cycle if port and consumer allow.

    It requests a vector only if it has a free entry for it, so a stalled consumer never blocks the
    other reader.

    Parameters
    ----------
    config : TensorConfig

    Members
    -------
    i_start, i_order
        A command starts; needs ``o_free``.
    o_free, o_span
        A command may start; the one in progress, or the last one.
    o_holds
        A vector that was requested has not left.
    o_request, o_address, i_grant, i_vector
        Read request and address; it is granted in this cycle; the vector, one cycle later.
    o_vectors : stream of :func:`hw.matrix.stationary_core.operand_layout`
        With the flags of the order; ``last`` ends it.
    """

    i_start: Signal
    i_order: data.View[data.StructLayout]
    o_free: Signal
    o_span: data.View[data.StructLayout]
    o_holds: Signal
    o_request: Signal
    o_address: Signal
    i_grant: Signal
    i_vector: Signal
    o_vectors: stream.Interface

    def __init__(self, config: TensorConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i_start": In(1),
                "i_order": In(config.order),
                "o_free": Out(1),
                "o_span": Out(config.span),
                "o_holds": Out(1),
                "o_request": Out(1),
                "o_address": Out(range(config.buffer_rows)),
                "i_grant": In(1),
                "i_vector": In(config.vector_bits),
                "o_vectors": Out(stream.Signature(operand_layout(config.unit.array, FLAGS))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layout = operand_layout(self._config.unit.array, FLAGS)
        m.submodules.taker = taker = ElasticBuffer(layout)
        wiring.connect(m, taker.o_stream, wiring.flipped(self.o_vectors))
        span, place = self.o_span, self.o_address
        fetch = self.i_grant
        last = place + 1 == span.end
        # `held`: vectors requested that have not left; the output buffer has two entries.
        held = Signal(range(3))
        leaves = self.o_vectors.valid & self.o_vectors.ready
        arrives = Signal()
        fields = data.StructLayout({"last": 1, "accumulate": 1, "finish": 1})
        marks: Any = Signal(fields)
        command: Any = Signal(fields)
        m.d.comb += [
            self.o_holds.eq(held != 0),
            self.o_request.eq(span.busy & ((held != 2) | leaves)),
            self.o_free.eq(~span.busy | (fetch & last)),
            taker.i_stream.valid.eq(arrives),
            taker.i_stream.payload.data.eq(self.i_vector),
        ]
        for name in fields.members:
            m.d.comb += taker.i_stream.payload[name].eq(marks[name])
        m.d.sync += [held.eq(held + fetch - leaves), arrives.eq(fetch)]
        with m.If(fetch):
            m.d.sync += [
                place.eq(place + 1),
                marks.accumulate.eq(command.accumulate),
                marks.finish.eq(command.finish),
                marks.last.eq(last),
            ]
            with m.If(last):
                m.d.sync += span.busy.eq(0)
        with m.If(self.i_start):
            m.d.sync += [
                span.busy.eq(1),
                span.address.eq(self.i_order.address),
                span.end.eq(self.i_order.end),
                place.eq(self.i_order.address),
                command.accumulate.eq(self.i_order.accumulate),
                command.finish.eq(self.i_order.finish),
            ]
        return m
