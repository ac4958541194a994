"""Commands of several boxes: linear copies, and four rows of a tensor by their indices."""

import random

import numpy as np
import pytest
from amaranth.sim import Simulator

from hw.arch.descriptor import (
    DESCRIPTOR_BYTES,
    STORED_WORDS,
    Descriptor,
    ElementFormat,
    OobFill,
    Swizzle,
)
from hw.arch.error_codes import TmaError
from hw.tma.barriers.barrier_layouts import BarrierOperation
from hw.tma.standalone.linear_copy import LINEAR_ENTRIES, MAX_LINEAR_BYTES, LinearSplitter
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.model import box_load, box_store, random_bytes
from tests.hw.tma.standalone.unit_bench import UnitBench, swizzled_places

_TABLE, _READ, _WRITTEN, _END = 0x1000, 0x2000, 0x6000, 0xA000
_KINDS = {
    TmaOperation.LOAD: "box",
    TmaOperation.STORE: "box",
    TmaOperation.GATHER4: "four",
    TmaOperation.SCATTER4: "four",
    TmaOperation.LOAD_LINEAR: "linear",
    TmaOperation.STORE_LINEAR: "linear",
}
_LOADS = (TmaOperation.LOAD, TmaOperation.GATHER4, TmaOperation.LOAD_LINEAR)


def _rows(rng, base, swizzle):
    """A tensor of 20 rows, of which a box is a part of one."""
    row = rng.randint(1, (swizzle.bytes if swizzle is not Swizzle.NONE else 112) // 16)
    return Descriptor(
        base=base + 16 * rng.randint(0, 9),
        format=ElementFormat.BF16,
        dims=(rng.randint(30, 200), 20),
        strides=(400 + 16 * rng.randint(0, 3),),
        box=(8 * row, 1),
        swizzle=swizzle,
        oob_fill=rng.choice(list(OobFill)),
    )


def _four(descriptor, at):
    return [(at[0], row) for row in at[1:]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width_bits", "capacity", "memory"),
    [
        (64, 8192, {"latency": 12}),
        pytest.param(
            *(256, 8192, {"latency": 30, "jitter": 40, "stall": 0.5, "interleaves": True}),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(1024, 16384, {"latency": 5, "jitter": 9, "stall": 0.2}), marks=pytest.mark.slow
        ),
    ],
)
def test_random_parts_are_those_of_numpy(width_bits, capacity, memory, seed, draws):
    rng, count = random.Random(seed), draws(12, 60)
    data = random_bytes(seed, _END)
    bench = UnitBench(
        data,
        seed=seed,
        width_bits=width_bits,
        capacity=capacity,
        entries=3,
        readable=[(_TABLE, _WRITTEN)],
        writable=[(_WRITTEN, _END)],
        **memory,
    )
    half = capacity // 2
    tables = {True: [], False: []}
    for number, loads in enumerate([True, True, False, False]):
        base = _READ if loads else _WRITTEN
        descriptor = _rows(rng, base, rng.choice(list(Swizzle)))
        pointer = _TABLE + 128 * number
        bench.describe(pointer, descriptor)
        tables[loads].append((pointer, descriptor))
    expected = data.copy()
    scratchpad = np.concatenate([np.zeros(half, np.uint8), random_bytes(seed + 1, half)])
    jobs, counted = [], 0
    operation = TmaOperation.LOAD_LINEAR
    for id in range(count):
        # Several of a kind follow one another; between them descriptors are read.
        if rng.random() < 0.2:
            pointer, _ = rng.choice(tables[True] + tables[False])
            reads = rng.choice([TmaOperation.PREFETCH, TmaOperation.INVALIDATE])
            jobs.append((reads, pointer, (), {"id": id}))
            continue
        if rng.random() < 0.4:
            operation = rng.choice(list(_KINDS))
        loads = operation in _LOADS
        local = 128 * rng.randrange(half // 128 // 2)
        fields = {"id": id, "local": local if loads else local + half}
        if _KINDS[operation] == "linear":
            size = 16 * rng.choice([1, 64, 128, rng.randint(1, (half - local) // 16)])
            size = min(size, half - local)
            start = (_READ if loads else _WRITTEN) + 16 * rng.randint(0, 0x200)
            if rng.random() < 0.3:
                # Across a 4 KiB boundary, or up to the end of what may be accessed.
                end = _WRITTEN if loads else _END
                start = rng.choice([end - size, start // 4096 * 4096 + 4096 - 16])
            if loads:
                scratchpad[local : local + size] = expected[start : start + size]
            else:
                source = scratchpad[half + local : half + local + size]
                expected[start : start + size] = source
            jobs.append((operation, start, (size,), fields))
        else:
            pointer, descriptor = rng.choice(tables[loads])
            at = [rng.randint(-9, descriptor.dims[0]), *(rng.randint(-2, 21) for _ in range(4))]
            parts = _four(descriptor, at) if _KINDS[operation] == "four" else [tuple(at[:2])]
            size = len(parts) * descriptor.row_bytes
            places = swizzled_places(fields["local"], size, descriptor.swizzle)
            if loads:
                boxes = [box_load(expected, descriptor, part) for part in parts]
                scratchpad[places] = np.concatenate(boxes)
            else:
                boxes = scratchpad[places].reshape(len(parts), -1)
                for part, box in zip(parts, boxes):
                    box_store(expected, descriptor, part, box)
            jobs.append((operation, pointer, at if len(parts) == 4 else at[:2], fields))
        if loads and rng.random() < 0.5:
            fields |= {"signals": 1, "barrier": 2}
            counted += size

    async def work(ctx):
        await bench.operate(ctx, BarrierOperation.INIT, 2, arrivals=1)
        await bench.operate(ctx, BarrierOperation.EXPECT, 2, bytes=counted)
        await bench.fill(ctx, 0, scratchpad[half:] * 0)
        await bench.fill(ctx, half, scratchpad[half:])
        for operation, pointer, at, fields in jobs:
            await bench.command(ctx, operation, pointer, at, **fields)
        await bench.completed(ctx, count)
        before = await bench.operate(ctx, BarrierOperation.ARRIVE, 2, arrivals=1)
        assert (before["tx"], before["flag"]) == (0, 0)
        found.append(await bench.content(ctx))

    found = []
    bench.run(work)
    assert dict(bench.completions) == dict.fromkeys(range(count), 0)
    assert np.array_equal(data, expected)
    assert np.array_equal(found[0], scratchpad)


_LINEAR = TmaOperation.LOAD_LINEAR
_RULES = [
    (_LINEAR, 0x2008, (64,), 0, TmaError.BASE),
    (_LINEAR, 0x2000, (0,), 0, TmaError.BOX),
    (_LINEAR, 0x2000, (MAX_LINEAR_BYTES + 16,), 0, TmaError.BOX),
    (_LINEAR, 0x2000, (-16,), 0, TmaError.BOX),
    (_LINEAR, 0x2000, (24,), 0, TmaError.ROW_BYTES),
    (_LINEAR, 0xFFFF_FFF0, (32,), 0, TmaError.BASE),
    (_LINEAR, 0x2000, (64,), 16, TmaError.DESTINATION),
    (_LINEAR, 0x2000, (4096,), 32, TmaError.DESTINATION),
    (_LINEAR, 0x2000, (16,), 4096, TmaError.DESTINATION),
    (TmaOperation.STORE_LINEAR, 0x2008, (64,), 0, TmaError.BASE),
    (TmaOperation.STORE_LINEAR, 0x2000, (4128,), 0, TmaError.DESTINATION),
    (TmaOperation.GATHER4, _TABLE, (0,) * 5, 0, TmaError.RANK),
    (TmaOperation.SCATTER4, _TABLE + 128, (0,) * 5, 0, TmaError.BOX),
    (TmaOperation.GATHER4, _TABLE + 256, (0,) * 5, 4064, TmaError.DESTINATION),
]


@pytest.mark.slow
def test_refused_parts_touch_nothing_and_the_next_succeed(seed):
    data = random_bytes(seed, _WRITTEN)
    bench = UnitBench(
        data, seed=seed, width_bits=256, capacity=4096, readable=[(_TABLE, _WRITTEN)], entries=8
    )
    whole = {"base": _READ, "format": ElementFormat.FP32}
    bench.describe(_TABLE, Descriptor(**whole, dims=(64,), box=(8,)))
    bench.describe(_TABLE + 128, Descriptor(**whole, dims=(64, 9), strides=(256,), box=(8, 2)))
    good = Descriptor(**whole, dims=(64, 9), strides=(256,), box=(4, 1))
    bench.describe(_TABLE + 256, good)
    wanted, before = {}, data.copy()

    async def work(ctx):
        for number in range(3):
            await bench.command(ctx, TmaOperation.PREFETCH, _TABLE + 128 * number, id=900 + number)
        await bench.fill(ctx, 0, np.zeros(4096, np.uint8))
        await bench.completed(ctx, 3)
        read = len(bench.memory.read_bursts)
        for id, (operation, pointer, at, local, code) in enumerate(_RULES):
            wanted[id] = code.value
            await bench.command(ctx, operation, pointer, at, id=id, local=local)
        await bench.completed(ctx, 3 + len(_RULES))
        assert len(bench.memory.read_bursts) == read and not bench.memory.write_bursts
        assert not (await bench.content(ctx)).any()
        await bench.command(ctx, _LINEAR, _READ + 16, (1040,), id=100)
        await bench.command(
            ctx, TmaOperation.GATHER4, _TABLE + 256, (4, 8, 0, -1, 3), id=101, local=2048
        )
        await bench.completed(ctx, 5 + len(_RULES))
        found.append(await bench.content(ctx))

    found = []
    bench.run(work)
    assert {id: code for id, code in bench.completions if id < 100} == wanted
    rows = [box_load(data, good, (4, row)) for row in (8, 0, -1, 3)]
    assert np.array_equal(found[0][:1040], data[_READ + 16 : _READ + 1056])
    assert np.array_equal(found[0][2048 : 2048 + 64], np.concatenate(rows))
    assert not found[0][1040:2048].any() and not found[0][2112:].any()
    assert np.array_equal(data, before)


@pytest.mark.slow
@pytest.mark.parametrize("latency", range(8, 20))
def test_a_descriptor_read_while_others_are_made_loses_none(latency):
    data = random_bytes(latency, _WRITTEN)
    readable = [(_TABLE, _WRITTEN)]
    bench = UnitBench(data, width_bits=256, capacity=4096, readable=readable, latency=latency)
    bench.describe(_TABLE, Descriptor(base=_READ, format=ElementFormat.FP32, dims=(8,), box=(8,)))

    async def work(ctx):
        await bench.command(ctx, TmaOperation.PREFETCH, _TABLE, id=99)
        for id in range(10):
            where = {"id": id, "local": 64 * id}
            await bench.command(ctx, _LINEAR, _READ + 256 * id, (64,), **where)
        await bench.command(ctx, TmaOperation.LOAD, _TABLE, (0,), id=10, local=1024)
        await bench.completed(ctx, 12)
        found.append(await bench.content(ctx))

    found = []
    bench.run(work)
    wanted = [data[_READ + 256 * id :][:64] for id in range(10)]
    assert np.array_equal(found[0][:640], np.concatenate(wanted))
    assert np.array_equal(found[0][1024:1056], data[_READ : _READ + 32])


@pytest.mark.parametrize("side", [0, 1])
def test_descriptors_of_copies_are_kept_until_they_are_freed(side):
    splitter = LinearSplitter(address_bits=32, descriptors=2 + LINEAR_ENTRIES)
    sizes = [1024, 1040, 16, 2064, 262_144]
    rng = random.Random(side)
    parts, written = [], {}

    async def give(ctx):
        port = splitter.i_stream
        for number, size in enumerate(sizes):
            ctx.set(port.payload, {"side": side, "address": number << 20, "bytes": size})
            ctx.set(port.valid, 1)
            await ctx.tick().until(port.ready)
        ctx.set(port.valid, 0)

    async def watch(ctx):
        port, write = splitter.o_parts, splitter.o_write
        ctx.set(port.ready, 1)
        while True:
            ctx.set(write.ready, ctx.get(write.valid) and rng.random() < 0.5)
            *_, valid, part, writes, index, bits = await ctx.tick().sample(
                port.valid,
                port.payload,
                write.valid & write.ready,
                write.payload.index,
                write.payload.words.as_value(),
            )
            if writes:
                written[index] = bits.to_bytes(8 * STORED_WORDS, "little")
            if valid:
                entry = int(part.entry)
                packed = written[entry] + bytes(DESCRIPTOR_BYTES - 8 * STORED_WORDS)
                parts.append((entry, Descriptor.unpack(packed), bool(part.continues)))

    async def free(ctx):
        for number in range(len(sizes)):
            await ctx.tick().repeat(40)
            # Two copies are kept, and no more.
            ends = sum(not continues for *_, continues in parts)
            assert ends == min(number + 2, len(sizes))
            ctx.set(splitter.i_freed[side], 1)
            await ctx.tick()
            ctx.set(splitter.i_freed[side], 0)

    simulator = Simulator(splitter)
    simulator.add_clock(1e-6)
    simulator.add_testbench(give, background=True)
    simulator.add_testbench(watch, background=True)
    simulator.add_testbench(free)
    simulator.run()
    wanted = []
    for number, size in enumerate(sizes):
        rows, rest = divmod(size, 1024)
        boxes = [(rows * 1024, (256, rows))] if rows else []
        boxes += [(rest, (rest // 4,))] if rest else []
        at = number << 20
        for place, (length, box) in enumerate(boxes):
            wanted.append((at, length, box, place + 1 < len(boxes)))
            at += length
    assert [(d.base, d.box_bytes, d.box, c) for _, d, c in parts] == wanted
    assert all(2 + 4 * side <= entry < 6 + 4 * side for entry, *_ in parts)
