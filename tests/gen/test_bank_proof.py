"""Proof of the barrier bank: at full width, and refuted for planted faults."""

import dataclasses

import pytest

from gen.formal import prove
from gen.proof import Outcome
from gen.properties import PROPERTIES, bank_phases
from hw.arch.limits import BARRIER_ARRIVALS, BARRIER_TX_BYTES
from hw.lib.barrier import barrier_step
from hw.tma.barriers import barrier_bank as hardware
from hw.tma.barriers.barrier_bank import BarrierBank
from tests.slow_cases import quick_first

SMALL, WIDE = (each for each in PROPERTIES if each.name.startswith("no phase of a bank"))


class _Stale(BarrierBank):
    """Reads counts without the operation before."""

    def __init__(self, **parameters):
        super().__init__(**parameters)
        self.reader = self.counts.read_port()


def plant(change):
    """Next state with a fault: ``change`` has the state before and the right one after."""

    def planted(m, state, operations, **most):
        step = barrier_step(m, state, operations, **most)
        return dataclasses.replace(step, **change(state, step))

    return planted


#: What a faulty bank gets wrong.
PLANTED = {
    "skips the bytes": lambda state, step: {"settled": step.pending == 0},
    "skips the arrivals": lambda state, step: {"settled": step.tx == 0},
    "loses an arrival": lambda state, step: {"pending": state[1]},
    "loses bytes": lambda state, step: {"tx": state[2]},
    "never drops": lambda state, step: {"expected": state[0]},
    "completes early": lambda state, step: {"settled": step.settled | (step.pending == 1)},
    "completes no negative": lambda state, step: {"settled": step.settled & (state[2] >= 0)},
    "lets arrivals wrap": lambda state, step: {"excess": step.excess & (state[1] != 0)},
}


def _refuted():
    proof = prove(dataclasses.replace(SMALL, faults=0))
    assert proof.outcome is Outcome.COUNTEREXAMPLE and not proof.met


@pytest.mark.slow
def test_a_bank_of_full_width_never_loses_doubles_or_skips_a_phase():
    assert WIDE.parameters["arrivals"] == BARRIER_ARRIVALS.high == (1 << 20) - 1
    assert WIDE.parameters["tx_bytes"] == BARRIER_TX_BYTES.high == (1 << 20) - 1
    assert WIDE.method == "k-induction" and prove(WIDE).met


def test_the_small_bank_has_the_same_property_with_faults():
    assert SMALL.name == WIDE.name and SMALL.faults and not WIDE.faults


@pytest.mark.parametrize("fault", quick_first(PLANTED))
def test_a_planted_fault_ends_in_a_counterexample(fault, monkeypatch):
    monkeypatch.setattr(hardware, "barrier_step", plant(PLANTED[fault]))
    _refuted()


def test_counts_read_too_early_end_in_a_counterexample(monkeypatch):
    monkeypatch.setattr(bank_phases, "BarrierBank", _Stale)
    _refuted()
