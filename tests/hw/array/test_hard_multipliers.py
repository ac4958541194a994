"""Cells for the hard multipliers of an FPGA: the same sums, other products."""

import re

import numpy as np
import pytest

from gen.verilog import emit
from hw.arch.errors import BadInputError
from hw.array.cell import Cell
from hw.array.cell_config import CellConfig, HardBlocks
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.array.factory import systolic_array
from hw.array.output_stationary import OutputCell
from hw.numeric.formats import bf16, int8
from tests.hw.array.test_cell import operands, simulate
from tests.hw.float.bench import expected_sums, random_stimulus

HARD = ("dsp",)


@pytest.mark.parametrize(("formats", "mode"), [((int8,), 1), ((bf16, int8), 1), ((bf16, int8), 0)])
def test_the_sums_are_those_of_a_cell_of_gates(formats, mode, seed):
    rng = np.random.default_rng(seed)
    a, w, p = operands(600, mode, seed)
    stimulus = random_stimulus(a, w, p, rng)
    cell = Cell(formats=formats, latency=2, hard_blocks=HardBlocks(HARD))
    sums = simulate(cell, stimulus, mode)[0]
    np.testing.assert_array_equal(sums[2 + 3 :], expected_sums(stimulus, mode, 2))


@pytest.mark.parametrize("cell", [Cell, OutputCell])
def test_products_of_int8_are_two_multiplications(cell):
    def text(hard):
        if cell is OutputCell:
            return emit(OutputCell(CellConfig((int8,), 1, hard))).text
        return emit(Cell(formats=(int8,), latency=1, hard_blocks=HardBlocks(hard))).text

    found = [len(re.findall(r"\$signed\([^)]*\) \* \$signed\(", text(h))) for h in ((), HARD)]
    assert found == [0, 2]


@pytest.mark.parametrize("dataflow", Dataflow)
def test_every_cell_of_an_array_has_them_and_its_name_says_so(dataflow):
    config = ArrayConfig(2, 3, dataflow, (int8,), 1, HARD)
    design = emit(systolic_array(config, skewed=True))
    (cell,) = (name for name in design.definitions if "cell_int8_l1" in name)
    assert cell.endswith("_dsp") and "_dsp_" in design.top and design.instances[cell] == 6


@pytest.mark.parametrize("hard", [("lut",), ["dsp"], "dsp", ("dsp", "dsp"), None])
def test_other_hard_blocks_are_refused(hard):
    with pytest.raises(BadInputError, match=r"^Hard blocks of a cell must be \(\) or \('dsp',\), "):
        ArrayConfig(2, 2, Dataflow.WS, (int8,), 1, hard)
