"""Placement: units on tiles of their kind, seeds, pins, and what is refused."""

import dataclasses
import random

import pytest

from hw.arch import unit_kind
from hw.arch.config import named
from hw.arch.errors import BadInputError
from sw.fabric.place import _annealed, place
from sw.netlist import Netlist
from tests.sw.fabric.netlists import AGCU, PCU, PMU, gemm_4x2, gemm_6x3, net, netlist

SMALL, LARGE, TINY = named["small"], named["large"], named["tiny"]


@pytest.mark.parametrize(("make", "config"), [(gemm_4x2, SMALL), (gemm_6x3, LARGE)])
def test_each_unit_has_a_tile_of_its_kind(make, config, seed):
    program = make()
    tiles = place(program, config, seed=seed).tiles
    assert tiles.keys() == program.units.keys() - program.fixed.keys()
    assert len(set(tiles.values())) == len(tiles)
    for name, (row, column) in tiles.items():
        assert config.unit_at(row, column) is (
            unit_kind.PCU if name.startswith("c") else unit_kind.PMU
        )


def test_equal_seeds_give_equal_placements_and_others_do_not():
    program = gemm_4x2()
    found = []
    for seed in (1, 1, 2, 3, 4):
        # Each is annealed, none is remembered.
        _annealed.cache_clear()
        found.append(tuple(place(program, SMALL, seed=seed).tiles.items()))
    assert found[0] == found[1]
    assert len(set(found)) == 4


def test_what_is_remembered_is_the_placement_of_the_same_nets_chip_and_pins():
    program, first = gemm_4x2(), place(gemm_4x2(), SMALL, seed=1)
    assert place(gemm_4x2(packets=5), SMALL, seed=1) is first, "packets move no unit"
    pins = {"c0": first.tiles["c1"], "c1": first.tiles["c0"]}
    pinned = place(program, SMALL, seed=1, pins=pins)
    assert {name: pinned.tiles[name] for name in pins} == pins
    fewer = dataclasses.replace(program, nets=program.nets[1:])
    assert place(fewer, SMALL, seed=1).estimate < first.estimate
    assert place(program, LARGE, seed=1) is not first


def test_annealing_reaches_the_optimum_that_a_solver_proved():
    # CP-SAT needs 16 s to prove that no placement of this program has a lower estimate.
    assert min(place(gemm_4x2(), SMALL, seed=seed).estimate for seed in range(3)) == pytest.approx(
        44.8
    )


def test_annealing_is_better_than_chance():
    program = gemm_6x3()
    tiles = [(row, column) for row in range(6) for column in range(6)]
    kinds = {
        kind: [at for at in tiles if LARGE.unit_at(*at) is kind]
        for kind in (unit_kind.PCU, unit_kind.PMU)
    }
    rng = random.Random(5)
    pins = {}
    for name in sorted(program.units.keys() - program.fixed.keys()):
        free = kinds[unit_kind.PCU if name.startswith("c") else unit_kind.PMU]
        pins[name] = free.pop(rng.randrange(len(free)))
    by_chance = place(program, LARGE, seed=1, pins=pins)
    assert by_chance.tiles == pins
    assert place(program, LARGE, seed=1).estimate < 0.6 * by_chance.estimate


def test_pins_hold_and_the_rest_moves():
    pins = {"c0": (3, 3), "A0": (0, 1)}
    tiles = place(gemm_4x2(), SMALL, seed=3, pins=pins).tiles
    assert {name: tiles[name] for name in pins} == pins
    assert len(set(tiles.values())) == 16


def test_a_unit_without_nets_is_placed():
    program = Netlist({"alone": PCU, "store": PMU}, (), {})
    tiles = place(program, TINY, seed=1).tiles
    assert TINY.unit_at(*tiles["alone"]) is unit_kind.PCU
    assert TINY.unit_at(*tiles["store"]) is unit_kind.PMU


@pytest.mark.parametrize(
    ("pins", "message"),
    [
        ({"c00": (0, 0)}, "Pin must be of a PCU or PMU of the netlist, not of `c00`; did you mean"),
        ({"g0": (0, 0)}, "Pin must be of a PCU or PMU of the netlist, not of `g0`"),
        ({"c0": (4, 0)}, r"Pin of `c0` must be on the fabric of 4 × 4, not \(4, 0\)"),
        ({"c0": (0, 1)}, r"Pin of `c0` must be a PCU, not \(0, 1\), a PMU"),
        (
            {"c0": (0, 0), "c1": (0, 0)},
            r"Pins must be apart, not `c0` and `c1` at \(0, 0\)",
        ),
    ],
)
def test_pins_that_cannot_be_are_refused(pins, message):
    with pytest.raises(BadInputError, match=message):
        place(gemm_4x2(), SMALL, seed=1, pins=pins)


REFUSED = [
    (
        Netlist({f"c{i}": PCU for i in range(3)} | {f"m{i}": PMU for i in range(4)}, (), {}),
        "Units of the program must be on the chip, not 3 PCUs and 4 PMUs where it has 2 and 2",
    ),
    (
        Netlist({"g0": AGCU, "g1": AGCU}, (), {"g0": 0, "g1": 1}),
        "must be on the chip, not 2 AGCUs where it has 1",
    ),
    (Netlist({"g": AGCU}, (), {"g": 1}), "AGCU of `g` must be below the chip's 1, not 1"),
    (Netlist({"g": AGCU}, (), {}), "Number of AGCU `g` must be given"),
    (Netlist({"c": PCU}, (), {"c": 0}), "Number must be an AGCU's, not of `c`, a PCU"),
    (Netlist({"c": PCU}, (), {"d": 0}), "AGCU must be a unit of the netlist, not `d`"),
    (netlist([net("x", [], ["c0.0"])], agcus=1), "Net `x` must have sources, not none"),
    (netlist([net("x", ["c0.0"], [])], agcus=1), "Net `x` must have sinks, not none"),
    (
        netlist([net("x", ["c0.1"], ["m0.0"])], agcus=1),
        "Net `x` must use one of the 1 vector outputs of `c0`, not 1",
    ),
    (
        netlist([net("x", ["m0.0"], ["c0.3"])], agcus=1),
        "Net `x` must use one of the 3 vector inputs of `c0`, not 3",
    ),
    (
        netlist([net("x", ["g0.2"], ["c0.0"])], agcus=1),
        "Net `x` must use one of the 2 vector outputs of `g0`, not 2",
    ),
    (
        netlist([net("x", ["c0.0"], ["g0.0"], tokens=True)], agcus=1),
        "Token net `x` must use one of the 0 token outputs of `c0`, not 0",
    ),
    (
        netlist([net("x", ["m0.0"], ["g0.2"], tokens=True)], agcus=1),
        "Token net `x` must use one of the 2 token inputs of `g0`, not 2",
    ),
    (
        netlist([net("x", ["c0.0", "m0.0", "c0.0"], ["m1.0"])], agcus=1),
        "Net `x` must name a source once, not port 0 of `c0` 2 times",
    ),
    (
        netlist([net("x", [("c0.0", 16)], ["m1.0"])], agcus=1),
        "Net `x` must take 1 to 15 packets of port 0 of `c0`, not 16",
    ),
    (
        netlist([net("x", ["c0.0"], ["m1.0"]), net("y", ["c1.0"], ["m1.0"])], agcus=1),
        "Input port 0 of `m1` must be in one net once, not in `x` and `y`",
    ),
    (
        netlist([net("x", ["c0.0"], ["m1.0"]), net("x", ["c1.0"], ["m0.0"])], agcus=1),
        "Name of a net must be its own, not `x` of 2 nets",
    ),
    (
        netlist([net("x", ["g0.0"], ["g0.1"])], agcus=1),
        "Net `x` must join streams of AGCUs on one track, not 0 of `g0` and 1 of `g0`",
    ),
]


@pytest.mark.parametrize(("program", "message"), REFUSED, ids=[each[1][-24:] for each in REFUSED])
def test_netlists_that_no_placement_serves_are_refused(program, message):
    with pytest.raises(BadInputError) as caught:
        place(program, TINY, seed=1)
    assert message in str(caught.value) and caught.value.kind == "does-not-fit"


def test_a_net_of_an_unknown_unit_is_refused():
    program = netlist([net("x", ["c0.0"], ["m1.0"])], agcus=1)
    units = {"c0": PCU, "m10": PMU}
    with pytest.raises(BadInputError, match="not `m1`; did you mean 'm10'"):
        place(dataclasses.replace(program, units=units), TINY, seed=1)


def test_one_track_has_no_second_stream():
    program = netlist([net("x", ["g0.1"], ["c0.0"])], agcus=1)
    with pytest.raises(BadInputError, match="streams of AGCUs below the 1 tracks of the chip, not"):
        place(program, dataclasses.replace(TINY, tracks=1), seed=1)


def test_one_agcu_is_not_two_units():
    program = Netlist({"g": AGCU, "h": AGCU}, (), {"g": 1, "h": 1})
    with pytest.raises(BadInputError, match="AGCU 1 must be one unit, not `g` and `h`"):
        place(program, SMALL, seed=1)
