"""Synchronous FIFO of stream payloads."""

from typing import Any

from amaranth.hdl import Module, Mux, Shape, Signal, unsigned
from amaranth.lib import memory, stream
from amaranth.lib.wiring import In, Out

from hw.arch.errors import BadInputError, shown
from hw.lib.component import Component

__all__ = ["Queue"]


class Queue(Component):
    """Synchronous FIFO in a memory; one payload per cycle at either side.

    No combinational path crosses it; a payload takes two cycles through an empty FIFO. (It is one
    module, Amaranth's own buffered FIFO is two, and a chip has many of them.)

    Parameters
    ----------
    payload_shape : ShapeLike
        Shape of the payload.
    depth : int
        Entries of its memory, at least 2; one more is in the output register.

    Members
    -------
    i_stream, o_stream : stream of ``payload_shape``

    Raises
    ------
    BadInputError
        If the depth lies outside its domain.
    """

    i_stream: stream.Interface
    o_stream: stream.Interface

    def __init__(self, payload_shape: Any, *, depth: int) -> None:
        if not isinstance(depth, int) or depth < 2:
            raise BadInputError(f"Queue depth must be an integer of at least 2, not {shown(depth)}")
        self._width = Shape.cast(payload_shape).width
        self._depth = depth
        signature = stream.Signature(payload_shape)
        super().__init__({"i_stream": In(signature), "o_stream": Out(signature)})

    @property
    def parameters(self) -> dict[str, Any]:
        """Width of the payload, whose fields the FIFO does not use, and depth."""
        return {"payload_bits": self._width, "depth": self._depth}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cells: Any = memory.Memory(shape=unsigned(self._width), depth=self._depth, init=[])
        m.submodules.cells = cells
        source: Any = self.i_stream.payload
        target: Any = self.o_stream.payload
        writer = cells.write_port()
        reader = cells.read_port()
        newest = Signal(range(self._depth))
        oldest = Signal(range(self._depth))
        level = Signal(range(self._depth + 1))
        shown = Signal()
        enters = Signal()
        leaves = Signal()
        m.d.comb += [
            self.i_stream.ready.eq(level != self._depth),
            self.o_stream.valid.eq(shown),
            enters.eq(self.i_stream.valid & self.i_stream.ready),
            reader.en.eq(~shown | self.o_stream.ready),
            leaves.eq(reader.en & (level != 0)),
            writer.en.eq(enters),
            writer.addr.eq(newest),
            writer.data.eq(source),
            reader.addr.eq(oldest),
            target.eq(reader.data),
        ]
        m.d.sync += level.eq(level + enters - leaves)
        with m.If(reader.en):
            m.d.sync += shown.eq(leaves)
        for pointer, moves in ((newest, enters), (oldest, leaves)):
            with m.If(moves):
                m.d.sync += pointer.eq(Mux(pointer == self._depth - 1, 0, pointer + 1))
        return m
