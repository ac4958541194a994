"""A stand-alone TMA unit with its memory, for Amaranth's simulator, and swizzled addresses."""

import random

import numpy as np

from hw.arch.descriptor import DESCRIPTOR_BYTES, Swizzle
from hw.arch.tma_sizes import TmaSizes
from hw.tma.scratchpads.local_memory import users_of
from hw.tma.standalone.axi_attributes import DEFAULT_ATTRIBUTES
from hw.tma.standalone.tma_unit import TmaUnit
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.lib.checked_port import CheckedPort
from tests.hw.reused_simulator import Simulation
from tests.hw.tma.bank_bench import fields_of, offer
from tests.hw.tma.memory import AxiMemory

__all__ = ["UnitBench", "place_of", "swizzled_places"]

#: Cycles after which what has not happened is taken for lost.
_PATIENCE = 30_000


def swizzled_places(local, size, swizzle):
    """Scratchpad address of each byte of a dense box from address ``local`` on."""
    places = np.arange(local, local + size)
    exchange = (places >> 7) & ((1 << swizzle.value) - 1)
    return places ^ (exchange << 4)


def place_of(descriptor, capacity, width_bits):
    """Step of the addresses at which a box may begin, and the greatest one, below 0 if none."""
    step = width_bits // 8 if descriptor.swizzle is Swizzle.NONE else 128
    return step, (capacity - descriptor.box_bytes) // step * step


def _checked_unit(sizes, attributes, reduces):
    unit = TmaUnit(sizes, attributes=attributes, reduces=reduces)
    return CheckedPort(unit, unit.axi, outstanding=sizes.outstanding + 1)


class UnitBench:
    """A unit, its memory and its completions; actors are added by the tests."""

    def __init__(
        self,
        data,
        *,
        seed=0,
        width_bits=64,
        capacity=4096,
        entries=4,
        read_ids=1,
        landing_beats=64,
        outstanding=16,
        scratchpads=1,
        attributes=DEFAULT_ATTRIBUTES,
        reduces=False,
        **memory,
    ):
        sizes = TmaSizes(
            width_bits=width_bits,
            address_bits=32,
            landing_beats=landing_beats,
            outstanding=outstanding,
            read_ids=read_ids,
            descriptors=entries,
            barriers=8,
            scratchpad_bytes=capacity,
            scratchpads=scratchpads,
        )
        self.simulator = Simulation(_checked_unit, sizes, attributes, reduces)
        self.unit = self.simulator.design.design
        self.users = users_of(self.unit)
        self.width_bits = width_bits
        self.capacity = capacity
        self.beat = width_bits // 8
        self.rng = random.Random(seed)
        self.data = data
        self.memory = AxiMemory(self.unit.axi, data, self.rng, **memory)
        self.completions = []
        self.stall = 0.0
        self.simulator.add_testbench(self.memory.run, background=True)
        self.simulator.add_testbench(self._complete, background=True)
        self.grants = True
        if reduces:
            self.simulator.add_testbench(self._grant, background=True)

    def run(self, *actors):
        for actor in actors:
            self.simulator.add_testbench(actor)
        self.simulator.run()

    def describe(self, address, descriptor):
        """Put a descriptor, or its bytes, into memory."""
        packed = descriptor if isinstance(descriptor, bytes) else descriptor.pack()
        self.data[address : address + DESCRIPTOR_BYTES] = np.frombuffer(packed, np.uint8)

    async def _complete(self, ctx):
        port = self.unit.o_completions
        while True:
            ready = self.stall == 0.0 or self.rng.random() >= self.stall
            ctx.set(port.ready, ready)
            *_, valid, payload = await ctx.tick().sample(port.valid, port.payload)
            if valid and ready:
                self.completions.append((int(payload.id), int(payload.code)))

    async def _grant(self, ctx):
        """As the only unit at its interlock, while it grants at all."""
        port = self.unit.interlock
        while True:
            asks = ctx.get(port.asks)
            await ctx.tick()
            ctx.set(port.granted, asks and self.grants)

    async def command(self, ctx, operation, descriptor=0, coordinates=(), *, id, **fields):
        """Give a command."""
        port = self.unit.i_commands
        whole = {"local": 0, "barrier": 0, "signals": 0, "offsets": 0, "reduction": 0}
        if len(self.users) > 1:
            whole |= {"destinations": 1, "source": 0}
        whole |= fields
        whole |= {"descriptor": descriptor, "id": id}
        whole["coordinates"] = [*coordinates, *[0] * (5 - len(coordinates))]
        code = operation.value if isinstance(operation, TmaOperation) else operation
        for name, value in whole.items():
            ctx.set(port.payload[name], value)
        ctx.set(port.payload.operation.as_value(), code)
        ctx.set(port.valid, 1)
        await ctx.tick().until(port.ready)
        ctx.set(port.valid, 0)

    async def completed(self, ctx, count):
        """Wait until so many commands have completed."""
        for _ in range(_PATIENCE):
            if len(self.completions) >= count:
                return
            await ctx.tick()
        raise AssertionError(f"{len(self.completions)} of {count} commands completed")

    async def abort(self, ctx):
        """Abort, and wait until the unit takes commands again."""
        ctx.set(self.unit.i_abort, 1)
        await ctx.tick()
        ctx.set(self.unit.i_abort, 0)
        for _ in range(_PATIENCE):
            if ctx.get(self.unit.o_reset):
                assert self.memory.quiet
            if not ctx.get(self.unit.o_aborting):
                return
            await ctx.tick()
        raise AssertionError("the abort did not end")

    async def operate(self, ctx, operation, barrier, *, pad=0, home=None, **fields):
        """Apply an operation at a barrier of a scratchpad, and return its answer.

        It is that of the user of ``home``, or else of the same scratchpad.
        """
        user = self.users[pad if home is None else home]
        port, answer = user.i_operations[0], user.o_answers[0]
        whole = {"operation": operation.value, "barrier": barrier, "arrivals": 0, "bytes": 0}
        if len(self.users) > 1:
            whole["scratchpad"] = pad
        offer(ctx, port, whole | {"failed": 0} | fields)
        await ctx.tick().until(port.ready)
        ctx.set(port.valid, 0)
        assert ctx.get(answer.valid)
        return fields_of(ctx, answer.payload, ("phase", "pending", "tx", "flag", "error"))

    async def fill(self, ctx, start, content, *, pad=0):
        """Write bytes into a scratchpad."""
        port = self.users[pad].i_writes
        for at in range(0, len(content), self.beat):
            word = int.from_bytes(content[at : at + self.beat].tobytes(), "little")
            ctx.set(port.payload.vector, (start + at) // self.beat)
            ctx.set(port.payload.data, word)
            ctx.set(port.payload.strobe, (1 << self.beat) - 1)
            ctx.set(port.valid, 1)
            await ctx.tick()
        ctx.set(port.valid, 0)

    async def content(self, ctx, *, pad=0):
        """All bytes of a scratchpad."""
        port, answer = self.users[pad].i_reads, self.users[pad].o_data
        words = []
        ctx.set(port.valid, 1)
        for number in range(self.capacity // self.beat):
            ctx.set(port.payload, number)
            await ctx.tick()
            assert ctx.get(answer.valid)
            words.append(int(ctx.get(answer.data)).to_bytes(self.beat, "little"))
        ctx.set(port.valid, 0)
        return np.frombuffer(b"".join(words), np.uint8)
