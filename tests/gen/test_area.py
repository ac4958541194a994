"""Area: each definition once, memories left alone, counts multiplied, figures of record met."""

import dataclasses
import re
from pathlib import Path

import pytest

from gen import yosys
from gen.area import DefinitionArea, UnitArea, measure, shares, totals
from gen.design import Definition, Design
from gen.unit_designs import KINDS, REST, UnitDesign, unit_designs
from gen.verilog import emit
from hw.arch.config import named
from hw.arch.errors import MissingToolError
from hw.arch.unit_kind import UNIT_KINDS
from hw.array.cell import Cell
from hw.chip import Chip
from hw.lib.config_segment import ConfigSegment
from hw.numeric.formats import bf16, int8
from hw.pmu.banks import Banks
from hw.pmu.output import OutputPort
from sim.backends.emitted import emitted_chip
from sim.components import COMPONENTS

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def tiny():
    return emitted_chip(named["tiny"])


def part(name, instances, cells, flip_flops=0, memory_bits=0, depth=0):
    return DefinitionArea(name, instances, cells, flip_flops, memory_bits, depth)


UNITS = [
    UnitArea("a", "a0", 3, "", (part("x", 4, 10, 2, 8, 5), part("a0", 1, 7, 0, 0, 9))),
    UnitArea("b", "b0", 1, "", (part("b0", 1, 40, 1),)),
    UnitArea("b", "b1", 2, "", (part("b1", 1, 9, 2),)),
]


def test_instances_and_counts_multiply():
    assert [unit.cells for unit in UNITS] == [47, 40, 9]
    assert (UNITS[0].flip_flops, UNITS[0].memory_bits, UNITS[0].depth) == (8, 32, 9)
    assert totals(UNITS) == {"cells": 199, "flip_flops": 29, "memory_bits": 96}


def test_shares_are_of_the_units_given_a_kind_at_a_time():
    parts = shares(UNITS)
    assert parts["a"] == {"cells": 141 / 199, "flip_flops": 24 / 29, "memory_bits": 1}
    assert parts["b"] == {"cells": 58 / 199, "flip_flops": 5 / 29, "memory_bits": 0}
    assert shares(UNITS[1:])["b"]["memory_bits"] == 0


def test_every_kind_of_unit_is_measured_apart():
    assert UNIT_KINDS.keys() <= KINDS.keys() & COMPONENTS.keys()


def test_units_hold_every_module_of_the_chip(tiny):
    found = unit_designs(tiny)
    chip = named["tiny"]
    counts = dict.fromkeys([*KINDS, REST], 0)
    for component in found:
        counts[component.kind] += component.count
    places = chip.rows * chip.columns
    assert counts == {
        "pcu": chip.pcu_count,
        "pmu": chip.pmu_count,
        "switch": places,
        "token_switch": places,
        "config_segment": places + chip.agcu.count,
        "agcu": chip.agcu.count,
        "command": 1,
        REST: 1,
    }
    cells = sum(
        component.count * component.design.instances.get("cell_bf16_int8_l2", 0)
        for component in found
    )
    assert cells == chip.peak_macs_per_cycle(16)


def test_a_module_that_no_unit_holds_is_noticed(tiny):
    (name,) = (name for name in tiny.definitions if name.startswith("pmu_"))
    pmu = tiny.definitions[name]
    chain = next(name for name in tiny.definitions if name.startswith("config_segment_"))
    more = {name: dataclasses.replace(pmu, inside=pmu.inside | {chain: 1})}
    with pytest.raises(ValueError, match=rf"not miscount \['{chain}'\]"):
        unit_designs(dataclasses.replace(tiny, definitions=tiny.definitions | more))


@pytest.mark.parametrize(
    ("name", "formats"),
    [
        ("int8", (int8,)),
        pytest.param("bf16 and int8", (bf16, int8), marks=pytest.mark.slow),
    ],
)
def test_a_cell_has_the_figures_of_its_page(name, formats):
    text = (ROOT / "docs" / "numerics.md").read_text().replace(",", "").replace("*", "")
    # Cells, flip-flops and depth at latencies 1, 2 and 3.
    of_latency = r"\d+ (\d+) \d+"
    row = re.search(
        rf"^\| {name} \| [^|]+ \| \d+ \| (\d+) \| \d+ \| {of_latency} \| {of_latency} \|",
        text,
        re.M,
    )
    cell = measure(UnitDesign("cell", 1, emit(Cell(formats=formats, latency=2))))
    assert [cell.cells, cell.flip_flops, cell.depth] == [int(figure) for figure in row.groups()]
    assert [part.name for part in cell.definitions] == [cell.name]


def test_memories_are_bits_of_their_capacity_and_no_flip_flops():
    banks = measure(UnitDesign("banks", 2, emit(Banks(width_bits=64, capacity_bytes=4096))))
    assert banks.memory_bits == 8 * 4096
    (bank,) = (part for part in banks.definitions if part.name.startswith("byte_bank_"))
    assert (bank.instances, bank.memory_bits) == (8, 8 * 4096 // 8)
    assert bank.flip_flops == bank.cells == bank.depth == 0
    assert 0 < banks.flip_flops < 1000


def test_a_segment_has_its_registers_and_is_measured_once(tmp_path):
    design = emit(ConfigSegment(width_bits=64, config_bits=100))
    units = [
        measure(UnitDesign("config_segment", count, design), cache=tmp_path) for count in (1, 5)
    ]
    # Shadow and active program, a bit per word that was written, and the choice of the word.
    assert units[0].flip_flops == 2 * 100 + 2 < units[0].cells < 2 * 100 + 2 + 20
    assert len(list(tmp_path.iterdir())) == 1
    assert units[0].definitions == units[1].definitions
    assert totals(units)["cells"] == 6 * units[0].cells
    other = dataclasses.replace(design, text=design.text + "\n")
    measure(UnitDesign("config_segment", 1, other), cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_what_is_private_to_a_definition_counts_as_its_own():
    design = emit(OutputPort(width_bits=8))
    assert design.instances == {design.top: 1}
    port = measure(UnitDesign("port", 1, design))
    assert [part.name for part in port.definitions] == [design.top]
    # Vectors of eight bits and two marks wait in the queue inside.
    assert port.memory_bits >= 7 * 10


@pytest.mark.slow
def test_units_by_themselves_are_left_out_of_the_rest(tiny):
    rest = unit_designs(tiny)[-1]
    measured = measure(rest)
    assert rest.kind == REST and rest.black_boxes
    assert {part.name for part in measured.definitions}.isdisjoint(rest.black_boxes)
    assert 0 < measured.cells < 1200


def test_what_yosys_cannot_read_is_told_with_its_words():
    broken = Design("top", "module top (input a;", {"top": Definition({}, {})})
    with pytest.raises(RuntimeError, match="^yosys failed:\n.*syntax error"):
        measure(UnitDesign("top", 1, broken))


def test_without_yosys_the_error_names_the_fix(monkeypatch):
    monkeypatch.setattr(yosys, "_PACKAGE", "no-such-yosys")
    with pytest.raises(MissingToolError, match="no-such-yosys is not installed; fix: make setup$"):
        yosys.require_yosys()


@pytest.mark.slow
def test_definitions_of_large_are_no_more_than_of_small():
    small, large = (emit(Chip(named[name])) for name in ("small", "large"))
    assert len(large.instances) <= len(small.instances) <= 80
    assert len(unit_designs(large)) == len(unit_designs(small))
