"""Property of the box reader: a command is a box, or refused, within a number of cycles."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from gen.properties.support import always, kept
from hw.arch.descriptor import descriptor_layout
from hw.arch.error_codes import TmaError
from hw.tma.box_reader import BoxReader
from hw.tma.commands import tagged_command_layout
from hw.tma.layouts import TmaLayouts

__all__ = ["BoxesComeInTime"]


class BoxesComeInTime(wiring.Component):
    """Bounded time of a command: taken at once unless one is at work, ended in so many cycles.

    Command and descriptor are any, at full width; the descriptor does not change.

    Parameters
    ----------
    cycles : int
        Most cycles from the one in which a command is taken to that in which its box is offered.
    """

    command: Any
    descriptor: Any
    free: Signal
    reached: Signal

    def __init__(self, *, cycles: int) -> None:
        self._cycles = cycles
        self._layouts = TmaLayouts(16, 8, streams=1)
        super().__init__(
            {
                "command": In(tagged_command_layout(2, 1)),
                "descriptor": In(descriptor_layout),
                "free": In(2),
                "reached": Out(3),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = BoxReader(self._layouts, descriptors=2)
        kept(m, self.descriptor.as_value())
        commands: Any = dut.i_stream
        boxes: Any = dut.o_stream
        taken = commands.valid & commands.ready
        #: A command is at work; cycles since it was taken.
        busy = Signal()
        time = Signal(range(self._cycles + 2))
        refused = busy & (time == 1) & (dut.o_error != TmaError.NONE.value)
        ended = busy & (boxes.valid | refused)
        m.d.comb += [
            Cat(commands.valid, boxes.ready).eq(self.free),
            commands.payload.eq(self.command),
            dut.i_descriptor.eq(self.descriptor),
            always(~busy | ended | (time < self._cycles)),
            always(busy | (boxes.valid & ~boxes.ready) | commands.ready),
            self.reached.eq(Cat(ended & (time == self._cycles), refused, ended & (time == 3))),
        ]
        with m.If(busy):
            m.d.sync += time.eq(Mux(ended, 0, time + 1))
        with m.If(ended):
            m.d.sync += busy.eq(0)
        with m.If(taken):
            m.d.sync += [busy.eq(1), time.eq(1)]
        return m
