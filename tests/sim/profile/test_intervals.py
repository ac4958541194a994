"""States of units from predicted moves, and how near they are to those of the RTL."""

import numpy as np
import pytest

from sim.native.samples import KernelSamples
from sim.profile.intervals import from_samples, from_timeline
from sw.kernels.matmul import matmul
from sw.kernels.rms_norm import rms_norm
from sw.kernels.softmax import softmax
from sw.timing.flow import Run
from sw.timing.timeline import Move, Timeline
from tests.profiled_run import profiled


def states(*moves):
    """Cycles by state of a PMU that makes some moves in twenty cycles."""
    found = from_timeline(Timeline(20, list(moves)), ["pmu_0_1"], 0, latency=1, most=1)
    return found.states["pmu_0_1"][0].tolist()


def test_a_reader_between_two_vectors_of_a_slot_waits_for_room():
    sparse = Move("pmu_0_1", "R0", Run(2, 10, 3), 0.0, 0)
    assert states(sparse) == [3, 2, 6, 9]


def test_a_reader_between_two_moves_of_a_slot_waits_for_room():
    first = Move("pmu_0_1", "R0", Run(2, 3, 2), 0.0, 0)
    assert states(first, Move("pmu_0_1", "R0", Run(10, 10, 1), 0.0, 0)) == [3, 2, 6, 9]
    assert states(first, Move("pmu_0_1", "R0", Run(10, 10, 1), 0.0, 1)) == [3, 8, 0, 9]


def test_a_writer_between_two_vectors_waits_for_input():
    assert states(Move("pmu_0_1", "W0", Run(2, 10, 3), 0.0, 0)) == [3, 8, 0, 9]


def test_lanes_that_take_sums_are_work_of_their_pcu():
    # Busy, waits for input and for room, idle; vectors and groups.
    words = np.array([[0] * 8, [2, 1, 6, 1, 2, 8, 0, 0], [6, 3, 9, 2, 6, 11, 0, 0]])
    samples = KernelSamples(np.array([0, 10, 20]), {"pcu_0_0": words, "pmu_0_1": words}, {}, True)
    found = from_samples(samples, 0).states
    assert found["pcu_0_0"].tolist() == [[8, 1, 0, 1], [4, 2, 3, 1]]
    assert found["pmu_0_1"].tolist() == [[2, 1, 6, 1], [4, 2, 3, 1]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "dims"),
    [
        (matmul, {"M": 32, "N": 32, "K": 32}),
        (softmax, {"M": 32, "N": 64}),
        (rms_norm, {"M": 32, "N": 64}),
    ],
    ids=["product", "softmax", "norm"],
)
def test_predicted_arrays_work_as_long_as_in_rtl(kernel, dims, heavy):
    real = profiled(kernel, dims)
    model = profiled(kernel, dims, backend="emulator")
    for own, other in zip(real["units"], model["units"], strict=True):
        if own["kind"] == "pcu":
            shares = [
                sum(unit["states"]["busy"]) / run["cycles"]
                for unit, run in ((own, real), (other, model))
            ]
            assert shares[0] == pytest.approx(shares[1], abs=0.02)
