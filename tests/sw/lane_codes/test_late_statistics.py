"""Statistics that are sent behind the results of packets: bytes, cycles, and what has none."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from sw.lane_codes.late_statistics import sent_late
from sw.stages import pipelines
from tests.sw.stages.region_runs import LITTLE, compiled_of, side, verify


@tw.kernel("X[M, N] -> Y[M, N]: int8, s[M, 1]: fp32")
def quantized(X, Y, s):
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        most = tw.row_max(tw.maximum(x, -x)) * (1 / 127) + 1e-9
        tw.store_tile(s[i, :], most)
        tw.store_tile(Y[i, :], (x / most).to(tw.int8))


@tw.kernel("X[M, N] -> m[M, 1]: fp32, v[M, 1], Y[M, N]")
def standardized(X, m, v, Y):
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        mean = tw.row_mean(x)
        tw.store_tile(m[i, :], mean)
        spread = tw.row_mean((x - mean) * (x - mean))
        tw.store_tile(v[i, :], spread)
        tw.store_tile(Y[i, :], (x - mean) * spread)


def codes_of(kernel, chip, sides, monkeypatch):
    """Lane programs that are asked for their late form."""
    asked = []
    monkeypatch.setattr(pipelines, "sent_late", lambda code: asked.append(code))
    compiled_of(kernel, chip, sides)
    return asked


@pytest.mark.few(4)
@pytest.mark.parametrize("chip", [LITTLE, "small", "large", "tiny"], ids=str)
@pytest.mark.parametrize("kernel", [quantized, standardized], ids=lambda each: each.name)
def test_random_sides_equal_golden(kernel, chip, seed):
    draw = np.random.default_rng(seed)
    config = named[chip] if isinstance(chip, str) else chip
    verify(kernel, config, (side(draw, 200), side(draw, 900)))


@pytest.mark.few(1)
@pytest.mark.parametrize(("columns", "most"), [(512, 36_500), (1000, 71_000)])
def test_wide_rows_pass_in_pieces_beside_a_statistic(columns, most):
    """Before, a buffer had whole rows and what is sent before them: 132,417 for 1,000 columns."""
    assert compiled_of(quantized, "small", (512, columns)).predicted_cycles <= most


def test_the_phases_send_the_same_values(monkeypatch):
    (code, *_) = codes_of(quantized, "small", (64, 64), monkeypatch)
    late = sent_late(code)
    assert [each.result for each in code.phases if each.result] != [
        each.result for each in late.phases if each.result
    ]
    assert {each.result for each in code.phases} == {each.result for each in late.phases}
    assert late.phases[-1].source is None and late.program is not None
    # What is late already has no later form.
    assert sent_late(late) is None
