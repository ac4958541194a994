"""Two products with a softmax between them on the RTL: equal to golden, in predicted cycles."""

import random

import pytest

from hw.arch.config import named
from sim.backends.emitted import emitted_chip
from sim.native.chip_model import ChipModel, MemoryConditions
from sw.timing.prediction import LATENCY
from tests.sw.stages.softmax_cases import SoftmaxCase, drawn_product, softmax_product


def model_of(name, heavy_lock):
    """The model of a chip that other tests use as well."""
    config = named[name]
    with heavy_lock(), ChipModel(emitted_chip(config), config, seed=5) as chip:
        yield chip


@pytest.fixture(scope="module")
def tiny(heavy_lock):
    yield from model_of("tiny", heavy_lock)


@pytest.fixture(scope="module")
def small(heavy_lock):
    yield from model_of("small", heavy_lock)


def verify(model, config, work, seed):
    """Compare with golden by bits, under pauses of the memory too, and cycles with predicted."""
    case = SoftmaxCase(work, config)
    inputs = case.inputs(seed)
    expected = case.golden(inputs).tobytes()
    pauses = MemoryConditions(latency=17, jitter=20, stall=0.2, seed=seed % 1000)
    assert case.simulated(model, inputs, pauses)[0].tobytes() == expected, work
    steady = MemoryConditions(latency=LATENCY, seed=seed % 1000)
    output, cycles = case.simulated(model, inputs, steady)
    assert output.tobytes() == expected, work
    assert case.cycles == pytest.approx(cycles, rel=0.02, abs=16), work


def test_products_on_tiny_are_golden_s_and_take_predicted_cycles(tiny, seed):
    rng = random.Random(seed)
    for _ in range(3):
        verify(tiny, "tiny", drawn_product(rng, 60, 12), seed)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_products_on_small_are_golden_s_and_take_predicted_cycles(small, seed):
    rng = random.Random(seed)
    for _ in range(12):
        verify(small, "small", drawn_product(rng, 250, 130), seed)
    # Blocks are not kept, and groups leave out some; blocks in several buffers.
    verify(small, "small", softmax_product(100, 900, 128, offset=800, window=100), seed)
    verify(small, "small", softmax_product(100, 400, 128, offset=300), seed)
    # A scores unit for two values units.
    verify(small, "small", softmax_product(40, 120, 256, offset=80), seed)
