"""REPLACE of a stand-alone TMA unit: fields of descriptors change in memory, between their uses."""

import dataclasses
import random
from pathlib import Path

import numpy as np
import pytest

from hw.arch.boxes.descriptor_fields import DescriptorField
from hw.arch.descriptor import Descriptor, ElementFormat, OobFill, Swizzle
from hw.arch.error_codes import TmaError
from hw.tma.standalone.unit_commands import TmaOperation
from sim.tb._refusals import with_field
from tests.hw.tma.model import box_load, box_store, random_bytes
from tests.hw.tma.standalone.unit_bench import UnitBench, swizzled_places

PAGE = Path(__file__).resolve().parents[4] / "docs" / "tma_unit.md"
_TABLE, _SIZE = 0x1000, 0x4000
_GOOD = Descriptor(
    base=0x2000, format=ElementFormat.FP32, dims=(16, 12, 2), strides=(64, 768), box=(16, 2, 1)
)
_OUT = dataclasses.replace(_GOOD, base=0x3000)


def _bench(seed=0, **options):
    data = random_bytes(seed, _SIZE)
    options = {"readable": [(_TABLE, 0x3000)], "writable": [(_TABLE, _SIZE)]} | options
    return UnitBench(data, seed=seed, **options)


def test_the_page_has_the_codes_of_operations_and_fields():
    text = " ".join(PAGE.read_text().split())
    assert all(f" | {each.name} | {each.value} | " in text for each in TmaOperation)
    fields = [f"{each.name} {each.value}" for each in DescriptorField]
    assert f"The fields are {', '.join(fields[:-1])} and {fields[-1]}." in text


async def _replace(bench, ctx, pointer, field, index, value, id):
    """A field by its number; coordinates are signed."""
    halves = [value & 0xFFFF_FFFF, value >> 32 & 0xFFFF_FFFF]
    signed = [half - (half >> 31 << 32) for half in halves]
    await bench.command(ctx, TmaOperation.REPLACE, pointer, (field, index, *signed), id=id)


def _changed(rng, good):
    """A descriptor that differs in one field; with the field, the index in it and its value."""
    field, index, value = rng.choice(
        [
            ("base", 0, 0x2000 + 16 * rng.randrange(8)),
            ("dims", 0, rng.randint(1, 16)),
            ("dims", 1, rng.randint(1, 12)),
            ("strides", 0, 16 * rng.randint(4, 5)),
            ("strides", 1, 16 * rng.randint(50, 60)),
            ("box", 0, rng.choice([4, 8, 12, 16])),
            ("box", 1, rng.randint(1, 4)),
            ("element_strides", 1, rng.randint(1, 8)),
            ("format", 0, rng.choice([ElementFormat.FP32, ElementFormat.INT32])),
            ("swizzle", 0, rng.choice([Swizzle.NONE, Swizzle.B64, Swizzle.B128])),
            ("oob_fill", 0, rng.choice([OobFill.ZERO, OobFill.NAN])),
        ]
    )
    number = value if isinstance(value, int) else value.value
    if field in ("dims", "strides", "box", "element_strides"):
        value = tuple(value if n == index else each for n, each in enumerate(getattr(good, field)))
    return (
        dataclasses.replace(good, **{field: value}),
        DescriptorField[field.upper()],
        index,
        number,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"latency": 3},
        {"latency": 20, "jitter": 30, "stall": 0.5, "interleaves": True, "width_bits": 128},
        {"latency": 9, "stall": 0.3, "width_bits": 512, "capacity": 16384},
    ],
    ids=["64", "128", "512"],
)
def test_a_use_sees_the_replacements_before_it(options, seed):
    """Loads by changing descriptors, between stores, with a cache of fewer entries."""
    rng = random.Random(seed)
    bench = _bench(seed, entries=2, **options)
    tables = [_TABLE + 128 * number for number in range(3)]
    for pointer in tables:
        bench.describe(pointer, _GOOD)
    bench.describe(_TABLE + 0x400, _OUT)
    now = dict.fromkeys(tables, _GOOD)
    capacity = bench.capacity
    scratchpad = random_bytes(seed + 1, capacity)
    start, expected = scratchpad.copy(), bench.data.copy()
    jobs = []
    for _ in range(40):
        pointer, kind = rng.choice(tables), rng.choice(["replace", "replace", "load", "store"])
        at = (rng.choice([0, -4, 8]), rng.randint(-2, 11), rng.randint(-1, 1))
        if kind == "replace":
            try:
                changed, *change = _changed(rng, now[pointer])
            except ValueError:
                continue  # together with the other fields it is no descriptor
            now[pointer] = changed
            jobs.append((kind, pointer, change))
            expected[pointer : pointer + 128] = np.frombuffer(changed.pack(), np.uint8)
        elif kind == "load":
            descriptor = now[pointer]
            local = 1024 * rng.randrange(capacity // 1024)
            places = swizzled_places(local, descriptor.box_bytes, descriptor.swizzle)
            scratchpad[places] = box_load(expected, descriptor, at)
            jobs.append((kind, pointer, at, local))
        else:
            local = 1024 * rng.randrange(capacity // 1024)
            box = scratchpad[local : local + _OUT.box_bytes].copy()
            box_store(expected, _OUT, at, box)
            jobs.append((kind, _TABLE + 0x400, at, local))

    async def work(ctx):
        latest = None
        await bench.fill(ctx, 0, start)
        for id, (kind, pointer, *rest) in enumerate(jobs):
            if kind == "replace":
                field, index, value = rest[0]
                await _replace(bench, ctx, pointer, field.value, index, value, id)
                continue
            # Boxes of the scratchpad have an order among loads, or among stores, only.
            if kind != latest:
                await bench.completed(ctx, id)
            latest = kind
            at, local = rest
            operation = TmaOperation[kind.upper()]
            await bench.command(ctx, operation, pointer, at, id=id, local=local)
        await bench.completed(ctx, len(jobs))
        found.append(await bench.content(ctx))

    found = []
    bench.run(work)
    assert dict(bench.completions) == dict.fromkeys(range(len(jobs)), 0)
    assert np.array_equal(bench.data, expected)
    assert np.array_equal(found[0], scratchpad)


_REFUSED = [
    *((field, 0, 0) for field in (10, 15, 16, 1 << 31)),
    *((field.value, index, 1) for field in DescriptorField for index in (field.count, 1 << 30)),
    *((field.value, 0, 1 << 8 * field.bytes) for field in DescriptorField if field.bytes < 8),
]


def test_replacements_that_are_refused_write_nothing():
    bench = _bench()
    bench.describe(_TABLE, _GOOD)
    before = bench.data.copy()

    async def work(ctx):
        for id, (field, index, value) in enumerate(_REFUSED):
            await _replace(bench, ctx, _TABLE, field, index, value, id)
        await _replace(bench, ctx, _TABLE + 64, 1, 0, 3, len(_REFUSED))
        await bench.completed(ctx, len(_REFUSED) + 1)
        assert not bench.memory.write_bursts
        await _replace(bench, ctx, _TABLE, DescriptorField.RANK.value, 0, 2, 99)
        await bench.completed(ctx, len(_REFUSED) + 2)

    bench.run(work)
    codes = [code for _, code in sorted(bench.completions)]
    assert codes == [TmaError.FIELD.value] * len(_REFUSED) + [TmaError.POINTER.value, 0]
    before[_TABLE : _TABLE + 128] = np.frombuffer(with_field(_GOOD.pack(), "rank", 0, 2), np.uint8)
    assert np.array_equal(bench.data, before)


@pytest.mark.parametrize(
    ("response", "code"), [(2, TmaError.WRITE_SLVERR), (3, TmaError.WRITE_DECERR)]
)
def test_an_error_response_ends_a_replacement_with_its_code(response, code):
    bench = _bench(failing=[(_TABLE, _TABLE + 128, response)])
    bench.describe(_TABLE + 128, _GOOD)

    async def work(ctx):
        await _replace(bench, ctx, _TABLE, DescriptorField.RANK.value, 0, 1, 0)
        await _replace(bench, ctx, _TABLE + 128, DescriptorField.RANK.value, 0, 0, 1)
        await bench.command(ctx, TmaOperation.LOAD, _TABLE + 128, id=2)
        await bench.completed(ctx, 3)

    bench.run(work)
    assert sorted(bench.completions) == [(0, code.value), (1, 0), (2, TmaError.RANK.value)]


@pytest.mark.slow
def test_an_abort_amid_stores_and_replacements_leaves_a_unit_that_works(seed):
    rng = random.Random(seed)
    bench = _bench(seed, latency=12, stall=0.4)

    async def work(ctx):
        for round_ in range(12):
            bench.describe(_TABLE, _OUT)
            before = len(bench.completions)

            async def give():
                for id in range(2):
                    await bench.command(ctx, TmaOperation.STORE, _TABLE, id=id)
                    await _replace(bench, ctx, _TABLE, DescriptorField.RANK.value, 0, 3, 10 + id)

            await give()
            await ctx.tick().repeat(rng.randint(1, 120))
            await bench.abort(ctx)
            given = len(bench.completions) - before
            assert given <= 4
            bench.describe(_TABLE, _OUT)
            await _replace(bench, ctx, _TABLE, DescriptorField.DIMS.value, 1, 11, 50)
            await bench.command(ctx, TmaOperation.STORE, _TABLE, id=51)
            await bench.completed(ctx, before + given + 2)
            assert bench.completions[-2:] == [(50, 0), (51, 0)]
            assert bench.data[_TABLE + 20] == 11, round_

    bench.run(work)
