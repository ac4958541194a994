"""Proofs: what holds is proved, what does not is not, and a vacuous proof is none."""

import dataclasses
import json

import pytest
from amaranth.hdl import Assert, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

import tilewright
from gen.formal import Property, prove
from gen.proof import Outcome, Proof
from gen.properties import PROPERTIES
from gen.properties.streams import BufferIsAQueue
from gen.yosys import run_library
from hw.lib.stream import ElasticBuffer
from sim.cli.commands.prove import CHOICES

#: Those of arrays are proved by tests/must/test_arrays_proved.py, sizes without faults elsewhere.
BLOCKS = tuple(each for each in PROPERTIES if each.block != "array" and each.faults)


#: Blocks whose proofs take longer.
_LONGER = {"barrier", "barrier_bank", "reduction_interlock"}


@pytest.mark.parametrize(
    "property",
    [
        pytest.param(each, marks=[pytest.mark.slow] * (each.block in _LONGER), id=each.block)
        for each in BLOCKS
    ],
)
def test_each_property_is_proved(property):
    proof = prove(property)
    assert proof.met and proof.reached == proof.covers
    # Of every fault it is known whether it breaks the property.
    assert proof.caught + proof.equivalent == len(proof.faults) == 12
    assert proof.caught >= 9


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


class _Unasserted(BufferIsAQueue):
    """Reaches all that it asks for, and asserts something of a counter beside the block."""

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = ElasticBuffer(2)
        wiring.connect(m, wiring.flipped(self.i), dut.i_stream)
        wiring.connect(m, dut.o_stream, wiring.flipped(self.o))
        there, full = dut.o_stream.valid, ~dut.i_stream.ready
        count = Signal(2)
        m.d.sync += count.eq(Mux(count == 2, 0, count + 1))
        m.d.comb += [self.reached.eq(Cat(there, full, there & full)), Assert(count != 3, "of it")]
        return m


class _FarFromWrong(wiring.Component):
    """A counter that turns round at 30: that it is not 63 says little of the states before."""

    reached: Signal

    def __init__(self, never=63):
        self._never = never
        super().__init__({"reached": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = inner = Module()
        count = Signal(6)
        inner.d.sync += count.eq(Mux(count == 30, 0, count + 1))
        m.d.comb += [self.reached.eq(count == 3), Assert(count != self._never, "never there")]
        return m


_METHODS = pytest.mark.parametrize("method", ["k-induction", "PDR"])


def _property(harness, method="k-induction"):
    return Property("stream", "claim", {}, harness, method, faults=3)


@_METHODS
def test_a_false_claim_has_a_counterexample(method):
    proof = prove(_property(_NeverTwo, method))
    assert proof.outcome is Outcome.COUNTEREXAMPLE and not proof.met


@_METHODS
def test_a_proof_that_reaches_nothing_is_not_met(method):
    proof = prove(_property(_Vacuous, method))
    assert proof.outcome is Outcome.PROVED and proof.reached == 0 and not proof.met


@_METHODS
def test_a_proof_that_no_fault_can_break_is_not_met(method):
    proof = prove(_property(_Unasserted, method))
    assert proof.outcome is Outcome.PROVED and proof.reached == proof.covers
    assert (proof.caught, proof.equivalent) == (0, 3) and not proof.met


@_METHODS
def test_both_methods_prove_a_queue_and_agree_on_its_faults(method):
    proof = prove(dataclasses.replace(PROPERTIES[0], method=method))
    assert proof.met and (proof.caught, proof.equivalent) == (11, 1)


def test_an_induction_that_gives_up_is_no_counterexample():
    by_induction, by_pdr = (
        prove(_property(_FarFromWrong, method)) for method in ("k-induction", "PDR")
    )
    assert by_induction.outcome is Outcome.OPEN and not by_induction.met
    assert by_pdr.outcome is Outcome.PROVED and by_pdr.reached == 1


@pytest.mark.parametrize("cycles", [30, 31])
def test_a_bounded_check_sees_the_cycles_it_states_and_no_more(cycles):
    wrong = Property("counter", "claim", {}, lambda: _FarFromWrong(30), "bounded", 0, cycles=cycles)
    proof = prove(wrong)
    assert proof.outcome is (Outcome.COUNTEREXAMPLE if cycles == 31 else Outcome.BOUNDED)
    assert proof.reached == proof.covers == 1
    # It holds to its bound, which is never called a proof.
    assert proof.met is (cycles == 30) and not proof.proved


def test_a_bounded_check_that_reaches_nothing_is_not_met():
    proof = prove(dataclasses.replace(_property(_Vacuous, "bounded"), cycles=5, faults=0))
    assert proof.outcome is Outcome.BOUNDED and proof.reached == 0 and not proof.met


def test_the_command_calls_a_bounded_check_bounded(capsys, monkeypatch):
    queue = dataclasses.replace(PROPERTIES[0], method="bounded", faults=0, cycles=6)
    monkeypatch.setattr("gen.properties.PROPERTIES", (queue,))
    assert tilewright.main(["prove", "stream", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["properties"]
    assert row["status"] == row["method"] == "bounded" and row["parameters"]["cycles"] == 6


def test_faults_that_nothing_decides_do_not_count_as_equivalent():
    proof = Proof(Outcome.PROVED, 1, 1, (Outcome.COUNTEREXAMPLE, Outcome.OPEN), 0.1)
    assert (proof.caught, proof.equivalent, proof.met) == (1, 0, False)


def test_a_failure_of_yosys_is_told_by_its_last_lines(tmp_path):
    with pytest.raises(RuntimeError, match="ERROR: No such command: nonsense"):
        run_library(tmp_path, "nonsense\n")


def test_the_command_knows_every_block_and_reports(capsys, monkeypatch):
    assert CHOICES == (*dict.fromkeys(each.block for each in PROPERTIES), "images")
    assert tilewright.main(["prove", "stream", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["properties"]
    assert row["status"] == "proved" and row["cover_reached"] == "3 of 3"
    assert row["faults_caught"] == "11 of 12" and row["faults_equivalent"] == 1
    assert tilewright.main(["prove", "stream"]) == 0
    assert "faults caught 11 of 12, 1 proved equivalent" in capsys.readouterr().out
    for harness, status in (
        (_NeverTwo, "counterexample"),
        (_Vacuous, "vacuous"),
        (_Unasserted, "untested"),
    ):
        monkeypatch.setattr("gen.properties.PROPERTIES", (_property(harness),))
        assert tilewright.main(["prove", "stream", "--json"]) == 1
        (row,) = json.loads(capsys.readouterr().out)["properties"]
        assert row["status"] == status
