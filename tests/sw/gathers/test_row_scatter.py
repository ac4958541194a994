"""Scatters of rows as images: shapes on chips, duplicates in their order, and refusals."""

import dataclasses

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.arch.errors import BadInputError
from sim.golden import golden
from sim.run.driver import compile_job, run
from sim.run.error_bounds import error_bounds
from sim.run.job import Job, Problem
from sw.gathers.row_limits import row_limits
from sw.ir.sizes import choose_sizes
from sw.kernels.numbered.scatter import scatter


def case(rng, rows, columns, count, dtype):
    """Inputs of a scatter, and the table that numpy's stores leave, one row after the other."""
    inputs = {
        "X": rng.integers(-100, 100, (count, columns)).astype(dtype.dtype),
        "ids": rng.integers(0, rows, count, dtype=np.int32),
        "T": rng.integers(-100, 100, (rows, columns)).astype(dtype.dtype),
    }
    expected = inputs["T"].copy()
    for number, row in zip(inputs["ids"], inputs["X"], strict=True):
        expected[number] = row
    return inputs, expected


def check_on_chip(config, rows, columns, count, dtype, seed, backend="emulator"):
    inputs, expected = case(np.random.default_rng(seed), rows, columns, count, dtype)
    sizes = {"V": rows, "N": columns, "M": count}
    job = Job(Problem(scatter, config, sizes, dtype, None), backend=backend, inputs=inputs)
    compiled, fields = compile_job(job)
    outcome = run(job, compiled, fields)
    assert outcome.report["verified"], outcome.problems
    assert outcome.outputs["T"].tobytes() == expected.tobytes() and len(compiled.parts) == 1


@pytest.mark.few
@pytest.mark.parametrize("config", ["tiny", "small", "large"])
@pytest.mark.parametrize(
    ("rows", "columns", "count"),
    [(9, 7, 13), (1, 1, 1), (40, 300, 5), (3, 8, 600), (2, 20, 64), (6, 1000, 9), (4, 512, 21)],
)
@pytest.mark.parametrize("dtype", [tw.bf16, tw.fp32, tw.int8], ids=str)
def test_any_shape_is_scattered(config, rows, columns, count, dtype, seed):
    check_on_chip(named[config], rows, columns, count, dtype, seed)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("config", "shapes"), [("tiny", 4), ("small", 20), ("large", 4)])
def test_scatters_of_random_shapes_are_those_of_numpy_on_the_rtl(config, shapes, seed):
    rng = np.random.default_rng(seed)
    for number in range(shapes):
        rows, columns, count = (int(each) for each in np.exp(rng.uniform(0, np.log(700), 3)))
        dtype = (tw.bf16, tw.fp32, tw.int8)[number % 3]
        check_on_chip(named[config], rows, columns, count, dtype, seed, "rtl")


@pytest.mark.parametrize("block", [1, 5, 16])
def test_the_interpreter_scatters_ragged_blocks_in_order(block, seed):
    inputs, expected = case(np.random.default_rng(seed), 4, 7, 13, tw.bf16)
    program = choose_sizes(scatter.trace(V=4, N=7, M=13, dtype=tw.bf16), {"i": block, "j": block})
    (most,) = error_bounds(program, inputs, 24).values()
    assert not most.any()
    for poison in (False, True):
        (found,) = golden(program, inputs, poison=poison).values()
        assert found.tobytes() == expected.tobytes()


def test_a_number_out_of_range_is_refused_by_the_interpreter(seed):
    inputs, _ = case(np.random.default_rng(seed), 4, 7, 13, tw.bf16)
    inputs["ids"][5] = 4
    with pytest.raises(BadInputError, match=r"Row numbers of `scatter` must be 0 to 3, not 4 \("):
        golden(choose_sizes(scatter.trace(V=4, N=7, M=13, dtype=tw.bf16), {"i": 5, "j": 4}), inputs)


def test_row_numbers_that_a_run_draws_are_in_range():
    problem = Problem(scatter, named["tiny"], {"V": 7, "N": 4, "M": 30}, tw.bf16, None)
    assert row_limits(problem.program) == {"ids": 7}


def test_rows_that_no_pmu_holds_are_refused():
    problem = Problem(scatter, named["tiny"], {"V": 5, "N": 2500, "M": 7}, tw.bf16, None)
    with pytest.raises(BadInputError, match="1 slots of 4608 bytes.* a PMU has 4096"):
        problem.compile()
    dataclasses.replace(problem, dims={"V": 5, "N": 2049, "M": 7}).compile()


def test_a_chip_with_one_token_track_is_refused():
    config = dataclasses.replace(named["tiny"], token_tracks=1)
    problem = Problem(scatter, config, {"V": 5, "N": 9, "M": 7}, tw.bf16, None)
    with pytest.raises(BadInputError, match="2 load streams of an AGCU, and those .* have 1"):
        problem.compile()


def of_computed_rows(X, ids, T):
    tw.scatter(T, tw.load_tile(ids), tw.load_tile(X) * 2)


def by_computed_numbers(X, ids, T):
    tw.scatter(T, tw.load_tile(ids) + 1, tw.load_tile(X))


def of_the_table(X, ids, T):
    tw.scatter(T, tw.load_tile(ids), tw.load_tile(T))


def twice(X, ids, T):
    for _ in range(2):
        tw.scatter(T, tw.load_tile(ids), tw.load_tile(X))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (of_computed_rows, "`map` beside a scatter is not supported by hardware yet"),
        (by_computed_numbers, "`map` beside a scatter is not supported by hardware yet"),
        (of_the_table, "`T` cannot be scattered to and be loaded in one image"),
        (twice, "not 2 scatters"),
    ],
)
def test_what_no_image_scatters_is_refused_at_its_line(function, message):
    kernel = tw.kernel("X[M, N], ids[M]: int32, T[V, N] -> T")(function)
    problem = Problem(kernel, named["tiny"], {"V": 5, "N": 8, "M": 5}, tw.bf16, None)
    with pytest.raises(tw.ProgramError, match=message) as caught:
        problem.compile()
    assert caught.value.kind == "unserved" and "test_row_scatter.py" in caught.value.where


@tw.kernel("X[M, N], ids[M]: int32, T[V, N] -> T")
def scaled_rows(X, ids, T):
    rows = tw.local(*X.shape, dtype=X.dtype, spill=True)
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(rows[i, :], tw.load_tile(X[i, :]) * 2.0)
    tw.scatter(T, tw.load_tile(ids), tw.load_tile(rows))


@tw.kernel("X[M, N], ids[M]: int32, T[V, N] -> T")
def scattered_and_stored(X, ids, T):
    rows = tw.local(*X.shape, dtype=X.dtype, spill=True)
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(rows[i, :], tw.load_tile(X[i, :]) * 2.0)
    tw.scatter(T, tw.load_tile(ids), tw.load_tile(rows))
    for i in tw.metapipe(T.shape[0]):
        tw.store_tile(T[i, :], tw.load_tile(T[i, :]) + 1.0)


@pytest.mark.parametrize("config", ["tiny", "small"])
def test_computed_rows_are_scattered_from_a_local_tensor(config, seed):
    inputs, _ = case(np.random.default_rng(seed), 9, 24, 13, tw.bf16)
    expected = inputs["T"].copy()
    for number, row in zip(inputs["ids"], inputs["X"], strict=True):
        expected[number] = 2 * row
    found = scaled_rows.run(*inputs.values(), config=config, backend="emulator")
    assert found.verified, found.problems
    assert (found.T == expected).all()
    with pytest.raises(BadInputError, match="`T` must be accessed by nothing but `scatter`"):
        scattered_and_stored.run(*inputs.values(), config=config, backend="emulator")
