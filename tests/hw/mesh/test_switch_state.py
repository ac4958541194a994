"""What a switch remembers and forgets, and that nothing passes it between clock edges."""

import random

from amaranth.hdl import Value
from amaranth.sim import Simulator

from hw.arch.ports import Link, UnitPort
from hw.arch.switch import OutputProgram, SwitchProgram, Turn
from hw.emit.shared import Library
from tests.hw.mesh.bench import (
    EAST,
    NORTH,
    ONE,
    THREE,
    WEST,
    WIDTH,
    Traffic,
    packets,
    program,
    switch,
    vector,
)

SEED = 20261120


def test_a_stray_payload_stays(one):
    source = Link(NORTH, 0)
    sends = {(0, source): packets(random.Random(SEED), [5])}
    seen = one.run(Traffic(one.program({Link(EAST, 0): Link(WEST, 0)}), sends), cycles=20)
    assert seen.payloads() == {}
    assert len(seen.accepted[0, source]) == 2


def test_moved_follows_each_transfer_by_a_cycle(one):
    items = packets(random.Random(SEED), [12])
    traffic = Traffic(
        one.program({Link(EAST, 0): Link(WEST, 0)}), {(0, Link(WEST, 0)): items}, idle=0.5
    )
    seen = one.run(traffic, cycles=60)
    assert seen.moved == [cycle + 1 for cycle in seen.cycles((0, Link(EAST, 0)))]


def test_no_combinational_path_crosses_the_switch():
    dut = switch(THREE)
    rng = random.Random(SEED)
    ins = [dut.input(port) for port in THREE.inputs]
    outs = [dut.output(port) for port in THREE.outputs]
    entering = [value for it in ins for value in (it.valid, Value.cast(it.payload))]
    entering += [it.ready for it in outs]
    leaving = [value for it in outs for value in (it.valid, Value.cast(it.payload))]
    leaving += [it.ready for it in ins] + [dut.o_moved]
    routes = [
        OutputProgram(port, tuple(Turn(source) for source in rng.sample(THREE.sources(port), 2)))
        for port in THREE.outputs
    ]
    changes = 0

    async def shake(ctx):
        nonlocal changes
        ctx.set(Value.cast(dut.config), SwitchProgram(THREE, routes).pack())
        before = []
        for cycle in range(200):
            for value in entering:
                ctx.set(value, rng.getrandbits(len(value)))
            after_edge = [ctx.get(value) for value in leaving]
            changes += after_edge != before
            before = after_edge
            for value in entering:
                ctx.set(value, ~ctx.get(value))
            ctx.set(dut.i_clear, 1)
            assert [ctx.get(value) for value in leaving] == after_edge, f"cycle {cycle}"
            ctx.set(dut.i_clear, cycle % 50 == 49)
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1)
    simulator.add_testbench(shake)
    simulator.run()
    assert changes > 50


def test_clear_empties_everything_and_lets_the_program_change():
    dut = switch(ONE)
    first = program(ONE, {Link(EAST, 0): [(Link(WEST, 0), 2), (UnitPort(0), 1)]})
    second = program(ONE, {Link(EAST, 0): [(UnitPort(0), 1)], UnitPort(0): [(Link(WEST, 0), 1)]})
    west, unit, east = dut.i_west[0], dut.i_unit[0], dut.o_east[0]

    async def offer(ctx, stream, value):
        ctx.set(stream.valid, 1)
        ctx.set(Value.cast(stream.payload), vector(value, last=True))
        await ctx.tick().until(stream.ready)
        ctx.set(stream.valid, 0)

    async def story(ctx):
        ctx.set(Value.cast(dut.config), first.pack())
        ctx.set(east.ready, 1)
        await offer(ctx, west, 1)
        await ctx.tick()
        ctx.set(east.ready, 0)
        # Half through turn 0, two payloads of each stream inside.
        for value in (2, 3):
            await offer(ctx, west, value)
            await offer(ctx, unit, value)
        assert not ctx.get(west.ready) and not ctx.get(unit.ready)
        ctx.set(dut.i_clear, 1)
        ctx.set(Value.cast(dut.config), second.pack())
        await ctx.tick()
        ctx.set(dut.i_clear, 0)
        assert ctx.get(west.ready) and ctx.get(unit.ready)
        assert not ctx.get(east.valid) and not ctx.get(dut.o_unit[0].valid)
        await offer(ctx, unit, 4)
        assert ctx.get(east.valid) and ctx.get(east.payload.data) == 4
        # Back to the first program: its rotation begins with turn 0 again, not in its middle.
        ctx.set(dut.i_clear, 1)
        ctx.set(Value.cast(dut.config), first.pack())
        await ctx.tick()
        ctx.set(dut.i_clear, 0)
        ctx.set(east.ready, 1)
        await offer(ctx, unit, 5)
        assert not ctx.get(east.valid)
        for value in (6, 7):
            await offer(ctx, west, value)
            assert ctx.get(east.payload.data) == value
        await ctx.tick()
        assert ctx.get(east.payload.data) == 5

    simulator = Simulator(dut)
    simulator.add_clock(1)
    simulator.add_testbench(story)
    simulator.run()


def test_clear_begins_again_with_the_first_turn():
    dut = switch(ONE)
    turns = program(ONE, {Link(EAST, 0): [(Link(WEST, 0), 1), (UnitPort(0), 1)]})

    async def story(ctx):
        ctx.set(Value.cast(dut.config), turns.pack())
        ctx.set(dut.o_east[0].ready, 1)
        # Each time the west's packet passes, so that the unit is next; then the clear.
        for _ in range(2):
            for stream in (dut.i_west[0], dut.i_unit[0]):
                ctx.set(stream.valid, 1)
                ctx.set(stream.payload.last, 1)
            ctx.set(dut.i_west[0].payload.data, 1)
            ctx.set(dut.i_unit[0].payload.data, 2)
            await ctx.tick()
            assert ctx.get(dut.o_east[0].payload.data) == 1
            await ctx.tick()
            assert ctx.get(dut.o_east[0].payload.data) == 2
            ctx.set(dut.o_east[0].ready, 0)
            ctx.set(dut.i_clear, 1)
            await ctx.tick()
            ctx.set(dut.i_clear, 0)
            ctx.set(dut.o_east[0].ready, 1)

    simulator = Simulator(dut)
    simulator.add_clock(1)
    simulator.add_testbench(story)
    simulator.run()


def test_clear_forgets_who_has_the_payload():
    dut = switch(ONE)
    both = program(ONE, {Link(EAST, 0): UnitPort(0), Link(WEST, 0): UnitPort(0)})
    unit, east, west = dut.i_unit[0], dut.o_east[0], dut.o_west[0]

    async def story(ctx):
        ctx.set(Value.cast(dut.config), both.pack())
        ctx.set(east.ready, 1)
        for value in (1, 2):
            ctx.set(unit.valid, 1)
            ctx.set(unit.payload.data, value)
            await ctx.tick()
            ctx.set(unit.valid, 0)
            assert ctx.get(east.valid) and ctx.get(east.payload.data) == value
            await ctx.tick()
            assert not ctx.get(east.valid) and ctx.get(west.valid)
            ctx.set(dut.i_clear, 1)
            await ctx.tick()
            ctx.set(dut.i_clear, 0)
            assert not ctx.get(west.valid)

    simulator = Simulator(dut)
    simulator.add_clock(1)
    simulator.add_testbench(story)
    simulator.run()


def test_equal_parts_are_defined_once():
    library = Library()
    dut = switch(THREE)
    library.define(dut)
    buffer, *others, top = library.definitions
    assert buffer == f"elastic_buffer_p{WIDTH + 2}"
    assert others == [
        "eager_fork_b6",
        "eager_fork_b12",
        "ordered_merge_s5_t3",
        "ordered_merge_s12_t4",
    ]
    assert top.startswith(f"switch_p{WIDTH + 2}x") and top.endswith("_t3_u2_u3_l3_u4")
