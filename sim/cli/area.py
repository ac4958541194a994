"""``tilewright area``: cells, flip-flops and memory bits of a configuration."""

import argparse
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sim.cli.options import Subparsers, add_config, add_json, load_config, validating

if TYPE_CHECKING:
    from gen.area import UnitArea

__all__ = ["KINDS", "add", "execute"]

#: Kinds of unit that ``--component`` takes.
KINDS = ("pcu", "pmu", "switch", "token_switch", "tma", "command")


def add(subparsers: Subparsers) -> None:
    """Register the options of ``area``."""
    parser = subparsers.add_parser(
        "area",
        help="estimate the area of a chip, unit by unit",
        description="Estimate the area of a chip, unit by unit, in generic cells.",
    )
    add_config(parser)
    parser.add_argument("--component", choices=KINDS, help="measure this kind of unit alone")
    add_json(parser)


def _progress() -> Any:
    """Printer of progress that warns of the long first start once."""
    hint = [" (the first start of yosys on a machine takes about 40 s more)"]

    def say(line: str) -> None:
        print(f"tilewright area: {line}{hint.pop() if hint else ''}", file=sys.stderr, flush=True)

    return say


def _table(units: "Iterable[UnitArea]", sums: dict[str, int]) -> list[str]:
    heads = ("unit", "count", "cells", "flip-flops", "memory bits", "depth", "all cells", "share")
    rows = [
        (
            unit.kind,
            f"{unit.count:,}",
            f"{unit.cells:,}",
            f"{unit.flip_flops:,}",
            f"{unit.memory_bits:,}",
            f"{unit.depth}",
            f"{unit.count * unit.cells:,}",
            f"{unit.count * unit.cells / sums['cells']:.1%}",
        )
        for unit in units
    ]
    widths = [max(map(len, column)) for column in zip(heads, *rows)]
    return [
        "  ".join(
            [row[0].ljust(widths[0])] + [cell.rjust(n) for cell, n in zip(row[1:], widths[1:])]
        )
        for row in (heads, *rows)
    ]


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Synthesize each kind of unit of ``--config`` once and multiply by its count."""
    config = load_config(args.config)

    from gen.area import measure, require_yosys, shares, totals
    from gen.components import MISSING, components
    from sim.native.build import cache_directory

    require_yosys()
    with validating("--config"):
        kinds = components(config)
    chosen = [kind for kind in kinds if args.component in (None, kind.kind)]
    say = _progress()
    units = [measure(kind, cache=cache_directory() / "area", progress=say) for kind in chosen]
    sums = totals(units)
    print("\n".join(_table(units, sums)))
    print(
        f"total: {sums['cells']:,} cells, {sums['flip_flops']:,} of them flip-flops; "
        f"{sums['memory_bits']:,} memory bits"
    )
    for unit in units:
        if unit.note:
            print(f"{unit.kind}: {unit.note}")
    print(f"missing: {', '.join(MISSING)}; shares are of the units listed, not of a chip")
    print("depth: most cells between registers inside one definition, a hint and no delay")
    return {
        "config": args.config,
        "units": [unit.record() for unit in units],
        "totals": sums,
        "shares": shares(units),
        "missing": list(MISSING),
    }
