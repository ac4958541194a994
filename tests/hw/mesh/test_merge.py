"""Merges: whole packets in a fixed rotation, whatever comes first."""

import random

import pytest

from hw.arch.ports import Link, UnitPort
from tests.hw.mesh.bench import (
    EAST,
    NORTH,
    SOUTH,
    WEST,
    Traffic,
    packets,
    vector,
)

SEED = 20261120


MERGES = {
    "link of three": (Link(EAST, 0), [(UnitPort(0), 2), (Link(WEST, 0), 1), (Link(NORTH, 0), 3)]),
    "link of two": (Link(NORTH, 0), [(Link(SOUTH, 0), 15), (UnitPort(0), 1)]),
    "unit of four": (
        UnitPort(1),
        [(Link(SOUTH, 0), 1), (Link(NORTH, 0), 4), (Link(WEST, 0), 2), (Link(EAST, 0), 1)],
    ),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("case", MERGES.values(), ids=MERGES)
def test_merge_takes_whole_packets_in_the_same_order_whatever_the_timing(one, case, draws):
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
    for seed in range(draws(6, 20)):
        shape = random.Random(seed)
        traffic = Traffic(
            one.program({output: turns}),
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
    seen = one.run(Traffic(one.program({Link(EAST, 0): turns}), sends), cycles=30)
    assert seen.payloads() == {}
    assert len(seen.accepted[0, UnitPort(0)]) == 2


def test_merge_loses_no_cycle_between_packets(one):
    turns = [(Link(WEST, 0), 2), (Link(SOUTH, 0), 1), (UnitPort(0), 1)]
    rng = random.Random(SEED)
    sends = {
        (0, source): packets(rng, [1] * 4 * count + [2] * 4 * count) for source, count in turns
    }
    seen = one.run(Traffic(one.program({Link(EAST, 0): turns}), sends), cycles=60)
    assert seen.cycles((0, Link(EAST, 0))) == list(range(1, 49))
