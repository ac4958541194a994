"""Sums of many bits, and of a short number and a long one: equal to Python's."""

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from hw.float.carry_save import sum_columns
from hw.float.short_add import add_short


def outcomes(m, inputs, output, vectors):
    """Value of the output for each vector of inputs."""
    found = []

    async def testbench(ctx):
        for vector in vectors:
            for signal, value in zip(inputs, vector, strict=True):
                ctx.set(signal, value)
            await ctx.delay(1e-9)
            found.append(ctx.get(output))

    simulator = Simulator(m)
    simulator.add_testbench(testbench)
    simulator.run()
    return found


@pytest.mark.parametrize(("long", "short"), [(6, 3), (6, 1), (5, 4), (4, 4)])
def test_a_short_number_is_added_to_a_long_one(long, short):
    """Every total and every addend."""
    m, total, addend, result = Module(), Signal(long), Signal(short), Signal(long)
    m.d.comb += result.eq(add_short(m, total, addend))
    vectors = [(x, y) for x in range(1 << long) for y in range(1 << short)]
    signed = [y - (y >> (short - 1) << short) for _, y in vectors]
    golden = [(x + y) % (1 << long) for (x, _), y in zip(vectors, signed, strict=True)]
    assert outcomes(m, (total, addend), result, vectors) == golden


@pytest.mark.parametrize("heights", [(1, 1), (7, 0, 9, 1, 2), (13, 12, 3, 0, 0, 0), (2, 3, 4, 5)])
@pytest.mark.parametrize("constant", [0, 5, -3])
def test_bits_of_columns_are_summed(heights, constant, seed):
    rng = np.random.default_rng(seed)
    m, bits, result = Module(), Signal(sum(heights)), Signal(len(heights))
    weights = [weight for weight, height in enumerate(heights) for _ in range(height)]
    columns = [[] for _ in heights]
    for index, weight in enumerate(weights):
        columns[weight].append(bits[index])
    m.d.comb += result.eq(sum_columns(m, columns, constant))
    ones = (1 << len(bits)) - 1
    vectors = [(0,), (ones,), *((int(rng.integers(ones + 1)),) for _ in range(200))]
    golden = [
        (constant + sum((word >> i & 1) << weight for i, weight in enumerate(weights)))
        % (1 << len(heights))
        for (word,) in vectors
    ]
    assert outcomes(m, (bits,), result, vectors) == golden
