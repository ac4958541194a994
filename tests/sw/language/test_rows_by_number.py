"""Rows by number: the printed programs in the interpreter, on ragged blocks with poisoned tails."""

import ml_dtypes
import numpy as np
import pytest

import sw.language as tw
from hw.arch.errors import BadInputError
from sim.golden import golden
from sim.run.error_bounds import error_bounds
from sw.ir import nodes as ir
from sw.ir.rewrite import walk
from sw.ir.sizes import choose_sizes
from sw.passes.accumulate import accumulate
from sw.passes.check import check
from sw.passes.mask import mask
from sw.passes.simplify import simplify
from tests.sw.language.test_programs import check_program, load


def traced(name, arrays):
    kernel = load("sparse")[name]
    bound = kernel.bind(*arrays)
    return kernel.trace(dtype=bound.formats, out=tw.fp32, **bound.dims), bound.arrays


def run(name, arrays, block):
    """Result in all forms of the program, which are equal by bits, and its error bounds."""
    program, named = traced(name, arrays)
    check_program(program)
    sizes = {each.index: block for each in walk(program.nodes) if isinstance(each, ir.Loop)}
    fixed = accumulate(choose_sizes(check(program), sizes))
    simple = simplify(fixed)
    masked = mask(simple)
    check_program(masked)
    (first,) = golden(fixed, named).values()
    for each, poison in ((fixed, True), (simple, False), (simple, True), (masked, True)):
        (other,) = golden(each, named, poison=poison).values()
        assert first.tobytes() == other.tobytes()
    (most,) = error_bounds(fixed, named, 24).values()
    return first, most


@pytest.mark.parametrize("block", [1, 5, 16])
def test_an_embedding_is_the_rows_of_its_numbers(block, seed):
    random = np.random.default_rng(seed)
    table = random.normal(size=(9, 7)).astype(ml_dtypes.bfloat16)
    numbers = random.integers(0, 9, 13, dtype=np.int32)
    found, most = run("embedding", (table, numbers), block)
    assert (found == table[numbers].astype(np.float32)).all() and not most.any()


@pytest.mark.parametrize("block", [1, 5, 16])
def test_gda_sums_outer_products_of_distances_from_class_means(block, seed):
    random = np.random.default_rng(seed)
    x = random.normal(size=(13, 7)).astype(ml_dtypes.bfloat16)
    mu = random.normal(size=(3, 7)).astype(ml_dtypes.bfloat16)
    labels = random.integers(0, 3, 13, dtype=np.int32)
    found, most = run("gda", (x, labels, mu), block)
    d = x.astype(np.float32) - mu[labels].astype(np.float32)
    rounded = d.astype(ml_dtypes.bfloat16).astype(np.float32)
    total = np.zeros((7, 7), np.float32)
    for row in rounded:
        # Products of bf16 are exact in fp32, so a sum has one rounding per term.
        total += np.outer(row, row)
    assert found.tobytes() == total.tobytes()
    exact = x.astype(np.float64) - mu[labels].astype(np.float64)
    assert (np.abs(found - exact.T @ exact) <= most).all() and np.isfinite(most).all()


@pytest.mark.parametrize("block", [1, 5, 16])
def test_a_scatter_add_is_the_sums_of_rows(block, seed):
    rng = np.random.default_rng(seed)
    rows, table = (rng.integers(-(2**31), 2**31, (each, 3), dtype=np.int32) for each in (13, 4))
    numbers = rng.integers(0, 4, 13, dtype=np.int32)
    found, _ = run("scatter_add", (rows, numbers, table), block)
    for number, row in zip(numbers, rows, strict=True):
        table[number] += row
    assert found.tobytes() == table.tobytes()


@pytest.mark.parametrize("name", ["embedding", "gda"])
@pytest.mark.parametrize("number", [-1, 3, 2**31 - 1])
def test_a_number_out_of_range_is_refused_with_its_line(name, number):
    numbers = np.array([0, number, 2], np.int32)
    table = np.ones((3, 4), ml_dtypes.bfloat16)
    arrays = (table, numbers) if name == "embedding" else (table, numbers, table)
    program, named = traced(name, arrays)
    fixed = choose_sizes(program, {"n": 2, "r": 2})
    for poison in (False, True):
        with pytest.raises(BadInputError, match=rf"must be 0 to 2, not {number} \(.*sparse.txt:"):
            golden(fixed, named, poison=poison)
