"""Notes of a report: few long rows, which leave lanes idle, and latencies of many launches."""

import pytest

import tilewright as tw
from hw.arch.config import named
from sim.run.job import Problem
from sw.kernels.softmax import softmax


@tw.kernel("X[M, N] -> y[1, N]: fp32")
def column_sums(X, y):
    tw.store_tile(y, tw.col_sum(tw.load_tile(X).to(tw.fp32)))


def notes(kernel, chip, rows, columns, dtype=tw.bf16):
    compiled = Problem(kernel, named[chip], {"M": rows, "N": columns}, dtype).compile()
    return [each for each in compiled.notes if " limit the speed" in each]


@pytest.mark.parametrize(
    ("kernel", "chip", "rows", "columns", "start"),
    [
        (softmax, "small", 1, 600, "few rows limit the speed: statistics are made"),
        (softmax, "small", 16, 600, "few rows limit the speed: statistics are made"),
        (column_sums, "tiny", 600, 1, "few columns limit the speed: statistics are made"),
    ],
)
def test_few_long_lines_are_told_with_what_to_do(kernel, chip, rows, columns, start):
    (note,) = notes(kernel, chip, rows, columns)
    lines = min(rows, columns)
    assert note.startswith(start) and f" of {lines} " in note and note.endswith("long_row.md)")


@pytest.mark.parametrize(("rows", "columns"), [(17, 600), (600, 64), (16, 500)])
def test_many_or_short_rows_are_not_told(rows, columns):
    assert notes(softmax, "small", rows, columns) == []


def test_the_lanes_serve_half_as_many_rows_of_fp32():
    (note,) = notes(softmax, "small", 1, 600, tw.fp32)
    assert " 64 at once" in note and notes(softmax, "small", 9, 600, tw.fp32) == []
    (note,) = notes(softmax, "small", 9, 600)
    assert " 128 at once" in note


@tw.kernel("A[N, N], v[N, 1] -> u[N, 1]: fp32")
def power_iteration(A, v, u, steps=4):
    """Three launches a step, each of them short."""
    a, x = tw.load_tile(A), tw.load_tile(v)
    for _ in tw.each(steps):
        y = a @ x
        x = (y * tw.rsqrt(tw.col_sum(y * y) + 1e-12)).to(tw.bf16)
    tw.store_tile(u, x)


@pytest.mark.parametrize(("steps", "told"), [(4, True), (1, False)])
def test_many_short_launches_are_told_in_a_report(steps, told):
    compiled = Problem(
        power_iteration, named["small"], {"N": 64}, tw.bf16, options={"steps": steps}
    ).compile()
    line = "waits: each begins with a load and ends with a store"
    assert (line in compiled.report()) is told
    assert (f"busiest unit of {compiled.entries} launches " in compiled.report()) is told
