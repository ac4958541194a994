"""Proof of the interlock of reducing stores; planted faults are refuted."""

import pytest

from gen.formal import Property, prove
from gen.proof import Outcome
from gen.properties import PROPERTIES, interlocks
from hw.tma.reduction import reduction_interlock
from tests.hw.tma.test_faults import mutant

(INTERLOCK,) = (each for each in PROPERTIES if each.block == "reduction_interlock")


def test_it_is_proved_at_every_count_of_ports():
    for ports in (2, 3):
        parameters = {"ports": ports, "page_bits": 3}
        proof = prove(
            Property(
                *("reduction_interlock", "fewer ports", parameters),
                lambda parameters=parameters: interlocks.PagesHaveOneHolder(**parameters),
                *("PDR", 0),
            )
        )
        assert proof.proved and proof.reached == proof.covers == 4


@pytest.mark.parametrize(
    ("healthy", "faulty"),
    [
        # Every page granted at once; a page of which a bit is not compared; a newcomer that goes
        # first; a port that is never granted after another.
        ("(port.page == other.page)", "(port.page == other.page) & 0"),
        ("(port.page == other.page)", "(port.page[1:] == other.page[1:])"),
        ("behind.eq(asks[j] & seen[j])", "behind.eq(0)"),
        ("with m.Elif(asks[j] & ~seen[j])", "with m.Elif(asks[j] & ~seen[j] & 0)"),
        ("asks[j] & seen[j] & before", "seen[j] & before"),
    ],
)
def test_a_planted_fault_is_refuted(healthy, faulty, monkeypatch):
    copy = mutant(reduction_interlock, healthy, faulty)
    monkeypatch.setattr(interlocks, "ReductionInterlock", copy.ReductionInterlock)
    parameters = {"ports": 3, "page_bits": 2}
    planted = Property(
        *("reduction_interlock", "planted", parameters),
        lambda: interlocks.PagesHaveOneHolder(**parameters),
        *("PDR", 0),
    )
    assert prove(planted).outcome is Outcome.COUNTEREXAMPLE
