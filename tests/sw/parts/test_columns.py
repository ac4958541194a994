"""Splits and joins of tiles as loads and stores of columns: the same bytes by golden."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.errors import BadInputError
from hw.numeric.formats import bf16
from sim.golden import golden
from sw.ir import nodes as ir
from sw.ir.rewrite import walk
from sw.ir.sizes import choose_sizes
from sw.ir.verify import verify
from sw.kernels.rope import rope
from sw.parts.columns import column_ranges
from sw.parts.division_search import DivisionSearch
from sw.passes.accumulate import accumulate
from sw.passes.simplify import simplify
from tests.sw.passes.test_roll import layer


@tw.kernel("X[M, N], g[N] -> Y[M, N]")
def thirds(X, g, Y):
    """Parts of parts, in another order, beside a vector and a row statistic of all columns."""
    gain = tw.load_tile(g)
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        a, b, c = tw.split_cols(x / tw.row_max(x), 3)
        p, q = tw.split_cols(b, 2)
        tw.store_tile(Y[i, :], tw.join_cols(c, q - 1.0, p, a) * gain)


@tw.kernel("X[M, N] -> Y[M, N], Z[M, N]")
def statistics(X, Y, Z):
    """Row values of a whole row and of half of it; a tile that is stored twice in a row."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        a, b = tw.split_cols(x, 2)
        tw.store_tile(Y[i, :], tw.join_cols(a - tw.row_sum(x), b - tw.row_max(b)))
        tw.store_tile(Z[i, :], tw.join_cols(a, a))


@tw.kernel("X[M, N] -> Y[M, N]")
def column_numbers(X, Y):
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        x = tw.where(tw.col_index(X.shape[1]) < 7, x, -x)
        a, b = tw.split_cols(x, 2)
        tw.store_tile(Y[i, :], tw.join_cols(b, a - tw.col_max(a)))


def summed(kernel):
    return accumulate(kernel.trace(dtype=bf16, M=10, N=48))


@pytest.mark.parametrize("kernel", [rope, thirds, statistics, column_numbers], ids=lambda k: k.name)
def test_the_bytes_stay(kernel, seed):
    program = summed(kernel)
    ranges = simplify(column_ranges(program))
    verify(ranges)
    assert not any(isinstance(node, ir.Columns | ir.Join) for node in walk(ranges.nodes))
    draw = np.random.default_rng(seed)
    inputs = [each for each in program.tensors if each.type.role.value == "in"]
    arrays = {each.name: draw.normal(size=each.type.shape).astype(bf16.dtype) for each in inputs}
    sizes = {node.index: 4 for node in walk(program.nodes) if isinstance(node, ir.Loop)}
    before = golden(choose_sizes(program, sizes), arrays)
    after = golden(choose_sizes(ranges, sizes), arrays)
    for name, array in before.items():
        assert array.tobytes() == after[name].tobytes(), name


def test_a_store_takes_the_pieces_of_a_join():
    ranges = simplify(column_ranges(summed(rope)))
    stores = [str(node.view) for node in walk(ranges.nodes) if isinstance(node, ir.Store)]
    assert [each.split(", ")[1] for each in stores] == ["0 +: 24]", "24 +: 24]"]


def test_what_needs_whole_joined_rows_stays_as_it_is():
    @tw.kernel("X[M, N] -> Y[M, 1]")
    def joined_sum(X, Y):
        for i in tw.metapipe(X.shape[0]):
            a, b = tw.split_cols(tw.load_tile(X[i, :]), 2)
            tw.store_tile(Y[i, :], tw.row_sum(tw.join_cols(b, a)))

    @tw.kernel("X[M, N], W[N, N] -> Y[M, N]")
    def split_product(X, W, Y):
        for i in tw.metapipe(X.shape[0]):
            a, b = tw.split_cols(tw.load_tile(X[i, :]) @ tw.load_tile(W[:, :]), 2)
            tw.store_tile(Y[i, :], tw.join_cols(b, a))

    for kernel in (joined_sum, split_product):
        program = summed(kernel)
        assert column_ranges(program) is program


def test_turned_rows_are_not_stored_over_those_that_are_still_read():
    @tw.kernel("T[M, N] -> T")
    def turned(T):
        for i in tw.metapipe(T.shape[0]):
            a, b = tw.split_cols(tw.load_tile(T[i, :]), 2)
            tw.store_tile(T[i, :], tw.join_cols(b, a))

    program = summed(turned)
    assert column_ranges(program) is program
    with pytest.raises(BadInputError, match="test_columns.py:.*`T` cannot be overwritten"):
        turned.compile("small", M=10, N=48, dtype=bf16)


def test_columns_that_begin_between_transfers_are_refused_at_their_line():
    program = accumulate(rope.trace(dtype=bf16, M=4, N=22))
    match = r"rope.py:\d+: Columns of `X` .* must begin at a multiple of 16 bytes, not 22"
    with pytest.raises(BadInputError, match=match):
        column_ranges(program)


@pytest.fixture
def searches(monkeypatch):
    """The programs that are searched for a division, and whether they have one."""
    found = []
    search = DivisionSearch.run

    def noted(self, program):
        division = search(self, program)
        found.append((program, division is not None))
        return division

    monkeypatch.setattr(DivisionSearch, "run", noted)
    return found


def test_pieces_of_a_load_that_no_transfer_begins_at_are_rows_before_any_search(searches):
    """No division helps as they are: that of 16 heads of 12 columns took minutes to be refused."""

    @tw.kernel("Q[M, C], K[S, C] -> Y[M, H]: fp32")
    def heads(Q, K, Y):
        count = Y.shape[1]
        pieces = zip(tw.split_cols(tw.load_tile(Q), count), tw.split_cols(tw.load_tile(K), count))
        tw.store_tile(Y, tw.join_cols(*(tw.row_max(q @ k.T) for q, k in pieces)))

    heads.compile("large", M=64, S=64, C=192, H=16, dtype=bf16)
    assert all("turn" in program.passes and divided for program, divided in searches)


def test_misplaced_pieces_of_a_computed_tile_are_rows_after_one_search(searches):
    """Neither another form with the same columns nor its stores without a loop help."""
    layer.compile("small", M=20, C=48, heads=4, dtype=bf16)
    apart = [divided for program, divided in searches if "turn" not in program.passes]
    assert apart.count(False) == 1


def test_misplaced_columns_of_a_tensor_that_is_updated_are_refused():
    @tw.kernel("T[M, N] -> T")
    def doubled(T):
        for i in tw.metapipe(T.shape[0]):
            tw.store_tile(T[i, 3:], (tw.load_tile(T[i, 3:]) * 2).to(tw.bf16))

    with pytest.raises(BadInputError, match=r"`T` .* must begin at a multiple of"):
        doubled.compile("small", M=10, N=44, dtype=bf16)


def test_pieces_that_are_not_used_may_begin_anywhere():
    @tw.kernel("X[M, N] -> Y[M, J]")
    def first(X, Y):
        for i in tw.metapipe(X.shape[0]):
            a, _ = tw.split_cols(tw.load_tile(X[i, :]), 2)
            tw.store_tile(Y[i, :], a * tw.row_max(a))

    first.compile("small", M=10, N=44, J=22, dtype=bf16)
