"""array-b: many arrays, every dataflow with every format, bit-exact under random stalls."""

import itertools

import numpy as np
import pytest

from hw.array.dataflow import Dataflow
from hw.numeric.formats import bf16, e4m3, e5m2, fp16, int8, mxe4m3, mxe5m2
from tests.hw.matrix.units import BUILDS, Case, build, outcome

_CASES_PER_UNIT = 9


@pytest.fixture(scope="module", params=BUILDS)
def built(request, heavy_lock):
    with heavy_lock(), build(BUILDS[request.param]) as model:
        yield request.param, model


def _several(config, pair):
    """Extents of which a unit makes several blocks, groups and tiles, the last ones ragged."""
    array = config.array
    inner = 2 * array.rows * (16 // pair[0].bits) + 1
    across = 2 * array.columns + 1
    if array.dataflow == Dataflow.OS:
        return [2 * array.rows * array.latency + 1, across, inner]
    moving = config.accumulator_rows + 3
    return [moving, across, inner] if array.dataflow == Dataflow.WS else [across, moving, inner]


def _cases(dataflow, seed):
    rng = np.random.default_rng(seed)
    for index, (name, config) in itertools.product(
        range(_CASES_PER_UNIT), BUILDS[dataflow].items()
    ):
        # Floats of one width meet in every pair; int8 meets only itself.
        meetings = [
            pair
            for pair in itertools.product(config.array.formats, repeat=2)
            if int8 not in pair or pair == (int8, int8)
        ]
        pair = meetings[index % len(meetings)]
        sides = [int(side) for side in rng.integers(1, 41, 3)]
        if index == 0:
            sides[int(rng.integers(3))] = 1
        if index == 1:
            sides = _several(config, pair)
        stalls = tuple(float(chance) for chance in rng.choice([0.0, 0.2, 0.5, 0.9], 3))
        m, n, k = sides
        seed, relu = int(rng.integers(1 << 32)), bool(rng.integers(2))
        yield Case(name, config, m, n, k, pair, seed, stalls, relu)


@pytest.mark.slow
@pytest.mark.must("array-b", goal=">= 24 arrays, >= 200 cases, bit-exact under random stalls")
def test_every_dataflow_with_every_format_is_numpys(built, seed, figure):
    dataflow, model = built
    units = {config.array for builds in BUILDS.values() for config in builds.values()}
    assert len(units) >= 24 and len(BUILDS) * len(BUILDS[dataflow]) * _CASES_PER_UNIT >= 200
    sizes = {(array.rows, array.columns) for array in units}
    assert {(1, 1), (1, 24), (24, 1), (3, 7), (16, 8)} <= sizes
    cases = list(_cases(dataflow, seed))
    mixed = {case.formats for case in cases if case.formats[0] != case.formats[1]}
    pairs = [(e4m3, e5m2), (bf16, fp16), (mxe4m3, mxe5m2)]
    assert mixed == {*pairs, *(pair[::-1] for pair in pairs)}
    if dataflow != "os":
        cut = {case.name for case in cases if case.tiling.tiles > 2 and len(case.tiling.blocks) > 1}
        assert cut == set(BUILDS[dataflow])
    for case in cases:
        _, counters, right = outcome(model, case)
        assert right, case
        assert sum(counters.values()) == model.cycle, case
    count = sum(len(builds) for builds in BUILDS.values()) * _CASES_PER_UNIT
    figure(f"{len(units)} arrays, {count} cases, mixed floats too; a pause is a bubble")
