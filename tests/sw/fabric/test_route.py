"""Routing: typical programs fit, rotations are kept, and what does not fit is named."""

import dataclasses
import random

import pytest

from hw.arch.config import ChipConfig, named
from hw.arch.ports import Direction, Link, UnitPort
from sw.fabric.assemble import assemble
from sw.fabric.place import place
from sw.fabric.rotation import partitions
from sw.fabric.route import RouteError, place_and_route, route
from tests.hw.mesh import mirror
from tests.sw.fabric.netlists import (
    gemm_1x8,
    gemm_4x2,
    gemm_6x3,
    net,
    netlist,
    random_netlist,
)

SMALL, LARGE, TINY = named["small"], named["large"], named["tiny"]


STEPS = {
    Direction.NORTH: (-1, 0),
    Direction.EAST: (0, 1),
    Direction.SOUTH: (1, 0),
    Direction.WEST: (0, -1),
}
#: Row and side of each AGCU.
AGCUS = {
    "tiny": [(0, Direction.WEST)],
    "small": [(0, Direction.WEST), (0, Direction.EAST)],
    "large": [(0, Direction.WEST), (0, Direction.EAST), (3, Direction.WEST), (3, Direction.EAST)],
}


def run_switches(program, tiles, chip, agcus, *, tokens, rounds=3):
    """Run the switches of a chip with buffers of two entries; each packet is its source's number.

    Returns what each sink got, what each should have got of so many rotations, and the packets
    that are stuck.
    """
    switches = {at: tile.tokens if tokens else tile.vectors for at, tile in chip.tiles.items()}
    wires = {}
    for (row, column), switch in switches.items():
        for link in (each.output for each in switch.outputs if isinstance(each.output, Link)):
            down, right = STEPS[link.direction]
            beyond = (row + down, column + right)
            if beyond in switches:
                wires[(row, column), link] = (beyond, Link(link.direction.opposite, link.track))

    def spot(end):
        if end.unit in tiles:
            return tiles[end.unit], UnitPort(end.port)
        row, side = agcus[program.fixed[end.unit]]
        return (row, 0 if side == Direction.WEST else chip.config.columns - 1), Link(side, end.port)

    nets = [each for each in program.nets if each.tokens == tokens]
    sent, wanted = {}, {}
    for each in nets:
        numbers = [
            (100 * nets.index(each) + turn, end, packets)
            for turn, (end, packets) in enumerate(each.sources)
        ]
        for number, end, packets in numbers:
            sent[spot(end)] = [number] * (packets * rounds)
        rotation = [number for number, _, packets in numbers for _ in range(packets)]
        wanted |= {spot(sink): rotation * rounds for sink in each.sinks}
    outcome = mirror.run(switches, wires, sent, tokens=True)
    return outcome.payloads, wanted, outcome.left


def check(program, placement, routes, config, agcus):
    chip = assemble(program, placement, routes, config)
    for tokens in (False, True):
        got, wanted, left = run_switches(program, placement.tiles, chip, agcus, tokens=tokens)
        assert got == wanted and left == 0
    return chip


@pytest.mark.parametrize(
    ("make", "name", "tracks"),
    [
        (gemm_4x2, "small", 3),
        (gemm_4x2, "small", 2),
        (gemm_1x8, "small", 3),
        (gemm_1x8, "small", 2),
        (gemm_6x3, "large", 3),
    ],
)
def test_products_route_at_their_first_placement(make, name, tracks, seed):
    config = dataclasses.replace(named[name], tracks=tracks)
    program = make()
    placement = place(program, config, seed=seed)
    routes = route(program, placement, config, seed=seed)
    check(program, placement, routes, config, AGCUS[name])


@pytest.mark.few(2)
@pytest.mark.parametrize(("name", "nets"), [("tiny", 6), ("small", 12), ("large", 25)])
def test_random_netlists_are_delivered_packet_by_packet(name, nets, seed, draws):
    print("seed", seed)
    config = named[name]
    routed, count = 0, draws(3, 6)
    for number in range(count):
        program = random_netlist(random.Random(seed + number), config, nets=nets)
        try:
            placement, routes = place_and_route(program, config, seed=seed)
        except RouteError as error:
            assert error.rule == "tracks = 3" or "must have a tree" in error.message
            continue
        routed += 1
        check(program, placement, routes, config, AGCUS[name])
    # Random nets fill the links, but most of these fit.
    assert routed >= 2 * count // 3


def test_equal_seeds_give_equal_routes():
    program = gemm_1x8()
    placement = place(program, SMALL, seed=1)
    routes = [route(program, placement, SMALL, seed=seed) for seed in (7, 7, 8)]
    assert routes[0] == routes[1] != routes[2]


def test_every_output_is_of_one_net():
    program = gemm_4x2()
    _, routes = place_and_route(program, SMALL, seed=2)
    assert routes.vectors.keys() | routes.tokens.keys() == {each.name for each in program.nets}
    for nets in (routes.vectors, routes.tokens):
        used = [(hop.place, hop.program.output) for hops in nets.values() for hop in hops]
        assert len(set(used)) == len(used)
    links = sum(
        isinstance(hop.program.output, Link)
        for nets in (routes.vectors, routes.tokens)
        for hops in nets.values()
        for hop in hops
    )
    assert routes.wirelength == links < 80


@pytest.mark.parametrize(
    ("packets", "turns", "one_sink", "cuts"),
    [
        ([1], 4, True, [((0,),)]),
        ([15, 15, 15, 15], 4, True, [((0, 1, 2, 3),)]),
        ([15, 15, 15, 15, 15], 4, True, []),
        # A link merges three runs at most, so four meet at the sinks alone.
        ([15, 15, 15, 15], 4, False, [((0,), (1,), (2,), (3,))]),
        ([15, 15, 15, 15], 3, False, []),
        ([5, 5, 5, 5], 4, False, [((0, 1, 2, 3),), ((0, 1, 2), (3,)), ((0,), (1,), (2,), (3,))]),
        ([3] * 5, 4, False, [((0, 1, 2, 3, 4),)]),
    ],
)
def test_rotations_are_cut_into_runs(packets, turns, one_sink, cuts):
    assert partitions(packets, turns, one_sink=one_sink) == cuts


@pytest.mark.parametrize("packets", [1, 4, 15])
def test_four_sources_for_many_sinks(packets):
    """Merged once upstream if a turn can count them, else at every sink."""
    nets = [net("x", [(f"m{i}.0", packets) for i in range(4)], [f"c{i}.0" for i in range(6)])]
    program = netlist(nets, agcus=2)
    placement, routes = place_and_route(program, SMALL, seed=4)
    check(program, placement, routes, SMALL, AGCUS["small"])
    merges = [hop for hop in routes.vectors["x"] if len(hop.program.rotation) > 1]
    at_sinks = [hop for hop in merges if isinstance(hop.program.output, UnitPort)]
    if packets == 15:
        assert merges == at_sinks and len(at_sinks) == 6
    else:
        assert not at_sinks


def test_a_run_that_meets_others_at_the_sinks_is_merged_before_them():
    # c1 and g0 merge beside c3, which must not take their merge apart again.
    nets = [net("x", [("c1.0", 1), ("g0.0", 8), ("g1.1", 15)], ["m4.0", "c3.2"])]
    program = netlist(nets, agcus=2)
    pins = {"c1": (0, 2), "c3": (0, 0), "m4": (0, 1)}
    placement, routes = place_and_route(program, SMALL, seed=1, pins=pins)
    check(program, placement, routes, SMALL, AGCUS["small"])


def test_rotations_of_any_packets_are_kept(seed):
    """Counts near the limit of 15 a turn: merged early, late, at the sinks, or refused."""
    print("seed", seed)
    rng = random.Random(seed)
    routed = 0
    for _ in range(60):
        outputs = ["g0.0", "g1.0", "g1.1", *(f"c{i}.0" for i in range(3)), "m0.0", "m1.1"]
        inputs = [*(f"c{i}.{p}" for i in (3, 4) for p in (0, 2)), "m4.0", "m5.1"]
        sources = [(each, rng.choice([1, 4, 8, 15])) for each in rng.sample(outputs, 5)]
        nets = [net("x", sources[: rng.randint(2, 5)], rng.sample(inputs, rng.randint(1, 4)))]
        program = netlist(nets, agcus=2)
        placement = place(program, SMALL, seed=seed)
        try:
            routes = route(program, placement, SMALL, seed=seed)
        except RouteError as error:
            assert "must have a tree" in error.message or "must be a rotation" in error.message
            continue
        routed += 1
        check(program, placement, routes, SMALL, AGCUS["small"])
    assert routed >= 40


def test_a_rotation_that_no_tree_keeps_is_refused_by_name():
    program = netlist([net("x", [(f"c{i}.0", 15) for i in range(5)], ["m0.0"])], agcus=2)
    with pytest.raises(RouteError, match="Net `x` must be a rotation of at most 4 runs of at most"):
        place_and_route(program, SMALL, seed=1)


def test_a_unit_feeds_itself_over_its_neighbours():
    program = netlist([net("x", ["m0.0"], ["m0.1"])], agcus=2)
    placement, routes = place_and_route(program, SMALL, seed=1)
    check(program, placement, routes, SMALL, AGCUS["small"])
    assert routes.wirelength == 4


def test_sinks_on_two_tracks_have_a_tree_each():
    nets = [net("x", ["m0.0", "m1.0"], ["g0.0", "g1.1"], tokens=True)]
    program = netlist(nets, agcus=2)
    placement, routes = place_and_route(program, SMALL, seed=1)
    check(program, placement, routes, SMALL, AGCUS["small"])


def test_streams_of_an_agcu_on_two_tracks_meet_at_the_sinks():
    nets = [net("x", ["g0.0", "g0.1"], ["c0.0", "c1.0"])]
    program = netlist(nets, agcus=2)
    placement, routes = place_and_route(program, SMALL, seed=1)
    check(program, placement, routes, SMALL, AGCUS["small"])


def crossing():
    """Two multicasts over a fabric of one row and one track, against each other."""
    nets = [
        net("right", ["m0.0"], ["c0.0", "c1.0", "c2.0"]),
        net("other", ["m1.0"], ["c0.1", "c1.1", "c2.1"]),
    ]
    return netlist(nets, agcus=0)


def test_what_does_not_fit_is_named_with_the_tracks_there_are():
    row = ChipConfig(rows=1, columns=5, tracks=1, pattern="mmccc")
    with pytest.raises(RouteError) as caught:
        place_and_route(crossing(), row, seed=1)
    assert str(caught.value) == (
        "Routes must fit the 1 tracks of a fabric of 1 × 5, not need more: nets `right`, `other` "
        "are left with links in common, in each of 5 placements"
    )
    assert caught.value.value == ["right", "other"] and caught.value.rule == "tracks = 1"
    place_and_route(crossing(), dataclasses.replace(row, tracks=2), seed=1)


def test_a_net_without_a_tree_is_named():
    # One track from the west can carry m0 and m2 only one after the other, but m1 is between.
    row = ChipConfig(rows=1, columns=4, tracks=1, pattern="mmcm")
    pins = {"m0": (0, 0), "m2": (0, 1), "c0": (0, 2), "m1": (0, 3)}
    program = netlist([net("x", ["m0.0", "m1.0", "m2.0"], ["c0.0"])], agcus=0)
    with pytest.raises(RouteError, match="Net `x` must have a tree from `m0` 0, `m1` 0, `m2` 0 to"):
        place_and_route(program, row, seed=1, pins=pins)
    in_order = netlist([net("x", ["m0.0", "m2.0", "m1.0"], ["c0.0"])], agcus=0)
    placement, routes = place_and_route(in_order, row, seed=1, pins=pins)
    check(in_order, placement, routes, row, [])
