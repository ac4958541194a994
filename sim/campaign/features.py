"""Feature bins: named properties of cases, whose coverage a long run checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from sim.campaign.case import Fields
from sim.campaign.generators.programs import Program

__all__ = ["BINS", "LEAST", "missing", "program_features"]

#: Required hits per bin in a full run.
LEAST = 5

#: Every bin that a full run must cover, by kind of case.
BINS: Mapping[str, tuple[str, ...]] = {
    "program": (
        "refused",
        "on RTL",
        "same cycles again",
        "A resident",
        "A streamed",
        "one pass",
        "two passes",
        "many passes",
        "halves of B",
        "several blocks of C",
        "A loaded by two AGCUs",
        "results merged",
        "weights merged",
        "ring wrapped",
        "one slot",
        "ragged m",
        "ragged n",
        "ragged k",
        "side of 1",
        "slabs of several tiles",
        "grid of one PCU",
        "grid of many PCUs",
        "launch list",
        "tile beyond the extent",
        "burst split at 4 KiB",
        "bf16 to fp32",
        "int8",
        "sum not finite",
        "latency above 100",
        "jitter",
        "stall of one channel",
    ),
    "image": (
        "multicast",
        "merge",
        "unequal turns",
        "nest of loops",
        "affine loop",
        "shifted loop",
        "filtered packets",
        "columns",
        "elements of 1 byte",
        "elements of 4 bytes",
        "ring of one slot",
        "live",
        "dead",
    ),
    "list": ("two kernels", "more than two kernels"),
    "axi": ("read error", "write error", "launch error", "SLVERR", "DECERR", "several errors"),
    "bit": ("harmless", "wrong output reported"),
}


def missing(met: Mapping[str, int], kinds: Mapping[str, int]) -> list[str]:
    """Bins of the kinds that ran with too few hits."""
    return [
        f"{name} ({met.get(name, 0)} of {LEAST})"
        for kind, names in BINS.items()
        if kinds.get(kind)
        for name in names
        if met.get(name, 0) < LEAST
    ]


def program_features(fields: Fields, program: Program) -> Iterator[str]:
    """Bins of a program that fits its chip."""
    compiled = program.compiled
    (part,) = compiled.parts
    plan, fit = part.plan, part.fit
    assert plan is not None and fit is not None
    sides = [fields["dims"][name] for name in fields["dims"]]
    m, n, k = plan.product.m, plan.product.n, plan.product.k
    passes = plan.halves * plan.passes
    memory = fields["memory"]
    met = {
        "A resident": plan.resident,
        "A streamed": not plan.resident,
        "one pass": passes == 1,
        "two passes": passes == 2,
        "many passes": passes > 2,
        "halves of B": plan.halves > 1,
        "several blocks of C": plan.c_blocks > 1,
        "A loaded by two AGCUs": fit.a_parts > 1,
        "results merged": any(len(net.sources) > 1 for net in part.netlist.nets if not net.tokens),
        "weights merged": len(fit.b_agcus) > 1,
        "ring wrapped": any(
            home.slots < plan.a_slabs * plan.row_blocks for home in fit.homes.values()
        ),
        "one slot": any(home.slots == 1 for home in fit.homes.values()),
        "ragged m": m % plan.block_rows != 0,
        "ragged n": n % plan.columns != 0,
        "ragged k": k % plan.lanes != 0,
        "side of 1": 1 in sides,
        "slabs of several tiles": plan.a_slab > 1,
        "grid of one PCU": plan.row_par * plan.col_par == 1,
        "grid of many PCUs": plan.row_par * plan.col_par > 2,
        "launch list": fields["launches"] > 1,
        "tile beyond the extent": any(
            size > max(sides) for size in fields["schedule"].get("tile", {}).values()
        ),
        # Rows begin at any address, so a row of this length crosses a boundary within a page.
        "burst split at 4 KiB": any(
            spec.bytes > 4096 and 4096 % spec.pitch for spec in compiled.arrays
        ),
        "bf16 to fp32": fields["dtype"] == "bf16" and fields["out"] == "fp32",
        "int8": fields["dtype"] == "int8",
        "sum not finite": any(_not_finite(array) for array in program.golden.values()),
        "latency above 100": memory["latency"] > 100,
        "jitter": memory["jitter"] > 0,
        "stall of one channel": sum(stall > 0 for stall in memory["stalls"]) == 1,
    }
    return (name for name, holds in met.items() if holds)


def _not_finite(array: object) -> bool:
    wide = np.asarray(array)
    return wide.dtype.kind != "i" and not np.isfinite(wide.astype(np.float32)).all()
