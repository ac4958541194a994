"""Products of few rows with an epilogue, computed as those of the transposes: equal to golden."""

import itertools
import random

import pytest

import sw.language as tw
from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.numeric.formats import bf16, fp32, int8
from sw.compiler import compile_kernel
from sw.kernels.linear import linear
from sw.kernels.matmul import matmul
from tests.sw.epilogue.test_epilogues import (
    EPILOGUES,
    INTEGERS,
    of_transposes,
    product_then,
    verify,
)
from tests.sw.stages.test_pipelines import side


def product_beside(row, tile):
    """Kernel of a product and of a row and a tile of given formats; of none, without the row."""

    @tw.kernel(f"A[M, K], B[N, K], g[N]: {row or 'bf16'}, R[M, N]: {tile} -> C[M, N]")
    def beside(A, B, g, R, C):
        M, N = C.shape
        for i in tw.metapipe(M):
            a = tw.load_tile(A[i, :])
            for j in tw.metapipe(N):
                c = a @ tw.load_tile(B[j, :]).T
                c = c + tw.load_tile(g[j]) if row else c
                tw.store_tile(C[i, j], c + tw.load_tile(R[i, j]))

    return beside


def few_rows(rng, most=300):
    """Rows, terms and columns: rows of which weights take longer to load than to use."""
    return rng.randint(1, 40), side(rng, most), side(rng, most)


def turned(kernel, sizes, config="small", dtype=bf16):
    """Whether the products of a kernel are those of the transposes."""
    dims = dict(zip("MKN", sizes))
    compiled = compile_kernel(kernel, named[config], dims=dims, dtype=dtype)
    return [part.plan.product.turned for part in compiled.parts if part.plan]


@pytest.mark.few(2)
@pytest.mark.parametrize("name", EPILOGUES)
def test_epilogues_equal_golden_on_few_rows(name, seed):
    rng = random.Random(seed)
    kernel = product_then(EPILOGUES[name][0])
    verify(kernel, rng.choice(("small", "large")), few_rows(rng), out=rng.choice((None, fp32)))


@pytest.mark.few(2)
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_equal_golden_on_few_rows(name, seed):
    function, out = INTEGERS[name]
    rng = random.Random(seed)
    verify(product_then(function), rng.choice(("small", "large")), few_rows(rng), int8, out)


@pytest.mark.few(2)
@pytest.mark.parametrize("formats", [("int8", "bf16"), ("fp32", "int8"), ("int8", "fp32")])
def test_rows_and_tiles_of_other_formats(formats, seed):
    """Of the product of the transposes, groups of rows are whole vectors of the shortest format."""
    verify(product_beside(*formats), "small", few_rows(random.Random(seed)))


def test_operands_may_be_transposed(seed):
    verify(of_transposes, "small", few_rows(random.Random(seed)))


@pytest.mark.few(2)
@pytest.mark.parametrize("kernel", [linear, product_then(EPILOGUES["residual"][0])])
@pytest.mark.parametrize("config", ["small", "large"])
def test_a_bias_or_a_tile_does_not_hinder_the_transposes(kernel, config):
    assert all(turned(kernel, (2, 256, 300), config))


def test_a_bias_costs_few_cycles_beside_few_rows():
    sizes = {"M": 2, "K": 1024, "N": 1000}
    alone, biased = (
        compile_kernel(each, named["small"], dims=sizes, dtype=bf16).predicted_cycles
        for each in (matmul, linear)
    )
    assert biased <= 1.05 * alone


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("row", "tile", "sizes"), [(None, "int8", (1, 18, 37)), ("int8", "fp32", (32, 496, 37))]
)
def test_six_columns_of_pcus_have_no_whole_vectors_of_int8(row, tile, sizes):
    """They are one and a half vectors, which are not divided between two inputs or walked over."""
    verify(product_beside(row, tile), "small", sizes)
    verify(product_beside(row, tile), "small", sizes, out=fp32)


@pytest.mark.few(1)
@pytest.mark.parametrize("rows", [1, 8, 9, 24])
def test_a_grid_of_more_columns_than_the_result_has_rows(rows):
    """A port of which all PCUs have padding alone loads no tile."""
    kernel, grids = product_then(EPILOGUES["residual"][0]), itertools.product((1, 2, 4), (1, 4, 8))
    for grid, sizes in itertools.product(grids, ((rows, 64, 200), (200, 64, rows))):
        schedule = tw.Schedule(row_par={"c": grid[0]}, col_par={"c": grid[1]})
        try:
            verify(kernel, "small", sizes, schedule=schedule)
        except BadInputError as error:
            assert error.kind in ("does-not-fit", "schedule"), (grid, sizes, error)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scale and bias", "residual", "bias and its use again"])
def test_rtl_of_small_equals_golden_under_random_stalls(name, heavy, seed):
    sizes = few_rows(random.Random(seed), 120)
    more = {"backend": "rtl", "seed": seed % 1000, "jitter": 20}
    verify(product_then(EPILOGUES[name][0]), "small", sizes, **more)
