"""tma-i: examples that drive the TMA unit by registers, and its engine in another design."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples" / "hardware"
ROOT = EXAMPLES.parent.parent


def _lines(name):
    run = subprocess.run(
        [sys.executable, EXAMPLES / name],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert run.stderr == ""
    return run.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.must("tma-i", goal="by registers: four tiles in flight, interrupt, error, abort")
def test_an_example_drives_the_unit_by_registers(figure):
    lines = _lines("tma_by_registers.py")
    done = [(tile, "NONE") for tile in range(4)]
    assert lines[:6] == [
        "idle while tiles are in flight: 0",
        "interrupt: {'done': 1, 'error': 0, 'wait': 0}",
        f"loads: {done}",
        f"stores: {[(10 + tile, code) for tile, code in done]}",
        "interrupt: {'done': 0, 'error': 1, 'wait': 0}",
        "misplaced descriptor: [(20, 'POINTER')]",
    ]
    assert lines[6].startswith("aborted: ") and lines[6].count("ABORTED") >= 3
    assert lines[7:] == ["after the abort: [(40, 'NONE')]", "equal to numpy: True"]
    figure("four tiles in flight, completions, interrupts, an error and an abort as expected")


@pytest.mark.must("tma-i", goal="the engine in another design, with two scratchpads")
def test_an_example_has_the_engine_in_a_design_of_its_own(figure):
    lines = _lines("two_scratchpads.py")
    assert lines[0].startswith("9 tiles in ")
    assert lines[1:] == ["equal to numpy: True", "bytes after the sum unchanged: True"]
    figure(lines[0])
