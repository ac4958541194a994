"""Points of attention of few queries beside one another: when, how fast, and equal golden."""

import dataclasses

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import AgcuConfig, ChipConfig, named
from hw.numeric.formats import bf16
from sim.operands import random_operand
from sim.run.job import Problem
from sw.kernels.attention import attention
from sw.kernels.flash_attention import flash_attention
from sw.passes.field_limits import Unfit
from sw.stages.chip_share import share_of

#: Chips with AGCUs that one point leaves idle.
LARGE = named["large"]
FOUR = dataclasses.replace(named["small"], agcu=AgcuConfig(count=4))
SIX = ChipConfig(rows=6, columns=6, agcu=AgcuConfig(count=6))


@tw.kernel("Q[B, H, D], K[B, S, H, D], V[B, S, H, D] -> Y[B, H, D]")
def cached(Q, K, V, Y):
    """One query of each head, whose keys lie in columns of a cache."""
    B, H, D = Q.shape
    for b in tw.each(B):
        for h in tw.each(H):
            s = tw.load_tile(Q[b, h, :]) @ tw.load_tile(K[b, :, h, :]).T * D**-0.5
            e = tw.exp(s - tw.row_max(s))
            o = e.to(V.dtype) @ tw.load_tile(V[b, :, h, :])
            tw.store_tile(Y[b, h, :], o / tw.row_sum(e))


@tw.kernel("X[H, M, D], K[H, S, D], V[H, S, D] -> X[H, M, D]")
def updated(X, K, V):
    """Attention whose results take the place of the queries."""
    for h in tw.each(X.shape[0]):
        for i in tw.metapipe(X.shape[1]):
            s = tw.load_tile(X[h, i, :]) @ tw.load_tile(K[h]).T
            e = tw.exp(s - tw.row_max(s))
            o = e.to(V.dtype) @ tw.load_tile(V[h])
            tw.store_tile(X[h, i, :], o / tw.row_sum(e))


def together(compiled):
    """Points that an iteration of each part takes."""
    return [each.softmax.points for each in compiled.parts]


def compiled(chip, **sizes):
    return Problem(attention, chip, {"D": 64, **sizes}, bf16).compile()


def test_one_query_uses_all_agcus():
    """Twice the bytes in a cycle as on a chip of half the AGCUs."""
    sizes = {"H": 8, "M": 1, "S": 1024}
    large, small = compiled(LARGE, **sizes), compiled(named["small"], **sizes)
    assert (together(large), together(small)) == ([2], [1])
    assert large.predicted_cycles < 0.54 * small.predicted_cycles
    assert large.macs == small.macs == 2 * 8 * 1024 * 64


def test_three_points_where_six_agcus_load():
    sizes = {"H": 12, "M": 1, "S": 1024}
    found = compiled(SIX, **sizes)
    assert together(found) == [3]
    assert found.predicted_cycles < 0.4 * compiled(named["small"], **sizes).predicted_cycles


def test_a_point_that_is_left_is_a_part_of_its_own():
    sizes = {"H": 7, "M": 1, "S": 1024}
    found, small = compiled(LARGE, **sizes), compiled(named["small"], **sizes)
    assert together(found) == [2, 1]
    assert [each.iterations for each in found.parts] == [3, 1]
    assert found.predicted_cycles < 0.7 * small.predicted_cycles
    assert found.parts[0].pipeline.block_keys == found.parts[1].pipeline.block_keys


@pytest.mark.parametrize(
    ("chip", "sizes"),
    [
        (LARGE, {"H": 1, "M": 1, "S": 1024}),
        (LARGE, {"H": 4, "M": 300, "S": 300}),
        (dataclasses.replace(LARGE, agcu=AgcuConfig(count=3)), {"H": 8, "M": 1, "S": 1024}),
    ],
    ids=["one head", "queries for all PCUs", "three AGCUs"],
)
def test_points_one_after_another_where_no_share_is_faster(chip, sizes):
    assert together(compiled(chip, **sizes)) == [1]


def test_points_one_after_another_where_no_plan_of_a_share_is_live():
    """One AGCU does not store two parts of the columns."""
    chip = ChipConfig(rows=4, columns=5, width_bits=512, agcu=AgcuConfig(count=2))
    found = compiled(chip, H=4, M=3, S=12, D=256)
    assert together(found) == [1]
    assert any("divided again" in each for each in found.notes)


@pytest.mark.few(2)
@pytest.mark.parametrize("chip", [LARGE, FOUR, SIX], ids=["large", "four", "six"])
@pytest.mark.parametrize(
    "kernel", [attention, flash_attention, cached, updated], ids=lambda each: each.name
)
def test_points_together_equal_golden(kernel, chip, seed):
    draw = np.random.default_rng(seed)
    h, m, s = (int(draw.integers(*each)) for each in ((2, 9), (1, 30), (1, 200)))
    d = int(draw.choice([8, 16, 40, 64, 128]))
    options = {}
    shapes = [(h, m, d), (h, s, d), (h, s, d)]
    if kernel is flash_attention:
        options = ({}, {"causal": True}, {"window": int(draw.integers(1, 60))})[draw.integers(3)]
    elif kernel is cached:
        shapes = [(2, h, d), (2, s, h, d), (2, s, h, d)]
    inputs = [random_operand(draw, shape, bf16) for shape in shapes]
    found = kernel.run(*inputs, config=chip, backend="emulator", **options)
    assert found.verified, (shapes, options, found.problems)


@pytest.mark.slow
def test_points_together_equal_golden_on_the_rtl(seed):
    draw = np.random.default_rng(seed)
    for h, m, s in ((4, 1, 300), (5, 12, 100)):
        inputs = [random_operand(draw, each, bf16) for each in ((h, m, 64), (h, s, 64), (h, s, 64))]
        found = attention.run(*inputs, config=LARGE, backend="rtl")
        assert found.verified, found.problems
        assert abs(found.predicted_cycles / found.cycles - 1) < 0.02


def test_the_text_of_a_division_names_the_points():
    program = compiled(LARGE, H=4, M=1, S=1000)
    assert "K: 2 points 256000 bytes apart" in program.texts["divide"]


@pytest.mark.parametrize(
    ("chip", "points", "units"),
    [
        (LARGE, 2, (9, 9, 2)),
        (LARGE, 3, (6, 6, 1)),
        (LARGE, 4, (4, 4, 1)),
        (ChipConfig(rows=3, columns=3, agcu=AgcuConfig(count=2)), 2, (2, 2, 1)),
        (ChipConfig(rows=16, columns=16, agcu=AgcuConfig(count=16)), 2, (64, 64, 8)),
        (ChipConfig(rows=5, columns=1, agcu=AgcuConfig(count=10)), 2, (1, 1, 4)),
        (ChipConfig(rows=5, columns=4, pattern="/".join(["cccm"] * 5)), 1, (15, 5, 2)),
        (ChipConfig(rows=5, columns=4, pattern="/".join(["cccm"] * 5)), 2, (7, 2, 1)),
        (ChipConfig(rows=64, columns=6, agcu=AgcuConfig(count=2)), 2, (96, 96, 1)),
    ],
)
def test_shares_have_as_many_units_as_go_round(chip, points, units):
    share = share_of(chip, points)
    assert (share.pcu_count, share.pmu_count, share.agcu.count) == units


def test_a_share_has_a_unit_of_each_kind():
    with pytest.raises(Unfit, match="for each of 5 points, not 18 PCUs, 18 PMUs and 4 AGCUs"):
        share_of(LARGE, 5)
    with pytest.raises(Unfit, match="have a PCU, a PMU and an AGCU for each of 2 points"):
        share_of(ChipConfig(rows=1, columns=2, agcu=AgcuConfig(count=2)), 2)
