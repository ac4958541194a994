# amaranth: UnusedElaboratable=no
"""PCUs with other cells: sets of formats, program words, refusals, and products in RTL."""

import itertools

import numpy as np
import pytest

from hw.arch.config import PcuConfig
from hw.arch.errors import BadInputError
from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.phase_word import PhaseSource, ResultForm
from hw.arch.pcu import FilterProgram, PcuProgram
from hw.arch.words.pcu_word import format_modes, pcu_layout
from hw.array.cell_config import CellConfig
from hw.matrix.matrix_unit import MatrixUnit
from hw.numeric.formats import OPERANDS, bf16, e4m3, e5m2, fp16, fp32, int8, int32, named
from hw.numeric.product_formats import CELL_SETS, DEFAULT_CELLS, RESULT_FORMATS, result_formats
from sim.drivers.matrix_unit_driver import MatrixTiling
from sim.operands import random_operand
from sim.oracle import product
from tests.hw.units import ACCUMULATOR_ROWS, CELLS, CELLS_SIZE, EIGHTHS_CHIP
from tests.native.product_runs import STREAMS, run_matmul

ALL_CELLS = [pytest.param(cells, id="_".join(map(str, cells))) for cells in CELL_SETS]


def products_of(cells):
    """Formats of activations, weights and results of every product of these cells."""
    for first, second in itertools.product(cells, repeat=2):
        for out in result_formats(first, second):
            yield first, second, out


def test_sets_of_formats_are_those_of_cells_whose_operands_fill_bytes():
    def possible(formats):
        try:
            CellConfig(formats, latency=2)
        except BadInputError:
            return False
        return all(each.is_stored for each in formats)

    singles = {(each,) for each in OPERANDS}
    pairs = set(itertools.combinations(OPERANDS, 2))
    assert {*filter(possible, singles | pairs)} == {*CELL_SETS}
    assert DEFAULT_CELLS == PcuConfig().operands == (bf16, int8)


def test_results_are_sums_or_rounded_to_16_bits():
    assert result_formats(fp16, fp16) == (fp16, fp32)
    assert result_formats(bf16, fp16) == result_formats(fp16, bf16) == (bf16, fp16, fp32)
    assert result_formats(e4m3, e5m2) == result_formats(e5m2, e5m2) == (bf16, fp32)
    assert result_formats(int8, int8) == (int32,)
    for first, second in ((bf16, int8), (fp16, e4m3), (int8, e5m2), (fp32, fp32), (int32, bf16)):
        assert result_formats(first, second) == result_formats(second, first) == ()


@pytest.mark.parametrize(
    "formats",
    [
        ["fp32"],
        ["int4"],
        ["e2m1"],
        ["mxe4m3"],
        ["int8", "fp16"],
        ["bf16", "bf16"],
        ["bf16", "fp16", "int8"],
        ["fp16", "e4m3"],
        [],
        "bf16",
        None,
        {"bf16": 1},
        [3],
        [["bf16"]],
        ["BF16"],
    ],
    ids=str,
)
def test_sets_that_no_cell_has_are_refused(formats):
    rule = r"^Formats of a PCU must be a list of bf16 or fp16 or .* or e4m3 and e5m2, not "
    with pytest.raises(BadInputError, match=rule) as caught:
        PcuConfig(formats=formats)
    assert caught.value.value == formats


def test_the_order_of_formats_in_a_configuration_does_not_matter():
    for given in (["int8", "bf16"], ("bf16", "int8")):
        assert PcuConfig(formats=given) == PcuConfig()
    assert PcuConfig(formats=["e5m2", "e4m3"]).operands == (e4m3, e5m2)


def test_a_unit_takes_formats_in_one_order():
    with pytest.raises(BadInputError, match=r"be in the order of `OPERANDS`, not \['int8', 'bf16'"):
        MatrixUnit(rows=4, columns=2, formats=(int8, bf16), latency=1, accumulator_rows=16)


@pytest.mark.parametrize("cells", ALL_CELLS)
def test_programs_pack_into_their_word_and_back(cells):
    size = pcu_layout(0, cells).size
    words = set()
    for first, second, out in products_of(cells):
        program = PcuProgram(first, out, weight_fmt=second, weights_by_row=True)
        word = program.pack(0, cells)
        assert 0 <= word < 1 << size
        assert PcuProgram.unpack(word, 0, cells) == program
        assert PcuProgram.unpack(word, 0, cells).operands == (first, second)
        words.add(word)
    assert len(words) == len([*products_of(cells)])


@pytest.mark.parametrize("cells", ALL_CELLS)
def test_every_choice_of_formats_in_a_word_is_a_program_or_refused(cells):
    layout, modes = pcu_layout(0, cells), format_modes(cells)
    plain = PcuProgram(cells[0], cells[0].accumulator).pack(0, cells)
    decoded = 0
    for bits in itertools.product((0, 1), repeat=len(modes)):
        word = plain
        for mode, bit in zip(modes, bits, strict=True):
            word |= bit << layout[mode].offset
        try:
            program = PcuProgram.unpack(word, 0, cells)
        except BadInputError as error:
            assert "PCU" in str(error), word
            continue
        assert program.pack(0, cells) == word
        decoded += 1
    assert decoded == len([*products_of(cells)])


@pytest.mark.parametrize("cells", ALL_CELLS)
def test_a_program_of_a_format_that_the_cells_lack_is_refused(cells):
    for first in RESULT_FORMATS:
        for second in RESULT_FORMATS:
            if not result_formats(first, second) or {first, second} <= {*cells}:
                continue
            lacks = first if first not in cells else second
            program = PcuProgram(first, result_formats(first, second)[-1], weight_fmt=second)
            rule = f"must be .*{cells[-1]}, which the cells of the PCU have, not {lacks}$"
            with pytest.raises(BadInputError, match=rule):
                program.pack(0, cells)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: PcuProgram(fp16, bf16),
            "PCU results of fp16 operands must be fp16 or fp32, not bf16",
        ),
        (
            lambda: PcuProgram(e4m3, fp16, weight_fmt=e5m2),
            "PCU results of e4m3 and e5m2 operands must be bf16 or fp32, not fp16",
        ),
        (
            lambda: PcuProgram(bf16, fp32, weight_fmt=int8),
            "PCU operands must have one format or be floats of one width, not bf16 and int8",
        ),
        (
            lambda: PcuProgram(bf16, fp32, weight_fmt=named["e2m1"]),
            "PCU operands must be bf16, fp16, int8, e4m3 or e5m2, not e2m1",
        ),
    ],
)
def test_formats_that_do_not_go_together_are_refused(make, message):
    with pytest.raises(BadInputError, match=message):
        make()


@pytest.mark.parametrize("cells", ALL_CELLS)
def test_a_program_of_lanes_alone_chooses_no_format(cells):
    lanes, copy = 2, LanePhase(source=PhaseSource.ACTIVATION, result=ResultForm.WORD)
    program = PcuProgram(lanes=LaneProgram((copy,)))
    word = program.pack(lanes, cells)
    assert PcuProgram.unpack(word, lanes, cells) == program
    layout = pcu_layout(lanes, cells)
    for mode in format_modes(cells):
        with pytest.raises(BadInputError, match="modes must be 0 where no phase takes sums"):
            PcuProgram.unpack(word | 1 << layout[mode].offset, lanes, cells)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", CELLS)
def test_random_products_of_other_cells_equal_numpy(pcu_units, name, seed):
    *_, model = pcu_units
    rng = np.random.default_rng(seed)
    cells, columns = CELLS[name], CELLS_SIZE[0] // 2
    kinds = [*products_of(cells)]
    for number in range(max(12, 2 * len(kinds))):
        first, second, out = kinds[number % len(kinds)]
        m, n, k = (int(side) for side in rng.integers(1, 61, 3))
        tiling = MatrixTiling(
            m=m,
            n=n,
            k=k,
            columns=columns,
            accumulator_rows=ACCUMULATOR_ROWS,
            fmt=first,
            out=out,
            weight_fmt=second,
        )
        special, spread = float(rng.choice([0.0, 0.02])), int(rng.choice([3, 6, 30]))
        a, b = (
            random_operand(rng, shape, fmt, special_share=special, exponent_spread=spread)
            for shape, fmt in (((m, k), first), ((k, n), second))
        )
        model.reset(number)
        result, *_ = run_matmul(
            model,
            tiling,
            a,
            b,
            prefix=f"{name}_",
            cells=cells,
            weights_by_row=bool(rng.integers(2)),
            stalls=dict(zip(STREAMS, rng.choice([0.0, 0.2, 0.5], 3), strict=True)),
        )
        assert result.tobytes() == product(a, b, out.dtype).tobytes(), tiling


@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("formats", [*products_of((e4m3, e5m2))], ids=str)
def test_a_pcu_takes_the_formats_of_its_program(pcu_units, formats, by_row, seed):
    *_, model = pcu_units
    rng = np.random.default_rng(seed)
    first, second, out = formats
    chip = EIGHTHS_CHIP
    columns = chip.grid_columns
    tiling = MatrixTiling(
        m=11, n=columns, k=37, columns=columns, accumulator_rows=16, fmt=first, out=out
    )
    a, b = random_operand(rng, (11, 37), first), random_operand(rng, (37, columns), second)
    program = PcuProgram(first, out, by_row, FilterProgram(), weight_fmt=second)
    model.reset(seed)
    model.set("eighths_pcu_config", program.pack(0, chip.pcu.operands))
    crossed = model.run(
        {
            "eighths_pcu_i_activation": tiling.activations(a),
            "eighths_pcu_i_weight": tiling.weights(b, by_row=by_row),
        },
        {"eighths_pcu_o_result": tiling.result_vectors},
    )
    result = tiling.result(crossed["eighths_pcu_o_result"].words)
    assert result.tobytes() == product(a, b, out.dtype).tobytes()
