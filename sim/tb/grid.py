"""PE array alone: random weights, swaps, bubbles and initial sums, checked cycle by cycle."""

from typing import Any

import cocotb
import numpy as np
import numpy.typing as npt
from cocotb.triggers import FallingEdge, ReadOnly

from hw.array.dataflow import ArrayConfig, Dataflow
from hw.array.stationary import StationaryArray
from hw.numeric import reference
from hw.numeric.formats import Format, bf16, int8
from sim.cocotb.bench_support import bench, random_generator, start
from sim.operands import random_operand

__all__ = ["design", "vectors_meet_the_weights_of_their_tile"]

_ROWS, _COLUMNS, _LATENCY = 8, 4, 2
_FIRST_SUM = 2 + _ROWS * _LATENCY
_TILES = 150

Array = npt.NDArray[Any]


def design() -> StationaryArray:
    """The array under test."""
    config = ArrayConfig(_ROWS, _COLUMNS, Dataflow.WS, (bf16, int8), _LATENCY)
    return StationaryArray(config, by_column=True)


def _integers(vectors: Array) -> list[int]:
    return [int.from_bytes(np.ascontiguousarray(vector).tobytes(), "little") for vector in vectors]


class _Schedule:
    """Stimulus per port and cycle, and expected sums per column and cycle.

    Weights are loaded at random times between the earliest and latest that the contract allows.
    """

    def __init__(self, rng: np.random.Generator, fmt: Format, by_row: bool) -> None:
        self._rng = rng
        self._format = fmt
        self._by_row = by_row
        self.loads: dict[int, tuple[int, int]] = {}
        self.vectors: dict[int, tuple[int, int]] = {}
        self.old_sums: dict[tuple[int, int], int] = {}
        self.new_sums: dict[tuple[int, int], int] = {}
        swap, last = -1000, 0
        for _ in range(_TILES):
            swap, last = self._add_tile(swap, last)
        self.cycles = last + _FIRST_SUM + _COLUMNS + 1

    def _gap(self) -> int:
        return int(self._rng.choice([0, 0, 0, 1, 5]))

    def _earliest(self, index: int, swap: int) -> int:
        """First cycle in which a weight vector may overwrite one of the last swap."""
        if self._by_row:
            return swap + (2 * index + 1) * _LATENCY + _COLUMNS - 1
        return swap + (_ROWS - 1) * _LATENCY + index

    def _add_tile(self, swap: int, last: int) -> tuple[int, int]:
        """Schedule one tile; returns the cycles of its first and last vector."""
        rng, fmt = self._rng, self._format
        depth = 16 // fmt.bits * _ROWS
        weights = random_operand(rng, (depth, _COLUMNS), fmt, special_share=0.02)
        lines = weights.T
        if self._by_row:
            # A lane has successive rows of its column.
            lanes = weights.reshape(_ROWS, -1, _COLUMNS).transpose(0, 2, 1)
            lines = np.ascontiguousarray(lanes).reshape(_COLUMNS, -1)
        cycle, next_swap = 0, last + 1
        for index, value in enumerate(_integers(lines)):
            cycle = max(cycle, self._earliest(index, swap)) + self._gap()
            self.loads[cycle] = (index, value)
            next_swap = max(next_swap, cycle + 1 - (0 if self._by_row else index))
            cycle += 1
        rows = int(rng.integers(1, 9))
        activations = random_operand(rng, (rows, depth), fmt, special_share=0.02)
        old = random_operand(rng, (rows, _COLUMNS), bf16, special_share=0.1).astype(np.float32)
        if fmt == int8:
            old = rng.integers(-(2**31), 2**31, (rows, _COLUMNS)).astype(np.int32)
        sums = reference.matmul(activations, weights, old)
        at = next_swap
        for row, value in enumerate(_integers(activations)):
            at += self._gap() if row else 0
            self.vectors[at] = (value, int(row == 0))
            for column in range(_COLUMNS):
                self.old_sums[at + 2 + column, column] = int(old.view(np.uint32)[row, column])
                self.new_sums[at + _FIRST_SUM + column, column] = int(
                    sums.view(np.uint32)[row, column]
                )
            at += 1
        return next_swap, at - 1


@bench(limit_cycles=40_000)
@cocotb.parametrize(fmt=[bf16, int8], by_row=[False, True])
async def vectors_meet_the_weights_of_their_tile(dut: Any, fmt: Format, by_row: bool) -> None:
    """The sums of every vector against numpy, per cycle and column; idle ports are random."""
    rng = random_generator()
    plan = _Schedule(rng, fmt, by_row)
    mode = int(fmt == int8)
    await start(
        dut,
        moving_mode=mode,
        stationary_mode=mode,
        i_by_row=int(by_row),
        i_swap=0,
        i_load=0,
        i_moving=0,
        i_p=0,
    )
    compared = 0
    for cycle in range(plan.cycles):
        noise = int.from_bytes(rng.bytes(2 * _ROWS), "little")
        dut.i_moving.value, dut.i_swap.value = plan.vectors.get(cycle, (noise, 0))
        index, weights = plan.loads.get(cycle, (0, noise))
        dut.i_load.value = int(cycle in plan.loads) << index
        dut.i_stationary.value = weights
        old = [
            plan.old_sums.get((cycle, column), noise % 2**32) << 32 * column
            for column in range(_COLUMNS)
        ]
        dut.i_p.value = sum(old)
        await ReadOnly()
        wanted = [
            (column, plan.new_sums[cycle, column])
            for column in range(_COLUMNS)
            if (cycle, column) in plan.new_sums
        ]
        if wanted:
            bits = str(dut.o_p.value)[::-1]
            for column, expected in wanted:
                got = int(bits[32 * column : 32 * column + 32][::-1], 2)
                assert got == expected, (
                    f"cycle {cycle} column {column}: {got:#010x}, not {expected:#010x}"
                )
                compared += 1
        await FallingEdge(dut.clk)
    assert compared == len(plan.new_sums)
