"""Signatures: what they mean, and how the wrong ones are refused."""

import pytest

import sw.language as tw
from sw.ir.types import Role
from sw.language.signature import parse_signature


def test_inputs_outputs_and_tensors_updated_in_place():
    found = parse_signature("T[V, D], ids[N] : int32 -> T, E[N, 4]:bf16")
    assert [each.name for each in found.arguments] == ["T", "ids", "E"]
    assert [each.role for each in found.arguments] == [Role.INOUT, Role.IN, Role.OUT]
    assert [each.name for each in found.inputs] == ["T", "ids"]
    assert [each.name for each in found.outputs] == ["T", "E"]
    assert found.dims == ("V", "D", "N")
    table, ids, rows = found.arguments
    assert (table.dims, table.format) == (("V", "D"), None)
    assert (ids.dims, ids.format) == (("N",), tw.int32)
    assert (rows.dims, rows.format) == (("N", 4), tw.bf16)


def test_a_signature_may_run_over_several_lines_and_have_no_input():
    assert parse_signature("""A[M,
        K] ->
        C[M, K]""").dims == ("M", "K")
    assert parse_signature("-> C[M]").inputs == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A[M]", r"must be `inputs -> outputs`, not 'A\[M\]'"),
        ("A[M] -> B[M] -> C[M]", r"must be `inputs -> outputs`"),
        ("A[M] -> ", r"Argument must be .* not ' '|must have an output"),
        ("A[M], A[M] -> C[M]", r"must name `A` once on each side"),
        ("A[M] -> C[M], C[M]", r"must name `C` once on each side"),
        ("A[M] -> C", r"Output `C` must have dimensions"),
        ("A -> C[M]", r"Input `A` must have dimensions"),
        ("A[M, K] -> A[K, M]", r"`A` must have the same dimensions on both sides"),
        ("A[M]: bf16 -> A: int8", r"`A` must have one format"),
        ("A[M+1] -> C[M]", r"Dimension of `A` must be a name or a number, not 'M\+1'"),
        ("A[0] -> C[4]", r"Dimension of `A` must be a name or a number, not '0'"),
        ("A[] -> C[4]", r"Dimension of `A` must be a name or a number, not ''"),
        ("A[M] B[M] -> C[M]", r"Argument must be `name\[dim, ...\]`"),
        (
            "A[M]: fp12 -> C[M]",
            r"Format must be one of bf16, fp16, int8, e4m3, e5m2, fp32, int32, not 'fp12'",
        ),
        ("A[M]: int4 -> C[M]", r"not int4, which is not supported yet"),
        ("A[M]: pred -> C[M]", r"Format must be one of .* not 'pred'"),
    ],
)
def test_wrong_signatures_are_refused_where_the_kernel_is_decorated(text, message):
    with pytest.raises(tw.ProgramError, match=message) as caught:
        tw.kernel(text)
    assert caught.value.kind == "signature"
    assert caught.value.where.startswith("test_signature.py:")
