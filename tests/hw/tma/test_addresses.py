# amaranth: UnusedElaboratable=no
import random

import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from hw.arch.descriptor import Descriptor, ElementFormat, descriptor_layout
from hw.arch.error_codes import TmaError, UnitError
from hw.arch.errors import BadInputError
from hw.lib.bursts import longest_burst
from hw.tma.box_reader import BoxReader
from hw.tma.box_walker import BoxWalker
from hw.tma.burst_splitter import BurstSplitter
from hw.tma.commands import tagged_command_layout
from hw.tma.layouts import TmaLayouts
from sim.tb._refusals import REFUSALS, with_field
from tests.hw.tma.model import element_offsets, packed_command, random_case

ADDRESS_BITS = 40


class Chain(wiring.Component):
    """Reader, walker and splitter in a row, with one descriptor from outside."""

    def __init__(self, *, width_bits, burst_beats):
        self.layouts = TmaLayouts(width_bits, ADDRESS_BITS, streams=2)
        self.burst_beats = burst_beats
        super().__init__(
            {
                "i_stream": In(stream.Signature(tagged_command_layout(4, 2))),
                "o_plans": Out(stream.Signature(self.layouts.plan)),
                "o_bursts": Out(stream.Signature(self.layouts.burst)),
                "i_descriptor": In(descriptor_layout),
                "i_stride": In(signed(64)),
                "o_index": Out(2),
                "o_read": Out(1),
                "o_error": Out(8),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.reader = reader = BoxReader(self.layouts, descriptors=4)
        m.submodules.walker = walker = BoxWalker(self.layouts)
        m.submodules.splitter = splitter = BurstSplitter(self.layouts, burst_beats=self.burst_beats)
        wiring.connect(m, reader.o_stream, walker.i_stream)
        wiring.connect(m, walker.o_stream, splitter.i_stream)
        wiring.connect(m, wiring.flipped(self.i_stream), reader.i_stream)
        wiring.connect(m, splitter.o_plans, wiring.flipped(self.o_plans))
        wiring.connect(m, splitter.o_bursts, wiring.flipped(self.o_bursts))
        m.d.comb += [
            reader.i_descriptor.eq(self.i_descriptor),
            reader.i_stride.eq(self.i_stride),
            self.o_index.eq(reader.o_index),
            self.o_read.eq(reader.o_read),
            self.o_error.eq(reader.o_error),
        ]
        return m


def run(width_bits, burst_beats, commands, *, stall=0.0, seed=0):
    """Plans, bursts, errors and cycles of commands.

    A command is (packed descriptor, coordinates), or these and (iteration, stride of the base), or
    these and its indexed dimension.
    """
    dut = Chain(width_bits=width_bits, burst_beats=burst_beats)
    rng = random.Random(seed)
    plans, bursts, errors, when = [], [], [], []

    async def issue(ctx):
        for packed, coordinates, *rest in commands:
            (iteration, stride), index = (*rest, *[(0, 0), 0][len(rest) :])
            fields = packed_command(1, coordinates, iteration) | {"index": index}
            ctx.set(dut.i_stream.payload.command, fields)
            ctx.set(dut.i_stream.payload.stream, 1)
            ctx.set(dut.i_stream.valid, 1)
            await ctx.tick().until(dut.i_stream.ready)
            ctx.set(dut.i_stream.valid, 0)
            # The descriptor arrives in the cycle after the read, and stays.
            ctx.set(dut.i_descriptor, descriptor_layout.from_bits(int.from_bytes(packed, "little")))
            ctx.set(dut.i_stride, stride)
        idle = 0
        while idle < 60:
            valid = ctx.get(dut.o_plans.valid) or ctx.get(dut.o_bursts.valid)
            idle = 0 if valid else idle + 1
            await ctx.tick()

    async def take(ctx):
        cycle = 0
        while True:
            ctx.set(dut.o_plans.ready, rng.random() >= stall)
            ctx.set(dut.o_bursts.ready, rng.random() >= stall)
            sampled = await ctx.tick().sample(
                dut.o_plans.valid & dut.o_plans.ready,
                dut.o_plans.payload,
                dut.o_bursts.valid & dut.o_bursts.ready,
                dut.o_bursts.payload,
                dut.o_error,
            )
            plan_moves, plan, burst_moves, burst, error = sampled[2:]
            cycle += 1
            if plan_moves:
                plans.append({name: int(plan[name]) for name, _ in dut.layouts.plan})
            if burst_moves:
                bursts.append((int(burst.address), int(burst.length) + 1))
                when.append(cycle)
            if error:
                errors.append(UnitError(error) if error == UnitError.INDEX else TmaError(error))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(issue)
    simulator.add_testbench(take, background=True)
    simulator.run()
    return plans, bursts, errors, when


def expected_beats(width_bits, descriptor, coordinates):
    """For each row of the box, the set of beats in memory that hold a byte of the tensor."""
    beat = width_bits // 8
    size = descriptor.format.bytes
    rows = [[] for _ in range(descriptor.rows)]
    for flat, offset in element_offsets(descriptor, coordinates):
        start = descriptor.base + offset
        row = rows[flat // descriptor.box[0]]
        row += [start // beat, (start + size - 1) // beat]
    return [sorted(set(row)) for row in rows]


@pytest.mark.few(2)
@pytest.mark.parametrize("width_bits", [64, 128])
@pytest.mark.parametrize("burst_beats", [4, None])
def test_bursts_hold_exactly_the_beats_of_each_row(width_bits, burst_beats, seed):
    rng = random.Random(seed)
    limit = burst_beats or longest_burst(width_bits)
    region = (0x12_0000_0F00, 0x12_0000_3100)
    cases = [random_case(rng, width_bits=width_bits, region=region) for _ in range(60)]
    commands = [(descriptor.pack(), coordinates) for descriptor, coordinates in cases]
    plans, bursts, errors, _ = run(width_bits, limit, commands, stall=0.3, seed=seed)
    assert errors == []
    plan, burst = iter(plans), iter(bursts)
    for descriptor, coordinates in cases:
        rows = expected_beats(width_bits, descriptor, coordinates)
        for number, beats in enumerate(rows):
            found = next(plan)
            assert found["end"] - found["first"] == len(beats)
            assert found["last"] == (number == len(rows) - 1)
            assert found["stream"] == 1
            assert found["vectors"] == descriptor.row_bytes // (width_bits // 8)
            issued = []
            while len(issued) < len(beats):
                address, length = next(burst)
                assert length <= 256
                # No burst crosses a multiple of its limit, and so none crosses 4 KiB.
                assert address // limit == (address + length - 1) // limit
                issued += range(address, address + length)
            assert issued == beats
    assert next(plan, None) is None and next(burst, None) is None


def test_coordinates_of_every_length_reach_their_address(seed):
    rng = random.Random(seed)
    cases = []
    for _ in range(60):
        rank = rng.randint(1, 5)
        descriptor = Descriptor(
            base=rng.getrandbits(30) << 4,
            format=ElementFormat.FP32,
            dims=[1 << rng.randint(7, 31) for _ in range(rank)],
            strides=[rng.getrandbits(rng.randint(1, 36)) << 4 for _ in range(rank - 1)],
            box=[4] + [rng.randint(1, 2) for _ in range(rank - 1)],
        )
        edges = [127, 128, 255, 256, 32767, 32768, 65535, (1 << 23) - 1, 1 << 23, (1 << 31) - 2]
        coordinates = [
            rng.choice([c for c in edges if c < n] + [rng.randrange(n)]) for n in descriptor.dims
        ]
        cases.append((descriptor, coordinates))
    wide = Descriptor(
        base=0x9000, format=ElementFormat.INT8, dims=(999, 99), strides=(1008,), box=(256, 200)
    )
    cases += [(wide, (-129, 0)), (wide, (-255, 98)), (wide, (-1, -199)), (wide, (900, -130))]
    _, bursts, errors, _ = run(64, 256, [(d.pack(), coordinates) for d, coordinates in cases])
    wanted = [
        [beat % (1 << (ADDRESS_BITS - 3)) for beat in row]
        for descriptor, coordinates in cases
        for row in expected_beats(64, descriptor, coordinates)
    ]
    found = [beat for address, length in bursts for beat in range(address, address + length)]
    assert errors == []
    assert found == [beat for row in wanted for beat in row]


def test_a_burst_a_cycle_within_a_box_and_boxes_close_behind():
    descriptor = Descriptor(
        base=0x1000, format=ElementFormat.INT8, dims=(64, 100), strides=(64,), box=(8, 100)
    )
    _, bursts, _, when = run(64, 64, [(descriptor.pack(), (0, 0))] * 2)
    assert len(bursts) == 200
    assert when[-1] - when[0] == 199


@pytest.mark.few(7)
@pytest.mark.parametrize("rank", range(1, 6))
@pytest.mark.parametrize(("coordinate", "extra"), [(0, 0), (-128, 0), (128, 1), (1 << 20, 2)])
def test_a_box_costs_its_rank_and_two_cycles(rank, coordinate, extra):
    descriptor = Descriptor(
        base=0x1000,
        format=ElementFormat.INT8,
        dims=[(1 << 21)] * rank,
        strides=[1 << 21] * (rank - 1),
        box=[136] + [1] * (rank - 1),
    )
    at = [coordinate] + [0] * (rank - 1)
    _, _, _, when = run(64, 64, [(descriptor.pack(), at)] * 4, seed=1)
    assert when[-1] > when[0]
    starts = when if len(when) == 4 else when[:: len(when) // 4]
    assert {b - a for a, b in zip(starts, starts[1:])} == {rank + 2 + extra}


def test_an_iteration_adds_its_stride_to_the_base(seed):
    rng = random.Random(seed)
    commands, wanted = [], []
    for rank in (1, 2, 5):
        for iteration in (0, 1, 127, 128, 65_535, 1 << 23, (1 << 31) + 5, (1 << 32) - 1):
            descriptor = Descriptor(
                base=rng.getrandbits(30) << 4,
                format=ElementFormat.INT8,
                dims=[64] + [9] * (rank - 1),
                strides=[64] * (rank - 1),
                box=[8] + [1] * (rank - 1),
            )
            stride = 16 * rng.randint(-(1 << 59), (1 << 59) - 1)
            at = [8 * rng.randint(0, 7)] + [rng.randint(0, 8) for _ in range(rank - 1)]
            commands.append((descriptor.pack(), at, (iteration, stride)))
            address = descriptor.base + iteration * stride + at[0] + 64 * sum(at[1:])
            wanted.append(address % (1 << ADDRESS_BITS) // 8)
    _, bursts, errors, _ = run(64, 256, commands, stall=0.3, seed=seed)
    assert errors == []
    assert [(address, length) for address, length in bursts] == [(each, 1) for each in wanted]


@pytest.mark.parametrize(
    ("iteration", "extra"), [(0, 0), (1, 1), (127, 1), (128, 2), ((1 << 32) - 1, 5)]
)
def test_an_iteration_costs_a_cycle_per_byte(iteration, extra):
    descriptor = Descriptor(
        base=0x1000, format=ElementFormat.INT8, dims=(64, 9), strides=(64,), box=(8, 1)
    )
    commands = [(descriptor.pack(), (0, 0), (iteration, 64))] * 4
    _, _, _, when = run(64, 64, commands, seed=1)
    assert {b - a for a, b in zip(when, when[1:])} == {4 + extra}


def test_a_stride_that_misplaces_the_base_is_refused_once_it_counts():
    descriptor = Descriptor(base=0x1000, format=ElementFormat.INT8, dims=(64,), box=(8,)).pack()
    commands = [(descriptor, (0,), (iteration, 24)) for iteration in (0, 1)]
    _, bursts, errors, _ = run(64, 64, commands)
    assert errors == [TmaError.BASE]
    assert len(bursts) == 1


def test_an_index_outside_its_dimension_is_an_error_and_reaches_no_byte():
    """A coordinate of another dimension may lie outside, as that of any box."""
    descriptor = Descriptor(
        base=0x1000, format=ElementFormat.INT8, dims=(64, 9, 5), strides=(64, 640), box=(8, 2, 1)
    ).pack()
    for dimension, at, outside in (
        (2, (0, 0, 4), False),
        (2, (0, 0, 5), True),
        (2, (0, 0, -1), True),
        (2, (0, -1, 0), False),
        (1, (0, 8, 0), False),
        (1, (0, 9, 0), True),
        (0, (0, 9, 5), False),
        (2, (0, 0, -(1 << 31)), True),
    ):
        _, bursts, errors, _ = run(64, 64, [(descriptor, at, (0, 0), dimension)])
        assert errors == [UnitError.INDEX] * outside, (dimension, at)
        assert not (outside and bursts)


@pytest.mark.parametrize(("field", "index", "value", "code"), REFUSALS)
def test_hardware_refuses_what_it_does_not_serve_and_goes_on(field, index, value, code):
    good = Descriptor(
        base=0x1000, format=ElementFormat.INT8, dims=(64, 9), strides=(64,), box=(8, 2)
    ).pack()
    bad = with_field(good, field, index, value)
    plans, bursts, errors, _ = run(64, 64, [(bad, (0, 0)), (good, (0, 0))])
    assert errors == [code]
    assert len(plans) == len(bursts) == 2


def test_splitter_refuses_bursts_that_axi_does_not_allow():
    for width_bits, beats, most in ((256, 256, 128), (64, 3, 256), (64, 0, 256)):
        with pytest.raises(BadInputError, match=f"power of two of at most {most}, not {beats}"):
            BurstSplitter(TmaLayouts(width_bits, 40, streams=1), burst_beats=beats)
