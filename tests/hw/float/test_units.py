"""Float cells, fp32 arithmetic, conversions and functions: gates against numpy, natively.

One Verilator build for all; tests/must/test_arithmetic_units_exact.py runs them by the ten million.
"""

import ml_dtypes
import numpy as np
import pytest

from hw.arch.errors import BadInputError
from hw.float.operations import operation
from hw.float.special_functions import UNITS as FUNCTIONS
from hw.numeric import elementwise, functions, reference
from hw.numeric.formats import bf16, e2m1, e4m3, e5m2, fp16, fp32, int8, int32
from tests.hw.float import stimuli
from tests.hw.float.stimuli import (
    Macs,
    arguments,
    expected,
    products_that_cancel,
    random_macs,
    words,
)
from tests.hw.float.units import CELLS, FUNCTION_WIDTHS, Bench
from tests.hw.numeric.rationals import (
    BF16,
    E2M1,
    E4M3,
    E5M2,
    FP16,
    FP32,
    convert,
    sum_of_products,
)

SPECS = {bf16: BF16, fp16: FP16, e4m3: E4M3, e5m2: E5M2, e2m1: E2M1}

#: Operand formats that go together: formats of a cell, of activation and of weight.
MIXES = [
    pytest.param(formats, left, right, id=f"{left.name}-{right.name}-of-{len(formats)}")
    for formats in ((fp16,), (bf16, fp16), (e4m3,), (e5m2,), (e4m3, e5m2), (e2m1,))
    for left in formats
    for right in formats
]


@pytest.fixture(scope="module")
def bench(heavy_lock):
    with heavy_lock():
        yield Bench()


def differences(answers, expected_bits):
    """Number of wrong answers of each unit that has any."""
    counts = {name: int((bits != expected_bits).sum()) for name, bits in answers.items()}
    return {name: count for name, count in counts.items() if count}


def cell_names(formats):
    return [name for name, (own, _) in CELLS.items() if own == formats]


@pytest.mark.slow
@pytest.mark.parametrize("formats,left,right", MIXES)
def test_cells(bench, formats, left, right, seed):
    """Every latency; the modes of the recoders choose the formats."""
    macs = random_macs(40_000, seed, left, right)
    mode = formats.index(left) | formats.index(right) << 1
    answers = bench.run(cell_names(formats), *macs, mode=mode)
    assert differences(answers, expected(macs, left, right)) == {}


@pytest.mark.slow
def test_latency_changes_no_bit_and_every_cell_is_there(bench):
    latencies = {
        formats: {CELLS[name][1] for name in cell_names(formats)} for formats, _ in CELLS.values()
    }
    assert latencies[(fp16,)] == latencies[(e4m3, e5m2)] == {1, 2, 3}


@pytest.mark.parametrize("formats,left,right", MIXES)
def test_reference_equals_rationals_rounded_once(formats, left, right, seed):
    macs = random_macs(1500, seed, left, right)
    answers = expected(macs, left, right)
    for a, w, p, got in zip(*(x.tolist() for x in (*macs, answers)), strict=True):
        products = stimuli.factors(a, w, left)
        exact = sum_of_products(p, products, SPECS[left], SPECS[right])
        assert hex(got) == hex(exact), (hex(a), hex(w), hex(p))


def test_pairs_rounded_twice_would_differ(seed):
    """The operands tell one rounding a pair from one a product, and from one of the pair's sum."""
    macs = random_macs(20_000, seed, e5m2, e5m2)
    once = expected(macs, e5m2, e5m2)
    lanes = [[e5m2.from_bits(x >> shift & 0xFF) for x in macs[:2]] for shift in (0, 8)]
    twice = fp32.from_bits(macs.p)
    for a, w in lanes:
        twice = reference.mac(twice, a, w)
    pair = np.zeros(len(once), np.float32)
    for a, w in lanes:
        pair = reference.mac(pair, a, w)
    rounded_pair = elementwise.add(pair, fp32.from_bits(macs.p))
    for wrong in (twice, rounded_pair):
        assert (fp32.bits_of(wrong) != once).sum() > 50


def test_a_quarter_cancels_deeply(seed):
    for left in (fp16, e4m3):
        macs = random_macs(20_000, seed, left, left)
        with np.errstate(invalid="ignore"):
            before = np.abs(fp32.from_bits(macs.p).astype(np.float64))
            after = np.abs(fp32.from_bits(expected(macs, left, left)).astype(np.float64))
            assert (after < before * 2.0**-8).mean() > 0.05


@pytest.mark.slow
@pytest.mark.parametrize("name", ["add", "multiply", "minimum", "maximum", "less", "equal"])
def test_arithmetic_of_two(bench, name, seed):
    a, b = words(60_000, seed)
    exact = getattr(elementwise, name)(fp32.from_bits(a), fp32.from_bits(b))
    bits = exact.astype(np.uint32) if exact.dtype == bool else fp32.bits_of(exact)
    assert differences(bench.run([name], a, b), bits) == {}


def subnormal_products_near_ties(count, seed):
    """Bits of a and b whose subnormal product is a tie but for bits that its shift down loses."""
    rng = np.random.default_rng(seed)
    shift = rng.integers(16, 24, count)
    # The product's leading bits down to the one behind the last kept: odd, so that it is a tie.
    ahead = 24 - shift
    tie = (2 * rng.integers(1 << (ahead - 1), 1 << ahead) + 1) << (46 - ahead)
    a = rng.integers(1 << 23, 1 << 24, count)
    b = np.rint(tie / a).astype(np.int64)
    off = np.abs(a * b - tie)
    found = (b >= 1 << 23) & (b < 1 << 24) & (off > 0) & (off < 1 << (shift - 3))
    a, b, shift = a[found], b[found], shift[found]
    left = rng.integers(30, 90, len(a))
    right = 127 - 126 - shift + 127 - left
    return [(field - 1 << 23) + x for field, x in ((left, a), (right, b))]


@pytest.mark.slow
def test_subnormal_products_round_by_every_bit(bench, seed):
    a, b = (x.astype(np.uint32) for x in subnormal_products_near_ties(200_000, seed))
    assert len(a) > 1000
    exact = fp32.bits_of(elementwise.multiply(fp32.from_bits(a), fp32.from_bits(b)))
    assert differences(bench.run(["multiply"], a, b), exact) == {}


@pytest.mark.slow
def test_fma(bench, seed):
    a, b, c = products_that_cancel(60_000, seed)
    exact = fp32.bits_of(elementwise.fma(*map(fp32.from_bits, (a, b, c))))
    assert differences(bench.run(["fma"], a, b, c), exact) == {}
    for x, y, z, got in zip(*(column[:2000].tolist() for column in (a, b, c, exact)), strict=True):
        assert got == sum_of_products(z, [(x, y)], FP32, FP32)


def test_extremes_order_zeros_and_pass_nan():
    zero, negative = np.zeros(1, np.float32), np.full(1, -0.0, np.float32)
    for a, b in ((zero, negative), (negative, zero)):
        assert np.signbit(elementwise.minimum(a, b)) and not np.signbit(elementwise.maximum(a, b))
    nan = np.full(1, np.nan, np.float32)
    assert np.isnan(elementwise.minimum(nan, zero)) and np.isnan(elementwise.maximum(zero, nan))
    assert not elementwise.less(nan, zero) and not elementwise.equal(nan, nan)


def halves(seed):
    """Bits of fp32 round the midpoints of every 8- and 16-bit float, and others."""
    found = [arguments(20_000, seed)]
    for format_ in SPECS:
        every = fp32.bits_of(reference.cast(format_.from_bits(np.arange(1 << format_.bits)), fp32))
        # Half a unit of a normal value, and of the largest subnormals.
        unit = 1 << (23 - format_.fraction_bits)
        for offset in (0, unit // 2, unit // 4):
            near = (every[:, np.newaxis].astype(np.int64) + offset + np.arange(-1, 2)).ravel()
            found.append(near & 0xFFFFFFFF)
    return np.concatenate(found).astype(np.uint32)


#: Casts from fp32; a format without NaN saturates.
CASTS = [
    pytest.param(format_, saturate, id=f"{format_.name}{'-saturated' * saturate}")
    for format_ in SPECS
    for saturate in (False, True)
    if saturate or format_.has_nan
]


@pytest.mark.slow
@pytest.mark.parametrize("format_,saturate", CASTS)
def test_casts_to_short_floats(bench, format_, saturate, seed):
    """Gates, numpy, ml_dtypes, and rationals on a sample."""
    bits = halves(seed)
    x = fp32.from_bits(bits)
    ours = format_.bits_of(reference.cast(x, format_, saturate=saturate))
    name = f"to_{format_.name}{'_saturated' * saturate}"
    assert differences(bench.run([name], bits), ours) == {}
    for value, got in zip(bits[::97].tolist(), ours[::97].tolist(), strict=True):
        assert got == convert(value, FP32, SPECS[format_], saturate)
    with np.errstate(invalid="ignore", over="ignore"):
        limited = np.clip(x, -float(x_max(format_)), float(x_max(format_))) if saturate else x
        library = format_.bits_of(limited.astype(np.float32).astype(format_.dtype))
    nan = np.isnan(x)
    assert (ours[nan] == (format_.canonical_nan if format_.has_nan else format_.largest)).all()
    # Where a format has no infinity, ml_dtypes keeps the sign of the NaN it makes of too large a
    # value, and so do we.
    np.testing.assert_array_equal(ours[~nan], library[~nan])


def x_max(format_):
    return format_.from_bits(format_.largest).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("format_", SPECS, ids=lambda f: f.name)
def test_casts_from_short_floats(bench, format_):
    every = np.arange(1 << format_.bits)
    exact = fp32.bits_of(reference.cast(format_.from_bits(every), fp32))
    assert differences(bench.run([f"from_{format_.name}"], every), exact) == {}
    if format_.bits <= 8:
        assert exact.tolist() == [convert(x, SPECS[format_], FP32) for x in every.tolist()]


def test_casts_between_short_floats_round_once(seed):
    rng = np.random.default_rng(seed)
    for source in SPECS:
        bits = rng.integers(0, 1 << source.bits, 500)
        for target in SPECS:
            saturate = not target.has_nan
            cast = reference.cast(source.from_bits(bits), target, saturate=saturate)
            exact = [convert(x, SPECS[source], SPECS[target], saturate) for x in bits.tolist()]
            ours = target.bits_of(cast)
            assert ours.tolist() == exact


def test_saturation_is_the_default_of_8_and_4_bits_alone():
    big = np.array([1e6, -np.inf], np.float32)
    assert reference.cast(big, e4m3).tolist() == [448, -448]
    assert reference.cast(big, e5m2).tolist() == [57344, -57344]
    assert reference.cast(big, e2m1).astype(float).tolist() == [6, -6]
    assert reference.cast(big, fp16).tolist() == [np.inf, -np.inf]
    assert reference.cast(big, e5m2, saturate=False).tolist() == [np.inf, -np.inf]
    assert np.isnan(reference.cast(big, e4m3, saturate=False).astype(np.float32)).all()
    assert reference.cast(big[1:], fp32, saturate=True) == -np.finfo(np.float32).max


@pytest.mark.slow
def test_integers(bench, seed):
    bits = arguments(60_000, seed)
    rng = np.random.default_rng(seed)
    # Round the ends of int32, and halves.
    ends = (127 + rng.integers(-2, 33, 60_000)) << 23 | rng.integers(0, 1 << 23, 60_000)
    sparse = rng.integers(0, 1 << 23, 60_000) & rng.integers(0, 1 << 23, 60_000) << 16
    halves_ = (127 + rng.integers(-2, 25, 60_000)) << 23 | sparse & 0x7FFFFF
    bits = np.concatenate([bits, ends, ends | 1 << 31, halves_]).astype(np.uint32)
    x = fp32.from_bits(bits)
    exact = int32.bits_of(elementwise.to_int32(x))
    assert differences(bench.run(["to_int32"], bits), exact) == {}
    exact = fp32.bits_of(elementwise.round_to_integral(x))
    assert differences(bench.run(["round_to_integral"], bits), exact) == {}
    integers = bits >> rng.integers(0, 32, len(bits)).astype(np.uint32)
    exact = fp32.bits_of(elementwise.from_int32(integers.view(np.int32)))
    assert differences(bench.run(["from_int32"], integers), exact) == {}
    signed = integers.view(np.int32)
    small = reference.cast(signed, int8).view(np.uint8)
    assert differences(bench.run(["saturate_int8"], integers), small) == {}


def test_integers_in_numpy():
    x = np.array([0.5, 1.5, -2.5, 2.0**31, -(2.0**31), np.nan, np.inf, -np.inf], np.float32)
    top = 2**31 - 1
    assert elementwise.to_int32(x).tolist() == [0, 2, -2, top, -top - 1, 0, top, -top - 1]
    assert elementwise.from_int32(np.int32([2**24 + 1, -3])).tolist() == [2**24, -3]
    assert np.signbit(elementwise.round_to_integral(np.float32([-0.25])))[0]


@pytest.mark.slow
@pytest.mark.parametrize("width", FUNCTION_WIDTHS)
def test_functions(bench, width, seed):
    bits = np.concatenate([arguments(60_000, seed), stimuli.sixteen_bit_arguments(bf16)[::7]])
    x = fp32.from_bits(bits)
    answers = bench.run([f"{name}_{width}" for name in FUNCTIONS], bits)
    for name in FUNCTIONS:
        exact = fp32.bits_of(getattr(functions, name)(x, width))
        assert differences({name: answers[f"{name}_{width}"]}, exact) == {}


def test_a_matmul_of_8_bit_floats_takes_k_in_pairs(seed):
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(0, 1 << 8, shape) for shape in ((5, 7), (7, 4)))
    left, right = e4m3.from_bits(a & 0xF7), e5m2.from_bits(b & 0xF3)
    sums = np.zeros((5, 4), np.float32)
    for k in range(0, 7, 2):
        pair = np.zeros((5, 4, 2), e4m3.dtype), np.zeros((5, 4, 2), e5m2.dtype)
        for lane in range(min(2, 7 - k)):
            pair[0][..., lane], pair[1][..., lane] = left[:, k + lane, np.newaxis], right[k + lane]
        sums = reference.mac_lane(sums, *pair)
    answer = reference.matmul(left, right)
    np.testing.assert_array_equal(fp32.bits_of(answer), fp32.bits_of(sums + np.float32(0)))
    assert answer.dtype == np.float32 and ml_dtypes.finfo(e4m3.dtype).max == 448


@pytest.mark.parametrize("format_", [fp16, e4m3, e5m2, e2m1], ids=lambda f: f.name)
@pytest.mark.parametrize("out", [fp32, bf16, fp16])
def test_error_bound_of_short_floats(format_, out, seed):
    rng = np.random.default_rng(seed)
    for terms in (1, 2, 33, 200):
        a = rng.standard_normal((20, terms)).astype(np.float32)
        b = rng.standard_normal((terms, 20)).astype(np.float32)
        left, right = reference.cast(a, format_), reference.cast(b, format_)
        exact = left.astype(np.float64) @ right.astype(np.float64)
        error = np.abs(reference.cast(reference.matmul(left, right), out).astype(float) - exact)
        bound = reference.error_bound(left, right, out=out)
        magnitude = np.abs(left.astype(np.float64)) @ np.abs(right.astype(np.float64))
        # A bound much wider than a unit of bf16 would hide any fault.
        assert (error <= bound).all() and (bound <= 1e-2 * magnitude + 1e-7).all()


REFUSED = [
    (
        lambda: reference.mac(np.float32(0), *_one(bf16, e4m3)),
        "^Operands must be of one of bfloat16, ",
    ),
    (lambda: reference.mac_lane(np.float32(0), *_one(fp16, fp16)), "^Operands of a lane must be"),
    (lambda: reference.cast(np.zeros(1), e2m1, saturate=False), "^Cast must be between formats"),
    (
        lambda: reference.cast(np.zeros(1, np.float32), e2m1, saturate=False),
        "^Cast to e2m1 must saturate: it has no infinity and no NaN$",
    ),
    (lambda: elementwise.add(np.zeros(1), np.zeros(1)), "^Operand must be of float32, not float64"),
    (lambda: elementwise.from_int32(np.zeros(1)), "^Operand must be of int32, not float64"),
]


def _one(*formats):
    return [np.zeros(2, format_.dtype) for format_ in formats]


@pytest.mark.parametrize("call,message", REFUSED)
def test_refusals(call, message):
    with pytest.raises(BadInputError, match=message):
        call()


def test_an_unknown_operation_is_refused():
    with pytest.raises(ValueError, match="^Operation must be one of add, .*, not 'sub'$"):
        operation("sub")


def test_macs_hold_what_they_say():
    macs = stimuli.edge_macs()
    assert isinstance(macs, Macs) and len(macs.a) == 44 * 44 * 52
