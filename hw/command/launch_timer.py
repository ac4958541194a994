"""Launch timer of the command processor: cycles of a launch, of its entries and its first MAC."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data

__all__ = ["launch_times", "times_layout"]

#: Times of a launch in cycles: its length so far; the cycle of the first vector that entered an
#: array, 0 before; the cycles of the last entry outside its kernel; the cycle in which the entry
#: before the last ended, 0 if there is none.
times_layout = data.StructLayout(
    {"cycles": 64, "first_mac": 32, "launch_cycles": 32, "entry_begin": 64}
)


def launch_times(
    m: Module,
    *,
    launch: Value,
    next_entry: Value,
    busy: Value,
    run: Value,
    issue: Value,
) -> Any:
    """Times of a launch: its cycles, and of its last entry those outside the kernel.

    The cycles inside are counted by the units, as one of their states each.

    Parameters
    ----------
    m : Module
        Takes the counters.
    launch
        A launch begins with the next cycle.
    next_entry
        The last cycle of an entry that another one follows.
    busy, run, issue
        A launch is in progress; a kernel runs; a vector enters an array.
    """
    times: Any = Signal(times_layout, name="times")
    # One cycle after the vector entered, the count equals that vector's cycle.
    entered = Signal()
    m.d.sync += entered.eq(issue)
    with m.If(busy):
        m.d.sync += times.cycles.eq(times.cycles + 1)
        with m.If(~run):
            m.d.sync += times.launch_cycles.eq(times.launch_cycles + 1)
        with m.If(entered & (times.first_mac == 0)):
            m.d.sync += times.first_mac.eq(times.cycles)
    with m.If(launch):
        m.d.sync += times.eq(0)
    with m.If(next_entry):
        m.d.sync += [times.launch_cycles.eq(0), times.entry_begin.eq(times.cycles + 1)]
    return times
