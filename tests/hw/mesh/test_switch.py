"""The switch, port by port: routes, multicast, tokens, and how many cycles they take."""

import random

import pytest
from amaranth.hdl import Module

import hw.mesh.switch
from hw.arch.ports import Link, SwitchPorts, UnitPort
from hw.mesh.fork import EagerFork
from tests.hw.mesh import mirror
from tests.hw.mesh.bench import (
    EAST,
    NORTH,
    ONE,
    SOUTH,
    THREE,
    TOKEN,
    WEST,
    Bench,
    Mesh,
    Traffic,
    packets,
    switch,
)

SEED = 20261120
TOKENS = SwitchPorts(tracks=2, unit_outputs=2, unit_inputs=2)


@pytest.fixture(scope="module", params=[ONE, THREE], ids=["one-track", "three-tracks"])
def bench(request):
    return Bench(Mesh({0: switch(request.param)}))


@pytest.fixture(scope="module")
def tokens():
    return Bench(Mesh({0: switch(TOKENS, TOKEN)}))


def check_multicast(bench, branches, seeds):
    """One source to several outputs that stall each in its own time: every one has it all."""
    source = UnitPort(0)
    routes = dict.fromkeys(branches, source)
    for seed in seeds:
        items = packets(random.Random(seed), [3, 1, 4, 1, 5, 9, 2, 6])
        traffic = Traffic(
            bench.program(routes), {(0, source): items}, seed=seed, idle=0.2, stall=0.5
        )
        seen = bench.run(traffic, cycles=600)
        assert seen.payloads() == {(0, branch): items for branch in branches}, f"seed {seed}"


def check_unicast(bench):
    """Every legal pair of a source and an output, one after the other."""
    ports = bench.ports
    rng = random.Random(SEED)
    pairs = [(source, output) for output in ports.outputs for source in ports.sources(output)]
    assert len(pairs) == 4 * ports.tracks * (3 + ports.unit_outputs + ports.unit_inputs)
    for source, output in pairs:
        items = packets(rng, [1, 3, 2])
        traffic = Traffic(bench.program({output: source}), {(0, source): items}, stall=0.3)
        seen = bench.run(traffic, cycles=30)
        assert seen.payloads() == {(0, output): items}, f"{source} to {output}"


def test_unicast_through_every_legal_pair(bench):
    check_unicast(bench)


def test_unicast_through_the_least_switch():
    least = SwitchPorts(tracks=1, unit_outputs=0, unit_inputs=1, link_turns=1, unit_turns=1)
    check_unicast(Bench(Mesh({0: switch(least)})))


MULTICASTS = {
    "two": [Link(EAST, 0), Link(WEST, 0)],
    "three": [Link(NORTH, 0), Link(EAST, 0), Link(SOUTH, 0)],
    "four": [Link(NORTH, 0), Link(EAST, 0), Link(SOUTH, 0), Link(WEST, 0)],
}


@pytest.mark.few(3)
@pytest.mark.parametrize("branches", MULTICASTS.values(), ids=MULTICASTS)
def test_multicast_reaches_each_branch_once_and_in_order(bench, branches, draws):
    check_multicast(bench, branches, range(SEED, SEED + draws(1, 4)))


def test_multicast_to_links_and_unit(bench):
    source = Link(WEST, 0)
    branches = [Link(EAST, 0), Link(NORTH, 0), UnitPort(0), UnitPort(1)]
    items = packets(random.Random(SEED), [7, 5, 3])
    traffic = Traffic(
        bench.program(dict.fromkeys(branches, source)), {(0, source): items}, stall=0.6
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
        one.program(routes),
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


def test_one_payload_a_cycle_and_one_cycle_a_hop_on_every_track_at_once(bench):
    ports = bench.ports
    count = 50
    routes, sends = {}, {}
    for track in range(ports.tracks):
        for side in (NORTH, EAST, SOUTH, WEST):
            routes[Link(side.opposite, track)] = Link(side, track)
            sends[0, Link(side, track)] = packets(random.Random(track), [count])
    # The unit's inputs ride along as branches of some of them.
    for index in range(ports.unit_inputs):
        routes[UnitPort(index)] = Link(WEST, index % ports.tracks)
    seen = bench.run(Traffic(bench.program(routes), sends), cycles=count + 5)
    for source in sends:
        assert seen.accepted[source] == list(range(count))
    for output in routes:
        assert seen.cycles((0, output)) == list(range(1, count + 1))


def test_tokens_are_packets_of_their_own(tokens):
    turns = [(Link(WEST, 1), 2), (UnitPort(1), 1)]
    routes = tokens.program({Link(EAST, 1): turns, UnitPort(0): Link(WEST, 1)})
    for west, unit in [(3, 0), (3, 1), (0, 4), (6, 2), (5, 9), (1, 1)]:
        sends = {(0, Link(WEST, 1)): [0] * west, (0, UnitPort(1)): [0] * unit}
        expected = mirror.run(routes, {}, sends, tokens=True).payloads
        seen = tokens.run(Traffic(routes, sends, idle=0.3, stall=0.3), cycles=80)
        assert seen.payloads() == expected, f"{west} and {unit}"


def test_tokens_keep_the_rate_of_vectors(tokens):
    routes = tokens.program({Link(NORTH, 0): UnitPort(0), Link(SOUTH, 0): UnitPort(0)})
    seen = tokens.run(Traffic(routes, {(0, UnitPort(0)): [0] * 20}), cycles=25)
    assert seen.cycles((0, Link(NORTH, 0))) == list(range(1, 21))
    assert seen.cycles((0, Link(SOUTH, 0))) == list(range(1, 21))
