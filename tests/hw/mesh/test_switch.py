"""The switch, port by port: routes, forks, merges, cycles, and what it must refuse to do."""

import random

import pytest
from amaranth.hdl import Module, Value
from amaranth.sim import Simulator

import hw.mesh.switch
from hw.mesh.config import OutputProgram, SwitchProgram, Turn
from hw.mesh.fork import EagerFork
from hw.mesh.ports import Link, SwitchPorts, UnitPort
from hw.shared import Library
from tests.hw.mesh import mirror
from tests.hw.mesh.bench import (
    EAST,
    NORTH,
    SOUTH,
    TOKEN,
    WEST,
    WIDTH,
    Bench,
    Mesh,
    Traffic,
    packets,
    switch,
    vector,
)

SEED = 20261120
ONE = SwitchPorts(tracks=1, unit_outputs=1, unit_inputs=2)
THREE = SwitchPorts(tracks=3, unit_outputs=2, unit_inputs=3)
TOKENS = SwitchPorts(tracks=2, unit_outputs=2, unit_inputs=2)


@pytest.fixture(scope="module", params=[ONE, THREE], ids=["one-track", "three-tracks"])
def bench(request):
    return Bench(Mesh({0: switch(request.param)}))


@pytest.fixture(scope="module")
def one():
    return Bench(Mesh({0: switch(ONE)}))


@pytest.fixture(scope="module")
def tokens():
    return Bench(Mesh({0: switch(TOKENS, TOKEN)}))


def program(bench, routes):
    """Program of the one switch: by output, a source or a list of (source, packets)."""
    ports = bench.mesh.switches[0].ports
    outputs = []
    for output, turns in routes.items():
        turns = turns if isinstance(turns, list) else [(turns, 1)]
        outputs.append(OutputProgram(output, tuple(Turn(*turn) for turn in turns)))
    return {0: SwitchProgram(ports, outputs)}


def check_multicast(bench, branches, seeds):
    """One source to several outputs that stall each in its own time: every one has it all."""
    source = UnitPort(0)
    routes = dict.fromkeys(branches, source)
    for seed in seeds:
        items = packets(random.Random(seed), [3, 1, 4, 1, 5, 9, 2, 6])
        traffic = Traffic(
            program(bench, routes), {(0, source): items}, seed=seed, idle=0.2, stall=0.5
        )
        seen = bench.run(traffic, cycles=600)
        assert seen.payloads() == {(0, branch): items for branch in branches}, f"seed {seed}"


def test_unicast_through_every_legal_pair(bench):
    ports = bench.mesh.switches[0].ports
    rng = random.Random(SEED)
    pairs = [(source, output) for output in ports.outputs for source in ports.sources(output)]
    assert len(pairs) == 4 * ports.tracks * (3 + ports.unit_outputs + ports.unit_inputs)
    for source, output in pairs:
        items = packets(rng, [1, 3, 2])
        traffic = Traffic(program(bench, {output: source}), {(0, source): items}, stall=0.3)
        seen = bench.run(traffic, cycles=30)
        assert seen.payloads() == {(0, output): items}, f"{source} to {output}"


MULTICASTS = {
    "two": [Link(EAST, 0), Link(WEST, 0)],
    "three": [Link(NORTH, 0), Link(EAST, 0), Link(SOUTH, 0)],
    "four": [Link(NORTH, 0), Link(EAST, 0), Link(SOUTH, 0), Link(WEST, 0)],
}


@pytest.mark.parametrize("branches", MULTICASTS.values(), ids=MULTICASTS)
def test_multicast_reaches_each_branch_once_and_in_order(bench, branches):
    check_multicast(bench, branches, range(SEED, SEED + 4))


def test_multicast_to_links_and_unit(bench):
    source = Link(WEST, 0)
    branches = [Link(EAST, 0), Link(NORTH, 0), UnitPort(0), UnitPort(1)]
    items = packets(random.Random(SEED), [7, 5, 3])
    traffic = Traffic(
        program(bench, dict.fromkeys(branches, source)), {(0, source): items}, stall=0.6
    )
    assert bench.run(traffic, cycles=200).payloads() == {(0, each): items for each in branches}


class ForkByOr(EagerFork):
    """The planted fault: the input is done as soon as any branch is."""

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.o_valid.eq(self.i_valid.replicate(self.branches) & self.feeds),
            self.o_ready.eq((self.feeds & self.i_ready).any()),
        ]
        return m


class ForkWithoutDone(EagerFork):
    """The planted fault: the input waits for all, but nobody notes who has the payload."""

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.o_valid.eq(self.i_valid.replicate(self.branches) & self.feeds),
            self.o_ready.eq(~(self.feeds & ~self.i_ready).any() & self.feeds.any()),
        ]
        return m


@pytest.mark.parametrize("fault", [ForkByOr, ForkWithoutDone])
def test_a_wrong_fork_is_caught(monkeypatch, fault):
    monkeypatch.setattr(hw.mesh.switch, "EagerFork", fault)
    broken = Bench(Mesh({0: switch(ONE)}))
    with pytest.raises(AssertionError, match=f"seed {SEED}"):
        check_multicast(broken, MULTICASTS["two"], [SEED])


@pytest.mark.parametrize("taken", [0, 1, 5])
def test_a_stuck_branch_holds_its_siblings_one_payload_ahead(one, taken):
    source, stuck = Link(WEST, 0), UnitPort(1)
    siblings = [Link(EAST, 0), Link(NORTH, 0), UnitPort(0)]
    other, aside = UnitPort(0), Link(SOUTH, 0)
    items = packets(random.Random(SEED), [20])
    routes = {**dict.fromkeys([*siblings, stuck], source), aside: other}
    traffic = Traffic(
        program(one, routes),
        {(0, source): items, (0, other): items},
        limits={(0, stuck): taken},
    )
    seen = one.run(traffic, cycles=40)
    for sibling in siblings:
        assert len(seen.taken[0, sibling]) == taken + 1
    assert len(seen.taken[0, stuck]) == taken
    assert len(seen.accepted[0, source]) == taken + 2
    # The stream beside it runs at full speed all the while.
    assert seen.cycles((0, aside)) == list(range(1, 21))


MERGES = {
    "link of three": (Link(EAST, 0), [(UnitPort(0), 2), (Link(WEST, 0), 1), (Link(NORTH, 0), 3)]),
    "link of two": (Link(NORTH, 0), [(Link(SOUTH, 0), 15), (UnitPort(0), 1)]),
    "unit of four": (
        UnitPort(1),
        [(Link(SOUTH, 0), 1), (Link(NORTH, 0), 4), (Link(WEST, 0), 2), (Link(EAST, 0), 1)],
    ),
}


@pytest.mark.parametrize("case", MERGES.values(), ids=MERGES)
def test_merge_takes_whole_packets_in_the_same_order_whatever_the_timing(one, case):
    output, turns = case
    rng = random.Random(SEED)
    rounds = 3
    queues = {
        source: [packets(rng, [rng.randint(1, 3)]) for _ in range(rounds * count)]
        for source, count in turns
    }
    sends = {(0, source): sum(queue, []) for source, queue in queues.items()}
    expected = []
    for turn in range(rounds):
        for source, count in turns:
            expected += sum(queues[source][turn * count : (turn + 1) * count], [])
    for seed in range(20):
        shape = random.Random(seed)
        traffic = Traffic(
            program(one, {output: turns}),
            sends,
            seed=seed,
            idle=shape.choice([0, 0.3, 0.8]),
            stall=shape.choice([0, 0.3, 0.7]),
        )
        seen = one.run(traffic, cycles=len(expected) * 16 + 50)
        assert seen.payloads() == {(0, output): expected}, f"seed {seed}"


def test_merge_waits_for_the_source_whose_turn_it_is(one):
    turns = [(Link(WEST, 0), 1), (UnitPort(0), 1)]
    sends = {(0, UnitPort(0)): [vector(7, last=True)] * 4}
    seen = one.run(Traffic(program(one, {Link(EAST, 0): turns}), sends), cycles=30)
    assert seen.payloads() == {}
    assert len(seen.accepted[0, UnitPort(0)]) == 2


def test_one_payload_a_cycle_and_one_cycle_a_hop_on_every_track_at_once(bench):
    ports = bench.mesh.switches[0].ports
    count = 50
    routes, sends = {}, {}
    for track in range(ports.tracks):
        for side in (NORTH, EAST, SOUTH, WEST):
            routes[Link(side.opposite, track)] = Link(side, track)
            sends[0, Link(side, track)] = packets(random.Random(track), [count])
    # The unit's inputs ride along as branches of some of them.
    for index in range(ports.unit_inputs):
        routes[UnitPort(index)] = Link(WEST, index % ports.tracks)
    seen = bench.run(Traffic(program(bench, routes), sends), cycles=count + 5)
    for source in sends:
        assert seen.accepted[source] == list(range(count))
    for output in routes:
        assert seen.cycles((0, output)) == list(range(1, count + 1))


def test_merge_loses_no_cycle_between_packets(one):
    turns = [(Link(WEST, 0), 2), (Link(SOUTH, 0), 1), (UnitPort(0), 1)]
    rng = random.Random(SEED)
    sends = {
        (0, source): packets(rng, [1] * 4 * count + [2] * 4 * count) for source, count in turns
    }
    seen = one.run(Traffic(program(one, {Link(EAST, 0): turns}), sends), cycles=60)
    assert seen.cycles((0, Link(EAST, 0))) == list(range(1, 49))


def test_a_stray_payload_stays(one):
    source = Link(NORTH, 0)
    sends = {(0, source): packets(random.Random(SEED), [5])}
    seen = one.run(Traffic(program(one, {Link(EAST, 0): Link(WEST, 0)}), sends), cycles=20)
    assert seen.payloads() == {}
    assert len(seen.accepted[0, source]) == 2


def test_moved_follows_each_transfer_by_a_cycle(one):
    items = packets(random.Random(SEED), [12])
    traffic = Traffic(
        program(one, {Link(EAST, 0): Link(WEST, 0)}), {(0, Link(WEST, 0)): items}, idle=0.5
    )
    seen = one.run(traffic, cycles=60)
    assert seen.moved == [cycle + 1 for cycle in seen.cycles((0, Link(EAST, 0)))]


def test_tokens_are_packets_of_their_own(tokens):
    turns = [(Link(WEST, 1), 2), (UnitPort(1), 1)]
    routes = program(tokens, {Link(EAST, 1): turns, UnitPort(0): Link(WEST, 1)})
    for west, unit in [(3, 0), (3, 1), (0, 4), (6, 2), (5, 9), (1, 1)]:
        sends = {(0, Link(WEST, 1)): [0] * west, (0, UnitPort(1)): [0] * unit}
        expected = mirror.run(routes, {}, sends, tokens=True).payloads
        seen = tokens.run(Traffic(routes, sends, idle=0.3, stall=0.3), cycles=80)
        assert seen.payloads() == expected, f"{west} and {unit}"


def test_tokens_keep_the_rate_of_vectors(tokens):
    routes = program(tokens, {Link(NORTH, 0): UnitPort(0), Link(SOUTH, 0): UnitPort(0)})
    seen = tokens.run(Traffic(routes, {(0, UnitPort(0)): [0] * 20}), cycles=25)
    assert seen.cycles((0, Link(NORTH, 0))) == list(range(1, 21))
    assert seen.cycles((0, Link(SOUTH, 0))) == list(range(1, 21))


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
    first = program_of(ONE, {Link(EAST, 0): [(Link(WEST, 0), 2), (UnitPort(0), 1)]})
    second = program_of(ONE, {Link(EAST, 0): [(UnitPort(0), 1)], UnitPort(0): [(Link(WEST, 0), 1)]})
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


def program_of(ports, routes):
    return SwitchProgram(
        ports,
        [
            OutputProgram(output, tuple(Turn(*turn) for turn in turns))
            for output, turns in routes.items()
        ],
    )


def test_clear_forgets_who_has_the_payload():
    dut = switch(ONE)
    both = program_of(ONE, {Link(EAST, 0): [(UnitPort(0),)], Link(WEST, 0): [(UnitPort(0),)]})
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
    assert list(library.definitions) == [
        f"switch_buffer_{WIDTH + 2}",
        "eager_fork_6",
        "eager_fork_12",
        "ordered_merge_5_3",
        "ordered_merge_12_4",
        f"switch_{WIDTH + 2}_t3_u2_3_m3_4",
    ]
