import dataclasses
import random

import numpy as np
import pytest

from hw.arch.error_codes import TmaError
from hw.lib.axi import RESP_DECERR, RESP_SLVERR
from hw.tma.layouts import TmaLayouts
from hw.tma.store import StoreEngine
from tests.hw.tma.box_bench import DESCRIPTORS, LONG, BoxBench
from tests.hw.tma.memory import AxiMemory
from tests.hw.tma.model import as_vectors, box_store, random_bytes, random_case
from tests.slow_cases import quick_first

#: Bytes before and behind the region of the tensors, which must keep their values.
GUARD = 4096


@dataclasses.dataclass
class Result:
    """What a run of commands did."""

    stored: list  # cycles of the pulses of each stream
    error: TmaError
    memory: AxiMemory


def run(data, commands, *, width_bits=64, seed=0, stall=0.0, outstanding=16, served=None, **memory):
    """Store boxes: commands are (packed descriptor, coordinates, stream, the box's bytes)."""
    rng = random.Random(seed)
    layouts = TmaLayouts(width_bits, 32, streams=2)
    bench = BoxBench(StoreEngine, layouts, data, rng, outstanding=outstanding, **memory)
    engine, model = bench.engine, bench.memory
    result = Result([[], []], TmaError.NONE, model)
    served = len(commands) if served is None else served

    async def command(ctx):
        for number, (packed, coordinates, owner, _) in enumerate(commands):
            index = number % DESCRIPTORS
            await bench.describe(ctx, index, packed)
            await bench.command(ctx, index, coordinates, owner)
        limit = model.cycle + 200_000
        while sum(map(len, result.stored)) < served:
            assert model.cycle < limit, f"{result.stored} stored of {served}"
            await ctx.tick()
        await ctx.tick().repeat(20)
        assert ctx.get(engine.o_idle) and model.quiet
        result.error = TmaError(ctx.get(engine.o_error))

    def putter(number):
        port = engine.i_streams[number]

        async def put(ctx):
            for _, _, owner, box in commands:
                for word, last in as_vectors(box, width_bits) if owner == number else ():
                    while rng.random() < stall:
                        await ctx.tick()
                    ctx.set(port.payload, {"data": word, "last": last, "final": 0})
                    ctx.set(port.valid, 1)
                    # A failing test leaves this bench where it waits: so no `until`, which would
                    # then complain.
                    while not (await ctx.tick().sample(port.ready))[-1]:
                        pass
                    ctx.set(port.valid, 0)

        return put

    async def watch(ctx):
        async for _, _, stored in ctx.tick().sample(engine.o_stored):
            for number in range(2):
                if stored >> number & 1:
                    result.stored[number].append(model.cycle)

    bench.run(command, watch, *map(putter, range(2)))
    return result


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("width_bits", "conditions"),
    [
        (64, {"latency": 1}),
        (64, {"latency": 20, "jitter": 30, "stall": 0.4, "outstanding": 4}),
        (128, {"latency": 7, "jitter": 3, "stall": 0.2, "outstanding": 2}),
        (256, {"latency": 9, "jitter": 5, "stall": 0.1}),
    ],
    ids=["quick", "slow", "wide", "widest"],
)
def test_any_box_of_any_tensor_equals_numpy(width_bits, conditions, seed):
    rng = random.Random(seed)
    region = (0xE80 + GUARD, 0x2FC0 + GUARD)
    data = random_bytes(seed, region[1] + GUARD)
    expected = data.copy()
    cases = [random_case(rng, width_bits=width_bits, region=region) for _ in range(80)]
    commands = []
    for number, (descriptor, coordinates) in enumerate(cases):
        box = random_bytes(seed + number, descriptor.box_bytes)
        commands.append((descriptor.pack(), coordinates, rng.randrange(2), box))
        box_store(expected, descriptor, coordinates, box)
    result = run(data, commands, width_bits=width_bits, seed=seed, writable=[region], **conditions)
    assert result.error is TmaError.NONE
    assert [len(pulses) for pulses in result.stored] == [
        sum(owner == number for _, _, owner, _ in commands) for number in range(2)
    ]
    assert np.array_equal(data, expected)
    assert 1 < result.memory.most_unanswered <= conditions.get("outstanding", 16)


@pytest.mark.parametrize("latency", quick_first([100, 1]))
def test_a_long_box_moves_one_beat_a_cycle_without_a_bubble_between_bursts(latency):
    data = random_bytes(1, 0x5000)
    box = random_bytes(2, LONG.box_bytes)
    result = run(
        data,
        [(LONG.pack(), (0, 0), 0, box)] * 2,
        latency=latency,
        writable=[(0x1000, 0x3000)],
    )
    beats = result.memory.write_beats
    assert len(beats) == 2 * 1024
    assert beats[-1] - beats[0] == 2 * 1024 - 1
    assert np.array_equal(data[0x1000:0x3000], box)


def test_a_misaligned_box_moves_one_beat_a_cycle():
    data = random_bytes(1, 0x5000)
    expected = data.copy()
    skewed = dataclasses.replace(LONG, dims=(999, 8), strides=(1008,), box=(128, 8))
    box = random_bytes(2, skewed.box_bytes)
    box_store(expected, skewed, (1, 0), box)
    result = run(data, [(skewed.pack(), (1, 0), 0, box)], latency=100, writable=[(0x1000, 0x4000)])
    beats = result.memory.write_beats
    assert len(beats) == 8 * 65
    assert beats[-1] - beats[0] == 8 * 65 - 1
    assert np.array_equal(data, expected)


def test_a_box_is_stored_only_after_its_last_response():
    data = random_bytes(1, 0x5000)
    box = random_bytes(2, LONG.box_bytes)
    result = run(
        data, [(LONG.pack(), (0, 0), 1, box)] * 3, latency=250, writable=[(0x1000, 0x3000)]
    )
    beats = result.memory.write_beats
    for number, pulse in enumerate(result.stored[1]):
        assert pulse - beats[1024 * (number + 1) - 1] >= 250
    assert result.stored[0] == []


@pytest.mark.parametrize(
    ("response", "code"),
    quick_first([(RESP_DECERR, TmaError.WRITE_DECERR), (RESP_SLVERR, TmaError.WRITE_SLVERR)]),
)
def test_an_error_response_is_kept_and_everything_ends(response, code):
    data = random_bytes(4, 0x5000)
    other = RESP_SLVERR + RESP_DECERR - response
    box = random_bytes(2, LONG.box_bytes)
    result = run(
        data,
        [(LONG.pack(), (0, 0), 1, box)] * 2,
        writable=[(0x1000, 0x3000)],
        errors={("write", 3): response, ("write", 9): other},
    )
    assert result.error is code
    assert len(result.stored[1]) == 2


def test_a_refused_descriptor_touches_nothing():
    data = random_bytes(5, 0x5000)
    expected = data.copy()
    bad = bytearray(LONG.pack())
    bad[14] = 2
    small = dataclasses.replace(LONG, box=(4, 2))
    box = random_bytes(2, small.box_bytes)
    box_store(expected, small, (3, 4), box)
    result = run(
        data,
        [(bytes(bad), (0, 0), 0, box[:0]), (small.pack(), (3, 4), 0, box)],
        served=1,
        writable=[(0x1000, 0x3000)],
    )
    assert result.error is TmaError.REDUCE
    assert np.array_equal(data, expected)


def test_a_box_wholly_outside_is_dropped_and_reported():
    data = random_bytes(6, 0x5000)
    before = data.copy()
    box = random_bytes(2, LONG.box_bytes)
    commands = [(LONG.pack(), at, 0, box) for at in ((-256, 0), (256, 0), (0, -8), (0, 8))]
    result = run(data, commands, writable=[])
    assert len(result.stored[0]) == 4
    assert result.memory.write_bursts == []
    assert np.array_equal(data, before)


def test_no_address_is_sent_before_its_data_are_here():
    data = random_bytes(7, 0x5000)
    layouts = TmaLayouts(64, 32, streams=2)
    bench = BoxBench(StoreEngine, layouts, data, random.Random(1), writable=[(0, 0x5000)])
    engine, model = bench.engine, bench.memory

    async def starve(ctx):
        await bench.describe(ctx, 0, LONG.pack())
        await bench.command(ctx, 0, (0, 0), 0)
        await ctx.tick().repeat(100)
        assert model.write_bursts == []
        ctx.set(engine.i_streams[0].valid, 1)
        await ctx.tick()
        ctx.set(engine.i_streams[0].valid, 0)
        await ctx.tick().repeat(10)
        assert len(model.write_bursts) == 1
        assert not ctx.get(engine.o_idle)
        # A drain ends the burst that has begun, and changes no byte of its rest.
        rest = model.data[0x1008:].copy()
        ctx.set(engine.i_drain, 1)
        await ctx.tick().repeat(160)
        assert ctx.get(engine.o_idle) and model.quiet
        assert len(model.write_beats) == 128 and len(model.write_bursts) == 1
        assert np.array_equal(model.data[0x1008:], rest)

    bench.run(starve)
