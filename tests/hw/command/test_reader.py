import random

import pytest
from amaranth.sim import Simulator

from hw.command.burst_reader import BurstReader
from tests.hw.command.bench import Memory
from tests.slow_cases import quick_first


def read(width_bits, runs, *, ready=1.0, stop_after=None, **memory_options):
    """Beats of runs of (address in bytes, beats): (cycle, data); and the memory."""
    dut = BurstReader(width_bits=width_bits, address_bits=32)
    memory = Memory(dut.axi, **memory_options)
    rng = random.Random("reader")
    beat_bytes = width_bits // 8
    for address, beats in runs:
        raw = [(address + i * beat_bytes).to_bytes(beat_bytes, "little") for i in range(beats)]
        memory.put(address, b"".join(raw))
    got = []

    async def request(ctx):
        for address, beats in runs:
            ctx.set(dut.i_request.payload.address, address // beat_bytes)
            ctx.set(dut.i_request.payload.beats, beats)
            ctx.set(dut.i_request.valid, 1)
            await ctx.tick().until(dut.i_request.ready)
            ctx.set(dut.i_request.valid, 0)

    async def take(ctx):
        cycle = 0
        wanted = sum(beats for _, beats in runs) if stop_after is None else stop_after
        while len(got) < wanted:
            ctx.set(dut.o_beat.ready, rng.random() < ready)
            *_, moves, word = await ctx.tick().sample(
                dut.o_beat.valid & dut.o_beat.ready, dut.o_beat.payload.data
            )
            if moves:
                got.append((cycle, word))
            cycle += 1
        if stop_after is not None:
            # Long enough for the first burst to wait on AR even if nothing was to be taken.
            ctx.set(dut.o_beat.ready, 0)
            await ctx.tick().repeat(3)
            ctx.set(dut.i_stop, 1)
        while not ctx.get(dut.o_idle):
            await ctx.tick()
        assert not memory.owed
        ctx.set(dut.i_stop, 0)
        await ctx.tick().repeat(memory.latency + 20)
        assert not memory.owed and ctx.get(dut.o_idle)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(memory.run, background=True)
    simulator.add_testbench(request, background=True)
    simulator.add_testbench(take)
    simulator.run()
    return got, memory


RUNS = {
    64: [(0x10000, 1), (0x20FF8, 2), (0x30008, 700), (0x40000, 8)],
    256: [(0x10000, 1), (0x20FE0, 2), (0x30020, 300), (0x40000, 2)],
    1024: [(0x10F80, 2), (0x20000, 70)],
}


@pytest.mark.few(4)
@pytest.mark.parametrize("width_bits", RUNS)
@pytest.mark.parametrize("stall, ready", [(0.0, 1.0), (0.4, 1.0), (0.2, 0.5)])
def test_runs_come_whole_and_in_order(width_bits, stall, ready):
    runs = RUNS[width_bits]
    got, memory = read(width_bits, runs, ready=ready, stall=stall, latency=30, jitter=10, seed=1)
    beat_bytes = width_bits // 8
    expected = [address + i * beat_bytes for address, beats in runs for i in range(beats)]
    assert [word for _, word in got] == expected
    # The fewest bursts that stay within 4 KiB and 256 beats.
    longest = min(256, 4096 // beat_bytes) * beat_bytes
    blocks = [
        (address + (beats - 1) * beat_bytes) // longest - address // longest + 1
        for address, beats in runs
    ]
    assert len(memory.bursts) == sum(blocks)


@pytest.mark.parametrize("width_bits", [256, 1024])
def test_a_long_run_takes_a_beat_a_cycle_at_latency_100(width_bits):
    beats = 600
    got, memory = read(width_bits, [(0x10000, beats)], latency=100)
    # Requested in cycle 0, on AR in cycle 2.
    assert memory.bursts[0][0] == 2
    assert [cycle for cycle, _ in got] == list(range(102, 102 + beats))


def test_at_most_fifteen_bursts_are_unanswered():
    _, memory = read(1024, [(0x10000, 32 * 40)], latency=1000)
    assert [cycle for cycle, *_ in memory.bursts[:15]] == list(range(2, 17))
    assert memory.bursts[15][0] > 1000


@pytest.mark.parametrize("stop_after", [0, 1, 5, 40, 299])
@pytest.mark.parametrize("stall", quick_first([0.0, 0.7, 0.95], 2))
def test_stop_takes_every_answer_that_memory_owes(stop_after, stall):
    got, memory = read(
        256, [(0x10020, 300)], stop_after=stop_after, latency=50, stall=stall, seed=stop_after
    )
    assert len(got) == stop_after
    assert 1 <= len(memory.bursts) <= 3


def test_no_burst_begins_under_stop():
    # Stopped in cycle 3, when the burst that was put on AR in cycle 2 waits there.
    _, memory = read(1024, [(0x10000, 32 * 40)], stop_after=0, latency=10)
    assert [cycle for cycle, *_ in memory.bursts] == [2, 3]
