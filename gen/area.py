"""Area of units in generic cells and, with a liberty file, in µm², synthesized per module."""

import dataclasses
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gen.liberty import FILE_NAME, MAP, Liberty, run_mapping
from gen.unit_designs import UnitDesign
from gen.yosys import require_yosys, run_script

__all__ = ["DefinitionArea", "UnitArea", "measure", "shares", "totals"]

# `synth` without `memory_map` for written memories: they stay memories.
_SCRIPT = """\
read_verilog design.v
{black_boxes}
hierarchy -check -top {top}
proc
synth -run coarse:fine -top {top}
opt -fast -full
memory_map -rom-only
{in_gates}
opt -full
techmap
opt -fast
abc
opt -fast
memory_unpack
tee -q -o cells.json stat -json
tee -q -o paths.txt ltp -noff w:* t:$_*
"""
# From the same gates; a memory that is written stays a memory, which has no area here.
_MAPPING = f"""\
{MAP}select -assert-none t:$_*
tee -q -o areas.json stat -json -liberty {FILE_NAME}
"""
_REGISTER = re.compile(r"\$_\w*(?:FF|LATCH|SR)\w*_$")
_PATH = re.compile(r"^Longest topological path in (\S+) \(length=(-?\d+)\)", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class DefinitionArea:
    """Area of one module definition's own logic, without the definitions it instantiates.

    Members
    -------
    name : str
        Name of the module.
    instances : int
        Instances of it in one unit.
    cells, flip_flops : int
        Generic gate-level cells, flip-flops included; flip-flops.
    memory_bits : int
        Bits of its memories.
    depth : int
        Most cells between two registers inside it: an indication of its delay, not a delay.
    square_um : float, optional
        Area of the liberty's cells it is mapped to; none without a liberty. Memories have none.
    """

    name: str
    instances: int
    cells: int
    flip_flops: int
    memory_bits: int
    depth: int
    square_um: float | None = None

    def record(self) -> dict[str, Any]:
        """The figures as plain data; no area without a liberty."""
        return {name: figure for name, figure in vars(self).items() if figure is not None}


@dataclasses.dataclass(frozen=True)
class UnitArea:
    """Area of one unit of a kind: sums over its definitions, each times its instances.

    Members
    -------
    kind, count, note
        As of :class:`gen.unit_designs.UnitDesign`.
    name : str
        Name of the unit's module.
    definitions : tuple of DefinitionArea
    """

    kind: str
    name: str
    count: int
    note: str
    definitions: tuple[DefinitionArea, ...]

    def _sum(self, figure: str) -> int:
        return sum(getattr(part, figure) * part.instances for part in self.definitions)

    @property
    def cells(self) -> int:
        """Cells of one unit, flip-flops included."""
        return self._sum("cells")

    @property
    def flip_flops(self) -> int:
        """Flip-flops of one unit."""
        return self._sum("flip_flops")

    @property
    def memory_bits(self) -> int:
        """Bits of one unit's memories."""
        return self._sum("memory_bits")

    @property
    def square_um(self) -> float | None:
        """Area of one unit's cells as the liberty states them; none without a liberty."""
        if any(part.square_um is None for part in self.definitions):
            return None
        return sum((part.square_um or 0.0) * part.instances for part in self.definitions)

    @property
    def depth(self) -> int:
        """Depth of the deepest definition."""
        return max(part.depth for part in self.definitions)

    def record(self) -> dict[str, Any]:
        """The unit as plain data; no area without a liberty."""
        names = ("kind", "name", "count", *_summed([self]), "depth", "note")
        fields: dict[str, Any] = {name: getattr(self, name) for name in names}
        return fields | {"definitions": [part.record() for part in self.definitions]}


def _summed(units: Iterable[UnitArea]) -> tuple[str, ...]:
    """Names of the figures that add up over units."""
    mapped = all(unit.square_um is not None for unit in units)
    return ("cells", "flip_flops", "memory_bits", *(("square_um",) if mapped else ()))


def totals(units: Iterable[UnitArea]) -> dict[str, float]:
    """Cells, flip-flops, memory bits and, with a liberty, µm² of all units: area times count."""
    units = list(units)
    return {
        figure: sum(unit.count * getattr(unit, figure) for unit in units)
        for figure in _summed(units)
    }


def shares(units: Iterable[UnitArea]) -> dict[str, dict[str, float]]:
    """Share of each kind in the totals of these units."""
    units = list(units)
    whole = totals(units)
    kinds = {unit.kind: [other for other in units if other.kind == unit.kind] for unit in units}
    return {
        kind: {figure: part / (whole[figure] or 1) for figure, part in totals(of_kind).items()}
        for kind, of_kind in kinds.items()
    }


def _square_um(modules: Mapping[str, Any]) -> dict[str, float]:
    """Area of each module's own cells; yosys includes those of the modules that it instantiates."""
    whole = {name: module.get("area", 0.0) for name, module in modules.items()}
    areas = {}
    for name, module in modules.items():
        cells: dict[str, int] = module["num_cells_by_type"]
        below = sum(count * whole.get(f"\\{kind}", 0.0) for kind, count in cells.items())
        # Digits beyond those that yosys writes are noise of the subtraction.
        areas[name.removeprefix("\\")] = round(whole[name] - below, 6)
    return areas


def _synthesize(verilog: str, script: str, liberty: Liberty | None) -> dict[str, dict[str, float]]:
    """Figures of each module that the result of `script` contains, by name."""
    with tempfile.TemporaryDirectory(prefix="tilewright-area.") as name:
        folder = Path(name)
        (folder / "design.v").write_text(verilog)
        if liberty is None:
            run_script(folder, script)
        else:
            (folder / FILE_NAME).write_text(liberty.text)
            run_mapping(folder, script, liberty.file)
        modules = json.loads((folder / "cells.json").read_text())["modules"]
        depths = dict(_PATH.findall((folder / "paths.txt").read_text()))
        areas = {}
        if liberty is not None:
            areas = _square_um(json.loads((folder / "areas.json").read_text())["modules"])
    names = {key.removeprefix("\\"): module for key, module in modules.items()}
    figures: dict[str, dict[str, float]] = {}
    for name, module in names.items():
        cells: dict[str, int] = module["num_cells_by_type"]
        gates = {kind: count for kind, count in cells.items() if kind.startswith("$_")}
        for kind in cells:
            if kind.startswith("$") and kind not in gates and not kind.startswith("$mem"):
                raise RuntimeError(f"yosys left the cell {kind} in {name}, which is no gate")
        figures[name] = {
            "cells": sum(gates.values()),
            "flip_flops": sum(n for kind, n in gates.items() if _REGISTER.match(kind)),
            "memory_bits": module["num_memory_bits"],
            "depth": max(0, int(depths[name])) if gates else 0,
        }
        if liberty is not None:
            figures[name]["square_um"] = areas[name]
    return figures


def _cached(
    verilog: str,
    script: str,
    liberty: Liberty | None,
    cache: Path | None,
) -> dict[str, dict[str, Any]]:
    version = require_yosys()
    inputs = (version, script, verilog, *((liberty.text,) if liberty is not None else ()))
    key = hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:32]
    path = cache / f"{key}.json" if cache else None
    figures: dict[str, dict[str, float]]
    if path is not None and path.exists():
        figures = json.loads(path.read_text())
        return figures
    figures = _synthesize(verilog, script, liberty)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(json.dumps(figures))
        os.replace(partial, path)
    return figures


def measure(
    unit: UnitDesign,
    *,
    liberty: Liberty | None = None,
    cache: Path | None = None,
    in_gates: Sequence[str] = (),
) -> UnitArea:
    """Area of a unit.

    The own logic of every definition is synthesized once; a unit is the sum over its definitions,
    each times its instances. So logic is not optimized across the ports of definitions.

    Parameters
    ----------
    unit : UnitDesign
        The unit.
    liberty : Liberty, optional
        Standard cells to which the gates are also mapped, for their area.
    in_gates : sequence of str
        Definitions whose memories become flip-flops.
    cache : Path
        Folder of finished measurements, keyed by Verilog, script, liberty and yosys version.

    Raises
    ------
    MissingToolError
        If yosys is not installed.
    BadInputError
        If the liberty lacks a cell that the mapping needs.
    RuntimeError
        If yosys fails, or its result has unexpected modules.
    """
    design = unit.design
    instances = {name: n for name, n in design.instances.items() if name not in unit.black_boxes}
    boxes = " ".join(unit.black_boxes)
    script = _SCRIPT.format(
        top=design.top,
        black_boxes=f"blackbox {boxes}" if boxes else "",
        in_gates=f"memory_map {' '.join(in_gates)}" if in_gates else "",
    )
    script += _MAPPING if liberty is not None else ""
    figures = _cached(design.text, script, liberty, cache)
    if figures.keys() - set(unit.black_boxes) != instances.keys():
        raise RuntimeError(f"yosys left the modules {sorted(figures)}, not {sorted(instances)}")
    parts = tuple(DefinitionArea(name, n, **figures[name]) for name, n in instances.items())
    return UnitArea(unit.kind, design.top, unit.count, unit.note, parts)
