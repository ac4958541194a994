"""Generated tables of areas: chips unit by unit, and stand-alone components."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import cast

from docs.tools.markdown import table
from docs.tools.reports import report
from gen.area import UnitArea, measure
from gen.unit_designs import UnitDesign
from gen.verilog import emit
from hw.arch.config import named as configurations
from hw.arch.limits import FUNCTION_BITS
from hw.array.cell import Cell
from hw.array.operand import OperandRecoder
from hw.emit.shared import Shareable
from hw.float.operations import OPERATIONS, OperationUnit
from hw.float.special_function_unit import SpecialFunctionUnit
from hw.float.special_functions import UNITS
from hw.lib.stream import vector_layout
from hw.mesh.switch import Switch
from hw.numeric.formats import (
    Format,
    bf16,
    e2m1,
    e4m3,
    e5m2,
    fp16,
    int4,
    int8,
    mxe2m1,
    mxe4m3,
    mxe5m2,
)
from hw.numeric.product_formats import CELL_SETS, DEFAULT_CELLS
from hw.pcu.unit import Pcu
from sim.cache import cache_directory

__all__ = [
    "TMA_WIDTHS",
    "cells",
    "chip",
    "cost_of_formats",
    "definition_cells",
    "function_unit",
    "functions",
    "operations",
    "pcus",
    "shares",
    "sums",
    "switches",
    "tma",
]

_CELLS: tuple[tuple[Format, ...], ...] = (
    (bf16,),
    (fp16,),
    (bf16, fp16),
    (int8,),
    (bf16, int8),
    (e4m3,),
    (e5m2,),
    (e4m3, e5m2),
    (mxe4m3,),
    (mxe5m2,),
    (mxe4m3, mxe5m2),
    (mxe2m1,),
    (e2m1,),
    (int4,),
)
#: Widths of the data at which TMA units are measured.
TMA_WIDTHS = (64, 256, 512)
_LATENCIES = (1, 2, 3)
_WIDTHS = (24, 16, 8)
#: Options of the 16 × 16 units whose share outside their MAC cells is listed.
_UNITS = (
    "--dataflow ws --format int8",
    "--dataflow is --format int8",
    "--dataflow os --format int8",
    "--dataflow ws --format bf16",
    "--dataflow ws --format int8 --latency 3",
    "--dataflow os --format int8 --latency 3",
    "--dataflow ws --format bf16 --latency 3",
    "--dataflow ws --format int8 --adder bottom",
    "--dataflow ws --format bf16 --adder bottom",
)


def _area(component: Shareable) -> UnitArea:
    return measure(UnitDesign("unit", 1, emit(component)), cache=cache_directory() / "area")


def definition_cells(options: str, prefix: str) -> int:
    """Generic cells of the one definition of a 16 × 16 unit whose name begins so."""
    found = report(f"tilewright area --component systolic --rows 16 --cols 16 {options}")
    (part,) = (part for part in found["units"][0]["definitions"] if part["name"].startswith(prefix))
    assert isinstance(part["cells"], int)
    return part["cells"]


def cost_of_formats() -> tuple[float, ...]:
    """Percent that scales add to e4m3 and e2m1; e4m3, and e4m3 with e5m2, over bf16."""

    def of(*formats: Format) -> int:
        return _area(Cell(formats=formats, latency=2)).cells

    added = [
        100 * (of(scaled) / of(plain) - 1) for scaled, plain in ((mxe4m3, e4m3), (mxe2m1, e2m1))
    ]
    return *added, of(e4m3) / of(bf16), of(e4m3, e5m2) / of(bf16)


def chip(config: str) -> str:
    """Units of a configuration."""
    found = report(f"tilewright area --config {config}")
    heads = "kind", "definition", "count", "cells", "flip-flops", "memory bits", "depth", "all"

    def rows() -> Iterator[tuple[object, ...]]:
        for unit in found["units"]:
            numbers = (unit[key] for key in ("cells", "flip_flops", "memory_bits", "depth"))
            whole = unit["count"] * unit["cells"]
            share = f"{whole / found['totals']['cells']:.1%}".replace("%", " %")
            yield unit["kind"], f"`{unit['name']}`", unit["count"], *numbers, whole, share

    return table((*heads, "share"), rows())


def sums() -> str:
    """Sums of the named configurations."""
    reports = {name: report(f"tilewright area --config {name}") for name in configurations}
    keys = ("cells", "flip_flops", "memory_bits")
    return table(
        ("configuration", "all cells", "flip-flops", "memory bits", "definitions of components"),
        (
            (name, *(found["totals"][key] for key in keys), found["definitions"])
            for name, found in reports.items()
        ),
    )


def cells() -> str:
    """Cells of every set of formats at every latency."""

    def rows() -> Iterator[tuple[object, ...]]:
        for formats in _CELLS:
            found = [_area(Cell(formats=formats, latency=latency)) for latency in _LATENCIES]
            products = sorted({fmt.products_per_cycle for fmt in formats})
            yield (
                " and ".join(fmt.name for fmt in formats),
                " or ".join(map(str, products)),
                *(area.cells for area in found),
                ", ".join(str(area.flip_flops) for area in found),
                ", ".join(str(area.depth) for area in found),
                _area(OperandRecoder(formats=formats)).cells,
            )

    return table(
        (
            "cell",
            "products per cycle",
            *(f"L = {latency}" for latency in _LATENCIES),
            "flip-flops",
            "depth",
            "recoder",
        ),
        rows(),
    )


def pcus() -> str:
    """PCUs of `small` with every set of formats of their cells."""
    small = configurations["small"]

    def rows() -> Iterator[tuple[object, ...]]:
        areas = {}
        for formats in CELL_SETS:
            config = dataclasses.replace(small.pcu, formats=tuple(each.name for each in formats))
            areas[formats] = _area(Pcu(width_bits=small.width_bits, config=config))
        for formats, area in areas.items():
            share = f"{area.cells / areas[DEFAULT_CELLS].cells:.2f}"
            names = ", ".join(f'"{each.name}"' for each in formats)
            rate = small.grid_rows * small.grid_columns * formats[-1].products_per_cycle
            yield f"`[{names}]`", rate, area.cells, share, area.flip_flops, area.depth

    heads = "`pcu.formats`", "most MAC per cycle", "cells", "of the default", "flip-flops", "depth"
    return table(heads, rows())


def functions() -> str:
    """Units of functions, by width."""

    def rows() -> Iterator[tuple[object, ...]]:
        for name, unit in UNITS.items():
            whole, *narrower = (_area(cast(Shareable, unit(width=width))) for width in _WIDTHS)
            yield (
                name,
                whole.cells,
                whole.flip_flops,
                whole.depth,
                *(area.cells for area in narrower),
            )

    return table(
        ("function", "cells, width 24", "flip-flops", "depth", "width 16", "width 8"), rows()
    )


def function_unit() -> str:
    """Special function unit with all its functions, by width."""

    def rows() -> Iterator[tuple[object, ...]]:
        for bits in (FUNCTION_BITS.low, 16, FUNCTION_BITS.high):
            area = _area(SpecialFunctionUnit(bits))
            yield bits, area.cells, area.flip_flops, area.depth

    return table(("function_bits", "cells", "flip-flops", "depth"), rows())


def operations() -> str:
    """Operations without registers."""
    areas = {name: _area(OperationUnit(name)) for name in OPERATIONS}
    return table(
        ("operation (no registers)", "cells", "depth"),
        ((name, area.cells, area.depth) for name, area in areas.items()),
    )


def switches() -> str:
    """A switch of a fabric, and one as small as a router of five ports."""
    whole = Switch(payload_shape=vector_layout(256), tracks=3, unit_outputs=2, unit_inputs=3)
    least = Switch(payload_shape=vector_layout(64), tracks=1, unit_outputs=1, unit_inputs=1)
    texts = (
        "W = 256 (258-bit payload), 3 tracks, 2 unit outputs, 3 unit inputs",
        "W = 64 (66-bit payload), 1 track, 1 unit output, 1 unit input: a router of five ports",
    )
    areas = (_area(whole), _area(least))
    return table(
        ("switch", "cells", "flip-flops"),
        ((text, area.cells, area.flip_flops) for text, area in zip(texts, areas)),
    )


def tma() -> str:
    """Engine of a chip, and stand-alone units with the default parameters, by width of the data."""

    def rows() -> Iterator[tuple[object, ...]]:
        for name in ("tma", "tma_unit", "tma_top"):
            for width in TMA_WIDTHS:
                found = report(f"tilewright area --component {name} --data-bits {width}")["totals"]
                sums = (found["cells"], found["flip_flops"], found["memory_bits"])
                yield f"`{name}`", width, *sums

    return table(("`--component`", "`--data-bits`", "cells", "flip-flops", "memory bits"), rows())


def shares() -> str:
    """Generic cells of stand-alone units, and the share of them outside the MAC cells."""

    def rows() -> Iterator[tuple[object, ...]]:
        for options in _UNITS:
            found = report(f"tilewright area --component systolic --rows 16 --cols 16 {options}")
            share = f"{100 * found['share_outside_cells']:.1f} %"
            yield f"`{options}`", found["totals"]["cells"], share

    return table(("`--component systolic`", "unit: cells", "outside the cells"), rows())
