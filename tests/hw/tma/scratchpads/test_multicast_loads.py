"""Loads of a TMA unit to several scratchpads, and stores from one of them."""

import itertools

import numpy as np
import pytest

from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.error_codes import BarrierError, TmaError
from hw.tma.barriers.barrier_layouts import BarrierOperation
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.bank_bench import offer
from tests.hw.tma.model import box_load, box_store
from tests.hw.tma.scratchpads.pads_bench import (
    AT,
    BASE,
    BOX,
    CAPACITY,
    OUT,
    begin,
    compare,
    counts,
    filled,
    pads_bench,
)
from tests.slow_cases import quick_first

_LOAD, _STORE = TmaOperation.LOAD, TmaOperation.STORE


@pytest.mark.slow
@pytest.mark.parametrize("scratchpads", [2, 3, 5])
def test_a_load_reads_memory_once_for_every_set_of_destinations(scratchpads):
    """Each destination has the same bytes and the whole count at its own barrier."""
    bench = pads_bench(scratchpads)

    async def work(ctx):
        wanted = await filled(bench, ctx)
        await bench.command(ctx, TmaOperation.PREFETCH, AT, id=0)
        await bench.completed(ctx, 1)
        for number, mask in enumerate(range(1, 1 << scratchpads), 1):
            await begin(bench, ctx, 3)
            bursts = len(bench.memory.read_bursts)
            local, row = 16 * (number % 100), number % 12
            fields = {"destinations": mask, "local": local, "barrier": 3, "signals": 1}
            await bench.command(ctx, _LOAD, AT, (0, row), id=number, **fields)
            await bench.completed(ctx, number + 1)
            assert bench.completions[-1] == (number, 0)
            beats = sum(length for _, length in bench.memory.read_bursts[bursts:])
            assert beats == BOX.box_bytes // bench.beat
            moved = box_load(bench.data, BOX, (0, row))
            for pad, answer in enumerate(await counts(bench, ctx, 3)):
                if mask >> pad & 1:
                    wanted[pad][local : local + moved.size] = moved
                assert answer["tx"] == -(mask >> pad & 1) * moved.size, (mask, pad)
                assert answer["flag"] == 0
        await compare(bench, ctx, wanted)

    bench.run(work)


@pytest.mark.slow
def test_user_accesses_of_one_destination_lose_no_data_of_another():
    """Users write and read at random, each its own last vector."""
    bench = pads_bench(3, stall=0.3)
    loads = 24
    ready, written = [], {}
    last = CAPACITY // 16 - 1

    async def interfere(ctx):
        while not ready:
            await ctx.tick()
        while len(bench.completions) < loads:
            for pad, user in enumerate(bench.users):
                word = bench.rng.getrandbits(128)
                writes = bench.rng.random() < 0.6
                ctx.set(user.i_writes.payload.vector, last)
                ctx.set(user.i_writes.payload.data, word)
                ctx.set(user.i_writes.payload.strobe, 0xFFFF)
                ctx.set(user.i_writes.valid, writes)
                if writes:
                    written[pad] = word
            await ctx.tick()
        for user in bench.users:
            ctx.set(user.i_writes.valid, 0)
        ready.clear()

    async def work(ctx):
        wanted = await filled(bench, ctx)
        ready.append(True)
        for number in range(loads):
            mask, row, local = 1 + number % 7, number % 12, 256 * (number % 7)
            fields = {"destinations": mask, "local": local}
            await bench.command(ctx, _LOAD, AT, (0, row), id=number, **fields)
            for pad in range(3):
                if mask >> pad & 1:
                    wanted[pad][local : local + 256] = box_load(bench.data, BOX, (0, row))
        while ready:
            await ctx.tick()
        assert bench.completions == [(number, 0) for number in range(loads)]
        for pad, word in written.items():
            wanted[pad][16 * last :] = np.frombuffer(word.to_bytes(16, "little"), np.uint8)
        await compare(bench, ctx, wanted)

    bench.run(work, interfere)


@pytest.mark.slow
def test_a_store_comes_from_its_source():
    out = Descriptor(base=OUT, format=ElementFormat.FP32, dims=(16, 16), strides=(64,), box=(16, 4))
    bench = pads_bench(3, stall=0.2)
    bench.describe(AT + 128, out)

    async def work(ctx):
        wanted = await filled(bench, ctx)
        memory = bench.data.copy()
        for number, pad in enumerate([2, 0, 1, 1, 2, 0]):
            fields = {"source": pad, "local": 64 * number}
            await bench.command(ctx, _STORE, AT + 128, (0, 2 * number), id=number, **fields)
            box_store(memory, out, (0, 2 * number), wanted[pad][64 * number :][:256])
        await bench.command(
            ctx, TmaOperation.STORE_LINEAR, 0x2800, (512,), id=6, source=2, local=512
        )
        memory[0x2800 : 0x2800 + 512] = wanted[2][512:1024]
        await bench.completed(ctx, 7)
        assert [code for _, code in bench.completions] == [0] * 7
        assert np.array_equal(bench.data, memory)
        await compare(bench, ctx, wanted)

    bench.run(work)


@pytest.mark.slow
def test_scratchpads_that_do_not_exist_are_refused():
    bench = pads_bench(3)
    linear = {
        TmaOperation.LOAD_LINEAR: (0x1000, (64,)),
        TmaOperation.STORE_LINEAR: (0x1000, (64,)),
    }
    bad = [
        *itertools.product((_LOAD, TmaOperation.LOAD_LINEAR), [{"destinations": 0}]),
        *itertools.product((_LOAD, TmaOperation.LOAD_LINEAR), [{"destinations": 0b1001}]),
        *itertools.product((_LOAD, TmaOperation.LOAD_LINEAR), [{"destinations": 1 << 15}]),
        *itertools.product((_STORE, TmaOperation.STORE_LINEAR), [{"source": 3}, {"source": 15}]),
    ]

    async def work(ctx):
        wanted = await filled(bench, ctx)
        memory = bench.data.copy()
        for number, (operation, fields) in enumerate(bad):
            address, coordinates = linear.get(operation, (AT, ()))
            await bench.command(ctx, operation, address, coordinates, id=number, **fields)
            await bench.completed(ctx, number + 1)
            assert bench.completions[-1] == (number, TmaError.DESTINATION.value), fields
        assert not bench.memory.write_bursts
        assert [at for at, _ in bench.memory.read_bursts] == [AT]
        await bench.command(ctx, _LOAD, AT, (0, 1), id=99, destinations=7)
        await bench.completed(ctx, len(bad) + 1)
        for content in wanted:
            content[:256] = box_load(memory, BOX, (0, 1))
        assert np.array_equal(bench.data, memory)
        await compare(bench, ctx, wanted)

    bench.run(work)


@pytest.mark.parametrize("failing", quick_first([3, 2]))
def test_an_error_of_a_load_raises_the_flag_at_every_destination(failing):
    bench = pads_bench(3)
    code = {2: TmaError.READ_SLVERR, 3: TmaError.READ_DECERR}[failing]

    async def work(ctx):
        await begin(bench, ctx, 1)
        bench.memory.failing[:] = [(BASE + 64, BASE + 80, failing)]
        fields = {"destinations": 0b101, "barrier": 1, "signals": 1}
        await bench.command(ctx, _LOAD, AT, id=0, **fields)
        await bench.completed(ctx, 1)
        assert bench.completions == [(0, code.value)]
        for pad, answer in enumerate(await counts(bench, ctx, 1)):
            assert answer["flag"] == (pad != 1), pad
            assert answer["tx"] == (0 if pad == 1 else -BOX.box_bytes)
        bench.memory.failing.clear()
        # A refused load raises the flags, too, and completes no bytes.
        await begin(bench, ctx, 1)
        await bench.command(ctx, _LOAD, AT, id=1, **fields | {"local": CAPACITY})
        await bench.completed(ctx, 2)
        assert bench.completions[-1] == (1, TmaError.DESTINATION.value)
        for pad, answer in enumerate(await counts(bench, ctx, 1)):
            assert (answer["flag"], answer["tx"]) == (pad != 1, 0), pad

    bench.run(work)


def test_a_barrier_that_refuses_the_bytes_gives_its_code():
    """The last of three destinations has no such barrier; the others have the bytes."""
    bench = pads_bench(3)

    async def work(ctx):
        for pad in range(2):
            await bench.operate(ctx, BarrierOperation.INIT, 1, pad=pad, arrivals=1)
        fields = {"destinations": 7, "barrier": 1, "signals": 1}
        await bench.command(ctx, _LOAD, AT, id=0, **fields)
        await bench.command(ctx, _LOAD, AT, id=1, **fields | {"destinations": 3})
        await bench.completed(ctx, 2)
        (first, code), second = bench.completions
        assert (first, second) == (0, (1, 0)) and code != 0
        answers = await counts(bench, ctx, 1)
        assert [answer["tx"] for answer in answers] == [-512, -512, 0]

    bench.run(work)


@pytest.mark.slow
@pytest.mark.parametrize("pad", range(3))
def test_a_bank_that_is_busy_loses_and_repeats_nothing(pad):
    """Two users hold up a bank; scratchpad 0 has no such barrier, and its code is kept."""
    bench = pads_bench(3)
    loads = 12

    async def work(ctx):
        for other in range(1, 3):
            await bench.operate(ctx, BarrierOperation.INIT, 1, pad=other, arrivals=1)
        fields = {"destinations": 7, "barrier": 1, "signals": 1}
        for number in range(loads):
            await bench.command(ctx, _LOAD, AT, id=number, **fields)
        busy = [bench.users[home].i_operations[0] for home in (pad, (pad + 1) % 3)]
        payload = {"operation": BarrierOperation.PENDING_COUNT.value, "barrier": 0, "bytes": 0}
        for port in busy:
            offer(ctx, port, {**payload, "arrivals": 0, "failed": 0, "scratchpad": pad})
        await bench.completed(ctx, loads)
        for port in busy:
            ctx.set(port.valid, 0)
        await ctx.tick()
        missing = BarrierError.UNINITIALISED.value
        assert bench.completions == [(number, missing) for number in range(loads)]
        answers = await counts(bench, ctx, 1)
        assert [answer["tx"] for answer in answers] == [0, *[-loads * BOX.box_bytes] * 2]

    bench.run(work)


@pytest.mark.slow
def test_an_abort_raises_the_flags_of_every_scratchpad():
    bench = pads_bench(3)

    async def work(ctx):
        for barrier in range(8):
            await begin(bench, ctx, barrier)
        for number in range(6):
            fields = {"destinations": 1 + number, "barrier": 1, "signals": 1}
            await bench.command(ctx, _LOAD, AT, id=number, **fields)
        await bench.abort(ctx)
        await ctx.tick().repeat(2)
        assert [ctx.get(user.o_flags) for user in bench.users] == [0xFF] * 3
        bench.completions.clear()
        wanted = await filled(bench, ctx)
        await bench.command(ctx, _LOAD, AT, (0, 5), id=9, destinations=6, local=512)
        await bench.completed(ctx, 1)
        for content in wanted[1:]:
            content[512:768] = box_load(bench.data, BOX, (0, 5))
        await compare(bench, ctx, wanted)

    bench.run(work)
