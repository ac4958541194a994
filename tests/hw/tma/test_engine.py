# amaranth: UnusedElaboratable=no
import dataclasses
import random

import numpy as np
import pytest

from hw.arch.descriptor import Descriptor, ElementFormat, Swizzle, TmaFeature
from hw.arch.error_codes import TmaError
from hw.arch.errors import BadInputError
from hw.lib.axi import RESP_DECERR
from hw.tma.engine import TmaEngine
from sim.tb._refusals import with_field
from tests.hw.tma.engine_bench import Bench
from tests.hw.tma.model import (
    as_vectors,
    box_load,
    box_store,
    random_bytes,
    random_case,
    write_descriptor,
)
from tests.slow_cases import quick_first


@pytest.mark.parametrize(
    "conditions",
    quick_first(
        [
            {"latency": 2},
            {"latency": 9, "jitter": 40, "stall": 0.3, "read_ids": 4, "interleaves": True},
            {"latency": 30, "stall": 0.3, "features": tuple(TmaFeature), "width_bits": 128},
            {"latency": 15, "jitter": 20, "stall": 0.3, "landing_beats": 16},
            {"latency": 2, "features": tuple(TmaFeature)},
            {"latency": 60, "landing_beats": 32, "features": tuple(TmaFeature), "width_bits": 256},
        ],
    ),
    ids=["quick", "several IDs", "all stalled", "slow", "all features", "all wide"],
)
def test_four_streams_move_their_boxes_at_once(conditions, seed):
    rng = random.Random(seed)
    width_bits, features = conditions.get("width_bits", 64), conditions.get("features", ())
    sources, targets = (0x1000, 0x3000), (0x4000, 0x6000)
    data = random_bytes(seed, 0x7000)
    bench = Bench(data, seed=seed, readable=[sources], writable=[targets], **conditions)
    bench.stall = conditions.get("stall", 0.0)
    # Each stream has its own two descriptors, and each store stream its own memory.
    halves = [(0x4000, 0x5000), (0x5000, 0x6000)]
    expected = data.copy()
    jobs, wanted = {}, {}
    for number in range(2):
        for side in ("load", "store"):
            region = sources if side == "load" else halves[number]
            kinds = [
                random_case(rng, width_bits=width_bits, region=region, features=features)
                for _ in range(2)
            ]
            jobs[side, number] = [
                (kind, [rng.randint(-3, n) for n in kinds[kind][0].dims])
                for kind in (rng.randrange(2) for _ in range(12))
            ]
            wanted[side, number] = [kinds[kind][0] for kind, _ in jobs[side, number]]
            jobs[side, number, "kinds"] = [descriptor for descriptor, _ in kinds]
    boxes = {
        number: [random_bytes(seed + i, d.box_bytes) for i, d in enumerate(wanted["store", number])]
        for number in range(2)
    }
    started = []

    async def describe(ctx):
        for slot, key in enumerate(("load", n) for n in range(2)):
            for kind in range(2):
                await bench.describe(ctx, 2 * slot + kind, jobs[(*key, "kinds")][kind])
        for slot, key in enumerate(("store", n) for n in range(2)):
            for kind in range(2):
                await bench.describe(ctx, 4 + 2 * slot + kind, jobs[(*key, "kinds")][kind])
        started.append(True)

    def commander(side, number):
        ports = bench.engine.i_load_commands if side == "load" else bench.engine.i_store_commands
        first = (0 if side == "load" else 4) + 2 * number

        async def issue(ctx):
            await bench.wait(ctx, lambda: started)
            for kind, coordinates in jobs[side, number]:
                await bench.command(ctx, ports[number], first + kind, coordinates)

        return issue

    def putter(number):
        async def put(ctx):
            await bench.wait(ctx, lambda: started)
            for box in boxes[number]:
                await bench.put(ctx, number, box)

        return put

    vectors = [
        [
            vector
            for descriptor, (_, at) in zip(wanted["load", number], jobs["load", number])
            for vector in as_vectors(box_load(data, descriptor, at), width_bits)
        ]
        for number in range(2)
    ]
    for number in range(2):
        for descriptor, (_, at), box in zip(
            wanted["store", number], jobs["store", number], boxes[number]
        ):
            box_store(expected, descriptor, at, box)

    async def finish(ctx):
        await bench.wait(
            ctx,
            lambda: (
                [len(v) for v in bench.loaded] == [len(v) for v in vectors]
                and bench.stored == [12, 12]
            ),
        )
        await ctx.tick().repeat(30)
        assert ctx.get(bench.engine.o_idle) and bench.memory.quiet
        assert ctx.get(bench.engine.o_error) == TmaError.NONE.value

    actors = [commander(side, number) for side in ("load", "store") for number in range(2)]
    bench.run(describe, *actors, putter(0), putter(1), finish)
    for number, each in enumerate(bench.loaded):
        sizes = [descriptor.box_bytes for descriptor in wanted["load", number]]
        assert defined(each, sizes, width_bits) == vectors[number]
    assert np.array_equal(data, expected)
    if TmaFeature.PARALLEL_BOXES in features:
        unit = min(width_bits // 8, 16)
        for side, reports in bench.reports.items():
            boxes = [
                (0, each.swizzle.value, each.box_bytes // unit)
                for n in range(2)
                for each in wanted[side, n]
            ]
            assert sorted(reports) == sorted(boxes)


def defined(vectors, sizes, width_bits):
    """Vectors of boxes of so many bytes, with zeros beyond the end of each box."""
    beat, boxes = width_bits // 8, iter(sizes)
    kept = []
    for word, last in vectors:
        rest = next(boxes) % beat if last else 0
        kept.append((word & (1 << 8 * rest) - 1 if rest else word, last))
    return kept


def test_every_command_is_reported_and_a_refused_one_moves_nothing():
    good = Descriptor(
        base=0x1000,
        format=ElementFormat.FP32,
        dims=(16, 8),
        strides=(64,),
        box=(16, 2),
        element_strides=(3, 2),
        swizzle=Swizzle.B64,
    )
    codes = [
        ("element_strides", 1, 0, TmaError.ELEMENT_STRIDE),
        ("element_strides", 0, 9, TmaError.ELEMENT_STRIDE),
        ("swizzle", 0, Swizzle.B32.value, TmaError.SWIZZLE),
        ("swizzle", 0, 4, TmaError.SWIZZLE),
        ("oob_fill", 0, 2, TmaError.OOB_FILL),
        ("rank", 0, 6, TmaError.RANK),
        ("shortfall", 0, 16, TmaError.DIMENSION),
    ]
    integers = dataclasses.replace(good, format=ElementFormat.INT32).pack()
    broken = [(with_field(good.pack(), *field), code) for *field, code in codes]
    broken.append((with_field(integers, "oob_fill", 0, 1), TmaError.OOB_FILL))
    shorter = dataclasses.replace(good, shortfall=15).pack()
    broken.append((with_field(shorter, "rank", 0, 1), TmaError.DIMENSION))
    data = random_bytes(1, 0x2000)
    bench = Bench(data, features=tuple(TmaFeature), readable=[(0x1000, 0x1200)])
    commands = bench.engine.i_load_commands[0]

    async def work(ctx):
        await bench.describe(ctx, 0, good)
        for number, (packed, _) in enumerate(broken):
            await write_descriptor(ctx, bench.engine.i_descriptor_write, 1, packed)
            await bench.command(ctx, commands, 1, (0, 0))
            await bench.command(ctx, commands, 0, (0, number))
            due = 2 * number + 2
            await bench.wait(ctx, lambda due=due: len(bench.reports["load"]) == due)
        await bench.wait(ctx, lambda: len(bench.loaded[0]) == 8 * len(broken))
        assert ctx.get(bench.engine.o_error) == broken[0][1].value

    bench.run(work)
    assert bench.reports["load"][1::2] == [(0, Swizzle.B64.value, 8)] * len(broken)
    assert [code for code, _, _ in bench.reports["load"][::2]] == [code.value for _, code in broken]
    boxes = [box_load(data, good, (0, number)) for number in range(len(broken))]
    assert bench.loaded[0] == [vector for box in boxes for vector in as_vectors(box, 64)]


LONG = Descriptor(
    base=0x1000, format=ElementFormat.FP32, dims=(256, 8), strides=(1024,), box=(256, 8)
)


SHORT = dataclasses.replace(LONG, dims=(256, 2), box=(256, 2))


def test_load_and_store_run_at_full_rate_side_by_side():
    data = random_bytes(1, 0x7000)
    target = dataclasses.replace(LONG, base=0x4000)
    box = random_bytes(2, LONG.box_bytes)
    bench = Bench(
        data,
        landing_beats=256,
        latency=100,
        readable=[(0x1000, 0x3000)],
        writable=[(0x4000, 0x6000)],
    )

    async def work(ctx):
        await bench.describe(ctx, 0, LONG)
        await bench.describe(ctx, 1, target)
        await bench.command(ctx, bench.engine.i_load_commands[0], 0, (0, 0))
        await bench.command(ctx, bench.engine.i_store_commands[1], 1, (0, 0))
        await bench.put(ctx, 1, box)
        await bench.wait(ctx, lambda: len(bench.loaded[0]) == 1024 and bench.stored == [0, 1])

    bench.run(work)
    for beats in (bench.memory.read_beats, bench.memory.write_beats):
        assert len(beats) == 1024 and beats[-1] - beats[0] == 1023
    assert np.array_equal(data[0x4000:0x6000], box)


def test_streams_take_turns_by_box():
    data = random_bytes(1, 0x4000)
    small = dataclasses.replace(LONG, box=(64, 2))
    bench = Bench(data, latency=2, readable=[(0x1000, 0x3000)])

    async def work(ctx):
        await bench.describe(ctx, 0, small)
        for _ in range(4):
            await bench.command(ctx, bench.engine.i_load_commands[0], 0, (0, 0))
        for _ in range(3):
            await bench.command(ctx, bench.engine.i_load_commands[1], 0, (0, 0))
        await bench.wait(ctx, lambda: list(map(len, bench.loaded)) == [4 * 64, 3 * 64])

    bench.run(work)
    ends = sorted(
        (when, number)
        for number in range(2)
        for when, (_, last) in zip(bench.loaded_when[number], bench.loaded[number])
        if last
    )
    order = [number for _, number in ends]
    # The first stream's second box may start before the other has a command.
    assert order in ([0, 1, 0, 1, 0, 1, 0], [0, 0, 1, 0, 1, 0, 1])


@pytest.mark.slow
def test_a_drain_takes_every_response_and_the_next_run_works(seed):
    rng = random.Random(seed)
    target = dataclasses.replace(SHORT, base=0x4000)
    for _ in range(3):
        data = random_bytes(seed, 0x7000)
        bench = Bench(
            data,
            seed=rng.getrandbits(32),
            latency=rng.randint(1, 60),
            jitter=10,
            stall=rng.choice([0.0, 0.4]),
            readable=[(0x1000, 0x1800)],
            writable=[(0x4000, 0x4800)],
            errors={("read", 5): RESP_DECERR},
        )
        # The fabric stands still in some runs: a drain must not need it.
        bench.stall = rng.choice([0.0, 1.0])
        wait = rng.randint(1, 300)
        box = random_bytes(3, SHORT.box_bytes)
        done = []

        async def begin(ctx, bench=bench, box=box, done=done):
            await bench.describe(ctx, 0, SHORT)
            await bench.describe(ctx, 1, target)
            for _ in range(2):
                await bench.command(ctx, bench.engine.i_load_commands[0], 0, (0, 0))
                await bench.command(ctx, bench.engine.i_store_commands[0], 1, (0, 0))
            port = bench.engine.i_vectors[0]
            for word, _ in as_vectors(box, 64):
                if done:
                    break
                ctx.set(port.payload.data, word)
                ctx.set(port.valid, 1)
                await ctx.tick()
            ctx.set(port.valid, 0)

        async def drain(ctx, bench=bench, wait=wait, box=box, done=done, data=data):
            await ctx.tick().repeat(50 + wait)
            ctx.set(bench.engine.i_drain, 1)
            done.append(True)
            await ctx.tick().repeat(2)
            issued = len(bench.memory.read_bursts)
            idle = bench.engine.o_idle
            await bench.wait(ctx, lambda: ctx.get(idle), limit=3000)
            assert bench.memory.quiet
            # At most the address that was already on show went out.
            assert len(bench.memory.read_bursts) <= issued + 1
            ctx.set(bench.reset, 1)
            await ctx.tick()
            ctx.set(bench.reset, 0)
            ctx.set(bench.engine.i_drain, 0)
            bench.loaded[0].clear()
            bench.stored[0] = 0
            bench.stall = 0.0
            bench.memory.errors.clear()
            await ctx.tick().repeat(5)
            await bench.command(ctx, bench.engine.i_load_commands[0], 0, (0, 0))
            await bench.command(ctx, bench.engine.i_store_commands[0], 1, (0, 0))
            await bench.put(ctx, 0, box)
            await bench.wait(ctx, lambda: bench.stored[0] and len(bench.loaded[0]) >= 256)
            assert ctx.get(bench.engine.o_error) == TmaError.NONE.value
            assert bench.loaded[0] == as_vectors(data[0x1000:0x1800], 64)
            assert np.array_equal(data[0x4000:0x4800], box)

        bench.run(begin, drain)


def test_the_first_error_is_kept_and_the_other_side_goes_on():
    data = random_bytes(1, 0x7000)
    bench = Bench(
        data,
        readable=[(0x1000, 0x1800)],
        writable=[(0x4000, 0x4800)],
        errors={("write", 0): RESP_DECERR, ("read", 2): RESP_DECERR},
    )
    target = dataclasses.replace(SHORT, base=0x4000)

    async def work(ctx):
        await bench.describe(ctx, 0, SHORT)
        await bench.describe(ctx, 1, target)
        await bench.command(ctx, bench.engine.i_store_commands[0], 1, (0, 0))
        await bench.put(ctx, 0, random_bytes(2, SHORT.box_bytes))
        await bench.wait(ctx, lambda: bench.stored[0] == 1)
        assert ctx.get(bench.engine.o_error) == TmaError.WRITE_DECERR.value
        await bench.command(ctx, bench.engine.i_load_commands[0], 0, (0, 0))
        await bench.wait(ctx, lambda: len(bench.loaded[0]) == 256)
        assert ctx.get(bench.engine.o_error) == TmaError.WRITE_DECERR.value

    bench.run(work)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width_bits": 96}, "Width in bits must be a power of two from 64 to 1024, not 96"),
        ({"width_bits": 32}, "Width in bits must be a power of two from 64 to 1024, not 32"),
        ({"address_bits": 20}, "Address bits must be an integer from 32 to 64, not 20"),
        ({"landing_beats": 8}, "Landing beats must be a power of two from 16 to 4096, not 8"),
        ({"outstanding": 0}, "Outstanding bursts must be an integer from 1 to 256, not 0"),
        ({"read_ids": 6}, "Read IDs must be a power of two from 1 to 16, not 6"),
        ({"descriptors": 0}, "Descriptors must be an integer from 1 to 256, not 0"),
        ({"load_streams": 0}, "Load streams must be an integer from 1 to 8, not 0"),
        ({"store_streams": 9}, "Store streams must be an integer from 1 to 8, not 9"),
    ],
)
def test_parameters_outside_their_domain_are_refused(change, message):
    with pytest.raises(BadInputError, match=message):
        TmaEngine(**change)
