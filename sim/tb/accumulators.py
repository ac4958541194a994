"""Accumulator banks: sums over tiles of any height, drained while the other bank fills."""

from typing import Any

import cocotb
import numpy as np
import numpy.typing as npt

from hw.matrix.matrix_unit import MatrixUnit
from hw.numeric import reference
from hw.numeric.formats import Format, bf16, fp32, int8, int32
from sim.cocotb.bench_support import Sink, Source, bench, clocks, random_generator, start
from sim.drivers.matrix_unit_driver import waits
from sim.operands import random_operand

__all__ = [
    "a_pass_fills_one_bank_while_the_other_waits_for_its_reader",
    "design",
    "short_tiles_wait_for_their_sums_and_tall_ones_do_not",
    "sums_of_random_passes_are_numpys",
]

_ROWS, _COLUMNS, _LATENCY, _DEPTH = 4, 2, 1, 16
_WIDTH = 16 * _ROWS

#: Least rows with which a tile follows the previous one without a wait.
_REVISIT = _ROWS * _LATENCY + 2

#: Rows of a bank that are read before a stalled output stops its drain.
_READ = 3

#: Boundary values of rows that every run must cover.
_HEIGHTS = (1, 2, _REVISIT - 1, _REVISIT, _DEPTH)

Array = npt.NDArray[Any]


def design() -> MatrixUnit:
    """The matrix unit whose accumulators are under test."""
    return MatrixUnit(
        rows=_ROWS,
        columns=_COLUMNS,
        formats=(bf16, int8),
        latency=_LATENCY,
        accumulator_rows=_DEPTH,
    )


def _vector(elements: Array, *, last: bool = False, final: bool = False) -> int:
    data = int.from_bytes(np.ascontiguousarray(elements).tobytes(), "little")
    return data | last << _WIDTH | final << _WIDTH + 1


class _Pass:
    """One pass with random operands: its input streams and expected results."""

    def __init__(
        self,
        rng: np.random.Generator,
        fmt: Format,
        out: Format,
        *,
        rows: int,
        tiles: int,
        exponent_spread: int = 6,
    ) -> None:
        depth = tiles * 16 // fmt.bits * _ROWS
        a = random_operand(rng, (rows, depth), fmt, exponent_spread=exponent_spread)
        b = random_operand(rng, (depth, _COLUMNS), fmt, exponent_spread=exponent_spread)
        step = depth // tiles
        self.activations = [
            _vector(
                a[row, tile * step : (tile + 1) * step],
                last=row == rows - 1,
                final=row == rows - 1 and tile == tiles - 1,
            )
            for tile in range(tiles)
            for row in range(rows)
        ]
        self.weights = [
            _vector(b[tile * step : (tile + 1) * step, column], last=column == _COLUMNS - 1)
            for tile in range(tiles)
            for column in range(_COLUMNS)
        ]
        sums = reference.cast(reference.matmul(a, b), out)
        if out == bf16:
            # Two rows per vector; an odd last row is padded with +0.
            sums = np.concatenate([sums, np.zeros((rows % 2, _COLUMNS), sums.dtype)])
            sums = sums.reshape(-1, 2 * _COLUMNS)
        ends = len(sums) - 1
        self.results = [
            _vector(line, last=index == ends, final=index == ends)
            for index, line in enumerate(sums)
        ]


async def _start(dut: Any, fmt: Format, out: Format) -> None:
    """Reset with a program that has weights by column."""
    await start(
        dut,
        int8=int(fmt == int8),
        to_bf16=int(out == bf16),
        i_beside=0,
        i_continues=0,
        weights_by_row=0,
        i_hold=0,
    )


async def _run(dut: Any, passes: list[_Pass], fmt: Format, out: Format, stalls: Array) -> None:
    """Send the passes, and compare the results."""
    activation = Source(dut, "i_activation", stall=stalls[0])
    weight = Source(dut, "i_weight", stall=stalls[1])
    result = Sink(dut, "o_result", stall=stalls[2])
    await _start(dut, fmt, out)
    sending = [
        cocotb.start_soon(activation.send(word for item in passes for word in item.activations)),
        cocotb.start_soon(weight.send(word for item in passes for word in item.weights)),
    ]
    for index, item in enumerate(passes):
        got = await result.take(len(item.results))
        assert got == item.results, f"pass {index}: {got} instead of {item.results}"
    for task in sending:
        await task
    await result.expect_silence(50)


def _counters(dut: Any) -> dict[str, int]:
    return waits(int(dut.counters.value))


@bench(limit_cycles=200_000)
@cocotb.parametrize(formats=[(bf16, fp32), (bf16, bf16), (int8, int32)])
async def sums_of_random_passes_are_numpys(dut: Any, formats: tuple[Format, Format]) -> None:
    """Heights up to a whole bank, one to five tiles, independent stalls on each stream."""
    fmt, out = formats
    rng = random_generator()
    for _ in range(8):
        passes = [
            _Pass(
                rng,
                fmt,
                out,
                rows=int(rng.choice(_HEIGHTS)) if index % 2 else int(rng.integers(1, _DEPTH + 1)),
                tiles=int(rng.integers(1, 6)),
            )
            for index in range(12)
        ]
        await _run(dut, passes, fmt, out, rng.choice([0.0, 0.3, 0.8], 3))


@bench(limit_cycles=20_000)
async def a_pass_fills_one_bank_while_the_other_waits_for_its_reader(dut: Any) -> None:
    """With a stalled output two passes enter, and of a third as many rows as the drain has read."""
    rng = random_generator()
    passes = [_Pass(rng, bf16, fp32, rows=_DEPTH, tiles=2) for _ in range(4)]
    activation, weight = Source(dut, "i_activation"), Source(dut, "i_weight")
    result = Sink(dut, "o_result")
    await _start(dut, bf16, fp32)
    cocotb.start_soon(activation.send(word for item in passes for word in item.activations))
    cocotb.start_soon(weight.send(word for item in passes for word in item.weights))
    await result.refuse(400)
    assert _counters(dut)["busy"] == 4 * _DEPTH + _READ
    for item in passes:
        assert await result.take(len(item.results)) == item.results


@bench(limit_cycles=20_000)
@cocotb.parametrize(rows=[2, _REVISIT - 1, _REVISIT, _DEPTH])
async def short_tiles_wait_for_their_sums_and_tall_ones_do_not(dut: Any, rows: int) -> None:
    """Accumulate hazard: a row is summed again only after its write-back; waits are counted."""
    rng = random_generator()
    item = _Pass(rng, bf16, fp32, rows=rows, tiles=8)
    activation, weight = Source(dut, "i_activation"), Source(dut, "i_weight")
    result = Sink(dut, "o_result")
    await _start(dut, bf16, fp32)
    before = _counters(dut)
    cocotb.start_soon(weight.send(item.weights))
    # A stall within the first tile lets the weights of the second arrive before its sums: only the
    # rows after the stall are still in flight.
    await activation.send(item.activations[:1])
    await clocks(dut, 20)
    cocotb.start_soon(activation.send(item.activations[1:]))
    assert await result.take(len(item.results)) == item.results
    after = _counters(dut)
    waits = {name: after[name] - before[name] for name in after}
    assert waits["busy"] == 8 * rows
    assert (waits["wait_room"] == 0) == (rows >= _REVISIT), waits
