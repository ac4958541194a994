"""Proofs of responses and addresses of the TMA engine; a planted fault of each is refuted."""

import pytest

from gen.formal import Property, prove
from gen.proof import Outcome
from gen.properties.tma import TMA_PROPERTIES, read_boxes, rows_inside, strobes
from hw.tma import box_reader, box_walker, load, realign, store
from tests.hw.tma.test_faults import mutant

#: Proved within seconds.
QUICK = TMA_PROPERTIES[:2]
BOXES, ROWS, STROBES, LANDS, REPORTED = TMA_PROPERTIES


@pytest.mark.parametrize(
    "property",
    [
        pytest.param(each, id=each.name, marks=() if each in QUICK else pytest.mark.slow)
        for each in TMA_PROPERTIES
    ],
)
def test_each_is_proved_and_its_covers_are_reached(property):
    proof = prove(property)
    assert proof.proved and proof.reached == proof.covers >= 3


def refuted(property):
    """Whether the same property ends in a counterexample, by PDR."""
    planted = Property("tma", "planted", property.parameters, property.harness, "PDR", 0)
    return prove(planted).outcome is Outcome.COUNTEREXAMPLE


@pytest.mark.parametrize(
    ("healthy", "faulty"),
    [
        # A bound that is one too far, and a coordinate of which the sign is lost.
        ("before.eq(-coordinate)", "before.eq(-coordinate - 1)"),
        ("last_digit & coordinate[7]", "coordinate[7] & 0"),
    ],
)
def test_a_box_at_another_place_is_found(healthy, faulty, monkeypatch):
    copy = mutant(box_reader, healthy, faulty)
    monkeypatch.setattr(read_boxes, "BoxReader", copy.BoxReader)
    assert refuted(BOXES)


@pytest.mark.parametrize(
    ("healthy", "faulty"),
    [
        # A row beyond the last index inside, and one that is as long outside as inside.
        ("(index[number] >= box.high[number])", "(index[number] > box.high[number])"),
        ("span.eq(head + box.tail - box.head)", "span.eq(head + box.tail)"),
    ],
)
def test_a_row_outside_is_found(healthy, faulty, monkeypatch):
    copy = mutant(box_walker, healthy, faulty)
    monkeypatch.setattr(rows_inside, "BoxWalker", copy.BoxWalker)
    assert refuted(ROWS)


@pytest.mark.slow
def test_a_strobe_outside_is_found(monkeypatch):
    copy = mutant(realign, "(slot + 1 == plan.end) & (plan.tail != 0)", "(slot + 1 == plan.end)")
    monkeypatch.setattr(strobes, "VectorsToBeats", copy.VectorsToBeats)
    assert refuted(STROBES)


@pytest.mark.slow
def test_a_beat_without_a_place_is_found(monkeypatch):
    copy = mutant(load, "(room > burst.length)", "(room + 1 > burst.length)")
    monkeypatch.setattr(load.LoadEngine, "_land", copy.LoadEngine._land)
    assert refuted(LANDS)


@pytest.mark.slow
def test_a_response_that_is_dropped_is_found(monkeypatch):
    healthy = "records.o_stream.ready.eq(~record.responds | axi.bvalid)"
    copy = mutant(store, healthy, "records.o_stream.ready.eq(1)")
    monkeypatch.setattr(store.StoreEngine, "elaborate", copy.StoreEngine.elaborate)
    assert refuted(REPORTED)
