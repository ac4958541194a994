"""REDUCE of a stand-alone TMA unit: boxes against numpy, refusals, errors and aborts."""

import dataclasses
import random

import numpy as np
import pytest

from hw.arch.boxes.reductions import REDUCED_FORMATS, ReductionOperation
from hw.arch.descriptor import Descriptor, ElementFormat, TmaFeature
from hw.arch.error_codes import TmaError
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.model import box_store, random_bytes, random_case
from tests.hw.tma.reduction.reduced_boxes import box_reduce
from tests.hw.tma.standalone.unit_bench import UnitBench, place_of, swizzled_places

_TABLE, _REGION = 0x1000, (0x2000, 0x5000)
_TILE = Descriptor(
    base=0x2000, format=ElementFormat.INT32, dims=(40, 12), strides=(176,), box=(16, 8)
)


def _bench(data, **kwargs):
    regions = {"readable": [(_TABLE, _REGION[1])], "writable": [_REGION]}
    return UnitBench(data, reduces=True, **regions, **kwargs)


def _number(rng, descriptor):
    """The same box of other elements of as many bytes, which can be added."""
    formats = [
        each
        for each in REDUCED_FORMATS[ReductionOperation.ADD]
        if each.bytes == descriptor.format.bytes
    ]
    plain = dataclasses.replace(descriptor, oob_fill=Descriptor.oob_fill)
    return dataclasses.replace(plain, format=rng.choice(formats))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width_bits", "memory"),
    [
        (64, {"latency": 3, "entries": 16}),
        (64, {"latency": 30, "jitter": 40, "stall": 0.5, "interleaves": True, "read_ids": 2}),
        (256, {"latency": 10, "jitter": 9, "interleaves": True}),
    ],
)
def test_boxes_are_reduced_in_order(width_bits, memory, seed, draws):
    rng = random.Random(seed)
    data = random_bytes(seed, _REGION[1])
    bench = _bench(data, seed=seed, width_bits=width_bits, **memory)
    kinds = []
    while len(kinds) < 6:
        descriptor, _ = random_case(
            rng, width_bits=width_bits, region=_REGION, features=tuple(TmaFeature), max_vectors=40
        )
        if descriptor.box_bytes <= bench.capacity // 2:
            kinds.append(_number(rng, descriptor))
    for number, descriptor in enumerate(kinds):
        bench.describe(_TABLE + 128 * number, descriptor)
    content = random_bytes(seed + 1, bench.capacity)
    expected = data.copy()
    jobs = []
    for id in range(draws(8, 24)):
        index = rng.randrange(len(kinds))
        descriptor = kinds[index]
        at = [rng.choice([0, rng.randint(-3, n)]) for n in descriptor.dims]
        step, last = place_of(descriptor, bench.capacity, width_bits)
        local = rng.randrange(0, last + 1, step)
        box = content[swizzled_places(local, descriptor.box_bytes, descriptor.swizzle)]
        fields = {"id": id, "local": local}
        if rng.random() < 0.3:
            box_store(expected, descriptor, at, box)
            jobs.append((TmaOperation.STORE, _TABLE + 128 * index, at, fields))
            continue
        operation = rng.choice(
            [each for each, formats in REDUCED_FORMATS.items() if descriptor.format in formats]
        )
        box_reduce(expected, descriptor, at, box, operation)
        fields["reduction"] = operation.value
        jobs.append((TmaOperation.REDUCE, _TABLE + 128 * index, at, fields))

    async def work(ctx):
        await bench.fill(ctx, 0, content)
        for operation, pointer, at, fields in jobs:
            await bench.command(ctx, operation, pointer, at, **fields)
        await bench.completed(ctx, len(jobs))

    bench.run(work)
    assert bench.completions == [(id, 0) for id in range(len(jobs))]
    assert np.array_equal(data, expected)


@pytest.mark.slow
def test_illegal_pairs_are_refused_without_an_access():
    """Every code of an operation with every format, legal or not; and a unit goes on."""
    pairs = [(code, format) for code in range(8) for format in ElementFormat]
    legal = {(each.value, f) for each, formats in REDUCED_FORMATS.items() for f in formats}
    data = random_bytes(1, _REGION[1])
    bench = _bench(data, entries=16)
    pointers = {}
    for number, format in enumerate(ElementFormat):
        pointers[format] = _TABLE + 128 * number
        box = (64 // format.bytes, 2)
        bench.describe(pointers[format], dataclasses.replace(_TILE, format=format, box=box))
    before = data.copy()

    async def work(ctx):
        for pointer in pointers.values():
            await bench.command(ctx, TmaOperation.PREFETCH, pointer, id=99)
        await bench.completed(ctx, len(pointers))
        reads = len(bench.memory.read_bursts)
        refused = [pair for pair in pairs if pair not in legal]
        for id, (code, format) in enumerate(refused):
            await bench.command(
                ctx, TmaOperation.REDUCE, pointers[format], (0, 0), id=id, reduction=code
            )
        await bench.completed(ctx, len(pointers) + len(refused))
        await ctx.tick().repeat(20)
        assert len(bench.memory.read_bursts) == reads and not bench.memory.write_bursts
        assert np.array_equal(data, before)
        codes = [code for _, code in bench.completions[len(pointers) :]]
        assert codes == [TmaError.REDUCE.value] * len(refused)
        for code, format in sorted(legal, key=str):
            await bench.command(
                ctx, TmaOperation.REDUCE, pointers[format], (0, 0), id=0, reduction=code
            )
        await bench.completed(ctx, len(pointers) + len(pairs))
        assert {code for _, code in bench.completions[-len(legal) :]} == {0}

    bench.run(work)


@pytest.mark.slow
@pytest.mark.parametrize("reads", [True, False], ids=["read", "write"])
def test_an_error_ends_the_command_with_its_code(reads):
    """The elements of beats that fail to be read stay; all others of the box are combined."""
    data = random_bytes(1, _REGION[1])
    content = random_bytes(2, 4096)
    bench = _bench(data)
    bench.describe(_TABLE, _TILE)
    expected = data.copy()
    box = content[: _TILE.box_bytes]
    cases = [(row, code) for row in (0, 3, 7) for code in (2, 3)]
    names = {2: "SLVERR", 3: "DECERR"}

    async def work(ctx):
        await bench.fill(ctx, 0, content)
        await bench.command(ctx, TmaOperation.PREFETCH, _TABLE, id=0)
        await bench.completed(ctx, 1)
        for row, code in cases:
            start = _TILE.base + 176 * row + 16
            kept = expected[start : start + 8].copy()
            box_reduce(expected, _TILE, (0, 0), box, ReductionOperation.ADD)
            if reads:
                bench.memory.failing = [(start, start + 8, code)]
                expected[start : start + 8] = kept
            else:
                burst = len(bench.memory.write_bursts) + row
                bench.memory.errors = {("write", burst): code}
            for id in (code, 1):
                await bench.command(ctx, TmaOperation.REDUCE, _TABLE, (0, 0), id=id, reduction=0)
                await bench.completed(ctx, len(bench.completions) + 1)
                bench.memory.failing, bench.memory.errors = [], {}
            box_reduce(expected, _TILE, (0, 0), box, ReductionOperation.ADD)

    bench.run(work)
    side = "READ" if reads else "WRITE"
    failed = [(code, TmaError[f"{side}_{names[code]}"].value) for _, code in cases]
    assert bench.completions == [(0, 0), *(each for code in failed for each in (code, (1, 0)))]
    assert np.array_equal(data, expected)


@pytest.mark.slow
@pytest.mark.parametrize("grants", [True, False], ids=["held", "not granted"])
def test_an_abort_combines_each_element_once_or_not_at_all(grants, seed):
    data = random_bytes(seed, _REGION[1])
    content = random_bytes(seed + 1, 4096)
    bench = _bench(data, seed=seed, latency=11, jitter=5)
    bench.describe(_TABLE, _TILE)
    once = data.copy()
    box_reduce(once, _TILE, (0, 0), content[: _TILE.box_bytes], ReductionOperation.ADD)
    before = data.copy()
    partly = []

    async def work(ctx):
        await bench.fill(ctx, 0, content)
        for wait in range(1, 300, 13):
            await bench.command(ctx, TmaOperation.PREFETCH, _TABLE, id=0)
            await bench.completed(ctx, len(bench.completions) + 1)
            bench.grants = grants
            await bench.command(ctx, TmaOperation.REDUCE, _TABLE, (0, 0), id=1)
            await ctx.tick().repeat(wait)
            await bench.abort(ctx)
            assert not ctx.get(bench.unit.interlock.asks)
            # Of each element of the tensor.
            old, new, found = (each.view("<i4") for each in (before, once, data))
            assert np.all((found == old) | (found == new))
            partly.append(not np.array_equal(data, before) and not np.array_equal(data, once))
            data[:] = before
        bench.grants = True
        await bench.command(ctx, TmaOperation.REDUCE, _TABLE, (0, 0), id=2)
        await bench.completed(ctx, len(bench.completions) + 1)

    bench.run(work)
    assert {code for _, code in bench.completions} == {0} and bench.completions[-1] == (2, 0)
    assert any(partly) == grants
    assert np.array_equal(data, once)


def test_a_group_is_stored_when_its_reductions_are():
    data = random_bytes(1, _REGION[1])
    bench = _bench(data, latency=20, entries=16)
    bench.describe(_TABLE, _TILE)

    async def work(ctx):
        await bench.command(ctx, TmaOperation.REDUCE, _TABLE, (0, 0), id=1)
        await bench.command(ctx, TmaOperation.COMMIT, id=2)
        await ctx.tick().until(bench.unit.o_groups_read == 1)
        assert ctx.get(bench.unit.o_groups_stored) == 0 and not bench.completions
        await bench.completed(ctx, 2)
        await ctx.tick()
        assert ctx.get(bench.unit.o_groups_stored) == 1

    bench.run(work)
