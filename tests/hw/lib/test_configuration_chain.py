# amaranth: UnusedElaboratable=no
import random

import pytest
from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from hw.arch.errors import BadInputError
from hw.arch.image import chain_configs, chain_words, segment_words
from hw.lib.chain_segment import ChainSegment


class Row(wiring.Component):
    def __init__(self, width_bits, bits):
        self.segments = [ChainSegment(width_bits=width_bits, config_bits=each) for each in bits]
        super().__init__(
            {"i_shift": In(1), "i_load": In(1), "i_data": In(width_bits), "o_data": Out(width_bits)}
        )

    def elaborate(self, platform):
        m = Module()
        data = self.i_data
        for index, segment in enumerate(self.segments):
            m.submodules[f"segment_{index}"] = segment
            m.d.comb += [
                segment.i_shift.eq(self.i_shift),
                segment.i_load.eq(self.i_load),
                segment.i_data.eq(data),
            ]
            data = segment.o_data
        m.d.comb += self.o_data.eq(data)
        return m


CASES = [
    (8, [8]),
    (8, [1]),
    (8, [9, 7, 24]),
    (16, [5, 33, 16, 17, 1]),
    (64, [70, 20, 130]),
]


@pytest.mark.parametrize("width_bits, bits", CASES)
def test_words_land_in_the_segments_they_are_for(width_bits, bits):
    rng = random.Random(f"{width_bits} {bits}")
    kernels = [[rng.getrandbits(each) for each in bits] for _ in range(4)]
    dut = Row(width_bits, bits)

    def active(ctx):
        return [ctx.get(segment.o_config) for segment in dut.segments]

    async def story(ctx):
        assert active(ctx) == [0] * len(bits)
        before = [0] * len(bits)
        pushed = []
        for configs in kernels:
            for word in chain_words(configs, bits, width_bits):
                while rng.random() < 0.3:
                    ctx.set(dut.i_shift, 0)
                    ctx.set(dut.i_data, rng.getrandbits(width_bits))
                    await ctx.tick()
                ctx.set(dut.i_shift, 1)
                ctx.set(dut.i_data, word)
                # What the row held comes out at its far end, oldest first.
                if pushed:
                    assert ctx.get(dut.o_data) == pushed.pop(0)
                await ctx.tick()
                assert active(ctx) == before, "a shift shows in the active configuration"
            ctx.set(dut.i_shift, 0)
            ctx.set(dut.i_load, 1)
            await ctx.tick()
            ctx.set(dut.i_load, 0)
            assert active(ctx) == configs
            before = configs
            pushed = chain_words(configs, bits, width_bits)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(story)
    simulator.run()


def test_words_of_a_row_are_its_configurations_last_unit_first_little_endian():
    assert chain_words([0xA1, 0x3C2B], [8, 14], 8) == [0x2B, 0x3C, 0xA1]


@pytest.mark.parametrize("width_bits, bits", CASES)
def test_configurations_come_back_from_their_words(width_bits, bits):
    rng = random.Random(1)
    configs = [rng.getrandbits(each) for each in bits]
    words = chain_words(configs, bits, width_bits)
    assert len(words) == sum(segment_words(each, width_bits) for each in bits)
    assert chain_configs(words, bits, width_bits) == configs


def test_reset_turns_all_off_and_keeps_the_shadow():
    dut = ChainSegment(width_bits=8, config_bits=12)
    reset = Signal()

    async def story(ctx):
        ctx.set(dut.i_shift, 1)
        for word in chain_words([0xABC], [12], 8):
            ctx.set(dut.i_data, word)
            await ctx.tick()
        ctx.set(dut.i_shift, 0)
        for _ in range(2):
            ctx.set(dut.i_load, 1)
            await ctx.tick()
            ctx.set(dut.i_load, 0)
            assert ctx.get(dut.o_config) == 0xABC
            ctx.set(reset, 1)
            await ctx.tick()
            ctx.set(reset, 0)
            assert ctx.get(dut.o_config) == 0

    simulator = Simulator(ResetInserter(reset)(dut))
    simulator.add_clock(1e-6)
    simulator.add_testbench(story)
    simulator.run()


REFUSED = [
    (
        lambda: ChainSegment(width_bits=0, config_bits=1),
        BadInputError,
        "Chain width must be .* not 0",
    ),
    (
        lambda: ChainSegment(width_bits=8, config_bits=0),
        BadInputError,
        "Configuration bits must be .* not 0",
    ),
    (lambda: chain_words([1], [], 8), BadInputError, "as many as configurations, 1, not"),
    (lambda: chain_words([4], [2], 8), BadInputError, "Configuration must have 2 bits, not 4"),
    (lambda: chain_configs([1], [9], 8), BadInputError, "Words of the chain must be 2, not 1"),
    (lambda: chain_configs([4], [2], 8), BadInputError, "Configuration must have 2 bits, not 0x4"),
]


@pytest.mark.parametrize("call, kind, message", REFUSED)
def test_what_cannot_work_is_refused(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
