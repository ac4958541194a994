"""Single lines that the tracer refuses: what the message says, and what the carets underline."""

import linecache
import re

import numpy as np
import pytest

import sw.language as tw

#: Where the line under test stands: blocks i of 64 and k of 32, points n, tiles of both, a tensor.
PROGRAM = """\
def program(A, B, C):
    for i in tw.metapipe(256, 64):
        a, wide = tw.load_tile(A[i, :]), tw.load_tile(A[i, :]) + 1.0
        whole = tw.load_tile(A[0:64, 0:64])
        for n in tw.each(100):
            for k in tw.metapipe(100, 32):
                b = tw.load_tile(B[k, :])
                {line}
"""

#: Line, kind of error, message. What would become `c` is what the carets underline.
LINES = [
    # Products.
    ("c = a @ b", "contraction", r"`@` sums over 100 columns and \|k\|=32\[100 - k\] rows"),
    ("c = wide + 1.0 + a @ whole", "contraction", r"sums over 100 columns and 64 rows"),
    ("c = tw.matmul(a, b)", "contraction", r"`@` sums over 100 columns"),
    ("c = wide @ a.T", "format", r"its left operand is fp32: write `.to\(tw.bf16\)`"),
    ("c = a @ (b * 1).T.to(tw.fp32)", "format", r"its right operand is fp32"),
    ("c = a @ tw.zeros(100, 4)", "format", r"or floats of one width, not bf16 and int8"),
    ("c = a @ 2.0", "operation", r"`@` takes tiles, not float"),
    (
        "c = tw.matmul(a, a.T, row_par=0)",
        "operation",
        r"row_par must be a whole number of 1 or more, not 0",
    ),
    ("c = tw.matmul(a, a.T, col_par=True)", "operation", r"col_par must be a whole number"),
    ("c = tw.matmul(a, a.T, sum_par=2)", "unserved", r"`sum_par` is not supported yet"),
    # Element math.
    (
        "c = a + b",
        "shape",
        r"same rows, not \|i\|=64\[256 - i\] x 100 and \|k\|=32\[100 - k\] x 100",
    ),
    ("c = tw.maximum(a, whole)", "shape", r"`maximum` takes tiles with the same rows"),
    ("c = whole - a.T", "shape", r"`-` takes tiles with the same rows"),
    (
        "c = tw.row_index(k) + 0.5",
        "format",
        r"`\+` takes operands that one of int32 and fp32 holds exactly, not int32 and a float",
    ),
    ("c = tw.row_index(i) * wide", "format", r"`\*` takes operands .* not int32 and fp32"),
    (
        "c = tw.exp(tw.col_index(k))",
        "format",
        "`exp` takes an operand that fp32 holds exactly, not int32",
    ),
    ("c = (a > 0) + a", "format", r"`\+` takes numbers, not a condition"),
    ("c = tw.where(a, a, 0.0)", "format", r"`where` takes a condition first"),
    ("c = a * None", "operation", r"`mul` takes tiles, not NoneType"),
    ("c = a * A", "operation", r"`mul` takes tiles, not TensorView"),
    ("c = np.ones(3) * a", "operation", r"`mul` takes tiles, not ndarray"),
    ("c = True * a", "operation", r"`mul` takes tiles, not bool"),
    ("c = tw.row_sum(a > 0)", "format", r"`sum` takes numbers, not a condition"),
    ("c = tw.row_mean(b.T)", "shape", r"`row_mean` takes a fixed number of columns"),
    (
        "c = a.to('e2m1')",
        "format",
        r"Format must be one of bf16, .*, int32, not e2m1, which is not supported",
    ),
    ("c = a.to('int4')", "format", r"not int4, which is not supported yet"),
    ("c = a.to(float)", "format", r"not <class 'float'>"),
    ("c = (a.to(tw.int32)).to(tw.bf16)", "format", r"`.to` cannot take int32 to bf16"),
    ("c = tw.buffer(a, slots=0)", "operation", r"slots must be a whole number of 1 or more, not 0"),
    (
        "c = tw.split_cols(a, 3)",
        "shape",
        r"`split_cols` takes columns in 3 equal parts, not 100",
    ),
    (
        "c = tw.split_cols(a, 0)",
        "shape",
        r"`split_cols` takes a number of parts of 1 or more, not 0",
    ),
    (
        "c = tw.split_cols(b.T, 2)",
        "shape",
        r"`split_cols` takes .* in 2 equal parts, not a block",
    ),
    ("c = tw.join_cols(a, b)", "shape", r"Join takes tiles with the same rows and format"),
    ("c = tw.join_cols(-a, a)", "shape", r"rows and format, not .*: write `\.to\(tw\.bf16\)`"),
    (
        "c = tw.join_cols(-a, tw.full(a.rows, 4, 1, tw.int8))",
        "shape",
        r"not .*: write `\.to\(tw\.fp32\)`",
    ),
    ("c = a[0]", "operation", r"A tile has no items: `x\[:, a:b\]` are columns of it"),
    ("c = a[0:4, :]", "operation", r"A tile has no items"),
    ("c = a[:, 0:8:2]", "operation", r"A tile has no items"),
    ("c = a[:, 3]", "operation", r"A tile has no items"),
    ("c = a[:, 90:101]", "shape", r"A tile of 100 columns has none from 90 to 100"),
    ("c = a[:, 8:8]", "shape", r"A slice takes a fixed number of columns, 1 or more, not 8 to 8"),
    ("c = a[:, 0.5:2]", "shape", r"from one number to another, not at 0\.5"),
    ("c = b.T[:, 0:2]", "shape", r"A slice takes a fixed number of columns, not a block"),
    ("a[0] = b", "operation", r"A tile has no items"),
    ("c, d = a", "operation", r"A tile has no items"),
    ("c = len(a)", "operation", r"A tile has no items"),
    # Conditions.
    ("c = a and b", "condition", r"a tile has one only on the chip: use `tw.where`"),
    ("c = float(tw.row_max(a))", "condition", r"a tile has numbers only on the chip"),
    ("c = [1, 2][a]", "condition", r"a tile has one only on the chip"),
    ("c = range(n)", "condition", r"a loop's index has one only on the chip"),
    ("c = 1 if n else 2", "condition", r"a loop's index has one only on the chip"),
    ("c = 1 if n > 3 else 2", "condition", r"a tile has one only on the chip"),
    # Tensors and views.
    ("c = tw.load_tile(a)", "operation", r"`load_tile` takes a tensor of the kernel, not Tile"),
    ("c = tw.load_tile(C[i, :])", "output", r"`C` is an output and cannot be read"),
    ("tw.store_tile(A[i, :], a)", "output", r"`A` is an input and cannot be written"),
    (
        "tw.store_tile(C[i, :], b)",
        "shape",
        r"Tile stored to `C\[i \+: \|i\|=64\[256 - i\], 0 \+: 100\]` must be .* not \|k\|",
    ),
    ("tw.store_tile(C[i, :], a > 0)", "format", r"`C` cannot take a condition"),
    ("c = A[i, :, 0]", "view", r"`A` has 2 axes and is indexed by 3"),
    ("c = A[256, 0]", "view", r"`A` has elements 0 to 255 along M, and is read at 256"),
    ("c = A[-257]", "view", r"`A` has elements 0 to 255 along M, and is read at -257"),
    ("c = A[n + 157]", "view", r"`A` has elements 0 to 255 along M, and is read at 157 to 256"),
    ("c = A[4 * n - 1]", "view", r"is read at -1 to 395"),
    ("c = A[:, i]", "view", r"`A` has 100 elements along K, and its loop 256"),
    ("c = A[i][i]", "view", r"`A` is already cut into blocks along M"),
    ("c = A[i, :][0]", "view", r"`A` is already cut into blocks along M"),
    ("c = A[::2]", "view", r"`A` must be sliced in steps of 1, not 2"),
    ("c = A[3:3]", "view", r"fixed number of elements, 1 or more, not 0"),
    ("c = A[n:]", "view", r"fixed number of elements, 1 or more, not 256 - n"),
    ("c = A[200:300]", "view", r"is read at 200 to 299"),
    ("c = A['x':]", "view", r"must be sliced by numbers and sums of indices, not 'x'"),
    ("c = A['x']", "view", r"must be indexed by numbers, indices and slices, not 'x'"),
    ("c = A[a]", "view", r"`A` cannot be indexed by a tile: rows by number take `tw.gather`"),
    ("c = list(A)", "view", r"`A` cannot be iterated over: use `tw.each` or `tw.metapipe`"),
    ("c = len(A[i])", "view", r"`A` has a block for its first axis, and no length"),
    ("c = C.dtype", "format", r"Format of output `C` is not known yet: declare it"),
    # Numbers from indices.
    ("c = A[i + 1]", "view", r"A block is not a number: compute with its `start` or `stop`, as in"),
    ("c = A[n // 2]", "view", r"`//` makes a number that is no sum of indices"),
    ("c = A[n % 2]", "view", r"`%` makes a number that is no sum of indices"),
    ("c = A[n * n]", "view", r"`\*` makes a number that is no sum of indices"),
    ("c = 2 * i.stop", "view", r"A block's end is moved by a number added to it"),
    ("c = a + i.stop", "operation", r"StopNumber must be used to slice or to end a loop"),
    # Tiles made.
    ("c = tw.zeros(0, 4)", "shape", r"numbers of 1 or more, dimensions, blocks .* not 0"),
    ("c = tw.zeros(n, 4)", "shape", r"for a shape, not"),
    ("c = tw.full(4, 4, 'x')", "operation", r"`full` takes a number, not 'x'"),
    ("c = tw.full(4, 4, 1.5, tw.int8)", "format", r"`full` of int8 takes an int, not 1.5"),
    ("c = tw.full(4, 4, 1, 'e2m1')", "format", r"not e2m1, which is not supported yet"),
    # Loops.
    ("tw.metapipe(0)", "loop", r"Extent of `metapipe` must be a whole number of 1 or more, not 0"),
    ("tw.metapipe(8, 2.5)", "loop", r"Block size of `metapipe` must be .* not 2.5"),
    ("tw.metapipe(8, until=a)", "loop", r"`until` must be a number, a sum of indices or the stop"),
    ("tw.each(a.rows)", "loop", r"Extent of `each` must be a whole number"),
    ("c = next(tw.each(3))", "loop", r"`each` must be what a `for` statement goes over"),
    ("tw.repeat(3)", "loop", r"`repeat` must stand outside all other loops"),
    ("tw.repeat(0)", "loop", r"Extent of `repeat` must be a whole number of 1"),
    (
        "for m, x in enumerate(tw.each(3)): pass",
        "state",
        r"`m` changes from iteration to iteration \(0, then 1\)",
    ),
    # Rows by number.
    ("c = tw.gather(B, a)", "shape", r"Row numbers must be a row or a column, not \|i\|=64"),
    ("c = tw.gather(B, tw.load_tile(B[0]))", "format", r"Row numbers must be int32, not bf16"),
    ("c = tw.gather(a, tw.load_tile(B[0]))", "format", r"Row numbers must be int32, not bf16"),
    ("c = tw.gather(B[0], tw.row_index(k))", "view", r"Rows by number must be of two axes"),
    ("c = tw.gather(C, tw.row_index(k))", "output", r"`C` is an output and cannot be read"),
    ("c = tw.gather(B, 3)", "operation", r"`gather` takes tiles, not int"),
    ("c = tw.gather(3, tw.row_index(k))", "operation", r"`gather` takes a tensor of the kernel"),
    ("c = tw.scatter(A, tw.row_index(k), b)", "output", r"`A` is an input and cannot be written"),
    (
        "c = tw.scatter(C, tw.row_index(k), b)",
        "output",
        r"`C` is an output and cannot be scattered to: name it on both sides",
    ),
    ("c = tw.scatter(C, a, b, op='max')", "operation", r"op must be 'store' or 'add', not 'max'"),
    # Parts without service.
    ("c = tw.dynamic(a)", "unserved", r"`tw.dynamic` is not supported yet"),
]

#: What is underlined where it is not what `c` would become; None for do not care.
UNDERLINED = {
    "for m, x in enumerate(tw.each(3)): pass": "m",
    "c = wide + 1.0 + a @ whole": "a @ whole",
    "a[0] = b": "a[0]",
    "c, d = a": "c, d",
    "c = a and b": None,
    "c = 1 if n else 2": None,
    "c = 1 if n > 3 else 2": None,
    "c = A[i + 1]": "i + 1",
    "c = A[n // 2]": "n // 2",
    "c = A[n % 2]": "n % 2",
    "c = A[n * n]": "n * n",
    "tw.metapipe(0)": "tw.metapipe(0)",
    "tw.metapipe(8, 2.5)": "tw.metapipe(8, 2.5)",
    "tw.metapipe(8, until=a)": "tw.metapipe(8, until=a)",
    "tw.each(a.rows)": "tw.each(a.rows)",
    "tw.repeat(3)": "tw.repeat(3)",
    "tw.repeat(0)": "tw.repeat(0)",
    "c = next(tw.each(3))": "tw.each(3)",
}


def trace(line):
    source = PROGRAM.format(line=line)
    file = "one_line.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = {"tw": tw, "np": np}
    exec(compile(source, file, "exec"), names)
    kernel = tw.kernel("A[M, K], B[K, K] -> C[M, K]")(names["program"])
    kernel.trace(dtype=tw.bf16, M=256, K=100)


@pytest.mark.parametrize(("line", "kind", "message"), LINES, ids=[x[0] for x in LINES])
def test_a_line_is_refused_with_its_reason_and_its_part_underlined(line, kind, message):
    with pytest.raises(tw.ProgramError, match=message) as caught:
        trace(line)
    error = caught.value
    assert error.kind == kind
    assert error.where == "one_line.py:8"
    part = UNDERLINED.get(line, line.removeprefix("c = "))
    if part is not None:
        _, shown, carets = str(error).split("\n")
        assert shown.strip() == line
        start = carets.index("^")
        assert shown[start : start + carets.count("^")] == part
    assert not re.search(r"\?\d", error.message), "an index must have its name"


def test_the_line_of_the_page_is_shown_as_the_page_shows_it():
    def gemm(A, B, C):
        acc = tw.zeros(128, 64)
        for k in tw.metapipe(256, 128):
            a, b = tw.load_tile(A[0:128, k]), tw.load_tile(B[0:64, 0:64])
            acc += a @ b
        tw.store_tile(C[:, :], acc)

    kernel = tw.kernel("A[M, K], B[K, N] -> C[M, N]")(gemm)
    with pytest.raises(tw.ProgramError) as caught:
        kernel.trace(M=128, N=64, K=256, dtype=tw.bf16)
    place, shown, carets = str(caught.value).split("\n")
    assert re.fullmatch(
        r"test_messages.py:\d+: `@` sums over \|k\|=128\[256 - k\] columns and 64 rows", place
    )
    assert shown == "    acc += a @ b"
    assert carets == "           ^^^^^"


def test_an_error_of_the_second_pass_names_the_number_that_moved():
    def reaching(A, B, C):
        first = 0
        for i in tw.metapipe(256, 64):
            x = tw.load_tile(A[i, first : first + 64])
            tw.store_tile(C[i, 0:64], x)
            first += 64

    kernel = tw.kernel("A[M, K], B[K, K] -> C[M, K]")(reaching)
    with pytest.raises(
        tw.ProgramError,
        match=r"read at 64 to 127; `first` was 0 in the first iteration and is 64 now",
    ):
        kernel.trace(dtype=tw.bf16, M=256, K=100)


def test_a_product_of_integers_in_fp32_is_told_to_cast_its_operands():
    def scaled(A, C):
        a = tw.load_tile(A)
        tw.store_tile(C, a @ a.T * 0.5)

    kernel = tw.kernel("A[M, N]: int8 -> C[M, M]")(scaled)
    with pytest.raises(tw.ProgramError, match=r"int32 and a float; products of int8 are int32: wr"):
        kernel.trace(M=4, N=4)


def test_outside_a_kernel_operations_are_refused():
    with pytest.raises(tw.ProgramError, match="`metapipe` must be called inside a kernel"):
        tw.metapipe(4)
    with pytest.raises(tw.ProgramError, match="`full` must be called inside a kernel"):
        tw.zeros(4, 4)


def test_tiles_and_tensors_of_another_trace_are_refused():
    kept = []

    def keep(A, C):
        kept.extend((A, tw.load_tile(A)))
        tw.store_tile(C, kept[1])

    tw.kernel("A[M, N] -> C[M, N]")(keep).trace(M=2, N=2, dtype=tw.bf16)

    def reuse_tile(A, C):
        tw.store_tile(C, kept[1])

    def reuse_tensor(A, C):
        tw.store_tile(C, tw.load_tile(kept[0]))

    for function, noun in ((reuse_tile, "tile"), (reuse_tensor, "tensor")):
        with pytest.raises(tw.ProgramError, match=f"takes a {noun} of another trace"):
            tw.kernel("A[M, N] -> C[M, N]")(function).trace(M=2, N=2, dtype=tw.bf16)


def test_every_kind_of_error_has_a_rule():
    from sw.language.program_error import RULES

    assert {line[1] for line in LINES} | {
        "state",
        "carry",
        "scope",
        "exit",
        "signature",
        "argument",
        "schedule",
        "cells",
        "output",
    } == set(RULES)
