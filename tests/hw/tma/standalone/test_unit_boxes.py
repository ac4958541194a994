"""Random boxes between memory and the scratchpad of a stand-alone TMA unit, against numpy."""

import random

import numpy as np
import pytest

from hw.arch.descriptor import Descriptor, ElementFormat, Swizzle, TmaFeature
from hw.tma.barriers.barrier_layouts import BarrierOperation
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.model import box_load, box_store, random_bytes, random_case
from tests.hw.tma.standalone.unit_bench import UnitBench, place_of, swizzled_places

_TABLE = 0x1000
_KINDS = 10
_COMMANDS = 60


def _regions(width_bits):
    """Memory that is read, and memory that is written, after the table of descriptors."""
    start, size = 0x2000, max(0x2000, 64 * width_bits)
    return (start, start + size), (start + size, start + 2 * size)


def _kinds(rng, width_bits, region, half):
    """Descriptors of tensors in a region, with coordinates; boxes of a quarter scratchpad."""
    kinds = []
    while len(kinds) < _KINDS // 2:
        kind = random_case(
            rng, width_bits=width_bits, region=region, features=tuple(TmaFeature), max_vectors=40
        )
        if kind[0].box_bytes <= half // 2:
            kinds.append(kind)
    return kinds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width_bits", "capacity", "memory"),
    [
        (64, 4096, {"latency": 3}),
        (64, 4096, {"latency": 30, "jitter": 40, "stall": 0.5, "interleaves": True}),
        (256, 8192, {"latency": 20, "jitter": 9, "interleaves": True, "read_ids": 4}),
        pytest.param(
            *(512, 16384, {"latency": 5, "stall": 0.9, "interleaves": True, "read_ids": 16}),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(1024, 16384, {"latency": 5, "jitter": 9, "stall": 0.2}), marks=pytest.mark.slow
        ),
    ],
)
def test_random_boxes_are_those_of_numpy(width_bits, capacity, memory, seed):
    rng = random.Random(seed)
    readable, writable = _regions(width_bits)
    data = random_bytes(seed, writable[1])
    bench = UnitBench(
        data,
        seed=seed,
        width_bits=width_bits,
        capacity=capacity,
        readable=[readable, (_TABLE, readable[0])],
        writable=[writable],
        **memory,
    )
    bench.stall = rng.choice([0.0, 0.5])
    half = capacity // 2
    kinds = {
        side: _kinds(rng, width_bits, region, half)
        for side, region in ((TmaOperation.LOAD, readable), (TmaOperation.STORE, writable))
    }
    pointers = {}
    for number, (side, index) in enumerate((s, i) for s in kinds for i in range(_KINDS // 2)):
        pointers[side, index] = _TABLE + 128 * number
        bench.describe(pointers[side, index], kinds[side][index][0])
    scratchpad = np.concatenate([np.zeros(half, np.uint8), random_bytes(seed + 1, half)])
    expected = data.copy()
    jobs, ends, counted = [], {}, 0
    for id in range(_COMMANDS):
        side = rng.choice([*kinds, *kinds, *kinds, TmaOperation.PREFETCH, TmaOperation.INVALIDATE])
        ends[id] = 0
        if side not in kinds:
            pointer = rng.choice(list(pointers.values()))
            jobs.append((side, pointer, (), {"id": id}))
            continue
        index = rng.randrange(_KINDS // 2)
        descriptor, _ = kinds[side][index]
        at = [rng.choice([0, n - 1, rng.randint(-b, n)]) for n, b in zip(*_shape(descriptor))]
        step, last = place_of(descriptor, half, width_bits)
        local = rng.randrange(0, last + 1, step)
        places = swizzled_places(local, descriptor.box_bytes, descriptor.swizzle)
        fields = {"id": id, "local": local}
        if side is TmaOperation.LOAD:
            scratchpad[places] = box_load(expected, descriptor, at)
            if rng.random() < 0.5:
                fields |= {"signals": 1, "barrier": 3}
                counted += descriptor.box_bytes
        else:
            fields["local"] += half
            box_store(expected, descriptor, at, scratchpad[half + places])
        jobs.append((side, pointers[side, index], at, fields))

    async def work(ctx):
        await bench.operate(ctx, BarrierOperation.INIT, 3, arrivals=1)
        await bench.operate(ctx, BarrierOperation.EXPECT, 3, bytes=counted)
        await bench.fill(ctx, 0, scratchpad[half:] * 0)
        await bench.fill(ctx, half, scratchpad[half:])
        for operation, pointer, at, fields in jobs:
            while rng.random() < 0.2:
                await ctx.tick()
            await bench.command(ctx, operation, pointer, at, **fields)
        await bench.completed(ctx, _COMMANDS)
        await ctx.tick().repeat(20)
        assert bench.memory.quiet
        before = await bench.operate(ctx, BarrierOperation.ARRIVE, 3, arrivals=1)
        assert before == {"phase": 0, "pending": 1, "tx": 0, "flag": 0, "error": before["error"]}
        await ctx.tick()
        assert ctx.get(bench.unit.o_phases) == 1 << 3
        found.append(await bench.content(ctx))

    found = []
    bench.run(work)
    assert dict(bench.completions) == ends and len(bench.completions) == _COMMANDS
    assert np.array_equal(data, expected)
    assert np.array_equal(found[0], scratchpad)
    for side in kinds:
        order = [id for id, _ in bench.completions if jobs[id][0] is side]
        assert order == sorted(order)


def _shape(descriptor):
    return descriptor.dims, descriptor.box


@pytest.mark.slow
@pytest.mark.parametrize("width_bits", [256, pytest.param(1024, marks=pytest.mark.slow)])
@pytest.mark.parametrize("swizzle", [Swizzle.B128, Swizzle.NONE, Swizzle.B32, Swizzle.B64])
def test_short_boxes_leave_what_follows_them(width_bits, swizzle, seed):
    """Boxes of 16 bytes upwards: no other byte of the scratchpad changes, whatever the swizzle."""
    data = random_bytes(seed, 0x4000)
    readable = [(_TABLE, 0x4000)]
    bench = UnitBench(data, width_bits=width_bits, capacity=4096, readable=readable, entries=8)
    most = (swizzle.bytes if swizzle is not Swizzle.NONE else 112) // 16
    shapes = [(units, rows) for units in range(1, most + 1) for rows in (1, 3)]
    scratchpad = random_bytes(seed + 1, 4096)
    before = scratchpad.copy()
    jobs = []
    for id, (units, rows) in enumerate(shapes):
        descriptor = Descriptor(
            base=0x3000,
            format=ElementFormat.FP32,
            dims=(32, 30),
            strides=(128,),
            box=(4 * units, rows),
            swizzle=swizzle,
        )
        bench.describe(_TABLE + 128 * id, descriptor)
        at, local = (id % 4, id), 128 * (7 * id % 29)
        places = swizzled_places(local, descriptor.box_bytes, swizzle)
        scratchpad[places] = box_load(data, descriptor, at)
        jobs.append((_TABLE + 128 * id, at, {"id": id, "local": local}))

    async def work(ctx):
        await bench.fill(ctx, 0, before)
        for pointer, at, fields in jobs:
            await bench.command(ctx, TmaOperation.LOAD, pointer, at, **fields)
        await bench.completed(ctx, len(jobs))
        found.append(await bench.content(ctx))

    found = []
    bench.run(work)
    assert np.array_equal(found[0], scratchpad)
