"""What users of numpy and torch type: one line at the user's line says what to write."""

import linecache

import numpy as np
import pytest

import tilewright as tw
from sw.language import idioms

PROGRAM = """\
def program(X, Y):
    M, N = X.shape
    for i in tw.metapipe(M, 8):
        x = tw.load_tile(X[i, :])
        {line}
        tw.store_tile(Y[i, :], x)
"""

#: Line, what the message says, and what the carets underline.
LINES = [
    ("np.exp(x)", "`np.exp` takes arrays; a tile is none: write `tw.exp`", "np.exp(x)"),
    ("np.maximum(x, 0)", "write `tw.maximum`", None),
    ("np.add(x, x)", "write `x + y`", None),
    ("np.matmul(x, x)", "write `tw.matmul`", None),
    ("np.sum(x, axis=1)", "`np.sum` takes arrays; a tile is none: write `tw.row_sum(x)`", None),
    ("np.max(x)", "write `tw.row_max(x)` for axis 1, `tw.col_max(x)` for axis 0", None),
    ("np.add.reduce(x)", "`np.sum` takes arrays", None),
    ("np.where(x > 0, x, x)", "write `tw.where`", None),
    ("np.concatenate([x, x])", "write `tw.join_cols(x, y)`", None),
    ("np.asarray(x)", "`np.asarray` takes arrays", None),
    ("np.sin(x)", "`np.sin` takes arrays; a tile is none", None),
    ("x.max(axis=1)", "A tile has no `max`: write `tw.row_max(x)` for axis 1", "x.max"),
    ("x.sum(-1)", "A tile has no `sum`: write `tw.row_sum(x)` for axis 1", "x.sum"),
    ("x.mean()", "write `tw.row_mean(x)`", None),
    ("x.exp()", "A tile has no `exp`: write `tw.exp`", None),
    ("x.astype(np.float32)", "write `x.to(tw.fp32)`", None),
    ("x.float()", "write `x.to(tw.fp32)`", None),
    ("x.reshape(1, 8)", "`tw.split_cols` and `tw.join_cols`", None),
    ("x.transpose()", "write `x.T`", None),
    ("x.item()", "index the tensor before `tw.load_tile`", None),
    ("x.row", "A tile has no `row`; did you mean 'rows'", None),
    ("x.foo", "A tile has no `foo`", None),
    ("x ** 2", "A tile has no operator `**`: write `x * x`", "x ** 2"),
    ("x // 2", "A tile has no operator `//`", None),
    ("x % 2", "A tile has no operator `%`", None),
    ("(x > 0) & (x < 1)", "A tile has no operator `&`: write `tw.where`", None),
    ("~(x > 0)", "A tile has no operator `~`", None),
    ("float(x)", "use `tw.exp` and the like", None),
    ("math.exp(x)", "functions of `math` need a number", None),
    ("len(x)", "A tile has no items", None),
    ("x[0]", "A tile has no items", None),
    ("[each for each in x]", "A tile has no items", None),
    ("list(x)", "A tile has no items", None),
    ("x * [1, 2]", "`mul` takes tiles, not list: make it an input of the kernel", None),
    ("x * np.ones(3)", "`mul` takes tiles, not ndarray: make it an input", None),
    ("np.ones(3) * x", "`mul` takes tiles, not ndarray: make it an input", None),
    ("x + X", "`add` takes tiles, not TensorView: load one by `tw.load_tile`", None),
    ("X @ X", "A tensor has no operator `@`: load a tile of it by `tw.load_tile`", "X @ X"),
    ("X + 1", "A tensor has no operator `+`: load a tile", None),
    ("X.sum(axis=1)", "A tensor has no `sum`: load a tile of it by `tw.load_tile` and write", None),
    ("np.exp(X)", "a tensor is none: load a tile of it by `tw.load_tile` and write `tw.exp`", None),
    ("Y[i] = x", "`Y` is written by `tw.store_tile(Y[i, :], tile)`, not by an", "Y[i]"),
    ("Y[i, 0:4] = x", "`tw.store_tile(Y[i, 0:4], tile)`", None),
    (
        "tw.row_sum(x, axis=1)",
        "`tw.row_sum(x)`; axis 0 is `tw.col_sum(x)`",
        "tw.row_sum(x, axis=1)",
    ),
    (
        "tw.row_mean(x, axis=0)",
        "`tw.row_mean(x)`; axis 0 is `tw.col_sum(x) / rows`, by the number of rows",
        "tw.row_mean(x, axis=0)",
    ),
    ("tw.col_mean(x)", "tilewright has no `col_mean`: write `tw.col_sum(x) / rows`", None),
    ("tw.col_max(x, dim=0)", "`tw.col_max(x)`; axis 1 is `tw.row_max(x)`", None),
    ("tw.exp(x, out=x)", "`exp` takes (x), not `out=", None),
    ("tw.exp()", "`exp` takes (x), not 0 arguments", None),
    ("tw.full((i, 1), 0)", "rows and columns apart: write `tw.full(rows, cols, value)`", None),
    ("tw.full((i, 1), 0, 1)", "`full` takes rows and columns apart", None),
    ("tw.zeros((8, 8))", "write `tw.zeros(rows, cols)`", None),
    ("tw.sqrt(2.0)", "`sqrt` takes a tile, not only numbers: for numbers use the module", None),
    ("tw.maximum(1, 2)", "takes a tile, not only numbers", None),
    ("tw.sum(x)", "tilewright has no `sum`: write `tw.row_sum(x)`", "tw.sum"),
    ("tw.softmax(x)", "tilewright has no `softmax`: write `e = tw.exp(x - tw.row_max(x))`", None),
    ("tw.relu(x)", "write `tw.maximum(x, 0.0)`", None),
    ("tw.dot(x, x)", "write `a @ b`", None),
    ("tw.range(4)", "write `tw.each(n)`", None),
    ("tw.sinh(x)", "has no `sinh`: write `(tw.exp(x) - tw.exp(-x)) * 0.5`", None),
    ("tw.lod_tile(x)", "tilewright has no `lod_tile`; did you mean 'load_tile'", None),
]


def traced(line):
    source = PROGRAM.format(line=line)
    linecache.cache["hints.py"] = (len(source), None, source.splitlines(True), "hints.py")
    names = {"tw": tw, "np": np, "math": __import__("math")}
    exec(compile(source, "hints.py", "exec"), names)
    return tw.kernel("X[M, N] -> Y[M, N]")(names["program"]).trace(M=16, N=8, dtype=tw.bf16)


@pytest.mark.parametrize(("line", "message", "underlined"), LINES, ids=[each[0] for each in LINES])
def test_a_habit_is_refused_at_its_line_with_what_to_write(line, message, underlined):
    with pytest.raises(tw.ProgramError) as caught:
        traced(line)
    error = caught.value
    assert error.message.startswith("hints.py:5: ") and "\n" not in error.message
    assert message in error.message, error.message
    _, text, carets = str(error).split("\n")
    assert text.strip() == line
    if underlined is not None:
        start = carets.index("^")
        assert text[start : start + carets.count("^")] == underlined


@pytest.mark.parametrize("line", ["x = np.float32(2) * x", "x = x - np.float32(1)", "x = 1 - x"])
def test_numbers_of_numpy_are_numbers(line):
    assert traced(line)


def test_a_tile_still_answers_what_it_is_asked_about_itself():
    seen = set()

    @tw.kernel("X[M, N] -> Y[M, N]")
    def program(X, Y):
        for i in tw.metapipe(16, 8):
            x = tw.load_tile(X[i, :])
            seen.add((hasattr(x, "max"), hasattr(x, "rows"), hasattr(X, "sum")))
            tw.store_tile(Y[i, :], x)

    program.trace(M=16, N=8, dtype=tw.bf16)
    assert seen == {(False, True, False)}


@pytest.mark.parametrize(
    ("dtype", "hint"),
    [
        (np.int64, "not int64; write `A.astype(np.int32)`, or `np.int8` for a product"),
        (np.uint8, "not uint8; write `A.astype(np.int32)`"),
        (bool, "not bool; write `A.astype(np.int32)`"),
        (np.float64, "not float64; write `A.astype(np.float32)`, or `ml_dtypes.bfloat16` for a"),
        (np.complex64, "not complex64"),
    ],
)
def test_operands_of_another_type_say_how_to_convert_them(dtype, hint):
    @tw.kernel("A[M, N] -> C[M, N]")
    def copy(A, C):
        for i in tw.metapipe(4):
            tw.store_tile(C[i, :], tw.load_tile(A[i, :]))

    with pytest.raises(tw.BadInputError) as caught:
        copy(np.ones((4, 4), dtype))
    assert hint in str(caught.value)


def test_only_a_mistake_costs_the_search_for_a_hint(monkeypatch):
    """Recording asks the values of a program for names that only some of them have."""
    monkeypatch.setattr(idioms, "missing_name", None)
    traced("tw.exp(x)")
    with pytest.raises(TypeError, match="not callable"):
        traced("x.foo")
