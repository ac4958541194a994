"""Loops: what is carried, what Python may do inside, and what numpy makes of the same arrays."""

from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest

import sw.language as tw
from sim.golden import golden
from sw.ir.sizes import choose_sizes
from sw.kernels.matmul import matmul


def run(function, array):
    """Golden answer of a kernel `A[M, N] -> C[M, N]`, and what Python makes of the same array."""
    kernel = tw.kernel("A[M, N] -> C[M, N]")(function)
    bound = kernel.bind(array)
    return golden(kernel.trace(dtype=bound.formats, **bound.dims), bound.arrays)["C"].tolist()


COUNT = np.arange(1, 9, dtype=np.int32).reshape(4, 2)


def test_two_names_may_start_as_one_tile_and_part_in_the_loop():
    def sums(A, C):
        a = b = tw.zeros(1, 2)
        for i in tw.each(4):
            x = tw.load_tile(A[i, :])
            a, b = a + x, b + x * x
            tw.store_tile(C[i, :], a - b)

    squares = COUNT * COUNT
    assert run(sums, COUNT) == (COUNT.cumsum(axis=0) - squares.cumsum(axis=0)).tolist()


def test_two_names_may_end_as_one_tile_in_a_loop_that_always_runs():
    def joined(A, C):
        a, b = tw.zeros(1, 2), tw.full(1, 2, 1)
        for i in tw.each(4):
            a = b = a + b + tw.load_tile(A[i, :])
        for i in tw.each(4):
            tw.store_tile(C[i, :], a - b + a)

    a, b = 0, 1
    for row in COUNT:
        a = b = a + b + row
    assert run(joined, COUNT) == [a.tolist()] * 4


def test_a_carry_may_be_rebound_before_it_is_read_and_kept_in_a_list():
    def late(A, C):
        kept = [tw.zeros(1, 2)]
        for i in tw.each(4):
            x = tw.load_tile(A[i, :])
            tw.store_tile(C[i, :], kept[0])
            kept[0] = x

    assert run(late, COUNT) == [[0, 0], *COUNT[:-1].tolist()]


def test_a_carry_goes_through_loops_inside_loops_and_out_of_all_of_them():
    def nested(A, C):
        total = tw.zeros(1, 2)
        for _ in tw.each(3):
            for i in tw.each(4):
                for _ in tw.each(2):
                    total = total + tw.load_tile(A[i, :])
        for i in tw.each(4):
            tw.store_tile(C[i, :], total)

    assert run(nested, COUNT) == [(6 * COUNT.sum(axis=0)).tolist()] * 4


# Tiles of iterations further back.


def shifted_names(A, C):
    x1 = x2 = tw.zeros(1, 2)
    for i in tw.each(4):
        tw.store_tile(C[i, :], x2)
        x1, x2 = tw.load_tile(A[i, :]), x1


def shifted_names_that_start_differently(A, C):
    x1, x2 = tw.zeros(1, 2), tw.full(1, 2, 0)
    for i in tw.each(4):
        tw.store_tile(C[i, :], x2)
        x2 = x1
        x1 = tw.load_tile(A[i, :])


def a_queue(A, C):
    line = deque([tw.zeros(1, 2)] * 2)
    for i in tw.each(4):
        tw.store_tile(C[i, :], line.popleft())
        line.append(tw.load_tile(A[i, :]))


def attributes_of_an_object(A, C):
    line = SimpleNamespace(last=tw.zeros(1, 2), before=tw.zeros(1, 2))
    for i in tw.each(4):
        tw.store_tile(C[i, :], line.before)
        line.before, line.last = line.last, tw.load_tile(A[i, :])


def a_dictionary_in_a_list(A, C):
    lines = [{"x": (tw.zeros(1, 2), tw.zeros(1, 2))}]
    for i in tw.each(4):
        tw.store_tile(C[i, :], lines[0]["x"][1])
        lines[0]["x"] = (tw.load_tile(A[i, :]), lines[0]["x"][0])


@pytest.mark.parametrize(
    "delay",
    [
        shifted_names,
        shifted_names_that_start_differently,
        a_queue,
        attributes_of_an_object,
        a_dictionary_in_a_list,
    ],
)
def test_a_tile_of_two_iterations_ago_is_carried(delay):
    assert run(delay, COUNT) == [[0, 0], [0, 0], *COUNT[:-2].tolist()]


@pytest.mark.parametrize("lag", [1, 2, 3, 7])
def test_a_line_of_any_length_delays(lag):
    def delay(A, C):
        line = [tw.zeros(1, 2)] * lag
        for i in tw.each(4):
            tw.store_tile(C[i, :], line[0])
            line = [*line[1:], tw.load_tile(A[i, :])]

    wanted = np.concatenate((np.zeros((lag, 2), np.int32), COUNT))[:4]
    assert run(delay, COUNT) == wanted.tolist()


@pytest.mark.parametrize("steps", [1, 2, 3, 9])
def test_names_that_move_are_read_after_the_loop(steps):
    def fibonacci(A, C):
        a, b = tw.load_tile(A[0:1, :]), tw.load_tile(A[1:2, :])
        for _ in tw.each(steps):
            a, b = b, a + b
        tw.store_tile(C[0:1, :], a)
        tw.store_tile(C[1:2, :], b)
        tw.store_tile(C[2:4, :], tw.load_tile(A[2:4, :]))

    a, b = COUNT[0], COUNT[1]
    for _ in range(steps):
        a, b = b, a + b
    assert run(fibonacci, COUNT) == [a.tolist(), b.tolist(), *COUNT[2:].tolist()]


def test_a_name_that_moves_between_loops_inside_loops():
    def sums(A, C):
        last = before = total = tw.zeros(1, 2)
        for i in tw.each(4):
            for j in tw.each(2):
                last, before = tw.load_tile(A[2 * j : 2 * j + 1, :]) + last, last
                total = total + before
            tw.store_tile(C[i, :], total)

    last = before = total = np.zeros(2, np.int32)
    wanted = []
    for _ in range(4):
        for j in range(2):
            last, before = COUNT[2 * j] + last, last
            total = total + before
        wanted.append(total.tolist())
    assert run(sums, COUNT) == wanted


def test_tiles_from_before_a_loop_are_exchanged_through_a_buffer():
    def exchange(A, C):
        a, b = tw.zeros(1, 2), tw.full(1, 2, 1)
        for i in tw.each(4):
            tw.store_tile(C[i, :], tw.load_tile(A[i, :]) + a)
            a, b = tw.buffer(b), a

    assert run(exchange, COUNT) == (COUNT + [[0], [1], [0], [1]]).tolist()


def test_tiles_that_change_places_and_are_not_read_end_the_passes():
    def program(A, C):
        a, b, c = tw.zeros(1, 2), tw.full(1, 2, 1), tw.full(1, 2, 2)
        for i in tw.each(4):
            tw.store_tile(C[i, :], tw.load_tile(A[i, :]))
            a, b, c = b, c, a

    assert run(program, COUNT) == COUNT.tolist()


def test_tiles_that_are_kept_and_not_read_end_the_passes():
    def program(A, C):
        kept = SimpleNamespace(tiles=[])
        for i in tw.each(4):
            kept.tiles.append(tw.load_tile(A[i, :]))
            tw.store_tile(C[i, :], kept.tiles[-1])

    assert run(program, COUNT) == COUNT.tolist()


def test_helpers_closures_comprehensions_and_ranges_are_ordinary_python():
    def scaled(x, by):
        return x * by

    def program(A, C):
        offset = 3
        for i in tw.metapipe(4, 3):
            parts = [scaled(tw.load_tile(A[i, n : n + 1]), n + 1) for n in range(2)]
            if offset:
                parts = [each + offset for each in parts]
            tw.store_tile(C[i, :], tw.join_cols(*parts))

    kernel = tw.kernel("A[M, N] -> C[M, N]")(program)
    sized = choose_sizes(kernel.trace(M=4, N=2, dtype=tw.int32))
    assert (golden(sized, {"A": COUNT})["C"] == COUNT * [1, 2] + 3).all()


def test_numbers_set_anew_in_every_iteration_are_no_state():
    def program(A, C):
        factor = 0
        for i in tw.each(4):
            for n in range(3):
                factor = n
            tw.store_tile(C[i, :], tw.load_tile(A[i, :]) * factor)

    assert run(program, COUNT) == (COUNT * 2).tolist()


def test_first_passes_let_pass_what_a_carry_will_widen():
    def program(A, C):
        v = tw.zeros(1, 2)
        for i in tw.each(4):
            v = (v + v) + tw.load_tile(A[i, :])
            tw.store_tile(C[i, :], v)

    assert run(program, COUNT.astype(np.float32)) == [[1, 2], [5, 8], [15, 22], [37, 52]]

    def mixed(A, C):
        for i in tw.each(4):
            count = tw.full(1, 2, 300)
            tw.store_tile(C[i, :], count + tw.load_tile(A[i, :]))

    with pytest.raises(tw.ProgramError, match="not int32 and fp32"):
        run(mixed, COUNT.astype(np.float32))


def test_a_helper_may_end_its_loop_with_else_and_use_continue():
    def program(A, C):
        for i in tw.each(4):
            tw.store_tile(C[i, :], tw.load_tile(A[i, :]))
            continue
        else:
            pass

    assert run(program, COUNT) == COUNT.tolist()


def test_an_error_inside_a_loop_is_the_one_that_is_raised():
    def program(A, C):
        for _ in tw.each(4):
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        run(program, COUNT)
    # The trace before left nothing behind.
    assert matmul.trace(M=2, N=2, K=2, dtype=tw.bf16).name == "matmul"


def test_until_ends_the_loop_and_clips_its_last_block():
    def running(A, C):
        for i in tw.metapipe(8, 2):
            total = tw.zeros(1, 1)
            for j in tw.metapipe(8, 3, until=i.stop - 1):
                # Every block counts as 100, so that an empty one would show.
                total += tw.col_sum(tw.load_tile(A[j, :])) + 100
            tw.store_tile(C[i, :], tw.load_tile(A[i, :]) * 0 + total)

    array = np.arange(1, 9, dtype=np.int32).reshape(8, 1)
    kernel = tw.kernel("A[M, N] -> C[M, N]")(running)
    program = kernel.trace(M=8, N=1, dtype=tw.int32)
    for size, blocks in ((3, [1, 1, 2, 3]), (1, [1, 3, 5, 7]), (8, [1, 1, 1, 1])):
        for poison in (False, True):
            sized = choose_sizes(program, {"i": 2, "j": size})
            found = golden(sized, {"A": array}, poison=poison)["C"].ravel().tolist()
            wanted = [sum(range(end + 1)) for end in (1, 3, 5, 7)]
            assert found[::2] == found[1::2]
            assert found[::2] == [100 * n + each for n, each in zip(blocks, wanted)]
