"""Entries of the descriptor cache: none in use is replaced, whatever the cycle of its use."""

import dataclasses

import numpy as np
import pytest

from hw.arch.descriptor import Descriptor, ElementFormat
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.model import box_load, random_bytes
from tests.hw.tma.standalone.unit_bench import UnitBench

_LONG = Descriptor(
    base=0x2000, format=ElementFormat.FP32, dims=(16, 32), strides=(64,), box=(16, 16)
)
_SHORT = dataclasses.replace(_LONG, box=(16, 4))
_OTHER = dataclasses.replace(_SHORT, base=0x2400)
_AT_SHORT, _AT_LONG, _AT_OTHER = 0x1000, 0x1080, 0x1100


@pytest.mark.slow
@pytest.mark.parametrize("queued", range(3, 9))
def test_an_entry_used_in_the_cycle_of_a_prefetch_is_not_replaced(queued):
    """Loads wait in the engine while the prefetch right before the last of them ends."""
    bench = UnitBench(random_bytes(11, 0x4000), entries=2, readable=[(0x1000, 0x4000)])
    for at, descriptor in ((_AT_SHORT, _SHORT), (_AT_LONG, _LONG), (_AT_OTHER, _OTHER)):
        bench.describe(at, descriptor)
    found = []

    async def work(ctx):
        # The entry of the first is the next one to be replaced.
        await bench.command(ctx, TmaOperation.PREFETCH, _AT_SHORT, id=100)
        await bench.command(ctx, TmaOperation.PREFETCH, _AT_LONG, id=101)
        await bench.completed(ctx, 2)
        # User writes without a strobe keep boxes out of the scratchpad.
        ctx.set(bench.unit.i_writes.valid, 1)
        for number in range(queued):
            await bench.command(ctx, TmaOperation.LOAD, _AT_LONG, id=number)
        await ctx.tick().repeat(100)
        await bench.command(ctx, TmaOperation.PREFETCH, _AT_OTHER, id=102)
        await bench.command(ctx, TmaOperation.LOAD, _AT_SHORT, (0, 5), id=103, local=2048)
        await ctx.tick().repeat(100)
        ctx.set(bench.unit.i_writes.valid, 0)
        await bench.completed(ctx, queued + 4)
        found.append((await bench.content(ctx))[2048:2304])

    bench.run(work)
    assert {code for _, code in bench.completions} == {0}
    assert np.array_equal(found[0], box_load(bench.data, _SHORT, (0, 5)))
