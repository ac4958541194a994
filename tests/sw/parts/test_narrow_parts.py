"""Logarithms of sums, and other element math of one number per row: a part of its own."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.array_spec import arrays_of
from sw.parts.narrow_cut import narrow_cuts
from sw.passes.accumulate import accumulate
from sw.passes.check import check
from sw.passes.simplify import simplify


@tw.kernel("X[M, N] -> Y[M, N]")
def logarithms(X, Y):
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.log(tw.load_tile(X[i, :])))


@logarithms.reference
def _(X):
    with np.errstate(all="ignore"):
        return np.log(X)


@tw.kernel("X[M, N] -> Y[M, N]")
def log_softmax(X, Y):
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        d = x - tw.row_max(x)
        tw.store_tile(Y[i, :], d - tw.log(tw.row_sum(tw.exp(d))))


@log_softmax.reference
def _(X):
    d = X - X.max(axis=1, keepdims=True)
    return d - np.log(np.exp(d).sum(axis=1, keepdims=True))


@tw.kernel("X[M, N] -> L[M, 1]: fp32")
def log_sum_exp(X, L):
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        most = tw.row_max(x)
        tw.store_tile(L[i, :], most + tw.log(tw.row_sum(tw.exp(x - most))))


@log_sum_exp.reference
def _(X):
    return np.log(np.exp(X).sum(axis=1, keepdims=True))


@tw.kernel("X[M, N], v[M, 1], g[N] -> Y[M, N]")
def scaled(X, v, g, Y):
    for i in tw.metapipe(X.shape[0]):
        x, scale = tw.load_tile(X[i, :]), tw.load_tile(v[i, :])
        tw.store_tile(Y[i, :], x * tw.log(tw.gelu(scale) + 2.0) * tw.load_tile(g))


KERNELS = (logarithms, log_softmax, log_sum_exp)


@pytest.mark.few(2)
@pytest.mark.parametrize("chip", ["tiny", "small", "large"])
@pytest.mark.parametrize("dtype", [tw.bf16, tw.fp32], ids=str)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda each: each.name)
def test_logarithms_run_on_every_chip(kernel, dtype, chip, seed):
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=rng.integers(1, 80, 2)) * 4).astype(dtype.dtype)
    x = np.abs(x) if kernel is logarithms else x
    found = kernel.run(x, config=chip, backend="emulator")
    assert found.verified, found.problems


@pytest.mark.few(1)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda each: each.name)
def test_logarithms_on_the_rtl(kernel, seed, heavy):
    job = Job(Problem(kernel, named["tiny"], {"M": 11, "N": 19}, tw.bf16), seed=seed)
    outcome = run(job, *compile_job(job))
    assert outcome.report["verified"], outcome.problems


def lean(kernel, **sizes):
    return simplify(accumulate(check(kernel.trace(dtype=tw.bf16, **sizes))))


def test_what_a_matrix_would_repeat_is_a_part_if_that_saves_a_launch():
    cut, *_ = narrow_cuts(lean(scaled, M=128, N=128))
    assert cut.tensor.type.shape == (128, 1)
    assert not narrow_cuts(lean(scaled, M=8, N=8))
    # Statistics are not element math.
    assert not narrow_cuts(lean(log_sum_exp, M=128, N=128))


def test_log_softmax_keeps_both_statistics_and_takes_logarithms_once():
    compiled = Problem(log_softmax, named["small"], {"M": 256, "N": 256}, tw.bf16).compile()
    assert [each.shape for each in compiled.intermediates] == [(256, 1)] * 3
    stored = [each for part in compiled.parts for each in arrays_of(part.part.program)]
    assert [each.shape[1] for each in stored if each.output] == [1, 1, 1, 256]
    compiled = Problem(log_sum_exp, named["small"], {"M": 256, "N": 256}, tw.bf16).compile()
    assert [each.shape for each in compiled.intermediates] == [(256, 1)] * 2


@tw.kernel("X[H, M, N], v[H, M, 1] -> Y[H, M, N]", sizes={"H": 3})
def scaled_heads(X, v, Y):
    for h in tw.each(X.shape[0]):
        for i in tw.metapipe(X.shape[1]):
            scale = tw.log(tw.gelu(tw.load_tile(v[h, i, :])) + 2.0)
            x = tw.load_tile(X[h, i, :])
            tw.store_tile(Y[h, i, :], (x - tw.row_max(x)) * scale)


def test_points_around_are_axes_of_what_is_cut(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3, 128, 100)).astype(tw.bf16.dtype)
    v = rng.normal(size=(3, 128, 1)).astype(tw.bf16.dtype)
    found = scaled_heads.run(x, v, config="small", backend="emulator")
    assert found.verified, found.problems


@tw.kernel("X[M, N], m[N]: fp32, v[N]: fp32, g[N]: fp32, b[N]: fp32 -> Y[M, N]")
def batch_norm(X, m, v, g, b, Y):
    scale = tw.load_tile(g) * tw.rsqrt(tw.load_tile(v) + 1e-5)
    shift = tw.load_tile(b) - tw.load_tile(m) * scale
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.load_tile(X[i, :]) * scale + shift)


@batch_norm.reference
def _(X, m, v, g, b):
    scale = g / np.sqrt(v + 1e-5)
    return X * scale + (b - m * scale)


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["small", "large"])
def test_a_kernel_that_one_image_serves_is_divided_where_that_is_faster(chip, monkeypatch):
    problem = Problem(batch_norm, named[chip], {"M": 512, "N": 256}, tw.bf16)
    found = problem.compile()
    assert {each.name for each in found.intermediates} == {"scale", "shift"}
    for module in ("divide", "division_search"):
        monkeypatch.setattr(f"sw.parts.{module}.narrow_cuts", lambda program: [])
    assert found.predicted_cycles < problem.compile().predicted_cycles
    # What a launch takes is not worth it for a few rows.
    few = Problem(batch_norm, named["large"], {"M": 16, "N": 64}, tw.bf16)
    assert len(few.compile().parts) == 1


def test_a_divided_batch_norm_has_the_bits_of_golden(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(300, 128)).astype(tw.bf16.dtype)
    m, v, g, b = (rng.random(128, np.float32) for _ in range(4))
    found = batch_norm.run(x, m, v, g, b, config="large", backend="emulator")
    assert found.verified, found.problems
