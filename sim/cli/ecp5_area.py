"""``tilewright area --target ecp5``: LUTs, DSPs, block RAMs and clock of units in an ECP5."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from hw.arch.errors import BadInputError
from sim.cli.requested_component import requested_component
from sim.cli.unit_options import asks_for_systolic
from sim.components import COMPONENTS
from sim.progress import shown_progress

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gen.fpga.ecp5 import Ecp5Use
    from gen.unit_designs import UnitDesign

__all__ = ["ecp5_area"]

_HEADS = ("kind", "unit", "count", "LUTs", "flip-flops", "DSPs", "block RAMs", "clock")
_LEFT = 2


def _designs(args: argparse.Namespace) -> list[UnitDesign]:
    """The component, or every unit of the chip but the rest, which has no ports of its own."""
    from gen.unit_designs import REST, UnitDesign, unit_designs
    from gen.verilog import emit

    kind = args.component
    if kind == REST:
        raise BadInputError(
            f"--component must be a unit with --target ecp5, not {kind!r}",
            where="--component",
            value=kind,
            rule="a unit",
        )
    if asks_for_systolic(args) or kind in COMPONENTS:
        asked = requested_component(args)
        return [UnitDesign(kind or args.preset, 1, emit(asked.component))]
    found = unit_designs(emit(requested_component(args).component))
    return [unit for unit in found if unit.kind != REST]


def ecp5_area(args: argparse.Namespace) -> dict[str, Any]:
    """Measure a component, or each unit of ``--config``, and print a table.

    Parameters
    ----------
    args : argparse.Namespace
        Options of ``area``.

    Raises
    ------
    BadInputError
        If an option does not belong to this target.
    MissingToolError
        If yosys or nextpnr is not installed.
    """
    from gen.fpga.ecp5 import DEVICE, measure_ecp5, require_ecp5
    from sim.cache import cache_directory

    if args.liberty is not None:
        raise BadInputError(
            f"--liberty must come without --target ecp5, not {args.liberty!r}: an FPGA has "
            "cells of its own",
            where="--liberty",
            value=args.liberty,
            rule="left out",
        )
    require_ecp5()
    rows: list[tuple[UnitDesign, Ecp5Use]] = []
    with shown_progress() as progress:
        with progress.step("emitting Verilog"):
            units = _designs(args)
        for number, unit in enumerate(units, 1):
            with progress.step(f"placing {number} of {len(units)}: {unit.design.top}"):
                use = measure_ecp5(unit.design, cache=cache_directory() / "area")
                rows.append((unit, use))
    print("\n".join(_table(rows)))
    for unit, use in rows:
        if use.note:
            print(f"{unit.kind}: {use.note}")
    print(f"{DEVICE}, each unit alone, out of context; clock after place and route, of one seed")
    return {
        "device": DEVICE,
        "units": [{"kind": unit.kind, "count": unit.count, **use.record()} for unit, use in rows],
    }


def _table(rows: Iterable[tuple[UnitDesign, Ecp5Use]]) -> list[str]:
    cells = [
        (
            unit.kind,
            use.name,
            f"{unit.count:,}",
            f"{use.luts:,}",
            f"{use.flip_flops:,}",
            f"{use.dsps:,}",
            f"{use.block_rams:,}",
            "-" if use.clock_mhz is None else f"{use.clock_mhz:.1f} MHz",
        )
        for unit, use in rows
    ]
    widths = [max(map(len, column)) for column in zip(_HEADS, *cells)]
    return [
        "  ".join(
            cell.ljust(width) if index < _LEFT else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths))
        )
        for row in (_HEADS, *cells)
    ]
