"""A TMA unit with registers, its memory and its host, for Amaranth's simulator."""

import random

import numpy as np

from hw.arch.descriptor import DESCRIPTOR_BYTES
from hw.arch.registers.tma_registers import tma_register
from hw.arch.tma_sizes import TmaSizes
from hw.tma.host_port.tma_top import TmaTop
from hw.tma.scratchpads.local_memory import users_of
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.lib.checked_port import CheckedPort
from tests.hw.lib.register_host import read_word, write_word
from tests.hw.reused_simulator import Simulation
from tests.hw.tma.memory import AxiMemory

__all__ = ["OKAY", "SLVERR", "TopBench"]

OKAY, SLVERR = 0, 2
_OUTSTANDING = 16
#: Reads of a register after which what has not happened is taken for lost.
_PATIENCE = 10_000


def _checked_top(sizes, commands, reduces):
    top = TmaTop(sizes, commands=commands, reduces=reduces)
    return CheckedPort(top, top.axi, outstanding=_OUTSTANDING + 1)


class TopBench:
    """A unit behind registers; actors of the host and of the accelerator are the tests'."""

    def __init__(
        self,
        data,
        *,
        seed=0,
        width_bits=64,
        capacity=4096,
        commands=8,
        pads=1,
        barriers=8,
        reduces=False,
        **memory,
    ):
        sizes = TmaSizes(
            width_bits=width_bits,
            address_bits=32,
            landing_beats=64,
            outstanding=_OUTSTANDING,
            descriptors=4,
            barriers=barriers,
            scratchpad_bytes=capacity,
            scratchpads=pads,
        )
        self.simulator = Simulation(_checked_top, sizes, commands, reduces)
        self.top = self.simulator.design.design
        self.rng = random.Random(seed)
        self.data = data
        self.capacity = capacity
        self.beat = width_bits // 8
        self.memory = AxiMemory(self.top.axi, data, self.rng, **memory)
        self.simulator.add_testbench(self.memory.run, background=True)

    def run(self, *actors):
        for actor in actors:
            self.simulator.add_testbench(actor)
        self.simulator.run()

    def describe(self, address, descriptor):
        """Put a descriptor into memory."""
        self.data[address : address + DESCRIPTOR_BYTES] = np.frombuffer(descriptor.pack(), np.uint8)

    async def write(self, ctx, name, value=0, **fields):
        """Write a register, given as a word or by fields; return the response."""
        each = tma_register(name)
        return await write_word(ctx, self.top.host, each.offset, value | each.word(**fields))

    async def read(self, ctx, name):
        """Value of a register."""
        value, response = await read_word(ctx, self.top.host, tma_register(name).offset)
        assert response == OKAY
        return value

    async def fields(self, ctx, name):
        """Value of a register by fields."""
        return tma_register(name).values(await self.read(ctx, name))

    async def submit(
        self, ctx, operation, descriptor=0, coordinates=(), *, id, local=0, barrier=None
    ):
        """Give a command; return the response to it."""
        await self.write(ctx, "DESCRIPTOR_LO", descriptor & 0xFFFF_FFFF)
        await self.write(ctx, "DESCRIPTOR_HI", descriptor >> 32)
        for number, coordinate in enumerate([*coordinates, *[0] * (5 - len(coordinates))]):
            await self.write(ctx, f"COORDINATE_{number}", coordinate & 0xFFFF_FFFF)
        await self.write(ctx, "LOCAL", local)
        await self.write(ctx, "SIGNAL", signals=barrier is not None, barrier=barrier or 0)
        code = operation.value if isinstance(operation, TmaOperation) else operation
        return await self.write(ctx, "SUBMIT", operation=code, id=id)

    async def completion(self, ctx):
        """Wait for a completion; return its identifier and code."""
        for _ in range(_PATIENCE):
            found = await self.fields(ctx, "COMPLETION")
            if found["valid"]:
                return found["id"], found["code"]
        raise AssertionError("no command completed")

    async def until(self, ctx, name, field, value=1):
        """Wait until a field of a register has a value; return the register by fields."""
        for _ in range(_PATIENCE):
            found = await self.fields(ctx, name)
            if found[field] == value:
                return found
        raise AssertionError(f"{name}.{field} never is {value}")

    async def operate(self, ctx, operation, barrier, *, arrivals=0, bytes=0, pad=0):
        """Apply an operation at a barrier of a scratchpad; return the answer's fields."""
        await self.write(ctx, "BARRIER_ARRIVALS", arrivals)
        await self.write(ctx, "BARRIER_BYTES", bytes)
        where = {"barrier": barrier, "scratchpad": pad}
        await self.write(ctx, "BARRIER_OPERATION", operation=operation.value, **where)
        return await self.until(ctx, "BARRIER_ANSWER", "valid")

    async def content(self, ctx, *, pad=0):
        """All bytes of a scratchpad."""
        user = users_of(self.top)[pad]
        port, answer = user.i_reads, user.o_data
        words = []
        ctx.set(port.valid, 1)
        for number in range(self.capacity // self.beat):
            ctx.set(port.payload, number)
            await ctx.tick()
            assert ctx.get(answer.valid)
            words.append(int(ctx.get(answer.data)).to_bytes(self.beat, "little"))
        ctx.set(port.valid, 0)
        return np.frombuffer(b"".join(words), np.uint8)
