"""Parts that fused softmax adds to a matrix unit, each against its golden function."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from hw.arch.lanes.key_mask import KeyMask
from hw.matrix.softmax.key_counters import KeyCounters
from hw.matrix.softmax.rescale import Rescale
from hw.matrix.softmax.rise_loader import RiseLoader
from hw.matrix.softmax.score_columns import ScoreColumns
from hw.numeric.formats import fp32
from hw.numeric.fused_softmax import rescaled, seen

C = 3


def simulate(dut, *drivers):
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    for driver in drivers:
        simulator.add_testbench(driver)
    simulator.run()


def test_sums_are_scaled_by_their_exponents_alone(seed):
    rng = np.random.default_rng(seed)
    fields = [0, 1, 2, 100, 253, 254, 255]
    words = [
        int(rng.choice(fields)) << 23 | int(rng.choice([0, 1, 1 << 22, rng.integers(1 << 23)]))
        for _ in range(400)
    ]
    words = np.array(words, np.uint32) | rng.integers(0, 2, 400).astype(np.uint32) << 31
    rises = rng.choice([0, 1, 2, 99, 100, 252, 253, 254, 255], 400).astype(np.uint8)
    expected = fp32.bits_of(rescaled(fp32.from_bits(words), rises))
    nan = np.isnan(fp32.from_bits(words))
    dut = Rescale()

    async def drive(ctx):
        for number, (word, rise) in enumerate(zip(words, rises, strict=True)):
            ctx.set(dut.i_sum, int(word))
            ctx.set(dut.i_rise, int(rise))
            got = ctx.get(dut.o_sum)
            assert got == (word if nan[number] else expected[number]), (hex(word), rise)

    simulator = Simulator(dut)
    simulator.add_testbench(drive)
    simulator.run()


@pytest.mark.parametrize("active", [0, 1])
def test_rises_leave_the_stream_and_go_with_the_first_tile(active, seed):
    rng = np.random.default_rng(seed)
    dut = RiseLoader(width_bits=8 * 4 * C, columns=C)
    packets = [rng.integers(0, 256, (1 + C * tiles, 4 * C)) for tiles in (1, 2, 1, 3)]
    given = [(bytes(v.astype(np.uint8)), n == len(p) - 1) for p in packets for n, v in enumerate(p)]
    expected = []
    for packet in packets:
        rises = [*packet[0, :C], *[0] * len(packet)] if active else [0] * (1 + len(packet))
        expected += list(zip(packet[active:].tolist(), rises, strict=False))
    got = []

    async def feed(ctx):
        ctx.set(dut.active, active)
        for data, last in given:
            while rng.random() < 0.4:
                ctx.set(dut.i_stream.valid, 0)
                await ctx.tick()
            ctx.set(dut.i_stream.payload.data, int.from_bytes(data, "little"))
            ctx.set(dut.i_stream.payload.last, last)
            ctx.set(dut.i_stream.valid, 1)
            await ctx.tick().until(dut.i_stream.ready)
        ctx.set(dut.i_stream.valid, 0)

    async def take(ctx):
        while len(got) < len(expected):
            ctx.set(dut.o_stream.ready, int(rng.random() < 0.5))
            _, _, valid, ready, word, rise = await ctx.tick().sample(
                dut.o_stream.valid, dut.o_stream.ready, dut.o_stream.payload.data, dut.o_rise
            )
            if valid and ready:
                got.append((list(word.to_bytes(4 * C, "little")), rise))

    simulate(dut, feed, take)
    assert got == [(row, int(rise)) for row, rise in expected]


MASKS = [
    KeyMask(length=17, causal=True, offset=4, query_step=C, groups=3),
    KeyMask(window=5, offset=9, query_step=-2, first_key=-4, key_step=3, groups=2),
    KeyMask(length=1),
    KeyMask(causal=True, offset=-(1 << 17), first_key=(1 << 17) - 1, key_step=(1 << 17) - 1),
]


@pytest.mark.parametrize("mask", MASKS)
def test_counters_find_the_keys_that_each_query_sees(mask, seed):
    """Blocks of several tiles, query groups of several blocks, and pauses between rows."""
    rng = np.random.default_rng(seed)
    dut = KeyCounters(C)

    async def drive(ctx):
        for name, value in mask.fields().items():
            ctx.set(dut.mask[name], value)
        for group in range(8):
            landed = 0
            for block in range(int(rng.integers(1, 4))):
                rows, tiles = int(rng.integers(1, 12)), int(rng.integers(1, 3))
                visible = seen(mask, group=group, first_row=landed, rows=rows, columns=C)
                landed += rows
                for number in range(rows * tiles):
                    while rng.random() < 0.2:
                        ctx.set(dut.i_lands, 0)
                        await ctx.tick()
                    ctx.set(dut.i_lands, 1)
                    ctx.set(dut.i_begins, number % rows == 0)
                    ctx.set(dut.i_ends, number == rows * tiles - 1)
                    ctx.set(dut.i_group, block == 0)
                    hidden = ctx.get(dut.o_hidden)
                    own = [not hidden >> column & 1 for column in range(C)]
                    assert own == visible[number % rows].tolist(), (group, block, number)
                    await ctx.tick()
                ctx.set(dut.i_lands, 0)

    simulate(dut, drive)


def test_columns_keep_the_greatest_score_of_each_block(seed):
    """Blocks in turn in two banks, tiles that only the last of counts, and hidden scores."""
    rng = np.random.default_rng(seed)
    dut = ScoreColumns(C)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40], np.float32)
    rows = []
    maxima = []
    for block in range(6):
        count, tiles = int(rng.integers(1, 6)), int(rng.integers(1, 3))
        for _ in range(tiles):
            scores = (rng.normal(-1, 2, (count, C)) * 10.0 ** rng.integers(-3, 4)).astype(
                np.float32
            )
            where = rng.random(scores.shape) < 0.3
            scores[where] = rng.choice(special, where.sum())
            hidden = rng.random(scores.shape) < 0.3
            rows += [(n == 0, block % 2, *each) for n, each in enumerate(zip(scores, hidden))]
        counted = np.where(hidden | np.isnan(scores), -np.inf, scores)
        maxima.append((len(rows), block % 2, counted.max(axis=0).astype(np.float32)))
    nothing = (0, 0, np.zeros(C, np.float32), np.zeros(C, bool))
    rows += [nothing] * (C + 1)

    async def drive(ctx):
        for cycle, (begins, bank, _, hidden) in enumerate(rows):
            ctx.set(dut.i_control.enable, cycle < maxima[-1][0])
            ctx.set(dut.i_control.begins, begins)
            ctx.set(dut.i_control.bank, bank)
            ctx.set(dut.i_hidden, sum(int(each) << c for c, each in enumerate(hidden)))
            for column in range(C):
                score, masked = rows[cycle - column][2:] if cycle >= column else nothing[2:]
                ctx.set(dut.i_sums[column], int(fp32.bits_of(score)[column]))
                word = 0xFF800000 if masked[column] else int(fp32.bits_of(score)[column])
                assert ctx.get(dut.o_sums[column]) == word
            await ctx.tick()
            for landed, own_bank, greatest in maxima:
                if cycle == landed + C - 2:
                    ctx.set(dut.i_bank, own_bank)
                    got = [ctx.get(dut.o_maxima[column]) for column in range(C)]
                    assert (fp32.from_bits(np.array(got, np.uint32)) == greatest).all()

    simulate(dut, drive)
