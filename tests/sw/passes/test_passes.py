"""Passes alone: what each does to a small program, and what it leaves."""

import ml_dtypes
import numpy as np
import pytest

import sw.language as tw
from sim.golden import golden
from sw.ir.parse import parse_program
from sw.ir.rewrite import walk
from sw.ir.sizes import choose_sizes
from sw.ir.text import print_program
from sw.passes.accumulate import accumulate
from sw.passes.check import check
from sw.passes.mask import mask
from sw.passes.simplify import simplify


def traced(function, signature="A[M, K], B[K, N] -> C[M, N]", **sizes):
    sizes = {"M": 8, "K": 8, "N": 8} | sizes
    return tw.kernel(signature)(function).trace(dtype=tw.bf16, out=tw.fp32, **sizes)


def kinds(program):
    return [
        f"{node.kind}.{getattr(node, node.SUFFIX)}" if node.SUFFIX else node.kind
        for node in walk(program.nodes)
    ]


def test_check_reports_an_output_at_the_users_line():
    def half(A, B, C):
        tw.store_tile(C[0:4, :], tw.load_tile(A[0:4, :]))

    with pytest.raises(tw.ProgramError, match="`C` must be written whole, not 32 of") as caught:
        check(traced(half))
    assert caught.value.kind == "output"
    assert caught.value.where.startswith("test_passes.py:")
    assert "tw.store_tile(C[0:4, :]" in str(caught.value)


def test_accumulate_makes_a_carried_sum_one_node():
    def gemm(A, B, C):
        acc = tw.zeros(8, 8)
        for k in tw.metapipe(8, 4):
            acc += tw.load_tile(A[:, k]) @ tw.load_tile(B[k, :])
        tw.store_tile(C, acc)

    program = accumulate(traced(gemm))
    assert kinds(program) == ["full", "cast", "loop", "load", "load", "matmul", "store"]
    loop = program.nodes[2]
    product = loop.body[2]
    assert product.operands[2] == loop.carries[0]
    assert loop.nexts == product.results
    assert product.result.variable == "acc"


def test_accumulate_adds_products_to_one_another_as_finished_sums():
    def chain(A, B, C):
        a, b = tw.load_tile(A), tw.load_tile(B)
        first = a @ b + b @ a
        tw.store_tile(C, a @ a + first)

    program = accumulate(traced(chain))
    added = ["matmul", "map.add"]
    assert kinds(program) == ["load", "load", "matmul", *added, *added, "store"]
    a, b = (node.result for node in program.nodes[:2])
    first, second, sum_, third, _ = program.nodes[2:7]
    assert [each.operands for each in (first, second, third)] == [(a, b), (b, a), (a, a)]
    assert sum_.operands == (first.result, second.result)


def test_accumulate_goes_on_with_what_a_loop_carries_alone():
    def two_in_a_loop(A, B, C):
        acc = tw.zeros(8, 8)
        for k in tw.metapipe(8, 4):
            a, b = tw.load_tile(A[:, k]), tw.load_tile(B[k, :])
            acc += a @ b
            acc += a @ tw.load_tile(A[k, :])
        tw.store_tile(C, acc)

    def behind_a_loop(A, B, C):
        acc = tw.zeros(8, 8)
        for k in tw.metapipe(8, 4):
            acc += tw.load_tile(A[:, k]) @ tw.load_tile(B[k, :])
        for k in tw.metapipe(8, 4):
            acc += tw.load_tile(B[:, k]) @ tw.load_tile(A[k, :])
        tw.store_tile(C, acc)

    (loop,) = (each for each in accumulate(traced(two_in_a_loop)).nodes if each.body)
    products = [each for each in loop.body if each.kind == "matmul"]
    assert [each.operands[2] for each in products] == [loop.carries[0], products[0].result]
    program = accumulate(traced(behind_a_loop))
    first, second = (each for each in program.nodes if each.body)
    assert program.nodes[-2].operands == (first.results[0], second.results[0])


def test_accumulate_leaves_a_product_used_twice_or_of_another_shape():
    def twice(A, B, C):
        a, b = tw.load_tile(A), tw.load_tile(B)
        c = a @ b
        biased = (a @ a) + tw.load_tile(B[0, :])
        tw.store_tile(C, c + 1.0 + c + biased)

    program = traced(twice)
    assert kinds(accumulate(program)) == kinds(program)


def test_a_start_that_is_no_sum_is_added_to_the_finished_sum():
    # 2^24 + 1 + 1 in fp32 loses both ones in turn; 1 + 1 first keeps them.
    def one(A, B, C):
        tw.store_tile(C, tw.load_tile(B[0:1, :]) * 1.0 + tw.load_tile(A) @ tw.load_tile(B[1:3, :]))

    def blocks(A, B, C):
        x = tw.load_tile(B[0:1, :]) * 1.0
        for k in tw.metapipe(2, 1):
            x += tw.load_tile(A[:, k]) @ tw.load_tile(B[1:3, :][k, :])
        tw.store_tile(C, x)

    def points(A, B, C):
        x = tw.load_tile(B[0:1, :]) * 1.0
        for _ in tw.each(1):
            for k in tw.each(2):
                x += tw.load_tile(A[:, k]).T @ tw.load_tile(B[k + 1, :])
        tw.store_tile(C, x)

    def read_between(A, B, C):
        x = tw.load_tile(B[0:1, :]) * 1.0
        for k in tw.metapipe(2, 1):
            x = x * 1.0 + tw.load_tile(A[:, k]) @ tw.load_tile(B[1:3, :][k, :])
        tw.store_tile(C, x)

    a = np.ones((1, 2), ml_dtypes.bfloat16)
    b = np.array([[2.0**24], [1], [1]], ml_dtypes.bfloat16)
    for function, lost in ((one, 0), (blocks, 0), (points, 0), (read_between, 2)):
        program = traced(function, "A[M, K], B[L, N] -> C[M, N]", M=1, K=2, L=3, N=1)
        fixed = accumulate(choose_sizes(program))
        assert golden(fixed, {"A": a, "B": b})["C"] == 2.0**24 + 2 - lost, function.__name__


def test_a_carry_that_is_read_beside_its_sum_is_added_in_each_iteration():
    def read(A, B, C):
        x = tw.load_tile(B) * 1.0
        for k in tw.metapipe(8, 4):
            x += tw.load_tile(A[:, k]) @ tw.load_tile(B[k, :])
            tw.store_tile(C[k, :], tw.load_tile(A[k, :]) @ x.to(tw.bf16))

    loop = accumulate(traced(read)).nodes[-1]
    assert [len(each.operands) for each in walk(loop.body) if each.kind == "matmul"] == [2, 2]


def test_simplify_puts_transposes_into_products():
    def transposed(A, B, C):
        a, b = tw.load_tile(A), tw.load_tile(B)
        tw.store_tile(C, a.T @ b.T + a.T.T @ b)

    program = simplify(traced(transposed))
    assert "transpose" not in kinds(program)
    products = [node for node in walk(program.nodes) if node.kind == "matmul"]
    assert [(node.ta, node.tb) for node in products] == [(True, True), (False, False)]


def test_simplify_turns_back_a_product_that_was_already_turned():
    text = """\
program turned after trace
file f0 "turned.py"
tensor A : memory in [M=4, N=4] bf16
tensor C : memory out [M=4, N=4] fp32
%a = load A[0 +: 4, 0 +: 4] : tile<4 x 4, bf16> @ f0:1:0-1:1
%t = transpose %a : tile<4 x 4, bf16> @ f0:1:0-1:1
%c = matmul %t, %t {ta=true} : tile<4 x 4, fp32> @ f0:1:0-1:1
store C[0 +: 4, 0 +: 4], %c @ f0:1:0-1:1
"""
    product = simplify(parse_program(text)).nodes[1]
    assert (product.ta, product.tb) == (False, True)


def test_simplify_drops_what_nobody_uses_and_casts_that_change_nothing():
    def idle(A, B, C):
        a = tw.load_tile(A).to(tw.bf16)
        unused = tw.zeros(8, 8)
        for k in tw.metapipe(8, 4):
            tw.row_max(tw.load_tile(B[k, :]))
            unused += tw.full(8, 8, 1)
        tw.store_tile(C, a)

    assert kinds(simplify(traced(idle))) == ["load", "store"]


def test_simplify_makes_equal_nodes_one_but_keeps_buffers_apart():
    def equal(A, B, C):
        x, y = tw.load_tile(A), tw.load_tile(A)
        tw.store_tile(C, tw.buffer(x + 1.0) + tw.buffer(y + 1.0))

    assert kinds(simplify(traced(equal))) == [
        "load",
        "map.add",
        "buffer",
        "buffer",
        "map.add",
        "store",
    ]


def test_simplify_moves_loads_of_inputs_out_of_loops():
    def both(A, B, C):
        for i in tw.metapipe(8, 4):
            for j in tw.metapipe(8, 4):
                a, b = tw.load_tile(A[i, :]), tw.load_tile(B[:, j])
                tw.store_tile(C[i, j], a @ b + tw.row_max(tw.load_tile(B[0:1, 0:1])))

    program = simplify(traced(both))
    assert kinds(program) == [
        "load",
        "loop",
        "load",
        "loop",
        "load",
        "matmul",
        "reduce.max",
        "map.add",
        "store",
    ]
    views = [str(node.view) for node in walk(program.nodes) if node.kind == "load"]
    assert [view[0] for view in views] == ["B", "A", "B"]


def test_simplify_moves_no_load_of_a_tensor_that_is_written():
    def inplace(T, A):
        for i in tw.each(4):
            tw.store_tile(T[0:1, :], tw.load_tile(T[0:1, :]) + tw.load_tile(A[i, :]))

    kernel = tw.kernel("T[M, N], A[M, N] -> T")(inplace)
    program = simplify(kernel.trace(M=4, N=4, dtype=tw.bf16))
    assert kinds(program) == ["loop", "load", "load", "map.add", "store"]
    a = np.arange(16).reshape(4, 4).astype(ml_dtypes.bfloat16)
    t = np.zeros((4, 4), ml_dtypes.bfloat16)
    found = golden(program, {"T": t, "A": a})["T"]
    assert (found[0] == a.sum(axis=0)).all() and (t == 0).all()


def test_mask_goes_in_only_where_a_ragged_axis_is_summed():
    def norm(A, B, C):
        b = tw.load_tile(B)
        for i in tw.metapipe(8, 3):
            x = tw.exp(tw.load_tile(A[i, :]))
            tw.store_tile(C[i, :], x / tw.row_sum(x) + tw.col_sum(x) + tw.load_tile(A[i, :]) @ b)

    program = mask(choose_sizes(traced(norm)))
    found = [node for node in walk(program.nodes) if node.kind == "mask"]
    assert len(found) == 1
    assert (found[0].axis, found[0].identity.value) == (0, 0)
    assert found[0].result.name == "x.2"
    assert "mask %x {axis=0, identity=0}" in print_program(program)
    assert kinds(mask(choose_sizes(traced(norm), {"i": 4}))).count("mask") == 0


def test_passes_are_noted_in_order():
    def copy(A, B, C):
        tw.store_tile(C, tw.load_tile(A))

    program = mask(simplify(accumulate(check(traced(copy)))))
    assert program.passes == ("trace", "check", "accumulate", "simplify", "mask")
