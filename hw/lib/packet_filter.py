"""Packet filter: a consumer's share of a multicast stream, by packet number modulo a count."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hw.arch.errors import BadInputError, shown
from hw.arch.limits import MAX_MODULUS
from hw.lib.component import Component
from hw.lib.stream import vector_layout

__all__ = ["PacketFilter"]


class PacketFilter(Component):
    """Packet filter that passes packet i exactly if i mod ``modulus`` equals ``index``.

    A vector that is filtered out is consumed in the cycle in which it is offered, whatever the
    consumer does. Latency 0, one vector per cycle. ``i_stream.ready`` depends on ``o_stream.ready``
    and on the packet count, never on a ``valid``: it stays a register output if the consumer's
    ``ready`` is one.

    Parameters
    ----------
    width_bits : int
        Bits of a vector's data.

    Members
    -------
    i_stream : ``In(vector_signature(width_bits))``
    o_stream : ``Out(vector_signature(width_bits))``
    modulus : ``In(range(MAX_MODULUS + 1))``
        Consumers P of the stream, 1 to `MAX_MODULUS`; changes only while ``i_clear`` is high.
    index : ``In(range(MAX_MODULUS))``
        Index of this consumer, below ``modulus``; index 0 of modulus 1 passes everything.
    i_clear : ``In(1)``
        Restarts with packet 0 at the next edge.

    Attributes
    ----------
    position : Signal
        Number of the current packet, modulo ``modulus``, for proofs.

    Raises
    ------
    BadInputError
        If the width is not positive.
    """

    i_stream: stream.Interface
    o_stream: stream.Interface
    modulus: Signal
    index: Signal
    i_clear: Signal

    def __init__(self, *, width_bits: int) -> None:
        if not isinstance(width_bits, int) or width_bits < 1:
            raise BadInputError(
                f"Vector width must be a positive number of bits, not {shown(width_bits)}"
            )
        self._width_bits = width_bits
        self.position = Signal(range(MAX_MODULUS))
        signature = stream.Signature(vector_layout(width_bits))
        super().__init__(
            {
                "i_stream": In(signature),
                "o_stream": Out(signature),
                "modulus": In(range(MAX_MODULUS + 1)),
                "index": In(range(MAX_MODULUS)),
                "i_clear": In(1),
            }
        )

    @property
    def width_bits(self) -> int:
        """Bits of a vector's data."""
        return self._width_bits

    def elaborate(self, platform: object) -> Module:
        m = Module()
        position = self.position
        accepted = position == self.index
        m.d.comb += [
            self.o_stream.payload.eq(self.i_stream.payload),
            self.o_stream.valid.eq(self.i_stream.valid & accepted),
            self.i_stream.ready.eq(self.o_stream.ready | ~accepted),
        ]
        with m.If(self.i_clear):
            m.d.sync += position.eq(0)
        with m.Elif(self.i_stream.valid & self.i_stream.ready & self.i_stream.payload.last):
            with m.If(position + 1 == self.modulus):
                m.d.sync += position.eq(0)
            with m.Else():
                m.d.sync += position.eq(position + 1)
        return m
