"""A first-in first-out queue of stream payloads."""

from typing import Any

from amaranth.hdl import Module, Shape
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Queue"]


class Queue(wiring.Component):
    """Queue in a memory; one payload a cycle at either side.

    Every output is a register or an inverter behind one; a payload takes two cycles through an
    empty queue.

    Parameters
    ----------
    payload_shape : ShapeLike
        Shape of the payload.
    depth : int
        Payloads it holds, at least 2.

    Members
    -------
    i_stream, o_stream : stream of ``payload_shape``

    Raises
    ------
    TypeError
        If the depth lies outside its domain.
    """

    i_stream: stream.Interface
    o_stream: stream.Interface

    def __init__(self, payload_shape: Any, *, depth: int) -> None:
        if not isinstance(depth, int) or depth < 2:
            raise TypeError(f"Queue depth must be an integer of at least 2, not {depth!r}")
        self._width = Shape.cast(payload_shape).width
        self._depth = depth
        signature = stream.Signature(payload_shape)
        super().__init__({"i_stream": In(signature), "o_stream": Out(signature)})

    @property
    def definition_name(self) -> str:
        """Name of the shared module."""
        return f"queue_{self._width}x{self._depth}"

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = fifo.SyncFIFOBuffered(width=self._width, depth=self._depth)
        payload: Any = self.o_stream.payload
        source: Any = self.i_stream.payload
        m.d.comb += [
            memory.w_data.eq(source),
            memory.w_en.eq(self.i_stream.valid),
            self.i_stream.ready.eq(memory.w_rdy),
            payload.eq(memory.r_data),
            self.o_stream.valid.eq(memory.r_rdy),
            memory.r_en.eq(self.o_stream.ready),
        ]
        return m
