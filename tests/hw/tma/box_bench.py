"""A load or a store engine with its descriptor file and its memory, for Amaranth's simulator."""

from amaranth.hdl import Elaboratable, Module

from hw.arch.descriptor import Descriptor, ElementFormat
from hw.tma.descriptor_file import DescriptorFile
from tests.hw.lib.checked_port import CheckedPort
from tests.hw.reused_simulator import Simulation
from tests.hw.tma.memory import AxiMemory
from tests.hw.tma.model import packed_command, write_descriptor

__all__ = ["DESCRIPTORS", "LONG", "BoxBench"]

DESCRIPTORS = 4

#: A box of 1,024 beats of 64 bits.
LONG = Descriptor(
    base=0x1000, format=ElementFormat.FP32, dims=(256, 8), strides=(1024,), box=(256, 8)
)


class _Stand(Elaboratable):
    """An engine with its descriptors."""

    def __init__(self, make, sizes):
        self.engine = make(descriptors=DESCRIPTORS, **sizes)
        self.file = DescriptorFile(descriptors=DESCRIPTORS, readers=1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.engine = engine = self.engine
        m.submodules.file = file = self.file
        m.d.comb += [
            file.i_index[0].eq(engine.o_index[0]),
            file.i_read[0].eq(engine.o_read[0]),
            engine.i_descriptor[0].eq(file.o_descriptor[0]),
            engine.i_stride[0].eq(file.o_stride[0]),
        ]
        return m


def _checked_engine(make, outstanding, **sizes):
    stand = _Stand(make, {"outstanding": outstanding} | sizes)
    return CheckedPort(stand, stand.engine.axi, outstanding=outstanding)


class BoxBench:
    """An engine of `DESCRIPTORS` descriptors; actors are added by the tests.

    ``make`` is its class, ``outstanding``, ``layouts`` and ``sizes`` are its parameters.
    """

    def __init__(self, make, layouts, data, rng, *, outstanding=16, sizes=None, **memory):
        self.simulator = Simulation(
            _checked_engine, make, outstanding, layouts=layouts, **(sizes or {})
        )
        stand = self.simulator.design.design
        self.engine, self.file = stand.engine, stand.file
        self.memory = AxiMemory(self.engine.axi, data, rng, **memory)

    async def describe(self, ctx, index, packed):
        await write_descriptor(ctx, self.file.i_write, index, packed)

    async def command(self, ctx, index, coordinates, owner):
        port = self.engine.i_stream
        ctx.set(port.payload.command, packed_command(index, coordinates))
        ctx.set(port.payload.stream, owner)
        ctx.set(port.valid, 1)
        await ctx.tick().until(port.ready)
        ctx.set(port.valid, 0)

    def run(self, actor, *background):
        """Run to the end of the actor."""
        for each in (self.memory.run, *background):
            self.simulator.add_testbench(each, background=True)
        self.simulator.add_testbench(actor)
        self.simulator.run()
