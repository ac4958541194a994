"""Buffers of one load stream: their free slots are credits of one port."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import AgcuConfig, ChipConfig, named
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.limits import MAX_CREDITS
from hw.arch.loops import BoxLoop, LoopProgram
from sw.passes.field_limits import Unfit
from sw.stages.pipeline import PipelineParts
from sw.stages.stage_graph import Hold, Socket, Walk

ROWS = Walk((LoopProgram(4, stride=16),))


def with_buffers(count, *, wanted, least):
    """Parts of a pipeline with so many buffers of one stream."""
    parts = PipelineParts(named["large"])
    names = [f"rows{number}" for number in range(count)]
    for name in names:
        hold = Hold(128, 2, (ROWS,), (ROWS,))
        parts.hold(name, hold, wanted=wanted, least=least, rate=1.0, alignment=16, tokens=True)
    box = Descriptor(base=0, format=ElementFormat.BF16, dims=(16, 64), strides=(32,), box=(16, 4))
    parts.load("load", 0, (box, 0), [BoxLoop(16, 1, 4)], [Socket(name) for name in names])
    return parts


def test_slots_of_all_buffers_of_a_stream_are_no_more_than_credits():
    homes = with_buffers(20, wanted=16, least=1).done("", 1, 1).homes
    assert {each.slots for each in homes.values()} == {MAX_CREDITS // 20}
    with pytest.raises(Unfit, match="Slots of each of 20 buffers must be at most 12, not 14"):
        with_buffers(20, wanted=16, least=14).done("", 1, 1)


@tw.kernel("X[M, N], dY[M, N], g[N] -> dX[M, N]")
def rms_norm_gradient(X, dY, g, dX):
    for i in tw.metapipe(X.shape[0]):
        x, d = tw.load_tile(X[i, :]), tw.load_tile(dY[i, :]) * tw.load_tile(g)
        r = tw.rsqrt(tw.row_mean(x * x) + 1e-6)
        tw.store_tile(dX[i, :], r * (d - x * (r * r * tw.row_mean(x * d))))


@pytest.mark.slow
def test_a_stream_of_many_copies_has_few_slots_each(seed):
    chip = ChipConfig(rows=12, columns=12, agcu=AgcuConfig(count=2))
    rng = np.random.default_rng(seed)
    x, d = (rng.normal(size=(300, 512)).astype(tw.bf16.dtype) for _ in range(2))
    g = rng.random(512).astype(tw.bf16.dtype)
    found = rms_norm_gradient.run(x, d, g, config=chip, backend="emulator")
    assert found.verified, found.problems
