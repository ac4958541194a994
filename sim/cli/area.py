"""``tilewright area``: cells, flip-flops and memory bits of a configuration."""

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from sim.cli.options import Subparsers, add_config, add_json, load_config, validating
from sim.cli.systolic import COMPONENT, add_systolic, asks_for_systolic, systolic_config

if TYPE_CHECKING:
    from gen.area import UnitArea

__all__ = ["CHOICES", "add", "execute"]

#: Kinds of unit that ``--component`` takes; gen.components is too slow to import for a help.
CHOICES = ("pcu", "pmu", "switch", "token_switch", "chain", "agcu", "command", "rest")

_HEADS = ("kind", "unit", "count", "cells", "flip-flops", "memory bits", "depth", "all", "share")
_LEFT = 2


def add(subparsers: Subparsers) -> None:
    """Register the options of ``area``."""
    parser = subparsers.add_parser(
        "area",
        help="estimate the area of a chip, unit by unit",
        description="Estimate the area of a chip, unit by unit, in generic cells.",
    )
    add_config(parser)
    parser.add_argument(
        "--component", choices=(*CHOICES, COMPONENT), help="measure this kind of unit alone"
    )
    add_systolic(parser)
    add_json(parser)


def _progress() -> Callable[[str], None]:
    """Printer of progress that warns of the long first start once."""
    hint = [" (the first start of yosys on a machine takes about 40 s more)"]

    def say(line: str) -> None:
        print(f"tilewright area: {line}{hint.pop() if hint else ''}", file=sys.stderr, flush=True)

    return say


def _table(units: "Iterable[UnitArea]", all_cells: int) -> list[str]:
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
            f"{unit.count * unit.cells / (all_cells or 1):.1%}",
        )
        for unit in units
    ]
    widths = [max(map(len, column)) for column in zip(_HEADS, *rows)]
    return [
        "  ".join(
            cell.ljust(width) if index < _LEFT else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths))
        )
        for row in (_HEADS, *rows)
    ]


def _systolic(args: argparse.Namespace) -> dict[str, Any]:
    """Area of a stand-alone matrix unit: each of its definitions once, times its instances."""
    from gen.area import measure, totals
    from gen.components import Component
    from gen.verilog import emit
    from gen.yosys import require_yosys
    from hw.systolic.unit import systolic_unit
    from sim.native.build import cache_directory

    config, count = systolic_config(args)
    require_yosys()
    component = Component(COMPONENT, count, emit(systolic_unit(config)))
    unit = measure(component, cache=cache_directory() / "area", progress=_progress())
    for part in sorted(unit.definitions, key=lambda part: -part.cells * part.instances):
        print(
            f"{part.instances:>7,} × {part.name:<44} {part.cells:>9,} cells "
            f"{part.flip_flops:>8,} flip-flops  {part.cells * part.instances / unit.cells:6.1%}"
        )
    array = config.array
    cells = next(part for part in unit.definitions if part.instances == array.rows * array.columns)
    rest = 1 - cells.cells * cells.instances / unit.cells
    print(
        f"unit: {unit.cells:,} cells, {unit.flip_flops:,} of them flip-flops, "
        f"{unit.memory_bits:,} memory bits; {rest:.1%} outside its {cells.instances:,} cells; "
        f"a core has {count}"
    )
    return {
        "units": [unit.record()],
        "totals": totals([unit]),
        "array_cells": cells.instances,
        "share_outside_cells": rest,
    }


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Synthesize each unit of ``--config`` once and multiply by its count."""
    if asks_for_systolic(args):
        return _systolic(args)
    config = load_config(args.config)

    from gen.area import measure, shares, totals
    from gen.components import KINDS, components
    from gen.verilog import emit
    from gen.yosys import require_yosys
    from hw.chip import Chip
    from sim.native.build import cache_directory

    require_yosys()
    # Some units refuse their parameters only when the chip is elaborated.
    with validating("--config"):
        design = emit(Chip(config))
    found = components(design)
    chosen = [unit for unit in found if args.component in (None, unit.kind)]
    missing = [kind for kind in KINDS if kind not in {unit.kind for unit in found}]
    say = _progress()
    units = [measure(unit, cache=cache_directory() / "area", progress=say) for unit in chosen]
    sums = totals(units)
    print("\n".join(_table(units, sums["cells"])))
    print(
        f"total: {sums['cells']:,} cells, {sums['flip_flops']:,} of them flip-flops; "
        f"{sums['memory_bits']:,} memory bits"
    )
    for unit in units:
        if unit.note:
            print(f"{unit.kind}: {unit.note}")
    if missing:
        print(f"missing: {', '.join(missing)}")
    if missing or args.component:
        print("shares are of the units listed, not of the chip")
    print("depth: most cells in a row inside one definition, a hint and no delay")
    return {
        "config": args.config,
        "definitions": sum("." not in name for name in design.instances),
        "units": [unit.record() for unit in units],
        "totals": sums,
        "shares": shares(units),
        "missing": missing,
    }
