import random

import pytest
from amaranth.sim import Simulator

from hw.command.chain_writer import ChainWriter


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_words_go_to_the_chain_of_their_row(rows, seed):
    rng = random.Random(seed)
    dut = ChainWriter(width_bits=64, rows=rows)
    shifted = []

    async def story(ctx):
        for _ in range(2):
            words = [rng.randint(1, 9) for _ in range(rows)]
            expected = [
                (row, rng.getrandbits(64)) for row in range(rows) for _ in range(words[row])
            ]
            for row, count in enumerate(words):
                ctx.set(dut.i_words[row], count)
            ctx.set(dut.i_start, 1)
            await ctx.tick()
            ctx.set(dut.i_start, 0)
            shifted.clear()
            for number, (_, word) in enumerate(expected):
                while rng.random() < 0.4:
                    await ctx.tick()
                    assert ctx.get(dut.o_shift) == 0
                ctx.set(dut.i_valid, 1)
                ctx.set(dut.i_data, word)
                assert ctx.get(dut.o_end) == (number == len(expected) - 1)
                await ctx.tick()
                ctx.set(dut.i_valid, 0)
                row = ctx.get(dut.o_shift).bit_length() - 1
                assert ctx.get(dut.o_shift) == 1 << row
                shifted.append((row, ctx.get(dut.o_data)))
            assert shifted == expected

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(story)
    simulator.run()
