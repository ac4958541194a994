"""``tilewright area``: cells, flip-flops, memory bits and optionally µm² of a configuration."""

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.cli.ecp5_area import ecp5_area
from sim.cli.measured_areas import measured_areas
from sim.cli.options import DEFAULT_CONFIG, Subparsers, add_config, add_json
from sim.cli.stand_alone import add_settings, require_no_settings, stand_alone
from sim.cli.unit_options import (
    COMPONENT,
    add_systolic,
    asks_for_systolic,
    component_name,
    systolic_component,
    systolic_config,
)
from sim.components import ARRAYS, COMPONENTS
from sim.progress import shown_progress
from sim.rules import load_config, validating

if TYPE_CHECKING:
    from gen.area import UnitArea
    from gen.liberty import Liberty

__all__ = ["CHOICES", "TARGETS", "add", "execute"]

#: What the area is measured in.
TARGETS = ("cells", "ecp5")

#: Kinds of unit that ``--component`` takes; gen.unit_designs is too slow to import for a help.
CHOICES = ("pcu", "pmu", "switch", "token_switch", "config_segment", "agcu", "command", "rest")

_HEADS = ("kind", "unit", "count", "cells", "flip-flops", "memory bits", "depth", "all", "share")
_MAPPED_HEADS = ("µm²", "all µm²", "share of µm²")
_LEFT = 2


def add(subparsers: Subparsers) -> None:
    """Register the options of ``area``."""
    parser = subparsers.add_parser(
        "area",
        help="estimate the area of a chip by unit",
        description="Estimate the area of a chip by unit, in generic cells and optionally in µm².",
    )
    add_config(parser, default=None)
    parser.add_argument(
        "--component",
        type=component_name,
        choices=tuple(dict.fromkeys((*CHOICES, *COMPONENTS, *ARRAYS))),
        metavar="NAME",
        help="measure only this component of `tilewright list`, or `rest`: all outside the units",
    )
    parser.add_argument(
        "--liberty", metavar="CELLS.lib", help="standard-cell library for areas in µm²"
    )
    parser.add_argument(
        "--target",
        choices=TARGETS,
        default=TARGETS[0],
        help="generic cells, or LUTs, DSPs, block RAMs and the placed clock of an ECP5",
    )
    add_settings(parser)
    add_systolic(parser)
    add_json(parser)


def _liberty(file: str | None) -> "Liberty | None":
    """The requested library, checked by a trial synthesis after a check for the tool."""
    from gen.liberty import load_liberty
    from gen.yosys import require_yosys

    require_yosys()
    if file is None:
        return None
    with validating("--liberty"):
        return load_liberty(Path(file))


def _liberty_record(liberty: "Liberty | None") -> dict[str, Any]:
    """The library as part of the report, if areas in µm² were requested."""
    if liberty is None:
        return {}
    return {"liberty": {"file": liberty.file, "library": liberty.name}}


def _explain(liberty: "Liberty | None") -> None:
    if liberty is not None:
        print(
            f"µm²: areas of cells as {liberty.file} ({liberty.name}) states them, in µm² by "
            "convention, because a Liberty file names no unit; no memories, wires or placement"
        )


def _table(units: "Iterable[UnitArea]", sums: Mapping[str, float]) -> list[str]:
    heads = (*_HEADS, *(_MAPPED_HEADS if "square_um" in sums else ()))
    rows = [
        (
            unit.kind,
            unit.name,
            f"{unit.count:,}",
            f"{unit.cells:,}",
            f"{unit.flip_flops:,}",
            f"{unit.memory_bits:,}",
            f"{unit.depth}",
            f"{unit.count * unit.cells:,}",
            f"{unit.count * unit.cells / (sums['cells'] or 1):.1%}",
            *(() if unit.square_um is None else _mapped(unit.square_um, unit.count, sums)),
        )
        for unit in units
    ]
    widths = [max(map(len, column)) for column in zip(heads, *rows)]
    return [
        "  ".join(
            cell.ljust(width) if index < _LEFT else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths))
        )
        for row in (heads, *rows)
    ]


def _mapped(square_um: float, count: int, sums: Mapping[str, float]) -> tuple[str, str, str]:
    whole = count * square_um
    return f"{square_um:,.0f}", f"{whole:,.0f}", f"{whole / (sums['square_um'] or 1):.1%}"


def _systolic(args: argparse.Namespace) -> dict[str, Any]:
    """Area of a stand-alone matrix unit: each definition synthesized once, times its instances."""
    from gen.area import totals
    from gen.unit_designs import UnitDesign
    from gen.verilog import emit

    config, count = systolic_config(args)
    liberty = _liberty(args.liberty)
    with shown_progress() as progress:
        with progress.step("emitting Verilog"):
            design = emit(systolic_component(args, config))
        component = UnitDesign(args.component or COMPONENT, count, design)
        (unit,) = measured_areas([component], liberty, progress)
    width = max(len(part.name) for part in unit.definitions)
    for part in sorted(unit.definitions, key=lambda part: -part.cells * part.instances):
        print(
            f"{part.instances:>7,} × {part.name:<{width}} {part.cells:>9,} cells "
            f"{part.flip_flops:>8,} flip-flops  {part.cells * part.instances / unit.cells:6.1%}"
            + ("" if part.square_um is None else f" {part.square_um:>12,.0f} µm²")
        )
    kinds = {name: definition.kind for name, definition in design.definitions.items()}
    (cells,) = (part for part in unit.definitions if kinds[part.name] in ("Cell", "OutputCell"))
    rest = 1 - cells.cells * cells.instances / unit.cells
    outside = {"array_cells": cells.instances, "share_outside_cells": rest}
    print(
        f"unit: {unit.cells:,} cells, {unit.flip_flops:,} of them flip-flops, "
        f"{unit.memory_bits:,} memory bits; {rest:.1%} outside its {cells.instances:,} cells"
        + (f"; {count} per core" if args.preset else "")
    )
    if unit.square_um is not None and cells.square_um is not None:
        rest = 1 - cells.square_um * cells.instances / unit.square_um
        outside["square_um_share_outside_cells"] = rest
        print(f"unit: {unit.square_um:,.0f} µm², {rest:.1%} outside its cells")
    _explain(liberty)
    return {
        **_liberty_record(liberty),
        "units": [unit.record()],
        "totals": totals([unit]),
        **outside,
    }


def _stand_alone(args: argparse.Namespace) -> dict[str, Any]:
    """Area of a stand-alone component of the table."""
    from gen.area import totals
    from gen.unit_designs import UnitDesign
    from gen.verilog import emit

    unit, _ = stand_alone(args, load_config(args.config or DEFAULT_CONFIG))
    liberty = _liberty(args.liberty)
    with shown_progress() as progress:
        with progress.step("emitting Verilog"):
            design = emit(unit)
        units = measured_areas([UnitDesign(args.component, 1, design)], liberty, progress)
    sums = totals(units)
    print("\n".join(_table(units, sums)))
    _explain(liberty)
    return {
        **_liberty_record(liberty),
        "units": [each.record() for each in units],
        "totals": sums,
    }


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Synthesize each unit of ``--config`` once, and multiply by its count."""
    if args.target == "ecp5":
        return ecp5_area(args)
    if asks_for_systolic(args):
        require_no_settings(args)
        return _systolic(args)
    if args.component in COMPONENTS and (args.settings or args.component not in CHOICES):
        return _stand_alone(args)
    require_no_settings(args)
    name = args.config or DEFAULT_CONFIG
    config = load_config(name)

    from gen.area import shares, totals
    from gen.unit_designs import KINDS, unit_designs
    from gen.verilog import emit
    from hw.chip import Chip

    liberty = _liberty(args.liberty)
    # Some units refuse their parameters only when the chip is elaborated.
    with shown_progress() as progress:
        with progress.step("emitting Verilog"), validating("--config"):
            design = emit(Chip(config))
        found = unit_designs(design)
        chosen = [unit for unit in found if args.component in (None, unit.kind)]
        missing = [kind for kind in KINDS if kind not in {unit.kind for unit in found}]
        units = measured_areas(chosen, liberty, progress)
    sums = totals(units)
    print("\n".join(_table(units, sums)))
    print(
        f"total: {sums['cells']:,} cells, {sums['flip_flops']:,} of them flip-flops; "
        f"{sums['memory_bits']:,} memory bits"
        + (f"; {sums['square_um']:,.0f} µm²" if "square_um" in sums else "")
    )
    for unit in units:
        if unit.note:
            print(f"{unit.kind}: {unit.note}")
    if missing:
        print(f"missing: {', '.join(missing)}")
    if missing or args.component:
        print("shares are of the units listed, not of the chip")
    print("depth: most cells in series within one definition; an indication, not a delay")
    _explain(liberty)
    return {
        "config": name,
        **_liberty_record(liberty),
        "definitions": len(design.instances),
        "units": [unit.record() for unit in units],
        "totals": sums,
        "shares": shares(units),
        "missing": missing,
    }
