"""Coverage of the emitted Verilog by the testbenches: lines, branches and toggles of each module.

`make coverage` runs every testbench on a model that counts, and joins the counts of all instances
of a module in all testbenches. docs/testing.md says what is counted.
"""

import bisect
import dataclasses
import importlib
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import cocotb_tools.config

from gen.design import Design
from gen.verilog import emit
from sim.cache import cached
from sim.cocotb.bench_runner import bench_names, port_names, run_program
from sim.native.build import ANYWHERE, MAKE, verilate

__all__ = ["GOALS", "Coverage", "Point", "measure", "points_of", "totals"]

ROOT = Path(__file__).resolve().parent.parent
#: Shares that are to be reached.
GOALS = {"line": 0.95, "branch": 0.90, "toggle": 0.85}
#: A signal that is counted stays whole, so fields of it that drive one another look like a loop.
_FLAGS = (
    "-Wno-UNOPTFLAT --cc --exe --build --no-timing --assert --x-initial unique --vpi "
    "--timescale 1ns/1ps --coverage-line --coverage-toggle --coverage-max-width 1024 -O3 "
    "--build-jobs 2"
).split()
#: Components beside a block that make its testbench fail: no testbench is to break their rules.
_BESIDE = {"AxiChecker", "CheckedComponent"}
#: One point of `coverage.dat`: its fields, each behind a \x01 and split by a \x02; its count.
_POINT = re.compile(r"^C '(.*)' (\d+)$", re.MULTILINE)
#: Names with a dollar sign are intermediate values, those with a dot are fields of a signal that
#: is there as a whole too.
_AGAIN = re.compile("__024|__02e")
#: A statement that does nothing, by which an `always @*` runs at the start of a simulation.
_EMPTY = re.compile(r"^\s*if \(.*\) begin end$")


@dataclasses.dataclass(frozen=True, order=True)
class Point:
    """Something that a testbench should make happen."""

    kind: str
    module: str
    name: str


def points_of(text: str, verilog: str) -> Iterator[tuple[Point, int]]:
    """Points of a coverage file of Verilator, and how often each happened.

    Parameters
    ----------
    text : str
        The file.
    verilog : str
        The design, of which statements that do nothing and wires without a name do not count.
    """
    lines = verilog.splitlines()
    begins = [number for number, line in enumerate(lines, 1) if line.startswith("module ")]
    for fields, count in _POINT.findall(text):
        of = dict(field.split("\x02", 1) for field in fields.split("\x01") if field)
        kind, _, module = of["page"].removeprefix("v_").partition("/")
        if kind == "toggle":
            if not _AGAIN.search(of["o"]):
                yield Point(kind, module, of["o"]), int(count)
        elif not _EMPTY.match(lines[int(of["l"]) - 1]):
            # A line of the module, which may lie elsewhere in another design.
            line = int(of["l"]) - begins[bisect.bisect(begins, int(of["l"])) - 1]
            yield Point(kind, module, f"{line}:{of['n']} {of['o']}"), int(count)


def _program(block: str, design: Design, ports: list[str]) -> Path:
    """Folder with a program that runs a testbench and counts."""
    source = cocotb_tools.config.share_dir / "lib" / "verilator" / "verilator.cpp"
    libraries = cocotb_tools.config.libs_dir
    link = f"-Wl,-rpath,{libraries} -L{libraries} -lcocotbvpi_verilator"
    public = [f'public_flat_rw -module "{design.top}" -var "{name}"' for name in ports]
    control = "\n".join(["`verilator_config", *public, ""])
    flags = [*_FLAGS, "-LDFLAGS", link]

    def make(work: Path) -> None:
        (work / "design.v").write_text(design.text)
        (work / "control.vlt").write_text(control)
        (work / "main.cpp").write_text(source.read_text())
        words = [*flags, "control.vlt", "design.v", "main.cpp", "--top-module", design.top]
        words += ["--prefix", "Vtop", "-Mdir", ".", "-o", "model"]
        # What registers the points runs once and takes a compiler minutes to optimise.
        verilate([*words, "-MAKEFLAGS", f"{MAKE} {ANYWHERE} OPT_FAST=-O1"], work, block)

    content = ["coverage", design.text, control, *flags]
    return cached("verilator", content, "model", make, name=f"{block}, with coverage")[0]


@dataclasses.dataclass
class Coverage:
    """Counts of the points of some testbenches, the greatest of each."""

    counts: dict[Point, int] = dataclasses.field(default_factory=lambda: defaultdict(int))

    def add(self, points: Iterable[tuple[Point, int]]) -> None:
        """Join more counts."""
        for point, count in points:
            self.counts[point] += count

    def share(self, kind: str) -> float:
        """Share of the points of a kind that happened."""
        found = [count > 0 for point, count in self.counts.items() if point.kind == kind]
        return sum(found) / len(found) if found else 1.0

    def missed(self, kind: str) -> list[Point]:
        """Points of a kind that never happened."""
        return sorted(
            point for point, count in self.counts.items() if point.kind == kind and not count
        )


def measure(block: str, folder: Path, *, seed: int) -> Coverage:
    """Coverage that the testbench of a block reaches."""
    component = importlib.import_module(f"sim.tb.{block}").design()
    design = emit(component)
    program = _program(block, design, port_names(component))
    found = folder.resolve() / f"{block}.dat"
    found.unlink(missing_ok=True)
    # The runner starts what has the top's name.
    start = folder.resolve() / block
    start.mkdir(parents=True, exist_ok=True)
    script = start / design.top
    script.write_text(
        f'#!/bin/sh\nexec "{program / "model"}" "$@" "+verilator+coverage+file+{found}"\n'
    )
    script.chmod(0o755)
    result = run_program(f"sim.tb.{block}", design.top, start, seed=seed)
    if result.failed:
        raise RuntimeError(f"{block}: {result.failures[0]}")
    coverage = Coverage()
    coverage.add(
        (point, count)
        for point, count in points_of(found.read_text(), design.text)
        if design.definitions[point.module].kind not in _BESIDE
    )
    return coverage


def totals(measured: dict[str, Coverage]) -> Coverage:
    """Coverage of all testbenches together."""
    joined = Coverage()
    for coverage in measured.values():
        joined.add(coverage.counts.items())
    return joined


def main(words: list[str]) -> int:
    """Measure all testbenches, or those named; print shares, and what was missed of each."""
    folder = ROOT / "build" / "coverage"
    folder.mkdir(parents=True, exist_ok=True)
    measured = {}
    for block in words or bench_names():
        measured[block] = measure(block, folder, seed=int(os.environ.get("SEED", "1")))
        print(_row(block, measured[block]), flush=True)
    together = totals(measured)
    print(_row("together", together))
    lines = [
        f"{point.kind} {point.module} {point.name}"
        for kind in GOALS
        for point in together.missed(kind)
    ]
    (folder / "missed.txt").write_text("\n".join([*lines, ""]))
    return int(any(together.share(kind) < goal for kind, goal in GOALS.items()))


def _row(name: str, coverage: Coverage) -> str:
    shares = (f"{kind} {100 * coverage.share(kind):5.1f} %" for kind in GOALS)
    return f"{name:<14}{'  '.join(shares)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
