"""Vector and token streams (valid/ready) of all links, and the two-entry elastic buffer."""

from typing import Any

from amaranth.hdl import Module, Mux, Shape, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hw.lib.component import Component

__all__ = ["ElasticBuffer", "token_signature", "vector_layout", "vector_signature"]


def vector_layout(width_bits: int) -> data.StructLayout:
    """Layout of one vector: ``data`` and two sideband flags.

    ``last`` ends a packet (a tile); ``final`` ends a pass as well and implies ``last``.
    """
    return data.StructLayout({"data": width_bits, "last": 1, "final": 1})


def vector_signature(width_bits: int) -> stream.Signature:
    """Signature of a vector stream, from the producer's point of view."""
    return stream.Signature(vector_layout(width_bits))


def token_signature() -> stream.Signature:
    """Signature of a token stream, a handshake without data, from the producer's point of view."""
    return stream.Signature(0)


class ElasticBuffer(Component):
    """Elastic buffer of two entries (skid buffer) with all outputs registered, ``ready`` included.

    One transfer per cycle at either side; latency one cycle. ``ready`` is "not full", so no
    combinational path crosses the buffer in either direction.

    Parameters
    ----------
    payload_shape : ShapeLike
        Shape of the payload; zero bits for tokens.

    Members
    -------
    i_stream : ``In(stream.Signature(payload_shape))``
    o_stream : ``Out(stream.Signature(payload_shape))``
    i_clear : ``In(1)``
        Empties the buffer at the next edge.

    Attributes
    ----------
    head, spare : Signal
        The two entries, for proofs.
    """

    i_stream: stream.Interface
    o_stream: stream.Interface
    i_clear: Signal

    def __init__(self, payload_shape: data.StructLayout | int) -> None:
        signature = stream.Signature(payload_shape)
        super().__init__({"i_stream": In(signature), "o_stream": Out(signature), "i_clear": In(1)})
        self._bits = Shape.cast(payload_shape).width
        self.head = Signal(payload_shape, reset_less=True)
        self.spare = Signal(payload_shape, reset_less=True)

    @property
    def parameters(self) -> dict[str, Any]:
        """Width of the payload, whose fields the buffer does not use."""
        return {"payload_bits": self._bits}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        head, spare = self.head, self.spare
        # The spare entry fills only when the consumer stalls in the cycle in which another payload
        # arrives: the registered `ready` reports the stall to the producer one cycle late.
        head_full = Signal()
        spare_full = Signal()
        m.d.comb += [
            self.i_stream.ready.eq(~spare_full),
            self.o_stream.valid.eq(head_full),
            self.o_stream.payload.eq(head),
        ]
        arrives = self.i_stream.valid & self.i_stream.ready
        head_free = ~head_full | self.o_stream.ready
        with m.If(head_free):
            m.d.sync += [
                head.eq(Mux(spare_full, spare, self.i_stream.payload)),
                head_full.eq(spare_full | arrives),
                spare_full.eq(0),
            ]
        with m.Elif(arrives):
            m.d.sync += spare_full.eq(1)
        with m.If(~spare_full):
            m.d.sync += spare.eq(self.i_stream.payload)
        with m.If(self.i_clear):
            m.d.sync += [head_full.eq(0), spare_full.eq(0)]
        return m
