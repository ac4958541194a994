"""The programs of the language page, as printed, against independent float64 answers.

Each runs on random ragged sizes, on clipped tiles and on full tiles whose tails hold NaN, before
and after the passes.
"""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import sw.language as tw
from sim.golden import golden
from sim.run.error_bounds import error_bounds
from sw.ir.parse import parse_program
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.ir.sizes import choose_sizes
from sw.ir.text import print_program
from sw.ir.verify import verify
from sw.passes.accumulate import accumulate
from sw.passes.check import check
from sw.passes.mask import mask
from sw.passes.simplify import simplify

PROGRAMS = Path(__file__).parent / "programs"
SIZES = 60


def load(file: str) -> dict[str, Any]:
    """Run a file of programs as printed, with the language under the name they use."""
    path = PROGRAMS / f"{file}.txt"
    names: dict[str, Any] = {"tw": tw}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names


def normed(X, g, eps=1e-5):
    return X / np.sqrt((X * X).mean(axis=-1, keepdims=True) + eps) * g


def silu(x):
    return x / (1 + np.exp(-x))


def attended(Q, K, V, causal=False):
    heads, rows, depth = Q.shape
    groups, keys, _ = K.shape
    K, V = (np.repeat(each, heads // groups, axis=0) for each in (K, V))
    s = Q @ np.swapaxes(K, 1, 2) * depth**-0.5
    if causal:
        seen = np.arange(keys) <= np.arange(rows)[:, None] + keys - rows
        s = np.where(seen, s, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e @ V / e.sum(axis=-1, keepdims=True)


def causal(Q, K, V):
    return attended(Q, K, V, causal=True)


def softmax(X):
    e = np.exp(X - X.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def product(A, B):
    return A @ B


def gated(X, Wg, Wu, Wd):
    return silu(X @ Wg) * (X @ Wu) @ Wd


#: File, kernel, shapes by dimension, answer, options, tolerance of bf16 steps in between.
CASES = [
    ("matmul", "matmul", ("MK", "KN"), product, {"MM": 16, "NN": 8}, 1e-5),
    ("ring", "matmul_lcf", ("MK", "KN"), product, {"MM": 16, "NN": 8, "KK": 12}, 1e-5),
    ("gemm", "gemm", ("MK", "KN"), product, {}, 1e-5),
    ("softmax", "softmax", ("MN",), softmax, {}, 1e-5),
    ("softmax", "attention", ("HMD", "HSD", "HSD"), attended, {}, 2e-2),
    ("flash", "flash_attention", ("HMD", "GSD", "GSD"), attended, {}, 2e-2),
    ("flash", "flash_attention", ("HMD", "GSD", "GSD"), causal, {"causal": True}, 2e-2),
    ("mlp", "rms_norm", ("MD", "D"), normed, {}, 1e-5),
    ("mlp", "mlp", ("MD", "DF", "DF", "FD"), gated, {}, 2e-2),
]


#: The cases of longest programs: here of few sizes, of all in `make regress`.
FLASH = [case for case in CASES if case[1] == "flash_attention"]


def sizes_of(kernel: str, options: dict[str, Any], random: np.random.Generator) -> dict[str, int]:
    sizes = {name: int(random.integers(1, 24)) for name in "MKNDSF"}
    sizes["G"] = int(random.integers(1, 3))
    sizes["H"] = sizes["G"] * int(random.integers(1, 3))
    if options.get("causal"):
        # No query stands before the first key.
        sizes["S"] = sizes["M"] + int(random.integers(0, 12))
    return sizes


def narrow(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return values.astype(ml_dtypes.bfloat16)


def check_program(program: Program) -> None:
    verify(program)
    text = print_program(program)
    assert parse_program(text) == program
    assert print_program(parse_program(text)) == text


@pytest.mark.must("slice-j", goal="NaN-poisoned tails change no result")
@pytest.mark.parametrize(
    ("file", "name", "shapes", "answer", "options", "tolerance"),
    [pytest.param(*case, marks=pytest.mark.slow if case in FLASH else ()) for case in CASES],
    ids=[f"{case[1]}{'-causal' if case[4].get('causal') else ''}" for case in CASES],
)
def test_printed_programs_equal_float64_on_ragged_sizes(
    file, name, shapes, answer, options, tolerance, seed, figure, draws
):
    print(f"seed {seed}")
    sizes = draws(6, SIZES)
    check_sizes((file, name, shapes, answer, options, tolerance), seed, sizes)
    figure(f"{name}: {sizes} ragged sizes with poisoned tails, no bit differs")


@pytest.mark.few(1)
@pytest.mark.parametrize("case", FLASH, ids=["full", "causal"])
def test_flash_attention_equals_float64_on_some_ragged_sizes(case, seed):
    print(f"seed {seed}")
    check_sizes(case, seed, 4)


def check_sizes(case: tuple[Any, ...], seed: int, number: int) -> None:
    file, name, shapes, answer, options, tolerance = case
    kernel = load(file)[name]
    random = np.random.default_rng(seed)
    for count in range(number):
        sizes = sizes_of(name, options, random)
        inputs = [narrow(random.normal(size=[sizes[dim] for dim in shape])) for shape in shapes]
        bound = kernel.bind(*inputs)
        program = kernel.trace(dtype=bound.formats, out=tw.fp32, **bound.dims, **options)
        check_program(program)
        wanted = {
            each.index: int(random.integers(1, 12))
            for each in walk(program.nodes)
            if getattr(each, "mode", "") == "metapipe"
        }
        fixed = accumulate(choose_sizes(check(program), wanted))
        simple = simplify(fixed)
        masked = mask(simple)
        check_program(masked)
        reference = answer(*(each.astype(np.float64) for each in inputs))
        scale = np.abs(reference).max() + 1
        for bits, least in ((24, 0), (16, 2.0**-13)):
            (first,) = golden(fixed, bound.arrays, function_bits=bits).values()
            near = max(tolerance, least) * scale
            np.testing.assert_allclose(first, reference, rtol=0, atol=near)
            if count % 4 == 0:
                (most,) = error_bounds(fixed, bound.arrays, bits).values()
                assert np.isfinite(most).all() and (np.abs(first - reference) <= most).all()
        for each, poison in ((fixed, True), (simple, bool(count % 2)), (masked, True)):
            (other,) = golden(each, bound.arrays, poison=poison).values()
            assert first.tobytes() == other.tobytes(), (sizes, wanted)


def test_schedules_of_the_page_name_what_the_program_has():
    names = load("gemm")
    program = names["gemm"].trace(M=8, N=8, K=8, dtype=tw.bf16)
    tw.check_schedule(names["wide"], program)
    tw.check_schedule(names["deep"], program)


def test_tile_sizes_of_a_carried_sum_of_products_change_no_bit(seed):
    kernel = load("gemm")["gemm"]
    random = np.random.default_rng(seed)
    a, b = narrow(random.normal(size=(13, 37))), narrow(random.normal(size=(37, 11)))
    program = kernel.trace(M=13, K=37, N=11, dtype=tw.bf16, out=tw.fp32)
    answers = {
        golden(accumulate(choose_sizes(program, {"i": i, "j": j, "k": k})), {"A": a, "B": b})[
            "C"
        ].tobytes()
        for i, j, k in ((13, 11, 37), (4, 4, 4), (1, 11, 5), (13, 1, 36))
    }
    assert len(answers) == 1


def test_tile_sizes_change_no_bit_of_a_sum_that_starts_from_a_tile(seed):
    @tw.kernel("A[M, K], B[K, N], X[M, N] -> C[M, N]")
    def added(A, B, X, C):
        x = tw.load_tile(X).to(tw.fp32)
        for k in tw.metapipe(A.shape[1]):
            x += tw.load_tile(A[:, k]) @ tw.load_tile(B[k, :])
        tw.store_tile(C, x)

    random = np.random.default_rng(seed)
    a, b = narrow(random.normal(size=(13, 37))), narrow(random.normal(size=(37, 11)))
    inputs = {"A": a, "B": b, "X": narrow(random.normal(size=(13, 11)))}
    program = added.trace(M=13, K=37, N=11, dtype=tw.bf16, out=tw.fp32)
    answers = {
        golden(accumulate(choose_sizes(program, {"k": k})), inputs)["C"].tobytes()
        for k in (37, 4, 5, 36)
    }
    zeros = {**inputs, "X": np.zeros_like(inputs["X"])}
    sums = golden(accumulate(choose_sizes(program, {"k": 37})), zeros)["C"]
    assert answers == {(sums + inputs["X"].astype(np.float32)).tobytes()}
