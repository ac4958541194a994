"""A command processor between a memory, a host and a fabric that are plain coroutines."""

import random

from amaranth.hdl import Module, ResetInserter
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hw.arch.image import Image
from hw.arch.launch import (
    HEADER_BYTES,
    Argument,
    LaunchEntry,
    alignment_bytes,
    pack_arguments,
    pack_list,
)
from hw.arch.registers.chip_registers import register
from hw.command.processor import CommandProcessor
from hw.lib.axi import BOUNDARY_BYTES, BURST_INCR, full_width_size
from hw.lib.config_segment import ConfigSegment
from hw.numeric.division import ceil_div
from tests.hw.lib.register_host import read_word, write_word
from tests.hw.reused_simulator import Simulation

FINGERPRINT = 0x1234_5678
ADDRESS_BITS = 40
LIST = 0x1_0000
SEGMENTS = ((70, 20), (130,))
LAUNCH, ABORT, INTERRUPT = 1, 2, 4
BUSY, DONE, ERROR = 1, 2, 4


class Memory:
    """Read half of an AXI4 memory: bursts in order, back to back, each after the latency.

    The first beat of a burst accepted in cycle t is there in cycle t + latency.
    """

    def __init__(self, axi, *, latency=4, jitter=0, stall=0.0, seed=0):
        self.axi = axi
        self.bytes = {}
        self.errors = {}
        self.bursts = []
        self.latency, self.jitter, self.stall = latency, jitter, stall
        self.rng = random.Random(f"{seed} memory")
        self.owed = []
        self.beat_bytes = len(axi.rdata) // 8

    def put(self, address, raw):
        self.bytes.update(enumerate(raw, address))

    def fetch(self, address):
        raw = bytes(self.bytes.get(address + i, 0xEE) for i in range(self.beat_bytes))
        return int.from_bytes(raw, "little"), self.errors.get(address, 0)

    def accept(self, cycle, address, length, size, burst):
        assert burst == BURST_INCR and size == full_width_size(8 * self.beat_bytes)
        assert address % self.beat_bytes == 0
        end = address + (length + 1) * self.beat_bytes
        assert address // BOUNDARY_BYTES == (end - 1) // BOUNDARY_BYTES, "burst crosses 4 KiB"
        self.bursts.append((cycle, address, length + 1))
        start = cycle + self.latency + self.rng.randint(0, self.jitter)
        for beat in range(length + 1):
            self.owed.append((start, address + beat * self.beat_bytes, beat == length))

    async def run(self, ctx):
        axi, cycle, shown = self.axi, 0, False
        waiting = None
        while True:
            ctx.set(axi.arready, self.rng.random() >= self.stall)
            if not shown and self.owed and cycle >= self.owed[0][0]:
                shown = self.rng.random() >= self.stall
            ctx.set(axi.rvalid, shown)
            if shown:
                word, response = self.fetch(self.owed[0][1])
                ctx.set(axi.rdata, word)
                ctx.set(axi.rresp, response)
                ctx.set(axi.rlast, self.owed[0][2])
            address = (axi.araddr, axi.arlen, axi.arsize, axi.arburst)
            sampled = await ctx.tick().sample(axi.arvalid, axi.arready, axi.rready, *address)
            valid, ready, taken, *address = sampled[2:]
            assert waiting is None or (valid and address == waiting), "AR changed while waiting"
            waiting = address if valid and not ready else None
            if valid and ready:
                self.accept(cycle, *address)
            if shown and taken:
                self.owed.pop(0)
                shown = False
            cycle += 1


class Chip(wiring.Component):
    """A command processor and rows of segments; ``config`` is what the units would see."""

    def __init__(self, *, width_bits, segments, units=2):
        self.processor = CommandProcessor(
            width_bits=width_bits,
            segments=tuple(tuple(ceil_div(each, width_bits) for each in row) for row in segments),
            axi_address_bits=ADDRESS_BITS,
            fingerprint=FINGERPRINT,
            units=units,
        )
        self.width_bits, self.segments = width_bits, segments
        super().__init__(
            {
                f"config_{row}_{index}": Out(config_bits)
                for row, bits in enumerate(segments)
                for index, config_bits in enumerate(bits)
            }
        )

    def configs(self):
        """Active configurations by row and segment."""
        return [
            [getattr(self, f"config_{row}_{index}") for index in range(len(bits))]
            for row, bits in enumerate(self.segments)
        ]

    def elaborate(self, platform):
        m = Module()
        m.submodules.processor = processor = self.processor
        for row, configs in enumerate(self.configs()):
            for index, config in enumerate(configs):
                segment = ConfigSegment(width_bits=self.width_bits, config_bits=len(config))
                m.submodules[f"segment_{row}_{index}"] = ResetInserter(processor.o_clear)(segment)
                m.d.comb += [
                    segment.i_begin.eq(processor.o_begin),
                    segment.i_write.eq(processor.o_row[row] & processor.o_segment[index]),
                    segment.i_word.eq(processor.o_word),
                    segment.i_data.eq(processor.o_data),
                    segment.i_load.eq(processor.o_load),
                    config.eq(segment.o_config),
                ]
        return m


class Bench:
    """One chip under test, its memory, and a log of what the fabric sees, as (cycle, what, ...)."""

    def __init__(self, *, width_bits=64, segments=SEGMENTS, units=2, **memory):
        self.simulator = Simulation(Chip, width_bits=width_bits, segments=segments, units=units)
        self.chip = self.simulator.design
        self.dut = self.chip.processor
        self.width_bits, self.segments = width_bits, segments
        self.memory = Memory(self.dut.memory, **memory)
        self.log = []
        self.cycle = 0
        #: What each run of the fabric does: (cycles, unit error or None).
        self.runs = []
        self.run_cycles = 20
        self.drain_cycles = 5

    def store(self, kernels, list_address=LIST, *, holding=()):
        """Put a launch list in memory: kernels are (image bytes, arguments, repeat).

        The entries of the numbers in ``holding`` hold the next one until their kernel has ended.
        """
        entries = []
        for number, (image, arguments, repeat) in enumerate(kernels):
            # Both straddle a multiple of 4 KiB if they are longer than the alignment.
            image_address = 0x10_1000 + number * 0xC000 - alignment_bytes(self.width_bits)
            argument_address = image_address + 0x8000
            self.memory.put(image_address, image[HEADER_BYTES:])
            table = pack_arguments([Argument(*each) for each in arguments])
            self.memory.put(argument_address, table)
            entries.append(
                LaunchEntry(
                    image_address=image_address,
                    image_bytes=len(image) - HEADER_BYTES,
                    header=image[:HEADER_BYTES],
                    argument_address=argument_address,
                    argument_count=len(arguments),
                    repeat=repeat,
                    hold_next=number in holding,
                )
            )
        self.memory.put(list_address, pack_list(entries, self.width_bits))
        return entries

    def entry_address(self, index):
        return LIST + index * alignment_bytes(self.width_bits)

    # The fabric.

    async def fabric(self, ctx):
        dut, ends, drains = self.dut, None, None
        error = None
        while True:
            ctx.set(dut.i_done, ends == self.cycle and error is None)
            ctx.set(dut.i_error, ends == self.cycle and error is not None)
            if error is not None:
                ctx.set(dut.i_error_code, error[0])
                ctx.set(dut.i_error_unit, error[1])
            ctx.set(dut.i_drained, drains is None or self.cycle >= drains)
            watched = (dut.o_clear, dut.o_load, dut.o_start, dut.o_stop)
            *_, clear, load, start, stop = await ctx.tick().sample(*watched)
            if clear:
                self.log.append((self.cycle, "clear"))
                ends = drains = None
            if load:
                self.log.append((self.cycle, "load"))
            if start:
                length, error = self.runs.pop(0) if self.runs else (self.run_cycles, None)
                ends = self.cycle + length
                drains = ends
                configs = [[ctx.get(each) for each in row] for row in self.chip.configs()]
                self.log.append((self.cycle, "start", configs, ctx.get(dut.o_repeat)))
            if stop and not (self.log and self.log[-1][1] == "stop"):
                self.log.append((self.cycle, "stop"))
                if drains is not None:
                    drains = self.cycle + self.drain_cycles
                ends = None
            self.cycle += 1

    async def arguments(self, ctx):
        dut = self.dut
        port = dut.o_argument
        async for *_, valid, index, value, stride in ctx.tick().sample(
            dut.o_argument_valid, port.index, port.value, port.stride
        ):
            if valid:
                self.log.append((self.cycle, "argument", index, value, stride))

    # The host.

    async def write(self, ctx, name, value, *, strobes=0xF, offset=None):
        """Write a register; the response, and the cycle of the write in `wrote`."""
        offset = register(name).offset if offset is None else offset

        def note():
            self.wrote = self.cycle

        port = self.dut.host
        return await write_word(ctx, port, offset, value, strobes=strobes, before_tick=note)

    async def read(self, ctx, name, *, offset=None):
        """Read a register: its value and the response."""
        offset = register(name).offset if offset is None else offset
        return await read_word(ctx, self.dut.host, offset)

    async def value(self, ctx, name):
        value, response = await self.read(ctx, name)
        assert response == 0, name
        return value

    async def begin(self, ctx, entries, address=LIST):
        """Write the launch registers and launch; the response of the launch."""
        await self.write(ctx, "LIST_ADDRESS_LO", address & 0xFFFF_FFFF)
        await self.write(ctx, "LIST_ADDRESS_HI", address >> 32)
        await self.write(ctx, "LIST_ENTRIES", entries)
        response = await self.write(ctx, "CONTROL", LAUNCH | INTERRUPT)
        self.launched = self.wrote
        return response

    async def end(self, ctx, limit=4000):
        """Wait for the interrupt; the value of STATUS."""
        for _ in range(limit):
            if ctx.get(self.dut.o_interrupt):
                return await self.value(ctx, "STATUS")
            await ctx.tick()
        raise AssertionError(f"no interrupt in {limit} cycles; log {self.log[-5:]}")

    async def idle(self, ctx, limit=1000):
        """Wait until nothing is under way."""
        for _ in range(limit):
            if not await self.value(ctx, "STATUS") & BUSY:
                return
        raise AssertionError("still busy")

    def run(self, story, *actors):
        """Simulate until the story (a coroutine of the context) ends; actors play beside it."""
        simulator = self.simulator
        simulator.add_testbench(self.memory.run, background=True)
        simulator.add_testbench(self.arguments, background=True)
        simulator.add_testbench(self.fabric, background=True)
        for actor in actors:
            simulator.add_testbench(actor, background=True)
        simulator.add_testbench(story)
        simulator.run()
        return self

    def events(self, *kinds):
        """The log's events of these kinds, without cycles."""
        return [event[1:] for event in self.log if event[1] in kinds]

    def when(self, kind):
        """Cycles of the events of a kind."""
        return [event[0] for event in self.log if event[1] == kind]


def random_program(rng, bits, width_bits):
    """A program whose words are partly, sometimes all, 0."""
    program = rng.getrandbits(bits)
    for word in range(ceil_div(bits, width_bits)):
        if rng.random() < 0.3:
            program &= ~((1 << width_bits) - 1 << word * width_bits)
    return program


def random_kernel(rng, *, width_bits, segments=SEGMENTS, arguments=None, fingerprint=FINGERPRINT):
    """(image bytes, arguments, repeat) and the configurations its rows should show."""
    configs = [[random_program(rng, each, width_bits) for each in bits] for bits in segments]
    programs = {
        (row, index): program
        for row, of_row in enumerate(configs)
        for index, program in enumerate(of_row)
    }
    count = rng.randint(0, 16) if arguments is None else arguments
    table = [(rng.getrandbits(64), rng.getrandbits(64) - (1 << 63)) for _ in range(count)]
    kernel = (
        Image(fingerprint, programs).pack(width_bits),
        table,
        rng.randint(1, 1 << 32) - 1 or 1,
    )
    return kernel, configs


def check_runs(bench, kernels, configs):
    """The fabric saw these kernels in order, each from reset, with its own arguments."""
    expected = []
    for (_, arguments, repeat), config in zip(kernels, configs):
        expected.append(("clear",))
        expected += [("argument", i, *each) for i, each in enumerate(arguments)]
        expected += [("load",), ("start", config, repeat)]
    assert bench.events("clear", "argument", "load", "start", "stop") == expected
    for load, start in zip(bench.when("load"), bench.when("start")):
        assert start == load + 1


async def recovers(bench, ctx):
    """With the error cleared, a good list runs."""
    assert await bench.begin(ctx, 1) == 2, "a launch in error is refused"
    assert await bench.value(ctx, "STATUS") == ERROR
    await bench.write(ctx, "STATUS", ERROR)
    assert await bench.value(ctx, "STATUS") == 0
    assert await bench.value(ctx, "ERROR") == 0
    bench.log.clear()
    assert await bench.begin(ctx, 1) == 0
    assert await bench.end(ctx) == DONE
