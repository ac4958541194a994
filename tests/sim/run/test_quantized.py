"""Quantized kernels: casts between floats and integers, beside and behind products of int8."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem

EXAMPLE = runpy.run_path(str(Path(__file__).parents[3] / "examples" / "12_quantized.py"))
quantized, scaled = EXAMPLE["quantized"], EXAMPLE["scaled"]


@tw.kernel("X[M, N] -> W[M, N]: int32, Y[M, N]: fp32")
def whole_and_back(X, W, Y):
    for i in tw.metapipe(X.shape[0]):
        whole = tw.load_tile(X[i, :]).to(tw.int32)
        tw.store_tile(W[i, :], whole)
        tw.store_tile(Y[i, :], whole.to(tw.fp32) * 0.5)


@tw.kernel("Q[M, K]: int8, W[K, N]: int8, b[N]: int32 -> Y[M, N]: int8")
def requantized(Q, W, b, Y):
    for i in tw.metapipe(Q.shape[0]):
        for j in tw.metapipe(W.shape[1]):
            sums = tw.load_tile(Q[i, :]) @ tw.load_tile(W[:, j]) + tw.load_tile(b[j])
            tw.store_tile(Y[i, j], tw.maximum(sums.to(tw.fp32) * 0.0123, 0.0).to(tw.int8))


@tw.kernel("X[M, K], W[K, N]: int8, t[N]: fp32 -> Y[M, N]: bf16")
def quantized_product(X, W, t, Y):
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        scale = tw.row_max(abs(x)) * (1 / 127)
        q = (x / scale).to(tw.int8)
        for j in tw.metapipe(W.shape[1]):
            y = (q @ tw.load_tile(W[:, j])).to(tw.fp32) * scale
            tw.store_tile(Y[i, j], y * tw.load_tile(t[j]))


CHIPS = ("tiny", "small", "large")


def sides(rng, count):
    return rng.integers(1, 70, count)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("dtype", [tw.bf16, tw.fp32], ids=str)
def test_rows_are_quantized_to_within_half_a_step(chip, dtype, seed):
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=sides(rng, 2)) * 7).astype(dtype.dtype)
    x[0] = 0
    found = quantized.run(x, config=chip, backend="emulator")
    assert found.verified, found.problems
    # 0 / 0 is NaN, which becomes 0.
    assert not found.Q[0].any() and not found.s[0].any()
    wide = x.astype(np.float32)
    assert (np.abs(found.Q * found.s - wide) <= found.s * 0.505).all()
    assert (np.abs(found.Q[1:]).max(axis=1) == 127).all()


@pytest.mark.parametrize("chip", CHIPS)
def test_every_float_has_a_whole_number(chip, seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 1 << 32, (40, 33), dtype=np.uint32).view(np.float32)
    special = [np.nan, np.inf, -np.inf, -0.0, 0.5, 1.5, -2.5, 2.0**31, -(2.0**31), 1e-40]
    x[0, : len(special)] = special
    found = whole_and_back.run(x, config=chip, backend="emulator")
    assert found.verified, found.problems
    with np.errstate(invalid="ignore"):
        wide = np.rint(np.nan_to_num(x.astype(np.float64), nan=0))
    assert (found.W == wide.clip(-(2.0**31), 2.0**31 - 1)).all()
    assert (found.Y == found.W.astype(np.float32) * np.float32(0.5)).all()


@pytest.mark.parametrize("chip", CHIPS)
def test_sums_of_int8_are_requantized_as_numpy_does(chip, seed):
    rng = np.random.default_rng(seed)
    m, k, n = sides(rng, 3)
    q, w = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, n)))
    b = rng.integers(-(2**28), 2**28, n).astype(np.int32) >> rng.integers(0, 28, n)
    found = requantized.run(q, w, b.astype(np.int32), config=chip, backend="emulator")
    assert found.verified, found.problems
    sums = (q.astype(np.int32) @ w.astype(np.int32) + b).astype(np.float32)
    wanted = np.rint(np.maximum(sums * np.float32(0.0123), 0)).clip(-128, 127)
    assert (found.Y == wanted).all()


@pytest.mark.parametrize("chip", CHIPS)
def test_a_product_of_int8_has_a_scale_for_each_row_and_column(chip, seed):
    rng = np.random.default_rng(seed)
    m, k, n = sides(rng, 3)
    q, w = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, n)))
    s, t = rng.random((m, 1)).astype(np.float32), rng.random(n).astype(np.float32)
    found = scaled.run(q, w, s, t, config=chip, backend="emulator")
    assert found.verified, found.problems
    sums = (q.astype(np.int32) @ w.astype(np.int32)).astype(np.float32)
    assert (found.Y == (sums * s * t).astype(tw.bf16.dtype)).all()


@pytest.mark.few(2)
@pytest.mark.parametrize("chip", CHIPS)
def test_a_product_of_quantized_rows_is_near_the_exact_one(chip, seed):
    rng = np.random.default_rng(seed)
    m, k, n = sides(rng, 3)
    x = rng.normal(size=(m, k)).astype(tw.bf16.dtype)
    w = rng.integers(-127, 128, (k, n)).astype(np.int8)
    t = rng.random(n).astype(np.float32)
    found = quantized_product.run(x, w, t, config=chip, backend="emulator")
    assert found.verified, found.problems
    wide = x.astype(np.float64)
    exact = wide @ w * t
    step = np.abs(wide).max(axis=1, keepdims=True) / 127
    most = 0.51 * step * np.abs(w).sum(axis=0) * t + np.abs(exact) / 128 + 1e-6
    assert (np.abs(found.Y.astype(np.float64) - exact) <= most).all()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("kernel", "dims"),
    [
        (quantized, {"M": 9, "K": 21}),
        (whole_and_back, {"M": 9, "N": 21}),
        (requantized, {"M": 9, "K": 20, "N": 11}),
    ],
)
def test_casts_on_the_rtl(kernel, dims, seed, heavy):
    job = Job(Problem(kernel, named["tiny"], dims, tw.fp32 if len(dims) == 2 else None), seed=seed)
    outcome = run(job, *compile_job(job))
    assert outcome.report["verified"], outcome.problems
