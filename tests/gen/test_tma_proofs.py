"""Proofs of the TMA engine that take seconds; tests/must/test_tma_proved.py has all of them."""

import dataclasses

import pytest

from gen.formal import prove
from gen.properties.tma import TMA_PROPERTIES
from gen.properties.tma.box_times import LoadsEnd, StoresEnd, TimeBound
from tests.gen.planted_tma import PLANTED, refuted
from tests.slow_cases import quick_first

#: Proved, or checked to their bound, within seconds.
QUICK = [*TMA_PROPERTIES[:2], *(e for e in TMA_PROPERTIES if e.parameters.get("stall") == 0)]
LOADED, STORED = QUICK[2:]


@pytest.mark.parametrize(
    "property", quick_first([QUICK[1], LOADED, QUICK[0], STORED], 2), ids=lambda each: each.name
)
def test_each_holds_and_its_covers_are_reached(property):
    proof = prove(property)
    assert proof.met and proof.reached == proof.covers >= 2


@pytest.mark.slow
@pytest.mark.parametrize("property", [LOADED, STORED], ids=["loaded", "stored"])
def test_the_bound_less_one_cycle_is_refuted(property):
    sizes = {name: value for name, value in property.parameters.items() if name != "stall"}
    most = sizes.pop("beats")
    harness = LoadsEnd if property is LOADED else StoresEnd
    bound = TimeBound(fixed=7, stalls=0, stall=0)
    assert refuted(
        dataclasses.replace(property, harness=lambda: harness(**sizes, most=most, bound=bound))
    )


@pytest.mark.parametrize("fault", quick_first(sorted(PLANTED), 2))
def test_a_planted_fault_is_found(fault, monkeypatch):
    assert refuted(PLANTED[fault].plant(monkeypatch))
