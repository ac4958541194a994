"""The shipped waivers: few, each with its cause, for one file alone if wanted, and they fire."""

import re

import pytest

from gen.lint import WAIVER_FILE, waived_rules, waivers
from gen.verilog import emit
from hw.arch.config import named
from hw.chip import Chip
from sim.drivers.matrix_unit_driver import matrix_unit
from tests.verilog_tools import faults_of_verilator, faults_of_yosys

#: Faults that no waiver may cover, each with a line that has it.
FAULTS = {
    "WIDTHTRUNC": "  wire planted; assign planted = i_weight__payload;\n",
    "LATCH": "  reg planted; always @* if (rst) planted = clk;\n",
    "MULTIDRIVEN": "  reg planted; always @(posedge clk) planted <= rst;\n"
    "  always @(negedge clk) planted <= rst; always @(posedge clk) if (planted) $stop;\n",
    "COMBDLY": "  reg planted; always @* planted <= rst;\n",
    "CASEINCOMPLETE": "  reg planted; always @* begin planted = rst; "
    "case (i_weight__payload[1:0]) 2'd0: planted = clk; endcase end\n",
    "UNDRIVEN": "  wire planted; wire taken = planted;\n",
    "PINMISSING": "  elastic_buffer_planted planted();\n",
}


def test_the_waivers_are_few_and_each_has_its_cause():
    rules = waived_rules()
    assert 0 < len(rules) <= 6 and len(set(rules)) == len(rules)
    assert not {"WIDTHTRUNC", "LATCH", "MULTIDRIVEN", "COMBDLY"} & set(rules)
    lines = WAIVER_FILE.read_text().splitlines()
    for number, line in enumerate(lines):
        if line.startswith("lint_off"):
            assert re.fullmatch(r"lint_off -rule [A-Z]+", line)
            assert lines[number - 1].startswith("// ") and len(lines[number - 1]) > 20


@pytest.fixture(scope="module")
def design():
    return emit(matrix_unit(named["tiny"]))


@pytest.mark.parametrize("code", FAULTS)
def test_a_planted_fault_is_reported_in_spite_of_the_waivers(code, design, tmp_path):
    head = re.search(rf"^module {design.top}\([^;]*;\n", design.text, re.MULTILINE)
    text = design.text[: head.end()] + FAULTS[code] + design.text[head.end() :]
    text += "module elastic_buffer_planted(input clk); endmodule\n"
    (tmp_path / "unit.v").write_text(text)
    said = faults_of_verilator(tmp_path / "unit.v", design.top)
    assert re.search(rf"%Warning-{code}: unit\.v", said), said[:2000]


def test_a_copy_of_the_waivers_is_for_one_file_alone(design, tmp_path):
    for name in ("mine", "yours"):
        (tmp_path / f"{name}.v").write_text(design.text)
    for name, clean in (("mine", True), ("yours", False)):
        (tmp_path / "mine.vlt").write_text(waivers("*mine.v"))
        said = faults_of_verilator(tmp_path / f"{name}.v", design.top, waive=tmp_path / "mine.vlt")
        assert (said == "") == clean


@pytest.mark.slow
def test_a_chip_is_read_without_a_warning(tmp_path):
    design = emit(Chip(named["tiny"]))
    (tmp_path / "tiny.v").write_text(design.text)
    assert faults_of_verilator(tmp_path / "tiny.v", design.top) == ""
    assert faults_of_yosys(tmp_path / "tiny.v", design.top) == ""
