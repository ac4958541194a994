# amaranth: UnusedElaboratable=no
import random

import pytest
from amaranth.sim import Simulator

from hw.arch.errors import BadInputError
from hw.lib.fifo import Queue


def run(depth, count, *, give, take):
    """Payloads and the cycles in which they left, with producer and consumer at given rates."""
    dut = Queue(8, depth=depth)
    rng = random.Random(7)
    received = []

    async def produce(ctx):
        for value in range(count):
            while rng.random() >= give:
                await ctx.tick()
            ctx.set(dut.i_stream.payload, value % 251)
            ctx.set(dut.i_stream.valid, 1)
            await ctx.tick().until(dut.i_stream.ready)
            ctx.set(dut.i_stream.valid, 0)

    async def consume(ctx):
        cycle = 0
        while len(received) < count:
            ctx.set(dut.o_stream.ready, rng.random() < take)
            valid, ready, payload = (
                await ctx.tick().sample(
                    dut.o_stream.valid, dut.o_stream.ready, dut.o_stream.payload
                )
            )[2:]
            if valid and ready:
                received.append((cycle, payload))
            cycle += 1
            assert cycle < 100 * count

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(produce)
    simulator.add_testbench(consume)
    simulator.run()
    return received


@pytest.mark.few(6)
@pytest.mark.parametrize("depth", [2, 3, 8, 18])
@pytest.mark.parametrize(("give", "take"), [(1, 1), (0.5, 1), (1, 0.4), (0.6, 0.6)])
def test_payloads_leave_in_order_and_none_is_lost(depth, give, take):
    received = run(depth, 300, give=give, take=take)
    assert [payload for _, payload in received] == [value % 251 for value in range(300)]


def test_a_payload_a_cycle_two_cycles_after_it_entered():
    assert [cycle for cycle, _ in run(4, 50, give=1, take=1)] == list(range(2, 52))


def test_it_holds_its_depth_and_the_one_at_the_output():
    dut = Queue(4, depth=5)
    accepted = []

    async def fill(ctx):
        ctx.set(dut.i_stream.valid, 1)
        for _ in range(20):
            accepted.append(ctx.get(dut.i_stream.ready))
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(fill)
    simulator.run()
    assert sum(accepted) == 6


@pytest.mark.parametrize("depth", [0, 1, 2.0])
def test_depths_that_cannot_work_are_refused(depth):
    with pytest.raises(BadInputError, match=f"Queue depth must be .* not {depth}"):
        Queue(8, depth=depth)
