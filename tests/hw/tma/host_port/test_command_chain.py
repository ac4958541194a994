"""Command chains of a TMA unit behind registers: boxes, rings, errors, aborts."""

import random

import numpy as np
import pytest

from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.error_codes import BarrierError, TmaError
from hw.tma.barriers.barrier_layouts import BarrierOperation
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.host_port.chain_actors import AT, BOX, EMPTY, FULL, operate, start, wait
from tests.hw.tma.model import random_bytes
from tests.hw.tma.standalone.top_bench import OKAY, SLVERR, TopBench
from tests.slow_cases import quick_first

_BASE = 0x2000
_ROWS, _COLUMNS = 32, 16
_BEAT = 8


def table(box=(8, 2), rows=_ROWS):
    """16 columns of fp32, in boxes of half a row."""
    return Descriptor(
        base=_BASE, format=ElementFormat.FP32, dims=(_COLUMNS, rows), strides=(64,), box=box
    )


def bench_of(descriptor, **options):
    options = {"readable": [(AT, 0x3000)], "writable": [(_BASE, 0x4000)]} | options
    bench = TopBench(random_bytes(7, 0x4000), **options)
    bench.describe(AT, descriptor)
    return bench


def box_bytes(data, column, row, width=8, height=2):
    """Bytes of a box of the table."""
    rows = data[_BASE : _BASE + 64 * _ROWS].reshape(_ROWS, 64)
    return rows[row : row + height, 4 * column : 4 * (column + width)].tobytes()


def test_a_chain_without_barriers_loads_the_boxes_of_its_nest():
    bench = bench_of(table())
    # Rows outermost, then columns.
    loops = [(1, 5, 2), (0, 2, 8)]
    wanted = [(column, 4 + row) for row in range(0, 10, 2) for column in (0, 8)]

    async def host(ctx):
        assert await start(bench, ctx, loops, slots=16, coordinates=(0, 4)) == OKAY
        assert await bench.completion(ctx) == (5, 0)
        assert await bench.read(ctx, "CHAIN_STEPS") == len(wanted)
        assert await bench.read(ctx, "CHAIN_STATUS") == 0
        content = (await bench.content(ctx)).tobytes()
        for number, (column, row) in enumerate(wanted):
            got = content[number * BOX :][:BOX]
            assert got == box_bytes(bench.data, column, row), number

    bench.run(host)


def test_loops_in_any_order_repeat_and_step_back():
    bench = bench_of(table())
    loops = [(7, 2, 0), (0, 2, 8), (7, 1, 0), (1, 3, -2), (0, 1, 99)]
    wanted = [(column, row) for _ in range(2) for column in (0, 8) for row in (6, 4, 2)]

    async def host(ctx):
        await start(bench, ctx, loops, slots=12, coordinates=(0, 6))
        assert await bench.completion(ctx) == (5, 0)
        content = (await bench.content(ctx)).tobytes()
        for number, (column, row) in enumerate(wanted):
            assert content[number * BOX :][:BOX] == box_bytes(bench.data, column, row), number

    bench.run(host)


async def slot_bytes(bench, ctx, local):
    """Bytes of a box in the scratchpad, a vector per cycle."""
    port, answer, found = bench.top.i_reads, bench.top.o_data, []
    ctx.set(port.valid, 1)
    for number in range(BOX // _BEAT):
        ctx.set(port.payload, local // _BEAT + number)
        await ctx.tick()
        found.append(int(ctx.get(answer.data)).to_bytes(_BEAT, "little"))
    ctx.set(port.valid, 0)
    return b"".join(found)


@pytest.mark.parametrize(
    ("slots", "tiles"), quick_first([(1, 1), (2, 7), (1, 4), (3, 16), (4, 13)], 2)
)
def test_a_ring_of_slots_passes_every_tile_once(slots, tiles, seed):
    rng = random.Random(seed + slots * 100 + tiles)
    bench = bench_of(table(), seed=seed)
    finished = []

    async def consumer(ctx):
        while not bench.ready:
            await ctx.tick()
        for tile in range(tiles):
            slot, turn = tile % slots, tile // slots
            result = await wait(bench, ctx, FULL + slot, turn % 2)
            assert result.passed and not result.flag and not result.error.value
            got = await slot_bytes(bench, ctx, 256 + slot * 128)
            assert got == box_bytes(bench.data, 0, tile), tile
            for _ in range(rng.randrange(30)):
                await ctx.tick()
            await operate(bench, ctx, BarrierOperation.ARRIVE, EMPTY + slot)
            finished.append(tile)

    async def host(ctx):
        for barrier in range(8):
            await bench.operate(ctx, BarrierOperation.INIT, barrier, arrivals=1)
        bench.ready = True
        options = {"slots": slots, "pitch": 128, "local": 256, "barrier": FULL}
        assert await start(bench, ctx, [(1, tiles, 1)], **options) == OKAY
        # A chain in use: another is refused, and so are its registers; other commands pass.
        if tiles > 2 * slots:
            assert await bench.write(ctx, "CHAIN_PITCH", 64) == SLVERR
            assert await bench.write(ctx, "CHAIN_LOOP", loop=1, count=3) == SLVERR
            assert await bench.submit(ctx, TmaOperation.CHAIN, id=9) == SLVERR
            assert await bench.submit(ctx, TmaOperation.PREFETCH, AT, id=7) == OKAY
            assert await bench.completion(ctx) == (7, 0)
        assert await bench.completion(ctx) == (5, 0)
        assert await bench.read(ctx, "CHAIN_STEPS") == tiles
        while len(finished) < tiles:
            await ctx.tick()
        assert finished == list(range(tiles))

    bench.ready = False
    bench.run(host, consumer)


def test_a_chain_of_stores_frees_each_slot_when_its_box_is_stored(seed):
    bench = bench_of(table(), seed=seed)
    slots, tiles = 2, 7
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 256, (tiles, BOX), dtype=np.uint8)

    async def producer(ctx):
        while not bench.ready:
            await ctx.tick()
        port = bench.top.i_writes
        for tile in range(tiles):
            slot, turn = tile % slots, tile // slots
            assert (await wait(bench, ctx, EMPTY + slot, 1 - turn % 2)).passed
            ctx.set(port.valid, 1)
            for number in range(BOX // _BEAT):
                word = values[tile].tobytes()[number * _BEAT :][:_BEAT]
                ctx.set(port.payload.vector, slot * BOX // _BEAT + number)
                ctx.set(port.payload.data, int.from_bytes(word, "little"))
                ctx.set(port.payload.strobe, -1)
                await ctx.tick().until(port.ready)
            ctx.set(port.valid, 0)
            await operate(bench, ctx, BarrierOperation.ARRIVE, FULL + slot)

    async def host(ctx):
        for barrier in range(8):
            await bench.operate(ctx, BarrierOperation.INIT, barrier, arrivals=1)
        bench.ready = True
        options = {"slots": slots, "barrier": FULL, "operation": TmaOperation.STORE}
        await start(bench, ctx, [(1, tiles, 2)], **options)
        assert await bench.completion(ctx) == (5, 0)
        for tile in range(tiles):
            assert box_bytes(bench.data, 0, 2 * tile) == values[tile].tobytes(), tile

    bench.ready = False
    bench.run(host, producer)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loops", "options", "code"),
    [
        ([(0, 0, 8)], {}, TmaError.CHAIN.value),
        ([(0, 2, 8), (0, 3, 1)], {}, TmaError.CHAIN.value),
        ([(5, 2, 8)], {}, TmaError.CHAIN.value),
        ([(0, 2, 8)], {"slots": 5, "barrier": 0}, TmaError.CHAIN.value),
        ([(0, 2, 8)], {"slots": 2, "barrier": 7}, TmaError.CHAIN.value),
        ([(0, 2, 8)], {"operation": TmaOperation.COMMIT}, TmaError.OPERATION.value),
        ([(0, 2, 8)], {"operation": TmaOperation.LOAD_LINEAR}, TmaError.OPERATION.value),
        ([(0, 2, 8)], {"slots": 2, "barrier": 2}, BarrierError.UNINITIALISED.value),
    ],
)
def test_a_bad_chain_is_refused_before_its_first_step(loops, options, code):
    bench = bench_of(table(), readable=[(AT, 0x1080)])

    async def host(ctx):
        await start(bench, ctx, loops, **options)
        assert await bench.completion(ctx) == (5, code)
        assert await bench.read(ctx, "CHAIN_STEPS") == 0
        # The next valid one succeeds.
        bench.memory.readable = [(AT, 0x3000)]
        await start(bench, ctx, [(0, 2, 8)], id=6, slots=2)
        assert await bench.completion(ctx) == (6, 0)
        content = (await bench.content(ctx)).tobytes()
        assert content[: 2 * BOX] == b"".join(box_bytes(bench.data, x, 0) for x in (0, 8))

    bench.run(host)


@pytest.mark.slow
def test_a_step_that_fails_ends_the_chain_with_its_code():
    bench = bench_of(table())

    async def host(ctx):
        # The ring goes beyond the scratchpad at its third slot.
        await start(bench, ctx, [(7, 400, 0)], slots=4, pitch=1024, local=2048)
        assert await bench.completion(ctx) == (5, TmaError.DESTINATION.value)
        assert 3 <= await bench.read(ctx, "CHAIN_STEPS") < 400

    bench.run(host)


@pytest.mark.slow
def test_a_flag_ends_the_wait_of_a_chain():
    bench = bench_of(table())

    async def host(ctx):
        for barrier in range(8):
            await bench.operate(ctx, BarrierOperation.INIT, barrier, arrivals=1)
        await start(bench, ctx, [(1, 9, 2)], slots=2, barrier=FULL)
        for _ in range(300):
            await ctx.tick()
        # More arrivals than pending: the operation is refused and raises the flag.
        await bench.operate(ctx, BarrierOperation.ARRIVE, EMPTY, arrivals=2)
        assert await bench.completion(ctx) == (5, TmaError.FLAG.value)
        assert await bench.read(ctx, "CHAIN_STEPS") == 2

    bench.run(host)


def test_an_abort_ends_a_chain_that_waits_and_one_that_works():
    bench = bench_of(table())

    async def host(ctx):
        for round_number in range(6):
            for barrier in range(8):
                await bench.operate(ctx, BarrierOperation.INIT, barrier, arrivals=1)
            barrier = FULL if round_number % 2 else None
            await start(bench, ctx, [(1, 1000, 0)], slots=2, barrier=barrier, id=round_number)
            for _ in range(11 * round_number):
                await ctx.tick()
            await bench.write(ctx, "CONTROL", abort=1)
            assert await bench.completion(ctx) == (round_number, TmaError.ABORTED.value)
            await bench.until(ctx, "CHAIN_STATUS", "busy", 0)
        await start(bench, ctx, [(1, 3, 2)], slots=3, id=40)
        assert await bench.completion(ctx) == (40, 0)

    bench.run(host)
