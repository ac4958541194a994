"""Benchmarks: peers with sources, accelerators first, and ratios that say what they are."""

import json

import pytest

from sim.benchmarks import BENCHMARKS, peers
from sim.cli.app import main


@pytest.fixture
def report(monkeypatch, tmp_path, capsys):
    """Report and output of the command, on figures that need no simulation."""
    fields = {"verified": True, "cycles": 1000, "cycles_per_second": 1.0}

    def run(utilization=0.9):
        monkeypatch.setattr("sim.benchmarks.compile_job", lambda job: (None, {}))
        found = type("Outcome", (), {"report": fields | {"utilization": utilization}})
        monkeypatch.setattr("sim.benchmarks.run", lambda *arguments: found)
        code = main(["bench", "--json", str(tmp_path / "bench.json")])
        written = json.loads((tmp_path / "bench.json").read_text())
        return code, written, capsys.readouterr().out

    return run


def test_a_peer_is_a_share_of_its_own_peak_with_a_source():
    for key, peer in peers().items():
        assert 0 < (peer.least or peer.best) <= peer.best <= 1, key
        assert peer.source and peer.conditions and peer.kind in ("accelerator", "gpu"), key


def test_accelerators_of_our_class_stand_first(report):
    _, written, _ = report()
    for row in written["rows"]:
        kinds = [peer["kind"] for peer in row["peers"]]
        assert kinds == sorted(kinds) and kinds[0] == "accelerator"
        assert {"OpenGeMM", "RedMulE"} <= {peer["name"] for peer in row["peers"]}


def test_a_ratio_is_of_utilization_and_says_so(report):
    code, written, said = report(0.9)
    assert code == 0
    assert "share of each machine's own peak; no ratio of speeds" in said
    (gpu,) = (peer for peer in written["rows"][0]["peers"] if peer["kind"] == "gpu")
    assert gpu["ratio_of_utilization"] == pytest.approx(0.9 / 0.005)
    # Nowhere a bare ratio, which a reader would take for one of speeds.
    assert "ratio" not in written["rows"][0]
    for line in said.splitlines()[1:]:
        assert " ratio " not in line and ("own peak" in line or "goal" in line), line


def test_a_goal_that_is_missed_is_exit_code_1(report):
    code, written, said = report(0.5)
    assert code == 1 and not any(row["met"] for row in written["rows"]) and "NOT MET" in said


def test_every_benchmark_names_known_peers_and_its_command():
    for benchmark in BENCHMARKS:
        assert set(benchmark.peers) <= set(peers())
        assert benchmark.command.startswith("tilewright run matmul --config ")
