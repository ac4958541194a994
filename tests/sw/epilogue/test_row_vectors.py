"""Vectors along the rows beside the sums of a product: one element for each row of the result."""

import random

import numpy as np
import pytest

import sw.language as tw
from hw.arch.config import named
from hw.numeric.formats import bf16, fp32, int8
from sim.operands import random_operand
from sim.run.job import Problem
from sw.compiler import compile_kernel
from tests.attention_in_parts import attention_in_parts
from tests.sw.epilogue.test_epilogues import sizes_of


def product_and(function, form):
    """Kernel of a product and a function of its sums and of vectors along rows and columns."""

    @tw.kernel(f"A[M, K], B[K, N], s[M, 1]: {form}, g[N] -> C[M, N]")
    def row_vector(A, B, s, g, C):
        M, N = C.shape
        for i in tw.metapipe(M):
            a, own = tw.load_tile(A[i, :]), tw.load_tile(s[i, :])
            for j in tw.metapipe(N):
                c = tw.matmul(a, tw.load_tile(B[:, j]))
                tw.store_tile(C[i, j], function(c, own, tw.load_tile(g[j])))

    return row_vector


#: Function of sums and vectors, format of that of the rows, and the programs behind the product.
FUNCTIONS = {
    "scale": (lambda c, s, g: c * s, "fp32", 0),
    "scale in bf16": (lambda c, s, g: tw.maximum(c * s, 0.0), "bf16", 0),
    "quotient": (lambda c, s, g: c / s, "fp32", 0),
    "scale and bias": (lambda c, s, g: c * s + g, "fp32", 1),
    "scales": (lambda c, s, g: c.to(tw.fp32) * s * g.to(tw.fp32), "fp32", 1),
}


def verify(kernel, config, sizes, dtype=bf16, out=None, **more):
    """Run with vectors of numbers of many magnitudes; the run itself compares with golden."""
    (m, k, n), draw = sizes, np.random.default_rng(sizes)
    form = kernel.trace(dtype=dtype, M=2, K=2, N=2).tensor("s").type.format
    numbers = (draw.normal(size=m + n) * 2.0 ** draw.integers(-8, 8, m + n)).astype(np.float32)
    arrays = (
        random_operand(draw, (m, k), dtype),
        random_operand(draw, (k, n), dtype),
        numbers[:m, np.newaxis].astype(form.dtype),
        numbers[m:].astype(bf16.dtype) if dtype == bf16 else random_operand(draw, (n,), dtype),
    )
    result = kernel.run(*arrays, config=config, out=out, **{"backend": "emulator", **more})
    assert result.verified, (sizes, dtype, result.problems)


@pytest.mark.few(2)
@pytest.mark.parametrize("config", ["small", "large"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_row_vectors_equal_golden_on_random_shapes(name, config, seed):
    rng = random.Random(seed)
    function, form, behind = FUNCTIONS[name]
    kernel = product_and(function, form)
    sizes = sizes_of(rng)
    verify(kernel, config, sizes, out=rng.choice([bf16, fp32]))
    if name == "scales":
        verify(kernel, config, sizes, int8, out=bf16)
    dims = {"M": 64, "K": 40, "N": 96}
    (part,) = compile_kernel(kernel, named["small"], dims=dims, dtype=bf16).parts
    assert part.product is not None and part.product.epilogue is not None
    assert len(part.product.epilogue.columns) == 1
    assert len(part.product.epilogue.chain) == behind


@pytest.mark.few(3)
@pytest.mark.parametrize("grid", [(4, 1), (4, 2), (3, 2), (2, 2), (1, 8)])
def test_every_grid_is_live(grid):
    """Row blocks of several groups, the last one cut short, and several passes for each."""
    schedule = tw.Schedule(row_par={"c": grid[0]}, col_par={"c": grid[1]})
    kernel = product_and(FUNCTIONS["scale"][0], "fp32")
    verify(kernel, "small", (150, 40, 200), schedule=schedule)


@pytest.mark.few(1)
@pytest.mark.parametrize("sizes", [(1, 20, 33), (21, 17, 1), (2, 1, 1), (700, 9, 8)])
def test_sides_of_one_and_many_rows(sizes):
    verify(product_and(FUNCTIONS["scale"][0], "fp32"), "small", sizes)
    verify(product_and(FUNCTIONS["scale"][0], "fp32"), "tiny", sizes)


def test_columns_of_a_port_are_whole_steps_of_a_vector():
    """Three PCUs a port would read one and a half vectors of a bias in bf16."""
    verify(product_and(*FUNCTIONS["scale and bias"][:2]), "small", (5, 96, 42), out=fp32)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quotient", "scale and bias"])
def test_rtl_of_small_equals_golden_under_random_stalls(name, heavy, seed):
    function, form, _ = FUNCTIONS[name]
    sizes = sizes_of(random.Random(seed), 100)
    more = {"backend": "rtl", "seed": seed % 1000, "jitter": 20}
    verify(product_and(function, form), "small", sizes, **more)


def test_attention_divides_by_its_sums_in_the_product():
    sizes = {"H": 2, "M": 64, "S": 64, "D": 32}
    compiled = Problem(attention_in_parts, named["small"], sizes, bf16).compile()
    assert len(compiled.parts) == 3


def test_a_vector_along_rows_behind_the_pcus_of_the_product_is_a_part_more():
    kernel = product_and(lambda c, s, g: tw.silu(c) * s, "fp32")
    dims = {"M": 20, "K": 30, "N": 40}
    assert len(compile_kernel(kernel, named["small"], dims=dims, dtype=bf16).parts) == 2
    verify(kernel, "small", (20, 30, 40))


@pytest.mark.parametrize(("rows", "parts"), [(8, 2), (48, 1)])
def test_a_product_of_few_rows_stands_apart_where_that_is_faster(rows, parts):
    """Alone it is computed transposed, which loads its weights faster than they are used."""
    kernel = product_and(FUNCTIONS["scale"][0], "fp32")
    dims = {"M": rows, "K": 512, "N": 512}
    assert len(compile_kernel(kernel, named["small"], dims=dims, dtype=bf16).parts) == parts


def test_a_chip_of_few_load_streams_takes_a_part_more(seed):
    rng = np.random.default_rng(seed)
    sizes = tuple(int(each) for each in rng.integers(2, 40, 3))
    verify(product_and(FUNCTIONS["scale"][0], "fp32"), "tiny", sizes)
