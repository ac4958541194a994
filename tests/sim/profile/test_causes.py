"""Causes of cycles in chains of units whose states are given."""

import numpy as np
import pytest

from sim.profile.causes import Cause, attribute, whole_cycles
from sim.profile.findings import find
from sim.profile.intervals import Intervals, merged
from sim.profile.unit_graph import UnitGraph

LOAD = ("agcu_0", "pmu_0_1", "pcu_0_0", "pmu_1_0", "agcu_1")


def graph(slots=4, again=True):
    """A load through a buffer, a PCU and a second buffer to a store."""
    pairs = list(zip(LOAD, LOAD[1:], strict=False))
    return UnitGraph(
        suppliers={name: tuple(a for a, b in pairs if b == name) for name in LOAD},
        consumers={name: tuple(b for a, b in pairs if a == name) for name in LOAD},
        credits={name: ("pmu_0_1",) if name == "agcu_0" else () for name in LOAD},
        slots={"pmu_0_1": slots, "pmu_1_0": 4},
        refilled=frozenset({"pmu_0_1", "pmu_1_0"} if again else ()),
        loads=frozenset({"agcu_0"}),
        stores=frozenset({"agcu_1"}),
    )


def causes(states, slots=4, owed=0, again=True):
    """Causes of ten cycles with the same states, those of a unit as busy, input, room, idle."""
    memory = {"agcu_0": np.array([[owed, 0]])} if owed else {}
    counts = {name: np.array([each]) for name, each in zip(LOAD, states, strict=True)}
    return attribute(graph(slots, again), Intervals(np.array([0, 10]), counts, memory))


def test_a_chain_of_waits_for_input_ends_at_memory():
    waits = (2, 8, 0, 0)
    found = causes([waits, waits, waits, waits, waits], owed=8)
    assert found["pcu_0_0"][Cause("memory", "agcu_0")] == pytest.approx(6.4, abs=1.7)
    assert max(found["pcu_0_0"], key=found["pcu_0_0"].get) == Cause("memory", "agcu_0")
    assert max(found["agcu_1"], key=found["agcu_1"].get) == Cause("memory", "agcu_0")


def test_a_chain_of_waits_for_room_ends_at_the_unit_that_works():
    found = causes([(2, 0, 8, 0), (2, 0, 8, 0), (10, 0, 0, 0), (2, 8, 0, 0), (2, 8, 0, 0)])
    assert found["agcu_0"] == pytest.approx({Cause("busy"): 2, Cause("unit", "pcu_0_0"): 8})
    assert found["agcu_1"] == pytest.approx({Cause("busy"): 2, Cause("unit", "pcu_0_0"): 8})


def test_a_full_port_is_named():
    found = causes([(10, 0, 0, 0), (5, 5, 0, 0), (5, 5, 0, 0), (5, 5, 0, 0), (5, 5, 0, 0)])
    assert found["pcu_0_0"][Cause("port", "agcu_0")] == pytest.approx(5)


def test_a_buffer_of_one_slot_is_what_holds():
    states = [(5, 0, 5, 0), (5, 5, 0, 0), (5, 5, 0, 0), (5, 5, 0, 0), (5, 5, 0, 0)]
    assert causes(states, slots=1)["pcu_0_0"][Cause("slots", "pmu_0_1")] == pytest.approx(5)
    assert causes(states, slots=2)["pcu_0_0"][Cause("port", "agcu_0")] > 2


def test_late_data_of_a_slot_that_is_filled_once_are_late_memory():
    waits = (0, 10, 0, 0)
    states = [waits, waits, waits, waits, waits]
    assert causes(states, slots=1, owed=10)["pcu_0_0"] == {Cause("slots", "pmu_0_1"): 10}
    once = causes(states, slots=1, owed=10, again=False)["pcu_0_0"]
    assert once == {Cause("memory", "agcu_0"): 10}


def test_what_is_left_behind_the_last_vector_are_answers_of_memory():
    done, answers = (0, 0, 0, 10), (0, 8, 0, 2)
    found = causes([done, done, done, done, answers])["pcu_0_0"]
    assert found == pytest.approx({Cause("memory", "agcu_1"): 8, Cause("done"): 2})


def test_units_that_wait_for_each_other_without_a_buffer_wait_for_their_pipelines():
    pair = {"pcu_0_0": ("pcu_1_1",), "pcu_1_1": ("pcu_0_0",)}
    nobody = dict.fromkeys(pair, ())
    ring = UnitGraph(pair, pair, nobody, {}, frozenset(), frozenset(), frozenset())
    waits = {name: np.array([[0, 10, 0, 0], [1, 9, 0, 0]]) for name in pair}
    found = attribute(ring, Intervals(np.array([0, 10, 20]), waits, {}))["pcu_0_0"]
    assert {cause.kind for cause in found} == {"busy", "unit"}


def test_units_without_a_program_are_off():
    off = Intervals(np.array([0, 10]), {"pcu_3_3": np.array([[0, 0, 0, 10]])}, {})
    assert attribute(graph(), off) == {"pcu_3_3": {Cause("off"): 10}}


def test_idle_is_a_wait_before_the_last_work_and_an_end_behind_it():
    edges = np.array([0, 10, 20, 30])
    counts = {name: np.array([[5, 5, 0, 0]] * 3) for name in LOAD}
    counts["pcu_0_0"] = np.array([[0, 0, 0, 10], [10, 0, 0, 0], [0, 0, 0, 10]])
    found = attribute(graph(), Intervals(edges, counts, {}))["pcu_0_0"]
    assert found[Cause("busy")] == 10
    # The store still works for half of the last interval.
    assert found[Cause("done")] == 5 and found[Cause("port", "agcu_1")] >= 5
    assert sum(found.values()) == pytest.approx(30)


def test_every_chain_sums_to_the_cycles(seed):
    rng = np.random.default_rng(seed)
    for _ in range(200):
        states = [rng.multinomial(10, rng.dirichlet([0.5] * 4)) for _ in LOAD]
        found = causes(states, slots=int(rng.integers(1, 3)), owed=int(rng.integers(0, 11)))
        for unit in LOAD:
            assert sum(found[unit].values()) == pytest.approx(10)
            assert sum(whole_cycles(found[unit], 10).values()) == 10


def test_rounding_keeps_the_sum_and_the_order():
    shares = {Cause("busy"): 3.4, Cause("memory", "agcu_0"): 3.3, Cause("done"): 3.3}
    assert whole_cycles(shares, 10) == {
        Cause("busy"): 4,
        Cause("memory", "agcu_0"): 3,
        Cause("done"): 3,
    }


def test_joined_intervals_keep_their_sums():
    counts = np.arange(40).reshape(10, 4)
    own = Intervals(np.arange(11), {"pcu_0_0": counts}, {"agcu_0": counts[:, :2]})
    found = merged(own, 3)
    assert found.edges.tolist() == [0, 4, 8, 10]
    assert found.states["pcu_0_0"].sum(axis=0).tolist() == counts.sum(axis=0).tolist()
    assert found.memory["agcu_0"].sum() == counts[:, :2].sum()


def test_findings_are_in_the_order_of_cycles_and_work_comes_before_small_waits():
    kinds = {"pcu_0_0": "pcu", "agcu_0": "agcu"}
    waits = {Cause("busy"): 20, Cause("memory", "agcu_0"): 60, Cause("launch"): 20}
    found = find({"pcu_0_0": waits, "agcu_0": {Cause("busy"): 30}}, kinds, 100)
    assert [each["cause"] for each in found] == ["memory", "busy", "launch"]
    assert [each["by"] for each in found] == ["agcu_0", "agcu_0", ""]
    assert "60%" in found[0]["text"] and found[0]["advice"]
    full = {"pcu_0_0": {Cause("busy"): 90, Cause("done"): 10}}
    assert [each["cause"] for each in find(full, kinds, 100)] == ["busy", "done"]
    assert find({"pcu_0_0": {Cause("off"): 100}}, kinds, 100) == []


def test_waits_of_one_kind_are_one_finding_that_names_who_holds_most():
    kinds = dict.fromkeys(("pcu_0_0", "pcu_1_1"), "pcu")
    waits = [
        {Cause("busy"): 40, Cause("port", "agcu_0"): 30, Cause("done"): 30},
        {Cause("busy"): 40, Cause("port", "agcu_1"): 35, Cause("done"): 25},
    ]
    first, *_ = find(dict(zip(kinds, waits, strict=True)), kinds, 100)
    assert (first["cause"], first["by"], first["cycles"]) == ("port", "agcu_1", 32.5)
    assert "agcu_1, agcu_0 move other data" in first["text"]


@pytest.mark.parametrize(("slots", "first"), [(10, "busy"), (11, "slots")])
def test_work_comes_before_waits_in_up_to_a_tenth_of_the_cycles(slots, first):
    own = {Cause("busy"): 80, Cause("slots", "pmu_0_1"): slots, Cause("done"): 5}
    own[Cause("launch")] = 15 - slots
    assert find({"pcu_0_0": own}, {"pcu_0_0": "pcu"}, 100)[0]["cause"] == first


@pytest.mark.parametrize(("launch", "first"), [(45, "busy"), (55, "launch")])
def test_work_comes_before_a_launch_that_is_shorter(launch, first):
    own = {Cause("busy"): 100 - launch, Cause("launch"): launch}
    assert find({"pcu_0_0": own}, {"pcu_0_0": "pcu"}, 100)[0]["cause"] == first


@pytest.mark.parametrize(("pcu", "named"), [(80, "agcu_0"), (96, "pcu_0_0")])
def test_a_port_is_the_busiest_unit_unless_a_pcu_is_at_its_bound(pcu, named):
    own = {
        "pcu_0_0": {Cause("busy"): pcu, Cause("done"): 100 - pcu},
        "agcu_0": {Cause("busy"): 98, Cause("done"): 2},
    }
    work = [
        each
        for each in find(own, {"pcu_0_0": "pcu", "agcu_0": "agcu"}, 100)
        if each["cause"] == "busy"
    ]
    assert [each["by"] for each in work] == [named]
    at_bound = "no other PCU is busy for longer, but agcu_0 moves data in 98%"
    assert (at_bound in work[0]["text"]) == (pcu == 96)
    assert ("no other PCU or AGCU is busy for longer" in work[0]["text"]) == (pcu == 80)


@pytest.mark.parametrize(
    ("busy", "by_lanes", "words", "advice"),
    [
        (96, (), "the cells of pcu_0_0 work", "near its bound: only less work, a format of fewer"),
        (96, ("pcu_0_0",), "the lanes of pcu_0_0 work", "bound: only less work, more `lanes`"),
        (60, ("pcu_0_0",), "the lanes of pcu_0_0 work", "It takes less work, more `lanes`"),
    ],
    ids=["cells", "lanes", "not at its bound"],
)
def test_advice_about_work_is_that_of_cells_or_of_lanes(busy, by_lanes, words, advice):
    own = {"pcu_0_0": {Cause("busy"): busy, Cause("done"): 100 - busy}}
    (work,) = [
        each for each in find(own, {"pcu_0_0": "pcu"}, 100, by_lanes) if each["cause"] == "busy"
    ]
    assert words in work["text"] and advice in work["advice"]


def test_halves_of_a_percent_are_rounded_up_as_on_the_page():
    own = {"pcu_0_0": {Cause("busy"): 1750, Cause("slots", "pmu_0_1"): 250}}
    found = find(own, {"pcu_0_0": "pcu"}, 2000)
    assert [each["text"].split()[1] for each in found] == ["13%", "88%"]
