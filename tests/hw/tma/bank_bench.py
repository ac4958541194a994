"""Actors at the ports of a barrier bank in Amaranth's simulator."""

from collections.abc import Callable, Coroutine
from typing import Any

from amaranth.sim import Simulator

from hw.tma.barriers.barrier_bank import BarrierBank
from hw.tma.barriers.barrier_layouts import BarrierOperation as Op

Actor = Callable[[Any], Coroutine[Any, Any, None]]

STATE = ("phase", "pending", "expected", "tx", "flag", "error")
#: Cycles after which what has not happened is taken for lost.
_PATIENCE = 10_000

RESULT = ("passed", "flag", "timed_out", "error")


def simulate(bank: BarrierBank, *actors: Actor, helpers: tuple[Actor, ...] = ()) -> None:
    """Run until all actors have ended; helpers run in the background."""
    simulator = Simulator(bank)
    simulator.add_clock(1e-6)
    for actor in actors:
        simulator.add_testbench(actor)
    for helper in helpers:
        simulator.add_testbench(helper, background=True)
    simulator.run()


def offer(ctx: Any, stream: Any, fields: dict[str, int] | None) -> None:
    """Offer a payload at a stream, or nothing."""
    ctx.set(stream.valid, fields is not None)
    for name, value in (fields or {}).items():
        target = stream.payload[name]
        ctx.set(target if name != "operation" else target.as_value(), value)


def fields_of(ctx: Any, payload: Any, names: tuple[str, ...]) -> dict[str, int]:
    """Fields of a payload as integers."""
    return {name: int(getattr(got := ctx.get(payload[name]), "value", got)) for name in names}


async def _taken(ctx: Any, stream: Any) -> None:
    """Wait until an offer is taken, and end it."""
    for _ in range(_PATIENCE):
        *_, ready = await ctx.tick().sample(stream.ready)
        if ready:
            break
    assert ready, "an offer was not taken"
    offer(ctx, stream, None)


async def act(ctx: Any, bank: BarrierBank, port: int, operation: Op, barrier: int, **fields: int):
    """Apply an operation at a port, and return its answer."""
    stream, answers = bank.i_operations[port], bank.o_answers[port]
    whole = {"arrivals": 0, "bytes": 0, "failed": 0} | fields
    offer(ctx, stream, {"operation": operation.value, "barrier": barrier} | whole)
    await _taken(ctx, stream)
    assert ctx.get(answers.valid)
    return fields_of(ctx, answers.payload, STATE)


async def wait(
    ctx: Any, bank: BarrierBank, barrier: int, parity: int, cycles: int, waiter: int = 0
):
    """Wait at a waiter, and return its result."""
    asked, results = bank.i_waits[waiter], bank.o_waits[waiter]
    offer(ctx, asked, {"barrier": barrier, "parity": parity, "cycles": cycles})
    await _taken(ctx, asked)
    ctx.set(results.ready, 1)
    for _ in range(_PATIENCE):
        if ctx.get(results.valid):
            break
        await ctx.tick()
    assert ctx.get(results.valid), "a wait did not end"
    found = fields_of(ctx, results.payload, RESULT)
    await ctx.tick()
    ctx.set(results.ready, 0)
    return found


def alone(bank: BarrierBank, story: Callable[[Any, Any], Any]) -> None:
    """Run a story of operations at port 0, each given as ``await do(operation, **fields)``."""

    async def bench(ctx: Any) -> None:
        async def do(operation: Op, port: int = 0, barrier: int = 0, **fields: int):
            return await act(ctx, bank, port, operation, barrier, **fields)

        await story(ctx, do)

    simulate(bank, bench)
