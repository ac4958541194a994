"""Tensor units: chained layers without host transfers, stalls, a refused instruction."""

from typing import Any

import cocotb

from hw.arch.tensor_instructions import Fault, Instruction, Opcode, pack
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.matrix.unit_config import UnitConfig
from hw.numeric.formats import bf16, int8
from hw.tpu.sequencer import STATUS
from hw.tpu.tensor_config import TensorConfig
from hw.tpu.unit import TensorUnit
from sim.cocotb.bench_support import Sink, Source, bench, clocks, random_generator, start
from sim.cocotb.unit_choice import asked_unit
from sim.drivers.products import stream_values
from sim.drivers.tensor_unit_driver import payloads, vectors_for_host
from sim.drivers.tensor_unit_golden import TensorChain
from sim.native.bundle import Bundle

__all__ = ["a_refused_instruction_stops_the_unit", "chained_layers_are_numpys", "design"]

_CHAINS = 3


def _units() -> dict[str, TensorConfig]:
    """Units under test: the selected one, or one with slots and one with parts."""
    asked = asked_unit()
    if asked is not None:
        return {"unit": TensorConfig(*asked)}
    sizes = {"slots": (4, 3, int8, 96), "parts": (3, 7, bf16, 200)}
    return {
        name: TensorConfig(
            UnitConfig(
                ArrayConfig(rows, columns, Dataflow.WS, (fmt,), 1), accumulator_rows=16, out=fmt
            ),
            vectors,
        )
        for name, (rows, columns, fmt, vectors) in sizes.items()
    }


_UNITS = _units()


def design() -> Bundle:
    """The units under test, with names as port prefixes."""
    return Bundle({name: TensorUnit(config) for name, config in _units().items()})


async def _start(dut: Any) -> None:
    streams = ("i_instruction", "i_weight", "i_host")
    offers = {f"{name}_{stream}__valid": 0 for name in _UNITS for stream in streams}
    await start(dut, **offers)


@bench(limit_cycles=500_000)
@cocotb.parametrize(name=list(_UNITS))
async def chained_layers_are_numpys(dut: Any, name: str) -> None:
    """Ragged extents; intermediate results stay in the unit; stalls on all streams."""
    rng = random_generator()
    config = _UNITS[name]
    for _ in range(_CHAINS):
        chain = TensorChain.random(rng, config)
        sent = payloads(chain.program)
        stalls = rng.choice([0.0, 0.2, 0.5, 0.9], 4)
        sources = [
            (Source(dut, f"{name}_{stream}", stall=stall), words)
            for (stream, words), stall in zip(sent.items(), stalls, strict=False)
        ]
        sink = Sink(dut, f"{name}_o_host", stall=stalls[3])
        await _start(dut)
        sending = [
            cocotb.start_soon(source.send(stream_values(words))) for source, words in sources
        ]
        taken = await sink.take(sum(vectors_for_host(chain.program)))
        for task in sending:
            await task
        await sink.expect_silence(40)
        chain.check(taken)


@bench(limit_cycles=10_000)
@cocotb.parametrize(name=list(_UNITS))
async def a_refused_instruction_stops_the_unit(dut: Any, name: str) -> None:
    """Instructions before the refused one complete; it and later ones do not execute."""
    config = _UNITS[name]
    source = Source(dut, f"{name}_i_instruction")
    host = Source(dut, f"{name}_i_host")
    sink = Sink(dut, f"{name}_o_host")
    await _start(dut)
    program = [
        Instruction(Opcode.READ_HOST, 0, 1),
        Instruction(Opcode.WRITE_HOST, 0, 1),
        Instruction(Opcode.WRITE_HOST, config.buffer_rows - 1, 2),
        Instruction(Opcode.WRITE_HOST, 0, 1),
    ]
    cocotb.start_soon(source.send(stream_values(pack(program))))
    cocotb.start_soon(host.send([1]))
    assert await sink.take(1) == [1 | 1 << config.vector_bits]
    await sink.expect_silence(40)
    await clocks(dut, 1)
    status: Any = STATUS.from_bits(int(getattr(dut, f"{name}_status").value))
    assert (status.fault, status.begun) == (Fault.ADDRESS, 2)
