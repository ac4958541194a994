"""Results of rows that AGCUs store apart, and tiles of one line that several AGCUs load."""

import pytest

import tilewright as tw
from hw.arch.agcu import AGCU_STREAMS
from hw.arch.config import AgcuConfig, ChipConfig
from hw.numeric.formats import bf16, fp32
from sw.passes.field_limits import Unfit
from sw.stages.rows import row_choices
from sw.stages.stage_graph import Load, Store
from tests.sw.stages.region_runs import LITTLE, compiled_of, require_predicted, verify

#: Three AGCUs for 16 PCUs: lines of two results share one, or have one each.
THREE = ChipConfig(rows=6, columns=6, agcu=AgcuConfig(count=3))


@tw.kernel("X[M, N] -> P[M, N]: bf16, S[M, 1]: fp32")
def weights(X, P, S):
    """Exponentials and their sums."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        e = tw.exp(x - tw.row_max(x))
        tw.store_tile(P[i, :], e.to(tw.bf16))
        tw.store_tile(S[i, :], tw.row_sum(e))


@tw.kernel("X[M, N], m[M, 1]: fp32, z[1, 1]: fp32 -> P[M, N]: bf16, S[M, 1]: fp32")
def with_sink(X, m, z, P, S):
    """Exponentials less a known maximum, and their sums with one more term."""
    for i in tw.metapipe(X.shape[0]):
        most = tw.load_tile(m[i, :])
        e = tw.exp(tw.load_tile(X[i, :]) - most)
        tw.store_tile(P[i, :], e.to(tw.bf16))
        tw.store_tile(S[i, :], tw.row_sum(e) + tw.exp(tw.load_tile(z) - most))


@tw.kernel("X[M, N] -> Y[M, N]: bf16, Z[M, N]: fp32")
def two_tiles(X, Y, Z):
    """Tiles of two formats, which have different numbers of boxes."""
    for i in tw.metapipe(X.shape[0]):
        y = tw.load_tile(X[i, :])
        y = y - tw.row_max(y)
        tw.store_tile(Y[i, :], y)
        tw.store_tile(Z[i, :], y * 2.0)


@pytest.fixture
def only_apart(monkeypatch):
    """Plans of results that take turns at an AGCU do not fit."""
    choices = row_choices._choices

    def apart(region, *given):
        every = choices(region, *given)
        if len(region.outputs) == 1:
            return every
        return [each for each in every if isinstance(each, Unfit) or each.results.apart]

    monkeypatch.setattr(row_choices, "_choices", apart)


def agcus(part, kind):
    """AGCUs of the streams of each tensor, by the number of its argument."""
    found = {}
    for _, each in part.graph.of(kind):
        found.setdefault(each.argument, []).append(each.agcu)
    return found


CASES = [
    *((weights, "small", (rows, 96), bf16) for rows in (1, 16, 17, 100, 129, 300)),
    *((weights, "small", (70, columns), bf16) for columns in (1, 33, 260, 520, 1024, 1500)),
    (weights, "large", (700, 100), bf16),
    (weights, "large", (300, 1024), fp32),
    (weights, THREE, (300, 70), bf16),
    (weights, LITTLE, (40, 300), bf16),
    (with_sink, "small", (130, 96), fp32),
    (with_sink, "large", (300, 70), bf16),
    (with_sink, THREE, (90, 512), fp32),
    (two_tiles, "small", (100, 40), bf16),
    (two_tiles, "large", (65, 300), bf16),
]


@pytest.mark.few(4)
@pytest.mark.parametrize(("kernel", "chip", "shape", "dtype"), CASES)
def test_results_apart_equal_golden(kernel, chip, shape, dtype, only_apart):
    verify(kernel, chip, shape, dtype)
    for results in agcus(compiled_of(kernel, chip, shape, dtype).parts[0], Store).values():
        assert len(results) <= AGCU_STREAMS * len(set(results))


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "chip", "shape", "dtype"), [CASES[5], CASES[9], CASES[16]])
def test_cycles_of_results_apart_are_predicted(kernel, chip, shape, dtype, only_apart, seed, heavy):
    require_predicted(kernel, "small", shape, dtype, seed)


@pytest.mark.parametrize("chip", ["small", "large"])
def test_no_agcu_stores_two_results(chip, only_apart):
    (part,) = compiled_of(weights, chip, (600, 256)).parts
    rows, sums = agcus(part, Store).values()
    assert not set(rows) & set(sums)


def test_long_rows_and_their_sums_use_all_pcus():
    (part,) = compiled_of(weights, "small", (1024, 1024)).parts
    assert part.pipeline.summary.startswith("8 chains of 1 PCUs")


def test_all_agcus_load_the_tiles_of_one_line():
    """Three inputs for each of two lines are more load streams than there are."""
    (part,) = compiled_of(with_sink, "small", (1024, 512), fp32).parts
    assert part.pipeline.summary.startswith("8 chains of 1 PCUs")
    assert [0, 1] in [sorted(each) for each in agcus(part, Load).values()]
