"""What reads vectors of the unified buffer: the array's side and the host's."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.component import Component
from hw.lib.stream import ElasticBuffer
from hw.matrix.stationary_unit import moving_layout
from hw.tpu.config import TensorConfig

__all__ = ["Reader"]


class Reader(Component):
    """Reads the vectors of a command in order, one a cycle if its port and its taker allow.

    It asks for a vector only if it has a place for it. So whoever else reads is never stopped by
    a vector that nobody takes.

    Parameters
    ----------
    config : TensorConfig

    Members
    -------
    i_start, i_order
        A command begins; needs ``o_free``.
    o_free, o_span
        A command may begin; the one that is under way, or was last.
    o_request, o_address, i_grant, i_vector
        A vector is wanted, and where it is; it is read in this cycle; it, a cycle later.
    o_vectors : stream of `moving_layout`
        With the marks of the order; ``last`` ends it.
    """

    i_start: Signal
    i_order: data.View[data.StructLayout]
    o_free: Signal
    o_span: data.View[data.StructLayout]
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
                "o_request": Out(1),
                "o_address": Out(range(config.buffer_rows)),
                "i_grant": In(1),
                "i_vector": In(config.vector_bits),
                "o_vectors": Out(stream.Signature(moving_layout(config.unit.array))),
            }
        )

    @property
    def definition_name(self) -> str:
        """Name of the shared module."""
        return f"reader_{self._config.name}"

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layout = moving_layout(self._config.unit.array)
        m.submodules.taker = taker = ElasticBuffer(layout)
        wiring.connect(m, taker.o_stream, wiring.flipped(self.o_vectors))
        span, place = self.o_span, self.o_address
        fetch = self.i_grant
        last = place + 1 == span.end
        # Vectors that were asked for and have not left; the taker has two places.
        held = Signal(range(3))
        leaves = self.o_vectors.valid & self.o_vectors.ready
        arrives = Signal()
        fields = data.StructLayout({"last": 1, "accumulate": 1, "finish": 1})
        marks: Any = Signal(fields)
        command: Any = Signal(fields)
        m.d.comb += [
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
