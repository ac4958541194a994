"""Choice of a pipeline with rows on lanes: the best, with few built; lines that share an AGCU."""

import random

import pytest

import tilewright as tw
from hw.arch.config import AgcuConfig, ChipConfig, named
from hw.numeric.formats import bf16, fp32
from sw.kernels.layer_norm import layer_norm
from sw.kernels.rms_norm import rms_norm
from sw.kernels.softmax import softmax
from sw.stages.rows import row_choices
from sw.stages.rows.row_pipeline import RowPipeline
from tests.sw.search.all_opened import AllOpened
from tests.sw.stages.region_runs import compiled_of, only_grids, require_predicted

CHIPS = {**named, "mesh": ChipConfig(rows=8, columns=6, agcu=AgcuConfig(count=3))}
LARGEST = ChipConfig(rows=16, columns=16, agcu=AgcuConfig(count=16))


@tw.kernel("X[M, N], R[M, N], s[M, 1], g[N] -> Y[M, N], S[M, 1]")
def scaled(X, R, s, g, Y, S):
    """Two tiles, vectors along both axes, and two results."""
    gain = tw.load_tile(g)
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        most = tw.row_max(x)
        tw.store_tile(S[i, :], most)
        scale = tw.load_tile(s[i, :])
        tw.store_tile(Y[i, :], tw.silu((x - most) * scale) * gain + tw.load_tile(R[i, :]))


SIZES = random.Random(511)
CASES = [
    (kernel, chip, SIZES.randint(1, 600), SIZES.randint(1, 2000), form)
    for kernel in (rms_norm, layer_norm, softmax, scaled)
    for chip in CHIPS
    for form in (bf16, fp32)
]
CASES += [(softmax, "small", 16, 4096, bf16), (rms_norm, "large", 40, 3072, bf16)]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("kernel", "chip", "rows", "columns", "form"),
    CASES,
    ids=lambda each: getattr(each, "name", str(each)),
)
def test_the_first_is_the_best_of_all(monkeypatch, kernel, chip, rows, columns, form):
    found = compiled_of(kernel, CHIPS[chip], (rows, columns), form)
    monkeypatch.setattr(row_choices, "BestFirst", AllOpened)
    best = compiled_of(kernel, CHIPS[chip], (rows, columns), form)
    assert [each.pipeline.summary for each in found.parts] == [
        each.pipeline.summary for each in best.parts
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [rms_norm, layer_norm, softmax])
def test_few_pipelines_are_built_on_a_large_mesh(monkeypatch, kernel):
    made, built = [], []

    class Counted(RowPipeline):
        def __init__(self, *given):
            super().__init__(*given)
            made.append(self)

        def pipeline(self):
            built.append(self)
            return super().pipeline()

    monkeypatch.setattr(row_choices, "RowPipeline", Counted)
    compiled_of(kernel, LARGEST, (1024, 512))
    assert 1 <= len(built) <= len(made) / 8


@pytest.fixture
def only_sharing(monkeypatch):
    """No plan for `small` has fewer lines than AGCUs, or as many."""
    lines = named["small"].agcu.count
    only_grids(monkeypatch, row_choices, lambda each: each.lines > lines)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "sizes", "form"),
    [(softmax, (100, 150), bf16), (softmax, (70, 90), fp32), (rms_norm, (130, 256), bf16)],
)
def test_lines_that_share_an_agcu_are_equal_on_the_rtl(only_sharing, kernel, sizes, form):
    require_predicted(kernel, "small", sizes, form, seed=3)
