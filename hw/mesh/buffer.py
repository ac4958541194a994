"""The buffer at every input of a switch."""

from amaranth.hdl import Module, ResetInserter, Shape, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.stream import ElasticBuffer

__all__ = ["InputBuffer"]


class InputBuffer(wiring.Component):
    """Elastic buffer of two entries that a clear empties.

    One payload a cycle, one cycle from input to output; ``ready`` is "not full".

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
    """

    i_stream: stream.Interface
    o_stream: stream.Interface
    i_clear: Signal

    def __init__(self, *, payload_shape: data.StructLayout | int) -> None:
        self._payload_shape = payload_shape
        signature = stream.Signature(payload_shape)
        super().__init__({"i_stream": In(signature), "o_stream": Out(signature), "i_clear": In(1)})

    @property
    def payload_shape(self) -> data.StructLayout | int:
        """Shape of the payload."""
        return self._payload_shape

    @property
    def definition_name(self) -> str:
        """Name of the module when it is shared."""
        return f"switch_buffer_{Shape.cast(self._payload_shape).width}"

    def elaborate(self, platform: object) -> Module:
        m = Module()
        buffer = ElasticBuffer(self._payload_shape)
        m.submodules.buffer = ResetInserter(self.i_clear)(buffer)
        wiring.connect(m, wiring.flipped(self.i_stream), buffer.i_stream)
        wiring.connect(m, wiring.flipped(self.o_stream), buffer.o_stream)
        return m
