"""Elaboration parameters of a chip: frozen dataclasses that check themselves and derive sizes."""

import dataclasses
import functools
import itertools
import os
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hw.arch import limits
from hw.arch.checks import read_text, refusal
from hw.arch.errors import BadInputError, shown
from hw.arch.lanes.lane_function import LaneFunction, function_codes
from hw.arch.unit_kind import AGCU, PCU, PMU, UNIT_KINDS, UnitKind
from hw.arch.words.pcu_word import pcu_layout
from hw.arch.words.word_layout import WordLayout
from hw.numeric.formats import Format
from hw.numeric.product_formats import DEFAULT_CELLS, cell_set

__all__ = [
    "SECTIONS",
    "AgcuConfig",
    "ChipConfig",
    "PcuConfig",
    "PmuConfig",
    "from_toml",
    "named",
]

_PATTERNS = {"checkerboard"}


@dataclasses.dataclass(frozen=True)
class PcuConfig:
    """Elaboration parameters of a pattern compute unit that link width does not fix.

    Parameters
    ----------
    accumulator_rows : int
        Rows of one accumulator bank (`limits.BANK_ROWS`).
    cell_latency : int
        Register stages on a cell's partial-sum path: cycles of skew between rows
        (`limits.CELL_LATENCY`).
    function_bits : int
        Significand bits of the results of exp2, exp, reciprocal and rsqrt, and of what is composed
        of them (`limits.FUNCTION_BITS`).
    lanes : int
        Lanes t of the vector side (`limits.LANES`), at most the 32-bit words of a vector, of which
        every link width has two; 0: none.
    formats : sequence of str
        Operand formats of its cells: a set of `hw.numeric.product_formats.CELL_SETS`, in any order.
    functions : sequence of LaneFunction
        Function units of each lane beside its special function unit, as `tw.op` makes them.
    """

    accumulator_rows: int = 256
    cell_latency: int = 2
    function_bits: int = 16
    lanes: int = 2
    formats: tuple[str, ...] = tuple(each.name for each in DEFAULT_CELLS)
    functions: tuple[LaneFunction, ...] = ()

    def __post_init__(self) -> None:
        limits.BANK_ROWS.require("Accumulator rows", self.accumulator_rows)
        limits.CELL_LATENCY.require("Cell latency", self.cell_latency)
        limits.FUNCTION_BITS.require("Function bits", self.function_bits)
        none = self.lanes == 0 and not isinstance(self.lanes, bool)
        if not none and not limits.LANES.holds(self.lanes):
            raise refusal("Lanes", f"be 0 or {limits.LANES.rule}", self.lanes)
        # In one order, so that equal chips are equal.
        object.__setattr__(self, "formats", tuple(each.name for each in cell_set(self.formats)))
        if not isinstance(self.functions, Sequence) or isinstance(self.functions, str):
            raise refusal("Function units of a PCU", "be a sequence of them", self.functions)
        object.__setattr__(self, "functions", tuple(self.functions))
        function_codes(self.functions)
        if self.functions and none:
            raise refusal("Lanes of a PCU with function units", "be at least 1", self.lanes)

    @property
    def operands(self) -> tuple[Format, ...]:
        """Operand formats of its cells, in the order of `hw.numeric.formats.OPERANDS`."""
        return cell_set(self.formats)

    @property
    def layout(self) -> WordLayout:
        """Layout of its program."""
        return pcu_layout(self.lanes, self.operands, len(self.functions))


@dataclasses.dataclass(frozen=True)
class PmuConfig:
    """Elaboration parameters of a pattern memory unit.

    Parameters
    ----------
    capacity_bytes : int
        Scratchpad capacity in bytes (`limits.PMU_CAPACITY_BYTES`).
    slots : int
        Greatest number of slots per buffer (`limits.PMU_SLOTS`).
    """

    capacity_bytes: int = 65536
    slots: int = 16

    def __post_init__(self) -> None:
        limits.PMU_CAPACITY_BYTES.require("PMU capacity in bytes", self.capacity_bytes)
        limits.PMU_SLOTS.require("PMU slots", self.slots)


@dataclasses.dataclass(frozen=True)
class AgcuConfig:
    """Elaboration parameters of the memory ports (AGCUs).

    Parameters
    ----------
    count : int
        AGCUs on the chip's edges (`limits.AGCU_COUNT`).
    axi_data_bits : int or None
        Data width of the AXI4 manager port; it must equal the link width, which None stands for.
    axi_address_bits : int
        Width of a byte address of memory (`limits.AXI_ADDRESS_BITS`).
    landing_beats : int
        Depth of the landing buffer for returned data, in beats (`limits.LANDING_BEATS`).
    outstanding : int
        Outstanding bursts (`limits.OUTSTANDING`).
    """

    count: int = 2
    axi_data_bits: int | None = None
    axi_address_bits: int = 48
    landing_beats: int = 256
    outstanding: int = 64

    def __post_init__(self) -> None:
        limits.AGCU_COUNT.require("AGCU count", self.count)
        if self.axi_data_bits is not None:
            limits.LINK_BITS.require("AXI data bits", self.axi_data_bits)
        limits.AXI_ADDRESS_BITS.require("AXI address bits", self.axi_address_bits)
        limits.LANDING_BEATS.require("Landing beats", self.landing_beats)
        limits.OUTSTANDING.require("Outstanding bursts", self.outstanding)


@dataclasses.dataclass(frozen=True)
class ChipConfig:
    """Elaboration parameters of a chip: a mesh of switches with one unit each, and AGCUs.

    Parameters
    ----------
    rows, columns : int
        Rows and columns of the mesh.
    width_bits : int
        Link width W: one vector. It fixes the array of a PCU, W/16 rows × W/32 columns.
    tracks, token_tracks : int
        Parallel vector links, and one-bit token links, per direction.
    pattern : str
        Placement of units: ``"checkerboard"`` (a PCU where row + column is even), or one string
        of the kinds' letters (`hw.arch.unit_kind`; ``c`` a PCU, ``m`` a PMU) per row, joined by
        ``/``.
    pcu, pmu, agcu
        Parameters of the units.

    Raises
    ------
    BadInputError
        If one parameter is out of range, or two parameters contradict each other.
    """

    rows: int
    columns: int
    width_bits: int = 256
    tracks: int = 3
    token_tracks: int = 2
    pattern: str = "checkerboard"
    pcu: PcuConfig = PcuConfig()
    pmu: PmuConfig = PmuConfig()
    agcu: AgcuConfig = AgcuConfig()

    def __post_init__(self) -> None:
        limits.MESH_SIDE.require("Mesh rows", self.rows)
        limits.MESH_SIDE.require("Mesh columns", self.columns)
        limits.LINK_BITS.require("Link width in bits", self.width_bits)
        limits.TRACKS.require("Tracks", self.tracks)
        limits.TRACKS.require("Token tracks", self.token_tracks)
        for name, section in SECTIONS.items():
            part = getattr(self, name)
            if not isinstance(part, section):
                raise refusal(name, f"be a {section.__name__}", part)
        if not isinstance(self.pattern, str):
            raise refusal("Pattern", f"be text of letters {' and '.join(_letters())}", self.pattern)
        if self.pcu.lanes > self.width_bits // 32:
            rule = f"be at most the {self.width_bits // 32} words of a vector"
            raise refusal("Lanes", rule, self.pcu.lanes)
        if self.agcu.axi_data_bits not in (None, self.width_bits):
            rule = f"equal the link width {self.width_bits}"
            raise refusal("AXI data bits", rule, self.agcu.axi_data_bits)
        # One spelling for both, so that equal chips are equal and a copy may have another width.
        agcu = dataclasses.replace(self.agcu, axi_data_bits=None)
        object.__setattr__(self, "agcu", agcu)
        if self.agcu.count > 2 * self.rows:
            rule = f"be at most 2 per mesh row, {2 * self.rows}"
            raise refusal("AGCU count", rule, self.agcu.count)
        if self.pattern not in _PATTERNS:
            lines = self.pattern.split("/")
            if len(lines) != self.rows or any(
                len(line) != self.columns or set(line) - _letters().keys() for line in lines
            ):
                rule = (
                    f"be 'checkerboard' or {self.rows} groups of {self.columns} letters "
                    f"{' and '.join(_letters())} joined by '/'"
                )
                raise refusal("Pattern", rule, self.pattern)
        for kind in (PCU, PMU):
            if self.count(kind) == 0:
                rule = f"have a {kind} on {self.rows} x {self.columns} switches"
                raise refusal("Pattern", rule, self.pattern)

    def unit_at(self, row: int, column: int) -> UnitKind:
        """Kind of the unit at a switch."""
        if self.pattern == "checkerboard":
            return PCU if (row + column) % 2 == 0 else PMU
        return _letters()[self.pattern.split("/")[row][column]]

    def count(self, kind: UnitKind) -> int:
        """Number of units of a kind on the chip."""
        return self.agcu.count if kind is AGCU else self._tiles[kind]

    @functools.cached_property
    def _tiles(self) -> Counter[UnitKind]:
        """Number of tiles of each kind."""
        places = itertools.product(range(self.rows), range(self.columns))
        return Counter(self.unit_at(*place) for place in places)

    def of_tile(self, kind: UnitKind) -> "ChipConfig":
        """Smallest chip with the same tiles of a kind: all that such a tile depends on."""
        others: dict[str, Any] = {
            name: section() for name, section in SECTIONS.items() if name != kind.name
        }
        return dataclasses.replace(self, rows=1, columns=2, pattern="checkerboard", **others)

    @property
    def grid_rows(self) -> int:
        """Rows R of a PCU's array."""
        return self.width_bits // 16

    @property
    def grid_columns(self) -> int:
        """Columns C of a PCU's array."""
        return self.width_bits // 32

    @property
    def pcu_count(self) -> int:
        """Number of PCUs on the chip."""
        return self.count(PCU)

    @property
    def pmu_count(self) -> int:
        """Number of PMUs on the chip."""
        return self.count(PMU)

    def peak_macs_per_cycle(self, operand_bits: int) -> int:
        """Peak multiply-accumulates per cycle with operands of 8 or 16 bits, over all PCUs."""
        if operand_bits not in (8, 16):
            raise BadInputError(f"Operand bits must be 8 or 16, not {shown(operand_bits)}")
        return self.pcu_count * self.grid_rows * self.grid_columns * (16 // operand_bits)

    @property
    def peak_bytes_per_cycle(self) -> int:
        """Peak bytes of memory per cycle each way, over the ports of all AGCUs."""
        return self.agcu.count * self.width_bits // 8

    def parameters(self) -> dict[str, Any]:
        """Every parameter, as plain data; function units only where there are some."""
        parameters = dataclasses.asdict(self)
        if not parameters["pcu"].pop("functions"):
            return parameters
        functions = [[each.name, each.latency, each.netlist] for each in self.pcu.functions]
        parameters["pcu"]["functions"] = functions
        return parameters

    def resolved(self) -> dict[str, Any]:
        """Every parameter and derived size, as plain data (the ``config`` command prints it)."""
        parameters = self.parameters()
        parameters["agcu"]["axi_data_bits"] = self.width_bits
        return parameters | {
            "derived": {
                "grid_rows": self.grid_rows,
                "grid_columns": self.grid_columns,
                "pcus": self.pcu_count,
                "pmus": self.pmu_count,
                "cells": self.peak_macs_per_cycle(16),
                "peak_macs_per_cycle": {
                    each.name: self.peak_macs_per_cycle(each.bits) for each in self.pcu.operands
                },
                "scratchpad_bytes": self.pmu_count * self.pmu.capacity_bytes,
                "accumulator_bytes": self.pcu_count
                * 2
                * self.pcu.accumulator_rows
                * self.grid_columns
                * 4,
            }
        }


#: Classes of the parameters of units, by the name of their kind.
SECTIONS = {PCU.name: PcuConfig, PMU.name: PmuConfig, AGCU.name: AgcuConfig}


def _letters() -> dict[str, UnitKind]:
    """Kinds of unit that stand on tiles, by their letters in a pattern."""
    return {kind.letter: kind for kind in UNIT_KINDS.values() if kind.letter}


def _checked(kind: type, table: Mapping[str, Any], where: str) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(kind)]
    for key in table:
        if key not in names:
            raise BadInputError(
                f"{where} must have only the keys {', '.join(names)}, not {shown(key)}"
            )
    return dict(table)


def from_toml(path: Path | str) -> ChipConfig:
    """Chip configuration of a TOML file: fields of ``ChipConfig``, one table per unit kind.

    Raises
    ------
    BadInputError
        If the file cannot be read, is not TOML, has an unknown key, or a value that cannot work.
    """
    name = shown(os.fspath(path))
    text = read_text(path, noun="Configuration")
    try:
        table = tomllib.loads(text)
    except RecursionError as error:
        raise BadInputError(f"Configuration {name} must be TOML nested less deeply") from error
    except ValueError as error:
        raise BadInputError(f"Configuration {name} must be TOML: {error}") from error
    fields = _checked(ChipConfig, table, f"Configuration {name}")
    for key, kind in SECTIONS.items():
        section = fields.get(key, {})
        if not isinstance(section, dict):
            raise BadInputError(f"{key} in {name} must be a table, not {shown(section)}")
        fields[key] = kind(**_checked(kind, section, f"[{key}] in {name}"))
    for key in ("rows", "columns"):
        if key not in fields:
            raise BadInputError(f"Configuration {name} must have the key {key!r}")
    return ChipConfig(**fields)


#: Named chip configurations.
named: dict[str, ChipConfig] = {
    "tiny": ChipConfig(
        rows=2,
        columns=2,
        width_bits=64,
        pmu=PmuConfig(capacity_bytes=4096),
        agcu=AgcuConfig(count=1),
    ),
    "small": ChipConfig(rows=4, columns=4),
    "large": ChipConfig(rows=6, columns=6, agcu=AgcuConfig(count=4)),
}
