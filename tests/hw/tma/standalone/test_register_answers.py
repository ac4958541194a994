"""Barrier operations of a host that writes them back to back: each answer is of the last one."""

import numpy as np
import pytest

from hw.arch.error_codes import BarrierError
from hw.arch.registers.tma_registers import tma_register
from hw.tma.barriers.barrier_layouts import BarrierOperation
from tests.hw.tma.standalone.top_bench import TopBench
from tests.slow_cases import quick_first


async def _written(ctx, host, words):
    """Write words to the register of operations, one as soon as the response before is there."""
    register = tma_register("BARRIER_OPERATION")
    ctx.set(host.awaddr, register.offset)
    ctx.set(host.wstrb, 0xF)
    ctx.set(host.bready, 1)
    for valid in (host.awvalid, host.wvalid):
        ctx.set(valid, 1)
    for fields in words:
        ctx.set(host.wdata, register.word(**fields))
        await ctx.tick().until(host.awready)
    for valid in (host.awvalid, host.wvalid):
        ctx.set(valid, 0)


@pytest.mark.parametrize("pause", quick_first(range(4)))
def test_an_answer_is_never_that_of_the_operation_before(pause):
    bench = TopBench(np.zeros(0x1000, np.uint8))
    operations = [
        {"operation": BarrierOperation.PENDING_COUNT.value, "barrier": barrier}
        for barrier in (1, 2)
    ]

    async def host(ctx):
        await bench.operate(ctx, BarrierOperation.INIT, 1, arrivals=11)
        await _written(ctx, bench.top.host, operations)
        for _ in range(pause):
            await ctx.tick()
        answer = await bench.until(ctx, "BARRIER_ANSWER", "valid")
        assert answer["error"] == BarrierError.UNINITIALISED.value

    bench.run(host)
