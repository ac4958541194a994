"""Generated tables of chips: parameters, text, image, cycles of products, links of placements."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path

from docs.tools.markdown import table
from docs.tools.reports import report
from hw.arch.config import ChipConfig
from hw.arch.config import named as configurations
from hw.numeric.formats import bf16
from sw.compiled import Compiled
from sw.compiler import compile_kernel
from sw.fabric.place import place
from sw.fabric.route import route
from sw.kernels.gemm import gemm
from sw.kernels.matmul import matmul
from sw.language import Kernel, Schedule
from sw.prove import prove

__all__ = [
    "SEEDS",
    "epilogues",
    "links",
    "parameters",
    "pipelines",
    "products",
    "steps",
    "texts",
]

#: Kernels without a product whose cycles are measured.
_PIPELINES = ("add", "silu", "gelu", "softmax", "rms_norm", "layer_norm", "transpose")
#: Products with element math on their sums whose cycles are measured, the plain one first.
_EPILOGUES = ("matmul", "linear", "residual", "linear_gelu")
#: Kernel, format, extents and schedule of the products whose cycles the cost model is held to.
_PRODUCTS: tuple[tuple[str, str, tuple[int, int, int], dict[str, int]], ...] = (
    ("matmul", "bf16", (256, 256, 256), {}),
    ("matmul", "int8", (256, 256, 256), {}),
    ("matmul", "bf16", (512, 512, 512), {}),
    ("matmul", "int8", (512, 512, 512), {}),
    ("matmul", "bf16", (251, 257, 263), {}),
    ("gemm", "bf16", (256, 256, 256), {}),
    ("matmul_nt", "bf16", (256, 256, 256), {}),
    ("matmul_tn", "bf16", (256, 256, 256), {}),
    ("matmul_tt", "bf16", (256, 256, 256), {}),
    ("matmul", "bf16", (512, 256, 256), {"row_par": 1, "col_par": 1}),
    ("matmul", "bf16", (512, 256, 256), {"row_par": 4, "col_par": 1}),
    ("matmul", "bf16", (1024, 32, 256), {"slots": 1}),
    ("matmul", "bf16", (1024, 32, 256), {"slots": 2}),
)
#: Placements whose links are counted.
SEEDS = 20
#: Extents and chips whose liveness is proved; a larger product takes a minute with all repeats.
_PROVED = ((256, "small"), (512, "small"), (1024, "large"))


def parameters() -> str:
    """Named configurations, as the README lists them."""

    def rows() -> Iterator[tuple[object, ...]]:
        for name, chip in configurations.items():
            yield (
                name,
                f"{chip.width_bits} bits",
                f"{chip.rows} × {chip.columns}",
                f"{chip.pcu_count} × {chip.peak_macs_per_cycle(16) // chip.pcu_count}",
                f"{chip.pmu_count} × {chip.pmu.capacity_bytes // 1024} KiB",
                chip.agcu.count,
            )

    return table(("name", "link", "mesh", "PCU × cells", "PMU", "AGCU"), rows())


def _product(
    kernel: Kernel, config: ChipConfig, side: int, schedule: Schedule | None = None
) -> Compiled:
    dims = dict.fromkeys(("M", "N", "K"), side)
    return compile_kernel(kernel, config, dims=dims, dtype=bf16, schedule=schedule)


def texts() -> str:
    """Definitions and size of the Verilog, and of the image of a product."""

    def rows() -> Iterator[tuple[object, ...]]:
        with tempfile.TemporaryDirectory() as folder:
            for name, chip in configurations.items():
                file = Path(folder) / f"{name}.v"
                found = report(f"tilewright verilog --config {name} -o {file}")
                image = _product(matmul, chip, 256).image_bytes
                yield name, found["modules"], f"{found['bytes'] / 1e6:.2f} MB", f"{image:,} bytes"

    return table(("configuration", "module definitions", "Verilog", "image"), rows())


def products() -> str:
    """Cycles of products on the RTL of `small`, beside those predicted."""

    def rows() -> Iterator[tuple[object, ...]]:
        for kernel, dtype, (m, n, k), choices in _PRODUCTS:
            settings = {"M": m, "N": n, "K": k, **choices}
            given = " ".join(f"--set {key}={value}" for key, value in settings.items())
            found = report(f"tilewright run {kernel} --config small --dtype {dtype} {given}")
            (down,), (across,) = (found["schedule"][key].values() for key in ("row_par", "col_par"))
            of_each = found["peak_macs_per_cycle"] // configurations["small"].pcu_count
            used = down * across * of_each
            extents = f"{m}³" if m == n == k else f"{m} × {n} × {k}"
            yield (
                f"`{kernel}` {extents} {dtype}",
                f"`{', '.join(f'{key}={value}' for key, value in choices.items())}`"
                if choices
                else "default",
                f"{down} × {across}",
                found["cycles"],
                found["predicted_cycles"],
                f"{found['macs'] / found['cycles'] / used:.3f}",
            )

    return table(
        ("product", "schedule", "grid", "cycles", "predicted", "utilization of the grid"), rows()
    )


def pipelines() -> str:
    """Cycles of kernels without a product on the RTL of `small`."""

    def rows() -> Iterator[tuple[object, ...]]:
        for kernel in _PIPELINES:
            found = report(f"tilewright run {kernel} --config small --set M=512 --set N=256")
            yield (
                f"`{kernel}`",
                found["units_used"]["pcu"],
                found["cycles"],
                f"{512 * 256 / found['cycles']:.2f}",
            )

    return table(("kernel", "PCUs", "cycles", "elements per cycle"), rows())


def epilogues() -> str:
    """Cycles of products with and without element math on their sums, on the RTL of `small`."""

    def rows() -> Iterator[tuple[object, ...]]:
        for terms in (256, 64):
            for kernel in _EPILOGUES:
                sizes = f"--set M=256 --set K={terms} --set N=256"
                found = report(f"tilewright run {kernel} --config small {sizes}")
                (down,), (across,) = (
                    found["schedule"][key].values() for key in ("row_par", "col_par")
                )
                yield (
                    f"`{kernel}`",
                    terms,
                    f"{down} × {across}",
                    found["units_used"]["pcu"] - down * across,
                    found["cycles"],
                    found["predicted_cycles"],
                )

    return table(("kernel", "K", "grid", "PCUs behind it", "cycles", "predicted"), rows())


def links() -> str:
    """Links that nets take, least and most over the seeds, with three tracks and with two."""
    small, large = configurations["small"], configurations["large"]
    wide = Schedule(row_par={"c": 1}, col_par={"c": 8})
    programs = (
        ("`matmul` 256³, 4 × 2", "small", _product(matmul, small, 256)),
        ("`matmul` 256³, 1 × 8", "small", _product(matmul, small, 256, wide)),
        ("`gemm` 512³, 9 × 2", "large", _product(gemm, large, 512)),
    )

    def rows() -> Iterator[tuple[object, ...]]:
        for text, name, compiled in programs:
            (part,) = compiled.parts
            counts = []
            for tracks in (3, 2):
                config = dataclasses.replace(configurations[name], tracks=tracks)
                found = []
                for seed in range(SEEDS):
                    placement = place(part.netlist, config, seed=seed)
                    routes = route(part.netlist, placement, config, seed=seed)
                    found.append(routes.wirelength)
                counts.append(f"{min(found)} to {max(found)}")
            yield text, f"`{name}`", *counts

    return table(("product, grid", "chip", "links, 3 tracks", "2 tracks"), rows())


def steps() -> str:
    """Steps of the liveness proof, with repeats left out and without."""

    def rows() -> Iterator[tuple[object, ...]]:
        for side, name in _PROVED:
            (part,) = _product(matmul, configurations[name], side).parts
            few, all_steps = prove(part.chip).steps, prove(part.chip, whole=True).steps
            yield f"`matmul` {side}³ bf16", f"`{name}`", few, all_steps

    return table(("product", "chip", "steps", "steps, all repeats run"), rows())
