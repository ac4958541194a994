"""The functions in numpy: error, special values, borders, and what they refuse."""

import decimal
from decimal import Decimal

import numpy as np
import pytest
from amaranth.hdl import Fragment

from hw.arch.errors import BadInputError
from hw.float.special_functions import UNITS
from hw.numeric import functions
from hw.numeric.formats import fp32
from hw.numeric.function_tables import exp2_table
from hw.numeric.table import Table, column_shape
from tests.hw.float.stimuli import (
    arguments,
    assert_special,
    exact_values,
    exactly,
    table_borders,
    ulps,
)

#: Most units in the last place that an answer may be off.
LIMIT_ULP = 2
NAMES = sorted(UNITS)


def answers(name, bits, width=24):
    return getattr(functions, name)(fp32.from_bits(bits), width)


def worst(name, bits, width=24):
    """Largest error; infinities beyond the format's range and NaN must be where they belong."""
    x, answer = fp32.from_bits(bits), answers(name, bits, width)
    exact = exact_values(name, x)
    assert_special(answer, exact, width)
    return ulps(answer, exact, width).max()


@pytest.mark.parametrize("width", [24, 16, 11, 8])
@pytest.mark.parametrize("name", NAMES)
def test_error(name, width, seed):
    limit = 1.5
    assert 0.5 < worst(name, arguments(100_000, seed), width) <= limit, f"seed {seed}"


@pytest.mark.parametrize("name", NAMES)
def test_error_round_table_borders(name):
    bits = table_borders(name)
    assert len(bits) > 50_000
    assert worst(name, bits[:: max(1, len(bits) // 50_000)]) <= LIMIT_ULP


@pytest.mark.parametrize("name", NAMES)
def test_error_by_decimals(name, seed):
    """A second opinion that uses no binary floating point, where the answer is a normal fp32."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, 800) << 31 | rng.integers(110, 133, 800) << 23
    bits |= rng.integers(0, 1 << 23, 800)
    if name in ("log2", "rsqrt"):
        bits &= 0x7FFFFFFF
    x, answer = fp32.from_bits(bits), answers(name, bits)
    with decimal.localcontext(decimal.Context(prec=40)):
        for argument, got in zip(x.tolist(), answer.tolist(), strict=True):
            exact = exactly(name, Decimal(argument))
            if exact:
                unit = Decimal(2) ** (int(np.frexp(abs(float(exact)))[1]) - 24)
                assert abs(Decimal(got) - exact) <= LIMIT_ULP * unit, (argument, got, exact)


INF, NAN = np.inf, np.nan
SPECIAL = {
    # argument: answer
    "exp": [(0, 1), (-0.0, 1), (INF, INF), (-INF, 0), (89, INF), (-104, 0), (NAN, NAN)],
    "exp2": [
        *((0, 1), (-0.0, 1), (INF, INF), (-INF, 0), (128, INF), (127, 2.0**127), (3, 8), (-1, 0.5)),
        *((-126, 2.0**-126), (-149, 2.0**-149), (-150, 0), (-149.5, 2.0**-149), (NAN, NAN)),
    ],
    "log2": [(1, 0), (0, -INF), (-0.0, -INF), (INF, INF), (-1, NAN), (-INF, NAN), (NAN, NAN)]
    + [(2.0**e, e) for e in (-149, -127, -126, -1, 1, 10, 127)],
    "reciprocal": [
        *((1, 1), (-1, -1), (2, 0.5), (0, INF), (-0.0, -INF), (INF, 0), (-INF, -0.0), (NAN, NAN)),
        *((2.0**-128, 2.0**128), (2.0**127, 2.0**-127), (-(2.0**-149), -INF), (2.0**-127, 2**127)),
    ],
    "rsqrt": [
        *((1, 1), (4, 0.5), (0.25, 2), (0, INF), (-0.0, -INF), (INF, 0), (-1, NAN), (-INF, NAN)),
        *((2.0**-148, 2.0**74), (NAN, NAN)),
    ],
    "sigmoid": [(0, 0.5), (-0.0, 0.5), (INF, 1), (-INF, 0), (40, 1), (-104, 0), (NAN, NAN)],
    "tanh": [
        *((0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1), (20, 1), (-20, -1), (NAN, NAN)),
        *((2.0**-149, 2.0**-149), (-(2.0**-30), -(2.0**-30))),
    ],
}


@pytest.mark.parametrize("name", NAMES)
def test_special_values(name):
    with np.errstate(over="ignore"):
        arguments_, expected = np.array(SPECIAL[name], np.float64).astype(np.float32).T
    got = getattr(functions, name)(arguments_)
    expected = np.where(np.isnan(expected), fp32.from_bits(fp32.canonical_nan), expected)
    np.testing.assert_array_equal(fp32.bits_of(got), fp32.bits_of(expected))


@pytest.mark.parametrize("width", [4, 8, 16])
@pytest.mark.parametrize("name", NAMES)
def test_answers_have_the_width(name, width, seed):
    """Bits below the width are 0, and neighbours in the width stay reachable."""
    bits = fp32.bits_of(answers(name, arguments(5000, seed), width))
    assert not (bits & ((1 << (24 - width)) - 1)).any()
    assert np.unique(bits).size > 10


def test_tables_shrink_with_the_width():
    tables = [exp2_table(width) for width in (24, 16, 8)]
    sizes = [
        sum(column_shape(column)[0] * len(column) for column in (table.c0, table.c1, table.c2))
        for table in tables
    ]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > 10 * sizes[2]


def test_a_broken_table_is_caught(monkeypatch, seed):
    """A coefficient of one row off by 64 units, 2 in an answer's last place."""
    table = exp2_table(24)
    broken = Table(
        **{
            name: getattr(table, name)
            for name in ("index_bits", "remainder_bits", "fraction_bits", "c1", "c2")
        },
        c0=(*table.c0[:5], table.c0[5] + 64, *table.c0[6:]),
    )
    monkeypatch.setattr(functions, "exp2_table", lambda width: broken)
    assert worst("exp2", arguments(100_000, seed)) > LIMIT_ULP


@pytest.mark.parametrize("width", [3, 25, 24.0, True])
def test_a_width_is_refused(width):
    message = f"^Function width must be an integer from 4 to 24, not {width!r}$"
    with pytest.raises(BadInputError, match=message):
        functions.tanh(np.zeros(1, np.float32), width)


def test_an_argument_of_another_type_is_refused():
    with pytest.raises(BadInputError, match="^Function argument must be of float32, not float64$"):
        functions.exp2(np.zeros(1))


def test_units_have_cycles():
    for make in UNITS.values():
        unit = make(width=8)
        assert 6 <= unit.cycles <= 14
        # Amaranth warns of components that nobody elaborates.
        Fragment.get(unit, None)
