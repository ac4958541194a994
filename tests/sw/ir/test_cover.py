"""Covers: which patterns of stores write every element exactly once."""

import numpy as np
import pytest

import sw.language as tw
from sim.golden import golden
from sw.ir.cover import CoverError, check_cover
from sw.ir.parse import parse_program
from sw.ir.sizes import choose_sizes


def blocks(A, C):
    for i in tw.metapipe(12, 5):
        for j in tw.metapipe(6, 4):
            tw.store_tile(C[i, j], tw.load_tile(A[i, j]))


def mixed_radix(A, C):
    for g in tw.each(3):
        for r in tw.each(4):
            tw.store_tile(C[g * 4 + r, :], tw.load_tile(A[g * 4 + r, :]))


def strided_slices(A, C):
    for r in tw.each(4):
        tw.store_tile(C[3 * r : 3 * r + 3, :], tw.load_tile(A[3 * r : 3 * r + 3, :]))


def halves(A, C):
    tw.store_tile(C[:, 0:2], tw.load_tile(A[:, 0:2]))
    for i in tw.metapipe(12, 5):
        tw.store_tile(C[i, 2:6], tw.load_tile(A[i, 2:6]))


def offset_blocks(A, C):
    tw.store_tile(C[0:2, :], tw.load_tile(A[0:2, :]))
    for i in tw.metapipe(10, 4):
        tw.store_tile(C[2:12, :][i, :], tw.load_tile(A[2:12, :][i, :]))


def copies_in_space(A, C):
    for lane in range(3):
        tw.store_tile(C[4 * lane : 4 * lane + 4], tw.load_tile(A[4 * lane : 4 * lane + 4]))


def one_iteration_more(A, C):
    for _ in tw.each(1):
        tw.store_tile(C, tw.load_tile(A))


@pytest.mark.parametrize(
    "program",
    [
        blocks,
        mixed_radix,
        strided_slices,
        halves,
        offset_blocks,
        copies_in_space,
        one_iteration_more,
    ],
    ids=lambda x: x.__name__,
)
def test_these_write_everything_once(program):
    traced = tw.kernel("A[M, N] -> C[M, N]")(program).trace(M=12, N=6, dtype=tw.int32)
    check_cover(traced)
    sized = choose_sizes(traced)
    check_cover(sized)
    array = np.arange(72, dtype=np.int32).reshape(12, 6)
    assert (golden(sized, {"A": array})["C"] == array).all()


def overlapping_radix(A, C):
    for g in tw.each(3):
        for r in tw.each(4):
            tw.store_tile(C[g * 3 + r, :], tw.load_tile(A[g, :]))


def gap(A, C):
    for r in tw.each(6):
        tw.store_tile(C[2 * r, :], tw.load_tile(A[r, :]))


def overlapping_slices(A, C):
    tw.store_tile(C[0:7], tw.load_tile(A[0:7]))
    tw.store_tile(C[5:12], tw.load_tile(A[5:12]))


def diagonal(A, C):
    for n in tw.each(6):
        tw.store_tile(C[n, n], tw.load_tile(A[n, n]))


def written_every_iteration(A, C):
    for i in tw.metapipe(12, 5):
        tw.store_tile(C[0:12, :], tw.load_tile(A) + tw.col_sum(tw.load_tile(A[i, :])))


def ended(A, C):
    for i in tw.metapipe(12, 5):
        for j in tw.metapipe(6, 4, until=i.stop):
            tw.store_tile(C[i, j], tw.load_tile(A[i, j]))


def starts_of_blocks(A, C):
    for i in tw.metapipe(12, 4):
        tw.store_tile(C[i.start, :], tw.load_tile(A[i.start, :]))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (overlapping_radix, r"`C\[3\*g \+ r, 0 \+: 6\]` is written more than once"),
        (gap, "must be written whole, not 36 of its 72 elements"),
        (overlapping_slices, "`C` is written more than once here"),
        (diagonal, r"uses n twice: it cannot be shown to cover"),
        (written_every_iteration, "is written again in every iteration over i"),
        (ended, "in the loop over j, which `until` may end"),
        (starts_of_blocks, "must be written whole, not 18 of its 72 elements"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_these_do_not_and_say_why(program, message):
    traced = tw.kernel("A[M, N] -> C[M, N]")(program).trace(M=12, N=6, dtype=tw.int32)
    with pytest.raises(CoverError, match=message) as caught:
        check_cover(traced)
    assert caught.value.node.kind == "store"


def test_a_block_that_ends_before_its_loop_is_no_cover():
    text = """\
program short after trace
tensor A : memory in [M=10] int32
tensor C : memory out [M=10] int32
loop.metapipe i over 10 {
  %a = load A[i +: |i|[10 - i]] : tile<1 x |i|[10 - i], int32>
  store C[i +: |i|[10 - i]], %a
}
"""
    check_cover(parse_program(text))
    with pytest.raises(CoverError, match="cannot be shown to cover `C`"):
        check_cover(parse_program(text.replace("[10 - i]", "[9 - i]")))
