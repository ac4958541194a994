"""array-e: arrays of a tensor processor's size, emitted in seconds and read by other tools."""

import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hw.systolic.preset import PRESETS
from sim.native.build import WAIVED, verilator_root

ROOT = Path(__file__).resolve().parent.parent.parent


def emitted(folder, *options):
    """Text by a process of its own, and the seconds of the whole command."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, ROOT / "tilewright.py", "verilog", *options, "-o", "array.v"],
        cwd=folder,
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return (folder / "array.v").read_text(), time.monotonic() - started


def hollow(text, cell):
    """The text with nothing but ports in a definition, outputs at 0."""
    start = text.index(f"\nmodule {cell}(")
    end = text.index("endmodule", start)
    body = text[start:end]
    head = body[: body.index(";") + 1]
    ports = re.findall(r"^  (?:in|out)put .*;$", body, re.MULTILINE)
    outputs = re.findall(r"^  output .*?(\w+) ;$|^  output .*?(\w+);$", body, re.MULTILINE)
    zeros = [f"  assign {first or second} = 0;" for first, second in outputs]
    return text[:start] + "\n".join([head, *ports, *zeros, ""]) + text[end:]


def _limit():
    # The linter needs memory for every signal of every instance.
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))


def lint(folder, text):
    """Lint the cell by itself, and the rest round hollow cells: 65,536 whole ones are too many."""
    top = text.rpartition("\nmodule systolic_")[2].partition("(")[0]
    cell = re.search(r"^module ((?:output_)?cell_\w+)\(", text, re.MULTILINE)[1]
    root = verilator_root()
    for name, part in ((cell, text), (f"systolic_{top}", hollow(text, cell))):
        (folder / "part.v").write_text(part)
        done = subprocess.run(
            [
                str(root / "bin" / "verilator"),
                *("--lint-only", "-Wall", *(f"-Wno-{code}" for code in WAIVED)),
                *("--top-module", name, "part.v"),
            ],
            cwd=folder,
            env=dict(os.environ, VERILATOR_ROOT=str(root)),
            preexec_fn=_limit,
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must(
    "array-e", goal="256 x 256 in <= 10 s cold, < 2 MB, <= 12 definitions, lint clean"
)
@pytest.mark.parametrize("dataflow", ["ws", "os"])
@pytest.mark.parametrize("fmt", ["int8", "bf16"])
def test_an_array_of_full_size_is_small_text(tmp_path, heavy, fmt, dataflow, figure):
    options = ("--rows", "256", "--cols", "256", "--format", fmt, "--dataflow", dataflow)
    text, seconds = emitted(tmp_path, "--component", "systolic", *options)
    definitions = text.count("\nendmodule")
    lint(tmp_path, text)
    figure(f"{seconds:.1f} s, {len(text) / 1e6:.2f} MB, {definitions} definitions, lint clean")
    assert seconds <= 10 and len(text) < 2_000_000 and definitions <= 12


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("array-e", goal="every preset emitted at full size")
def test_every_preset_is_emitted_at_full_size(tmp_path, heavy, figure):
    sizes = {}
    for name in PRESETS:
        text, seconds = emitted(tmp_path, "--preset", name)
        sizes[name] = f"{name} {len(text) / 1e6:.2f} MB in {seconds:.0f} s"
        assert text.count("\nendmodule") <= 13 and len(text) < 5_000_000
    figure("; ".join(sizes.values()))
