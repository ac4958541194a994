"""Statistics of lanes by themselves: changes as soon as they may come, and words never changed."""

import numpy as np
from amaranth.hdl import ResetInserter, Signal
from amaranth.sim import Simulator

from hw.arch.lanes.phase_word import Reduction
from hw.pcu.statistics import Statistics

LANES, GROUPS = 2, 4
OPERATIONS = {Reduction.REPLACE: lambda a, b: b, Reduction.MAXIMUM: max, Reduction.MINIMUM: min}


def test_changes_follow_one_another_and_a_reset_leaves_zeros(seed):
    """Groups change in random order, many of them again after the fewest cycles."""
    rng = np.random.default_rng(seed)
    dut = Statistics(lanes=LANES, groups=GROUPS)
    reset = Signal()

    async def read(ctx):
        found = {}
        for group in range(GROUPS):
            ctx.set(dut.i_read_group, group)
            await ctx.tick()
            for number in range(2):
                found[number, group] = [ctx.get(dut.o_words[number][n]) for n in range(LANES)]
        return found

    async def check(ctx):
        for reduction, operation in [*OPERATIONS.items()] * 3:
            number = int(rng.integers(2))
            ctx.set(reset, 1)
            await ctx.tick()
            ctx.set(reset, 0)
            expected = {(each, group): [0] * LANES for each in range(2) for group in range(GROUPS)}
            assert await read(ctx) == expected
            ctx.set(dut.i_reduction, reduction)
            ctx.set(dut.i_statistic, number)
            ctx.set(dut.i_next_statistic, number)
            free = dict.fromkeys(range(GROUPS - 1), -9)
            chosen = None
            for cycle in range(120):
                change, group = chosen is not None, chosen or 0
                ctx.set(dut.i_change, change)
                ctx.set(dut.i_group, group)
                ready = [
                    each
                    for each, last in free.items()
                    if cycle + 1 - last >= Statistics.step_cycles and not (change and each == group)
                ]
                chosen = int(rng.choice(ready)) if ready and rng.integers(8) else None
                ctx.set(dut.i_next_group, chosen or 0)
                if change:
                    # Positive numbers have the order of their bits.
                    words = [int(word) for word in rng.integers(1, 0x7F00_0000, LANES)]
                    first = free[group] < 0
                    ctx.set(dut.i_first, first)
                    for lane, word in enumerate(words):
                        ctx.set(dut.i_results[lane], word)
                    old = words if first else expected[number, group]
                    expected[number, group] = [*map(operation, old, words)]
                    free[group] = cycle
                await ctx.tick()
            ctx.set(dut.i_change, 0)
            for _ in range(Statistics.step_cycles):
                await ctx.tick()
            assert await read(ctx) == expected

    simulator = Simulator(ResetInserter(reset)(dut))
    simulator.add_clock(1e-6)
    simulator.add_testbench(check)
    simulator.run()
