"""A TMA engine with its memory and its fabric side, for Amaranth's simulator."""

import random

from amaranth.hdl import Elaboratable, Module, ResetInserter, Signal

from hw.arch.descriptor import TmaFeature
from hw.tma.commands import BOX_UNITS_BITS
from hw.tma.engine import TmaEngine
from tests.hw.lib.checked_port import CheckedPort
from tests.hw.reused_simulator import Simulation
from tests.hw.tma.memory import AxiMemory
from tests.hw.tma.model import as_vectors, packed_command, write_descriptor

__all__ = ["Bench"]

DESCRIPTORS = 8


class _Resettable(Elaboratable):
    """An engine with a checker at its port, both with a reset."""

    def __init__(self, outstanding, **sizes):
        self.engine = TmaEngine(
            address_bits=32, outstanding=outstanding, descriptors=DESCRIPTORS, **sizes
        )
        self.outstanding = outstanding
        self.reset = Signal()

    def elaborate(self, platform):
        m = Module()
        checked = CheckedPort(self.engine, self.engine.axi, outstanding=self.outstanding)
        m.submodules.checked = ResetInserter(self.reset)(checked)
        return m


class Bench:
    """An engine, its memory and what came out; actors are added by the tests."""

    def __init__(
        self,
        data,
        *,
        seed=0,
        width_bits=64,
        landing_beats=64,
        outstanding=16,
        read_ids=1,
        features=(),
        **memory,
    ):
        self.simulator = Simulation(
            _Resettable,
            outstanding,
            width_bits=width_bits,
            landing_beats=landing_beats,
            read_ids=read_ids,
            features=features,
        )
        self.engine = self.simulator.design.engine
        self.width_bits = width_bits
        self.reset = self.simulator.design.reset
        self.rng = random.Random(seed)
        self.memory = AxiMemory(self.engine.axi, data, self.rng, **memory)
        self.loaded = [[], []]
        self.loaded_when = [[], []]
        self.stored = [0, 0]
        self.stall = 0.0
        self.simulator.add_testbench(self.memory.run, background=True)
        self.simulator.add_testbench(self._watch_stored, background=True)
        for number in range(2):
            self.simulator.add_testbench(self._taker(number), background=True)
        self.reports = {"load": [], "store": []}
        self.reports_boxes = TmaFeature.PARALLEL_BOXES in features
        if self.reports_boxes:
            for side in self.reports:
                self.simulator.add_testbench(self._reported(side), background=True)

    def run(self, *actors):
        for actor in actors:
            self.simulator.add_testbench(actor)
        self.simulator.run()
        assert self.memory.refused_read_data == 0

    async def _watch_stored(self, ctx):
        async for _, _, stored in ctx.tick().sample(self.engine.o_stored):
            for number in range(2):
                self.stored[number] += stored >> number & 1

    def _taker(self, number):
        port = self.engine.o_loaded[number]

        async def take(ctx):
            while True:
                ready = self.stall == 0.0 or self.rng.random() >= self.stall
                ctx.set(port.ready, ready)
                moves, payload = (await ctx.tick().sample(port.valid, port.payload))[2:]
                if moves and ready:
                    self.loaded[number].append((int(payload.data), int(payload.last)))
                    self.loaded_when[number].append(self.memory.cycle)

        return take

    def _reported(self, side):
        port = getattr(self.engine, f"o_{side}_reports")

        async def take(ctx):
            ctx.set(port.ready, 1)
            async for _, _, valid, report in ctx.tick().sample(port.valid, port.payload):
                if valid:
                    self.reports[side].append(
                        (int(report.code), int(report.swizzle), int(report.units))
                    )

        return take

    async def describe(self, ctx, index, descriptor):
        await write_descriptor(ctx, self.engine.i_descriptor_write, index, descriptor.pack())

    async def command(self, ctx, port, index, coordinates, **place):
        """Give a command; with reports its box may have any size unless ``place`` says less."""
        command = packed_command(index, coordinates)
        if self.reports_boxes:
            command |= {"most_units": (1 << BOX_UNITS_BITS) - 1, "aligned": 1} | place
        ctx.set(port.payload, command)
        ctx.set(port.valid, 1)
        await ctx.tick().until(port.ready)
        ctx.set(port.valid, 0)

    async def put(self, ctx, number, box):
        port = self.engine.i_vectors[number]
        for word, last in as_vectors(box, self.width_bits):
            while self.rng.random() < self.stall:
                await ctx.tick()
            ctx.set(port.payload, {"data": word, "last": last, "final": 0})
            ctx.set(port.valid, 1)
            await ctx.tick().until(port.ready)
            ctx.set(port.valid, 0)

    async def wait(self, ctx, done, limit=20_000):
        for _ in range(limit):
            if done():
                return
            await ctx.tick()
        raise AssertionError(f"hang: loaded {list(map(len, self.loaded))}, stored {self.stored}")
