"""Unit counters in the form of the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hw.arch.config import ChipConfig
from hw.arch.counters import ACTIVITIES, named_counters, unit_kinds
from hw.arch.limits import COUNTER_WORDS
from hw.numeric.formats import Format

__all__ = ["STATES", "report_counters"]

#: States of a unit in a report: in each cycle of a launch it is in exactly one.
STATES = (*ACTIVITIES, "launch")


def report_counters(
    config: ChipConfig, operand: Format, words: Sequence[int], launch_cycles: int | None
) -> dict[str, dict[str, Any]]:
    """Counters by unit name; None for counters that a kind of unit does not have.

    Parameters
    ----------
    config : ChipConfig
    operand : Format
        Operand format, which determines the multiply-accumulates per vector that enters an array.
    words : sequence of int
        Counter words of all units, in the order of `hw.arch.counters`.
    launch_cycles : int or None
        Cycles outside the kernel, in which no unit runs: reported as each unit's state ``launch``.
    """
    products = config.grid_rows * config.grid_columns * (16 // operand.bits)
    report: dict[str, dict[str, Any]] = {}
    for index, (name, kind) in enumerate(unit_kinds(config).items()):
        values = named_counters(kind, words[COUNTER_WORDS * index : COUNTER_WORDS * (index + 1)])
        report[name] = {
            "kind": kind,
            **{activity: values[activity] for activity in ACTIVITIES},
            "launch": launch_cycles,
            "macs": values["vectors"] * products if kind == "pcu" else None,
            **{each: values.get(each) for each in ("commands", "boxes", "bytes")},
        }
    return report
