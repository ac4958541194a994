import random

import pytest
from amaranth.sim import Simulator

from hw.command.argument_reader import ArgumentReader


def read(width_bits, arguments, *, stall, seed, failed=()):
    """Writes (index, value, stride) of argument tables that follow one another."""
    dut = ArgumentReader(width_bits=width_bits)
    rng = random.Random(seed)
    writes = []

    async def feed(ctx):
        for table in arguments:
            ctx.set(dut.i_count, len(table))
            ctx.set(dut.i_start, 1)
            await ctx.tick()
            ctx.set(dut.i_start, 0)
            raw = b"".join(
                value.to_bytes(8, "little") + stride.to_bytes(8, "little", signed=True)
                for value, stride in table
            )
            raw += bytes(-len(raw) % (width_bits // 8))
            beats = len(raw) * 8 // width_bits
            assert ctx.get(dut.o_beats) == beats
            for index in range(beats):
                while rng.random() < stall:
                    await ctx.tick()
                beat = raw[index * width_bits // 8 : (index + 1) * width_bits // 8]
                ctx.set(dut.i_beat.payload.data, int.from_bytes(beat, "little"))
                ctx.set(dut.i_beat.payload.response, 2 if index in failed else 0)
                ctx.set(dut.i_beat.valid, 1)
                *_, ends = await ctx.tick().sample(dut.o_end).until(dut.i_beat.ready)
                assert ends == (index == beats - 1)
                ctx.set(dut.i_beat.valid, 0)
            assert ctx.get(dut.o_empty)

    async def take(ctx):
        port = dut.o_argument
        ready = 0
        async for *_, valid, payload in ctx.tick().sample(port.valid, port.payload):
            if valid and ready:
                writes.append((int(payload.index), int(payload.value), int(payload.stride)))
            ready = rng.random() >= stall
            ctx.set(port.ready, ready)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(feed)
    simulator.add_testbench(take, background=True)
    simulator.run()
    return writes


def tables(rng, *counts):
    return [
        [(rng.getrandbits(64), rng.getrandbits(64) - (1 << 63)) for _ in range(count)]
        for count in counts
    ]


@pytest.mark.parametrize("stall", [0.0, 0.6])
@pytest.mark.parametrize("width_bits", [64, 128, 256, 1024])
def test_arguments_leave_in_order_with_their_index(width_bits, stall, seed):
    rng = random.Random(seed)
    given = tables(rng, 16, 1, 7)
    expected = [(index, *each) for table in given for index, each in enumerate(table)]
    assert read(width_bits, given, stall=stall, seed=seed) == expected


def test_an_argument_of_a_failed_beat_does_not_leave(seed):
    given = tables(random.Random(seed), 5)
    writes = read(128, given, stall=0.0, seed=seed, failed=(3,))
    assert [index for index, *_ in writes] == [0, 1, 2, 4]
