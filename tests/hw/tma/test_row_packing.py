"""Rows packed into boxes without gaps, and taken apart again."""

import random

import numpy as np
import pytest
from amaranth.sim import Simulator

from hw.arch.descriptor import TmaFeature
from hw.tma.layouts import TmaLayouts
from hw.tma.row_packing import RowPacker, RowUnpacker
from tests.hw.tma.model import random_bytes
from tests.slow_cases import quick_first

_BOXES = 60


def _layouts(width_bits):
    features = (TmaFeature.PACKED_ROWS, TmaFeature.PARALLEL_BOXES)
    return TmaLayouts(width_bits, 32, streams=2, features=features)


def _boxes(rng, width_bits):
    """Units of the vectors of each row of random boxes, 0 for a whole vector."""
    whole = width_bits // 128
    for _ in range(_BOXES):
        row = rng.choice([rng.randint(1, whole), rng.randint(1, 3 * whole)])
        one = [0] * (row // whole) + [row % whole] * (row % whole != 0)
        yield [one] * rng.choice([1, 2, rng.randint(1, 9)])


def _word(data):
    return int.from_bytes(data.tobytes(), "little")


def _padded(data, beat):
    """A vector that begins with the data; the rest is not zero."""
    return _word(np.concatenate([data, np.full(beat - len(data), 0xA5, np.uint8)]))


def _cases(seed, width_bits):
    """Of each box: its bytes, and its row vectors as (word, units, last)."""
    rng, beat, cases = random.Random(seed), width_bits // 8, []
    for number, rows in enumerate(_boxes(rng, width_bits)):
        sizes = [16 * units or beat for row in rows for units in row]
        data = random_bytes(seed + number, sum(sizes))
        parts = np.split(data, np.cumsum(sizes)[:-1])
        words = [_padded(part, beat) for part in parts]
        units = [size // 16 % (beat // 16) for size in sizes]
        last = [False] * (len(parts) - 1) + [True]
        cases.append((data, list(zip(words, units, last))))
    return rng, cases


@pytest.mark.parametrize("stall", [0.0, 0.5])
@pytest.mark.parametrize("width_bits", quick_first([256, 512, 1024]))
def test_rows_are_packed_without_gaps(width_bits, stall, seed):
    packer, beat = RowPacker(_layouts(width_bits)), width_bits // 8
    rng, cases = _cases(seed, width_bits)
    count = sum(-(-len(data) // beat) for data, _ in cases)
    found = []

    async def give(ctx):
        port = packer.i_stream
        for number, (_, vectors) in enumerate(cases):
            for word, units, last in vectors:
                while rng.random() < stall:
                    ctx.set(port.valid, 0)
                    await ctx.tick()
                fields = {"data": word, "units": units, "last": last}
                ctx.set(port.payload, fields | {"stream": number % 2, "response": number % 4})
                ctx.set(port.valid, 1)
                await ctx.tick().until(port.ready)
        ctx.set(port.valid, 0)

    async def take(ctx):
        port, cycles = packer.o_stream, 0
        while len(found) < count:
            ready = rng.random() >= stall
            ctx.set(port.ready, ready)
            *_, valid, payload = await ctx.tick().sample(port.valid, port.payload)
            cycles += 1
            if valid and ready:
                found.append(payload)
        extra = sum(len(data) % beat != 0 for data, _ in cases)
        assert stall or cycles <= sum(len(each) for _, each in cases) + extra + 2

    simulator = Simulator(packer)
    simulator.add_clock(1e-6)
    simulator.add_testbench(give)
    simulator.add_testbench(take)
    simulator.run()
    vectors = iter(found)
    for number, (data, _) in enumerate(cases):
        for at in range(0, len(data), beat):
            piece, vector = data[at : at + beat], next(vectors)
            assert vector.data & (1 << 8 * len(piece)) - 1 == _word(piece)
            last = at + beat >= len(data)
            assert (vector.last, vector.stream) == (last, number % 2)
            assert not last or vector.response == number % 4


@pytest.mark.parametrize("stall", [0.0, 0.5])
@pytest.mark.parametrize("width_bits", quick_first([256, 512, 1024]))
def test_boxes_without_gaps_are_taken_apart(width_bits, stall, seed):
    unpacker, beat = RowUnpacker(_layouts(width_bits)), width_bits // 8
    rng, cases = _cases(seed, width_bits)

    async def give(ctx):
        port = unpacker.i_stream
        for data, _ in cases:
            for at in range(0, len(data), beat):
                while rng.random() < stall:
                    ctx.set(port.valid, 0)
                    await ctx.tick()
                ctx.set(port.payload, _padded(data[at : at + beat], beat))
                ctx.set(port.valid, 1)
                await ctx.tick().until(port.ready)
        ctx.set(port.valid, 0)

    async def take(ctx):
        nonlocal taken
        port = unpacker.o_stream
        for _, vectors in cases:
            for word, units, last in vectors:
                while rng.random() < stall:
                    ctx.set(port.ready, 0)
                    await ctx.tick()
                ctx.set(unpacker.i_units, units)
                ctx.set(unpacker.i_ends, last)
                ctx.set(port.ready, 1)
                (got,) = await ctx.tick().sample(port.payload).until(port.valid)
                mask = (1 << 128 * (units or beat // 16)) - 1
                assert got & mask == word & mask
                taken += 1
        ctx.set(port.ready, 0)

    taken = 0
    simulator = Simulator(unpacker)
    simulator.add_clock(1e-6)
    simulator.add_testbench(give)
    simulator.add_testbench(take)
    simulator.run()
    assert taken == sum(len(vectors) for _, vectors in cases)
