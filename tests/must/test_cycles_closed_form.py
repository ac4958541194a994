"""array-c: cycles follow a closed form, beside SCALE-Sim's for the same products."""

import numpy as np
import pytest

from hw.numeric.formats import bf16, int8
from tests.hw.matrix.cycles import product_cycles, scale_sim_cycles
from tests.hw.matrix.units import BUILDS, LARGE, Case, build, outcome, predicted

#: Compute cycles that SCALE-Sim 3.0.0 printed for an array of 16 × 16, by dataflow and extents.
_SCALE_SIM = {
    ("ws", 64, 64, 64): 1_759,
    ("ws", 256, 256, 256): 77_311,
    ("ws", 128, 128, 4096): 356_351,
    ("os", 64, 64, 64): 1_503,
    ("os", 256, 256, 256): 73_215,
    ("os", 128, 128, 4096): 264_063,
    ("is", 64, 64, 64): 1_759,
    ("is", 256, 256, 256): 77_311,
    ("is", 128, 128, 4096): 356_351,
}
#: Ratio of those cycles to ours that must be reached.
_GOALS = {
    ("ws", 64, 64, 64): 1.60,
    ("ws", 256, 256, 256): 1.17,
    ("ws", 128, 128, 4096): 1.35,
    ("os", 64, 64, 64): 1.38,
}


@pytest.fixture(scope="module", params=BUILDS)
def built(request, heavy_lock):
    with heavy_lock(), build(BUILDS[request.param]) as model:
        yield request.param, model


@pytest.mark.slow
@pytest.mark.must("array-c", goal="closed form to the cycle on >= 60 shapes a dataflow")
def test_cycles_follow_the_closed_form(built, seed, figure):
    dataflow, model = built
    rng = np.random.default_rng(seed)
    shapes = 0
    for index in range(12):
        for name, config in BUILDS[dataflow].items():
            fmt = config.array.formats[0]
            m, n, k = (int(side) for side in rng.integers(1, (8, 50, 90)[index % 3], 3))
            case = Case(name, config, m, n, k, (fmt, fmt), seed=index)
            cycles, counters, right = outcome(model, case)
            assert right and cycles == predicted(case), (case, cycles, predicted(case))
            assert sum(counters.values()) == model.cycle
            shapes += 1
    assert shapes >= 60
    figure(f"{shapes} shapes of {dataflow}, equal to the cycle")


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.must("array-c", goal="SCALE-Sim / ours: WS >= 1.60, 1.17, 1.35; OS 64^3 >= 1.38")
def test_scale_sim_takes_longer(heavy, figure):
    """On int8 the inner extent is doubled: a cell makes two products a cycle, theirs one."""
    ratios = {}
    with build(LARGE) as model:
        for (dataflow, m, n, k), theirs in _SCALE_SIM.items():
            assert scale_sim_cycles(dataflow, m, n, k, rows=16, columns=16) == theirs
            ours = product_cycles(dataflow, m, n, k, rows=16, columns=16, accumulator_rows=256)
            ratios[dataflow, m, n, k] = theirs / ours
            case = Case(dataflow, LARGE[dataflow], m, n, 2 * k, (int8, int8))
            cycles, _, right = outcome(model, case)
            assert right and cycles == ours
    for shape, goal in _GOALS.items():
        assert ratios[shape] >= goal, (shape, ratios[shape])
    figure(", ".join(f"{s[0]} {s[1]}x{s[2]}x{s[3]} {ratios[s]:.3f}" for s in _GOALS))


def test_one_product_a_cell_is_counted_as_one():
    """The same cycles, whether a cell makes one product of 16 bits or two of 8."""
    for dataflow in ("ws", "os", "is"):
        sides = {"rows": 16, "columns": 16, "latency": 2}
        assert product_cycles(dataflow, 64, 48, 80, **sides) == product_cycles(
            dataflow, 64, 48, 160, products=2, **sides
        )
    assert bf16.products_per_cycle == 1 and int8.products_per_cycle == 2
