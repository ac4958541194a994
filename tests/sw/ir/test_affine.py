"""Affine forms, bounds and axes against plain arithmetic."""

import random

import pytest

from sw.ir.affine import Affine, Axis, Bound, size_symbol

SYMBOLS = ("i", "j", "|i|")


def form(draw):
    total = Affine((), draw.randint(-9, 9))
    for symbol in SYMBOLS:
        total = total + Affine.of(symbol) * draw.randint(-3, 3)
    return total


def test_sums_products_and_substitution_commute_with_evaluation(seed):
    draw = random.Random(seed)
    for _ in range(300):
        a, b, factor = form(draw), form(draw), draw.randint(-3, 3)
        at = {symbol: draw.randint(-5, 5) for symbol in SYMBOLS}
        assert (a + b).evaluate(at) == a.evaluate(at) + b.evaluate(at)
        assert (a - b).evaluate(at) == a.evaluate(at) - b.evaluate(at)
        assert (a * factor).evaluate(at) == a.evaluate(at) * factor
        inner = {**at, "i": b.evaluate(at)}
        assert a.substitute({"i": b}).evaluate(at) == a.evaluate(inner)
        assert Bound.least([a, b]).evaluate(at) == min(a.evaluate(at), b.evaluate(at))
        assert (Bound.least([a, b]) + 4).evaluate(at) == min(a.evaluate(at), b.evaluate(at)) + 4
        assert a - a == Affine()
        assert a + b == b + a


def test_bounds_are_reached_and_not_passed(seed):
    draw = random.Random(seed)
    for _ in range(100):
        a = form(draw)
        ranges = {symbol: (draw.randint(-3, 0), draw.randint(0, 2)) for symbol in SYMBOLS}
        low, high = a.bounds(ranges)
        values = [
            a.evaluate({"i": i, "j": j, "|i|": size})
            for i in range(ranges["i"][0], ranges["i"][1] + 1)
            for j in range(ranges["j"][0], ranges["j"][1] + 1)
            for size in range(ranges["|i|"][0], ranges["|i|"][1] + 1)
        ]
        assert (low, high) == (min(values), max(values))
    assert Affine.of("n").bounds({}) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Affine(), "0"),
        (Affine.of("i"), "i"),
        (Affine.of("i") * -1, "-i"),
        (Affine.of("i") * -2 + 100, "100 - 2*i"),
        (Affine.of("i") + Affine.of("|i|") - 3, "i + |i| - 3"),
        (Bound((Affine.of("i"), Affine((), 8))), "min(i, 8)"),
        (Axis(8), "8"),
        (Axis("|i|", (Affine((), 9) - Affine.of("i"),)), "|i|[9 - i]"),
    ],
)
def test_text(value, text):
    assert str(value) == text


def test_an_axis_ends_at_the_least_of_size_and_rests_and_never_below_nothing():
    axis = Axis(size_symbol("i"), (Affine((), 10) - Affine.of("i"), Affine.of("j")))
    assert axis.room({"|i|": 4}) == 4
    for i, j, extent in ((0, 9, 4), (8, 9, 2), (0, 3, 3), (12, 9, 0), (0, -1, 0)):
        assert axis.extent({"|i|": 4, "i": i, "j": j}) == extent
    assert axis.substitute({"|i|": Affine((), 4)}).size == 4
    assert axis.substitute({"|i|": Affine.of("|n|")}).size == "|n|"
    # A symbol that is not replaced stays, in the size as in the rests.
    moved = axis.substitute({"i": Affine.of("n") * 2})
    assert moved.size == "|i|"
    assert moved.symbols == ("|i|", "n", "j")
    assert axis.substitute({}) == axis == axis.substitute({"k": Affine()})
    assert (axis.full, axis.one, Axis(1).one, Axis(1, axis.rests).one) == (
        False,
        False,
        True,
        False,
    )
