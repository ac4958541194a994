"""Tensor units: chained layers without host transfers, stalls, a refused instruction."""

from typing import Any

import cocotb
import numpy as np
import numpy.typing as npt

from hw.arch.tensor_instructions import Fault, Instruction, Opcode, pack
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.matrix.unit_config import UnitConfig
from hw.numeric.division import ceil_div
from hw.numeric.formats import bf16, int8
from hw.tpu.sequencer import STATUS
from hw.tpu.tensor_config import TensorConfig
from hw.tpu.unit import TensorUnit
from sim.cocotb.bench_support import Sink, Source, bench, clocks, random_generator, start
from sim.cocotb.unit_choice import asked_unit
from sim.drivers.tensor_unit_driver import host_vectors, payloads, vectors_for_host
from sim.drivers.tensor_unit_golden import layer_results, tensor_operands
from sim.native.bundle import Bundle
from sw.tensor_program import Layer, mlp_program, mlp_results

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


def _integers(words: npt.NDArray[np.uint32]) -> list[int]:
    return [int.from_bytes(payload.tobytes(), "little") for payload in words]


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
    width = config.unit.array.columns + config.sizes.elements
    for _ in range(_CHAINS):
        rows, *extents = (int(extent) for extent in rng.integers(1, (25, *[2 * width] * 4)))
        layers = [
            Layer(
                tensor_operands(rng, (k, n), config),
                relu=bool(rng.integers(2)),
                scale=int(rng.integers(1, 1 << 16)),
                shift=int(rng.integers(20, 26)),
            )
            for k, n in zip(extents[:-1], extents[1:], strict=True)
        ]
        activations = tensor_operands(rng, (rows, extents[0]), config)
        program = mlp_program(config.sizes, activations, layers)
        sent = payloads(program)
        stalls = rng.choice([0.0, 0.2, 0.5, 0.9], 4)
        sources = [
            (Source(dut, f"{name}_{stream}", stall=stall), words)
            for (stream, words), stall in zip(sent.items(), stalls, strict=False)
        ]
        sink = Sink(dut, f"{name}_o_host", stall=stalls[3])
        await _start(dut)
        sending = [cocotb.start_soon(source.send(_integers(words))) for source, words in sources]
        counts = vectors_for_host(program)
        taken = await sink.take(sum(counts))
        for task in sending:
            await task
        await sink.expect_silence(40)
        size = ceil_div(config.vector_bits + 1, 32) * 4
        data = b"".join(payload.to_bytes(size, "little") for payload in taken)
        vectors = np.frombuffer(data, np.uint32).reshape(-1, size // 4)
        results = mlp_results(config.sizes, host_vectors(config, vectors, counts), layers, rows)
        expected = layer_results(config, activations, layers)
        assert results.tobytes() == expected.tobytes(), f"{rows} rows, {extents}, pauses {stalls}"


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
    cocotb.start_soon(source.send(_integers(pack(program))))
    cocotb.start_soon(host.send([1]))
    assert await sink.take(1) == [1 | 1 << config.vector_bits]
    await sink.expect_silence(40)
    await clocks(dut, 1)
    status: Any = STATUS.from_bits(int(getattr(dut, f"{name}_status").value))
    assert (status.fault, status.begun) == (Fault.ADDRESS, 2)
