# amaranth: UnusedElaboratable=no
import random

import pytest
from amaranth.sim import Simulator

from hw.arch.errors import BadInputError
from hw.lib.delay_memory import DelayMemory


@pytest.mark.parametrize(("most", "cycles"), [(2, 2), (13, 3), (13, 12), (13, 13), (16, 16)])
def test_a_word_comes_back_after_its_cycles(most, cycles, seed):
    dut = DelayMemory(width=9, most=most)
    words = [random.Random(seed).getrandbits(9) for _ in range(80)]

    async def check(ctx):
        ctx.set(dut.i_cycles, cycles)
        for cycle, word in enumerate(words):
            ctx.set(dut.i_data, word)
            if cycle >= cycles:
                assert ctx.get(dut.o_data) == words[cycle - cycles]
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(check)
    simulator.run()


def test_a_delay_of_one_cycle_is_refused():
    with pytest.raises(BadInputError, match="Greatest delay must be an integer of at least 2"):
        DelayMemory(width=8, most=1)
