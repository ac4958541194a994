"""Long random legal traffic breaks no rule of the AXI4 checker; one wrong wire in it does."""

import random

import pytest

from hw.lib.axi_rules import AxiRule
from tests.hw.lib.axi_random_traffic import RandomTraffic, beat_lanes
from tests.hw.lib.axi_wires import play
from tests.slow_cases import quick_first

#: What every run of traffic has to contain, whatever its seed.
VARIED = (
    *(f"{channel} waits" for channel in ("aw", "w", "b", "ar", "r")),
    *("kind 0", "kind 1", "kind 2", "to the boundary", "data before their address"),
    *("responses out of order", "reads out of order", "reads interleaved"),
)
PORT = {"address_bits": 32, "id_bits": 2, "reads": 6, "writes": 5, "early_beats": 24}


@pytest.mark.parametrize(
    ("data_bits", "port"),
    quick_first(
        [
            (8, PORT),
            (64, {"address_bits": 13, "id_bits": 3, "reads": 2, "writes": 4, "early_beats": 3}),
            (32, {"address_bits": 8, "id_bits": 5, "reads": 16, "writes": 8, "early_beats": 300}),
            *((8 << step, PORT) for step in range(1, 8)),
        ],
        2,
    ),
)
def test_legal_traffic_breaks_no_rule(data_bits, port, seed):
    traffic = RandomTraffic(random.Random(seed), data_bits=data_bits, **port)
    found = play(traffic.cycles(2500), data_bits=data_bits, **port)
    assert not any(found), next((n, rules) for n, rules in enumerate(found) if rules)
    lacking = {name for name in VARIED if not traffic.seen[name]}
    assert lacking <= ({"to the boundary"} if port["address_bits"] < 12 else set())
    assert traffic.seen["unaligned"] or data_bits == 8


def drop_valid(channel):
    """The first offer that waits, after a while, is withdrawn."""

    def change(cycles):
        for before, now in zip(cycles[1000:], cycles[1001:]):
            if before.get(f"{channel}valid") and not before[f"{channel}ready"]:
                now[f"{channel}valid"] = 0
                return

    return change


def change_wire(channel, name, value):
    """One wire of one transfer has another value, from its first offer on."""

    def change(cycles):
        at = 1000
        while cycles[at - 1].get(f"{channel}valid") or not cycles[at].get(f"{channel}valid"):
            at += 1
        for wires in cycles[at:]:
            wires[name] = value(wires[name])
            if wires[f"{channel}ready"]:
                return

    return change


@pytest.mark.parametrize(
    ("change", "rule"),
    quick_first(
        [
            (change_wire("aw", "awlen", lambda length: length ^ 1), AxiRule.W_LAST),
            (drop_valid("r"), AxiRule.R_HELD),
            *((drop_valid(name), AxiRule[f"{name.upper()}_HELD"]) for name in ("aw", "w", "ar")),
            (change_wire("w", "wlast", lambda last: 1 - last), AxiRule.W_LAST),
            (change_wire("r", "rlast", lambda last: 1 - last), AxiRule.R_LAST),
            (change_wire("ar", "arburst", lambda _: 3), AxiRule.AR_BURST),
            (change_wire("aw", "awcache", lambda _: 4), AxiRule.AW_CACHE),
            (change_wire("ar", "arlen", lambda length: length ^ 1), AxiRule.R_LAST),
        ],
        2,
    ),
)
def test_one_wrong_wire_in_it_is_found(change, rule, seed):
    traffic = RandomTraffic(random.Random(seed), data_bits=64, **PORT)
    cycles = list(traffic.cycles(2500))
    change(cycles)
    found = play(cycles, data_bits=64, **PORT)
    assert rule in set().union(*found)
    assert not any(found[:1000])


@pytest.mark.parametrize(
    ("burst", "lanes"),
    [
        # Published examples of narrow and unaligned transfers: IHI 0022E, A3.4.3.
        ((0x00, 5, 0, 1, 4), [0b0001, 0b0010, 0b0100, 0b1000, 0b0001]),
        ((0x04, 3, 2, 1, 8), [0xF0, 0x0F, 0xF0]),
        ((0x01, 4, 2, 1, 4), [0b1110, 0b1111, 0b1111, 0b1111]),
        ((0x07, 5, 2, 1, 4), [0b1000, 0b1111, 0b1111, 0b1111, 0b1111]),
        ((0x07, 4, 2, 1, 8), [0x80, 0x0F, 0xF0, 0x0F]),
        ((0x04, 4, 2, 2, 8), [0xF0, 0x0F, 0xF0, 0x0F]),
        ((0x03, 2, 0, 0, 4), [0b1000, 0b1000]),
    ],
)
def test_the_lanes_of_the_traffic_are_the_published_ones(burst, lanes):
    assert list(beat_lanes(*burst)) == lanes
