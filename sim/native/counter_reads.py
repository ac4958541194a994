"""Performance counters read over the register port of a chip, while it runs or after."""

from __future__ import annotations

from typing import Any, Protocol

from hw.arch.config import ChipConfig
from hw.arch.counters import counter_index, counter_numbers, unit_kinds
from hw.arch.registers.chip_registers import register

__all__ = ["Registers", "read_counters", "some_unit_works"]


class Registers(Protocol):
    """Registers of a chip by name."""

    def read(self, name: str) -> int:
        """Read a register."""

    def write(self, name: str, value: int) -> int:
        """Write a register; returns the cycle."""


def read_counters(chip: Registers) -> list[int]:
    """All counters, in the order of their numbers."""
    geometry: Any = register("GEOMETRY").layout.from_bits(chip.read("GEOMETRY"))
    values = []
    for index in range(int(geometry["counters"])):
        chip.write("COUNTER_SELECT", index)
        values.append(chip.read("COUNTER_LO") | chip.read("COUNTER_HI") << 32)
    return values


def some_unit_works(chip: Registers, config: ChipConfig) -> bool:
    """Whether a unit is busy between two reads of its counter: a chip that hangs has none."""
    for unit, kind in enumerate(unit_kinds(config).values()):
        chip.write("COUNTER_SELECT", counter_index(unit, counter_numbers(kind)["busy"]))
        if chip.read("COUNTER_LO") != chip.read("COUNTER_LO"):
            return True
    return False
