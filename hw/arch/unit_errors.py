"""What a unit's error says: details of ``ErrorCode.UNIT``, and the units' numbers."""

import enum

from hw.arch.config import ChipConfig
from hw.arch.counters import unit_kinds
from hw.arch.descriptor import ErrorCode as TmaError

__all__ = ["UnitError", "agcu_number", "error_detail", "error_unit"]


class UnitError(enum.IntEnum):
    """Details that are not a TMA engine's own, which are below them."""

    #: A program of a tile is broken: a barrier counted more arrivals than it expects.
    PROGRAM = 0xFE
    #: An entry repeats, which counter chains do not serve; the unit is 0.
    REPEAT = 0xFF


def agcu_number(chip: ChipConfig, agcu: int) -> int:
    """Number of an AGCU among the units: tiles by row, then AGCUs."""
    return chip.rows * chip.columns + agcu


def error_detail(detail: int) -> str:
    """Name of a detail."""
    for codes in (TmaError, UnitError):
        for each in codes:
            if each.value == detail:
                return each.name
    return f"code {detail}"


def error_unit(chip: ChipConfig, detail: int, unit: int) -> str | None:
    """Name of the unit that an error is of; None if it is of none."""
    names = list(unit_kinds(chip))
    return None if detail == UnitError.REPEAT or unit >= len(names) else names[unit]
