"""Launch timer of the command processor: cycles of a launch, of its entries and its first MAC."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.lib.component import Component

__all__ = ["LaunchTimer", "times_layout"]

#: Times of a launch in cycles: its length so far; the cycle of the first vector that entered an
#: array, 0 before; the cycles of the last entry outside its kernel; the cycle in which the entry
#: before the last ended, 0 if there is none.
times_layout = data.StructLayout(
    {"cycles": 64, "first_mac": 32, "launch_cycles": 32, "entry_begin": 64}
)


class LaunchTimer(Component):
    """Launch timer: counts the cycles of a launch, and of its last entry those outside the kernel.

    The cycles inside are counted by the units, as one of their states each.

    Members
    -------
    i_launch : ``In(1)``
        A launch begins with the next cycle.
    i_next_entry : ``In(1)``
        The last cycle of an entry that another one follows.
    i_busy, i_run, i_issue : ``In(1)``
        A launch is in progress; a kernel runs; a vector enters an array.
    o_times : ``Out(times_layout)``
    """

    i_launch: Signal
    i_next_entry: Signal
    i_busy: Signal
    i_run: Signal
    i_issue: Signal
    o_times: data.View[data.StructLayout]

    def __init__(self) -> None:
        inputs = ("i_launch", "i_next_entry", "i_busy", "i_run", "i_issue")
        super().__init__({name: In(1) for name in inputs} | {"o_times": Out(times_layout)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        times = self.o_times
        # One cycle after the vector entered, the count equals that vector's cycle.
        entered = Signal()
        m.d.sync += entered.eq(self.i_issue)
        with m.If(self.i_busy):
            m.d.sync += times.cycles.eq(times.cycles + 1)
            with m.If(~self.i_run):
                m.d.sync += times.launch_cycles.eq(times.launch_cycles + 1)
            with m.If(entered & (times.first_mac == 0)):
                m.d.sync += times.first_mac.eq(times.cycles)
        with m.If(self.i_launch):
            m.d.sync += times.eq(0)
        with m.If(self.i_next_entry):
            m.d.sync += [times.launch_cycles.eq(0), times.entry_begin.eq(times.cycles + 1)]
        return m
