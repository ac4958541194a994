"""Commands of a stand-alone TMA unit: refusals, error responses, cache, groups and barriers."""

import dataclasses
import random

import numpy as np
import pytest

from hw.arch.descriptor import Descriptor, ElementFormat, Swizzle
from hw.arch.error_codes import BarrierError, TmaError
from hw.arch.errors import BadInputError
from hw.arch.tma_sizes import TmaSizes
from hw.tma.barriers.barrier_layouts import BarrierOperation
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.bank_bench import offer
from tests.hw.tma.model import box_load, box_store, random_bytes
from tests.hw.tma.standalone.unit_bench import UnitBench

_LOAD, _STORE = TmaOperation.LOAD, TmaOperation.STORE
_GOOD = Descriptor(
    base=0x2000, format=ElementFormat.FP32, dims=(16, 32), strides=(64,), box=(16, 4)
)
_OUT = dataclasses.replace(_GOOD, base=0x3000)
#: Table of descriptors: the good ones, the broken one, and descriptors that only fill the cache.
_AT_GOOD, _AT_OUT, _AT_BROKEN, _AT_MORE = 0x1000, 0x1080, 0x1100, 0x1180
_SLVERR, _DECERR = 2, 3


def _bench(**options):
    data = random_bytes(7, 0x4000)
    options = {"readable": [(0x1000, 0x3000)], "writable": [(0x3000, 0x4000)]} | options
    bench = UnitBench(data, **options)
    bench.describe(_AT_GOOD, _GOOD)
    bench.describe(_AT_OUT, _OUT)
    return bench


def _codes(bench):
    return [code for _, code in sorted(bench.completions)]


#: Commands that are refused: operation, fields of the command, code.
_REFUSED = [
    # Of units that reduce, and of several scratchpads.
    (TmaOperation.REDUCE, {}, TmaError.OPERATION),
    (TmaOperation.COPY, {}, TmaError.OPERATION),
    (15, {}, TmaError.OPERATION),
    (_LOAD, {"descriptor": _AT_GOOD + 64}, TmaError.POINTER),
    (_STORE, {"descriptor": _AT_GOOD + 1}, TmaError.POINTER),
    (TmaOperation.PREFETCH, {"descriptor": _AT_GOOD + 16}, TmaError.POINTER),
    (TmaOperation.INVALIDATE, {"descriptor": 8}, TmaError.POINTER),
    (_LOAD, {"local": 4}, TmaError.DESTINATION),
    (_STORE, {"local": 4}, TmaError.DESTINATION),
    (_LOAD, {"local": 4096 - 248}, TmaError.DESTINATION),
    (_STORE, {"local": 4096 - 248}, TmaError.DESTINATION),
    (_LOAD, {"local": 4096}, TmaError.DESTINATION),
    (_LOAD, {"local": (1 << 20) - 8}, TmaError.DESTINATION),
]


@pytest.mark.slow
def test_a_refused_command_touches_nothing_and_the_next_succeeds():
    bench = _bench()
    before = bench.data.copy()
    wanted = np.zeros(bench.capacity, np.uint8)

    async def work(ctx):
        await bench.fill(ctx, 0, wanted)
        await bench.command(ctx, TmaOperation.PREFETCH, _AT_GOOD, id=0)
        await bench.completed(ctx, 1)
        for number, (operation, fields, _) in enumerate(_REFUSED):
            bursts = len(bench.memory.read_bursts)
            await bench.command(
                ctx, operation, id=2 * number + 1, **{"descriptor": _AT_GOOD} | fields
            )
            await bench.completed(ctx, 2 * number + 2)
            await ctx.tick().repeat(20)
            assert len(bench.memory.read_bursts) == bursts and not bench.memory.write_bursts
            row = number % 5
            await bench.command(ctx, _LOAD, _AT_GOOD, (0, row), id=2 * number + 2, local=64)
            await bench.completed(ctx, 2 * number + 3)
            box = box_load(bench.data, _GOOD, (0, row))
            wanted[64 : 64 + len(box)] = box
            # Elsewhere a box would have come, were it not refused.
            assert np.array_equal(await bench.content(ctx), wanted)

    bench.run(work)
    codes = [code.value for *_, code in _REFUSED]
    assert _codes(bench) == [0, *(each for code in codes for each in (code, 0))]
    assert np.array_equal(before, bench.data)


#: Changes to a packed descriptor, and the code of each.
_BROKEN = [
    ((9, 0), TmaError.RANK),
    ((9, 6), TmaError.RANK),
    ((8, 3), TmaError.FORMAT),
    ((0, 8), TmaError.BASE),
    ((7, 1), TmaError.BASE),
    ((56, 8), TmaError.STRIDE),
    ((16, 0), TmaError.DIMENSION),
    ((37, 2), TmaError.BOX),
    ((36, 1), TmaError.ROW_BYTES),
    ((47, 9), TmaError.ELEMENT_STRIDE),
    ((10, 1), TmaError.INTERLEAVE),
    ((11, 4), TmaError.SWIZZLE),
    ((12, 2), TmaError.OOB_FILL),
    ((13, 1), TmaError.MODE),
    ((14, 1), TmaError.REDUCE),
    ((88, 1), TmaError.IM2COL),
]


def test_a_broken_descriptor_ends_its_command_and_raises_the_flag_of_its_barrier():
    bench = _bench()
    flags = []

    async def work(ctx):
        for number, ((at, value), _) in enumerate(_BROKEN):
            packed = bytearray(_GOOD.pack())
            packed[at] = value
            bench.describe(_AT_BROKEN, bytes(packed))
            await bench.operate(ctx, BarrierOperation.INIT, 2, arrivals=1)
            await bench.command(ctx, TmaOperation.INVALIDATE, _AT_BROKEN, id=3 * number)
            await bench.command(ctx, _LOAD, _AT_BROKEN, id=3 * number + 1, barrier=2, signals=1)
            await bench.command(ctx, _STORE, _AT_BROKEN, id=3 * number + 2)
            await bench.completed(ctx, 3 * number + 3)
            answer = await bench.operate(ctx, BarrierOperation.PENDING_COUNT, 2)
            flags.append((answer["flag"], answer["tx"]))
        # One fetch of each, and none of a box.
        assert len(bench.memory.read_bursts) == len(_BROKEN)
        assert not bench.memory.write_bursts

    bench.run(work)
    wanted = [code.value for _, code in _BROKEN]
    assert _codes(bench)[1::3] == wanted and _codes(bench)[2::3] == wanted
    assert flags == [(1, 0)] * len(_BROKEN)


def test_a_box_with_a_swizzle_begins_at_a_multiple_of_128():
    bench = _bench()
    bench.describe(_AT_BROKEN, dataclasses.replace(_GOOD, swizzle=Swizzle.B64))

    async def work(ctx):
        await bench.command(ctx, _LOAD, _AT_BROKEN, id=0, local=64)
        await bench.command(ctx, _LOAD, _AT_BROKEN, id=1, local=128)
        await bench.completed(ctx, 2)

    bench.run(work)
    assert _codes(bench) == [TmaError.DESTINATION.value, 0]


@pytest.mark.slow
@pytest.mark.parametrize("read_ids", [1, 8])
@pytest.mark.parametrize("beat", [0, 15, 31], ids=["first", "middle", "last"])
@pytest.mark.parametrize("response", [_SLVERR, _DECERR])
def test_an_error_response_ends_the_command_and_the_next_succeeds(beat, response, read_ids):
    at = 8 * beat
    failing = [(0x2000 + at, 0x2008 + at, response), (0x3000 + at, 0x3008 + at, response)]
    bench = _bench(failing=failing, read_ids=read_ids, interleaves=True)
    found = []

    async def work(ctx):
        await bench.operate(ctx, BarrierOperation.INIT, 2, arrivals=1)
        await bench.operate(ctx, BarrierOperation.ARRIVE_EXPECT, 2, arrivals=1, bytes=256)
        await bench.command(ctx, _LOAD, _AT_GOOD, (0, 0), id=0, barrier=2, signals=1)
        await bench.command(ctx, _LOAD, _AT_GOOD, (0, 4), id=1, local=256)
        await bench.command(ctx, _STORE, _AT_OUT, (0, 0), id=2, local=256)
        await bench.command(ctx, _STORE, _AT_OUT, (0, 8), id=3, local=256)
        await bench.completed(ctx, 4)
        found.append(await bench.content(ctx))
        # The phase is complete, all bytes counted, and the flag is up.
        answer = await bench.operate(ctx, BarrierOperation.PENDING_COUNT, 2)
        assert answer == {"phase": 1, "pending": 1, "tx": 0, "flag": 1, "error": 0}

    bench.run(work)
    read, write = (
        (TmaError.READ_SLVERR, TmaError.WRITE_SLVERR)
        if response == _SLVERR
        else (TmaError.READ_DECERR, TmaError.WRITE_DECERR)
    )
    assert _codes(bench) == [read.value, 0, write.value, 0]
    box = box_load(bench.data, _GOOD, (0, 0))
    box[at : at + 8] = 0
    assert np.array_equal(found[0][:256], box)
    assert np.array_equal(found[0][256:512], box_load(bench.data, _GOOD, (0, 4)))


def test_a_descriptor_that_cannot_be_read_is_not_kept():
    bench = _bench(failing=[(_AT_BROKEN, _AT_BROKEN + 8, _SLVERR)])
    bench.describe(_AT_BROKEN, _GOOD)

    async def work(ctx):
        for id, operation in enumerate((_LOAD, _STORE, TmaOperation.PREFETCH)):
            await bench.command(ctx, operation, _AT_BROKEN, id=id)
            await bench.completed(ctx, id + 1)
        bench.memory.failing.clear()
        await bench.command(ctx, _LOAD, _AT_BROKEN, id=3)
        await bench.completed(ctx, 4)
        addresses = [address for address, _ in bench.memory.read_bursts]
        assert addresses.count(_AT_BROKEN) == 4

    bench.run(work)
    assert _codes(bench) == [TmaError.READ_SLVERR.value] * 3 + [0]


def test_a_changed_descriptor_is_seen_after_it_is_invalidated():
    bench = _bench()
    changed = dataclasses.replace(_GOOD, base=0x2400)
    found = []

    async def load(ctx, count):
        await bench.command(ctx, _LOAD, _AT_GOOD, id=count)
        await bench.completed(ctx, count + 1)
        found.append((await bench.content(ctx))[:256])

    async def work(ctx):
        await load(ctx, 0)
        bench.describe(_AT_GOOD, changed)
        await load(ctx, 1)
        await bench.command(ctx, TmaOperation.INVALIDATE, _AT_GOOD, id=2)
        await load(ctx, 3)

    bench.run(work)
    boxes = [box_load(bench.data, each, (0, 0)) for each in (_GOOD, _GOOD, changed)]
    for got, box in zip(found, boxes, strict=True):
        assert np.array_equal(got, box)


def test_a_descriptor_is_read_once_and_the_oldest_makes_room():
    bench = _bench()
    tables = [_AT_MORE + 128 * number for number in range(5)]
    for at in tables:
        bench.describe(at, _GOOD)
    reads = []

    async def work(ctx):
        given = [*tables[:4], *tables[:4], tables[4], tables[1], tables[0]]
        for id, at in enumerate(given):
            await bench.command(ctx, TmaOperation.PREFETCH, at, id=id)
            await bench.completed(ctx, id + 1)
            reads.append(len(bench.memory.read_bursts))

    bench.run(work)
    assert reads == [1, 2, 3, 4, 4, 4, 4, 4, 5, 5, 6]
    assert set(_codes(bench)) == {0}


def test_groups_are_read_before_they_are_stored():
    bench = _bench(latency=60)
    times = {}

    async def watch(ctx):
        cycle = 0
        async for _, _, read, stored in ctx.tick().sample(
            bench.unit.o_groups_read, bench.unit.o_groups_stored
        ):
            cycle += 1
            times.setdefault(("read", read), cycle)
            times.setdefault(("stored", stored), cycle)

    async def work(ctx):
        content = random_bytes(3, bench.capacity)
        await bench.fill(ctx, 0, content)
        expected = bench.data.copy()
        for group in range(2):
            for number in range(2):
                row = 4 * (2 * group + number)
                await bench.command(ctx, _STORE, _AT_OUT, (0, row), id=row, local=64 * row)
                box_store(expected, _OUT, (0, row), content[64 * row : 64 * row + 256])
            await bench.command(ctx, TmaOperation.COMMIT, id=100 + group)
        await bench.completed(ctx, 6)
        assert np.array_equal(bench.data, expected)

    bench.simulator.add_testbench(watch, background=True)
    bench.run(work)
    assert [id for id, _ in bench.completions] == [0, 4, 100, 8, 12, 101]
    assert times["read", 1] < times["read", 2] < times["stored", 1] <= times["stored", 2]


def test_an_error_of_the_barrier_is_that_of_the_load():
    bench = _bench()

    async def work(ctx):
        await bench.command(ctx, _LOAD, _AT_GOOD, id=0, barrier=5, signals=1)
        await bench.command(ctx, _LOAD, _AT_GOOD, id=1, barrier=200, signals=1)
        await bench.completed(ctx, 2)

    bench.run(work)
    assert _codes(bench) == [BarrierError.UNINITIALISED.value, BarrierError.INDEX.value]


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0, 9, 20, 31, 60, 110, 150, 260])
def test_an_abort_ends_all_commands_and_the_next_succeed(moment, seed):
    rng = random.Random(seed + moment)
    bench = _bench(
        seed=seed,
        latency=rng.randrange(40),
        stall=rng.choice([0.0, 0.4]),
        read_ids=rng.choice([1, 4]),
        interleaves=True,
    )
    bench.describe(_AT_MORE, dataclasses.replace(_OUT, base=0x3400))
    waits, results = bench.unit.i_waits[0], bench.unit.o_waits[0]
    jobs = [
        (_LOAD, _AT_GOOD),
        (_STORE, _AT_OUT),
        (_STORE, _AT_MORE),
        (TmaOperation.PREFETCH, _AT_MORE),
        (TmaOperation.COMMIT, 0),
    ]

    given = []
    aborted = []

    async def commands(ctx):
        while not aborted:
            operation, pointer = rng.choice(jobs)
            fields = {"local": 512 * rng.randrange(4), "barrier": 2, "signals": rng.randrange(2)}
            await bench.command(ctx, operation, pointer, (0, 8), id=len(given), **fields)
            given.append(operation)

    async def work(ctx):
        await bench.operate(ctx, BarrierOperation.INIT, 2, arrivals=1)
        await bench.operate(ctx, BarrierOperation.INIT, 5, arrivals=3)
        offer(ctx, waits, {"barrier": 5, "parity": 0, "cycles": 100_000})
        await ctx.tick()
        ctx.set(waits.valid, 0)
        await ctx.tick().repeat(1 + moment)
        before = len(given)
        await bench.abort(ctx)
        aborted.append(len(bench.completions))
        late = len(given)
        assert late <= before + 1
        assert ctx.get(bench.unit.o_flags) == 1 << 2 | 1 << 5
        assert ctx.get(results.valid) and ctx.get(results.payload.flag)
        # The one that was offered in the abort is the first of the next commands, and completes.
        await bench.operate(ctx, BarrierOperation.INIT, 2, arrivals=1)
        await bench.completed(ctx, aborted[0] + 1)
        assert bench.completions[aborted[0]] == (late, 0)
        await bench.command(ctx, _LOAD, _AT_GOOD, (0, 8), id=99, local=512)
        await bench.completed(ctx, aborted[0] + 2)
        content = await bench.content(ctx)
        assert np.array_equal(content[512:768], box_load(bench.data, _GOOD, (0, 8)))

    bench.simulator.add_testbench(commands, background=True)
    bench.run(work)
    assert bench.completions[-1] == (99, 0)
    assert {code for _, code in bench.completions} == {0}


def test_what_the_scratchpad_and_the_barriers_accept_in_an_abort_is_answered():
    bench = _bench(latency=20)
    unit = bench.unit
    found = {"reads": 0, "read": 0, "operations": 0, "answers": 0}

    async def accelerator(ctx):
        operations = unit.i_operations[0]
        fields = {"operation": BarrierOperation.PENDING_COUNT.value, "barrier": 1}
        offer(ctx, operations, {**fields, "arrivals": 0, "bytes": 0, "failed": 0})
        ctx.set(unit.i_reads.valid, 1)
        sampled = (unit.i_reads.ready, operations.ready, unit.o_data.valid, unit.o_answers[0].valid)
        async for *_, reads, operates, read, answers in ctx.tick().sample(*sampled):
            found["read"] += read
            found["answers"] += answers
            assert found["read"] == found["reads"]
            assert found["answers"] == found["operations"]
            found["reads"] += reads
            found["operations"] += operates

    async def work(ctx):
        for id in range(4):
            await bench.command(ctx, _LOAD, _AT_GOOD, (0, 8), id=id, barrier=1, signals=1)
        await ctx.tick().repeat(30)
        await bench.abort(ctx)

    bench.simulator.add_testbench(accelerator, background=True)
    bench.run(work)
    assert found["reads"] > 50 and found["operations"] > 40


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scratchpad_bytes", 1 << 20),
        ("scratchpad_bytes", 3000),
        ("descriptors", 1),
        ("barriers", 0),
    ],
)
def test_a_parameter_outside_its_domain_is_refused(name, value):
    with pytest.raises(BadInputError, match=str(value)):
        TmaSizes(**{name: value})
