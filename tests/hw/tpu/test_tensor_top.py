"""Tensor units behind registers: a host runs programs, is interrupted, and resets a fault."""

import random

import numpy as np
import pytest
from amaranth.hdl import Value
from amaranth.sim import Simulator

from hw.arch.registers.tensor_registers import TENSOR_ID, TENSOR_REGISTERS, tensor_register
from hw.arch.tensor_instructions import Fault, Instruction, Opcode, pack
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.matrix.unit_config import UnitConfig
from hw.numeric.formats import int8
from hw.tpu.tensor_config import TensorConfig
from hw.tpu.tensor_top import TensorTop
from sim.drivers.tensor_unit_driver import payloads
from tests.hw.lib.register_host import read_word, write_word
from tests.hw.tpu.model import TensorModel
from tests.hw.tpu.tensors import random_program

OKAY, SLVERR = 0, 2
CONFIG = TensorConfig(
    UnitConfig(ArrayConfig(2, 3, Dataflow.WS, (int8,), 1), accumulator_rows=16, out=int8), 64
)
HOST_VECTOR_BYTES = CONFIG.vector_bits // 8
PATIENCE = 5_000


class Host:
    """A host that runs instructions by registers, and sources and a sink of the streams."""

    def __init__(self, seed, *, instructions=4):
        self.top = TensorTop(CONFIG, instructions=instructions)
        self.rng = random.Random(seed)
        self.taken = []
        self.simulator = Simulator(self.top)
        self.simulator.add_clock(1e-6)
        self.simulator.add_testbench(self._sink, background=True)

    def feed(self, name, words):
        """Send payloads on a stream, with pauses."""
        stream = getattr(self.top, name)
        values = [int.from_bytes(each.tobytes(), "little") for each in words]

        async def source(ctx):
            for value in values:
                while self.rng.random() < 0.3:
                    await ctx.tick()
                ctx.set(Value.cast(stream.payload), value)
                ctx.set(stream.valid, 1)
                await ctx.tick().until(stream.ready)
                ctx.set(stream.valid, 0)

        self.simulator.add_testbench(source, background=True)

    async def _sink(self, ctx):
        port = self.top.o_host
        while True:
            ctx.set(port.ready, self.rng.random() < 0.7)
            _, _, valid, ready, payload = await ctx.tick().sample(
                port.valid, port.ready, port.payload.data
            )
            if valid and ready:
                self.taken.append(payload)

    def run(self, actor):
        self.simulator.add_testbench(actor)
        self.simulator.run()

    async def write(self, ctx, name, value=0, **fields):
        each = tensor_register(name)
        return await write_word(ctx, self.top.host, each.offset, value | each.word(**fields))

    async def fields(self, ctx, name):
        value, response = await read_word(ctx, self.top.host, tensor_register(name).offset)
        assert response == OKAY
        return tensor_register(name).values(value)

    async def submit(self, ctx, instruction):
        """Submit an instruction; return the response."""
        for number, word in enumerate(pack([instruction])[0]):
            await self.write(ctx, f"INSTRUCTION_{number}", int(word))
        return await self.write(ctx, "SUBMIT", submit=1)

    async def until(self, ctx, name, **wanted):
        for _ in range(PATIENCE):
            found = await self.fields(ctx, name)
            if wanted.items() <= found.items():
                return found
        raise AssertionError(f"{name} never has {wanted}, but {found}")


def test_the_map_says_what_the_unit_is():
    offsets = [each.offset for each in TENSOR_REGISTERS]
    assert offsets == sorted(set(offsets))
    host = Host(0)

    async def actor(ctx):
        assert (await host.fields(ctx, "ID"))["value"] == TENSOR_ID
        assert await host.fields(ctx, "GEOMETRY") == {"rows": 2, "columns": 3}
        assert await host.fields(ctx, "BUFFER") == {"value": 64}
        assert await host.fields(ctx, "ACCUMULATORS") == {"value": 16}
        assert await host.fields(ctx, "STATUS") == {"fault": 0, "idle": 1, "full": 0}
        for each in TENSOR_REGISTERS:
            assert (await read_word(ctx, host.top.host, each.offset))[1] == OKAY
            if not each.writable:
                assert await write_word(ctx, host.top.host, each.offset, 1) == SLVERR
        beyond = TENSOR_REGISTERS[-1].offset + 4
        assert (await read_word(ctx, host.top.host, beyond))[1] == SLVERR
        assert await write_word(ctx, host.top.host, beyond, 0) == SLVERR

    host.run(actor)


@pytest.mark.parametrize("index", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_random_programs_by_registers_equal_the_model(index, seed):
    """The host submits whenever there is room; `done` comes once, when all has ended."""
    program = random_program(np.random.default_rng([seed, index]), CONFIG, 6)
    expected = TensorModel(CONFIG).run(
        program.instructions, host=program.host, weights=program.weights
    )
    host = Host(seed)
    sent = payloads(program)
    host.feed("i_weight", sent["i_weight"])
    host.feed("i_host", sent["i_host"])

    async def actor(ctx):
        await host.write(ctx, "INTERRUPT_ENABLE", done=1)
        for instruction in program.instructions:
            while await host.submit(ctx, instruction) == SLVERR:
                assert (await host.fields(ctx, "STATUS"))["fault"] == 0
        await host.until(ctx, "STATUS", idle=1)
        assert ctx.get(host.top.o_interrupt) == 1
        assert await host.fields(ctx, "INTERRUPT_STATUS") == {"done": 1, "fault": 0}
        await host.write(ctx, "INTERRUPT_STATUS", done=1)
        assert ctx.get(host.top.o_interrupt) == 0
        count = len(program.instructions)
        assert (await host.fields(ctx, "SUBMITTED"))["value"] == count
        assert (await host.fields(ctx, "BEGUN"))["value"] == count
        multiplied = sum(
            each.rows for each in program.instructions if each.opcode == Opcode.MULTIPLY
        )
        assert (await host.fields(ctx, "ACTIVE"))["value"] == multiplied
        assert (await host.fields(ctx, "INTERRUPT_STATUS"))["done"] == 0

    host.run(actor)
    data = b"".join(each.to_bytes(HOST_VECTOR_BYTES, "little") for each in host.taken)
    assert data == expected.tobytes()


@pytest.mark.slow
def test_a_full_queue_refuses_and_a_reset_empties_it():
    host = Host(1)

    async def actor(ctx):
        # No vector comes: the first read never ends, and those behind it wait.
        reads = Instruction(Opcode.READ_HOST, 0, 2)
        refused = 0
        while refused == 0:
            refused = await host.submit(ctx, reads)
        assert refused == SLVERR
        count = (await host.fields(ctx, "SUBMITTED"))["value"]
        assert (await host.fields(ctx, "STATUS"))["full"] == 1
        assert (await host.fields(ctx, "BEGUN"))["value"] == 1 < count
        await host.write(ctx, "CONTROL", reset=1)
        assert await host.fields(ctx, "STATUS") == {"fault": 0, "idle": 1, "full": 0}
        assert (await host.fields(ctx, "SUBMITTED"))["value"] == 0
        assert (await host.fields(ctx, "INTERRUPT_STATUS"))["done"] == 0
        assert await host.submit(ctx, Instruction(Opcode.CONFIGURE, scale=1)) == OKAY
        await host.until(ctx, "INTERRUPT_STATUS", done=1)

    host.run(actor)


def test_a_fault_interrupts_once_and_refuses_more_until_a_reset():
    host = Host(2)

    async def actor(ctx):
        await host.write(ctx, "INTERRUPT_ENABLE", fault=1)
        await host.submit(ctx, Instruction(Opcode.CONFIGURE, scale=1))
        await host.submit(ctx, Instruction(Opcode.WRITE_HOST, 63, 2))
        found = await host.until(ctx, "INTERRUPT_STATUS", fault=1)
        assert ctx.get(host.top.o_interrupt) == 1 and found["fault"] == 1
        status = await host.fields(ctx, "STATUS")
        assert (status["fault"], status["idle"]) == (Fault.ADDRESS, 0)
        assert (await host.fields(ctx, "BEGUN"))["value"] == 1
        assert await host.submit(ctx, Instruction(Opcode.CONFIGURE, scale=1)) == SLVERR
        await host.write(ctx, "INTERRUPT_STATUS", fault=1)
        assert ctx.get(host.top.o_interrupt) == 0
        await host.write(ctx, "CONTROL", reset=1)
        assert await host.submit(ctx, Instruction(Opcode.CONFIGURE, scale=1)) == OKAY
        await host.until(ctx, "STATUS", idle=1, fault=0)
        assert (await host.fields(ctx, "INTERRUPT_STATUS"))["fault"] == 0

    host.run(actor)
