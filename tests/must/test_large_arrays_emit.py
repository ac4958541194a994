"""array-e: arrays of a tensor processor's size, emitted in seconds and read by other tools."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gen.lint import WAIVER_FILE
from gen.verilog import emit
from hw.matrix.systolic_unit import SystolicUnit
from hw.matrix.tpu_catalog import PRESETS
from hw.tpu.unit import TensorUnit
from sim.native.build import verilator_root

ROOT = Path(__file__).resolve().parent.parent.parent


def emitted(folder, *options):
    """Text by a process of its own, and the seconds of the whole command."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "tilewright", "verilog", *options, "-o", "array.v"],
        cwd=folder,
        # No cache of ours or of a tool is there.
        env=dict(os.environ, PYTHONPATH=str(ROOT), XDG_CACHE_HOME=str(folder / "cache")),
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return (folder / "array.v").read_text(), time.monotonic() - started


def unit(folder, fmt, dataflow, size):
    """Text of a square unit, and the seconds of the whole command."""
    options = ("--rows", str(size), "--cols", str(size), "--format", fmt, "--dataflow", dataflow)
    return emitted(folder, "--component", "systolic", *options)


_DEFINITION = re.compile(r"^module (\\?\S+?) ?\((.*?);\n(.*?)^endmodule$", re.MULTILINE | re.DOTALL)
_INSTANCE = re.compile(r"^  (\\\S+|[a-z]\w+) +(?:\\\S+|\w+) +\($", re.MULTILINE)
_PORT = re.compile(r"^  (?:in|out)put .*?;$", re.MULTILINE)
_OUTPUT = re.compile(r"^  output (?:\[\S+\] )?(\S+?) ?;$", re.MULTILINE)


def hollow(text, name):
    """The text with nothing but ports in a definition, outputs at 0."""
    match = next(match for match in _DEFINITION.finditer(text) if match[1] == name)
    zeros = [f"  assign {output} = 0;" for output in _OUTPUT.findall(match[3])]
    assert zeros
    inside = "\n".join([*_PORT.findall(match[3]), *zeros, ""])
    return text[: match.start(3)] + inside + text[match.end(3) :]


def reached(text, top):
    """Definitions that a top has in it, itself included."""
    inside = {name: _INSTANCE.findall(body) for name, _, body in _DEFINITION.findall(text)}
    found, left = set(), [top]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += inside[name]
    return found


def verilator(folder, text, top):
    """What Verilator says of a top and all that is in it; nothing if it is clean."""
    (folder / "part.v").write_text(text)
    root = verilator_root()
    done = subprocess.run(
        [
            root / "bin" / "verilator",
            "--lint-only",
            "-Wall",
            str(WAIVER_FILE),
            "--top-module",
            top,
            "part.v",
        ],
        cwd=folder,
        env=dict(os.environ, VERILATOR_ROOT=str(root)),
        check=False,
        capture_output=True,
        text=True,
    )
    return done.stderr if done.returncode else ""


def top_of(text):
    """Name of the unit."""
    return re.search(r"^module (systolic_unit_\w+)\(", text, re.MULTILINE)[1]


def faults(folder, text, small):
    """What the linter says of a unit in parts, and of a small one of the same parameters whole."""
    row = re.search(r"^module ((?:stationary|output)_row_\w+)\(", text, re.MULTILINE)[1]
    top, rest = top_of(text), hollow(text, row)
    every = {match[1] for match in _DEFINITION.finditer(text)}
    assert reached(text, row) | reached(rest, top) == reached(text, top) == every
    parts = ((text, row), (rest, top), (small, top_of(small)))
    return "".join(verilator(folder, part, of) for part, of in parts)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must(
    "array-e", goal="256 x 256 in <= 10 s cold, < 2 MB, <= 12 definitions, lint clean"
)
@pytest.mark.parametrize("dataflow", ["ws", "os"])
@pytest.mark.parametrize("fmt", ["int8", "bf16"])
def test_an_array_of_full_size_is_small_text(tmp_path, heavy, fmt, dataflow, figure):
    """Emitted by a process of its own, and clean.

    Linted whole, a unit of 65,536 cells takes Verilator more than 23 GB: signals of every
    instance. So one row is linted with whole cells, and the rest round rows that have nothing but
    their ports. Each definition is whole in at least one of the two parts, and so is each instance
    with all that is joined to it. What they cannot show is a combinational loop through several
    rows: a unit of 4 × 4, whose rows have the same paths from ports to ports, is linted whole for
    that. That joined buses are of one width, Verilator is not asked: ``hw.emit.structure`` refuses
    others.
    """
    text, seconds = unit(tmp_path, fmt, dataflow, 256)
    definitions = text.count("\nendmodule")
    small, _ = unit(tmp_path, fmt, dataflow, 4)
    started = time.monotonic()
    assert faults(tmp_path, text, small) == ""
    linted = time.monotonic() - started
    figure(
        f"{dataflow} {fmt} {seconds:.1f} s, {len(text) / 1e6:.2f} MB, {definitions} definitions, "
        f"lint clean in {linted:.0f} s"
    )
    assert seconds <= 10 and len(text) < 2_000_000 and definitions <= 12


#: Faults of a unit of 4 × 4: what is replaced, once, and what the linter must say.
PLANTED = {
    "open input of a row": (r"    \.i_swap\(swap_0_0\),\n", "", "PINMISSING.*'i_swap'"),
    "open output of a cell": (r"    \.o_swap\(swap_0\),\n", "", "PINMISSING.*'o_swap'"),
    "no such port": (r"\.i_load\(i_load\[1\]\)", ".i_loads(i_load[1])", "PINNOTFOUND.*'i_loads'"),
    "bus without a driver": (r"\.o_p\(p_2\)", ".o_p(p_1)", "UNDRIVEN.*'p_2'"),
    "no such wire in a cell": (r"o_a <= i_a;", "o_a <= i_b;", "variable: 'i_b'"),
}


@pytest.mark.slow
def test_the_linter_sees_a_fault_in_every_part(tmp_path, heavy):
    text, _ = unit(tmp_path, "bf16", "ws", 4)
    assert faults(tmp_path, text, text) == ""
    for name, (pattern, replacement, code) in PLANTED.items():
        broken, count = re.subn(pattern, replacement, text, count=1)
        assert count, name
        # The small unit is left whole: the parts must show it.
        assert re.search(code, faults(tmp_path, broken, text)), name


@pytest.mark.slow
def test_the_linter_sees_a_loop_through_rows(tmp_path, heavy):
    text, _ = unit(tmp_path, "bf16", "ws", 4)
    loop, count = re.subn(r"always @\(posedge clk\)\n    o_p <= .*;", "always @* o_p = i_p;", text)
    assert count == 1
    loop, count = re.subn(r"\.i_p\(p_0\)", ".i_p(p_1)", loop)
    assert count == 1
    assert "UNOPTFLAT" in faults(tmp_path, text, loop)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must(
    "array-e", goal="every preset emitted at full size, as many definitions as at 1/16"
)
def test_every_preset_is_emitted_at_full_size(tmp_path, heavy, figure):
    sizes = {}
    for name, preset in PRESETS.items():
        text, seconds = emitted(tmp_path, "--preset", name)
        definitions = text.count("\nendmodule")
        sizes[name] = f"{name} {len(text) / 1e6:.2f} MB, {definitions}, in {seconds:.0f} s"
        tensor = preset.scaled_tensor(16)
        scaled = TensorUnit(tensor) if tensor else SystolicUnit(preset.scaled(16))
        assert definitions == len(emit(scaled).instances) and len(text) < 5_000_000
    figure("; ".join(sizes.values()))
