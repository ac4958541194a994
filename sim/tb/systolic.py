"""Stand-alone matrix units of all three dataflows: random products, bit-exact against numpy."""

from typing import Any

import cocotb
import numpy as np
import numpy.typing as npt

from hw.array.dataflow import ArrayConfig, Dataflow
from hw.matrix.systolic_unit import SystolicUnit
from hw.matrix.unit_config import UnitConfig
from hw.numeric import reference
from hw.numeric.division import ceil_div
from hw.numeric.formats import Format, bf16, int8
from hw.numeric.mx import mx_matmul
from sim.cocotb.bench_support import Sink, Source, bench, random_generator, start
from sim.cocotb.unit_choice import asked_unit
from sim.drivers.products import stream_values
from sim.drivers.unit_driver import UnitTiling
from sim.drivers.unit_operands import unit_operands
from sim.native.bundle import Bundle

__all__ = ["design", "products_of_random_extents_are_numpys"]

_PRODUCTS = 6

Words = npt.NDArray[np.uint32]


def _units() -> dict[str, UnitConfig]:
    """Units under test by dataflow: the selected one, or one of each."""
    asked = asked_unit()
    if asked is not None:
        return {asked[0].array.dataflow.value: asked[0]}
    return {
        dataflow.value: UnitConfig(
            ArrayConfig(4, 3, dataflow, (bf16, int8), 2), accumulator_rows=24
        )
        for dataflow in Dataflow
    }


_UNITS = _units()


def design() -> Bundle:
    """The units under test, with dataflows as port prefixes."""
    return Bundle({name: SystolicUnit(config) for name, config in _units().items()})


def _words(payloads: list[int], bits: int) -> Words:
    size = ceil_div(bits + 1, 32) * 4
    data = b"".join(payload.to_bytes(size, "little") for payload in payloads)
    return np.frombuffer(data, np.uint32).reshape(-1, size // 4)


@bench(limit_cycles=500_000)
@cocotb.parametrize(name=list(_UNITS), fmt=list(next(iter(_UNITS.values())).array.formats))
async def products_of_random_extents_are_numpys(dut: Any, name: str, fmt: Format) -> None:
    """Ragged extents, special values, stalls from none to most of the time."""
    rng = random_generator()
    config = _UNITS[name]
    array = config.array
    most = 41, 3 * array.columns + 2, 7 * array.rows + 3
    for index in range(_PRODUCTS):
        m, n, k = (1 if index == 0 else int(extent) for extent in rng.integers(1, most))
        tiling = UnitTiling(config, m, n, k, (fmt, fmt))
        a, b = unit_operands(rng, m, n, k, fmt)
        stalls = rng.choice([0.0, 0.2, 0.5, 0.9], 3)
        sources = [
            Source(dut, f"{name}_i_{operand}", stall=stall)
            for operand, stall in zip(("activation", "weight"), stalls, strict=False)
        ]
        result = Sink(dut, f"{name}_o_result", stall=stalls[2])
        mode = array.cell.ordered.index(fmt)
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
            cocotb.start_soon(source.send(stream_values(words)))
            for source, words in zip(sources, tiling.streams(a, b), strict=True)
        ]
        taken = await result.take(sum(tiling.packets))
        got = tiling.result(_words(taken, config.out_bits * array.columns))
        for task in sending:
            await task
        await result.expect_silence(40)
        multiply = mx_matmul if fmt.has_scale else reference.matmul
        expected = multiply(a, b, tile=config.summed_elements(fmt))
        assert got.tobytes() == expected.tobytes(), f"{m} x {n} x {k}, pauses {stalls}"
