"""Tensors updated in place: read before they are overwritten, vector by vector, in any timing."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.arch.launch import Argument
from sim.native.conditions import MemoryConditions
from sim.operands import random_inputs
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.chip_program import ChipProgram
from sw.prove import read_first
from sw.prove.memory_order import memory_faults


@tw.kernel("w[M, N], g[M, N] -> w")
def descent(w, g):
    for i in tw.metapipe(w.shape[0]):
        tw.store_tile(w[i, :], tw.load_tile(w[i, :]) - 0.01 * tw.load_tile(g[i, :]))


@tw.kernel("w[M, N] -> w")
def softmax_in_place(w):
    for i in tw.metapipe(w.shape[0]):
        x = tw.load_tile(w[i, :])
        e = tw.exp(x - tw.row_max(x))
        tw.store_tile(w[i, :], e / tw.row_sum(e))


@tw.kernel("w[M, N], g[N] -> w")
def normed_in_place(w, g):
    for i in tw.metapipe(w.shape[0]):
        x = tw.load_tile(w[i, :])
        s = tw.rsqrt(tw.row_mean(x * x) + 1e-5)
        tw.store_tile(w[i, :], x * s * tw.load_tile(g))


@tw.kernel("w[M, N] -> w")
def columns_in_place(w):
    x = tw.load_tile(w)
    tw.store_tile(w, x * tw.rsqrt(tw.col_sum(x * x) + 1e-5))


@tw.kernel("A[M, N], B[M, N] -> A, B")
def turned(A, B):
    for i in tw.metapipe(A.shape[0]):
        a, b = tw.load_tile(A[i, :]), tw.load_tile(B[i, :])
        tw.store_tile(A[i, :], a * 0.6 - b * 0.8)
        tw.store_tile(B[i, :], a * 0.8 + b * 0.6)


@tw.kernel("C[M, N], A[M, K], B[K, N] -> C")
def product_added(C, A, B):
    for i in tw.metapipe(C.shape[0]):
        a = tw.load_tile(A[i, :])
        for j in tw.metapipe(C.shape[1]):
            tw.store_tile(C[i, j], tw.load_tile(C[i, j]) + a @ tw.load_tile(B[:, j]))


@tw.kernel("w[M, N]: fp32, g[M, N], m[M, N]: fp32, v[M, N]: fp32 -> w, m, v")
def adam(w, g, m, v):
    for i in tw.metapipe(w.shape[0]):
        d = tw.load_tile(g[i, :])
        a = tw.load_tile(m[i, :]) * 0.9 + d * 0.1
        b = tw.load_tile(v[i, :]) * 0.999 + d * d * 0.001
        tw.store_tile(m[i, :], a)
        tw.store_tile(v[i, :], b)
        tw.store_tile(w[i, :], tw.load_tile(w[i, :]) - 0.001 * a / (tw.sqrt(abs(b)) + 1e-8))


KERNELS = (descent, softmax_in_place, normed_in_place, columns_in_place, turned, product_added)
CHIPS = ("tiny", "small", "large")


def problem_of(kernel, chip, rng, most=90):
    dims = sorted({each for argument in kernel.signature.arguments for each in argument.dims})
    sizes = {each: int(rng.integers(1, most)) for each in dims}
    return Problem(kernel, named[chip], sizes, tw.bf16)


@pytest.mark.few(3)
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("kernel", (*KERNELS, adam), ids=lambda each: each.name)
def test_a_tensor_is_updated_in_place(kernel, chip, seed):
    rng = np.random.default_rng(seed)
    job = Job(problem_of(kernel, chip, rng), backend="emulator", seed=seed)
    outcome = run(job, *compile_job(job))
    assert outcome.report["verified"], outcome.problems


@pytest.mark.few(1)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda each: each.name)
def test_an_update_in_place_on_the_rtl(kernel, seed, heavy):
    """Stores follow loads soonest at a latency of 1 cycle; bursts are late at random."""
    rng = np.random.default_rng(seed)
    problem = problem_of(kernel, "tiny", rng, 40)
    for conditions in (
        MemoryConditions(latency=1),
        MemoryConditions(latency=60, jitter=200, stall=0.3, seed=seed),
    ):
        job = Job(problem, backend="rtl", seed=seed, conditions=conditions)
        outcome = run(job, *compile_job(job))
        assert outcome.report["verified"], outcome.problems


@pytest.mark.parametrize(("rows", "ordered"), [(0, True), (1, True), (20, True), (-1, False)])
def test_what_is_read_behind_its_update_is_refused(rows, ordered):
    """The gradient lies where the weights do, so many rows further: read before, or behind."""
    compiled = Problem(descent, named["tiny"], {"M": 40, "N": 64}, tw.bf16).compile()
    program = ChipProgram.unpack(named["tiny"], compiled.parts[0].image)
    weights = 1 << 20
    places = {"w": Argument(weights), "g": Argument(weights + rows * 128)}
    found = memory_faults(program, [places[each.name] for each in compiled.arrays])
    assert (found == ()) == ordered
    if found:
        assert (
            "must wait for a token of AGCU 0 store 0, which writes what it reads" in found[0].text
        )


@pytest.mark.parametrize("count", [200, pytest.param(5000, marks=pytest.mark.slow)])
def test_vectors_precede_where_all_that_they_meet_has_been_read(count, seed):
    rng = np.random.default_rng(seed)
    answers = []
    for _ in range(count):
        cuts = np.sort(rng.choice(60, 2 * rng.integers(1, 9), replace=False)).reshape(-1, 2)
        written = rng.permutation(cuts)
        first = rng.integers(0, 60, rng.integers(1, 12))
        last = first + rng.integers(0, 9, len(first))
        known = np.sort(rng.integers(0, len(first) + 2, len(written)))
        wanted = all(
            known[store] > load
            for store, (begin, end) in enumerate(written)
            for load in range(len(first))
            if max(begin, first[load]) < min(end, last[load])
        )
        found = read_first._precede((first, last), tuple(written.T), known)
        assert found == wanted
        answers.append(found)
    assert 0.1 < np.mean(answers) < 0.9


def test_inputs_of_a_kernel_in_place_are_its_outputs(seed):
    problem = Problem(softmax_in_place, named["small"], {"M": 9, "N": 30}, tw.bf16)
    (x,) = random_inputs(problem.inputs, seed).values()
    found = softmax_in_place.run(x, config="small", backend="emulator")
    assert found.verified and str(found).startswith(
        "softmax_in_place of M = 9, N = 30; bf16 to bf16"
    )


@tw.kernel("A[M, M], B[M, M], C[M, M] -> A, C")
def multiplied(A, B, C):
    acc = tw.load_tile(C)
    for k in tw.metapipe(A.shape[1], 16):
        acc += tw.load_tile(A[:, k]) @ tw.load_tile(B[k, :])
    tw.store_tile(A, acc)
    tw.store_tile(C, acc * 0.5)


@pytest.mark.few(2)
@pytest.mark.parametrize("chip", CHIPS)
def test_a_product_of_old_values_passes_through_memory(chip, seed):
    rng = np.random.default_rng(seed)
    problem = problem_of(multiplied, chip, rng)
    compiled = problem.compile()
    assert len(compiled.parts) > 1 and compiled.intermediates
    job = Job(problem, backend="emulator", seed=seed)
    outcome = run(job, *compile_job(job))
    assert outcome.report["verified"], outcome.problems


@tw.kernel("A[M, M] -> A")
def transposed_in_place(A):
    tw.store_tile(A, tw.load_tile(A).T)


def test_a_square_transposed_in_place_passes_through_memory(seed):
    a = np.random.default_rng(seed).normal(size=(40, 40)).astype(tw.bf16.dtype)
    found = transposed_in_place.run(a, config="small", backend="emulator")
    assert found.verified and (found.A == a.T).all()
    compiled = transposed_in_place.compile("small", M=40, dtype=tw.bf16)
    assert "2 launches; through memory: value.2 40 x 40 bf16" in compiled.report()


@tw.kernel("A[M, M], n[M]: int32 -> A, Y[M, M]")
def gathered_and_transposed(A, n, Y):
    """Gathers of a tensor that changes are not divided from its stores."""
    tw.store_tile(Y, tw.gather(A, tw.load_tile(n)))
    tw.store_tile(A, tw.load_tile(A).T)


def test_what_is_elsewhere_is_refused_at_its_line():
    message = "`A` cannot be overwritten while it is read for other places"
    with pytest.raises(tw.ProgramError, match=message) as refused:
        gathered_and_transposed.compile("small", M=40, dtype=tw.bf16)
    assert refused.value.where.startswith("test_in_place.py:")


def test_a_large_tensor_is_updated_in_place():
    """1,125,000 vectors in each direction."""
    compiled = Problem(descent, named["tiny"], {"M": 1500, "N": 1500}, tw.fp32).compile()
    assert len(compiled.parts) == 1


@tw.kernel("X[H, L, N], s[M, 1]: fp32 -> X")
def first_rows_of_heads(X, s):
    """The first M of L rows of each head, with a column that a phase takes before they are read."""
    for h in tw.each(X.shape[0]):
        for i in tw.metapipe(s.shape[0]):
            x = tw.load_tile(X[h, i, :])
            tw.store_tile(X[h, i, :], (x - tw.row_max(x)) * tw.load_tile(s[i, :]))


@pytest.mark.slow
def test_iterations_whose_order_no_token_tells_are_launches(seed):
    """The kernel was refused, though each of its launches is in order."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(3, 340, 128)).astype(tw.bf16.dtype)
    s = draw.normal(size=(331, 1)).astype(np.float32)
    found = first_rows_of_heads.run(x, s, config="small", backend="emulator")
    assert found.verified, found.problems
    sizes = {"H": 3, "L": 340, "M": 331, "N": 128}
    compiled = Problem(first_rows_of_heads, named["small"], sizes, tw.bf16).compile()
    (part,) = compiled.parts
    assert [each.repeat for each in part.part.launches] == [1, 1, 1]
    assert "3 launches instead of one of 3 iterations: test_in_place.py" in compiled.report()
