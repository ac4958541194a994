"""edge-e: the states of every unit, launch included, sum to the cycles of the launch."""

import numpy as np
import pytest

from sim.native.conditions import MemoryConditions
from sim.run.driver import compile_job, run
from sim.run.job import Job
from sim.run.report import STATES

#: Configuration, back end and number of random products; each is run cold and warm.
_RUNS = (
    ("tiny", "rtl", 8),
    ("small", "rtl", 5),
    ("tiny", "cocotb", 3),
    ("small", "cocotb", 1),
    ("large", "rtl", 1),
)


def _report(each, backend, *, warm):
    timed = {"latency": each.latency, "jitter": each.jitter} if backend == "rtl" else {}
    conditions = MemoryConditions(stall=each.stall, seed=each.seed, **timed)
    job = Job(each.problem, backend, seed=each.seed, conditions=conditions, warm=warm)
    compiled, fields = compile_job(job)
    outcome = run(job, compiled, fields | {"config": each.config})
    assert not outcome.problems, (each.command, backend, warm, outcome.problems)
    return outcome.report


@pytest.mark.slow
@pytest.mark.timeout(5400)
@pytest.mark.must("edge-e", goal="states of every unit sum to cycles, ≥ 30 runs, warm and cold")
def test_states_of_every_unit_sum_to_the_cycles(random_products, product, heavy, seed, figure):
    rng = np.random.default_rng(seed)
    runs = units = 0
    for config, backend, number in _RUNS:
        for _ in range(number):
            each = random_products(rng, config, shape="any", most=60)
            for warm in (False, True):
                report = _report(each, backend, warm=warm)
                sums = {
                    name: sum(unit[state] for state in STATES)
                    for name, unit in report["counters"].items()
                }
                assert set(sums.values()) == {report["cycles"]}, (each.command, backend, warm, sums)
                assert all(unit["launch"] > 0 for unit in report["counters"].values())
                runs, units = runs + 1, units + len(sums)
    assert runs >= 30
    figure(f"{runs} runs, {units} units: every sum equal to cycles")


@pytest.mark.slow
@pytest.mark.timeout(5400)
@pytest.mark.must("edge-e", goal="predicted_cycles of cold and warm launches within 10 %")
def test_predictions_know_a_launch_behind_another(product, heavy, figure):
    ratios = {}
    for name, each in {
        "tiny 8x8x8": product("tiny", 8, 8, 8),
        "tiny 33x40x64 int8": product("tiny", 33, 40, 64, dtype="int8"),
        "small 64x64x64": product("small", 64, 64, 64),
        "small 256x256x256": product("small", 256, 256, 256),
    }.items():
        for warm in (False, True):
            report = _report(each, "rtl", warm=warm)
            ratio = report["predicted_cycles"] / report["cycles"]
            ratios[f"{name} {'warm' if warm else 'cold'}"] = ratio
    figure(", ".join(f"{name} {ratio:.3f}" for name, ratio in ratios.items()))
    assert all(0.9 < ratio < 1.1 for ratio in ratios.values()), ratios
