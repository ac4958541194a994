import random
import zlib

import pytest
from amaranth.sim import Simulator

from hw.lib.crc32 import Crc32


@pytest.mark.parametrize("width_bits", [64, 256, 1024])
def test_it_is_the_checksum_of_zlib(width_bits, seed):
    rng = random.Random(seed)
    dut = Crc32(width_bits=width_bits)

    async def story(ctx):
        for _ in range(3):
            ctx.set(dut.i_start, 1)
            await ctx.tick()
            ctx.set(dut.i_start, 0)
            raw = b""
            for _ in range(rng.randint(0, 9)):
                beat = rng.randbytes(width_bits // 8)
                ctx.set(dut.i_data, int.from_bytes(beat, "little"))
                ctx.set(dut.i_valid, 1)
                await ctx.tick()
                ctx.set(dut.i_valid, 0)
                if rng.random() < 0.3:
                    await ctx.tick()
                raw += beat
                assert ctx.get(dut.o_value) == zlib.crc32(raw)
            assert ctx.get(dut.o_value) == zlib.crc32(raw)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(story)
    simulator.run()
