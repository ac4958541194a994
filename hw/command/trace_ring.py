"""Trace ring of the command processor: events of a launch, waiting for the host to read them."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import data, memory
from amaranth.lib.wiring import In, Out

from hw.arch.launch import TRACE_EVENTS, TraceKind, trace_layout
from hw.lib.component import Component

__all__ = ["TraceRing"]


class TraceRing(Component):
    """Ring of the oldest `TRACE_EVENTS` trace events; those that find it full are counted.

    An event may be taken two cycles after it came, and two cycles after the one before it.

    Members
    -------
    i_clear : ``In(1)``
        Removes all events and sets the count to 0; an event of this cycle is the first.
    i_event : ``In(trace_layout)``
        Event of this cycle; its kind is `TraceKind.NONE` if there is none.
    o_event : ``Out(trace_layout)``
        Oldest event, or 0.
    i_take : ``In(1)``
        Removes the oldest event, if there is one.
    o_dropped : ``Out(32)``
        Events that found the ring full.
    """

    i_clear: Signal
    i_event: data.View[data.StructLayout]
    o_event: data.View[data.StructLayout]
    i_take: Signal
    o_dropped: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "i_clear": In(1),
                "i_event": In(trace_layout),
                "o_event": Out(trace_layout),
                "i_take": In(1),
                "o_dropped": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cells: Any = memory.Memory(shape=unsigned(trace_layout.size), depth=TRACE_EVENTS, init=[])
        m.submodules.cells = cells
        writer, reader = cells.write_port(), cells.read_port()
        newest, oldest = Signal(range(TRACE_EVENTS)), Signal(range(TRACE_EVENTS))
        level = Signal(range(TRACE_EVENTS + 1))
        # The memory has been read since the level rose, or since the last event was taken.
        shown = Signal()
        comes, enters, leaves = Signal(), Signal(), Signal()
        m.d.comb += [
            comes.eq(self.i_event.kind != TraceKind.NONE),
            enters.eq(comes & ((level != TRACE_EVENTS) | self.i_clear)),
            leaves.eq(self.i_take & shown),
            writer.en.eq(enters),
            writer.addr.eq(newest),
            writer.data.eq(self.i_event),
            reader.en.eq(1),
            reader.addr.eq(oldest),
        ]
        with m.If(shown):
            m.d.comb += self.o_event.eq(reader.data)
        m.d.sync += [
            shown.eq((level != 0) & ~leaves & ~self.i_clear),
            newest.eq(newest + enters),
            oldest.eq(oldest + leaves),
            level.eq(level + enters - leaves),
            self.o_dropped.eq(self.o_dropped + (comes & ~enters)),
        ]
        with m.If(self.i_clear):
            m.d.sync += [oldest.eq(newest), level.eq(enters), self.o_dropped.eq(0)]
        return m
