"""Stand-alone matrix units of all three dataflows: random products, equal to numpy by bytes."""

from typing import Any

import cocotb
import numpy as np
import numpy.typing as npt

from hw.numeric import reference
from hw.numeric.formats import Format, bf16, int8
from hw.systolic.dataflow import ArrayConfig, Dataflow
from hw.systolic.unit import systolic_unit
from hw.systolic.unit_config import UnitConfig
from sim.bench_support import Sink, Source, bench, random_generator, start
from sim.drivers.systolic import UnitTiling
from sim.native.bundle import Bundle
from sim.operands import random_operand

__all__ = ["design", "products_of_random_extents_are_numpys"]

_DEPTH = 24
_PRODUCTS = 6
_UNITS = {
    dataflow.value: UnitConfig(
        ArrayConfig(4, 3, dataflow, (bf16, int8), 2), accumulator_rows=_DEPTH
    )
    for dataflow in Dataflow
}

Words = npt.NDArray[np.uint32]


def design() -> Bundle:
    """The units under test, ports of each after its dataflow."""
    return Bundle({name: systolic_unit(config) for name, config in _UNITS.items()})


def _integers(words: Words) -> list[int]:
    return [int.from_bytes(payload.tobytes(), "little") for payload in words]


def _words(payloads: list[int], bits: int) -> Words:
    size = -(-(bits + 1) // 32) * 4
    data = b"".join(payload.to_bytes(size, "little") for payload in payloads)
    return np.frombuffer(data, np.uint32).reshape(-1, size // 4)


@bench(limit_cycles=500_000)
@cocotb.parametrize(name=list(_UNITS), fmt=[bf16, int8])
async def products_of_random_extents_are_numpys(dut: Any, name: str, fmt: Format) -> None:
    """Ragged extents, special values, pauses from none to most of the time."""
    rng = random_generator()
    config = _UNITS[name]
    for index in range(_PRODUCTS):
        m, n, k = (1 if index == 0 else int(extent) for extent in rng.integers(1, (41, 11, 31)))
        tiling = UnitTiling(config, m, n, k, (fmt, fmt))
        special = float(rng.choice([0.0, 0.05]))
        a = random_operand(rng, (m, k), fmt, special_share=special)
        b = random_operand(rng, (k, n), fmt, special_share=special)
        stalls = rng.choice([0.0, 0.2, 0.5, 0.9], 3)
        sources = [
            Source(dut, f"{name}_i_{operand}", stall=stall)
            for operand, stall in zip(("activation", "weight"), stalls, strict=False)
        ]
        result = Sink(dut, f"{name}_o_result", stall=stalls[2])
        mode = config.array.cell.ordered.index(fmt)
        others = {
            f"{other}_i_{operand}__valid": 0
            for other in _UNITS
            for operand in ("activation", "weight")
        }
        await start(
            dut,
            **others,
            **{f"{name}_activation_mode": mode, f"{name}_weight_mode": mode, f"{name}_relu": 0},
        )
        sending = [
            cocotb.start_soon(source.send(_integers(words)))
            for source, words in zip(sources, tiling.streams(a, b), strict=True)
        ]
        got = tiling.result(_words(await result.take(sum(tiling.packets)), 32 * 3))
        for task in sending:
            await task
        await result.expect_silence(40)
        expected = reference.matmul(a, b)
        assert got.tobytes() == expected.tobytes(), f"{m} x {n} x {k}, pauses {stalls}"
