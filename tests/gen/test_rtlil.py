"""RTLIL that becomes plain, lint-clean Verilog, and statements that yosys does not write."""

import re

import pytest
from amaranth.hdl import Assert, Assume, Format, Module, Print
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from gen.rtlil import complete_switches
from gen.verilog import emit
from tests.verilog_tools import faults_of_verilator, faults_of_yosys


class Everything(wiring.Component):
    """One of each form that is rewritten."""

    definition_name = "everything"
    number: In(4)
    index: In(2)
    kind: In(3)
    limit: In(4)
    is_zero: Out(1)
    part: Out(2)
    chosen: Out(2)
    first: Out(4)
    second: Out(4)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.is_zero.eq(self.number == 0),
            self.part.eq(self.number.word_select(self.index, 2)),
        ]
        with m.Switch(self.kind):
            with m.Case(1, 2):
                m.d.comb += self.chosen.eq(1)
            with m.Case(4):
                m.d.comb += self.chosen.eq(2)
        m.submodules.zeros = zeros = memory.Memory(shape=4, depth=4, init=[])
        m.submodules.table = table = memory.Memory(shape=4, depth=4, init=[3, 0, 7])
        for data, (output, ram) in enumerate(((self.first, zeros), (self.second, table))):
            write, read = ram.write_port(), ram.read_port()
            m.d.comb += [
                *(write.en.eq(self.kind[data]), write.addr.eq(self.index)),
                *(write.data.eq(self.number), read.addr.eq(self.index), read.en.eq(1)),
                output.eq(read.data),
            ]
        with m.If(self.kind[2]):
            m.d.sync += Assert(self.number < self.limit, "the number is beyond its limit")
        return m


@pytest.fixture(scope="module")
def text():
    return emit(Everything()).text


def test_every_form_is_read_without_a_warning(text, tmp_path):
    (tmp_path / "everything.v").write_text(text)
    assert faults_of_yosys(tmp_path / "everything.v", "everything") == ""
    assert faults_of_verilator(tmp_path / "everything.v", "everything") == ""


def test_a_vector_is_compared_with_zero(text):
    assert "number == 4'h0" in text and "= ! " not in text


def test_a_part_of_a_shifted_vector_is_taken_in_two_steps(text):
    assert re.search(r"wire \[3:0\] \\\$whole\S+ ;", text)
    assert re.search(r"assign \S+ += \\\$whole\S+ \[1:0\];", text)


def test_a_switch_that_leaves_out_values_has_a_default(text):
    (block,) = re.findall(r"casez \(kind\).*?endcase", text, re.DOTALL)
    assert block.count("default:") == 1


@pytest.mark.parametrize(
    ("values", "added"),
    [
        (["2'00", "2'01", "2'10", "2'11"], 0),
        (["2'00", "2'01, 2'10"], 1),
        (["2'00", ""], 0),
        (["1'1"], 0),
        (["3'--1", "3'-1-"], 0),
        (["3'--1", "3'-10"], 1),
    ],
)
def test_only_a_switch_that_leaves_out_values_gets_a_default(values, added):
    cases = [f"      case {value}".rstrip() + "\n        assign \\o 1'1\n" for value in values]
    text = "".join(["  process $1\n    switch \\s\n", *cases, "    end\n  end\n"])
    assert complete_switches(text).count("case\n") - text.count("case\n") == added


def test_zeros_are_a_loop_and_other_contents_a_statement_a_word(text):
    assert re.search(r"for \(.*< 4; .*\)\n +zeros \[\\\$word \] = 4'd0;", text)
    words = re.findall(r"table \[(\d)\] = 4'h(\S);", text)
    assert words == [("0", "3"), ("1", "0"), ("2", "7"), ("3", "0")]


def test_checks_are_for_simulation_and_no_systemverilog(text):
    guarded = re.findall(r"^`ifndef SYNTHESIS\n.*?^`endif\n", text, re.MULTILINE | re.DOTALL)
    (check,) = guarded
    assert "posedge" in check and "the number is beyond its limit" in check and "$stop;" in check
    assert not re.search(r"\$(display|write|stop|finish)|\bassert\b", text.replace(check, ""))


class Other(wiring.Component):
    """A statement for simulation that is not supported."""

    definition_name = "other"
    a: In(1)
    b: In(1)

    def __init__(self, statement):
        self._statement = statement
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self._statement(self)
        return m


@pytest.mark.parametrize(
    "statement",
    [
        lambda unit: Assume(unit.a, None),
        lambda unit: Assert(unit.a, Format("b is {}", unit.b)),
        lambda unit: Print("a"),
    ],
)
def test_other_statements_for_simulation_are_refused(statement):
    with pytest.raises(ValueError, match="must be an assertion"):
        emit(Other(statement))
