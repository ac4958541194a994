"""tma-g: what is proved of barriers and TMA engine, what is checked to a bound; faults refuted."""

import dataclasses

import pytest

from gen.formal import prove
from gen.proof import Outcome
from gen.properties.tma import TMA_PROPERTIES
from gen.properties.tma.box_times import TimeBound
from hw.arch.limits import BARRIER_ARRIVALS, BARRIER_TX_BYTES
from hw.tma.barriers import barrier_bank
from tests.gen.planted_tma import PLANTED, refuted, tma_properties
from tests.gen.test_axi_proofs import PROVED as AXI
from tests.gen.test_bank_proof import PLANTED as BANK_FAULTS
from tests.gen.test_bank_proof import SMALL, WIDE, plant

_PROVED = [each for each in tma_properties() if each.method != "bounded"]
_BOUNDED = [each for each in TMA_PROPERTIES if each.method == "bounded"]


def _named(property):
    return "-".join([property.name.replace(" ", "_"), *map(str, property.parameters.values())])


def _at(property):
    return ", ".join(f"{name} {value}" for name, value in property.parameters.items())


@pytest.mark.slow
@pytest.mark.must("tma-g", goal="proved without bound: barriers, responses, addresses, AXI4 rules")
@pytest.mark.parametrize("property", _PROVED, ids=_named)
def test_each_property_is_proved_without_a_bound(property, figure):
    proof = prove(property)
    assert proof.outcome is Outcome.PROVED and proof.met
    assert proof.reached == proof.covers >= 2
    figure(f"{property.name}: {property.method} at {_at(property)}, {proof.seconds:.0f} s")


@pytest.mark.slow
@pytest.mark.must("tma-g", goal="bounded: a box of n beats ends within a + n(b + c s)")
@pytest.mark.parametrize("property", _BOUNDED, ids=_named)
def test_what_pdr_leaves_open_holds_in_every_trace_of_so_many_cycles(property, figure):
    proof = prove(property)
    assert proof.outcome is Outcome.BOUNDED and not proof.proved and proof.met
    assert proof.reached == proof.covers >= 2
    figure(f"{property.name}: bounded to {property.cycles} cycles at {_at(property)}")


@pytest.mark.must("tma-g", goal="the linear bound has the form a + n(b + c s)")
@pytest.mark.parametrize(("stalls", "c"), [(2, 3), (3, 4)])
def test_the_bound_has_the_form_that_is_asked_for(stalls, c, figure):
    for stall in range(20):
        bound = TimeBound(fixed=8, stalls=stalls, stall=stall)
        assert all(bound.cycles(n) <= 8 + n * (1 + c * stall) for n in range(1, 20))
        assert bound.cycles(1) == 8 + (1 + c * stall)
    figure(f"a = 8, b = 1, c = {c}")


@pytest.mark.slow
@pytest.mark.must("tma-g", goal="each property has a counterexample with a planted fault")
@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_of_the_engine_has_a_counterexample(fault, figure, monkeypatch):
    assert refuted(PLANTED[fault].plant(monkeypatch))
    figure(f"{len(PLANTED)} faults of the engine, each refuted by a trace")


@pytest.mark.slow
@pytest.mark.must("tma-g", goal="each property of the barriers has one as well")
@pytest.mark.parametrize("fault", BANK_FAULTS)
def test_a_planted_fault_of_the_barriers_has_a_counterexample(fault, figure, monkeypatch):
    monkeypatch.setattr(barrier_bank, "barrier_step", plant(BANK_FAULTS[fault]))
    proof = prove(dataclasses.replace(SMALL, faults=0))
    assert proof.outcome is Outcome.COUNTEREXAMPLE
    figure(f"{len(BANK_FAULTS)} faults of the bank, each refuted by a trace")


@pytest.mark.must("tma-g", goal="no property without a fault; the barriers at full width")
def test_every_property_has_a_fault_and_the_barriers_are_as_wide_as_they_can_be(figure):
    planted = {each.property for each in PLANTED.values()} | {SMALL.name}
    injected = {each.name for each in tma_properties() if each.faults}
    axi = {each.name for each in AXI}
    assert {each.name for each in tma_properties()} == planted | injected | axi
    assert WIDE.parameters["arrivals"] == BARRIER_ARRIVALS.high == (1 << 20) - 1
    assert WIDE.parameters["tx_bytes"] == BARRIER_TX_BYTES.high == (1 << 20) - 1
    figure(f"{len(planted | injected | axi)} properties")
