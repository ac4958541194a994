"""unit-b: the special function unit of a lane in RTL, against numpy and against exact values."""

import decimal
from decimal import Decimal

import numpy as np
import pytest

from hw.numeric import functions
from hw.numeric.formats import bf16, fp32
from hw.numeric.function_codes import SpecialFunction
from tests.hw.float import stimuli, units

MILLION = 1_000_000
#: Most units in the last place of the chosen width.
LIMIT = 1.1
#: Arguments of each group whose errors are found again in decimals of 40 digits.
WORST, SAMPLE = 50, 200


@pytest.fixture(scope="module")
def unit(heavy_lock):
    """Special function units of every width, in one native model."""
    with heavy_lock():
        yield units.Bench(units.FUNCTION_UNITS)


def run(unit, bits, words, codes):
    name = f"special_function_unit_{bits}"
    return unit.run([name], words, codes)[name]


def decimal_errors(name, x, answers, bits):
    """Distances of normal results from decimals of 40 digits, in units of the width."""
    found = []
    with decimal.localcontext(decimal.Context(prec=40)):
        for argument, got in zip(x.tolist(), answers.tolist(), strict=True):
            exact = stimuli.exactly(name, Decimal(argument))
            unit = Decimal(2) ** (exact.copy_abs().log10() / Decimal(2).log10()).to_integral_value(
                rounding=decimal.ROUND_FLOOR
            )
            found.append(float(abs(Decimal(got) - exact) / unit) * 2 ** (bits - 1))
    return max(found)


def unit_errors(answers, exact, bits):
    """Distances from exact values in units of the width; NaN and signs must be where they belong.

    Infinity counts as 2^128 for what is smaller, so a value may be rounded to it from where it is
    within the limit.
    """
    nan = np.isnan(exact)
    np.testing.assert_array_equal(np.isnan(answers), nan)
    np.testing.assert_array_equal(np.signbit(answers)[~nan], np.signbit(exact)[~nan])
    with np.errstate(invalid="ignore"):
        short = np.maximum(2.0**128 - np.abs(exact), 0)
        distance = np.where(np.isinf(answers), short, np.abs(answers - exact))
    exponent = np.clip(np.frexp(exact)[1], -125, 128)
    return np.where(nan, 0, distance / np.ldexp(1.0, exponent - bits))


def check(code, words, answers, bits):
    """Largest error of answers that must be the definition's, and special where that is exact."""
    name = code.name.lower()
    x = fp32.from_bits(words)
    model = functions.special_function(code, x, bits)
    wrong = np.nonzero(answers != fp32.bits_of(model))[0]
    assert wrong.size == 0, f"{name} {bits}: {wrong.size} wrong, first {words[wrong[0]]:#x}"
    errors = unit_errors(model, stimuli.exact_values(name, x), bits)
    worst = errors.max()
    assert worst <= LIMIT, f"{name} {bits}: {worst} at {words[errors.argmax()]:#x}"
    # The worst of the normal results and a sample again, with no binary floating point.
    normal = (np.abs(model) > 2.0**-126) & np.isfinite(model) & (np.abs(x) > 2.0**-60)
    normal = np.nonzero(normal)[0]
    chosen = normal[np.argsort(errors[normal])[-WORST:]]
    chosen = np.concatenate([chosen, normal[:: max(1, len(normal) // SAMPLE)]])
    assert decimal_errors(name, x[chosen], model[chosen], bits) <= LIMIT
    return worst


def groups(code, bits, seed):
    """Bits of arguments: every bf16, random fp32 with every edge, and borders of the table."""
    return [
        stimuli.sixteen_bit_arguments(bf16),
        stimuli.arguments(MILLION, seed),
        stimuli.table_borders(code.name.lower(), bits),
    ]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.must(
    "unit-b", goal="all bf16, 10^6 fp32, table borders: = numpy by bits, <= 1.1 units of the width"
)
@pytest.mark.parametrize("bits", units.FUNCTION_BITS)
def test_functions_of_a_lane(unit, bits, seed, figure):
    total, worst = 0, dict.fromkeys(SpecialFunction, 0.0)
    for code in SpecialFunction:
        for words in groups(code, bits, seed):
            codes = np.full(len(words), code, np.uint32)
            answers = run(unit, bits, words, codes)
            worst[code] = max(worst[code], check(code, words, answers, bits))
            total += len(words)
    errors = ", ".join(f"{code.name.lower()} {error:.2f}" for code, error in worst.items())
    figure(f"{total} arguments, 0 wrong; units of {bits} bits: {errors}")


@pytest.mark.slow
@pytest.mark.must("unit-b", goal="a function chosen anew each cycle: = numpy by bits")
@pytest.mark.parametrize("bits", units.FUNCTION_BITS)
def test_a_function_of_a_lane_each_cycle(unit, bits, seed, figure):
    words = stimuli.arguments(MILLION, seed)
    codes = np.random.default_rng(seed).integers(0, 4, len(words), np.uint32)
    answers = run(unit, bits, words, codes)
    x = fp32.from_bits(words)
    for code in SpecialFunction:
        mine = codes == code
        model = fp32.bits_of(functions.special_function(code, x[mine], bits))
        assert (answers[mine] == model).all()
    figure(f"{len(words)} arguments in random functions, 0 wrong")
