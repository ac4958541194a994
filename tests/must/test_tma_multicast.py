"""tma-b: items TMA-6, MBAR-3 (remote arrive) and H100-2 of a TMA unit's scratchpads."""

import dataclasses
import random

import numpy as np
import pytest

from hw.arch.boxes.im2col_box import packed_offsets
from hw.arch.descriptor import Swizzle
from hw.arch.tma_sizes import TmaSizes
from hw.tma.barriers.barrier_layouts import BarrierOperation
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.campaign.random_boxes import in_turn
from tests.hw.tma.campaign.random_modes import MODES, Decks
from tests.hw.tma.model import box_load, random_bytes
from tests.hw.tma.scratchpads.pads_bench import (
    AT,
    BOX,
    begin,
    compare,
    counts,
    filled,
    pads_bench,
)
from tests.hw.tma.standalone.unit_bench import UnitBench, swizzled_places

_COMMANDS = 60
_CAPACITY = 4096
_LOAD, _COPY = TmaOperation.LOAD, TmaOperation.COPY


class _Traffic:
    """Random loads and copies to random scratchpads, stores from them, and numpy's results.

    Loads and copies write the lower half of a scratchpad; copies and stores read the upper one.
    """

    def __init__(self, rng, pads):
        self.rng, self.pads = rng, pads
        self.decks = Decks(rng)
        self.modes = in_turn(rng, {mode: mode.share for mode in MODES})
        self.sizes = TmaSizes(width_bits=128, scratchpad_bytes=_CAPACITY)
        self.start = -(-_COMMANDS * 128 // 4096) * 4096
        self.memory = random_bytes(9, 4 << 20)
        self.bytes = np.zeros((pads, 8), np.int64)
        self.seen = set()

    def command(self, number):
        """Fields of a command, and what it does in numpy with memory and scratchpads."""
        rng, half = self.rng, _CAPACITY // 2
        mask, source = rng.randrange(1, 1 << self.pads), rng.randrange(self.pads)
        barrier, signals = rng.randrange(8), rng.random() < 0.7
        fields = {"destinations": mask, "source": source, "barrier": barrier, "signals": signals}
        if rng.random() < 0.25:
            size, beat = 16 * rng.randint(1, half // 32), 16
            start = half + rng.randrange(0, half - size + 1, beat)
            fields["local"] = local = rng.randrange(0, half - size + 1, beat)
            self.seen.add(("copy", mask))

            def copy(memory, contents):
                self._write(
                    contents, mask, np.arange(local, local + size), contents[source][start:][:size]
                )

            self._count(mask, barrier, signals * size)
            return (_COPY, start, (size,), fields), copy
        mode = next(self.modes)
        case = mode.draw(self.decks, self.sizes, half)
        base, pointer = self.start, 128 * number
        self.start = -(-(base + case.extent) // 16) * 16 + 128
        step = 128 if case.swizzle is not Swizzle.NONE else 16
        local = rng.randrange(0, half - case.bytes + 1, step) + half * (not mode.loads)
        fields |= {"local": local, "offsets": packed_offsets(case.offsets) if case.offsets else 0}
        if case.descriptor is None:
            pointer = base
        else:
            packed = dataclasses.replace(case.descriptor, base=base).pack()
            self.memory[pointer : pointer + 128] = np.frombuffer(packed, np.uint8)
        places = swizzled_places(local, case.bytes, case.swizzle)
        if mode.loads:
            self._count(mask, barrier, signals * case.bytes)
            self.seen.add((mode.name, mask))

        def move(memory, contents):
            if mode.loads:
                self._write(contents, mask, places, mode.loaded(case, memory, base))
            else:
                mode.store(case, memory, base, contents[source][places])

        return (mode.operation, pointer, case.coordinates, fields), move

    def _count(self, mask, barrier, size):
        for pad in range(self.pads):
            self.bytes[pad, barrier] += size * (mask >> pad & 1)

    def _write(self, contents, mask, places, moved):
        for pad in range(self.pads):
            if mask >> pad & 1:
                contents[pad][places] = moved


@pytest.mark.slow
@pytest.mark.must(
    "tma-b", goal="TMA-6: one read, random masks of 2 to 5 scratchpads, every load; bytes of each"
)
@pytest.mark.parametrize("pads", [2, 3, 5])
def test_tma_6_multicast(pads, seed, figure):
    """All bytes of every scratchpad and of memory, and the counts of every barrier of each."""
    traffic = _Traffic(random.Random(seed), pads)
    given = [traffic.command(number) for number in range(_COMMANDS)]
    end = len(traffic.memory)
    bench = UnitBench(
        traffic.memory.copy(),
        seed=seed,
        width_bits=128,
        capacity=_CAPACITY,
        scratchpads=pads,
        latency=20,
        jitter=10,
        stall=0.2,
        readable=[(0, end)],
        writable=[(0, end)],
    )
    memory = traffic.memory

    async def work(ctx):
        contents = [random_bytes(20 + pad, _CAPACITY) for pad in range(pads)]
        for pad, content in enumerate(contents):
            await bench.fill(ctx, 0, content, pad=pad)
            for barrier in range(8):
                await bench.operate(ctx, BarrierOperation.INIT, barrier, pad=pad, arrivals=1)
        for number, ((operation, pointer, coordinates, fields), move) in enumerate(given):
            await bench.command(ctx, operation, pointer, coordinates, id=number, **fields)
            move(memory, contents)
        await bench.completed(ctx, _COMMANDS)
        assert sorted(bench.completions) == [(number, 0) for number in range(_COMMANDS)]
        assert np.array_equal(bench.data, memory)
        for pad, content in enumerate(contents):
            assert np.array_equal(await bench.content(ctx, pad=pad), content), pad
        for barrier in range(8):
            for pad, answer in enumerate(await counts(bench, ctx, barrier)):
                found = (answer["tx"], answer["flag"])
                assert found == (-traffic.bytes[pad, barrier], 0), (pad, barrier)

    bench.run(work)
    several = sum(mask.bit_count() > 1 for _, mask in traffic.seen)
    assert several > 0
    figure(f"{pads} scratchpads: {_COMMANDS} commands, {several} kinds with several destinations")


@pytest.mark.slow
@pytest.mark.must("tma-b", goal="regression: multicast byte counts for more than two destinations")
def test_multicast_byte_counts_for_more_than_two_destinations(figure):
    """Each expects the bytes of one box, whatever their number, and its phase completes."""
    pads = 6
    bench = pads_bench(pads)

    async def work(ctx):
        await begin(bench, ctx, 4)
        for number in range(pads):
            for pad in range(pads):
                expect = {"arrivals": 1, "bytes": BOX.box_bytes, "pad": pad}
                if pad <= number:
                    await bench.operate(ctx, BarrierOperation.ARRIVE_EXPECT, 4, **expect)
            before = [ctx.get(user.o_phases) >> 4 & 1 for user in bench.users]
            fields = {"destinations": (2 << number) - 1, "barrier": 4, "signals": 1}
            await bench.command(ctx, _LOAD, AT, id=number, **fields)
            await bench.completed(ctx, number + 1)
            await ctx.tick().repeat(2)
            after = [ctx.get(user.o_phases) >> 4 & 1 for user in bench.users]
            turned = [one != two for one, two in zip(before, after)]
            assert turned == [pad <= number for pad in range(pads)]
            assert [answer["tx"] for answer in await counts(bench, ctx, 4)] == [0] * pads

    bench.run(work)
    figure(f"1 to {pads} destinations, {BOX.box_bytes} bytes at each")


@pytest.mark.slow
@pytest.mark.must("tma-b", goal="MBAR-3: remote arrive: consumers free a multicast slot together")
def test_mbar_3_remote_arrive():
    """The producer of scratchpad 0 loads again once the consumers of all have arrived there."""
    pads, turns = 3, 4
    bench = pads_bench(pads)
    full, empty = 0, 1
    seen = []

    async def waited(ctx, home, barrier, parity):
        while (ctx.get(bench.users[home].o_phases) >> barrier & 1) == parity:
            await ctx.tick()

    def consumer(home):
        async def consume(ctx):
            while not seen:
                await ctx.tick()
            for turn in range(turns):
                await waited(ctx, home, full, turn % 2)
                await ctx.tick().repeat(bench.rng.randrange(30))
                wanted = box_load(bench.data, BOX, (0, turn))
                content = await bench.content(ctx, pad=home)
                assert np.array_equal(content[: BOX.box_bytes], wanted), (home, turn)
                seen.append((turn, home))
                arrival = {"pad": 0, "home": home, "arrivals": 1}
                await bench.operate(ctx, BarrierOperation.ARRIVE, empty, **arrival)

        return consume

    async def produce(ctx):
        await begin(bench, ctx, full)
        await bench.operate(ctx, BarrierOperation.INIT, empty, arrivals=pads)
        seen.append(None)
        for turn in range(turns):
            if turn:
                await waited(ctx, 0, empty, (turn - 1) % 2)
            for pad in range(pads):
                expect = {"arrivals": 1, "bytes": BOX.box_bytes, "pad": pad, "home": pad}
                while ctx.get(bench.users[pad].i_operations[0].valid):
                    await ctx.tick()
                await bench.operate(ctx, BarrierOperation.ARRIVE_EXPECT, full, **expect)
            fields = {"destinations": (1 << pads) - 1, "barrier": full, "signals": 1}
            await bench.command(ctx, _LOAD, AT, (0, turn), id=turn, **fields)
        await waited(ctx, 0, empty, (turns - 1) % 2)
        turned = [turn for turn, _ in seen[1:]]
        assert turned == sorted(turned) and len(turned) == pads * turns

    bench.run(produce, *(consumer(home) for home in range(pads)))


@pytest.mark.slow
@pytest.mark.must("tma-b", goal="H100-2: write to another scratchpad completes its barrier's phase")
def test_h100_2_remote_write_with_barrier_completion():
    """Every scratchpad writes to every other; the phase is complete when the bytes are there."""
    pads = 3
    bench = pads_bench(pads)

    async def work(ctx):
        wanted = await filled(bench, ctx)
        number = 0
        for source in range(pads):
            for target in range(pads):
                if source == target:
                    continue
                size, start, local = 16 * (3 + number), 64 * number, 1024 + 32 * number
                await begin(bench, ctx, 5)
                expect = {"arrivals": 1, "bytes": size, "pad": target, "home": source}
                await bench.operate(ctx, BarrierOperation.ARRIVE_EXPECT, 5, **expect)
                fields = {"source": source, "destinations": 1 << target, "local": local}
                fields |= {"barrier": 5, "signals": 1}
                await bench.command(ctx, _COPY, start, (size,), id=number, **fields)
                while not ctx.get(bench.users[target].o_phases) >> 5 & 1:
                    await ctx.tick()
                wanted[target][local : local + size] = wanted[source][start : start + size]
                assert np.array_equal(await bench.content(ctx, pad=target), wanted[target])
                phases = [ctx.get(user.o_phases) >> 5 & 1 for user in bench.users]
                assert phases == [pad == target for pad in range(pads)]
                number += 1
        await bench.completed(ctx, number)
        assert [code for _, code in bench.completions] == [0] * number
        await compare(bench, ctx, wanted)

    bench.run(work)
