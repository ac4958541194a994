"""Switches joined: hops, and random programs of a 2 × 2 mesh against the mirror."""

import random

import pytest

from hw.arch.ports import Link, SwitchPorts, UnitPort
from hw.arch.switch import OutputProgram, SwitchProgram, Turn
from tests.hw.mesh import mirror
from tests.hw.mesh.bench import (
    EAST,
    NORTH,
    SOUTH,
    TOKEN,
    WEST,
    Bench,
    Mesh,
    Traffic,
    grid,
    packets,
    switch,
)

ONE = SwitchPorts(tracks=1, unit_outputs=1, unit_inputs=1)
MESH = SwitchPorts(tracks=2, unit_outputs=2, unit_inputs=2)


@pytest.fixture(scope="module")
def pair():
    return Bench(grid(1, 2, ONE))


@pytest.fixture(scope="module")
def square():
    return Bench(grid(2, 2, MESH))


def straight(output, source):
    return SwitchProgram(ONE, [OutputProgram(output, (Turn(source),))])


def test_two_hops_take_two_cycles_and_keep_the_rate(pair):
    programs = {
        (0, 0): straight(Link(EAST, 0), UnitPort(0)),
        (0, 1): straight(UnitPort(0), Link(WEST, 0)),
    }
    items = packets(random.Random(1), [40])
    seen = pair.run(Traffic(programs, {((0, 0), UnitPort(0)): items}), cycles=60)
    target = ((0, 1), UnitPort(0))
    assert seen.payloads() == {target: items}
    assert seen.cycles(target) == list(range(2, 42))


def test_a_stop_downstream_leaves_two_payloads_a_hop(pair):
    programs = {
        (0, 0): straight(Link(EAST, 0), UnitPort(0)),
        (0, 1): straight(UnitPort(0), Link(WEST, 0)),
    }
    start, target = ((0, 0), UnitPort(0)), ((0, 1), UnitPort(0))
    items = packets(random.Random(1), [20])
    seen = pair.run(Traffic(programs, {start: items}, limits={target: 3}), cycles=60)
    assert len(seen.accepted[start]) == 3 + 2 * 2


def random_programs(rng, mesh):
    """Random rotations everywhere; most outputs are off, so that routes have ends."""
    programs = {}
    for name, each in mesh.switches.items():
        outputs = []
        for output in each.ports.outputs:
            sources = each.ports.sources(output)
            if rng.random() < 0.55:
                chosen = rng.sample(sources, rng.choice([1, 1, 1, 2, 3]))
                turns = tuple(Turn(source, rng.choice([1, 1, 2, 3])) for source in chosen)
                outputs.append(OutputProgram(output, turns))
        programs[name] = SwitchProgram(each.ports, outputs)
    return programs


def path(rng, start, target):
    """Random way from switch to switch of the 2 × 2 mesh, as directions."""
    down = [SOUTH if target[0] else NORTH] * (start[0] != target[0])
    right = [EAST if target[1] else WEST] * (start[1] != target[1])
    return rng.sample(down + right, len(down + right))


def live_programs(rng, ports):
    """Multicast trees on links of their own that meet at the units' inputs, and what they carry."""
    turns, owners, sends = {}, {}, {}
    nodes = [(row, column) for row in range(2) for column in range(2)]
    for start, index in rng.sample([(node, index) for node in nodes for index in range(2)], 8):
        stream, weight = (start, UnitPort(index)), rng.randint(1, 3)
        track = rng.randrange(ports.tracks)
        for target in rng.sample(nodes, 3):
            steps, node, source = [], start, UnitPort(index)
            for side in path(rng, start, target):
                steps.append((node, Link(side, track), source))
                source = Link(side.opposite, track)
                row, column = node
                node = (1 - row, column) if side in (NORTH, SOUTH) else (row, 1 - column)
            entrance = (target, UnitPort(rng.randrange(ports.unit_inputs)))
            free = all(
                owners.setdefault((node, output), (stream, source)) == (stream, source)
                for node, output, source in steps
            )
            listed = turns.setdefault(entrance, {})
            if not steps or not free or len(listed) == ports.unit_turns:
                continue
            listed.setdefault(source, Turn(source, weight))
            for node, output, source in steps:
                turns.setdefault((node, output), {})[source] = Turn(source, weight)
            sends[stream] = packets(rng, [rng.randint(1, 4) for _ in range(6 * weight)])
    outputs = {node: [] for node in nodes}
    for (node, output), rotation in turns.items():
        if rotation:
            outputs[node].append(OutputProgram(output, tuple(rotation.values())))
    return {node: SwitchProgram(ports, programs) for node, programs in outputs.items()}, sends


def soak(bench, seeds, *, tokens=False):
    """Runs of random programs; vectors delivered, and how many runs came to a standstill."""
    delivered = stuck = 0
    for seed in seeds:
        rng = random.Random(seed)
        programs = random_programs(rng, bench.mesh)
        sends = {}
        for place in bench.mesh.entrances():
            if rng.random() < 0.7:
                lengths = [rng.randint(1, 3) for _ in range(rng.randint(1, 12))]
                sends[place] = [0] * sum(lengths) if tokens else packets(rng, lengths)
        expected = mirror.run(programs, bench.mesh.wires, sends, tokens=tokens)
        idle, stall = rng.choice([0, 0.2, 0.5]), rng.choice([0, 0.2, 0.5])
        traffic = Traffic(programs, sends, seed=seed, idle=idle, stall=stall)
        seen = bench.run(traffic, cycles=2000)
        assert seen.payloads() == expected.payloads, f"seed {seed}"
        delivered += sum(map(len, expected.payloads.values()))
        stuck += expected.left > 0
    return delivered, stuck


def test_random_programs_deliver_what_the_mirror_says(square, draws):
    # Most random programs stand still in the end, and must do so at the mirror's very payload.
    programs = draws(6, 20)
    delivered, stuck = soak(square, range(programs))
    assert delivered > 40 * programs
    assert stuck > 0


def test_random_multicast_trees_arrive_whole(square, draws):
    delivered, count = 0, draws(2, 8)
    for seed in range(count):
        rng = random.Random(seed)
        programs, sends = live_programs(rng, MESH)
        expected = mirror.run(programs, square.mesh.wires, sends)
        assert expected.left == 0, f"seed {seed}"
        traffic = Traffic(programs, sends, seed=seed, idle=rng.random() / 2, stall=rng.random() / 2)
        seen = square.run(traffic, cycles=3000)
        assert seen.payloads() == expected.payloads, f"seed {seed}"
        delivered += sum(map(len, expected.payloads.values()))
    assert delivered > 125 * count


def test_random_token_programs_deliver_what_the_mirror_says(draws):
    switches = {"left": switch(MESH, TOKEN), "right": switch(MESH, TOKEN)}
    wires = {
        **{("left", Link(EAST, t)): ("right", Link(WEST, t)) for t in range(2)},
        **{("right", Link(WEST, t)): ("left", Link(EAST, t)) for t in range(2)},
    }
    programs = draws(6, 20)
    delivered, _ = soak(Bench(Mesh(switches, wires)), range(programs), tokens=True)
    assert delivered > 25 * programs
