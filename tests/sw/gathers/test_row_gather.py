"""Gathers of rows as images: shapes on chips, what simplify makes of a tile, and refusals."""

import dataclasses

import numpy as np
import pytest

import sw.language as tw
from hw.arch.config import named
from hw.arch.errors import BadInputError
from sim.operands import random_inputs
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.gathers.row_limits import row_limits
from sw.ir import nodes as ir
from sw.ir.rewrite import walk
from sw.kernels.gda import gda
from sw.kernels.numbered.embedding import embedding
from sw.passes.simplify import simplify


def result_of(kernel, config, sizes, inputs, dtype=tw.bf16):
    problem = Problem(kernel, config, sizes, dtype, None)
    job = Job(problem, backend="emulator", inputs=inputs)
    compiled, fields = compile_job(job)
    outcome = run(job, compiled, fields)
    assert outcome.report["verified"], outcome.problems
    return compiled, outcome.outputs


@pytest.mark.few
@pytest.mark.parametrize("config", ["tiny", "small", "large"])
@pytest.mark.parametrize(
    ("rows", "columns", "count"), [(9, 7, 13), (1, 1, 1), (40, 300, 5), (3, 8, 600)]
)
@pytest.mark.parametrize("dtype", [tw.bf16, tw.fp32, tw.int8], ids=str)
def test_any_shape_is_gathered(config, rows, columns, count, dtype, seed):
    rng = np.random.default_rng(seed)
    sizes = {"V": rows, "N": columns, "M": count}
    table = rng.integers(-100, 100, (rows, columns)).astype(dtype.dtype)
    ids = rng.integers(0, rows, count, dtype=np.int32)
    compiled, found = result_of(
        embedding, named[config], sizes, {"E": table, "ids": ids}, dtype=dtype
    )
    assert found["Y"].tobytes() == table[ids].tobytes()
    assert len(compiled.parts) == 1


def test_rows_in_another_format_are_a_part_more(seed):
    rng = np.random.default_rng(seed)
    problem = Problem(embedding, named["tiny"], {"V": 5, "N": 9, "M": 7}, tw.bf16, tw.fp32)
    inputs = random_inputs(problem.inputs, seed + 1, wild=False, limits={"ids": 5})
    job = Job(problem, backend="emulator", inputs=inputs, seed=int(rng.integers(99)))
    compiled, fields = compile_job(job)
    assert run(job, compiled, fields).report["verified"] and len(compiled.parts) == 2


def test_numbers_count_from_the_first_row_of_a_part_of_a_table(seed):
    @tw.kernel("T[V, N], ids[M]: int32 -> Y[M, N]")
    def some(T, ids, Y):
        tw.store_tile(Y, tw.gather(T[2:9], tw.load_tile(ids)))

    rng = np.random.default_rng(seed)
    table = rng.integers(-100, 100, (10, 8)).astype(tw.bf16.dtype)
    ids = rng.integers(0, 7, 30, dtype=np.int32)
    inputs = {"T": table, "ids": ids}
    _, found = result_of(some, named["tiny"], {"V": 10, "N": 8, "M": 30}, inputs)
    assert found["Y"].tobytes() == table[2 + ids].tobytes()


@pytest.mark.few
@pytest.mark.parametrize("config", ["tiny", "small", "large"])
@pytest.mark.parametrize(("samples", "columns", "classes"), [(40, 24, 3), (33, 17, 5), (1, 1, 1)])
def test_gda_is_a_gather_a_difference_and_a_product(config, samples, columns, classes, seed):
    rng = np.random.default_rng(seed)
    bf16 = tw.bf16.dtype
    x = rng.normal(size=(samples, columns)).astype(bf16)
    mu = rng.normal(size=(classes, columns)).astype(bf16)
    labels = rng.integers(0, classes, samples, dtype=np.int32)
    sizes = {"M": samples, "N": columns, "C": classes}
    inputs = {"X": x, "y": labels, "mu": mu}
    compiled, found = result_of(gda, named[config], sizes, inputs)
    far = x.astype(np.float32) - mu[labels].astype(np.float32)
    total = np.zeros((columns, columns), np.float32)
    for row in far.astype(bf16).astype(np.float32):
        total += np.outer(row, row)
    assert found["S"].tobytes() == total.tobytes() and len(compiled.parts) == 3


def test_a_tile_that_is_loaded_for_its_rows_stays_in_memory():
    program = simplify(gda.trace(M=20, N=8, C=3, dtype=tw.bf16))
    kinds = [type(node) for node in walk(program.nodes)]
    assert ir.Gather in kinds and ir.Take not in kinds
    loaded = [node.view.tensor for node in walk(program.nodes) if isinstance(node, ir.Load)]
    assert sorted(loaded) == ["X", "y"]


def test_a_tile_of_a_tensor_that_is_stored_is_gathered_from_the_tile():
    @tw.kernel("T[V, N], ids[M]: int32 -> Y[M, N], T")
    def doubled(T, ids, Y):
        table = tw.load_tile(T)
        tw.store_tile(T, table * 2)
        tw.store_tile(Y, tw.gather(table, tw.load_tile(ids)))

    program = simplify(doubled.trace(V=4, N=8, M=5, dtype=tw.bf16))
    assert any(isinstance(node, ir.Take) for node in walk(program.nodes))


def test_row_numbers_that_a_run_draws_are_in_range(seed):
    for kernel, sizes, name in (
        (embedding, {"V": 7, "N": 4, "M": 300}, "ids"),
        (gda, {"M": 300, "N": 4, "C": 6}, "y"),
    ):
        problem = Problem(kernel, named["tiny"], sizes, tw.bf16, None)
        limit = sizes.get("V", sizes.get("C"))
        assert row_limits(problem.program) == {name: limit}
        drawn = random_inputs(problem.inputs, seed, limits=problem.row_limits)[name]
        assert set(drawn.tolist()) == set(range(limit))


def test_a_chip_with_one_token_track_is_refused():
    config = dataclasses.replace(named["tiny"], token_tracks=1)
    problem = Problem(embedding, config, {"V": 5, "N": 9, "M": 7}, tw.bf16, None)
    with pytest.raises(BadInputError, match="2 load streams of an AGCU, and those .* have 1"):
        problem.compile()


def of_a_computed_tile(T, ids, Y):
    tw.store_tile(Y, tw.gather(tw.load_tile(T) + 1, tw.load_tile(ids)))


def test_a_gather_of_a_computed_tile_is_refused_at_its_line():
    kernel = tw.kernel("T[V, N], ids[M]: int32 -> Y[M, N]")(of_a_computed_tile)
    problem = Problem(kernel, named["tiny"], {"V": 10, "N": 8, "M": 5}, tw.bf16, None)
    with pytest.raises(tw.ProgramError, match="`take` is not supported by hardware yet") as caught:
        problem.compile()
    assert caught.value.kind == "unserved" and "test_row_gather.py" in caught.value.where
