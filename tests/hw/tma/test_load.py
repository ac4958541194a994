import dataclasses
import random

import numpy as np
import pytest

from hw.arch.error_codes import TmaError
from hw.lib.axi import RESP_DECERR, RESP_SLVERR
from hw.tma.layouts import TmaLayouts
from hw.tma.load import LoadEngine
from tests.hw.tma.box_bench import DESCRIPTORS, LONG, BoxBench
from tests.hw.tma.memory import AxiMemory
from tests.hw.tma.model import as_vectors, box_load, random_bytes, random_case
from tests.slow_cases import quick_first


@dataclasses.dataclass
class Result:
    """What a run of commands gave."""

    vectors: list  # a stream's (data, last)
    error: TmaError
    memory: AxiMemory
    cycles: int  # first command to last vector


def run(
    data,
    commands,
    *,
    width_bits=64,
    seed=0,
    stall=0.0,
    landing_beats=64,
    outstanding=16,
    fast_write=False,
    **memory,
):
    """Load boxes: commands are (packed descriptor, coordinates, stream)."""
    rng = random.Random(seed)
    layouts = TmaLayouts(width_bits, 32, streams=2)
    sizes = {"landing_beats": landing_beats}
    bench = BoxBench(LoadEngine, layouts, data, rng, outstanding=outstanding, sizes=sizes, **memory)
    engine, model = bench.engine, bench.memory
    result = Result([[], []], TmaError.NONE, model, 0)
    times = {}

    async def command(ctx):
        for number, (packed, coordinates, owner) in enumerate(commands):
            index = 0 if fast_write else number % DESCRIPTORS
            if not fast_write or number == 0:
                await bench.describe(ctx, index, packed)
            times.setdefault("start", model.cycle)
            await bench.command(ctx, index, coordinates, owner)
        idle = 0
        while idle < 40 + 2 * model.latency + model.jitter or not model.quiet:
            shown = any(ctx.get(port.valid) for port in engine.o_streams)
            idle = 0 if shown else idle + 1
            await ctx.tick()
        assert ctx.get(engine.o_idle)
        result.error = TmaError(ctx.get(engine.o_error))

    def taker(number):
        port = engine.o_streams[number]

        async def take(ctx):
            while True:
                ready = stall == 0.0 or rng.random() >= stall
                ctx.set(port.ready, ready)
                moves, payload = (await ctx.tick().sample(port.valid, port.payload))[2:]
                if moves and ready:
                    assert not payload.final
                    result.vectors[number].append((int(payload.data), int(payload.last)))
                    times["end"] = model.cycle

        return take

    bench.run(command, *map(taker, range(2)))
    assert model.refused_read_data == 0, "R had to wait: landing room was not reserved"
    result.cycles = times.get("end", 0) - times.get("start", 0)
    return result


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("width_bits", "conditions"),
    [
        (64, {"latency": 1}),
        (64, {"latency": 20, "jitter": 30, "stall": 0.4, "landing": 16, "outstanding": 4}),
        (128, {"latency": 7, "jitter": 3, "stall": 0.2, "landing": 32, "outstanding": 2}),
        (256, {"latency": 9, "jitter": 5, "stall": 0.1, "landing": 16}),
    ],
    ids=["quick", "slow-small", "wide", "widest"],
)
def test_any_box_of_any_tensor_equals_numpy(width_bits, conditions, seed, draws):
    rng = random.Random(seed)
    data = random_bytes(seed, 0x4000)
    # Whole beats are read, so a region ends with the beat of its last byte.
    region = (0xE80, 0x2FC0)
    cases = [random_case(rng, width_bits=width_bits, region=region) for _ in range(draws(30, 80))]
    owners = [rng.randrange(2) for _ in cases]
    result = run(
        data,
        [(d.pack(), c, owner) for (d, c), owner in zip(cases, owners)],
        width_bits=width_bits,
        seed=seed,
        stall=conditions.get("stall", 0.0),
        landing_beats=conditions.get("landing", 64),
        outstanding=conditions.get("outstanding", 16),
        latency=conditions["latency"],
        jitter=conditions.get("jitter", 0),
        readable=[region],
    )
    assert result.error is TmaError.NONE
    for owner in range(2):
        expected = [
            vector
            for (descriptor, coordinates), mine in zip(cases, owners)
            if mine == owner
            for vector in as_vectors(box_load(data, descriptor, coordinates), width_bits)
        ]
        assert result.vectors[owner] == expected
    assert result.memory.most_outstanding <= conditions.get("outstanding", 16)


def test_a_long_box_moves_one_beat_a_cycle_at_latency_100():
    data = random_bytes(1, 0x5000)
    result = run(
        data,
        [(LONG.pack(), (0, 0), 0)] * 2,
        fast_write=True,
        landing_beats=256,
        latency=100,
        readable=[(0x1000, 0x3000)],
    )
    beats = result.memory.read_beats
    assert len(beats) == 2 * 1024
    assert beats[-1] - beats[0] == 2 * 1024 - 1
    assert result.cycles <= 2 * 1024 + 100 + 12


def test_a_misaligned_box_moves_one_beat_a_cycle():
    data = random_bytes(2, 0x5000)
    skewed = dataclasses.replace(LONG, dims=(999, 8), strides=(1008,), box=(128, 8))
    result = run(
        data,
        [(skewed.pack(), (1, 0), 0)],
        landing_beats=256,
        latency=100,
        readable=[(0x1000, 0x4000)],
    )
    beats = result.memory.read_beats
    assert len(beats) == 8 * 65
    assert beats[-1] - beats[0] == 8 * 65 - 1
    assert result.vectors[0] == as_vectors(box_load(data, skewed, (1, 0)), 64)


@pytest.mark.parametrize(("landing", "latency"), quick_first([(64, 100), (16, 100), (64, 200)]))
def test_a_small_landing_buffer_limits_the_rate_to_its_beats_a_round_trip(landing, latency):
    data = random_bytes(3, 0x5000)
    result = run(
        data,
        [(LONG.pack(), (0, 0), 0)],
        landing_beats=landing,
        latency=latency,
        readable=[(0x1000, 0x3000)],
    )
    beats = result.memory.read_beats
    rate = (len(beats) - 1) / (beats[-1] - beats[0])
    assert landing / (latency + landing / 4 + 8) <= rate <= landing / latency


@pytest.mark.parametrize(
    ("response", "code"),
    quick_first([(RESP_SLVERR, TmaError.READ_SLVERR), (RESP_DECERR, TmaError.READ_DECERR)]),
)
def test_an_error_response_zeroes_its_beat_and_is_kept(response, code):
    data = random_bytes(4, 0x5000)
    other = RESP_SLVERR + RESP_DECERR - response
    result = run(
        data,
        [(LONG.pack(), (0, 0), 1)] * 2,
        latency=3,
        readable=[(0x1000, 0x3000)],
        errors={("read", 7): response, ("read", 1030): other},
    )
    expected = as_vectors(box_load(data, LONG, (0, 0)), 64) * 2
    expected[7] = (0, 0)
    expected[1030] = (0, 0)
    assert result.vectors[1] == expected
    assert result.error is code


def test_a_refused_descriptor_touches_nothing_and_sends_nothing():
    data = random_bytes(5, 0x5000)
    bad = bytearray(LONG.pack())
    bad[11] = 1
    small = dataclasses.replace(LONG, box=(4, 2))
    result = run(
        data,
        [(bytes(bad), (0, 0), 0), (small.pack(), (0, 0), 0), (bytes(128), (0, 0), 1)],
        readable=[(0x1000, 0x3000)],
    )
    assert result.error is TmaError.SWIZZLE
    assert len(result.vectors[0]) == 4 and result.vectors[1] == []
    assert sum(length for _, length in result.memory.read_bursts) == 4


def test_a_box_wholly_outside_is_zeros_without_an_access():
    data = random_bytes(6, 0x5000)
    commands = [(LONG.pack(), at, 0) for at in ((-256, 0), (256, 0), (0, -8), (0, 8))]
    result = run(data, commands, readable=[])
    zeros = as_vectors(np.zeros(LONG.box_bytes, np.uint8), 64)
    assert result.vectors[0] == zeros * 4
    assert result.memory.read_bursts == []
