"""Vectors of two formats along the columns: cast where they pass as one stream of pairs then."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from sim.run.job import Problem
from sw.parts.forms.cast_vectors import with_cast_vectors


@tw.kernel("X[M, N], s[N]: fp32, t[N] -> Y[M, N]")
def affine(X, s, t, Y):
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.load_tile(X[i, :]) * tw.load_tile(s) + tw.load_tile(t))


@tw.kernel("X[M, N], g[N], b[N], m[N], v[N] -> Y[M, N]")
def batch_norm(X, g, b, m, v, Y):
    g, b, m, v = map(tw.load_tile, (g, b, m, v))
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], (tw.load_tile(X[i, :]) - m) * (g * tw.rsqrt(v + 1e-5)) + b)


@tw.kernel("X[M, N], s[N]: fp32, t[N]: fp32 -> Y[M, N]")
def of_one_format(X, s, t, Y):
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.load_tile(X[i, :]) * tw.load_tile(s) + tw.load_tile(t))


def cycles(kernel, chip, **sizes):
    return Problem(kernel, named[chip], sizes, tw.bf16).compile().predicted_cycles


@pytest.mark.few(1)
@pytest.mark.parametrize("chip", ["small", "large"])
def test_two_formats_take_little_longer_than_one(chip):
    """A launch more, where each format by itself would take a lane program."""
    sizes = {"M": 784, "N": 256}
    assert cycles(affine, chip, **sizes) < 1.07 * cycles(of_one_format, chip, **sizes)


def test_a_cast_that_saves_less_than_a_launch_is_left_out():
    compiled = Problem(affine, named["small"], {"M": 20, "N": 30}, tw.bf16).compile()
    assert len(compiled.parts) == 1 and not compiled.intermediates


def test_vectors_of_one_format_are_not_cast():
    program = of_one_format.trace(dtype=tw.bf16, M=30, N=40)
    assert with_cast_vectors(program) is program


@pytest.mark.few(3)
@pytest.mark.parametrize("chip", ["tiny", "small", "large"])
@pytest.mark.parametrize("kernel", [affine, batch_norm], ids=lambda each: each.name)
def test_cast_vectors_equal_golden(kernel, chip, seed):
    draw = np.random.default_rng(seed)
    m, n = (int(each) for each in draw.integers(1, (400, 300), 2))
    arrays = [draw.normal(size=(m, n)).astype(tw.bf16.dtype)]
    for each in kernel.signature.inputs[1:]:
        dtype = np.float32 if each.name == "s" else tw.bf16.dtype
        arrays.append((draw.normal(size=n) ** 2).astype(dtype))
    found = kernel.run(*arrays, config=chip, backend="emulator")
    assert found.verified, found.problems
