"""Programs taken for a softmax between two products, and the reasons why others are not."""

import dataclasses

import pytest

import sw.language as tw
from sw.kernels.flash_attention import attend
from sw.passes.accumulate import accumulate
from sw.passes.check import check
from sw.passes.simplify import simplify
from sw.softmax.online import online
from sw.softmax.recognition import softmax_product_of
from sw.stages.softmax.softmax_product import SoftmaxProduct
from tests.sw.softmax.spellings import (
    COMPUTED,
    LOOP,
    MASK,
    RESULT,
    SCALE,
    SPELLINGS,
    SUMS,
    program_of,
)

LOADS = "k, v = tw.load_tile(K[j, :]), tw.load_tile(V[j, :])\n"
WHOLE = SoftmaxProduct(
    queries=20,
    keys=37,
    depth=16,
    width=24,
    q="Q",
    k="K",
    v="V",
    o="O",
    scale=0.25,
    offset=3,
    window=0,
    ends=True,
    block=None,
    loops={"query": "i", "key": "j"},
)


def found(changes, **how):
    program = check(program_of(changes, name="softmax", **how))
    return softmax_product_of(simplify(online(accumulate(program))))


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings_are_one_softmax(name):
    product = found(SPELLINGS[name])
    assert product.scale == pytest.approx(0.25, rel=1e-15)
    # An early end is that of the last query, too.
    ends = {"an early end": 23, "a later end": 29}
    keys = ends.get(name, WHOLE.keys)
    assert product == dataclasses.replace(WHOLE, scale=product.scale, keys=keys)


def where(condition):
    return {MASK: f"s = tw.where({condition}, s, -tw.inf)\n"}


def both(first, second):
    text = f"s = tw.where({first}, s, -tw.inf)\n            s = tw.where({second}, s, -tw.inf)\n"
    return {MASK: text}


LAST = "at >= tw.col_index(j)"


@pytest.mark.parametrize(
    ("changes", "offset", "window", "keys"),
    [
        ({MASK: ""}, None, 0, 37),
        (where("tw.col_index(j) < at"), 2, 0, 37),
        (where("tw.row_index(i) * 1 - tw.col_index(j) > 4"), -5, 0, 37),
        (where("2 - tw.row_index(i) <= -tw.col_index(j)"), -2, 0, 37),
        (where("tw.col_index(j) < 21"), None, 0, 21),
        (where("20 >= tw.col_index(j)"), None, 0, 21),
        (where("tw.col_index(j) < 99"), None, 0, 37),
        (both(LAST, "tw.col_index(j) < 21"), 3, 0, 21),
        (both(LAST, "at - tw.col_index(j) < 9"), 3, 9, 37),
        (both("tw.col_index(j) > at - 9", LAST), 3, 9, 37),
        (both(LAST, "tw.row_index(i) >= tw.col_index(j)"), 0, 0, 37),
        ({LOOP: "for j in tw.metapipe(S, until=21):\n", MASK: ""}, None, 0, 21),
    ],
)
def test_conditions_are_rules_of_which_keys_are_seen(changes, offset, window, keys):
    product = found(changes)
    assert (product.offset, product.window, product.keys) == (offset, window, keys)


def test_the_block_is_that_of_the_program_and_queries_need_no_loop():
    assert found({LOOP: "for j in tw.metapipe(S, 32):\n"}).block == 32
    short = found({}, M=1)
    assert (short.queries, short.loops) == (1, {"query": "i", "key": "j"})
    rows = {
        "    for i in tw.metapipe(M):\n": "    i = M\n    if True:\n",
        "q = tw.load_tile(Q[i, :])\n": "q = tw.load_tile(Q)\n",
        "at = tw.row_index(i) + 3\n": "at = tw.row_index(q) + 3\n",
        RESULT: "tw.store_tile(O, o / l)\n",
    }
    product = found(rows)
    assert (product.loops, product.offset) == ({"key": "j"}, 3)


REFUSED = {
    "the scale in q": (COMPUTED["the scale in q"], "this operand is computed", 9),
    "a window alone": (
        where("at - tw.col_index(j) < 9"),
        "must end at the last key that a row sees",
        10,
    ),
    "a mask of neither kind": (where("at != tw.col_index(j)"), "must compare numbers of keys", 10),
    "two keys a query": (where("at * 2 >= tw.col_index(j)"), "must compare numbers of keys", 10),
    "the first keys hidden": (where("tw.col_index(j) > 4"), "must compare numbers of keys", 10),
    "no key": (where("tw.col_index(j) < 0"), "must see a key", 7),
    "computed queries": (
        {SCALE: "s = (q * 0.25).to(tw.bf16) @ k.T\n"},
        "this operand is computed",
        9,
    ),
    "computed values": ({SUMS: SUMS.replace("@ v", "@ (v * 2.0).to(tw.bf16)")}, "is computed", 14),
    "a sum after it": ({RESULT: "tw.store_tile(O[i, :], o / l + 1.0)\n"}, r"`\(o / l\)\.to", 16),
    "a function of it": ({RESULT: "tw.store_tile(O[i, :], abs(o / l))\n"}, r"`\(o / l\)\.to", 16),
    "a rounding before it": (
        {RESULT: "tw.store_tile(O[i, :], (o / l).to(tw.fp16).to(tw.fp32))\n"},
        r"`\(o / l\)\.to",
        16,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_machine_does_not_compute_is_refused_at_its_line(name):
    changes, message, line = REFUSED[name]
    with pytest.raises(tw.ProgramError, match=message) as caught:
        found(changes)
    assert caught.value.kind == "unserved" and caught.value.where == f"softmax.py:{line}"


@pytest.mark.parametrize(
    ("signature", "dtype", "message"),
    [
        ("Q[M, D], K[S, D], V[S, E] -> O[M, E]: fp32", tw.bf16, "`O` must be bf16"),
        ("Q[M, D], K[S, D], V[S, E] -> O[M, E]", tw.fp16, "`Q` must be bf16 .*, not fp16"),
    ],
)
def test_other_formats_are_refused(signature, dtype, message):
    with pytest.raises(tw.ProgramError, match=message):
        found({MASK: ""}, signature=signature, dtype=dtype)


def test_keys_by_columns_are_refused():
    changes = {
        LOADS: "k, v = tw.load_tile(K[:, j]), tw.load_tile(V[j, :])\n",
        SCALE: "s = q @ k * 0.25\n",
    }
    with pytest.raises(tw.ProgramError, match="rows of queries and rows of keys"):
        found(changes, signature="Q[M, D], K[D, S], V[S, E] -> O[M, E]")


def test_loops_over_points_are_refused_behind_all_else():
    @tw.kernel("Q[H, M, D], K[S, D] -> Y[H, M, D]")
    def heads(Q, K, Y, even=False):
        for h in tw.each(Q.shape[0]):
            q = tw.load_tile(Q[h])
            m, total = tw.full(q.rows, 1, -tw.inf), tw.zeros(q.rows, 1)
            o = tw.zeros(q.rows, q.cols)
            for j in tw.metapipe(K.shape[0]):
                k = tw.load_tile(K[j, :])
                s = q @ k.T
                s = tw.where(tw.row_index(q) * 2 >= tw.col_index(j), s, -tw.inf) if even else s
                top = tw.maximum(m, tw.row_max(s))
                p, fade = tw.exp(s - top), tw.exp(m - top)
                total = total * fade + tw.row_sum(p)
                o = o * fade + p.to(tw.bf16) @ k
                m = top
            tw.store_tile(Y[h], o / total)

    for even, message in (
        (False, "`each` loop is not supp"),
        (True, "must compare numbers of keys"),
    ):
        program = heads.trace(dtype=tw.bf16, H=2, M=5, S=20, D=16, even=even)
        with pytest.raises(tw.ProgramError, match=message):
            softmax_product_of(simplify(online(accumulate(check(program)))))


def test_a_query_that_is_a_vector_is_refused():
    @tw.kernel("q[D], K[S, D] -> y[D]")
    def one(q, K, y):
        row = tw.load_tile(q)
        tw.store_tile(y, attend(row, K, K, 0.25))

    program = one.trace(dtype=tw.bf16, S=20, D=16)
    with pytest.raises(tw.ProgramError, match=r"`q\[0 \+: 16\]` must be of a matrix"):
        softmax_product_of(simplify(online(accumulate(check(program)))))
