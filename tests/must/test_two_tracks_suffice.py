"""unit-g: switches stay small, paths short, and programs map onto two tracks as onto three."""

import dataclasses
import math
import random

import numpy as np
import pytest

from gen.area import measure
from gen.unit_designs import unit_designs
from gen.verilog import emit
from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.chip import Chip
from hw.numeric.formats import bf16, int8
from sim.cache import cache_directory
from sw.compiler import compile_kernel
from sw.kernels.gemm import gemm
from sw.kernels.matmul import matmul
from tests.gemv_layers import GemvLayers
from tests.gen.test_depth import GOAL, deeper
from tests.lane_jobs import draw_job
from tests.units_lanes import lane_chip

SWITCHES = 552_000
#: Products that use a whole chip, a single row, a single column, or ragged tiles.
SHAPES = (256, 256, 256), (512, 512, 512), (1, 1024, 1024), (1024, 1, 1024), (251, 257, 263)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("unit-g", goal="switches of vectors and tokens on small: <= 552,000 cells")
def test_switches_take_few_cells(heavy, figure):
    sums = {}
    for unit in unit_designs(emit(Chip(named["small"]))):
        cells = measure(unit, cache=cache_directory() / "area").cells * unit.count
        sums[unit.kind] = sums.get(unit.kind, 0) + cells
    switches = sums["switch"] + sums["token_switch"]
    figure(f"{switches:,} cells, {switches / sum(sums.values()):.1%} of all")
    assert switches <= SWITCHES


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["tiny", "small", "large"])
@pytest.mark.must("unit-g", goal="depth of every definition <= 105 cells")
def test_no_path_is_long(name, heavy, figure):
    chips = {"without lanes": 0, "with lanes": 2}
    for lanes in chips.values():
        config = named[name]
        pcu = dataclasses.replace(config.pcu, lanes=lanes)
        for unit in unit_designs(emit(Chip(dataclasses.replace(config, pcu=pcu)))):
            assert deeper(unit) == {}, (unit.kind, lanes)
    figure(f"at most {GOAL}, {' and '.join(chips)}")


def _compiled(kernel, config, dims, dtype):
    try:
        return compile_kernel(kernel, config, dims=dims, dtype=dtype)
    except BadInputError:
        return None


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("unit-g", goal="every program of the tests also maps onto two tracks")
def test_programs_map_onto_two_tracks(seed, figure):
    """With the plan that they have on three."""
    rng = random.Random(seed)
    drawn = [tuple(int(math.exp(rng.uniform(0, math.log(700)))) for _ in "MNK") for _ in range(8)]
    count = 0
    for name in ("tiny", "small", "large"):
        config = named[name]
        narrow = dataclasses.replace(config, tracks=2)
        for shape in (*SHAPES, *drawn):
            dims = dict(zip("MNK", shape, strict=True))
            for kernel in (matmul, gemm):
                for dtype in (bf16, int8):
                    three = _compiled(kernel, config, dims, dtype)
                    if three is None:
                        continue
                    two = compile_kernel(kernel, narrow, dims=dims, dtype=dtype)
                    assert two.schedule == three.schedule
                    count += 1
    layers = GemvLayers(dataclasses.replace(named["small"], tracks=2), 1024, 128, 64)
    assert layers.program.units_used() == {"pcu": 2, "pmu": 4, "agcu": 2}
    lanes = dataclasses.replace(lane_chip(), tracks=2)
    numbers = np.random.default_rng(seed)
    for _ in range(30):
        assert draw_job(numbers, config=lanes).job.program().pack()
    figure(f"{count} products, a chain of layers, 30 programs of lanes")
    assert count >= 100
