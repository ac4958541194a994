"""Products of points beside one another: when, how fast, and equal golden."""

import dataclasses

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import AgcuConfig, ChipConfig, named
from hw.numeric.formats import bf16, int8
from sim.operands import random_operand
from sim.run.job import Problem
from sw.passes.fit import fit
from sw.timing.timeline import predict_timeline

SMALL, LARGE = named["small"], named["large"]
THREE = dataclasses.replace(LARGE, agcu=AgcuConfig(count=3))
#: Odd counts of units: 13 PCUs and 12 PMUs.
ODD = ChipConfig(rows=5, columns=5, agcu=AgcuConfig(count=3))


@tw.kernel("A[H, M, K], B[H, K, N] -> Y[H, M, N]: bf16")
def batched(A, B, Y):
    """A product of every head."""
    for h in tw.each(A.shape[0]):
        for i in tw.metapipe(A.shape[1]):
            o = tw.load_tile(A[h, i, :]) @ tw.load_tile(B[h])
            tw.store_tile(Y[h, i, :], o.to(tw.bf16))


@tw.kernel("A[H, M, K], B[H, K, N] -> Y[H, M, N]: int32")
def sums(A, B, Y):
    """Sums of integers of every head, by one block of rows."""
    for h in tw.each(A.shape[0]):
        tw.store_tile(Y[h], tw.load_tile(A[h]) @ tw.load_tile(B[h]))


@tw.kernel("A[H, M, K], B[H, N, K], c[N], R[H, M, N] -> Y[H, M, N]: bf16")
def scores(A, B, c, R, Y):
    """Products with transposes, a common bias, a residual of each head and an activation."""
    for h in tw.each(A.shape[0]):
        for i in tw.metapipe(A.shape[1]):
            s = tw.load_tile(A[h, i, :]) @ tw.load_tile(B[h]).T + tw.load_tile(c[:])
            tw.store_tile(Y[h, i, :], (tw.silu(s) + tw.load_tile(R[h, i, :])).to(tw.bf16))


@tw.kernel("A[H, K, M], B[K, H, N] -> Y[M, H, N]: bf16")
def columns(A, B, Y):
    """Heads whose matrices and results are columns of wider ones."""
    for h in tw.each(A.shape[0]):
        for i in tw.metapipe(A.shape[2]):
            o = tw.load_tile(A[h, :, i]).T @ tw.load_tile(B[:, h, :])
            tw.store_tile(Y[i, h, :], o.to(tw.bf16))


def shapes_of(kernel, h, m, n, k):
    """Shapes of the operands."""
    if kernel is columns:
        return (h, k, m), (k, h, n)
    if kernel is scores:
        return (h, m, k), (h, n, k), (n,), (h, m, n)
    return (h, m, k), (h, k, n)


def compiled(chip, *, dtype=bf16, kernel=batched, **sizes):
    return Problem(kernel, chip, sizes, dtype).compile()


def points(found):
    """Points that an iteration of each part takes, and its iterations."""
    return [(each.part.points, each.iterations) for each in found.parts]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("chip", "sizes", "count", "most"),
    [
        (LARGE, {"H": 128, "M": 4, "N": 16, "K": 128}, 4, 11_200),
        (LARGE, {"H": 12, "M": 1, "N": 64, "K": 768}, 4, 11_600),
        (LARGE, {"H": 64, "M": 64, "N": 64, "K": 64}, 2, 9_400),
        (SMALL, {"H": 128, "M": 4, "N": 16, "K": 128}, 2, 21_600),
    ],
)
def test_small_products_use_all_agcus(chip, sizes, count, most):
    """One after another they take 41,570, 23,825, 17,239 and 41,558 cycles."""
    found = compiled(chip, **sizes)
    assert points(found) == [(count, sizes["H"] // count)]
    assert found.predicted_cycles < most
    assert found.macs == sizes["H"] * sizes["M"] * sizes["N"] * sizes["K"]
    assert found.parts[0].macs_issued >= found.macs
    assert found.parts[0].choice.startswith(f"{count} points beside one another, each on ")


def test_points_that_are_left_are_a_part_of_their_own():
    assert points(compiled(LARGE, H=37, M=4, N=16, K=128)) == [(4, 9), (1, 1)]


@pytest.mark.parametrize(
    "sizes", [{"H": 16, "M": 128, "N": 128, "K": 128}, {"H": 1, "M": 4, "N": 16, "K": 128}]
)
def test_products_that_use_the_chip_come_one_after_another(sizes):
    assert points(compiled(LARGE, **sizes)) == [(1, sizes["H"])]


def test_a_schedule_that_no_share_holds_gets_the_whole_chip():
    schedule = tw.Schedule(row_par={"o": 12})
    sizes = {"H": 16, "M": 60, "N": 8, "K": 64}
    found = Problem(batched, LARGE, sizes, bf16, schedule=schedule).compile()
    assert points(found) == [(1, 16)]
    assert found.parts[0].plan.row_par == 12


@pytest.mark.few(4)
@pytest.mark.parametrize("chip", [SMALL, LARGE, THREE, ODD], ids=["small", "large", "three", "odd"])
@pytest.mark.parametrize("kernel", [batched, sums, scores, columns], ids=lambda each: each.name)
def test_products_together_equal_golden(kernel, chip, seed):
    draw = np.random.default_rng(seed)
    h = int(draw.integers(2, 20))
    m, n, k = (int(round(100 ** draw.random())) for _ in range(3))
    k += k % 2
    form = int8 if kernel is sums else bf16
    inputs = [random_operand(draw, each, form) for each in shapes_of(kernel, h, m, n, k)]
    found = kernel.run(*inputs, config=chip, backend="emulator")
    assert found.verified, (h, m, n, k, found.problems)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [batched, scores, columns], ids=lambda each: each.name)
@pytest.mark.parametrize("chip", ["small", "large"])
def test_products_together_equal_golden_on_the_rtl(kernel, chip, seed):
    draw = np.random.default_rng(seed)
    sizes = (9, 4, 16, 128), (23, 16, 16, 16), (6, 33, 40, 18)
    for each in sizes:
        inputs = [random_operand(draw, shape, bf16) for shape in shapes_of(kernel, *each)]
        found = kernel.run(*inputs, config=named[chip], backend="rtl")
        assert found.verified, found.problems
        assert abs(found.predicted_cycles / found.cycles - 1) < 0.05


@pytest.mark.few(4)
@pytest.mark.parametrize("latency", [1, 100, 400])
@pytest.mark.parametrize(
    "sizes", [(256, 16, 16, 16), (64, 64, 16, 16), (64, 8, 64, 64), (64, 33, 10, 18)]
)
def test_many_short_iterations_are_predicted_from_the_first_ones(sizes, latency):
    found = compiled(SMALL, **dict(zip("HMNK", sizes, strict=True)))
    (part,) = found.parts
    ends = predict_timeline(part.chip, repeat=part.iterations, latency=latency).cycles
    assert part.prediction(latency, part.iterations).kernel == pytest.approx(ends, rel=0.03)


def test_both_operands_of_a_small_product_are_loaded_as_far_ahead():
    (part,) = compiled(SMALL, H=256, M=16, N=16, K=16).parts
    plan, homes = part.plan, part.homes
    panels = homes["b"].slots // plan.b_slabs
    assert panels == homes["a0"].slots // plan.a_slabs > 2
    assert fit(plan, {"b": 2}).homes["b"].slots == 2 * plan.b_slabs
