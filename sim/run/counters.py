"""Counters of the units, as a report has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hw.arch.config import ChipConfig
from hw.arch.counters import ACTIVITIES, WORDS, named_counters, unit_kinds
from hw.numeric.formats import Format

__all__ = ["STATES", "report_counters"]

#: States of a unit in a report: in each cycle of a launch it is in exactly one.
STATES = (*ACTIVITIES, "launch")


def report_counters(
    config: ChipConfig, operand: Format, words: Sequence[int], launch_cycles: int | None
) -> dict[str, dict[str, Any]]:
    """Counters by unit; those that a kind of unit does not have are None.

    Parameters
    ----------
    config : ChipConfig
    operand : Format
        Format of the products, by which a vector that enters a grid is so many of them.
    words : sequence of int
        Words of all units in the order of `hw.arch.counters`.
    launch_cycles : int or None
        Cycles outside the kernel, in which no unit runs: every unit's state ``launch``.
    """
    products = config.grid_rows * config.grid_columns * (16 // operand.bits)
    report: dict[str, dict[str, Any]] = {}
    for index, (name, kind) in enumerate(unit_kinds(config).items()):
        values = named_counters(kind, words[WORDS * index : WORDS * (index + 1)])
        report[name] = {
            "kind": kind,
            **{activity: values[activity] for activity in ACTIVITIES},
            "launch": launch_cycles,
            "macs": values["vectors"] * products if kind == "pcu" else None,
            **{each: values.get(each) for each in ("commands", "boxes", "bytes")},
        }
    return report
