"""Cells that a fill which counts as zero adds to the recoder of an operand; none to the cell."""

from pathlib import Path

import pytest

from gen.area import measure
from gen.unit_designs import UnitDesign
from gen.verilog import emit
from hw.array.cell import Cell
from hw.array.operand import OperandRecoder
from hw.numeric.formats import Format, bf16, fp16, int8

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "numerics.md"


def cells(component):
    return measure(UnitDesign("unit", 1, emit(component))).cells


@pytest.mark.slow
@pytest.mark.parametrize("formats", [(bf16,), (fp16,), (bf16, fp16), (bf16, int8)], ids=repr)
def test_the_page_has_the_cells_measured(formats, monkeypatch):
    counts = [cells(OperandRecoder(formats=formats)), cells(Cell(formats=formats, latency=2))]
    with monkeypatch.context() as without:
        without.setattr(Format, "fill_nan", None)
        counts.insert(0, cells(OperandRecoder(formats=formats)))
        assert cells(Cell(formats=formats, latency=2)) == counts[2]
    row = " | ".join([" and ".join(map(str, formats)), *(f"{count:,}" for count in counts)])
    assert f"| {row} |" in PAGE.read_text()
    assert counts[0] < counts[1] < 1.2 * counts[0]
