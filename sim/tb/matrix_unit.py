"""PCU matrix unit: random extents, formats, weight layouts and stalls, bit-exact against numpy."""

from typing import Any

import cocotb
import numpy as np
import numpy.typing as npt

from hw.matrix.matrix_unit import MatrixUnit
from hw.numeric.formats import Format, bf16, fp32, int8, int32
from sim.cocotb.bench_support import Sink, Source, bench, random_generator, start
from sim.drivers.matrix_unit_driver import MatrixTiling
from sim.drivers.products import stream_values
from sim.operands import random_operand
from sim.oracle import product

__all__ = ["design", "products_of_random_extents_are_numpys"]

_ROWS, _COLUMNS, _DEPTH = 8, 4, 24
_PRODUCTS = 16

Words = npt.NDArray[np.uint32]


def design() -> MatrixUnit:
    """The matrix unit under test."""
    return MatrixUnit(
        rows=_ROWS,
        columns=_COLUMNS,
        formats=(bf16, int8),
        latency=2,
        accumulator_rows=_DEPTH,
    )


def _words(payloads: list[int]) -> Words:
    size = 4 * (_COLUMNS + 1)
    data = b"".join(payload.to_bytes(size, "little") for payload in payloads)
    return np.frombuffer(data, np.uint32).reshape(-1, _COLUMNS + 1)


@bench(limit_cycles=500_000)
@cocotb.parametrize(
    formats=[(bf16, fp32), (bf16, bf16), (int8, int32)],
    weights_by_row=[False, True],
)
async def products_of_random_extents_are_numpys(
    dut: Any, formats: tuple[Format, Format], weights_by_row: bool
) -> None:
    """Ragged extents, extents of one, special values, stalls from none to most of the time."""
    fmt, out = formats
    rng = random_generator()
    for index in range(_PRODUCTS):
        m, n, k = (int(extent) for extent in rng.integers(1, (61, 13, 41)))
        if index == 0:
            m = 1
        tiling = MatrixTiling(
            m=m,
            n=n,
            k=k,
            columns=_COLUMNS,
            accumulator_rows=_DEPTH,
            fmt=fmt,
            out=out,
        )
        special = float(rng.choice([0.0, 0.05]))
        a = random_operand(rng, (m, k), fmt, special_share=special)
        b = random_operand(rng, (k, n), fmt, special_share=special)
        stalls = rng.choice([0.0, 0.2, 0.5, 0.9], 3)
        activation = Source(dut, "i_activation", stall=stalls[0])
        weight = Source(dut, "i_weight", stall=stalls[1])
        result = Sink(dut, "o_result", stall=stalls[2])
        await start(
            dut,
            int8=int(fmt == int8),
            to_bf16=int(out == bf16),
            weights_by_row=int(weights_by_row),
            i_beside=0,
            i_continues=0,
            i_hold=0,
        )
        sending = [
            cocotb.start_soon(activation.send(stream_values(tiling.activations(a)))),
            cocotb.start_soon(weight.send(stream_values(tiling.weights(b, by_row=weights_by_row)))),
        ]
        got = tiling.result(_words(await result.take(tiling.result_vectors)))
        for task in sending:
            await task
        await result.expect_silence(40)
        expected = product(a, b, out.dtype)
        assert got.tobytes() == expected.tobytes(), f"{m} x {n} x {k}, pauses {stalls}"
