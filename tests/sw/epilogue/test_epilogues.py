"""Products with element math on their sums: equal to golden, few programs, and what is refused."""

import dataclasses
import random

import numpy as np
import pytest

import sw.language as tw
from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.numeric.formats import bf16, fp32, int8
from sim.operands import random_operand
from sw.compiler import compile_kernel
from sw.ir.types import Role
from sw.kernels.flash_attention import flash_attention
from sw.kernels.linear import linear
from sw.kernels.linear_gelu import linear_gelu
from sw.kernels.matmul import matmul
from sw.kernels.residual import residual
from sw.passes.accumulate import accumulate
from sw.passes.check import check
from sw.passes.product_recognition import stage
from sw.passes.simplify import simplify
from tests.sw.stages.test_pipelines import side


def product_then(function):
    """Kernel of a product and a function of its sums, of a vector and of a tile."""

    @tw.kernel("A[M, K], B[K, N], g[N], R[M, N] -> C[M, N]")
    def epilogue(A, B, g, R, C):
        M, N = C.shape
        for i in tw.metapipe(M):
            a = tw.load_tile(A[i, :])
            for j in tw.metapipe(N):
                c = tw.matmul(a, tw.load_tile(B[:, j]))
                tw.store_tile(C[i, j], function(c, tw.load_tile(g[j]), tw.load_tile(R[i, j])))

    return epilogue


#: Function of sums, vector and tile, and the phases in the product's PCUs and behind them if none
#: are joined.
EPILOGUES = {
    "relu": (lambda c, g, r: tw.maximum(c, 0.0), 1, 0),
    "scale and bias": (lambda c, g, r: c * 0.5 + g, 1, 0),
    "residual": (lambda c, g, r: c + r, 1, 0),
    "sigmoid": (lambda c, g, r: tw.sigmoid(c), 1, 1),
    "tanh of a bias": (lambda c, g, r: tw.tanh(c + g), 1, 1),
    "bias, then residual": (lambda c, g, r: c + g + r, 1, 1),
    "residual, then bias": (lambda c, g, r: (c + r) * 0.5 + g, 1, 1),
    "sum of both": (lambda c, g, r: c + (r * 0.5 + g), 0, 2),
    "gate": (lambda c, g, r: tw.silu(c) * r, 0, 3),
    "gate by a tile": (lambda c, g, r: tw.silu(r) * c, 0, 3),
    "bias and its use again": (lambda c, g, r: tw.silu(c + g) + g, 1, 3),
    "rounded sums": (lambda c, g, r: tw.gelu((c + g).to(tw.bf16)) + r, 1, 5),
}
INTEGERS = {
    "bias": (lambda c, g, r: c + g, None),
    "residual": (lambda c, g, r: c + r, None),
    "relu to int8": (lambda c, g, r: tw.maximum(c, 0).to(tw.int8), None),
    "saturated to int8": (lambda c, g, r: c, int8),
    "bias and residual to int8": (lambda c, g, r: (c + g + r).to(tw.int8), None),
}


def verify(kernel, config, sizes, dtype=bf16, out=None, **more):
    """Run; the run itself compares with golden and checks the guards."""
    dims = dict(zip("MKN", sizes))
    program = kernel.trace(dtype=dtype, out=out, **dims)
    inputs = [each.type for each in program.tensors if each.type.role is Role.IN]
    draw = np.random.default_rng(sizes)
    arrays = [
        draw.normal(size=each.shape).astype(np.float32)
        if each.format is fp32
        else random_operand(draw, each.shape, each.format)
        for each in inputs
    ]
    result = kernel.run(*arrays, config=config, out=out, **{"backend": "emulator", **more})
    assert result.verified, (sizes, dtype, result.problems)


def sizes_of(rng, most=150):
    return tuple(side(rng, most) for _ in range(3))


@pytest.mark.few(2)
@pytest.mark.parametrize("name", EPILOGUES)
def test_epilogues_equal_golden_on_random_shapes(name, seed, draws):
    function, first, behind = EPILOGUES[name]
    kernel, rng = product_then(function), random.Random(seed)
    for out in rng.sample((None, fp32), draws(1, 2)):
        verify(kernel, "small", sizes_of(rng, 80), out=out)
    compiled = compile_kernel(kernel, named["small"], dims={"M": 9, "K": 8, "N": 20}, dtype=bf16)
    epilogue = compiled.parts[0].plan.product.epilogue
    assert sum(len(code.phases) for code in epilogue.codes) == first + behind


@pytest.mark.parametrize("config", ["small", "large"])
def test_element_math_of_a_tile_before_the_sums_are_added(config, seed):
    """The first of the lane programs takes no sums, so PCUs of the product do not run it."""
    squares = product_then(lambda c, g, r: (r * g) * (r * g) + c)
    verify(squares, config, sizes_of(random.Random(seed), 80))


@pytest.mark.few(2)
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_equal_golden_on_random_shapes(name, seed):
    function, out = INTEGERS[name]
    rng = random.Random(seed)
    for _ in range(2):
        verify(product_then(function), "small", sizes_of(rng, 80), int8, out)


@tw.kernel("A[K, M], B[N, K], g[N] -> C[M, N]")
def of_transposes(A, B, g, C):
    for i in tw.metapipe(C.shape[0]):
        a = tw.load_tile(A[:, i])
        for j in tw.metapipe(C.shape[1]):
            c = a.T @ tw.load_tile(B[j, :]).T
            tw.store_tile(C[i, j], tw.maximum(c + tw.load_tile(g[j]), 0.0))


def test_operands_may_be_transposed(seed):
    verify(of_transposes, "small", sizes_of(random.Random(seed), 80))


@pytest.mark.slow
@pytest.mark.parametrize("name", EPILOGUES)
def test_epilogues_equal_golden_on_many_shapes(name, seed):
    rng = random.Random(seed)
    for _ in range(10):
        out = rng.choice((None, fp32))
        config = rng.choice(("small", "large"))
        verify(product_then(EPILOGUES[name][0]), config, sizes_of(rng, 400), out=out)


@pytest.mark.few(1)
@pytest.mark.parametrize("sizes", [(1, 20, 33), (21, 17, 1), (1, 1, 1)])
def test_sides_of_one(sizes):
    for name in ("scale and bias", "residual", "bias, then residual", "bias and its use again"):
        verify(product_then(EPILOGUES[name][0]), "small", sizes)


def test_the_largest_chip_runs_them(seed, draws):
    rng = random.Random(seed)
    for name in rng.sample(("residual, then bias", "gate"), draws(1, 2)):
        verify(product_then(EPILOGUES[name][0]), "large", sizes_of(rng, 80))
    verify(product_then(INTEGERS["bias and residual to int8"][0]), "large", (20, 9, 70), int8)


def test_the_smallest_chip_runs_those_without_inputs(seed):
    rng = random.Random(seed)
    for name in ("relu", "sigmoid"):
        verify(product_then(EPILOGUES[name][0]), "tiny", sizes_of(rng, 60))


@pytest.mark.parametrize("name", ["relu", "sigmoid"])
def test_rtl_of_tiny_equals_golden_under_random_stalls(name, heavy, seed):
    kernel = product_then(EPILOGUES[name][0])
    verify(kernel, "tiny", (11, 9, 13), backend="rtl", seed=seed % 1000, jitter=20)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [linear, residual, linear_gelu], ids=lambda each: each.name)
def test_rtl_of_small_equals_golden_under_random_stalls(kernel, heavy, seed):
    rng = random.Random(seed)
    verify(kernel, "small", sizes_of(rng, 100), backend="rtl", seed=seed % 1000, jitter=20)


def test_every_grid_of_a_chain_is_live(draws):
    """Two ports with two and four PCUs, whose merge stands beside the chain's first PCU."""
    kernel = product_then(EPILOGUES["bias, then residual"][0])
    for rows, columns in ((3, 1), (2, 2), (3, 2), (1, 4))[: draws(2, 4)]:
        schedule = tw.Schedule(row_par={"c": rows}, col_par={"c": columns})
        verify(kernel, "small", (64, 40, 96), schedule=schedule)
    gate = product_then(lambda c, g, r: tw.maximum(c * 0.5 + g, 0.0))
    schedule = tw.Schedule(row_par={"c": 1}, col_par={"c": 6})
    verify(gate, "small", (64, 40, 96), schedule=schedule)


#: Functions of the sums, of two vectors and of a tile, which one PCU computes.
OF_TWO = {
    "scale and bias": lambda c, g, h, r: c * g + h,
    "scale, bias and maximum": lambda c, g, h, r: tw.maximum(c * g + h, 0.0),
    "bias and residual": lambda c, g, h, r: c + g + r,
    "bias, function and gate": lambda c, g, h, r: tw.sigmoid(c + g) * r,
    "bias and residual in fp32": lambda c, g, h, r: c + h + r.to(tw.fp32),
}


def product_of_two(function):
    """Kernel of a product and a function of its sums, of two vectors and of a tile."""

    @tw.kernel("A[M, K], B[K, N], g[N], h[N]: fp32, R[M, N] -> C[M, N]")
    def epilogue(A, B, g, h, R, C):
        M, N = C.shape
        for i in tw.metapipe(M):
            a = tw.load_tile(A[i, :])
            for j in tw.metapipe(N):
                c = tw.matmul(a, tw.load_tile(B[:, j]))
                vectors = tw.load_tile(g[j]), tw.load_tile(h[j])
                tw.store_tile(C[i, j], function(c, *vectors, tw.load_tile(R[i, j])))

    return epilogue


@pytest.mark.few(1)
@pytest.mark.parametrize("config", ["small", "large"])
@pytest.mark.parametrize("name", OF_TWO)
def test_two_inputs_in_one_stream_equal_golden(name, config, seed, draws):
    kernel, rng = product_of_two(OF_TWO[name]), random.Random(seed)
    for out in rng.sample((None, fp32), draws(1, 2)):
        verify(kernel, config, sizes_of(rng, 150), out=out)
    dims = {"M": 256, "K": 256, "N": 256}
    (part,) = compile_kernel(kernel, named[config], dims=dims, dtype=bf16).parts
    epilogue = part.product.epilogue
    assert len(epilogue.beside_sums) == 2 and not epilogue.chain


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["scale and bias", "bias and residual"])
@pytest.mark.parametrize("grid", [(4, 1), (4, 2), (2, 4), (3, 2), (1, 8), (1, 1)])
def test_every_grid_takes_two_inputs_in_one_stream(name, grid):
    """Row groups and columns at a port, in turn; blocks cut short, and several passes."""
    schedule = tw.Schedule(row_par={"c": grid[0]}, col_par={"c": grid[1]})
    verify(product_of_two(OF_TWO[name]), "small", (150, 130, 200), schedule=schedule)


def test_integers_take_two_inputs_in_one_stream(seed):
    function = INTEGERS["bias and residual to int8"][0]
    for _ in range(3):
        verify(product_then(function), "small", sizes_of(random.Random(seed), 80), int8)


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_TWO)
def test_rtl_of_small_takes_two_inputs_in_one_stream(name, heavy, seed):
    kernel, rng = product_of_two(OF_TWO[name]), random.Random(seed)
    for _ in range(2):
        more = {"backend": "rtl", "seed": seed % 1000, "jitter": 20}
        verify(kernel, "small", sizes_of(rng, 100), **more)


@pytest.mark.slow
def test_the_first_phase_costs_few_cycles():
    """Lanes drain the sums of a pass while the grid computes the next one."""
    dims = dict.fromkeys("MKN", 256)
    plain, *fused = (
        compile_kernel(each, named["small"], dims=dims, dtype=bf16).predicted_cycles
        for each in (matmul, linear, residual)
    )
    assert all(each < 1.04 * plain for each in fused), (plain, fused)


def test_a_chain_takes_pcus_from_the_grid():
    dims = dict.fromkeys("MKN", 64)
    kernel = product_then(EPILOGUES["residual, then bias"][0])
    compiled = compile_kernel(kernel, named["small"], dims=dims, dtype=bf16)
    lanes = sum(line.split(": ")[1] == "lanes" for line in compiled.ir("graph").splitlines())
    (part,) = compiled.parts
    grid = part.plan.row_par * part.plan.col_par
    # A tile stands behind a vector in one stream, not before it.
    assert [len(code.phases) for code in part.product.epilogue.codes] == [1, 1]
    assert lanes == len(part.fit.collectors)
    assert compiled.units_used["pcu"] == grid + lanes <= named["small"].pcu_count


@pytest.mark.parametrize("sizes", [(64, 64, 64), (300, 70, 90)])
def test_a_vector_and_a_tile_leave_all_pcus_to_the_product(sizes):
    dims = dict(zip("MKN", sizes))
    (part,) = compile_kernel(linear_gelu, named["small"], dims=dims, dtype=bf16).parts
    assert [len(code.phases) for code in part.product.epilogue.codes] == [6]
    assert part.plan.row_par * part.plan.col_par == named["small"].pcu_count


@pytest.mark.parametrize(
    ("named_grid", "asked"),
    [({"row_par": {"c": 8}}, "8 x 1"), ({"col_par": {"c": 8}}, "1 x 8")],
    ids=["rows", "columns"],
)
def test_a_grid_beside_a_chain_is_refused_by_the_pcus_left(named_grid, asked):
    rule = "at most the chip's 8 PCUs less 1 for element math behind the product"
    with pytest.raises(
        BadInputError, match=f"row_par x col_par of `c` must be {rule}, not {asked}"
    ):
        compile_kernel(
            product_then(EPILOGUES["residual, then bias"][0]),
            named["small"],
            dims={"M": 3, "K": 5, "N": 53},
            dtype=bf16,
            schedule=tw.Schedule(**named_grid),
        )


def test_a_chain_stands_behind_a_product_only_where_that_is_faster(seed):
    """With many terms the PCUs of the chain are missed more than the sums' way through memory."""
    few, many = (
        compile_kernel(linear_gelu, named["small"], dims={"M": 64, "N": 48, "K": k}, dtype=bf16)
        for k in (32, 2048)
    )
    assert len(few.parts) == 1 and not any("instead of behind" in each for each in few.notes)
    assert len(many.parts) == 2 and any("instead of behind" in each for each in many.notes)
    assert [len(code.phases) for code in many.parts[0].product.epilogue.codes] == [5]
    verify(linear_gelu, "small", (64, 256, 48))


def refused(kernel, config, match, dtype=bf16, **dims):
    dims = {"M": 20, "K": 30, "N": 40, **dims}
    with pytest.raises(BadInputError, match=match):
        compile_kernel(kernel, config, dims=dims, dtype=dtype)


def test_what_does_not_fit_is_refused_with_needs_and_haves():
    tiny, small = named["tiny"], named["small"]
    # A bias beside the sums needs three load streams, so it is added by another image.
    sizes = {"M": 20, "K": 30, "N": 40}
    assert len(compile_kernel(linear, tiny, dims=sizes, dtype=bf16).parts) == 2
    # The product, the bias with the function, and the residual.
    assert len(compile_kernel(linear_gelu, tiny, dims=sizes, dtype=bf16).parts) == 3
    bare = dataclasses.replace(small, pcu=dataclasses.replace(small.pcu, lanes=0))
    refused(residual, bare, r"residual.py:\d+: Element math on a product needs PCUs with lanes")


@tw.kernel("A[M, K], B[K, N], R[M, N] -> C[M, N]")
def started(A, B, R, C):
    """A sum that starts from a tile, which is added at its end."""
    for i in tw.metapipe(A.shape[0]):
        tw.store_tile(C[i, :], tw.load_tile(R[i, :]) + tw.load_tile(A[i, :]) @ tw.load_tile(B))


def test_a_sum_may_start_from_a_tile(seed):
    verify(started, "small", sizes_of(random.Random(seed), 60))


def test_what_is_no_epilogue_is_refused_at_its_line():
    """By the image of the whole; several images may serve it."""

    @tw.kernel("A[M, K], B[K, N], R[M, M] -> C[M, N]")
    def elsewhere(A, B, R, C):
        for i in tw.metapipe(A.shape[0]):
            c = tw.load_tile(A[i, :]) @ tw.load_tile(B)
            tw.store_tile(C[i, :], c + tw.row_sum(tw.load_tile(R[i, :])))

    @tw.kernel("A[M, K], B[K, N], r[N, M] -> C[M, N]")
    def other(A, B, r, C):
        for i in tw.metapipe(A.shape[0]):
            c = tw.load_tile(A[i, :]) @ tw.load_tile(B)
            tw.store_tile(C[i, :], c + tw.load_tile(r[0, 0]))

    for kernel, message in (
        (elsewhere, "`sum` is not supported by hardware yet beside a product"),
        (other, r"`r\[0, 0\]` is not supported"),
    ):
        program = check(kernel.trace(dtype=bf16, M=20, K=30, N=40))
        with pytest.raises(tw.ProgramError, match=rf"test_epilogues.py:\d+: {message}"):
            stage(simplify(accumulate(program)), named["small"])


@pytest.mark.slow
def test_a_format_that_lanes_do_not_take_is_the_reason_of_a_refusal():
    config = dataclasses.replace(
        named["small"], pcu=dataclasses.replace(named["small"].pcu, formats=("fp16",))
    )
    dims = {"H": 1, "G": 1, "M": 16, "S": 16, "D": 16}
    message = "`max` is not supported by hardware yet for tensors of fp16 beside a product, as `Q`"
    with pytest.raises(tw.ProgramError, match=message):
        compile_kernel(flash_attention, config, dims=dims, dtype=tw.fp16)


def test_a_store_may_round_once_more_than_a_cast():
    """A cast between product and store is one of its own if the result is wider."""

    @tw.kernel("A[M, K], B[K, N] -> C[M, N]")
    def rounded(A, B, C):
        for i in tw.metapipe(A.shape[0]):
            c = tw.load_tile(A[i, :]) @ tw.load_tile(B)
            tw.store_tile(C[i, :], c.to(tw.bf16))

    verify(rounded, "small", (20, 30, 40), out=fp32)
