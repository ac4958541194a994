"""The verifier: one planted violation for each thing a rule says."""

import re

import pytest

from sw.ir.parse import parse_program
from sw.ir.verify import VerifyError, verify

#: A product with a carried sum; what each case changes is a line of it.
SOUND = """\
program gemm after trace
file f0 "gemm.py"
tensor A : memory in [M=10, K=12] bf16
tensor B : memory in [K=12, N=8] bf16
tensor C : memory out [M=10, N=8] fp32
loop.metapipe i over 10 tile 4 {
  loop.metapipe j over 8 tile 4 {
    %zero = full 0 {rows=4[10 - i], cols=4, format=fp32} : tile<4[10 - i] x 4, fp32> @ f0:1:0-1:1
    %acc = loop.metapipe k over 12 tile 5 with %old = %zero : tile<4[10 - i] x 4, fp32> {
      %a = load A[i +: 4[10 - i], k +: 5[12 - k]] : tile<4[10 - i] x 5[12 - k], bf16> @ f0:2:0-2:1
      %b = load B[k +: 5[12 - k], j +: 4] : tile<5[12 - k] x 4, bf16> @ f0:3:0-3:1
      %new = matmul %a, %b, %old : tile<4[10 - i] x 4, fp32> @ f0:4:0-4:1
    } next %new @ f0:5:0-5:1
    store C[i +: 4[10 - i], j +: 4], %acc @ f0:6:0-6:1
  } @ f0:7:0-7:1
} @ f0:8:0-8:1
"""

LOAD_A = "%a = load A[i +: 4[10 - i], k +: 5[12 - k]]"
STORE = "    store C[i +: 4[10 - i], j +: 4], %acc @ f0:6:0-6:1\n"


def changed(*changes, text=SOUND):
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return parse_program(text)


def refused(rule, message, program):
    with pytest.raises(VerifyError, match=message) as caught:
        verify(program)
    assert caught.value.rule == rule
    return caught.value


def test_a_sound_program_is_given_back():
    program = parse_program(SOUND)
    assert verify(program) is program
    for passes in ("mask", "simplify mask"):
        verify(changed(("after trace", f"after trace {passes}")))


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        ("%new is used outside its region", [("4], %acc", "4], %new")]),
        (
            "j is used outside its loop",
            [
                ("{rows=4[10 - i]", "{rows=4[10 - i, 10 - q]"),
                ("10 - q", "10 - j"),
                ("j over 8", "h over 8"),
                ("cols=4, format", "cols=4, format"),
            ],
        ),
        (r"\|n\| is used outside its loop", [("A[i +: 4[10 - i]", "A[i +: |n|[10 - i]")]),
        ("there is no tensor `D`", [("load A[", "load D[")]),
    ],
)
def test_rule_1_values_and_indices_in_their_regions(message, changes):
    refused(1, message, changed(*changes))


def test_rule_1_use_before_definition():
    program = parse_program(SOUND)
    outer = program.nodes[0]
    inner = outer.body[0]
    zero, loop, store = inner.body
    late = inner.replace(nodes=(loop, zero, store))
    broken = program.after("swap", (outer.replace(nodes=(late,)),))
    refused(1, "%zero is used before its definition", broken)


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        (
            "must give tile<4 x 4, fp32>",
            [
                (" : tile<4[10 - i] x 4, fp32> @ f0:4", " : tile<4 x 4, fp32> @ f0:4"),
                ("%a = load A[i +: 4[10 - i]", "%a = load A[0 +: 4"),
                ("tile<4[10 - i] x 5", "tile<4 x 5"),
                ("%a, %b, %old : tile<4 x", "%a, %b : tile<4[10 - i] x"),
            ],
        ),
        (
            r"must give tile<5\[12 - k\] x 4, bf16>",
            [("4] : tile<5[12 - k] x 4, bf16>", "4] : tile<5 x 4, bf16>")],
        ),
        (
            r"must give tile<5\[12 - k\] x 4, bf16>",
            [("4] : tile<5[12 - k] x 4, bf16>", "4] : tile<5[12 - k] x 4, int8>")],
        ),
        (
            r"`@` sums over 5\[12 - k\] columns and 4\[10 - i\] rows",
            [("%a, %b, %old", "%a, %a, %old")],
        ),
        (r"Sum of `@` must be .*, not", [("%a, %b, %old", "%a, %b, %b")]),
        (
            "must give nothing",
            [
                ("    store C", "    %s = store C"),
                ("%acc @ f0:6", "%acc : tile<4 x 4, fp32> @ f0:6"),
            ],
        ),
        ("extent and block size must be 1 or more", [("k over 12 tile 5", "k over 12 tile 0")]),
    ],
)
def test_rule_2_types_computed_anew(message, changes):
    refused(2, message, changed(*changes))


def test_rule_2_a_use_with_another_type():
    program = parse_program(SOUND)
    loop = program.nodes[0].body[0].body[1]
    load = loop.body[0]
    wrong = load.result.type.to(loop.results[0].type.format)
    product = loop.body[2]
    liar = product.replace(
        operands=(type(load.result)("a", wrong), *product.operands[1:]),
    )
    inner = loop.replace(nodes=(*loop.body[:2], liar))
    j = program.nodes[0].body[0]
    nodes = (program.nodes[0].replace(nodes=(j.replace(nodes=(j.body[0], inner, j.body[2])),)),)
    refused(2, "%a is tile<.*bf16>, and used as tile<.*fp32>", program.after("lie", nodes))


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        ("next %b is .*, its carry %old", [("next %new", "next %b")]),
        (
            "start %narrow is .*, its carry %old",
            [
                ("%zero", "%narrow"),
                (
                    "format=fp32} : tile<4[10 - i] x 4, fp32>",
                    "format=int8} : tile<4[10 - i] x 4, int8>",
                ),
            ],
        ),
        ("differ in number", [("next %new", "next %new, %old")]),
    ],
)
def test_rule_3_loops_agree_with_their_carries(message, changes):
    refused(3, message, changed(*changes))


def test_rule_3_results():
    program = parse_program(SOUND)
    j = program.nodes[0].body[0]
    zero, loop, store = j.body
    result = type(loop.result)("acc", zero.result.type.to(loop.body[0].result.type.format))
    inner = j.replace(nodes=(zero, loop.replace(results=(result,)), store))
    broken = program.after("lie", (program.nodes[0].replace(nodes=(inner,)),))
    refused(3, "must give tile", broken)


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        (
            r"`i \+: 4` may leave M=10 of `A`",
            [
                ("A[i +: 4[10 - i]", "A[i +: 4"),
                ("tile<4[10 - i] x 5", "tile<4 x 5"),
                ("rows=4[10 - i]", "rows=4"),
                ("tile<4[10 - i] x 4", "tile<4 x 4"),
            ],
        ),
        (r"`k - 1 \+: ", [("k +: 5[12 - k]] : tile<4", "k - 1 +: 5[12 - k]] : tile<4")]),
        (r"`k \+: 5\[13 - k\]` may leave K=12", [("5[12 - k]", "5[13 - k]")]),
        (
            "must have 2 entries",
            [
                (LOAD_A, "%a = load A[k +: 5[12 - k]]"),
                ("tile<4[10 - i] x 5[12 - k], bf16>", "tile<1 x 5[12 - k], bf16>"),
                ("%a, %b, %old", "%a, %b"),
                ("rows=4[10 - i]", "rows=1"),
                ("tile<4[10 - i] x 4, fp32>", "tile<1 x 4, fp32>"),
                ("C[i +: 4[10 - i], j", "C[i, j"),
            ],
        ),
    ],
)
def test_rule_4_views_inside_their_tensors(message, changes):
    refused(4, message, changed(*changes))


#: A sum over rows that end early.
REDUCED = """\
program reduced after trace mask
file f0 "reduced.py"
tensor A : memory in [M=10, N=8] fp32
tensor C : memory out [M=10, N=8] fp32
loop.metapipe i over 10 tile 4 {
  %a = load A[i +: 4[10 - i], 0 +: 8] : tile<4[10 - i] x 8, fp32> @ f0:1:0-1:1
  %e = map.exp %a : tile<4[10 - i] x 8, fp32> @ f0:1:0-1:1
  %z = mask %e {axis=0, identity=0} : tile<4[10 - i] x 8, fp32> @ f0:1:0-1:1
  %s = reduce.sum %z {axis=0} : tile<1 x 8, fp32> @ f0:2:0-2:1
  %y = map.add %a, %s : tile<4[10 - i] x 8, fp32> @ f0:1:0-1:1
  store C[i +: 4[10 - i], 0 +: 8], %y @ f0:3:0-3:1
} @ f0:4:0-4:1
"""


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        ("tail rows of %e must be 0", [("reduce.sum %z", "reduce.sum %e")]),
        ("tail rows of %z must be 0", [("identity=0", "identity=1")]),
        ("tail rows of %z must be -inf", [("reduce.sum", "reduce.max")]),
        ("tail rows of %z must be inf", [("reduce.sum", "reduce.min")]),
        ("tail rows of %z must be 0", [("{axis=0, identity", "{axis=1, identity")]),
    ],
)
def test_rule_5_no_sum_over_an_unknown_tail(message, changes):
    refused(5, message, changed(*changes, text=REDUCED))
    # Before the pass that inserts masks the rule is not in force.
    verify(changed(*changes, ("trace mask", "trace"), text=REDUCED))


def test_rule_5_loads_read_zeros_beyond_their_tensor_and_casts_keep_them():
    verify(changed(("reduce.sum %z", "reduce.sum %a"), text=REDUCED))
    # The same rows end at 9, and the tenth of the tensor is no zero.
    refused(
        5,
        "tail rows of %a must be 0",
        changed(
            ("reduce.sum %z", "reduce.sum %a"),
            ("4[10 - i]", "4[9 - i, 10 - i]"),
            text=REDUCED,
        ),
    )
    verify(
        changed(
            ("%e = map.exp %a", "%e = buffer %a"), ("reduce.sum %z", "reduce.sum %e"), text=REDUCED
        )
    )


def test_rule_5_both_operands_of_a_product_end_in_zeros():
    kind = "{rows=5[12 - k], cols=4, format=bf16} : tile<5[12 - k] x 4, bf16>"
    ones = f"      %w = full 1 {kind} @ f0:9:0-9:1\n"
    text = SOUND.replace("after trace", "after trace mask")
    verify(parse_program(text))
    broken = text.replace("      %new", f"{ones}      %new").replace("%a, %b, %old", "%a, %w, %old")
    refused(5, "tail rows of %w must be 0", parse_program(broken))


#: Scores of rows against blocks of rows, and of a product that contracts columns of both.
TRANSPOSED = """\
program scores after trace mask
file f0 "scores.py"
tensor A : memory in [M=4, K=10] bf16
tensor C : memory out [M=4, N=4] fp32
%zero = full 0 {rows=4, cols=4, format=fp32} : tile<4 x 4, fp32> @ f0:1:0-1:1
%sum = loop.metapipe k over 10 tile 3 with %old = %zero : tile<4 x 4, fp32> {
  %a = load A[0 +: 4, k +: 3[10 - k]] : tile<4 x 3[10 - k], bf16> @ f0:1:0-1:1
  %t = transpose %a : tile<3[10 - k] x 4, bf16> @ f0:1:0-1:1
  %s = reduce.sum %t {axis=0} : tile<1 x 4, fp32> @ f0:1:0-1:1
  %e = map.mul %a, 2 : tile<4 x 3[10 - k], fp32> @ f0:1:0-1:1
  %n = cast bf16, %e : tile<4 x 3[10 - k], bf16> @ f0:1:0-1:1
  %p = matmul %a, %a, %old {tb=true} : tile<4 x 4, fp32> @ f0:1:0-1:1
} next %p @ f0:1:0-1:1
store C[0 +: 4, 0 +: 4], %sum @ f0:1:0-1:1
"""


def test_rule_5_follows_transposes_and_products_read_by_columns():
    verify(parse_program(TRANSPOSED))
    for old, new, message in (
        ("matmul %a, %a", "matmul %a, %n", "tail columns of %n must be 0"),
        ("matmul %a, %a", "matmul %n, %a", "tail columns of %n must be 0"),
    ):
        refused(5, message, changed((old, new), text=TRANSPOSED))


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        ("`C` must be written whole, not 0 of its 80", [(STORE, "")]),
        ("`C` must be written whole, not 40 of its 80", [("j over 8 tile 4", "j over 4 tile 4")]),
        (
            "`C` is written again in every iteration over j",
            [("C[i +: 4[10 - i], j +: 4]", "C[i +: 4[10 - i], 0 +: 4]")],
        ),
        ("`C` is written more than once here", [(STORE, STORE + STORE)]),
        (
            "`C` is an output and cannot be read",
            [
                ("load B[k +: 5[12 - k], j +: 4]", "load C[k +: 5[10 - k], j +: 4]"),
                ("tile<5[12 - k] x 4, bf16>", "tile<5[10 - k] x 4, fp32>"),
                ("%new = matmul %a, %b, %old", "%new = buffer %old"),
            ],
        ),
        (
            "`A` is an input and cannot be written",
            [("store C[i +: 4[10 - i], j +: 4], %acc", "store A[i +: 4[10 - i], j +: 4], %acc")],
        ),
        (
            "which `until` may end before all is written",
            [("j over 8 tile 4", "j over 8 tile 4 until i")],
        ),
    ],
)
def test_rule_6_outputs_are_written_once(message, changes):
    refused(6, message, changed(*changes))


def test_rule_6_updates_in_place_carry_tokens_after_ordering():
    text = """\
program inplace after trace
file f0 "inplace.py"
tensor T : memory inout [M=4, N=8] fp32
%a = load T[0 +: 4, 0 +: 8] : tile<4 x 8, fp32> @ f0:1:0-1:1
store T[0 +: 4, 0 +: 8], %a @ f0:2:0-2:1
"""
    verify(parse_program(text))
    ordered = text.replace("after trace", "after trace order")
    refused(6, "access to `T` must take its token", parse_program(ordered))


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        ("name %zero is taken", [("%a = load", "%zero = load"), ("matmul %a", "matmul %zero")]),
        ("name %zero is taken", [("with %old", "with %zero"), ("%b, %old", "%b, %zero")]),
        (
            "index i is taken",
            [
                ("k over 12", "i over 12"),
                ("k +: 5[12 - k]", "i +: 5[12 - i]"),
                ("5[12 - k]", "5[12 - i]"),
            ],
        ),
        ("node has no place", [("%acc @ f0:6:0-6:1", "%acc")]),
        (
            "names of tensors must differ",
            [("tensor A : memory in [M=10, K=12]", "tensor B : memory in [M=10, K=12]")],
        ),
    ],
)
def test_rule_7_names_and_places(message, changes):
    refused(7, message, changed(*changes))


def test_an_error_names_rule_node_and_place():
    error = refused(4, "may leave", changed(("5[12 - k]", "5[13 - k]")))
    assert re.fullmatch(r"rule 4 in `%a = load` \(gemm.py:2\): `k \+: .*", str(error))
    assert error.node.kind == "load"
