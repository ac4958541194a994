"""Stages of a pipeline overlap on the RTL: an iteration takes as long as the slowest stage."""

import pytest

from hw.arch.config import named
from hw.numeric.formats import bf16
from sw.kernels.gelu import gelu
from sw.kernels.layer_norm import layer_norm
from sw.kernels.linear_gelu import linear_gelu
from sw.kernels.rms_norm import rms_norm
from sw.kernels.silu import silu
from sw.kernels.softmax import softmax
from tests.sim.run.stage_intervals import interval_ratio

#: Iterations that one launch has more than the other, and the bound of the ratio.
ITERATIONS, BOUND = 32, 1.05
#: Kernel and its other dimensions. Stages of `rms_norm`, `layer_norm` and `linear_gelu` differ.
SMALL = [(kernel, {"N": 32}) for kernel in (silu, gelu, softmax, rms_norm, layer_norm)]
SMALL.append((linear_gelu, {"N": 32, "K": 64}))
CASES = [("tiny", kernel, {"N": 32}) for kernel in (silu, softmax, rms_norm)]
CASES += [pytest.param("small", *each, marks=pytest.mark.slow) for each in SMALL]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("chip", "kernel", "dims"), CASES, ids=lambda each: getattr(each, "name", None)
)
def test_iterations_take_the_time_of_the_slowest_stage(chip, kernel, dims, seed, heavy, figure):
    config = named[chip]
    # Blocks of as many rows as a vector has elements, for as many chains as there are PCUs.
    block = config.width_bits // bf16.bits * config.pcu_count
    ratio, text = interval_ratio(kernel, config, dims, block, ITERATIONS, seed)
    figure(f"{chip} {kernel.name}: {text}")
    assert 1 <= ratio <= BOUND, text
