"""Im2col boxes of the engine against their definition in numpy, and their rate."""

import random

import numpy as np
import pytest

from hw.arch.boxes.im2col_box import Im2colBox, packed_offsets
from hw.arch.descriptor import Descriptor, ElementFormat, Mode, TmaFeature
from hw.arch.error_codes import TmaError
from tests.hw.tma.engine_bench import Bench
from tests.hw.tma.im2col_model import (
    im2col_load,
    im2col_store,
    random_im2col_case,
    random_im2col_place,
)
from tests.hw.tma.model import as_vectors, random_bytes
from tests.hw.tma.test_engine import defined
from tests.slow_cases import quick_first

_READ, _WRITTEN = (0x1000, 0x5000), (0x5000, 0x9000)


def _commands(rng, kinds, count):
    """Of each command: its descriptor, coordinates, and offsets."""
    commands = []
    for number in range(count):
        kind = number % len(kinds)
        commands.append((kind, *random_im2col_place(rng, kinds[kind])))
    return commands


@pytest.mark.parametrize(
    ("rank", "conditions"),
    quick_first(
        [
            (4, {"width_bits": 128, "latency": 30, "jitter": 20, "stall": 0.3}),
            (3, {"width_bits": 64, "latency": 5}),
            (5, {"width_bits": 256, "latency": 20, "stall": 0.1}),
            *(
                (rank, {"width_bits": bits, "latency": 9})
                for rank in (3, 4, 5)
                for bits in (64, 256, 512)
            ),
        ]
    ),
)
def test_random_columns_are_those_of_numpy(rank, conditions, seed):
    rng = random.Random(seed)
    bits = conditions["width_bits"]
    data = random_bytes(seed, _WRITTEN[1])
    bench = Bench(
        data,
        seed=seed,
        features=tuple(TmaFeature),
        readable=[_READ],
        writable=[_WRITTEN],
        **conditions,
    )
    sides = (("load", _READ), ("store", _WRITTEN))
    kinds, commands = {}, {}
    for side, region in sides:
        kinds[side] = [
            random_im2col_case(rng, width_bits=bits, region=region, rank=rank)[0] for _ in range(4)
        ]
        commands[side] = _commands(rng, kinds[side], 12)
    boxes = [random_bytes(seed + i, kinds["store"][i % 4].box_bytes) for i in range(12)]
    vectors = [
        vector
        for kind, at, offsets in commands["load"]
        for vector in as_vectors(im2col_load(data, kinds["load"][kind], at, offsets), bits)
    ]
    expected = data.copy()
    for (kind, at, offsets), box in zip(commands["store"], boxes):
        im2col_store(expected, kinds["store"][kind], at, offsets, box)
    started = []

    async def describe(ctx):
        for number, each in enumerate(kinds["load"] + kinds["store"]):
            await bench.describe(ctx, number, each)
        started.append(True)

    def issuer(side, first):
        async def issue(ctx):
            await bench.wait(ctx, lambda: started)
            port = getattr(bench.engine, f"i_{side}_commands")[0]
            for kind, at, offsets in commands[side]:
                packed = packed_offsets(offsets)
                await bench.command(ctx, port, first + kind, at, offsets=packed)

        return issue

    async def put(ctx):
        await bench.wait(ctx, lambda: started)
        for box in boxes:
            await bench.put(ctx, 0, box)

    async def finish(ctx):
        await bench.wait(ctx, lambda: len(bench.loaded[0]) == len(vectors))
        await bench.wait(ctx, lambda: bench.stored[0] == 12)
        await ctx.tick().repeat(30)
        assert ctx.get(bench.engine.o_idle) and bench.memory.quiet
        assert ctx.get(bench.engine.o_error) == TmaError.NONE.value

    bench.run(describe, issuer("load", 0), issuer("store", 4), put, finish)
    sizes = [kinds["load"][kind].box_bytes for kind, _, _ in commands["load"]]
    assert defined(bench.loaded[0], sizes, bits) == vectors
    assert np.array_equal(data, expected)
    unit = min(bits // 8, 16)
    for side, reports in bench.reports.items():
        wanted = [kinds[side][kind] for kind, _, _ in commands[side]]
        assert reports == [(0, each.swizzle.value, each.box_bytes // unit) for each in wanted]


@pytest.mark.slow
def test_a_pixel_is_prepared_per_cycle():
    """Pixels of a beat, each a burst, of rank 4: a beat per cycle, also from box to box."""
    data = random_bytes(1, 0x10000)
    bench = Bench(
        data,
        width_bits=256,
        features=tuple(each for each in TmaFeature if each is not TmaFeature.JOINED_BURSTS),
        readable=[(0, 0x10000)],
        latency=10,
        landing_beats=256,
        outstanding=32,
    )
    descriptor = Descriptor(
        base=0,
        format=ElementFormat.BF16,
        dims=(16, 30, 20, 3),
        strides=(32, 960, 19200),
        box=(),
        mode=Mode.IM2COL,
        im2col=Im2colBox((0, 0), (-2, -2), 16, 256),
    )

    async def work(ctx):
        await bench.describe(ctx, 0, descriptor)
        port, given = bench.engine.i_load_commands[0], bench.memory.cycle
        for row in range(2):
            await bench.command(ctx, port, 0, (0, 3, row, 0), offsets=0x0101)
        await bench.wait(ctx, lambda: len(bench.loaded[0]) == 512)
        beats = bench.memory.read_beats
        assert beats[255] - beats[0] == 255
        # The second box is prepared while the first one moves.
        assert beats[511] - beats[0] == 511
        assert beats[0] - given < 40

    bench.run(work)
