"""PREFETCH_BOX of a stand-alone TMA unit."""

import dataclasses

import numpy as np
import pytest

from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.error_codes import TmaError
from hw.tma.barriers.barrier_layouts import BarrierOperation
from hw.tma.standalone.unit_commands import TmaOperation
from sim.tb._refusals import with_field
from tests.hw.tma.model import random_bytes
from tests.hw.tma.standalone.unit_bench import UnitBench

_LOAD = TmaOperation.LOAD
_GOOD = Descriptor(
    base=0x2000, format=ElementFormat.FP32, dims=(16, 32), strides=(64,), box=(16, 4)
)
_AT_GOOD, _AT_BROKEN, _AT_MORE = 0x1000, 0x1100, 0x1180


@pytest.mark.slow
def test_a_prefetched_box_is_read_and_not_kept():
    """Also one larger than the scratchpad, at no place of it; refusals and errors as of loads."""
    data = random_bytes(7, 0x4000)
    bench = UnitBench(data, capacity=1024, readable=[(0x1000, 0x3000)])
    bench.describe(_AT_GOOD, _GOOD)
    large = dataclasses.replace(_GOOD, box=(16, 32))
    bench.describe(_AT_MORE, large)
    before, kept = bench.data.copy(), random_bytes(8, 1024)
    prefetch = TmaOperation.PREFETCH_BOX
    read = []

    async def work(ctx):
        await bench.fill(ctx, 0, kept)
        await bench.operate(ctx, BarrierOperation.INIT, 1, arrivals=1)
        await bench.command(ctx, prefetch, _AT_MORE, id=0, local=12, barrier=1, signals=1)
        await bench.completed(ctx, 1)
        read.extend(bench.memory.read_bursts)
        answer = await bench.operate(ctx, BarrierOperation.PENDING_COUNT, 1)
        assert (answer["pending"], answer["tx"], answer["flag"]) == (1, 0, 0)
        await bench.command(ctx, prefetch, _AT_MORE + 8, id=1)
        bench.describe(_AT_BROKEN, with_field(_GOOD.pack(), "rank", 0, 0))
        await bench.command(ctx, prefetch, _AT_BROKEN, id=2)
        await bench.completed(ctx, 3)
        bench.memory.failing[:] = [(0x2400, 0x2408, 3)]
        await bench.command(ctx, prefetch, _AT_MORE, id=3)
        await bench.completed(ctx, 4)
        await bench.command(ctx, _LOAD, _AT_GOOD, id=4, local=512)
        await bench.completed(ctx, 5)
        assert np.array_equal((await bench.content(ctx))[:512], kept[:512])

    bench.run(work)
    codes = [TmaError.NONE, TmaError.POINTER, TmaError.RANK, TmaError.READ_DECERR, TmaError.NONE]
    assert [code for _, code in sorted(bench.completions)] == [code.value for code in codes]
    beats = [at + 8 * n for at, length in read if at >= _GOOD.base for n in range(length)]
    assert sorted(beats) == list(range(0x2000, 0x2800, 8))
    assert np.array_equal(bench.data[0x2000:], before[0x2000:])
