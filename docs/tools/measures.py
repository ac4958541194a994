"""Figures that no single command of ours reports."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

from docs.tools.reports import report
from hw.arch.config import named as configurations
from hw.matrix.tpu_catalog import PRESETS
from hw.numeric.formats import LANE_BITS, Format, bf16, int8, int32
from sim.drivers.matrix_unit_driver import MatrixTiling
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.compiled import Compiled
from sw.compiler import compile_kernel
from sw.kernels.decoder_layer import decoder_layer
from sw.kernels.matmul import matmul

__all__ = [
    "cycles_by_outstanding",
    "decoder_layer_of",
    "first_tensor_unit",
    "grid_bound",
    "matrix_unit_cycles",
]

_SIDE = 256


def cycles_by_outstanding(bursts: int) -> int:
    """Cycles of 256³ in bf16 on the RTL of ``small`` with so many bursts outstanding."""
    small = configurations["small"]
    config = dataclasses.replace(small, agcu=dataclasses.replace(small.agcu, outstanding=bursts))
    dims = dict.fromkeys(("M", "N", "K"), _SIDE)
    job = Job(problem=Problem(kernel=matmul, config=config, dims=dims, dtype=bf16))
    compiled, fields = compile_job(job)
    cycles = run(job, compiled, fields | {"config": "small"}).report["cycles"]
    assert isinstance(cycles, int)
    return cycles


def decoder_layer_of(tokens: int, past: int) -> Compiled:
    """Decoder layer of bf16 on ``small``, of its default sizes but for the tokens of a step."""
    dims = {**decoder_layer.sizes, "M": tokens}
    config, options = configurations["small"], {"past": past}
    return compile_kernel(decoder_layer, config, dims=dims, dtype=bf16, options=options)


def matrix_unit_cycles() -> tuple[float, ...]:
    """Cycles of 256³ on one unit of ``small``, utilization and products per cycle: bf16, int8."""
    small = configurations["small"]
    columns = small.width_bits // 32

    def figures(fmt: Format) -> tuple[float, ...]:
        tiling = MatrixTiling(
            m=_SIDE,
            n=_SIDE,
            k=_SIDE,
            columns=columns,
            accumulator_rows=small.pcu.accumulator_rows,
            fmt=fmt,
            out=bf16 if fmt.is_float else int32,
        )
        cycles = tiling.undisturbed_cycles(small.pcu.cell_latency)
        if cycles is None:
            raise ValueError(f"Tiles of {_SIDE} rows must be long enough to hide their sums")
        peak = 2 * columns * columns * fmt.products_per_cycle
        return cycles, _SIDE**3 / (peak * cycles), peak

    return *figures(bf16), *figures(int8)


def first_tensor_unit() -> tuple[float, ...]:
    """Extents of the preset ``tpu-v1``, megabytes of its Verilog and its module definitions."""
    tensor = PRESETS["tpu-v1"].tensor
    if tensor is None:
        raise ValueError("Preset `tpu-v1` must be a tensor unit")
    array = tensor.unit.array
    with tempfile.TemporaryDirectory() as folder:
        found = report(f"tilewright verilog --preset tpu-v1 -o {Path(folder) / 'tpu.v'}")
    vector = array.rows * LANE_BITS // 8
    sizes = (array.rows, array.columns, tensor.unit.accumulator_rows, tensor.unit.tiles_ahead)
    return *sizes, tensor.buffer_rows, vector, found["bytes"] / 1e6, found["modules"]


def grid_bound(name: str, m: int, n: int, k: int) -> tuple[int, int, float, float]:
    """Predicted cycles of a bf16 product, those of its tiles, and utilization in each of them."""
    config = configurations[name]
    compiled = compile_kernel(matmul, config, dims={"M": m, "N": n, "K": k}, dtype=bf16)
    plan = compiled.parts[0].plan
    assert plan is not None
    tiles = plan.grid_cycles
    least = m * n * k / config.peak_macs_per_cycle(bf16.bits)
    cycles = compiled.predicted_cycles
    return cycles, tiles, least / cycles, least / tiles
