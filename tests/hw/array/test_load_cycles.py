"""Cycles of a stationary array's ports, as the table of docs/systolic.md has them."""

import pytest
from amaranth.sim import Simulator

from hw.array.dataflow import ArrayConfig, Dataflow
from hw.array.factory import systolic_array
from hw.numeric.formats import int8

_SIZES = [(1, 3, 1), (2, 2, 2)]
#: Cycle of the vector that swaps a tile in.
_SWAP = 20
_MOVING = (3, 5, 7)


def sums_of(size, loads):
    """Sums of the vector at the swap, one per column, with loads of (cycle, row, operands)."""
    rows, columns, latency = size
    config = ArrayConfig(
        rows=rows, columns=columns, dataflow=Dataflow.WS, formats=(int8,), latency=latency
    )
    array = systolic_array(config, skewed=True)
    found = {}

    async def bench(ctx):
        for cycle in range(_SWAP + 2 + rows * latency + columns):
            here = [(row, operands) for at, row, operands in loads if at == cycle]
            ctx.set(array.i_load, sum(1 << row for row, _ in here))
            operands = here[0][1] if here else [0] * columns
            ctx.set(array.i_stationary, sum(word << 16 * c for c, word in enumerate(operands)))
            ctx.set(array.i_swap, cycle == _SWAP)
            moving = _MOVING[:rows] if cycle == _SWAP else [0] * rows
            ctx.set(array.i_moving, sum(word << 16 * r for r, word in enumerate(moving)))
            for c in range(columns):
                # The old sum is taken in one cycle, and the new one leaves in one cycle.
                ctx.set(array.i_p[c], 1000 * (cycle == _SWAP + 2 + c))
                if cycle == _SWAP + 2 + rows * latency + c:
                    found[c] = ctx.get(array.o_p[c])
            await ctx.tick()

    simulator = Simulator(array)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return [found[c] for c in range(columns)]


def tile(size, first):
    """Rows of small operands."""
    rows, columns, _ = size
    return [[first + r * columns + c for c in range(columns)] for r in range(rows)]


def expected(size, operands):
    rows, columns, _ = size
    return [1000 + sum(_MOVING[r] * operands[r][c] for r in range(rows)) for c in range(columns)]


@pytest.mark.parametrize("size", _SIZES)
def test_a_row_is_loaded_in_the_cycle_before_its_swap_and_not_later(size):
    latency, operands = size[2], tile(size, 1)
    last = [(_SWAP + r * latency - 1, r, row) for r, row in enumerate(operands)]
    assert sums_of(size, last) == expected(size, operands)
    for number, (cycle, row, words) in enumerate(last):
        late = [*last[:number], (cycle + 1, row, words), *last[number + 1 :]]
        # With L = 1 two rows of one cycle would load the same operands.
        if latency > 1 or number == len(last) - 1:
            assert sums_of(size, late) != expected(size, operands)


@pytest.mark.parametrize("size", _SIZES)
def test_a_row_of_the_next_tile_is_loaded_behind_the_wavefront_and_not_before(size):
    rows, columns, latency = size
    operands, after = tile(size, 1), tile(size, 40)
    before = [(_SWAP - rows + r, r, row) for r, row in enumerate(operands)]
    for r in range(rows):
        first = _SWAP + r * latency + columns - 1
        assert sums_of(size, [*before, (first, r, after[r])]) == expected(size, operands)
        assert sums_of(size, [*before, (first - 1, r, after[r])]) != expected(size, operands)
