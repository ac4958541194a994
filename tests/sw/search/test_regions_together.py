"""Element math of points beside one another: when, how fast, and equal golden."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import ChipConfig, named
from hw.numeric.formats import bf16
from sim.operands import random_operand
from sim.run.job import Problem

SMALL, LARGE = named["small"], named["large"]
#: Odd counts of units: 13 PCUs and 12 PMUs.
ODD = ChipConfig(rows=5, columns=5)


@tw.kernel("X[B, S, C] -> Y[B, S, C]")
def instance_norm(X, Y):
    """Statistics of the columns of every image."""
    S = X.shape[1]
    for n in tw.each(X.shape[0]):
        x = tw.load_tile(X[n])
        d = x - tw.col_sum(x) / S
        tw.store_tile(Y[n], d * tw.rsqrt(tw.col_sum(d * d) / S + 1e-5))


@tw.kernel("X[B, S, C], g[B, S], b[C] -> Y[B, S, C]")
def column_softmax(X, g, b, Y):
    """Beside vectors along both axes: one of each point, and one for all."""
    for n in tw.each(X.shape[0]):
        x = tw.load_tile(X[n]) * tw.load_tile(g[n]).T + tw.load_tile(b)
        e = tw.exp(x - tw.col_max(x))
        tw.store_tile(Y[n], e / tw.col_sum(e))


@tw.kernel("X[B, S, C] -> Y[B, C, S]")
def turned(X, Y):
    """A transpose of every matrix."""
    for n in tw.each(X.shape[0]):
        tw.store_tile(Y[n], tw.load_tile(X[n]).T)


KERNELS = [instance_norm, column_softmax, turned]


def compiled(kernel, chip, **sizes):
    return Problem(kernel, chip, sizes, bf16).compile()


def points(found):
    """Points that an iteration of each part takes, and its iterations."""
    return [(each.part.points, each.iterations) for each in found.parts]


@pytest.mark.parametrize(
    ("chip", "count", "most"), [(LARGE, 4, 12_300), (SMALL, 2, 22_400)], ids=["large", "small"]
)
def test_statistics_of_few_columns_use_all_agcus(chip, count, most):
    """One point after another takes 41,918 and 41,977 cycles."""
    found = compiled(instance_norm, chip, B=4, S=400, C=64)
    assert points(found) == [(count, 4 // count)]
    assert found.predicted_cycles < most
    assert found.parts[0].choice.startswith(f"{count} points beside one another, each on ")


def test_statistics_of_many_columns_come_one_point_after_another():
    assert points(compiled(instance_norm, SMALL, B=4, S=500, C=256)) == [(1, 4)]


@pytest.mark.few(4)
@pytest.mark.parametrize("chip", [SMALL, LARGE, ODD], ids=["small", "large", "odd"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda each: each.name)
def test_points_together_equal_golden(kernel, chip, seed):
    draw = np.random.default_rng(seed)
    b, s, c = int(draw.integers(2, 12)), *(int(round(100 ** draw.random())) for _ in range(2))
    shapes = [(b, s, c), (b, s), (c,)][: len(kernel.signature.arguments) - 1]
    found = kernel.run(
        *[random_operand(draw, each, bf16) for each in shapes], config=chip, backend="emulator"
    )
    assert found.verified, (b, s, c, found.problems)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda each: each.name)
@pytest.mark.parametrize("chip", ["small", "large"])
def test_points_together_equal_golden_on_the_rtl(kernel, chip, seed, heavy):
    draw = np.random.default_rng(seed)
    shapes = [(6, 50, 20), (6, 50), (20,)][: len(kernel.signature.arguments) - 1]
    inputs = [random_operand(draw, each, bf16) for each in shapes]
    found = kernel.run(*inputs, config=chip, backend="rtl")
    assert found.verified, found.problems
    predicted = compiled(kernel, named[chip], B=6, S=50, C=20).predicted_cycles
    assert found.cycles == pytest.approx(predicted, rel=0.05)
