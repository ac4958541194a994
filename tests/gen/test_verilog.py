"""Emitted text: define once, the same everywhere, readable by other tools."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth.hdl import Cat, Module, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from gen import verilog
from gen.design import Port
from gen.verilog import emit
from hw.arch.config import named
from hw.emit.shared import Library
from hw.lib.component import Component
from sim.drivers.matrix_unit_driver import matrix_unit

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def design():
    return emit(matrix_unit(named["tiny"]))


def test_text_is_the_same_in_every_process_and_folder(design, tmp_path):
    script = (
        "from gen.verilog import emit; from sim.drivers.matrix_unit_driver import matrix_unit; "
        "from hw.arch.config import named; print(emit(matrix_unit(named['tiny'])).sha256)"
    )
    for hash_seed in ("0", "77"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=tmp_path,
            env=dict(os.environ, PYTHONHASHSEED=hash_seed, PYTHONPATH=str(ROOT)),
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == design.sha256


def test_text_has_no_path_and_no_tool_version(design):
    assert not re.search(r"/(home|work|root|tmp)\b|\.py\b|Yosys|Amaranth", design.text)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["tiny", "small", "large"])
def test_definitions_do_not_grow_with_instances(name):
    config = named[name]
    instances = emit(matrix_unit(config)).instances
    rows, columns = config.grid_rows, config.grid_columns
    cells = {key: count for key, count in instances.items() if key.startswith("cell_")}
    assert list(cells.values()) == [rows * columns]
    assert [n for key, n in instances.items() if key.startswith("stationary_row_")] == [rows]
    assert [n for key, n in instances.items() if key.startswith("accumulator_")][:1] == [columns]
    assert len(instances) <= 20


def test_every_combinational_block_runs_at_the_start(design):
    """Icarus runs one only on an event: all of them wait for that of one register a module."""
    for module in re.findall(r"^module .*?^endmodule$", design.text, re.MULTILINE | re.DOTALL):
        blocks = re.findall(r"always @\*([^;]*?\n.*?\n)", module)
        assert all(block == " begin\n    if (\\$start ) begin end\n" for block in blocks)
        starts = module.count("  reg \\$start ;\n  initial \\$start = 0;\n")
        assert starts == bool(blocks)
    # Of those yosys writes without `begin`, and so without such a register, there is one here.
    assert re.search(r"if \(\\\$start \) begin end\n    i_stream__payload\[\d+\] = ", design.text)


def test_there_is_no_latch_to_search_for():
    """The emission leaves out the pass that finds latches: it looks at ``sync`` of processes."""
    library = Library()
    library.define(matrix_unit(named["tiny"]))
    text = "".join(library.definitions.values())
    assert re.search(r"^ +process ", text, re.MULTILINE)
    assert not re.search(r"^ +sync ", text, re.MULTILINE)


class Unsigned(wiring.Component):
    """Compares two signed numbers as if they were unsigned."""

    a: In(signed(8))
    b: In(signed(8))
    o: Out(1)
    definition_name = "unsigned"

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(self.a.as_unsigned() < self.b.as_unsigned())
        return m


def test_signed_numbers_are_unsigned_where_they_are_taken_so():
    """Verilog compares as signed whatever is declared so on both sides."""
    text = emit(Unsigned()).text
    assert re.search(r"assign o = a < b;", text) and "signed" not in text.replace("unsigned", "")


@pytest.mark.parametrize("where", ["take_checks", "write_verilog"])
def test_no_check_and_no_definition_is_lost(monkeypatch, where):
    """Text and checks are matched by the name of the module."""
    former = getattr(verilog, where)

    def with_another(text):
        first, second = former(text)
        return first, second | {"another": []}

    monkeypatch.setattr(verilog, where, with_another)
    with pytest.raises(ValueError, match=r"Modules \['another'\] of the design must be in"):
        emit(Unsigned())


def test_every_definition_is_instantiated(design):
    assert all(design.instances.values())
    modules = re.findall(r"^module (\\?\S+?) ?\(", design.text, re.MULTILINE)
    assert len(modules) == len(set(modules)) == len(design.instances)


class _Inside(wiring.Component):
    """Register whose names occur in the component around it as well."""

    d: In(1)
    q: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.q.eq(self.d)
        return m


class _Around(Component):
    """Two private registers in a row, beside signals of the names that they get."""

    inside_q: In(1)
    result: Out(2)

    def elaborate(self, platform):
        m = Module()
        m.submodules.inside = inside = _Inside()
        m.submodules.second = second = _Inside()
        m.d.comb += [
            inside.d.eq(self.inside_q),
            second.d.eq(inside.q),
            self.result.eq(Cat(inside.q, second.q)),
        ]
        return m


def test_a_private_module_is_part_of_the_one_that_contains_it():
    design = emit(_Around())
    assert list(design.definitions) == [design.top] and "second_q" in design.text
    # A name that both have stays the port's.
    assert design.definitions[design.top].ports["inside_q"] == Port(False, 1)
    assert re.search(r"reg inside_q_1\b", design.text)
