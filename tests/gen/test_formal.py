"""Proofs: what holds is proved, what does not is not, and a vacuous proof is none."""

import dataclasses
import json

import pytest
from amaranth.hdl import Assert, Module

import tilewright
from gen.formal import Property, prove
from gen.properties import PROPERTIES
from gen.properties.streams import BufferIsAQueue
from sim.cli.prove import CHOICES

#: Those of arrays are proved by tests/must/test_array_g.py.
BLOCKS = tuple(each for each in PROPERTIES if each.block != "array")


@pytest.mark.parametrize("property", BLOCKS, ids=lambda each: each.block)
def test_each_property_is_proved(property):
    proof = prove(property)
    assert proof.proved and proof.met
    assert proof.reached == proof.covers
    # One of the faults put into the merge changes nothing: a select that is never used.
    assert proof.caught >= proof.faults - 1


class _NeverTwo(BufferIsAQueue):
    """Claims that a buffer never holds two payloads."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += Assert(self.i.ready, "never full")
        return m


class _Vacuous(BufferIsAQueue):
    """Asks for a situation that cannot be."""

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = inner = BufferIsAQueue()
        m.submodules.dut = BufferIsAQueue()
        m.d.comb += [inner.i.valid.eq(self.i.valid), self.reached.eq(0)]
        return m


def _property(harness):
    return Property("stream", "claim", {}, harness)


def test_a_false_claim_is_not_proved():
    proof = prove(_property(_NeverTwo))
    assert not proof.proved and not proof.met


def test_a_proof_that_reaches_nothing_is_not_met():
    proof = prove(_property(_Vacuous))
    assert proof.proved and proof.reached == 0 and not proof.met


def test_the_command_knows_every_block_and_reports(capsys, monkeypatch):
    assert set(CHOICES) >= {property.block for property in PROPERTIES}
    assert tilewright.main(["prove", "stream", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["properties"]
    assert row["status"] == "proved" and row["cover_reached"] == "3 of 3"
    wrong = dataclasses.replace(PROPERTIES[0], harness=_NeverTwo)
    monkeypatch.setattr("gen.properties.PROPERTIES", (wrong,))
    assert tilewright.main(["prove"]) == 1
    assert "not proved" in capsys.readouterr().err
