"""A TMA unit driven by its registers alone."""

import dataclasses
import random

import numpy as np
import pytest

from hw.arch.boxes.reductions import ReductionOperation
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.error_codes import BarrierError, TmaError
from hw.arch.registers.register_fields import RegisterAccess, register_table
from hw.arch.registers.tma_registers import (
    TMA_ADDRESS_BITS,
    TMA_ID,
    TMA_MAP_VERSION,
    TMA_REGISTERS,
    tma_register,
)
from hw.tma.barriers.barrier_layouts import BarrierOperation
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.lib.register_host import read_word, write_word
from tests.hw.tma.model import box_load, random_bytes
from tests.hw.tma.standalone.top_bench import OKAY, SLVERR, TopBench
from tests.slow_cases import quick_first

_LOAD, _STORE = TmaOperation.LOAD, TmaOperation.STORE
_IN = Descriptor(base=0x2000, format=ElementFormat.FP32, dims=(16, 32), strides=(64,), box=(16, 4))
_OUT = dataclasses.replace(_IN, base=0x3000)
_AT_IN, _AT_OUT = 0x1000, 0x1080
#: Registers that refuse a value of more bits.
_COUNTED = (
    *("BARRIER_ARRIVALS", "BARRIER_BYTES", "OFFSETS", "REDUCTION"),
    *("CHAIN_RING", "CHAIN_PITCH", "CHAIN_BYTES"),
)
#: Bytes of a box.
_BOX = 256


def _bench(**options):
    options = {"readable": [(0x1000, 0x3000)], "writable": [(0x3000, 0x4000)]} | options
    bench = TopBench(random_bytes(5, 0x4000), **options)
    bench.describe(_AT_IN, _IN)
    bench.describe(_AT_OUT, _OUT)
    return bench


def test_the_map_of_the_tma_has_no_overlap():
    offsets = [each.offset for each in TMA_REGISTERS]
    assert offsets == sorted(set(offsets)) and all(offset % 4 == 0 for offset in offsets)
    assert offsets[-1] < 1 << TMA_ADDRESS_BITS
    for each in TMA_REGISTERS:
        assert each.mask < 1 << 32
        assert each.mask.bit_count() == sum(field.bits for field in each.fields)
    assert "| `SUBMIT` | 3:0 | `operation` | WO |" in register_table(TMA_REGISTERS)


def test_every_register_after_reset_and_after_ones():
    bench = _bench()
    first = {
        "ID": TMA_ID,
        "VERSION": TMA_MAP_VERSION,
        "GEOMETRY": 8 | 4 << 8 | 8 << 16,
        "SCRATCHPAD": 4096,
        "STATUS": 1,
        "DESTINATIONS": 1 << 24 | 1,
    }
    # Operations, of which ones are no legal value, have tests of their own.
    skipped = ("CONTROL", "SUBMIT", "BARRIER_OPERATION", "WAIT", "CHAIN_LOOP")

    async def host(ctx):
        for each in TMA_REGISTERS:
            assert await bench.read(ctx, each.name) == first.get(each.name, 0), each.name
        for each in TMA_REGISTERS:
            if each.name in skipped:
                continue
            # There is one scratchpad to choose.
            reads_only = not each.writable or each.name == "DESTINATIONS"
            kept = not reads_only and all(
                field.access is RegisterAccess.READ_WRITE for field in each.fields
            )
            counted = each.name in _COUNTED
            response = await bench.write(ctx, each.name, each.mask if counted else 0xFFFF_FFFF)
            assert response == (SLVERR if reads_only else OKAY), each.name
            value = each.mask if kept else first.get(each.name, 0)
            assert await bench.read(ctx, each.name) == value, each.name
            if counted:
                assert await bench.write(ctx, each.name, each.mask + 1) == SLVERR
                assert await bench.read(ctx, each.name) == each.mask
        port = bench.top.host
        beyond = TMA_REGISTERS[-1].offset + 4
        assert await read_word(ctx, port, beyond) == (0, SLVERR)
        assert await write_word(ctx, port, beyond, 0) == SLVERR
        local = tma_register("LOCAL").offset
        assert await write_word(ctx, port, local, 0, strobes=7) == SLVERR
        assert await bench.read(ctx, "LOCAL") == 0xFFFF_FFFF
        # The low two bits of an address are ignored.
        assert await write_word(ctx, port, local + 3, 64) == OKAY
        assert await read_word(ctx, port, local + 1) == (64, OKAY)
        assert await bench.write(ctx, "CHAIN_LOOP", loop=4, count=1) == OKAY
        assert await bench.write(ctx, "CHAIN_LOOP", loop=5, count=1) == SLVERR

    bench.run(host)


def test_four_loads_in_flight_and_their_completions_by_interrupt():
    bench = _bench(latency=60)

    async def host(ctx):
        await bench.operate(ctx, BarrierOperation.INIT, 3, arrivals=1)
        answer = await bench.operate(ctx, BarrierOperation.ARRIVE_EXPECT, 3, arrivals=1, bytes=1024)
        assert answer["error"] == BarrierError.NONE.value and answer["phase"] == 0
        await bench.write(ctx, "INTERRUPT_ENABLE", done=1, error=1)
        await bench.write(ctx, "WAIT_CYCLES", 10_000)
        await bench.write(ctx, "WAIT", parity=0, barrier=3)
        for tile in range(4):
            fields = {"id": 100 + tile, "local": _BOX * tile, "barrier": 3}
            assert await bench.submit(ctx, _LOAD, _AT_IN, (0, 4 * tile), **fields) == OKAY
        assert not (await bench.fields(ctx, "STATUS"))["idle"]
        while not ctx.get(bench.top.o_interrupt):
            await ctx.tick()
        ends = [await bench.completion(ctx) for _ in range(4)]
        assert ends == [(100 + tile, 0) for tile in range(4)]
        assert await bench.fields(ctx, "INTERRUPT_STATUS") == {"done": 1, "error": 0, "wait": 1}
        result = await bench.fields(ctx, "WAIT_RESULT")
        assert result == {"passed": 1, "flag": 0, "timed_out": 0, "valid": 1, "error": 0}
        await bench.write(ctx, "INTERRUPT_STATUS", done=1, wait=1)
        assert not ctx.get(bench.top.o_interrupt)
        for tile in range(4):
            fields = {"id": tile, "local": _BOX * tile}
            assert await bench.submit(ctx, _STORE, _AT_OUT, (0, 4 * (3 - tile)), **fields) == OKAY
        await bench.submit(ctx, TmaOperation.COMMIT, id=9)
        assert [await bench.completion(ctx) for _ in range(5)] == [
            *((tile, 0) for tile in range(4)),
            (9, 0),
        ]
        assert await bench.fields(ctx, "GROUPS") == {"read": 1, "stored": 1}
        assert (await bench.fields(ctx, "STATUS"))["idle"]
        assert await bench.fields(ctx, "COMPLETION") == {"id": 0, "code": 0, "valid": 0}

    bench.run(host)
    tiles = bench.data[0x2000:0x2400].reshape(4, _BOX)
    assert np.array_equal(bench.data[0x3000:0x3400].reshape(4, _BOX), tiles[::-1])


def test_the_counters_are_those_of_the_port():
    bench = _bench(latency=7, stall=0.3)

    async def counts(ctx, name):
        low = await bench.read(ctx, f"{name}_LO")
        return low | await bench.read(ctx, f"{name}_HI") << 32

    async def host(ctx):
        for id in range(3):
            await bench.submit(ctx, _LOAD, _AT_IN, (0, 4 * id), id=id)
            await bench.submit(ctx, _STORE, _AT_OUT, (0, 4 * id), id=id)
        for _ in range(6):
            await bench.completion(ctx)
        for side in ("read", "write"):
            bursts = getattr(bench.memory, f"{side}_bursts")
            assert await counts(ctx, f"{side.upper()}_BURSTS") == len(bursts) > 0
            moved = "READ" if side == "read" else "WRITTEN"
            beats = sum(length for _, length in bursts)
            assert await counts(ctx, f"{moved}_BYTES") == 8 * beats
            assert await counts(ctx, f"{side.upper()}_STALLS") > 0
        await bench.write(ctx, "CONTROL", clear=1)
        for name in ("READ_BYTES", "WRITTEN_BYTES", "READ_BURSTS", "WRITE_STALLS"):
            assert await counts(ctx, name) == 0

    bench.run(host)


@pytest.mark.slow
def test_a_reduction_by_registers():
    bench = _bench(reduces=True, readable=[(0x1000, 0x4000)])
    expected = bench.data.copy()
    source, target = (expected[at : at + _BOX].view("<u4") for at in (_IN.base, _OUT.base))
    target[:] = (target ^ source) + source
    integers = dataclasses.replace(_OUT, format=ElementFormat.INT32)

    async def host(ctx):
        ctx.set(bench.top.interlock.granted, 1)
        bench.describe(_AT_OUT, integers)
        await bench.submit(ctx, _LOAD, _AT_IN, id=0)
        assert await bench.completion(ctx) == (0, 0)
        for name in ("XOR", "ADD"):
            operation = ReductionOperation[name].value
            await bench.write(ctx, "REDUCTION", operation)
            await bench.submit(ctx, TmaOperation.REDUCE, _AT_OUT, id=operation)
            assert await bench.completion(ctx) == (operation, 0)
        await bench.write(ctx, "REDUCTION", 7)
        await bench.submit(ctx, TmaOperation.REDUCE, _AT_OUT, id=7)
        assert await bench.completion(ctx) == (7, TmaError.REDUCE.value)

    bench.run(host)
    expected[_AT_OUT : _AT_OUT + 128] = np.frombuffer(integers.pack(), np.uint8)
    assert np.array_equal(bench.data, expected)


@pytest.mark.slow
def test_a_full_queue_refuses_a_command_and_loses_none():
    bench = _bench(latency=300)

    async def host(ctx):
        responses = [await bench.submit(ctx, _LOAD, _AT_IN, id=id, local=_BOX) for id in range(10)]
        assert responses == [OKAY] * 8 + [SLVERR] * 2
        assert (await bench.fields(ctx, "STATUS"))["full"]
        await bench.until(ctx, "STATUS", "idle")
        # Completed, but not read by the host: still full.
        assert (await bench.fields(ctx, "STATUS"))["full"]
        assert await bench.submit(ctx, _LOAD, _AT_IN, id=20, local=_BOX) == SLVERR
        assert await bench.completion(ctx) == (0, 0)
        assert await bench.submit(ctx, _LOAD, _AT_IN, id=21, local=_BOX) == OKAY
        ended = [await bench.completion(ctx) for _ in range(8)]
        assert ended == [(id, 0) for id in (*range(1, 8), 21)]

    bench.run(host)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"descriptor": _AT_IN | 1 << 32}, TmaError.POINTER),
        ({"descriptor": _AT_IN | 1 << 63}, TmaError.POINTER),
        ({"descriptor": _AT_IN + 8}, TmaError.POINTER),
        ({"local": 1 << 20}, TmaError.DESTINATION),
        ({"local": 1 << 31}, TmaError.DESTINATION),
        ({"operation": 9}, TmaError.OPERATION),
        ({"barrier": 200}, BarrierError.INDEX),
    ],
)
def test_a_bad_command_ends_with_its_code_and_the_error_interrupt(fields, code):
    bench = _bench()
    whole = {"operation": _LOAD, "descriptor": _AT_IN, "local": 0} | fields

    async def host(ctx):
        await bench.write(ctx, "INTERRUPT_ENABLE", error=1)
        assert await bench.submit(ctx, **whole, id=0xABCD) == OKAY
        while not ctx.get(bench.top.o_interrupt):
            await ctx.tick()
        assert await bench.completion(ctx) == (0xABCD, code.value)
        bursts = len(bench.memory.read_bursts)
        assert bursts == 0 if isinstance(code, TmaError) and "local" not in fields else True
        await bench.write(ctx, "INTERRUPT_STATUS", error=1)
        assert not ctx.get(bench.top.o_interrupt)
        assert await bench.submit(ctx, _LOAD, _AT_IN, (0, 8), id=1) == OKAY
        assert await bench.completion(ctx) == (1, 0)
        found = await bench.content(ctx)
        assert np.array_equal(found[:_BOX], box_load(bench.data, _IN, (0, 8)))

    bench.run(host)


def test_a_wait_by_registers_times_out_and_a_second_one_is_refused():
    bench = _bench()

    async def host(ctx):
        await bench.operate(ctx, BarrierOperation.INIT, 1, arrivals=2)
        await bench.write(ctx, "INTERRUPT_ENABLE", wait=1)
        await bench.write(ctx, "WAIT_CYCLES", 200)
        assert await bench.write(ctx, "WAIT", parity=0, barrier=1) == OKAY
        assert await bench.write(ctx, "WAIT", parity=1, barrier=1) == SLVERR
        assert not (await bench.fields(ctx, "WAIT_RESULT"))["valid"]
        while not ctx.get(bench.top.o_interrupt):
            await ctx.tick()
        result = await bench.fields(ctx, "WAIT_RESULT")
        assert result == {"passed": 0, "flag": 0, "timed_out": 1, "valid": 1, "error": 0}
        answer = await bench.operate(ctx, BarrierOperation.ARRIVE, 1, arrivals=1)
        assert answer == {"phase": 0, "flag": 0, "valid": 1, "error": 0}
        assert await bench.read(ctx, "BARRIER_PENDING") == 2
        answer = await bench.operate(ctx, BarrierOperation.ARRIVE, 1, arrivals=7)
        assert answer["error"] == BarrierError.ARRIVALS.value
        await bench.operate(ctx, BarrierOperation.EXPECT, 5, bytes=9)
        answer = await bench.fields(ctx, "BARRIER_ANSWER")
        assert answer["error"] == BarrierError.UNINITIALISED.value

    bench.run(host)


@pytest.mark.parametrize("moment", quick_first([60, 330, 1, 200, 400, 700]))
def test_an_abort_completes_every_command_once_and_the_next_succeed(moment, seed):
    rng = random.Random(seed + moment)
    bench = _bench(seed=seed, latency=rng.randrange(80))
    ends = {}
    given = []

    async def host(ctx):
        clock = 0
        while clock < 5:
            operation, pointer = rng.choice([(_LOAD, _AT_IN), (_STORE, _AT_OUT)])
            if await bench.submit(ctx, operation, pointer, (0, 4), id=len(given)) == OKAY:
                given.append(operation)
            clock += 1
        await ctx.tick().repeat(moment)
        await bench.write(ctx, "INTERRUPT_ENABLE", error=1)
        await bench.write(ctx, "CONTROL", abort=1)
        assert await bench.submit(ctx, _LOAD, _AT_IN, id=77) in (OKAY, SLVERR)
        await bench.until(ctx, "STATUS", "aborting", 0)
        while not (await bench.fields(ctx, "STATUS"))["idle"]:
            pass
        while (await bench.fields(ctx, "STATUS"))["completions"]:
            id, code = await bench.completion(ctx)
            assert id not in ends
            ends[id] = code
        ends.pop(77, None)
        assert sorted(ends) == list(range(len(given)))
        assert set(ends.values()) <= {0, TmaError.ABORTED.value}
        if TmaError.ABORTED.value in ends.values():
            assert ctx.get(bench.top.o_interrupt)
        assert await bench.submit(ctx, _LOAD, _AT_IN, (0, 8), id=1) == OKAY
        assert await bench.completion(ctx) == (1, 0)
        found = await bench.content(ctx)
        assert np.array_equal(found[:_BOX], box_load(bench.data, _IN, (0, 8)))

    bench.run(host)
    if moment == 1:
        assert TmaError.ABORTED.value in ends.values()


def test_commands_complete_once_each_under_their_identifiers(seed, draws):
    rng = random.Random(seed)
    bench = _bench(seed=seed, latency=11, stall=0.2)
    ends, count = [], draws(25, 60)

    async def host(ctx):
        given = {}
        while len(ends) < count:
            if len(given) < count and rng.random() < 0.6:
                id = rng.randrange(1 << 16)
                kind = rng.choice([_LOAD, _STORE, TmaOperation.PREFETCH, 15])
                pointer = _AT_OUT if kind is _STORE else _AT_IN
                if id not in given and await bench.submit(ctx, kind, pointer, id=id) == OKAY:
                    given[id] = TmaError.OPERATION.value if kind == 15 else 0
            else:
                found = await bench.fields(ctx, "COMPLETION")
                if found["valid"]:
                    ends.append((found["id"], found["code"]))
        assert sorted(ends) == sorted(given.items())

    bench.run(host)
