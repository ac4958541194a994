"""Host and accelerator of a TMA unit whose commands come from a chain."""

from hw.tma.scratchpads.local_memory import users_of
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.standalone.top_bench import OKAY

__all__ = ["AT", "BOX", "EMPTY", "FULL", "operate", "start", "wait"]

#: Address of the descriptor, bytes of a box, and first barriers of a ring.
AT, BOX = 0x1000, 64
FULL, EMPTY = 0, 4


async def start(
    bench,
    ctx,
    loops,
    *,
    operation=TmaOperation.LOAD,
    slots=1,
    pitch=BOX,
    nbytes=BOX,
    local=0,
    barrier=None,
    coordinates=(),
    empty=EMPTY,
    id=5,
):
    """Write the loops as (dimension, count, step), outermost first, and submit the chain."""
    for number in range(5):
        dimension, count, step = loops[number] if number < len(loops) else (7, 1, 0)
        assert await bench.write(ctx, "CHAIN_STEP", step & 0xFFFF_FFFF) == OKAY
        fields = {"loop": number, "dimension": dimension, "count": count}
        assert await bench.write(ctx, "CHAIN_LOOP", **fields) == OKAY
    ring = {"slots": slots - 1, "operation": operation.value, "empty": empty}
    assert await bench.write(ctx, "CHAIN_RING", **ring) == OKAY
    assert await bench.write(ctx, "CHAIN_PITCH", pitch) == OKAY
    assert await bench.write(ctx, "CHAIN_BYTES", nbytes) == OKAY
    return await bench.submit(
        ctx, TmaOperation.CHAIN, AT, coordinates, id=id, local=local, barrier=barrier
    )


async def operate(bench, ctx, operation, barrier, *, arrivals=1, home=0):
    """An operation at the port of a scratchpad's user, on the barriers of the first scratchpad."""
    port = users_of(bench.top)[home].i_operations[0]
    ctx.set(port.payload.operation, operation)
    ctx.set(port.payload.barrier, barrier)
    ctx.set(port.payload.arrivals, arrivals)
    ctx.set(port.valid, 1)
    await ctx.tick().until(port.ready)
    ctx.set(port.valid, 0)


async def wait(bench, ctx, barrier, parity):
    """A wait of the accelerator; its result."""
    port, ends = bench.top.i_waits[0], bench.top.o_waits[0]
    ctx.set(port.payload.barrier, barrier)
    ctx.set(port.payload.parity, parity)
    ctx.set(port.payload.cycles, 100_000)
    ctx.set(port.valid, 1)
    ctx.set(ends.ready, 1)
    await ctx.tick().until(port.ready)
    ctx.set(port.valid, 0)
    (result,) = await ctx.tick().sample(ends.payload).until(ends.valid)
    return result
