"""The numpy answers against exact rationals, against long integers, and within their bound."""

import ml_dtypes
import numpy as np
import pytest

from hw.arch.errors import BadInputError
from hw.numeric import reference
from hw.numeric.formats import bf16, fp32, int8, int32
from hw.numeric.reference import cast, dot, error_bound, mac, matmul
from tests.hw.float.triples import Triples, edge_triples, random_triples
from tests.hw.numeric.oracle import mac_by_integers, mac_by_rationals

SEED = 20261120


def mac_bits(triples):
    sums = mac(fp32.from_bits(triples.acc), bf16.from_bits(triples.a), bf16.from_bits(triples.w))
    return fp32.bits_of(sums)


def disagreements(triples, oracle):
    """Up to five triples, in hex, on which the oracle says otherwise."""
    answers = mac_bits(triples)
    found = []
    for acc, a, w, got in zip(*(column.tolist() for column in (*triples, answers)), strict=True):
        expected = oracle(acc, a, w)
        if got != expected:
            found.append(f"{a:04x} * {w:04x} + {acc:08x} = {expected:08x}, not {got:08x}")
    return found[:5]


def mixed(rng, shape):
    """bf16 values whose exponents differ enough for the order of a sum to matter."""
    values = rng.standard_normal(shape) * np.exp2(rng.integers(-10, 11, shape))
    return values.astype(bf16.dtype)


def test_mac_equals_exact_rationals():
    assert disagreements(random_triples(24_000, SEED), mac_by_rationals) == []


def test_mac_equals_long_integers():
    assert disagreements(random_triples(60_000, SEED + 1), mac_by_integers) == []


def test_mac_equals_long_integers_at_every_edge():
    assert disagreements(edge_triples(), mac_by_integers) == []


def test_oracles_agree_at_the_edges():
    edges = edge_triples()
    sample = Triples(*(column[::17] for column in edges))
    for triple in zip(*(column.tolist() for column in sample), strict=True):
        assert mac_by_rationals(*triple) == mac_by_integers(*triple), triple


def narrow(x):
    return reference.canonical(x.astype(np.float32))


def ties_away(acc, a, w):
    """Round halves up in magnitude (normal results only)."""
    bits = (acc + a * w).view(np.int64) + (1 << 28)
    return narrow((bits & ~((1 << 29) - 1)).view(np.float64))


def truncated(acc, a, w):
    """Drop what falls below the sum's last place before rounding: the sticky bit is lost."""
    unit = np.spacing(np.abs(acc).astype(np.float32)).astype(np.float64) / 4
    return narrow(acc + np.trunc(a * w / unit) * unit)


def flushed(acc, a, w):
    """Replace subnormal results by zero."""
    result = narrow(acc + a * w)
    return np.where(np.abs(result) < np.float32(2.0**-126), np.float32(0), result)


FAULTS = {
    "product rounded apart": lambda acc, a, w: narrow(acc + narrow(a * w)),
    "ties away from zero": ties_away,
    "sticky lost": truncated,
    "subnormals flushed": flushed,
    "NaN not canonical": lambda acc, a, w: (acc + a * w).astype(np.float32),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_is_caught(monkeypatch, fault):
    monkeypatch.setattr(reference, "_fma", FAULTS[fault])
    with np.errstate(all="ignore"):
        assert disagreements(random_triples(24_000, SEED), mac_by_integers) != []


def test_deep_cancellation_is_frequent():
    """At least a twentieth of the triples lose 8 or more leading bits."""
    triples = random_triples(100_000, SEED)
    with np.errstate(all="ignore"):
        acc = np.abs(fp32.from_bits(triples.acc).astype(np.float64))
        deep = np.abs(fp32.from_bits(mac_bits(triples)).astype(np.float64)) < acc * 2.0**-8
    assert deep.mean() > 0.05


SPECIAL = [
    # acc, a, w, sum
    ("0", "1", "-0", "0"),
    ("-0", "1", "-0", "-0"),
    ("1", "-1", "1", "0"),
    ("inf", "1", "1", "inf"),
    ("inf", "inf", "-1", "nan"),
    ("-inf", "inf", "-1", "-inf"),
    ("0", "inf", "0", "nan"),
    ("nan", "1", "1", "nan"),
    ("-inf", "3e38", "3e38", "-inf"),
    ("-3e38", "3e38", "3e38", "inf"),
]


@pytest.mark.parametrize("row", SPECIAL, ids=" ".join)
def test_special_values(row):
    acc, a, w, expected = (np.float32(text) for text in row)
    result = mac(acc, a.astype(bf16.dtype), w.astype(bf16.dtype))
    assert result.view(np.uint32) == np.float32(expected).view(np.uint32)


def test_int8_mac_wraps():
    assert mac(np.int32(2**31 - 1), np.int8(1), np.int8(1)) == -(2**31)
    assert mac(np.int32(-(2**31)), np.int8(-128), np.int8(127)) == 2**31 - 128 * 127


@pytest.mark.parametrize("m,k,n", [(1, 1, 1), (3, 40, 5), (7, 1, 2), (2, 0, 3)])
def test_matmul_is_macs_in_ascending_k(m, k, n):
    rng = np.random.default_rng(SEED)
    a, b = mixed(rng, (m, k)), mixed(rng, (k, n))
    start = rng.standard_normal((m, n)).astype(np.float32)
    for acc0 in (None, start):
        sums = np.zeros((m, n), np.float32) if acc0 is None else acc0
        for i in range(k):
            sums = mac(sums, a[:, i : i + 1], b[i : i + 1])
        np.testing.assert_array_equal(fp32.bits_of(matmul(a, b, acc0)), fp32.bits_of(sums))
    if m == n == 1:
        assert fp32.bits_of(dot(a[0], b[:, 0])) == fp32.bits_of(matmul(a, b))[0, 0]


def test_order_matters_and_splitting_k_does_not():
    rng = np.random.default_rng(SEED)
    a, b = mixed(rng, (8, 64)), mixed(rng, (64, 8))
    whole = fp32.bits_of(matmul(a, b))
    assert (whole != fp32.bits_of(matmul(a[:, ::-1], b[::-1]))).any()
    split = matmul(a[:, 24:], b[24:], matmul(a[:, :24], b[:24]))
    np.testing.assert_array_equal(fp32.bits_of(split), whole)


def test_padding_changes_nothing():
    rng = np.random.default_rng(SEED)
    a = bf16.from_bits(rng.choice([0, 1, 0x8000, 0x8001, 0x0100, 0x1F80, 0x3F80], (60, 4)))
    b = bf16.from_bits(rng.choice([0, 1, 0x8000, 0x8001, 0x0100, 0x1F80, 0x3F80], (4, 60)))
    zero = np.zeros((60, 2), bf16.dtype)
    padded = matmul(np.hstack([a, zero]), np.vstack([b, zero.T]))
    np.testing.assert_array_equal(fp32.bits_of(padded), fp32.bits_of(matmul(a, b)))
    # The bare chain does tell: it leaves -0 where all products underflow from below.
    sums = np.zeros((60, 60), np.float32)
    for k in range(4):
        sums = mac(sums, a[:, k, np.newaxis], b[k])
    negative_zero = fp32.bits_of(sums) == 1 << 31
    assert negative_zero.any()
    assert not fp32.bits_of(padded)[negative_zero].any()


def test_int8_matmul_wraps_in_any_order():
    rng = np.random.default_rng(SEED)
    a = rng.integers(-128, 128, (9, 70)).astype(np.int8)
    b = rng.integers(-128, 128, (70, 5)).astype(np.int8)
    start = rng.integers(-(2**31), 2**31, (9, 5)).astype(np.int32)
    expected = start.astype(object) + a.astype(object) @ b.astype(object)
    wrapped = (expected + 2**31) % 2**32 - 2**31
    np.testing.assert_array_equal(matmul(a, b, start), wrapped.astype(np.int32))


def test_large_matmul_is_within_its_bound():
    """Also the speed that kernels of 512 a side need: seconds, not minutes."""
    rng = np.random.default_rng(SEED)
    a, b = mixed(rng, (512, 512)), mixed(rng, (512, 512))
    error = np.abs(matmul(a, b) - a.astype(np.float64) @ b.astype(np.float64))
    bound = error_bound(a, b)
    assert (error <= bound).all() and error.max() > 0
    # A bound a thousand times too wide would hide any fault.
    assert (error / bound).max() > 1e-3


@pytest.mark.parametrize("scale", [1.0, 2.0**-66, 2.0**-72])
@pytest.mark.parametrize("out", [fp32, bf16])
def test_error_bound_holds(scale, out):
    """At scale 1, where sums become subnormal, and where most of them vanish."""
    rng = np.random.default_rng(SEED)
    for terms in (1, 2, 5, 33, 200):
        a = (mixed(rng, (20, terms)) * np.float32(scale)).astype(bf16.dtype)
        b = (mixed(rng, (terms, 20)) * np.float32(scale)).astype(bf16.dtype)
        start = (rng.standard_normal((20, 20)) * scale**2).astype(np.float32)
        exact = start + a.astype(np.float64) @ b.astype(np.float64)
        answer = cast(matmul(a, b, start), out).astype(np.float64)
        assert (np.abs(answer - exact) <= error_bound(a, b, start, out=out)).all()


def test_error_bound_promises_nothing_where_nothing_can_be():
    one = np.ones((1, 1), bf16.dtype)
    for value in (np.inf, np.nan, 3e38):
        assert error_bound(
            one, np.full((1, 1), value, bf16.dtype), 3e38 * np.ones((1, 1), "f4")
        ) == (np.inf)
    full = np.full((1, 4), -128, np.int8)
    assert error_bound(full, full.T) == 0
    assert error_bound(full, full.T, np.full((1, 1), 2**31 - 1, np.int32)) == np.inf
    assert error_bound(full, full.T, out=int8) == np.inf


def test_cast_to_bf16_equals_ml_dtypes():
    rng = np.random.default_rng(SEED)
    high = np.arange(1 << 16, dtype=np.uint32) << 16
    lows = (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF, *rng.integers(0, 1 << 16, 6).tolist())
    for low in lows:
        x = fp32.from_bits(high | low)
        ours = bf16.bits_of(cast(x, bf16))
        nan = np.isnan(x)
        theirs = bf16.bits_of(x[~nan].astype(ml_dtypes.bfloat16))
        np.testing.assert_array_equal(ours[~nan], theirs)
        assert (ours[nan] == 0x7FC0).all()


def test_other_casts():
    every = bf16.from_bits(np.arange(1 << 16))
    wide = fp32.bits_of(cast(every, fp32))
    plain = np.arange(1 << 16) << 16
    expected = np.where(plain & 0x7FFFFFFF > 0x7F800000, 0x7FC00000, plain)
    np.testing.assert_array_equal(wide, expected)
    np.testing.assert_array_equal(bf16.bits_of(cast(every, bf16)), wide >> 16)
    integers = np.array([-(2**31), -129, -128, -1, 0, 127, 128, 2**31 - 1], np.int32)
    assert cast(integers, int8).tolist() == [-128, -128, -128, -1, 0, 127, 127, 127]
    assert cast(integers, int32).tolist() == integers.tolist()
    assert cast(np.int8(-3), int32).dtype == np.int32
    assert cast(np.float32(1.5), bf16).shape == ()


REFUSED = [
    (
        lambda: mac(np.float32(0), np.float32(0), np.float32(0)),
        BadInputError,
        "^Operands must be of one of",
    ),
    (
        lambda: mac(np.int32(0), *np.zeros((2, 1), bf16.dtype)),
        BadInputError,
        "^Accumulator of bf16",
    ),
    (
        lambda: matmul(np.zeros((2, 3), np.int8), np.zeros((2, 3), np.int8)),
        ValueError,
        r"^Operands must be M x K and K x N, not \(2, 3\) and \(2, 3\)$",
    ),
    (lambda: cast(np.zeros(1, np.float64), bf16), BadInputError, "^Cast must be between formats"),
    (lambda: cast(np.zeros(1, np.int64), int8), BadInputError, "^Cast must be between formats"),
]


@pytest.mark.parametrize("call,error,message", REFUSED)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_casts_between_floats_and_integers_round_once_and_saturate(seed):
    rng = np.random.default_rng(seed)
    x = np.concatenate(
        [rng.normal(size=999) * 10.0 ** rng.integers(-3, 12, 999), [0.5, 1.5, -2.5, 127.5, -128.5]]
    ).astype(np.float32)
    for form, least, most in ((int8, -128, 127), (int32, -(2**31), 2**31 - 1)):
        wanted = np.clip(np.rint(x.astype(np.float64)), least, most)
        assert (cast(x, form) == wanted).all() and cast(x, form).dtype == form.dtype
        special = np.array([np.nan, np.inf, -np.inf], np.float32)
        assert cast(special, form).tolist() == [0, most, least]
    narrow = x.astype(bf16.dtype)
    assert (cast(narrow, int8) == cast(narrow.astype(np.float32), int8)).all()
    numbers = rng.integers(-(2**31), 2**31, 999, dtype=np.int32)
    assert (cast(numbers, fp32) == numbers.astype(np.float64).astype(np.float32)).all()
