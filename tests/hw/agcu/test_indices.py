"""Index streams of an AGCU: vectors to indices, inputs of their own, programs that are refused."""

import random

import pytest
from amaranth.sim import Simulator

from hw.agcu.index_unpacker import IndexUnpacker
from hw.arch.agcu import AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.loops import BoxLoop


def simulated(dut, *actors):
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    for actor in actors:
        simulator.add_testbench(actor)
    simulator.run()


@pytest.mark.parametrize("width_bits", [64, 256])
def test_indices_come_in_order_and_a_drop_ends_their_vector(width_bits, seed):
    rng = random.Random(seed)
    dut = IndexUnpacker(width_bits=width_bits)
    count = width_bits // 32
    vectors = [[rng.getrandbits(32) for _ in range(count)] for _ in range(60)]
    sent, taken, expected = [], [], []

    async def source(ctx):
        for vector in vectors:
            while rng.random() < 0.3:
                await ctx.tick()
            word = sum(index << 32 * at for at, index in enumerate(vector))
            ctx.set(dut.i_stream.payload.data, word)
            ctx.set(dut.i_stream.valid, 1)
            await ctx.tick().until(dut.i_stream.ready)
            ctx.set(dut.i_stream.valid, 0)
            sent.append(vector)

    async def sink(ctx):
        for vector in vectors:
            used = rng.randint(1, count)
            expected.extend(vector[:used])
            for _ in range(used):
                while not ctx.get(dut.o_valid) or rng.random() < 0.3:
                    await ctx.tick()
                taken.append(ctx.get(dut.o_index))
                ctx.set(dut.i_take, 1)
                await ctx.tick()
                ctx.set(dut.i_take, 0)
            # After a whole vector there is nothing to drop.
            ctx.set(dut.i_drop, 1)
            await ctx.tick()
            ctx.set(dut.i_drop, 0)

    simulated(dut, source, sink)
    assert taken == expected and sent == vectors


def _table(*dims, box):
    strides = [4096] * (len(dims) - 1)
    return Descriptor(base=0, format=ElementFormat.INT16, dims=dims, strides=strides, box=box), 0


ROWS = _table(64, 100, box=(64, 1))
BY_ROW = IssuerProgram(0, (BoxLoop(5),), index=1)
PLAIN = IssuerProgram(0, (BoxLoop(5, 1, 1),))


def test_index_streams_arrive_at_inputs_of_their_own():
    gather = AgcuProgram(loads=(BY_ROW, PLAIN), stores=(None, PLAIN), descriptors=(ROWS,))
    assert (gather.inputs, gather.index_inputs) == ((0, 1), {(0, False): 0})
    scatter = AgcuProgram(stores=(None, BY_ROW), descriptors=(ROWS,))
    assert (scatter.inputs, scatter.index_inputs) == ((0, 1), {(1, True): 0})
    for program in (gather, scatter):
        assert AgcuProgram.unpack(program.pack(2), 2).index_inputs == program.index_inputs


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        (
            {"loads": (BY_ROW,), "stores": (PLAIN,)},
            "Input STORE_0 must have one stream, of data or of indices",
        ),
        (
            {"loads": (None, BY_ROW), "stores": (BY_ROW,)},
            "Input STORE_1 must have one stream, of data or of indices",
        ),
        (
            {"loads": (IssuerProgram(0, (BoxLoop(1),), index=2),)},
            "Indexed dimension must be below the tensor's 2 dimensions, not 2",
        ),
        (
            {"loads": (BY_ROW,), "descriptors": (_table(64, 100, box=(64, 2)),)},
            "Box must have 1 element in its indexed dimension, not 2",
        ),
        (
            {"loads": (BY_ROW,), "descriptors": (_table(64, (1 << 31) + 1, box=(64, 1)),)},
            "Indexed dimension must have at most 2147483648 indices, not 2147483649",
        ),
    ],
)
def test_programs_that_cannot_index_are_refused(fields, rule):
    with pytest.raises(ValueError, match=rule):
        AgcuProgram(**{"descriptors": (ROWS,), **fields})
