"""Scratchpads with an index stream: what they send, against the model of gather and scatter."""

import random

import numpy as np
import pytest

from hw.arch.config import named
from hw.arch.words.pmu_word import IndexUse
from sim.emulator.scratchpad import Scratchpad
from tests.hw.pmu import index_model
from tests.hw.pmu.index_programs import WIDTH, gather, gather_elements, scatter

TINY = named["tiny"]


@pytest.mark.parametrize("elements", [False, True])
@pytest.mark.parametrize("use", [each for each in IndexUse if each is not IndexUse.OFF])
@pytest.mark.parametrize("outside", [0.0, 0.1])
def test_scratchpads_equal_the_model(use, outside, elements, seed):
    rng = random.Random(seed)
    assert TINY.width_bits == WIDTH
    for _ in range(25):
        if use is not IndexUse.GATHER:
            program, inputs = scatter(rng, use, outside=outside, elements=elements)
        else:
            program, inputs = (gather_elements if elements else gather)(rng, outside=outside)
        sizes = {"width_bits": WIDTH, "capacity_bytes": TINY.pmu.capacity_bytes}
        expected, beyond = index_model.mirror(program, inputs, **sizes)
        filters = (program.writers[0], program.indexed)

        def taken(number, count, inputs=inputs, filters=filters):
            one = filters[number]
            lines = index_model.taken(inputs[number], one.modulus, one.index)[:count]
            return np.frombuffer(b"".join(lines), np.uint8).reshape(count, -1)

        pad = Scratchpad(TINY, program, "PMU", taken)
        for port, reader in enumerate(program.readers):
            if reader is not None:
                assert pad.read(port).tobytes() == b"".join(v for v, *_ in expected[port])
        assert pad.outside == beyond
