"""Tensor unit behind registers: chained layers by a host, a full queue, a fault and its reset."""

from collections.abc import Sequence
from typing import Any

import cocotb

from hw.arch.registers.tensor_registers import TENSOR_ID, TENSOR_REGISTERS, tensor_register
from hw.arch.tensor_instructions import Fault, Instruction, Opcode, pack
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.matrix.unit_config import UnitConfig
from hw.numeric.formats import int8
from hw.tpu.tensor_config import TensorConfig
from hw.tpu.tensor_top import TensorTop
from sim.cocotb.bench_support import Sink, Source, bench, clocks, random_generator, start
from sim.cocotb.lite_registers import LiteRegisters
from sim.cocotb.unit_choice import asked_unit
from sim.drivers.products import stream_values
from sim.drivers.tensor_unit_driver import payloads, vectors_for_host
from sim.drivers.tensor_unit_golden import TensorChain
from sim.native.bundle import Bundle

__all__ = [
    "a_fault_ends_at_a_reset",
    "a_full_queue_refuses",
    "chains_are_numpys",
    "design",
    "registers_keep_what_is_written",
]

_CHAINS = 3


def _config() -> TensorConfig:
    """The selected unit, or one with slots."""
    asked = asked_unit()
    if asked is not None:
        return TensorConfig(*asked)
    array = ArrayConfig(4, 3, Dataflow.WS, (int8,), 1)
    return TensorConfig(UnitConfig(array, accumulator_rows=16, out=int8), 96)


_CONFIG = _config()


def design() -> Bundle:
    """The unit under test, with the port prefix ``unit``."""
    return Bundle({"unit": TensorTop(_config())})


class _Host(LiteRegisters):
    """Instructions by the registers of the unit, which is reset."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut, "unit_host", tensor_register)

    @staticmethod
    async def started(dut: Any) -> "_Host":
        """Host of the unit, whose streams offer nothing yet."""
        host = _Host(dut)
        streams = {name for name in ("i_weight", "i_host", "i_bias") if _has(dut, name)}
        await start(dut, **{f"unit_{name}__valid": 0 for name in streams}, unit_o_host__ready=0)
        assert (await host.read("ID"))["value"] == TENSOR_ID
        return host

    async def submit(self, instruction: Instruction) -> bool:
        """Submit an instruction; whether the unit takes it."""
        for number, word in enumerate(pack([instruction])[0]):
            await self.write(f"INSTRUCTION_{number}", value=int(word))
        return await self.is_taken("SUBMIT", submit=1)

    async def run(self, instructions: Sequence[Instruction]) -> None:
        """Submit instructions as the queue has room."""
        for each in instructions:
            while not await self.submit(each):
                assert (await self.read("STATUS"))["fault"] == Fault.NONE.value


def _has(dut: Any, stream: str) -> bool:
    return hasattr(dut, f"unit_{stream}__valid")


@bench(limit_cycles=1_000_000)
async def chains_are_numpys(dut: Any) -> None:
    """Pauses on all streams; each chain interrupts once, when its last instruction has ended."""
    rng = random_generator()
    host = await _Host.started(dut)
    await host.write("INTERRUPT_ENABLE", done=1)
    submitted = 0
    for _ in range(_CHAINS):
        chain = TensorChain.random(rng, _CONFIG)
        sent = payloads(chain.program)
        stalls = rng.choice([0.0, 0.2, 0.5, 0.9], 3)
        # The host ends at a rising edge; streams begin at a falling one.
        await clocks(dut, 1)
        for (stream, words), stall in zip(sent.items(), [0.0, *stalls[:2]], strict=True):
            if stream != "i_instruction":
                source = Source(dut, f"unit_{stream}", stall=stall)
                cocotb.start_soon(source.send(stream_values(words)))
        sink = Sink(dut, "unit_o_host", stall=stalls[2])
        taking = cocotb.start_soon(sink.take(sum(vectors_for_host(chain.program))))
        await host.run(chain.program.instructions)
        chain.check(await taking)
        submitted += len(chain.program.instructions)
        assert (await host.read("SUBMITTED"))["value"] == submitted
        await host.until("STATUS", "idle")
        assert (await host.read("BEGUN"))["value"] == submitted
        assert int(dut.unit_o_interrupt.value)
        await host.write("INTERRUPT_STATUS", done=1)
        assert not int(dut.unit_o_interrupt.value)
        await clocks(dut, 1)
        await sink.expect_silence(40)


@bench(limit_cycles=100_000)
async def a_full_queue_refuses(dut: Any) -> None:
    """Reads of vectors that never come fill it; a reset empties it."""
    host = await _Host.started(dut)
    taken = 0
    while await host.submit(Instruction(Opcode.READ_HOST, 0, 1)):
        taken += 1
    status = await host.read("STATUS")
    assert (status["full"], status["idle"], status["fault"]) == (1, 0, Fault.NONE.value)
    assert (await host.read("SUBMITTED"))["value"] == taken
    await host.write("CONTROL", reset=1)
    assert (await host.read("STATUS"))["idle"] and await host.submit(Instruction(Opcode.CONFIGURE))


@bench(limit_cycles=100_000)
async def a_fault_ends_at_a_reset(dut: Any) -> None:
    """A refused instruction interrupts, and nothing is taken before the reset."""
    host = await _Host.started(dut)
    await host.write("INTERRUPT_ENABLE", fault=1)
    beyond = Instruction(Opcode.WRITE_HOST, _CONFIG.buffer_rows - 1, 2)
    assert await host.submit(beyond)
    while not int(dut.unit_o_interrupt.value):
        await clocks(dut, 1)
    assert (await host.read("STATUS"))["fault"] == Fault.ADDRESS.value
    assert not await host.submit(Instruction(Opcode.CONFIGURE))
    await host.write("CONTROL", reset=1)
    assert (await host.read("STATUS"))["fault"] == Fault.NONE.value
    assert await host.submit(Instruction(Opcode.CONFIGURE))


@bench(limit_cycles=100_000)
async def registers_keep_what_is_written(dut: Any) -> None:
    """Every register of the map answers; those of plain fields keep what is written."""
    host = await _Host.started(dut)
    await host.require_map(TENSOR_REGISTERS, random_generator())
