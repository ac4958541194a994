"""Programs that the tracer refuses: each with its line, and a message that names the culprit."""

import inspect
import re

import pytest

import sw.language as tw

SIZES = {"M": 256, "K": 256, "N": 256}


def refused(function, *, kind, message, dtype=tw.bf16):
    """Trace a program that must be refused at the line marked with an arrow."""
    lines, first = inspect.getsourcelines(function)
    marked = [first + n for n, line in enumerate(lines) if line.rstrip().endswith("# <--")]
    assert len(marked) == 1, "one line of the program must be marked"
    kernel = tw.kernel("A[M, K], B[K, N] -> C[M, N]")(function)
    with pytest.raises(tw.ProgramError, match=message) as caught:
        kernel.trace(dtype=dtype, **SIZES)
    error = caught.value
    assert (error.kind, error.where) == (kind, f"test_refusals.py:{marked[0]}")
    assert error.rule and error.rule not in error.message
    assert "\n" not in error.message
    # The source line is shown with carets below it.
    assert re.search(r"\n    .*# <--\n +\^+$", str(error))
    return error


def counted_start(A, B, C):
    k0 = 0
    for i in tw.metapipe(256, 64):
        x = tw.load_tile(A[i, k0 : k0 + 64])
        tw.store_tile(C[i, 0:64], x)
        k0 += 64  # <--


def first_iteration(A, B, C):
    first = True
    for i in tw.metapipe(256, 64):
        x = tw.load_tile(A[i, :])
        if first:
            x = x + 1.0
            first = False
        tw.store_tile(C[i, :], x)  # <--


def fifth_iteration(A, B, C):
    n = 0
    for i in tw.metapipe(256, 64):
        x = tw.load_tile(A[i, :])
        if n == 5:
            x = x + 1.0
        n += 1  # <--
        tw.store_tile(C[i, :], x)


def exchange(A, B, C):
    a, b = tw.zeros(1, 256), tw.full(1, 256, 1)
    for i in tw.metapipe(256, 64):
        x = tw.load_tile(A[i, :])
        tw.store_tile(C[i, :], x + a)  # <--
        a, b = b, a


def rotation(A, B, C):
    a = b = tw.zeros(1, 256)
    c = tw.full(1, 256, 1)
    for i in tw.metapipe(256, 64):
        x = tw.load_tile(A[i, :])
        tw.store_tile(C[i, :], x + a)  # <--
        a, b, c = b, c, a


def list_of_tiles(A, B, C):
    tiles = []
    for i in tw.metapipe(256, 64):
        tiles.append(tw.load_tile(A[i, :]))  # <--
        tw.store_tile(C[i, :], tiles[0])


def inner_tile(A, B, C):
    for i in tw.metapipe(256, 64):
        for k in tw.metapipe(256, 64):
            x = tw.load_tile(A[i, k])
        tw.store_tile(C[i, 0:64], x)  # <--


def left_early(A, B, C):
    for i in tw.metapipe(256, 64):
        x = tw.load_tile(A[i, :])
        tw.store_tile(C[i, :], x)
        break  # <--


def tile_condition(A, B, C):
    for i in tw.metapipe(256, 64):
        x = tw.load_tile(A[i, :])
        if x > 0:  # <--
            tw.store_tile(C[i, :], x)


def index_condition(A, B, C):
    for i in tw.metapipe(256, 64):
        if i == 0:  # <--
            tw.store_tile(C[i, :], tw.load_tile(A[i, :]))


#: The nine programs of the language page, and the tenth that its text adds.
STATE = [
    (counted_start, "state", r"`k0` changes from iteration to iteration \(64, then 128\)"),
    (
        first_iteration,
        "state",
        r"first records `map` where the second records `store`.*`first` was "
        r"True in the first and is False in the second",
    ),
    (fifth_iteration, "state", r"`n` changes from iteration to iteration \(1, then 2\)"),
    (exchange, "carry", r"different tiles from before the loop \(`a`, then `b`\).*exchange"),
    (rotation, "carry", r"different tiles from before the loop \(`\w+`, then `c`\).*exchange"),
    (list_of_tiles, "state", r"`tiles` changes from iteration to iteration \(1 items, then 2"),
    (inner_tile, "scope", r"`x` was made inside the loop over `k` \(line \d+\) and is read after"),
    (left_early, "exit", r"over `i` must not be left by `break` or `return`"),
    (tile_condition, "condition", r"a tile has one only on the chip: use `tw.where`"),
    (index_condition, "condition", r"a tile has one only on the chip: use `tw.where`"),
]


@pytest.mark.must("slice-j", goal="nine programs refused with line and rule")
@pytest.mark.parametrize(
    ("program", "kind", "message"), STATE, ids=lambda x: getattr(x, "__name__", "")
)
def test_slice_j_python_state_that_changes_is_refused(program, kind, message, figure):
    error = refused(program, kind=kind, message=message)
    figure(f"{program.__name__}: {error.where}: {error.kind}")


# Tiles that are no carries.


def stale_tile(A, B, C):
    kept = {}
    for i in tw.metapipe(256, 64):
        x = tw.load_tile(A[i, :])
        x = kept.setdefault(0, x)
        tw.store_tile(C[i, :], x)  # <--


def outside_then_inside(A, B, C):
    kept = {0: tw.zeros(1, 256)}
    for i in tw.metapipe(256, 64):
        x = kept.pop(0, None)
        y = tw.load_tile(A[i, :])
        z = y if x is None else x
        tw.store_tile(C[i, :], y + tw.col_sum(z))  # <--


def growing_carry(A, B, C):
    x = tw.zeros(256, 1)
    for _ in tw.each(256):
        x = tw.join_cols(x, x)  # <--
    tw.store_tile(C, x)


def narrowing_carry(A, B, C):
    x = tw.full(1, 256, 0.1)
    for i in tw.each(256):
        tw.store_tile(C[i, :], x)
        x = tw.load_tile(A[i, :])  # <--


def late_widening(A, B, C):
    a = b = tw.zeros(1, 256)
    for i in tw.each(256):
        tw.store_tile(C[i, :], a + b)
        a = tw.buffer(b)  # <--
        b = b + 1.5


def two_ends_of_a_skipped_loop(A, B, C):
    a, b = tw.zeros(1, 256), tw.full(1, 256, 1)
    for i in tw.metapipe(256, 64):
        for j in tw.metapipe(256, 64, until=i.start):  # <--
            a = b = tw.col_sum(tw.load_tile(A[j, :])) + a + b
        tw.store_tile(C[i, :], tw.load_tile(A[i, :]) + a)


def first_pass_tile_after_its_loop(A, B, C):
    kept = []
    for i in tw.metapipe(256, 64):
        x = tw.load_tile(A[i, :])
        kept[:] = kept or [x]
        tw.store_tile(C[i, :], x)
    tw.store_tile(C, kept[0])  # <--


def number_from_an_index(A, B, C):
    end = 0
    for i in tw.each(256):
        end = end + i  # <--
        tw.store_tile(C[i, :], tw.load_tile(A[i, :]))


def numbers_in_a_dictionary(A, B, C):
    counts = {"done": 0}
    for i in tw.each(256):
        counts["done"] += 1  # <--
        tw.store_tile(C[i, :], tw.load_tile(A[i, :]))


def numbers_deep_inside(A, B, C):
    counts = [{"done": (0,)}]
    for i in tw.each(256):
        counts[0]["done"] = (counts[0]["done"][0] + 1,)  # <--
        tw.store_tile(C[i, :], tw.load_tile(A[i, :]))


def return_inside_a_loop(A, B, C):
    for i in tw.each(256):
        tw.store_tile(C[i, :], tw.load_tile(A[i, :]))
        return  # <--


class Hidden:
    """State that no local variable shows."""

    n = 0

    def next(self):
        self.n += 1
        return self.n


def hidden_choice(A, B, C):
    hidden = Hidden()
    for i in tw.metapipe(256, 64):
        x = tw.load_tile(A[i, :])
        y = tw.load_tile(B[i, :])
        tw.store_tile(C[i, :], x if hidden.next() == 1 else y)  # <--


def hidden_number(A, B, C):
    hidden = Hidden()
    for i in tw.metapipe(256, 64):
        x = tw.load_tile(A[i, :])
        tw.store_tile(C[i, :], x * hidden.next())  # <--


def hidden_view(A, B, C):
    hidden = Hidden()
    for i in tw.metapipe(256, 64):
        x = tw.load_tile(A[hidden.next(), :])  # <--
        tw.store_tile(C[i, :], tw.load_tile(A[i, :]) + x)


def hidden_tail(A, B, C):
    hidden = Hidden()
    for i in tw.metapipe(256, 64):
        tw.store_tile(C[i, :], tw.load_tile(A[i, :]))
        if hidden.next() == 1:
            tw.load_tile(A[i, :])  # <--


CARRIES = [
    (hidden_choice, "state", r"records `store` where the second records `store` \(`x`, then `y`\)"),
    (hidden_number, "state", r"records `map` where the second records `map` \(`1`, then `2`\)"),
    (hidden_view, "state", r"first records `load` where the second records `load`, with other"),
    (hidden_tail, "state", r"first records `load` where the second records nothing"),
    (stale_tile, "carry", r"A tile of the first iteration \(`x`, then `x`\) is read by later"),
    (outside_then_inside, "state", r"one from before the loop, one of the iteration itself"),
    (growing_carry, "carry", r"`x` must keep its shape: tile<256 x 1, int8> becomes tile<256 x 2"),
    (
        narrowing_carry,
        "carry",
        r"`x` must start in the format it goes on in: it starts in fp32 and "
        "goes on in bf16",
    ),
    (
        late_widening,
        "carry",
        r"`a` must start in the format it goes on in: it starts in int8 and "
        "goes on in fp32",
    ),
    (two_ends_of_a_skipped_loop, "carry", r"ends the loop for two tiles that start differently"),
    (first_pass_tile_after_its_loop, "scope", r"made inside the loop over `i`"),
    (number_from_an_index, "state", r"`end` changes from iteration to iteration"),
    (numbers_in_a_dictionary, "state", r"`counts` changes from iteration to iteration"),
    (numbers_deep_inside, "state", r"`counts` changes from iteration to iteration"),
    (return_inside_a_loop, "exit", r"must not be left by `break` or `return`"),
]


@pytest.mark.parametrize(
    ("program", "kind", "message"), CARRIES, ids=lambda x: getattr(x, "__name__", "")
)
def test_tiles_and_numbers_that_are_no_carries_are_refused(program, kind, message):
    refused(program, kind=kind, message=message)
