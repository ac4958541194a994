"""Activity counters of a unit (busy, idle, waiting), and the host's read multiplexer."""

from __future__ import annotations

from collections.abc import Mapping

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data

from hw.arch.counters import ACTIVITIES, counter_numbers
from hw.arch.unit_kind import UnitKind

__all__ = ["beside_layout", "chosen_counter", "count_activity"]

_OTHERWISE = "wait_input"


def beside_layout() -> data.StructLayout:
    """Layout of what a part does that another one's counters count, while it ``works``.

    Of the activities, the first that is true; without one it waits for an input.
    """
    names = (name for name in ACTIVITIES if name != _OTHERWISE)
    return data.StructLayout({"works": 1} | dict.fromkeys(names, 1))


def count_activity(
    m: Module,
    counters: data.View[data.StructLayout],
    *,
    otherwise: str = _OTHERWISE,
    **activities: Value,
) -> None:
    """Count the cycle as the first activity that is true, else as ``otherwise``."""
    for number, (name, happens) in enumerate(activities.items()):
        with m.Elif(happens) if number else m.If(happens):
            m.d.sync += counters[name].eq(counters[name] + 1)
    with m.Else():
        m.d.sync += counters[otherwise].eq(counters[otherwise] + 1)


def chosen_counter(
    m: Module, kind: UnitKind, word: Value, values: Mapping[str, Value], output: Signal
) -> None:
    """Drive ``output`` with the counter of that number; 0 if the kind of unit has none there."""
    with m.Switch(word):
        for name, number in counter_numbers(kind).items():
            with m.Case(number):
                m.d.comb += output.eq(values[name])
