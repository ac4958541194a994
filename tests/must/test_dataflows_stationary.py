"""array-i: each dataflow keeps what it says stationary; sharing makes emission fast."""

import dataclasses
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gen.verilog import emit
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.matrix.systolic_unit import SystolicUnit
from hw.matrix.unit_config import UnitConfig
from hw.numeric.formats import int8
from sim.native.bundle import Bundle
from tests.hw.matrix.units import Case, outcome
from tests.native.stream_model import StreamModel

ROOT = Path(__file__).resolve().parent.parent.parent

UNITS = {
    dataflow.value: UnitConfig(ArrayConfig(2, 2, dataflow, (int8,), 2), accumulator_rows=16)
    for dataflow in Dataflow
}
#: The stationary register of the emitted cells: the statement that is it, and what goes through
#: if the register is not there.
REMOVED = {
    "weight": (r"always @\(posedge clk\)\s+weight <= .*;", "always @* weight = shadow;"),
    "sum": (r"always @\(posedge clk\)\s+sum_ <= sum_1;", "always @* sum_ = sum_1;"),
}
#: Cell of each dataflow, its stationary register, and the dataflows that have the same cell.
KEPT = {
    "ws": ("cell_int8_l2", "weight", {"ws", "is"}),
    "is": ("cell_int8_l2", "weight", {"ws", "is"}),
    "os": ("output_cell_int8_l2", "sum", {"os"}),
}


def without(design, cell, register):
    """The design with a register of one cell left out."""
    start = design.text.index(f"\nmodule {cell}(")
    end = design.text.index("endmodule", start)
    body, count = re.subn(*REMOVED[register], design.text[start:end])
    assert count == 1
    return dataclasses.replace(design, text=design.text[:start] + body + design.text[end:])


def right_ones(design, bundle):
    """Dataflows whose products are numpy's."""
    with StreamModel(design, bundle) as model:
        return {
            name
            for name, config in UNITS.items()
            # The weights of each tile are shifted in while the former tile is at work.
            if all(
                outcome(model, Case(name, config, 9, 5, 11, (int8, int8), seed))[2]
                for seed in range(3)
            )
        }


@pytest.mark.slow
@pytest.mark.must("array-i", goal="without its stationary register no dataflow is right")
@pytest.mark.parametrize("dataflow", KEPT)
def test_a_dataflow_needs_the_register_that_keeps_its_operand(heavy, dataflow, figure):
    bundle = Bundle({name: SystolicUnit(config) for name, config in UNITS.items()})
    design = emit(bundle)
    assert right_ones(design, bundle) == set(UNITS)
    cell, register, wrong = KEPT[dataflow]
    assert right_ones(without(design, cell, register), bundle) == set(UNITS) - wrong
    figure("ws, is: weight; os: sum")


_SHARED = ["-m", "tilewright", "verilog", *"--component systolic --rows 32 --cols 32".split()]
_SHARED += ["--format", "int8", "-o", "build/shared.v"]
#: Seconds that systars took for 32 × 32 on another machine.
_SYSTARS = 27.3
_PER_CELL = """
import re
from gen.verilog import convert
from hw.numeric.formats import int8
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.matrix.systolic_unit import SystolicUnit
from hw.matrix.unit_config import UnitConfig
unit = SystolicUnit(UnitConfig(ArrayConfig(32, 32, Dataflow.WS, (int8,), 1)))
text = convert(unit, name="unit")
assert len(set(re.findall(r"row_(\\d+)_\\W*cell_(\\d+)_", text))) == 1024
"""


def seconds_of(words, folder):
    (folder / "build").mkdir(exist_ok=True)
    started = time.monotonic()
    subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        # No cache of ours or of a tool is there.
        env=dict(os.environ, PYTHONPATH=str(ROOT), XDG_CACHE_HOME=str(folder / "cache")),
        check=True,
        capture_output=True,
    )
    return time.monotonic() - started


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("array-i", goal="32 x 32 emitted >= 50 x faster than cell by cell, both cold")
def test_sharing_definitions_makes_emission_fast(tmp_path, heavy, figure):
    shared = seconds_of(_SHARED, tmp_path)
    apart = seconds_of(["-c", _PER_CELL], tmp_path)
    figure(
        f"{shared:.2f} s against {apart:.1f} s: {apart / shared:.0f} x; "
        f"{_SYSTARS / shared:.0f} x faster than systars' {_SYSTARS} s"
    )
    assert apart / shared >= 50
