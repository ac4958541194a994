"""Scatters that add as images: shapes on chips, duplicates, constants, cycles and refusals."""

import dataclasses

import numpy as np
import pytest

import sw.language as tw
from hw.arch.config import named
from hw.arch.errors import BadInputError
from sim.golden import golden
from sim.run.driver import compile_job, run
from sim.run.error_bounds import error_bounds
from sim.run.job import Job, Problem
from sw.ir.sizes import choose_sizes
from sw.kernels.numbered.histogram import histogram
from sw.kernels.numbered.scatter_add import scatter_add

INT32 = np.iinfo(np.int32)
#: Greatest error of predicted cycles of any kernel (`tests.must.test_cycles_predicted`).
MOST_ERROR = 0.12


def added(table, numbers, rows):
    """Rows added one after the other, modulo 2^32."""
    found = table.astype(np.int64)
    for number, row in zip(numbers, rows, strict=True):
        found[number] += row
    return (found & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def case(rng, rows, columns, count):
    """Inputs of a scatter-add, numbers with many duplicates, and the table that it leaves."""
    numbers = rng.integers(0, int(rng.integers(1, rows + 1)), count, dtype=np.int32)
    table, added_rows = (
        rng.integers(INT32.min, INT32.max, (each, columns), dtype=np.int32)
        for each in (rows, count)
    )
    inputs = {"G": added_rows, "ids": numbers, "T": table}
    return inputs, added(table, numbers, added_rows)


def counted(rng, rows, count):
    """Inputs of a histogram, and the counts that it leaves."""
    numbers = rng.integers(0, rows, count, dtype=np.int32)
    counts = rng.integers(0, 100, (rows, 1), dtype=np.int32)
    inputs = {"ids": numbers, "H": counts}
    return inputs, counts + np.bincount(numbers, minlength=rows)[:, np.newaxis].astype(np.int32)


def check_on_chip(kernel, config, sizes, inputs, expected, backend="emulator"):
    job = Job(Problem(kernel, config, sizes, None, None), backend=backend, inputs=inputs)
    compiled, fields = compile_job(job)
    outcome = run(job, compiled, fields)
    (found,) = outcome.outputs.values()
    assert outcome.report["verified"], outcome.problems
    assert found.tobytes() == expected.tobytes() and len(compiled.parts) == 1
    if backend == "rtl":
        cycles = outcome.report["cycles"]
        assert abs(compiled.predicted_cycles - cycles) <= MOST_ERROR * cycles, sizes


def check_both(config, rows, columns, count, seed, backend="emulator"):
    rng = np.random.default_rng(seed)
    sizes = {"V": rows, "D": columns, "N": count}
    inputs, expected = case(rng, rows, columns, count)
    check_on_chip(scatter_add, config, sizes, inputs, expected, backend)
    sizes = {"V": rows, "N": count}
    inputs, expected = counted(rng, rows, count)
    check_on_chip(histogram, config, sizes, inputs, expected, backend)


@pytest.mark.few(2)
@pytest.mark.parametrize("config", ["tiny", "small", "large"])
@pytest.mark.parametrize(
    ("rows", "columns", "count"),
    [(9, 7, 13), (1, 1, 1), (2, 1, 700), (300, 2, 3), (31, 30, 64), (1, 200, 9), (257, 1, 257)],
)
def test_any_shape_is_added(config, rows, columns, count, seed):
    check_both(named[config], rows, columns, count, seed)


@pytest.mark.parametrize("config", ["tiny", pytest.param("small", marks=pytest.mark.slow)])
def test_sums_on_the_rtl_are_those_of_numpy(config, seed, heavy):
    check_both(named[config], 11, 9, 37, seed, "rtl")


def test_blocks_of_columns_on_a_narrow_link_begin_at_aligned_addresses(seed):
    config = named["tiny"]
    config = dataclasses.replace(config, agcu=dataclasses.replace(config.agcu, count=2))
    inputs, expected = case(np.random.default_rng(seed), 5, 7, 30)
    check_on_chip(scatter_add, config, {"V": 5, "D": 7, "N": 30}, inputs, expected)


def test_two_pmus_of_a_line_add_at_once():
    sizes = {"V": 10, "D": 64, "N": 1000}
    compiled = Problem(scatter_add, named["small"], sizes, None, None).compile()
    sums = 2 * sizes["N"] * sizes["D"] // (named["small"].width_bits // 32)
    assert compiled.predicted_cycles < sums / named["small"].agcu.count


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("config", "shapes"), [("tiny", 4), ("small", 20), ("large", 4)])
def test_sums_of_random_shapes_are_those_of_numpy_on_the_rtl(config, shapes, seed):
    rng = np.random.default_rng(seed)
    for _ in range(shapes):
        rows, columns, count = (int(each) for each in np.exp(rng.uniform(0, np.log(700), 3)))
        rows = min(rows, named[config].pmu.capacity_bytes // 16)
        lanes = named[config].width_bits // 32
        most = named[config].pmu.capacity_bytes // 8 // rows // lanes * lanes
        columns = min(columns, max(lanes, most) * named[config].agcu.count)
        check_both(named[config], rows, columns, count, seed, "rtl")


@pytest.mark.parametrize("block", [1, 5, 16])
def test_the_interpreter_adds_ragged_blocks_in_order(block, seed):
    inputs, expected = case(np.random.default_rng(seed), 4, 7, 13)
    program = choose_sizes(scatter_add.trace(V=4, D=7, N=13), {"n": block})
    for poison in (False, True):
        (found,) = golden(program, inputs, poison=poison).values()
        assert found.tobytes() == expected.tobytes()


def test_sums_have_no_error_but_those_that_wrap():
    program = choose_sizes(scatter_add.trace(V=2, D=1, N=2), {"n": 2})
    rows = np.array([[INT32.max], [5]], np.int32)
    inputs = {"G": rows, "ids": np.array([0, 1], np.int32), "T": np.ones((2, 1), np.int32)}
    (most,) = error_bounds(program, inputs, 24).values()
    assert most.tolist() == [[np.inf], [0]]


@pytest.mark.parametrize("value", [-3, 0, 2**31 - 1])
def test_rows_of_any_constant_are_added(value, seed):
    def adding(ids, T):
        for n in tw.metapipe(ids.shape[0]):
            rows = tw.full(n, T.shape[1], value, tw.int32)
            tw.scatter(T, tw.load_tile(ids[n]), rows, op="add")

    kernel = tw.kernel("ids[N]: int32, T[V, D]: int32 -> T")(adding)
    rng = np.random.default_rng(seed)
    inputs, _ = case(rng, 6, 19, 50)
    rows = np.full((50, 19), value, np.int64)
    expected = added(inputs["T"], inputs["ids"], rows)
    del inputs["G"]
    for config in ("tiny", "small"):
        sizes = {"V": 6, "D": 19, "N": 50}
        check_on_chip(kernel, named[config], sizes, inputs, expected)


@pytest.mark.parametrize("number", [-1, 4])
@pytest.mark.parametrize("backend", ["golden", "emulator", "rtl"])
def test_a_number_out_of_range_ends_with_an_error(number, backend, seed):
    inputs, _ = case(np.random.default_rng(seed), 4, 7, 13)
    inputs["ids"][5] = number
    problem = Problem(scatter_add, named["tiny"], {"V": 4, "D": 7, "N": 13}, None, None)
    if backend == "golden":
        with pytest.raises(BadInputError, match=f"`scatter` must be 0 to 3, not {number}"):
            golden(choose_sizes(problem.program, {"n": 5}), inputs)
        return
    job = Job(problem, backend=backend, inputs=inputs)
    with pytest.raises(BadInputError, match="must be 0 to 3|INDEX"):
        run(job, *compile_job(job))


def test_a_table_above_a_pmu_is_refused_with_its_bytes():
    problem = Problem(scatter_add, named["tiny"], {"V": 40, "D": 20, "N": 7}, None, None)
    message = "holds 40 rows of 32 int32 of its table in a PMU, 5120 bytes, and a PMU has 4096"
    with pytest.raises(BadInputError, match=message):
        problem.compile()
    problem = Problem(scatter_add, named["small"], {"V": 1, "D": 513, "N": 1}, None, None)
    with pytest.raises(BadInputError, match="rows of at most 512 elements, not 513"):
        problem.compile()


def test_a_chip_with_one_token_track_is_refused():
    config = dataclasses.replace(named["tiny"], token_tracks=1)
    problem = Problem(histogram, config, {"V": 5, "N": 9}, None, None)
    with pytest.raises(BadInputError, match="2 load streams of an AGCU, and those .* have 1"):
        problem.compile()


@pytest.mark.parametrize("dtype", [tw.bf16, tw.fp32, tw.int8], ids=str)
def test_other_formats_are_refused_with_what_to_write(dtype):
    def adding(G, ids, T):
        tw.scatter(T, tw.load_tile(ids), tw.load_tile(G), op="add")

    kernel = tw.kernel("G[N, D], ids[N]: int32, T[V, D] -> T")(adding)
    message = f"takes int32, not `T` of {dtype.name}: hold table and rows as int32 in memory"
    with pytest.raises(tw.ProgramError, match=message) as caught:
        Problem(kernel, named["tiny"], {"V": 5, "D": 8, "N": 5}, dtype, None)
    assert caught.value.kind == "format"


def a_constant_stored(ids, T):
    tw.scatter(T, tw.load_tile(ids), tw.full(tw.load_tile(ids).cols, T.shape[1], 1, tw.int32))


def test_rows_of_a_constant_are_not_stored():
    kernel = tw.kernel("ids[N]: int32, T[V, D]: int32 -> T")(a_constant_stored)
    problem = Problem(kernel, named["tiny"], {"V": 5, "D": 8, "N": 5}, None, None)
    with pytest.raises(tw.ProgramError, match="can be added by a scatter, not be stored yet"):
        problem.compile()
