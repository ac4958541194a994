import random

from amaranth.sim import Simulator

from hw.agcu.descriptor_writer import DescriptorWriter
from hw.arch.agcu import AGCU_DESCRIPTORS
from hw.arch.descriptor import STORED_WORDS
from hw.arch.launch import MAX_ARGUMENTS


def test_each_base_has_its_argument_added_and_every_descriptor_one_cycle(seed):
    rng = random.Random(seed)
    dut = DescriptorWriter(token_ports=1)

    async def story(ctx):
        assert ctx.get(dut.o_written) and ctx.get(dut.o_idle)
        for _ in range(2):
            arguments = [rng.getrandbits(64) for _ in range(MAX_ARGUMENTS)]
            strides = [rng.randrange(-(1 << 63), 1 << 63) for _ in range(MAX_ARGUMENTS)]
            ctx.set(dut.i_argument_valid, 1)
            for index, value in enumerate(arguments):
                ctx.set(dut.i_argument.index, index)
                ctx.set(dut.i_argument.value, value)
                ctx.set(dut.i_argument.stride, strides[index])
                await ctx.tick()
            ctx.set(dut.i_argument_valid, 0)
            expected = []
            for index in range(AGCU_DESCRIPTORS):
                words = [rng.getrandbits(64) for _ in range(STORED_WORDS)]
                argument = rng.randrange(MAX_ARGUMENTS)
                ctx.set(dut.config.arguments[index], argument)
                ctx.set(dut.config.descriptors[index], words)
                base = (words[0] + arguments[argument]) % (1 << 64)
                expected.append((index, [base, *words[1:]], strides[argument]))
            ctx.set(dut.i_start, 1)
            assert not ctx.get(dut.o_idle)
            await ctx.tick()
            ctx.set(dut.i_start, 0)
            for _ in range(2):
                assert not ctx.get(dut.o_write.valid)
                assert not ctx.get(dut.o_written) and not ctx.get(dut.o_idle)
                await ctx.tick()
            written = []
            for _ in range(AGCU_DESCRIPTORS):
                assert not ctx.get(dut.o_written) and not ctx.get(dut.o_idle)
                assert ctx.get(dut.o_write.valid)
                each = ctx.get(dut.o_write.payload)
                words = [each.words[at] for at in range(STORED_WORDS)]
                written.append((each.index, words, each.stride))
                await ctx.tick()
            assert written == expected
            assert not ctx.get(dut.o_write.valid)
            assert ctx.get(dut.o_written) and ctx.get(dut.o_idle)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(story)
    simulator.run()
