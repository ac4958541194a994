"""The AXI4 checker in proofs: the TMA engine's channels keep their rules, each fault breaks one."""

import pytest

from gen.formal import Property, prove
from gen.proof import Outcome
from gen.properties import PROPERTIES, axi_reads, axi_writes
from hw.lib import bursts
from hw.tma import burst_splitter, realign
from tests.hw.tma.test_faults import mutant
from tests.slow_cases import quick_first

PROVED = [each for each in PROPERTIES if each.name.endswith("no rule of AXI4")]
READS = {"width_bits": 64, "address_bits": 20, "burst_beats": 256, "outstanding": 4}
WRITES = {"width_bits": 64, "address_bits": 13, "most_beats": 2, "outstanding": 2}


@pytest.mark.parametrize("property", quick_first(PROVED), ids=lambda each: each.name.split()[0])
def test_no_rule_is_broken(property):
    proof = prove(property)
    assert proof.proved and proof.reached == proof.covers >= 2


def test_reads_and_writes_are_proved():
    assert len(PROVED) == 2


@pytest.mark.parametrize(
    ("healthy", "faulty"),
    quick_first(
        [
            # 4 KiB is crossed, the payload changes, the offer is withdrawn, too many are open.
            ("Const(most) - address[:within]", "Const(most) - address[:within] + 1"),
            ("offered & (~axi.arvalid | axi.arready)", "offered"),
            ("with m.Elif(axi.arready):", "with m.Else():"),
            ("(in_flight != most)", "(in_flight <= most)"),
        ]
    ),
)
def test_a_fault_of_reads_ends_in_a_counterexample(healthy, faulty, monkeypatch):
    copy = mutant(bursts, healthy, faulty)
    monkeypatch.setattr(axi_reads, "issue_reads", copy.issue_reads)
    monkeypatch.setattr(burst_splitter, "first_burst", copy.first_burst)
    planted = Property("tma", "planted", READS, lambda: axi_reads.ReadsKeepAxi(**READS), "PDR", 0)
    assert prove(planted).outcome is Outcome.COUNTEREXAMPLE


@pytest.mark.parametrize(
    ("healthy", "faulty"),
    quick_first(
        [
            # WLAST late, a beat counted twice, data without an address, a burst ended by a drain.
            ("Mux(opened, left == 1, burst.length == 0)", "Mux(opened, left == 1, 0)"),
            ("Mux(opened, left - 1, burst.length)", "Mux(opened, left - 2, burst.length)"),
            ("supplied & opens & write_free & record_free", "supplied & opens & record_free"),
            ("ending.eq(self.i_drain & opened)", "ending.eq(self.i_drain)"),
        ]
    ),
)
def test_a_fault_of_writes_ends_in_a_counterexample(healthy, faulty, monkeypatch):
    copy = mutant(realign, healthy, faulty)
    monkeypatch.setattr(axi_writes, "VectorsToBeats", copy.VectorsToBeats)
    planted = Property(
        "tma", "planted", WRITES, lambda: axi_writes.WritesKeepAxi(**WRITES), "PDR", 0
    )
    assert prove(planted).outcome is Outcome.COUNTEREXAMPLE
