"""edge-b: plain Verilog that three tools read without an error or a warning, and live checks."""

import dataclasses
import itertools
import re

import pytest

from gen.verilog import emit
from hw.arch.config import named
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.chip import Chip
from hw.matrix.systolic_unit import SystolicUnit
from hw.matrix.unit_config import UnitConfig
from hw.numeric.formats import named as formats
from sim.cocotb.bench_runner import run_bench
from sim.components import COMPONENTS
from sim.tb import matrix_unit
from tests.verilog_tools import faults_of_icarus, faults_of_verilator, faults_of_yosys

GOAL = "tiny, small, >= 12 components, 24 arrays: three tools, no error, no warning"
FORMATS = ("bf16", "fp16", "int8", "e4m3", "e2m1", "int4", "mxe4m3", "bf16,int8")
ARRAYS = list(itertools.product(FORMATS, Dataflow))


def faults(design, folder):
    """What the three tools say of a design, as it stands in a file."""
    file = folder / f"{design.top[:60]}.v"
    file.write_text(design.file)
    tools = (faults_of_verilator, faults_of_icarus, faults_of_yosys)
    return "".join(tool(file, design.top) for tool in tools)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.must("edge-b", goal=GOAL)
@pytest.mark.parametrize("name", ["tiny", "small"])
def test_a_chip_is_clean(name, tmp_path, heavy, figure):
    assert faults(emit(Chip(named[name])), tmp_path) == ""
    figure(f"{name}: no error, no warning")


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.must("edge-b", goal=GOAL)
def test_every_component_is_clean(tmp_path, heavy, figure):
    for component in COMPONENTS.values():
        design = emit(component.build(named["tiny"], component.values(named["tiny"], [])))
        assert faults(design, tmp_path) == "", component.name
    assert len(COMPONENTS) >= 12
    figure(f"{len(COMPONENTS)} components: no error, no warning")


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.must("edge-b", goal=GOAL)
def test_arrays_of_every_dataflow_are_clean(tmp_path, heavy, figure):
    assert len(ARRAYS) == 24
    for words, dataflow in ARRAYS:
        chosen = tuple(formats[word] for word in words.split(","))
        array = ArrayConfig(3, 4, dataflow, chosen, latency=2)
        assert faults(emit(SystolicUnit(UnitConfig(array))), tmp_path) == "", (words, dataflow)
    figure(f"{len(ARRAYS)} arrays: no error, no warning")


@pytest.mark.slow
@pytest.mark.must("edge-b", goal=GOAL)
@pytest.mark.parametrize("simulator", ["verilator", "icarus"])
def test_a_check_that_fails_ends_a_run(simulator, heavy, figure):
    """The condition of a check is turned round: every tile breaks it."""
    design = emit(matrix_unit.design())
    text, count = re.subn(r"&& !(\\\$\d+ )", r"&& \1", design.text)
    assert count == 2
    broken = dataclasses.replace(design, text=text)
    result = run_bench("matrix_unit", simulator=simulator, design=broken)
    assert result.failed
    assert "differ in rows" in result.log.read_text() or "more rows" in result.log.read_text()
    figure(f"{simulator}: a failed check ends the run")
