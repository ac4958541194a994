"""Performance counters of the units: the one declaration for hardware, host and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.lib import data

from hw.arch.config import ChipConfig
from hw.arch.limits import COUNTER_WORDS, PMU_SLOTS
from hw.arch.pmu import PmuInput, PmuOutput
from hw.arch.unit_kind import AGCU, UNIT_KINDS, UnitKind

__all__ = [
    "ACTIVITIES",
    "COUNTER_BITS",
    "activity_layout",
    "counter_index",
    "counter_numbers",
    "counter_table",
    "engine_states",
    "named_counters",
    "pmu_state_layout",
    "unit_kinds",
]

#: Width of a counter.
COUNTER_BITS = 48
#: Words 0 to 3 of every unit: its activity. Exactly one advances per cycle of a kernel.
ACTIVITIES = ("busy", "wait_input", "wait_room", "idle")

_ENGINES = [port.name.lower() for port in (*PmuInput, *PmuOutput)]


def activity_layout() -> data.StructLayout:
    """Layout of the activity counters, which every unit has."""
    return data.StructLayout(dict.fromkeys(ACTIVITIES, COUNTER_BITS))


def pmu_state_layout() -> data.StructLayout:
    """Layout of a PMU's state: per engine, the conditions that it waits for (for the watchdog).

    Engines are W0, W1, R0, R1. Fields: the program uses the engine; it has ended; its slot; the
    parity of the number of wraps of its ring. Then: its barrier (empty for a writer, full for a
    reader) lets it into the slot; its port has a vector for it, or room; no token output stalls it.
    """
    engine = data.StructLayout(
        {
            "enabled": 1,
            "done": 1,
            "slot": range(PMU_SLOTS.high),
            "lap": 1,
            "entered": 1,
            "port": 1,
            "reported": 1,
        }
    )
    return data.StructLayout(dict.fromkeys(_ENGINES, engine))


def engine_states(word: int) -> dict[str, dict[str, int]]:
    """State of each engine of a PMU, by its name in lower case, from the word ``state``."""
    state: Any = pmu_state_layout().from_bits(word)
    return {
        name: {field: int(state[name][field]) for field in state[name].shape().members}
        for name in _ENGINES
    }


def counter_numbers(kind: UnitKind) -> dict[str, int]:
    """Number of each counter of a kind of unit by name; numbers without a name read as 0."""
    activities = {name: word for word, name in enumerate(ACTIVITIES)}
    return activities | {name: word for name, (word, _) in kind.counters.items()}


def unit_kinds(chip: ChipConfig) -> dict[str, UnitKind]:
    """Kind of each unit by its name, in the order of their counters: tiles by row, then AGCUs."""
    kinds = {
        f"{chip.unit_at(row, column).name}_{row}_{column}": chip.unit_at(row, column)
        for row in range(chip.rows)
        for column in range(chip.columns)
    }
    return kinds | {f"agcu_{index}": AGCU for index in range(chip.agcu.count)}


def counter_index(unit: int, word: int) -> int:
    """Value of COUNTER_SELECT for a counter of a unit."""
    return COUNTER_WORDS * unit + word


def named_counters(kind: UnitKind, words: Sequence[int]) -> dict[str, int]:
    """Counters of a unit by name, from its words."""
    return {name: words[word] for name, word in counter_numbers(kind).items()}


def counter_table() -> str:
    """Markdown table of the counters, as in the documentation."""
    lines = ["| unit | word | name | counts |", "|---|---|---|---|"]
    lines += [f"| all | {word} | `{name}` | cycles |" for word, name in enumerate(ACTIVITIES)]
    for kind in UNIT_KINDS.values():
        for name, (word, text) in kind.counters.items():
            lines.append(f"| {kind} | {word} | `{name}` | {text} |")
    return "\n".join(lines) + "\n"
