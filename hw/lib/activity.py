"""Activity counters of a unit (busy, idle, waiting), and the host's read multiplexer."""

from __future__ import annotations

from collections.abc import Mapping

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data

from hw.arch.counters import counter_numbers
from hw.arch.unit_kind import UnitKind

__all__ = ["chosen_counter", "count_activity"]


def count_activity(
    m: Module,
    counters: data.View[data.StructLayout],
    *,
    busy: Value,
    idle: Value,
    room: Value,
) -> None:
    """Count the cycle as the first of busy, idle and wait_room that is true, else as wait_input."""
    with m.If(busy):
        m.d.sync += counters.busy.eq(counters.busy + 1)
    with m.Elif(idle):
        m.d.sync += counters.idle.eq(counters.idle + 1)
    with m.Elif(room):
        m.d.sync += counters.wait_room.eq(counters.wait_room + 1)
    with m.Else():
        m.d.sync += counters.wait_input.eq(counters.wait_input + 1)


def chosen_counter(
    m: Module, kind: UnitKind, word: Value, values: Mapping[str, Value], output: Signal
) -> None:
    """Drive ``output`` with the counter of that number; 0 if the kind of unit has none there."""
    with m.Switch(word):
        for name, number in counter_numbers(kind).items():
            with m.Case(number):
                m.d.comb += output.eq(values[name])
