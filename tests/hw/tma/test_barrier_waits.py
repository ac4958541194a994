"""Waits at a barrier bank: their time, their end by a phase, and errors."""

from typing import Any

import pytest

from hw.arch.error_codes import BarrierError
from hw.tma.barriers.barrier_bank import BarrierBank
from hw.tma.barriers.barrier_layouts import BarrierOperation as Op
from tests.hw.tma.bank_bench import RESULT, alone, fields_of, offer, wait


@pytest.mark.parametrize("cycles", [0, 1, 7])
def test_a_wait_ends_after_its_cycles(cycles: int) -> None:
    bank = BarrierBank(barriers=2, ports=1)

    async def story(ctx: Any, do: Any) -> None:
        await do(Op.INIT, arrivals=1)
        await ctx.tick()
        offer(ctx, bank.i_waits[0], {"barrier": 0, "parity": 0, "cycles": cycles})
        await ctx.tick()
        offer(ctx, bank.i_waits[0], None)
        for _ in range(cycles + 1):
            assert not ctx.get(bank.o_waits[0].valid)
            await ctx.tick()
        expected = {"passed": 0, "flag": 0, "timed_out": 1, "error": 0}
        # The answer stays until it is taken, whatever becomes of the barrier.
        for operation in (None, (Op.ARRIVE, {"arrivals": 1}), (Op.INVALIDATE, {})):
            if operation:
                await do(operation[0], **operation[1])
            assert ctx.get(bank.o_waits[0].valid) and not ctx.get(bank.i_waits[0].ready)
            assert fields_of(ctx, bank.o_waits[0].payload, RESULT) == expected
        ctx.set(bank.o_waits[0].ready, 1)
        assert ctx.get(bank.i_waits[0].ready)

    alone(bank, story)


def test_a_wait_that_is_on_sees_the_phase_complete_in_time_and_an_error_at_once() -> None:
    bank = BarrierBank(barriers=3, ports=1, waiters=2)

    async def story(ctx: Any, do: Any) -> None:
        await do(Op.INIT, arrivals=1)
        for waiter in bank.o_waits:
            ctx.set(waiter.ready, 1)
        offer(ctx, bank.i_waits[0], {"barrier": 0, "parity": 0, "cycles": 1000})
        offer(ctx, bank.i_waits[1], {"barrier": 0, "parity": 1, "cycles": 1000})
        await ctx.tick()
        for waiter in bank.i_waits:
            offer(ctx, waiter, None)
        await ctx.tick()
        assert [ctx.get(each.valid) for each in bank.o_waits] == [0, 1]
        await do(Op.ARRIVE, arrivals=1)
        # Its answer; then the phase is seen, and the result offered.
        for seen in (0, 0, 1):
            assert ctx.get(bank.o_waits[0].valid) == seen
            await ctx.tick()
        for barrier, error in ((1, BarrierError.UNINITIALISED), (3, BarrierError.INDEX)):
            result = await wait(ctx, bank, barrier, 0, 1000)
            assert result == {"passed": 0, "flag": 0, "timed_out": 0, "error": error.value}

    alone(bank, story)
