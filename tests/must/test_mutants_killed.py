"""edge-h: mutants that once survived are killed, no line has lost a test, benches cover the RTL."""

import json
import subprocess
import sys
import tomllib

import pytest

from sim.cocotb.bench_runner import bench_names
from tests.must.mutants import ROOT, Mutant, require_killed
from tests.rtl_coverage import GOALS, measure, totals

_GOAL = "the six mutants that were gaps are killed by the nearest test"

#: By what they are.
MUTANTS = {
    "leftovers at a consumer": Mutant(
        "sw/prove/machine.py",
        "self.tap.channel.written - self.tap.taken if self.tap else 0",
        "self.tap.channel.written - self.tap.taken if not self.tap else 0",
        "tests/sw/test_prove_ends.py",
    ),
    "weights that no tile uses": Mutant(
        "sw/prove/pcu_actors.py",
        "if self._loading or self._loaded:",
        "if self._loading and self._loaded:",
        "tests/sw/test_prove_ends.py",
    ),
    "slots that are not alike": Mutant(
        "sim/emulator/scratchpad.py",
        "if pattern is None or writer.element_bytes != size or",
        "if pattern is None and writer.element_bytes != size or",
        "tests/sim/emulator/test_scratchpad.py",
    ),
    "a symbol left alone": Mutant(
        "sw/ir/affine.py",
        "isinstance(size, str) and size in values",
        "isinstance(size, str) or size in values",
        "tests/sw/ir/test_affine.py",
    ),
    "the most slots of a PMU": Mutant(
        "hw/arch/limits.py",
        "PMU_SLOTS = Domain(2, 64)",
        "PMU_SLOTS = Domain(2, 65)",
        "tests/hw/arch/test_config.py",
    ),
    "detail of a good run": Mutant(
        "sim/emulator/emulated_launch.py",
        "error_detail=fault.detail if fault else 0,",
        "error_detail=fault.detail if fault else 1,",
        "tests/sim/native/test_chip.py::test_launches_end_with_the_same_error_on_the_emulator",
    ),
}


@pytest.mark.slow
@pytest.mark.must("edge-h", goal="no line of the must-show list has lost a test")
def test_every_line_of_the_list_has_the_tests_it_takes(tmp_path, figure):
    """Collected, not run."""
    needed = tomllib.loads((ROOT / "tests" / "must_show.toml").read_text())["tests"]
    counts = tmp_path / "counts.json"
    words = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-m", "must"]
    done = subprocess.run(
        [*words, f"--must-report={counts}"], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(counts.read_text())
    few = {name: found.get(name, 0) for name in needed if found.get(name, 0) < needed[name]}
    assert not few, f"tests of the must-show list that were lost: {few} of {needed}"
    assert set(found) <= set(needed)
    figure(f"{sum(found.values())} tests of {len(needed)} lines")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.must("edge-h", goal=_GOAL)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_that_survived_is_killed(mutant, copy, figure):
    require_killed(MUTANTS[mutant], copy)
    figure(f"{len(MUTANTS)} of {len(MUTANTS)} killed")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.must(
    "edge-h", goal="testbenches reach >= 95 % of lines, 90 % of branches, 85 % toggles"
)
def test_the_testbenches_cover_the_verilog(heavy, tmp_path, figure, request):
    """All blocks together, each on a model that counts."""
    seed = request.config.getoption("--seed-base")
    measured = {block: measure(block, tmp_path, seed=seed) for block in bench_names()}
    together = totals(measured)
    shares = {kind: together.share(kind) for kind in GOALS}
    figure(", ".join(f"{kind} {100 * share:.1f} %" for kind, share in shares.items()))
    assert all(shares[kind] >= goal for kind, goal in GOALS.items()), shares
