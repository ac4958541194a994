import random

import pytest
from amaranth.sim import Simulator

from hw.arch.image import Image, image_words
from hw.arch.launch import HEADER_BYTES
from hw.command.run_writer import RunWriter

SEGMENTS = ((3, 1), (3, 1), (2,), (20, 5, 7))


def random_image(rng, width_bits):
    """An image of words that are 0 in places."""
    programs = {}
    for row, sizes in enumerate(SEGMENTS):
        for segment, words in enumerate(sizes):
            used = [rng.random() < 0.6 for _ in range(words)]
            values = [rng.getrandbits(width_bits) for _ in range(words)]
            programs[row, segment] = sum(
                value << width_bits * at for at, (use, value) in enumerate(zip(used, values)) if use
            )
    return Image(7, programs)


@pytest.mark.parametrize("width_bits", [64, 128, 1024])
def test_words_go_to_their_places(width_bits, seed):
    rng = random.Random(seed)
    dut = RunWriter(width_bits=width_bits, segments=SEGMENTS)

    async def story(ctx):
        for _ in range(4):
            body = random_image(rng, width_bits).pack(width_bits)[HEADER_BYTES:]
            beat = width_bits // 8
            ctx.set(dut.i_start, 1)
            await ctx.tick()
            ctx.set(dut.i_start, 0)
            written = []
            for at in range(0, len(body), beat):
                while rng.random() < 0.4:
                    await ctx.tick()
                    assert ctx.get(dut.o_row) == 0
                ctx.set(dut.i_valid, 1)
                ctx.set(dut.i_data, int.from_bytes(body[at : at + beat], "little"))
                assert not ctx.get(dut.o_misplaced)
                await ctx.tick()
                ctx.set(dut.i_valid, 0)
                if row := ctx.get(dut.o_row):
                    segment = ctx.get(dut.o_segment)
                    assert row & row - 1 == 0 and segment & segment - 1 == 0 and segment
                    place = row.bit_length() - 1, segment.bit_length() - 1
                    written.append((*place, ctx.get(dut.o_word), ctx.get(dut.o_data)))
            assert written == list(image_words(body, width_bits))
            assert ctx.get(dut.o_complete)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(story)
    simulator.run()


def test_every_word_of_no_segment_is_seen():
    dut = RunWriter(width_bits=64, segments=SEGMENTS)

    async def story(ctx):
        for row in range(len(SEGMENTS) + 2):
            for segment in range(5):
                for word in (0, 1, 2, 3, 19, 20, 255):
                    ctx.set(dut.i_start, 1)
                    await ctx.tick()
                    ctx.set(dut.i_start, 0)
                    ctx.set(dut.i_valid, 1)
                    ctx.set(dut.i_data, row | segment << 8 | word << 16 | 1 << 24)
                    await ctx.tick()
                    ctx.set(dut.i_valid, 0)
                    sizes = SEGMENTS[row] if row < len(SEGMENTS) else ()
                    inside = segment < len(sizes) and word < sizes[segment]
                    assert not ctx.get(dut.o_complete)
                    assert ctx.get(dut.o_misplaced) == (not inside), (row, segment, word)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(story)
    simulator.run()
