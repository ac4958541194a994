# amaranth: UnusedElaboratable=no
import random

import pytest
from amaranth.hdl import ResetInserter, Signal
from amaranth.sim import Simulator

from hw.arch.errors import BadInputError
from hw.lib.config_segment import ConfigSegment

CASES = [(8, 8), (8, 1), (8, 24), (16, 33), (64, 130)]


@pytest.mark.parametrize("width_bits, bits", CASES)
def test_a_load_takes_the_words_written_since_the_begin(width_bits, bits, seed):
    """What is not written is 0, whatever the program before it had there."""
    rng = random.Random(seed)
    dut = ConfigSegment(width_bits=width_bits, config_bits=bits)
    reset = Signal()

    async def pulse(ctx, signal):
        ctx.set(signal, 1)
        await ctx.tick()
        ctx.set(signal, 0)

    async def story(ctx):
        active = 0
        for _ in range(12):
            await pulse(ctx, dut.i_begin)
            program = 0
            words = [at for at in range(dut.words) if rng.random() < 0.7]
            rng.shuffle(words)
            for word in words:
                ctx.set(dut.i_word, word)
                ctx.set(dut.i_data, rng.getrandbits(width_bits))
                program |= ctx.get(dut.i_data) << word * width_bits
                await pulse(ctx, dut.i_write)
                assert ctx.get(dut.o_config) == active, "a write shows in the active program"
            # The reset of the fabric comes between the writes and the load.
            await pulse(ctx, reset)
            assert ctx.get(dut.o_config) == 0
            await pulse(ctx, dut.i_load)
            active = program & (1 << bits) - 1
            assert ctx.get(dut.o_config) == active

    simulator = Simulator(ResetInserter(reset)(dut))
    simulator.add_clock(1e-6)
    simulator.add_testbench(story)
    simulator.run()


REFUSED = [
    (lambda: ConfigSegment(width_bits=0, config_bits=1), "Segment width must be .* not 0"),
    (lambda: ConfigSegment(width_bits=8, config_bits=0), "Configuration bits must be .* not 0"),
    (lambda: ConfigSegment(width_bits=8, config_bits=2041), "Words of a segment must .* not 256"),
]


@pytest.mark.parametrize("call, message", REFUSED)
def test_what_cannot_work_is_refused(call, message):
    with pytest.raises(BadInputError, match=message):
        call()
