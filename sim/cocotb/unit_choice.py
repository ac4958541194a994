"""Selection of a testbench's unit under test through environment variables."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from hw.arch.config import ChipConfig, PcuConfig
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.matrix.unit_config import UnitConfig
from hw.numeric.formats import named
from sim.drivers.agcu_case import AgcuSizes
from sim.drivers.command_case import CommandSizes
from sim.drivers.pmu_case import PmuSizes

__all__ = [
    "asked_agcu",
    "asked_command",
    "asked_fp",
    "asked_pcu",
    "asked_pmu",
    "asked_unit",
    "environment_of",
    "environment_of_agcu",
    "environment_of_command",
    "environment_of_fp",
    "environment_of_pcu",
    "environment_of_pmu",
]

_VARIABLE = "TILEWRIGHT_UNIT"
_FP_VARIABLE = "TILEWRIGHT_FP"
_PCU_VARIABLE = "TILEWRIGHT_PCU"
_PMU_VARIABLE = "TILEWRIGHT_PMU"
_AGCU_VARIABLE = "TILEWRIGHT_AGCU"
_COMMAND_VARIABLE = "TILEWRIGHT_COMMAND"


def environment_of(config: UnitConfig, buffer_rows: int | None = None) -> dict[str, str]:
    """Environment that selects a matrix unit, or with `buffer_rows` a tensor unit."""
    array = {
        **vars(config.array),
        "dataflow": config.array.dataflow.value,
        "formats": [fmt.name for fmt in config.array.formats],
    }
    out = None if config.out is None else config.out.name
    unit = {**vars(config), "array": array, "out": out}
    return {_VARIABLE: json.dumps([unit, buffer_rows or 0])}


def asked_unit() -> tuple[UnitConfig, int] | None:
    """Selected unit and its unified buffer's vectors (0: matrix unit); None if none selected."""
    if _VARIABLE not in os.environ:
        return None
    unit, buffer_rows = json.loads(os.environ[_VARIABLE])
    formats = tuple(named[name] for name in unit["array"]["formats"])
    dataflow = Dataflow(unit["array"]["dataflow"])
    hard = tuple(unit["array"]["hard_blocks"])
    words = {"dataflow": dataflow, "formats": formats, "hard_blocks": hard}
    array = ArrayConfig(**unit["array"] | words)
    out = None if unit["out"] is None else named[unit["out"]]
    return UnitConfig(**unit | {"array": array, "out": out}), buffer_rows


def environment_of_fp(name: str, values: Mapping[str, int]) -> dict[str, str]:
    """Environment that selects a floating-point unit with parameters."""
    return {_FP_VARIABLE: json.dumps({name: dict(values)})}


def asked_fp() -> dict[str, dict[str, int]] | None:
    """Selected floating-point unit with its parameters; None without selection."""
    text = os.environ.get(_FP_VARIABLE)
    return None if text is None else dict(json.loads(text))


def environment_of_pcu(chip: ChipConfig, programs: int) -> dict[str, str]:
    """Environment that selects the PCU of a chip, and a number of random programs."""
    return {_PCU_VARIABLE: json.dumps([chip.width_bits, vars(chip.pcu), programs])}


def asked_pcu() -> tuple[ChipConfig, int] | None:
    """Chip with the selected PCU, and number of programs; None if none is selected."""
    if _PCU_VARIABLE not in os.environ:
        return None
    width_bits, fields, programs = json.loads(os.environ[_PCU_VARIABLE])
    return ChipConfig(2, 2, width_bits=width_bits, pcu=PcuConfig(**fields)), programs


def environment_of_pmu(sizes: PmuSizes, programs: int) -> dict[str, str]:
    """Environment that selects a PMU, and a number of random programs of each kind."""
    return {_PMU_VARIABLE: json.dumps([*sizes, programs])}


def asked_pmu() -> tuple[PmuSizes, int] | None:
    """Sizes of the selected PMU, and number of programs; None if none is selected."""
    if _PMU_VARIABLE not in os.environ:
        return None
    *sizes, programs = json.loads(os.environ[_PMU_VARIABLE])
    return PmuSizes(*sizes), programs


def environment_of_agcu(sizes: AgcuSizes, programs: int) -> dict[str, str]:
    """Environment that selects an AGCU, and a number of random programs of each test."""
    return {_AGCU_VARIABLE: json.dumps([*sizes, programs])}


def asked_agcu() -> tuple[AgcuSizes, int] | None:
    """Sizes of the selected AGCU, and number of programs; None if none is selected."""
    if _AGCU_VARIABLE not in os.environ:
        return None
    *sizes, programs = json.loads(os.environ[_AGCU_VARIABLE])
    return AgcuSizes(*sizes), programs


def environment_of_command(sizes: CommandSizes, lists: int) -> dict[str, str]:
    """Environment that selects a command processor, and a number of random lists of each test."""
    return {_COMMAND_VARIABLE: json.dumps([*sizes, lists])}


def asked_command() -> tuple[CommandSizes, int] | None:
    """Sizes of the selected command processor, and number of lists; None if none is selected."""
    if _COMMAND_VARIABLE not in os.environ:
        return None
    width_bits, address_bits, segments, units, lists = json.loads(os.environ[_COMMAND_VARIABLE])
    rows = tuple(tuple(row) for row in segments)
    return CommandSizes(width_bits, address_bits, rows, units), lists
