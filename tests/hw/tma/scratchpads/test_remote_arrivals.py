"""Operations of a scratchpad's user on the barriers of other scratchpads."""

import pytest

from hw.arch.error_codes import BarrierError
from hw.tma.barriers.barrier_layouts import BarrierOperation
from tests.hw.tma.bank_bench import fields_of, offer
from tests.hw.tma.scratchpads.pads_bench import begin, counts, pads_bench
from tests.slow_cases import quick_first

_ARRIVE, _INIT = BarrierOperation.ARRIVE, BarrierOperation.INIT


@pytest.mark.parametrize("scratchpads", quick_first([3, 2, 5]))
def test_every_scratchpad_arrives_at_every_barrier_once(scratchpads):
    """One arrival of each completes the phase of one barrier alone."""
    bench = pads_bench(scratchpads)

    async def work(ctx):
        for pad in range(scratchpads):
            for barrier in range(2):
                await bench.operate(ctx, _INIT, barrier, pad=pad, arrivals=scratchpads)
        for pad in range(scratchpads):
            for home in range(scratchpads):
                answer = await bench.operate(ctx, _ARRIVE, 1, pad=pad, home=home, arrivals=1)
                assert (answer["pending"], answer["error"]) == (scratchpads - home, 0)
            await ctx.tick()
            phases = [ctx.get(user.o_phases) for user in bench.users]
            assert phases == [2] * (pad + 1) + [0] * (scratchpads - pad - 1)

    bench.run(work)


def test_arrivals_from_all_at_once_take_a_cycle_each_and_are_answered_at_their_port():
    """Four users give operations to one bank, without a pause; each has every answer in order."""
    bench, turns = pads_bench(4), 20
    answers, begun = {}, []
    cycle = [0]

    async def clock(ctx):
        while len(answers) < 4 or min(map(len, answers.values())) < turns:
            await ctx.tick()
            cycle[0] += 1

    def user_of(home):
        async def arrive(ctx):
            user = bench.users[home]
            port, answer = user.i_operations[0], user.o_answers[0]
            while not begun:
                await ctx.tick()
            fields = {"operation": _ARRIVE.value, "barrier": 0, "arrivals": 1 + home, "bytes": 0}
            offer(ctx, port, {**fields, "failed": 0, "scratchpad": 2})
            given = 0
            mine = answers[home] = []
            while len(mine) < turns:
                *_, ready, valid, payload = await ctx.tick().sample(
                    port.ready, answer.valid, answer.payload
                )
                if valid:
                    mine.append((int(payload.pending), payload.error.value))
                given += ready and given < turns
                if given == turns:
                    ctx.set(port.valid, 0)

        return arrive

    async def work(ctx):
        most = sum(turns * (1 + home) for home in range(4))
        await bench.operate(ctx, _INIT, 0, pad=2, arrivals=most)
        await ctx.tick()
        begun.append(cycle[0])
        while len(answers) < 4 or min(map(len, answers.values())) < turns:
            await ctx.tick()
        took = cycle[0] - begun[0]
        # Every operation of a cycle of its own, each seen by exactly one port.
        steps = sorted(
            (pending, 1 + home) for home, found in answers.items() for pending, _ in found
        )
        steps.reverse()
        assert len(steps) == 4 * turns
        left = most
        for pending, count in steps:
            assert pending == left
            left -= count
        assert left == 0
        assert all(error == 0 for found in answers.values() for _, error in found)
        assert took <= 4 * turns + 6
        # The users of the other scratchpads take turns.
        remote = [count for _, count in steps if count != 3]
        rounds = [set(remote[at : at + 3]) for at in range(0, 3 * turns, 3)]
        assert rounds == [{1, 2, 4}] * turns
        await ctx.tick().repeat(2)
        assert [ctx.get(user.o_phases) for user in bench.users] == [0, 0, 1, 0]

    bench.run(work, clock, *(user_of(home) for home in range(4)))


def test_a_scratchpad_that_does_not_exist_is_answered_with_an_error():
    bench = pads_bench(3)

    async def work(ctx):
        await begin(bench, ctx, 0)
        for pad in (3, 7, 15):
            port, answer = bench.unit.i_operations[0], bench.unit.o_answers[0]
            fields = {"operation": _ARRIVE.value, "barrier": 0, "arrivals": 1, "bytes": 0}
            offer(ctx, port, {**fields, "failed": 0, "scratchpad": pad})
            await ctx.tick().until(port.ready)
            ctx.set(port.valid, 0)
            assert ctx.get(answer.valid)
            assert fields_of(ctx, answer.payload, ("error",)) == {"error": BarrierError.INDEX.value}
            await ctx.tick()
            assert not ctx.get(answer.valid)
        assert [answer["pending"] for answer in await counts(bench, ctx, 0)] == [1, 1, 1]

    bench.run(work)
