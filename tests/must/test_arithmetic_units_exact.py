"""array-a: every arithmetic unit in RTL, exhaustively where the inputs allow, else by millions."""

import decimal
import itertools
from decimal import Decimal

import numpy as np
import pytest

from hw.float.special_functions import UNITS as FUNCTIONS
from hw.numeric import functions, reference
from hw.numeric.formats import bf16, e2m1, e4m3, e5m2, fp16, fp32, int4, mxe2m1, mxe4m3, mxe5m2
from tests.hw.float import bench as int_and_bf16
from tests.hw.float import stimuli, units
from tests.hw.float.triples import edge_triples, random_triples
from tests.hw.numeric import rationals
from tests.hw.numeric.rationals import BF16, E2M1, E4M3, E5M2, FP16, sum_of_products
from tests.hw.numeric.test_mx import scaled_by_rationals

MILLION = 1_000_000
MX_FP8 = (mxe4m3, mxe5m2)
SPECS = {bf16: BF16, fp16: FP16, e4m3: E4M3, e5m2: E5M2, e2m1: E2M1}
LIMIT_ULP = 2


@pytest.fixture(scope="module")
def cells(heavy_lock):
    """Cells of bf16 and int8."""
    with heavy_lock():
        yield int_and_bf16.Bench()


@pytest.fixture(scope="module")
def others(heavy_lock):
    """Cells of the other floats, and everything outside cells."""
    with heavy_lock():
        yield units.Bench()


def sound(answers, kind):
    """Answers of the cells without a planted fault that have a format."""
    names = [name for name, (own, _) in int_and_bf16.CELLS.items() if own in (kind, "both")]
    return {name: answers[name] for name in names}


def assert_all(answers, expected):
    for name, bits in answers.items():
        wrong = np.nonzero(bits != expected)[0]
        assert wrong.size == 0, f"{name}: {wrong.size} wrong, first at {wrong[0]}"


@pytest.mark.slow
@pytest.mark.must("array-a", goal="all 65,536 int8 products, each lane, 6 cells, against integers")
def test_int8_products(cells, seed, figure):
    rng = np.random.default_rng(seed)
    a, w = stimuli.all_pairs(rng)
    p = rng.integers(0, 1 << 32, len(a), np.uint32)
    answers = sound(cells.multiply_accumulate(a.astype("u2"), w.astype("u2"), p, 1), "int8")
    exact = p.astype(np.int64)
    for shift in (0, 8):
        left, right = ((x >> shift & 0xFF).astype(np.int64) for x in (a, w))
        exact += (left - (left >> 7 << 8)) * (right - (right >> 7 << 8))
    assert len(answers) == 6
    assert_all(answers, (exact & 0xFFFFFFFF).astype(np.uint32))
    assert_all({"reference": int_and_bf16.sums(a, w, p, 1)}, (exact & 0xFFFFFFFF).astype("u4"))
    figure(f"{len(a)} pairs of products in {len(answers)} cells, 0 wrong")


def deep(p, answers):
    """Sums that lost 8 or more leading bits, and not all."""
    with np.errstate(all="ignore"):
        before, after = (np.abs(fp32.from_bits(x).astype(np.float64)) for x in (p, answers))
    return int(((after < before * 2.0**-8) & (after > 0)).sum())


def interacting(a, w, p, fmt):
    """Finite sums within 26 binades of what is added to them, so that each moves the other."""
    with np.errstate(all="ignore"):
        left, right = (fmt.from_bits(x).astype(np.float64) for x in (a, w))
        added, old = np.abs(left * right), np.abs(fp32.from_bits(p).astype(np.float64))
        apart = np.abs(np.log2(added) - np.log2(old))
    return int((apart <= 26).sum())


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.must("array-a", goal="10^7 bf16 triples and all edges, 6 cells, against C's fma too")
def test_bf16_multiply_accumulates(cells, seed, figure):
    total = cancelled = met = 0
    for part in [edge_triples(), *(random_triples(MILLION, seed + i) for i in range(10))]:
        exact = int_and_bf16.sums(part.a, part.w, part.acc, 0)
        answers = sound(cells.multiply_accumulate(part.a, part.w, part.acc, 0), "bf16")
        assert len(answers) == 6
        assert_all(answers, exact)
        theirs = cells.fused(part.acc, part.a, part.w)
        nan = (theirs & 0x7FFFFFFF) > 0x7F800000
        assert_all({"C library": np.where(nan, fp32.canonical_nan, theirs)}, exact)
        total, cancelled = total + len(exact), cancelled + deep(part.acc, exact)
        met += interacting(part.a, part.w, part.acc, bf16)
        check_rationals(stimuli.Macs(part.a, part.w, part.acc), exact, bf16, bf16, 500)
    assert total > 10 * MILLION and cancelled >= 0.05 * total and met >= total / 2
    shares = f"{met / total:.0%} interact, {cancelled / total:.1%} cancel deeply"
    figure(f"{total} triples, {shares}, 6 cells, 0 wrong")


def check_rationals(macs, answers, left, right, count):
    """Compare a sample with exact rationals rounded once."""
    step = max(1, len(answers) // count)
    for a, w, p, got in zip(*(x[::step].tolist() for x in (*macs, answers)), strict=True):
        products = stimuli.factors(a, w, left)
        assert got == sum_of_products(p, products, SPECS[left], SPECS[right])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.must("array-a", goal="10^7 fp16 triples and all edges, 4 cells, against fp32 sums")
def test_fp16_multiply_accumulates(others, seed, figure):
    total = cancelled = met = 0
    names = ["fp16_1", "fp16_2", "fp16_3", "wide_2"]
    parts = [stimuli.edge_macs()]
    for part in range(11):
        macs = parts.pop() if parts else stimuli.random_macs(MILLION, seed + part, fp16, fp16)
        exact = stimuli.expected(macs, fp16, fp16)
        assert_all(others.run(names, *macs, mode=3), exact)
        # fp32 holds a product of fp16, so the processor's own sum of fp32 is rounded once too.
        with np.errstate(all="ignore"):
            a, w = (np.where(x == 0x7FFF, 0, x) for x in macs[:2])
            a, w = (fp16.from_bits(x).astype(np.float32) for x in (a, w))
            plain = a * w + fp32.from_bits(macs.p)
        bits = np.where(np.isnan(plain), fp32.canonical_nan, fp32.bits_of(plain))
        assert_all({"fp32": bits}, exact)
        check_rationals(macs, exact, fp16, fp16, 500)
        total, cancelled = total + len(exact), cancelled + deep(macs.p, exact)
        met += interacting(*macs, fp16)
    assert total > 10 * MILLION and cancelled >= 0.05 * total and met >= total / 2
    shares = f"{met / total:.0%} interact, {cancelled / total:.1%} cancel deeply"
    figure(f"{total} triples, {shares}, 4 cells, 0 wrong")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.must("array-a", goal="all pairs of fp8, each lane, 4 mixes of formats, and 10^6 sums")
def test_fp8_pairs(others, seed, figure):
    rng = np.random.default_rng(seed)
    total = 0
    for mode, (left, right) in enumerate([(e4m3, e4m3), (e5m2, e4m3), (e4m3, e5m2), (e5m2, e5m2)]):
        a, w = stimuli.all_pairs(rng)
        zero = np.zeros(len(a), np.uint32)
        one_product = stimuli.Macs(stimuli.alone(a, 8), stimuli.alone(w, 8), zero)
        mixed = stimuli.random_macs(MILLION, seed + mode, left, right)
        random_sum = stimuli.Macs(a, w, rng.permutation(mixed.p)[: len(a)])
        names = ["fp8_1", "fp8_2", "fp8_3"]
        if left == right:
            names += {e4m3: ["e4m3_1", "e4m3_2", "e4m3_3"], e5m2: ["e5m2_2"]}[left]
        cases = [one_product, stimuli.Macs(a, w, zero), random_sum, mixed]
        for macs, step in zip(cases, (1, 16, 16, 500), strict=True):
            exact = stimuli.expected(macs, left, right)
            assert_all(others.run(names, *macs, mode=mode), exact)
            check_rationals(macs, exact, left, right, len(exact) // step)
            total += len(exact)
    figure(f"{total} pairs of products of 4 mixes, 0 wrong")


@pytest.mark.slow
@pytest.mark.must("array-a", goal="all 256 products of 4 bits, each lane, and 10^6 sums of four")
def test_four_bit_quads(others, seed, figure):
    rng = np.random.default_rng(seed)
    total = 0
    for left in (e2m1, int4):
        names = [f"{left.name}_{latency}" for latency in (1, 2, 3)]
        # Every product of a lane beside 64 random ones of the others.
        lanes = [stimuli.all_pairs(rng, 4) for _ in range(64)]
        a, w = (np.concatenate(x) for x in zip(*lanes, strict=True))
        first, second = (stimuli.alone(x[: 4 << 8], 4) for x in (a, w))
        mixed = stimuli.random_macs(MILLION, seed, left, left)
        cases = [
            stimuli.Macs(first, second, np.zeros(len(first), np.uint32)),
            stimuli.Macs(a, w, np.zeros(len(a), np.uint32)),
            stimuli.Macs(a, w, rng.permutation(mixed.p)[: len(a)]),
            mixed,
        ]
        for macs, step in zip(cases, (1, 64, 64, 500), strict=True):
            exact = stimuli.expected(macs, left, left)
            assert_all(others.run(names, *macs), exact)
            check_quads(macs, exact, left, len(exact) // step)
            total += len(exact)
    figure(f"{total} sums of four products of e2m1 and int4, 3 cells each, 0 wrong")


@pytest.mark.slow
@pytest.mark.must("array-a", goal="10^6 steps of each MX format and mix, scales to 2^+-127 and NaN")
def test_microscaled_steps(others, seed, figure):
    total = 0
    for left, right in [*itertools.product(MX_FP8, repeat=2), (mxe2m1, mxe2m1)]:
        macs, exact = stimuli.random_mx(MILLION, seed, left, right)
        names = "mxfp8" if left in MX_FP8 else "mxe2m1"
        mode = MX_FP8.index(left) | MX_FP8.index(right) << 1 if left in MX_FP8 else 0
        answers = others.run([f"{names}_{latency}" for latency in (1, 2, 3)], *macs, mode=mode)
        assert_all(answers, exact)
        sample = stimuli.Macs(*(column[::500] for column in macs))
        assert_all({"rationals": scaled_by_rationals(sample, left, right)}, exact[::500])
        total += len(exact)
    figure(f"{total} steps of 5 mixes in 3 cells each, 0 wrong")


def check_quads(macs, answers, fmt, count):
    """Compare a sample with rationals rounded once, or with integers."""
    if fmt.is_float:
        check_rationals(macs, answers, fmt, fmt, count)
        return
    step = max(1, len(answers) // count)
    for a, w, p, got in zip(*(x[::step].tolist() for x in (*macs, answers)), strict=True):
        products = [(x - (x & 8) * 2) * (y - (y & 8) * 2) for x, y in stimuli.factors(a, w, fmt)]
        assert got == (p + sum(products)) % (1 << 32)


@pytest.mark.slow
@pytest.mark.must(
    "array-a", goal="all 65,536 bf16 and fp16 in every unary unit; functions <= 2 ULP"
)
def test_sixteen_bit_arguments(others, figure):
    worst = 0.0
    asked = set()
    for format_ in (bf16, fp16):
        every = np.arange(1 << 16)
        bits = stimuli.sixteen_bit_arguments(format_)
        assert_all(others.run([f"from_{format_.name}"], every), bits)
        for target in SPECS:
            for saturate in (False, True) if target.has_nan else (True,):
                cast = reference.cast(fp32.from_bits(bits), target, saturate=saturate)
                name = f"to_{target.name}{'_saturated' * saturate}"
                answers = others.run([name], bits)
                assert_all(answers, target.bits_of(cast))
                asked.add(name)
                check_casts(bits, answers[name], target, saturate)
        x = fp32.from_bits(bits)
        with np.errstate(invalid="ignore"):
            whole = np.where(np.isnan(x), fp32.canonical_nan, np.rint(x).view(np.uint32))
            clipped = np.clip(np.nan_to_num(np.rint(x.astype(np.float64))), -(2**31), 2**31 - 1)
        assert_all(others.run(["round_to_integral"], bits), whole)
        assert_all(others.run(["to_int32"], bits), clipped.astype(np.int64).astype(np.uint32))
        asked |= {f"from_{format_.name}", "round_to_integral", "to_int32"}
        for width in units.FUNCTION_WIDTHS:
            asked |= {f"{name}_{width}" for name in FUNCTIONS}
            answers = others.run([f"{name}_{width}" for name in FUNCTIONS], bits)
            for name in FUNCTIONS:
                worst = max(worst, check_function(name, bits, answers[f"{name}_{width}"], width))
    figure(f"2 x 65,536 arguments in {len(asked)} units; functions within {worst:.2f} ULP")


def check_casts(bits, answers, target, saturate):
    """Compare casts, where they are no NaN, with rationals rounded once."""
    kept = np.nonzero(~np.isnan(fp32.from_bits(bits)))[0][::4]
    for x, got in zip(bits[kept].tolist(), answers[kept].tolist(), strict=True):
        assert got == rationals.convert(x, rationals.FP32, SPECS[target], saturate), hex(x)


def check_function(name, bits, answers, width):
    """Largest error of answers that must be the model's; special ones must be special."""
    x = fp32.from_bits(bits)
    model = getattr(functions, name)(x, width)
    assert_all({f"{name}_{width}": answers}, fp32.bits_of(model))
    exact = stimuli.exact_values(name, x)
    stimuli.assert_special(model, exact, width)
    worst = stimuli.ulps(model, exact, width).max()
    assert worst <= LIMIT_ULP
    return worst


def check_decimals(name, x, answers):
    """Compare a sample of answers, where they are normal, with decimals of 40 digits."""
    with decimal.localcontext(decimal.Context(prec=40)):
        for argument, got in zip(x.tolist(), answers.tolist(), strict=True):
            if 2.0**-126 < abs(got) < np.inf and abs(argument) > 2.0**-60:
                exact = stimuli.exactly(name, Decimal(argument))
                unit = Decimal(2) ** (int(np.frexp(abs(float(exact)))[1]) - 24)
                assert abs(Decimal(got) - exact) <= LIMIT_ULP * unit, (name, argument)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("array-a", goal="10^7 fp32 and +-4 ULP round every table border, <= 2 ULP")
def test_functions(others, seed, figure):
    worst = dict.fromkeys(FUNCTIONS, 0.0)
    for part in range(10):
        bits = stimuli.arguments(MILLION, seed + part)
        answers = others.run([f"{name}_24" for name in FUNCTIONS], bits)
        for name in FUNCTIONS:
            found = check_function(name, bits, answers[f"{name}_24"], 24)
            worst[name] = max(worst[name], found)
            sample = slice(None, None, len(bits) // 100)
            check_decimals(
                name, fp32.from_bits(bits[sample]), fp32.from_bits(answers[f"{name}_24"][sample])
            )
    borders = 0
    for name in FUNCTIONS:
        bits = stimuli.table_borders(name)
        answers = others.run([f"{name}_24"], bits)
        worst[name] = max(worst[name], check_function(name, bits, answers[f"{name}_24"], 24))
        borders += len(bits)
    figures = ", ".join(f"{name} {error:.2f}" for name, error in worst.items())
    figure(f"10^7 arguments, {borders} round borders; ULP: {figures}")
