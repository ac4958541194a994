# amaranth: UnusedElaboratable=no
"""The packet filter: which packets pass, in how many cycles, and who waits for whom."""

import random

import pytest
from amaranth.hdl import Value
from amaranth.sim import Simulator

from hw.arch.errors import BadInputError
from hw.lib.packet_filter import PacketFilter

WIDTH = 8


def vectors(rng, lengths):
    """Vectors of packets as (bits, number of the packet)."""
    items = []
    for number, length in enumerate(lengths):
        for position in range(length):
            last = position == length - 1
            final = last and rng.random() < 0.3
            items.append((rng.randrange(256) | last << WIDTH | final << WIDTH + 1, number))
    return items


def run(items, *, modulus, index, idle=0.0, stall=0.0, seed=0, limit=None, cycles=400):
    """Cycles in which each vector was consumed, and (cycle, bits) of those that came out."""
    dut = PacketFilter(width_bits=WIDTH)
    consumed, passed = [], []
    entering, leaving = Value.cast(dut.i_stream.payload), Value.cast(dut.o_stream.payload)

    async def source(ctx):
        rng = random.Random(f"{seed} source")
        ctx.set(dut.modulus, modulus)
        ctx.set(dut.index, index)
        cycle = 0
        for bits, _ in items:
            while rng.random() < idle:
                ctx.set(entering, rng.getrandbits(len(entering)))
                await ctx.tick()
                cycle += 1
            ctx.set(dut.i_stream.valid, 1)
            ctx.set(entering, bits)
            ready = 0
            while not ready:
                _, _, ready = await ctx.tick().sample(dut.i_stream.ready)
                cycle += 1
            consumed.append(cycle - 1)
            ctx.set(dut.i_stream.valid, 0)

    async def sink(ctx):
        rng = random.Random(f"{seed} sink")
        for cycle in range(cycles):
            ready = rng.random() >= stall and (limit is None or len(passed) < limit)
            ctx.set(dut.o_stream.ready, ready)
            _, _, valid, bits = await ctx.tick().sample(dut.o_stream.valid, leaving)
            if valid and ready:
                passed.append((cycle, bits))

    simulator = Simulator(dut)
    simulator.add_clock(1)
    simulator.add_testbench(source, background=True)
    simulator.add_testbench(sink)
    simulator.run()
    return consumed, passed


@pytest.mark.parametrize("modulus", [1, 2, 3, 5, 8, 16])
def test_packet_passes_if_its_number_matches_the_index(modulus):
    rng = random.Random(modulus)
    items = vectors(rng, [rng.randint(1, 3) for _ in range(2 * modulus + 5)])
    for index in range(modulus):
        expected = [bits for bits, number in items if number % modulus == index]
        _, passed = run(items, modulus=modulus, index=index, idle=0.3, stall=0.3, seed=index)
        assert [bits for _, bits in passed] == expected, f"index {index}"


def test_one_vector_a_cycle_and_no_cycle_of_delay():
    items = vectors(random.Random(1), [3, 1, 2, 4, 1, 1, 5, 2])
    consumed, passed = run(items, modulus=3, index=1)
    assert consumed == list(range(len(items)))
    accepted = [cycle for cycle, (_, number) in enumerate(items) if number % 3 == 1]
    assert [cycle for cycle, _ in passed] == accepted


def test_a_refused_vector_never_waits_for_the_consumer():
    items = vectors(random.Random(1), [2, 6, 1, 3])
    # The consumer takes packet 0 and then nothing: packets 1 and 2 go, packet 3 stands.
    consumed, passed = run(items, modulus=3, index=0, limit=2)
    assert consumed == list(range(9))
    assert [bits for _, bits in passed] == [bits for bits, _ in items[:2]]


def test_ready_does_not_depend_on_valid():
    dut = PacketFilter(width_bits=WIDTH)

    async def shake(ctx):
        ctx.set(dut.modulus, 2)
        for index, ready, expected in [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 1)]:
            ctx.set(dut.index, index)
            ctx.set(dut.o_stream.ready, ready)
            for valid in (0, 1):
                ctx.set(dut.i_stream.valid, valid)
                ctx.set(dut.i_stream.payload.last, 0)
                assert ctx.get(dut.i_stream.ready) == expected

    simulator = Simulator(dut)
    simulator.add_testbench(shake)
    simulator.run()


def test_clear_begins_with_packet_0():
    dut = PacketFilter(width_bits=WIDTH)

    async def story(ctx):
        ctx.set(dut.modulus, 3)
        ctx.set(dut.index, 0)
        ctx.set(dut.o_stream.ready, 1)
        ctx.set(dut.i_stream.valid, 1)
        ctx.set(dut.i_stream.payload.last, 1)
        await ctx.tick()
        assert not ctx.get(dut.o_stream.valid)
        # Clear wins over the packet that ends in the same cycle.
        ctx.set(dut.i_clear, 1)
        await ctx.tick()
        ctx.set(dut.i_clear, 0)
        assert ctx.get(dut.o_stream.valid)

    simulator = Simulator(dut)
    simulator.add_clock(1)
    simulator.add_testbench(story)
    simulator.run()


@pytest.mark.parametrize("width", [0, -1, "8", None])
def test_refused_width(width):
    with pytest.raises(
        BadInputError, match=f"^Vector width must be a positive number of bits, not {width!r}$"
    ):
        PacketFilter(width_bits=width)
