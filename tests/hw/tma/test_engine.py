# amaranth: UnusedElaboratable=no
import dataclasses
import random

import numpy as np
import pytest
from amaranth.hdl import ResetInserter, Signal
from amaranth.sim import Simulator

from hw.axi import RESP_DECERR
from hw.tma.descriptor import Descriptor, ElementFormat, ErrorCode
from hw.tma.engine import TmaEngine
from tests.hw.tma.memory import AxiMemory
from tests.hw.tma.model import (
    as_vectors,
    box_load,
    box_store,
    packed_command,
    random_bytes,
    random_case,
    write_descriptor,
)

DESCRIPTORS = 8


class Bench:
    """An engine, its memory and what came out; actors are added by the tests."""

    def __init__(self, data, *, seed=0, width_bits=64, landing_beats=64, outstanding=16, **memory):
        self.engine = TmaEngine(
            width_bits=width_bits,
            address_bits=32,
            landing_beats=landing_beats,
            outstanding=outstanding,
            descriptors=DESCRIPTORS,
        )
        self.width_bits = width_bits
        self.reset = Signal()
        self.rng = random.Random(seed)
        self.memory = AxiMemory(self.engine.axi, data, self.rng, **memory)
        self.loaded = [[], []]
        self.loaded_when = [[], []]
        self.stored = [0, 0]
        self.stall = 0.0
        self.simulator = Simulator(ResetInserter(self.reset)(self.engine))
        self.simulator.add_clock(1e-6)
        self.simulator.add_testbench(self.memory.run, background=True)
        self.simulator.add_testbench(self._watch_stored, background=True)
        for number in range(2):
            self.simulator.add_testbench(self._taker(number), background=True)

    def run(self, *actors):
        for actor in actors:
            self.simulator.add_testbench(actor)
        self.simulator.run()
        assert self.memory.refused_read_data == 0

    async def _watch_stored(self, ctx):
        async for _, _, stored in ctx.tick().sample(self.engine.o_stored):
            for number in range(2):
                self.stored[number] += stored >> number & 1

    def _taker(self, number):
        port = self.engine.o_loaded[number]

        async def take(ctx):
            while True:
                ready = self.stall == 0.0 or self.rng.random() >= self.stall
                ctx.set(port.ready, ready)
                moves, payload = (await ctx.tick().sample(port.valid, port.payload))[2:]
                if moves and ready:
                    self.loaded[number].append((int(payload.data), int(payload.last)))
                    self.loaded_when[number].append(self.memory.cycle)

        return take

    async def describe(self, ctx, index, descriptor):
        await write_descriptor(ctx, self.engine.i_descriptor_write, index, descriptor.pack())

    async def command(self, ctx, port, index, coordinates):
        ctx.set(port.payload, packed_command(index, coordinates))
        ctx.set(port.valid, 1)
        await ctx.tick().until(port.ready)
        ctx.set(port.valid, 0)

    async def put(self, ctx, number, box):
        port = self.engine.i_vectors[number]
        for word, last in as_vectors(box, self.width_bits):
            while self.rng.random() < self.stall:
                await ctx.tick()
            ctx.set(port.payload, {"data": word, "last": last, "final": 0})
            ctx.set(port.valid, 1)
            await ctx.tick().until(port.ready)
            ctx.set(port.valid, 0)

    async def wait(self, ctx, done, limit=100_000):
        for _ in range(limit):
            if done():
                return
            await ctx.tick()
        raise AssertionError(f"hang: loaded {list(map(len, self.loaded))}, stored {self.stored}")


@pytest.mark.parametrize(
    "conditions",
    [{"latency": 2}, {"latency": 15, "jitter": 20, "stall": 0.3, "landing_beats": 16}],
    ids=["quick", "slow"],
)
def test_four_streams_move_their_boxes_at_once(conditions, seed):
    rng = random.Random(seed)
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
            kinds = [random_case(rng, width_bits=64, region=region) for _ in range(2)]
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
            for vector in as_vectors(box_load(data, descriptor, at), 64)
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
        assert ctx.get(bench.engine.o_error) == ErrorCode.NONE.value

    actors = [commander(side, number) for side in ("load", "store") for number in range(2)]
    bench.run(describe, *actors, putter(0), putter(1), finish)
    assert bench.loaded == vectors
    assert np.array_equal(data, expected)


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


def test_a_drain_takes_every_response_and_the_next_run_works(seed):
    rng = random.Random(seed)
    target = dataclasses.replace(SHORT, base=0x4000)
    for _ in range(4):
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
            assert ctx.get(bench.engine.o_error) == ErrorCode.NONE.value
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
        assert ctx.get(bench.engine.o_error) == ErrorCode.WRITE_DECERR.value
        await bench.command(ctx, bench.engine.i_load_commands[0], 0, (0, 0))
        await bench.wait(ctx, lambda: len(bench.loaded[0]) == 256)
        assert ctx.get(bench.engine.o_error) == ErrorCode.WRITE_DECERR.value

    bench.run(work)


def chunk(box_bytes):
    """A descriptor whose boxes of so many bytes follow each other, and their coordinates."""
    if box_bytes <= 1024:
        return Descriptor(
            base=0x10000,
            format=ElementFormat.FP32,
            dims=(box_bytes // 4 * 64,),
            box=(box_bytes // 4,),
        ), [(box_bytes // 4 * number,) for number in range(64)]
    rows = box_bytes // 1024
    return Descriptor(
        base=0x10000,
        format=ElementFormat.FP32,
        dims=(256, rows * 16),
        strides=(1024,),
        box=(256, rows),
    ), [(0, rows * number) for number in range(16)]


def cycles_of(side, box_bytes, latency, **engine):
    """Cycles from the first command to the last box, and from the first beat to the last."""
    descriptor, places = chunk(box_bytes)
    region = (0x10000, 0x20000)
    data = random_bytes(1, 0x20000)
    bench = Bench(data, latency=latency, readable=[region], writable=[region], **engine)
    figures = {}
    engine = bench.engine
    port = (engine.i_load_commands if side == "load" else engine.i_store_commands)[0]
    started = []

    async def work(ctx):
        await bench.describe(ctx, 0, descriptor)
        figures["start"] = bench.memory.cycle
        started.append(True)
        for place in places:
            await bench.command(ctx, port, 0, place)
        vectors = len(places) * box_bytes * 8 // bench.width_bits
        if side == "load":
            await bench.wait(ctx, lambda: len(bench.loaded[0]) == vectors)
        else:
            await bench.wait(ctx, lambda: bench.stored[0] == len(places))
        figures["end"] = bench.memory.cycle

    async def put(ctx):
        await bench.wait(ctx, lambda: started)
        if side == "store":
            await bench.put(ctx, 0, np.zeros(len(places) * box_bytes, np.uint8))

    bench.run(work, put)
    beats = bench.memory.read_beats if side == "load" else bench.memory.write_beats
    return figures["end"] - figures["start"], beats[-1] - beats[0] + 1, len(beats)


@pytest.mark.parametrize(
    ("side", "box_bytes", "latency", "peer"),
    [
        ("load", 64, 10, 0.687),
        ("load", 256, 10, 0.963),
        ("store", 64, 10, 0.798),
        ("store", 256, 10, 0.913),
    ],
)
def test_small_boxes_use_the_bus_better_than_the_peer(side, box_bytes, latency, peer):
    """The peer is verilog-axi's axi_dma at 64 bits with as many bytes a descriptor."""
    total, busy, beats = cycles_of(side, box_bytes, latency, landing_beats=256)
    assert beats / busy > peer
    assert total <= busy + 2 * latency + 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width_bits": 96}, "Width in bits must be a power of two from 64 to 1024, not 96"),
        ({"width_bits": 32}, "Width in bits must be a power of two from 64 to 1024, not 32"),
        ({"address_bits": 20}, "Address bits must be an integer from 32 to 64, not 20"),
        ({"landing_beats": 8}, "Landing beats must be a power of two from 16 to 4096, not 8"),
        ({"outstanding": 0}, "Outstanding bursts must be an integer from 1 to 64, not 0"),
        ({"descriptors": 0}, "Descriptors must be an integer from 1 to 256, not 0"),
        ({"load_streams": 0}, "Load streams must be an integer from 1 to 8, not 0"),
        ({"store_streams": 9}, "Store streams must be an integer from 1 to 8, not 9"),
    ],
)
def test_parameters_outside_their_domain_are_refused(change, message):
    with pytest.raises(TypeError, match=message):
        TmaEngine(**change)
