"""Golden answers: bit-exact on what must be, and refusals."""

import operator

import ml_dtypes
import numpy as np
import pytest

import sw.language as tw
from hw.arch.config import PcuConfig
from hw.arch.errors import BadInputError
from hw.numeric import compositions, functions
from sim.golden import golden
from sim.oracle import product
from sw.ir.sizes import choose_sizes
from sw.kernels.matmul import matmul
from sw.passes.accumulate import accumulate


def bits(random, shape):
    """Random bf16 of all exponents, with zeros, subnormals, infinities and NaN among them."""
    raw = random.integers(0, 1 << 16, size=shape).astype(np.uint16)
    special = np.array([0x0000, 0x8000, 0x0001, 0x8001, 0x7F80, 0xFF80, 0x7FC0, 0xFFFF], np.uint16)
    chosen = random.random(shape) < 0.01
    return np.where(chosen, random.choice(special, size=shape), raw).view(ml_dtypes.bfloat16)


@pytest.mark.parametrize("out", [tw.bf16, tw.fp32])
def test_matmul_has_the_bits_of_the_reference_arithmetic_for_all_bit_patterns(out, seed):
    random = np.random.default_rng(seed)
    a, b = bits(random, (21, 13)), bits(random, (13, 18))
    program = matmul.trace(M=21, K=13, N=18, dtype=tw.bf16, out=out)
    wanted = product(a, b, out.dtype)
    for sizes in ({"i": 21, "j": 18}, {"i": 8, "j": 5}):
        sized = choose_sizes(program, sizes)
        for poison in (False, True):
            found = golden(sized, {"A": a, "B": b}, poison=poison)["C"]
            assert found.tobytes() == wanted.tobytes()


def test_int8_wraps_in_int32_and_saturates_in_int8(seed):
    random = np.random.default_rng(seed)
    a, b = random.integers(-128, 128, (2, 9, 9)).astype(np.int8)
    a[0], b[:, 0] = -128, -128
    exact = a.astype(np.int64) @ b.astype(np.int64)
    for out, wanted in ((tw.int32, exact), (tw.int8, exact.clip(-128, 127))):
        program = matmul.trace(M=9, K=9, N=9, dtype=tw.int8, out=out)
        sized = choose_sizes(program, {"i": 4, "j": 2})
        for poison in (False, True):
            found = golden(sized, {"A": a, "B": b}, poison=poison)["C"]
            assert found.dtype == out.dtype and (found == wanted).all()


def elementwise(function, *arrays, **how):
    """What one line of a program makes of arrays of 2 x 3."""
    names = "ABD"[: len(arrays)]

    source = f"def program({', '.join(names)}, C):\n    store(C, run(" + ", ".join(
        f"load({each})" for each in names
    )
    space = {"store": tw.store_tile, "load": tw.load_tile, "run": function}
    exec(source + "))", space)
    signature = ", ".join(f"{each}[M, N]" for each in names) + " -> C[M, N]"
    kernel = tw.kernel(signature)(space["program"])
    bound = kernel.bind(*arrays)
    program = kernel.trace(dtype=bound.formats, out=None, **bound.dims)
    return golden(program, bound.arrays, **how)["C"]


NAN = np.uint32(0x7FC00000)


def fp32(*numbers):
    return np.array(numbers, np.float32).reshape(1, -1)


def test_every_nan_is_the_canonical_one():
    odd = np.array([[0xFFC01234, 0x7F800001]], np.uint32).view(np.float32)
    for function in (lambda x: x + 1.0, lambda x: -x, abs, lambda x: tw.maximum(x, 0.0), tw.exp):
        assert (elementwise(function, odd).view(np.uint32) == NAN).all()
    chosen = elementwise(lambda x: tw.where(x > 0, 1.0, x), odd)
    assert (chosen.view(np.uint32) == NAN).all()
    zeros = fp32(0, -0.0)
    assert (elementwise(lambda x: x / x, zeros).view(np.uint32) == NAN).all()


def test_a_copy_keeps_every_bit():
    odd = np.array([[0xFFC1, 0x7F81, 0x8000]], np.uint16).view(ml_dtypes.bfloat16)
    for function in (lambda x: x, tw.buffer, lambda x: x.to(tw.bf16)):
        assert elementwise(function, odd).tobytes() == odd.tobytes()


def test_element_math_is_fp32_or_int32():
    third = elementwise(lambda x, y: x * y, fp32(0.1), fp32(3))
    assert third.dtype == np.float32 and third[0, 0] == np.float32(0.1) * np.float32(3)
    bytes_ = np.array([[127, -128]], np.int8)
    assert elementwise(lambda x: x + x, bytes_).tolist() == [[254, -256]]
    big = np.array([[2**31 - 1]], np.int32)
    assert elementwise(lambda x: x + 1, big).tolist() == [[-(2**31)]]
    half = np.array([[1.5]], ml_dtypes.bfloat16)
    mixed = elementwise(lambda x, y: x * y, np.array([[3]], np.int8), half)
    assert mixed.tolist() == [[4.5]]
    assert elementwise(lambda x: tw.where(x > 0, 1, x), np.array([[-5, 5]], np.int32)).tolist() == [
        [-5, 1]
    ]
    # Compared as fp32, which holds int8 and the float.
    assert elementwise(
        lambda x: tw.where(x >= 0.5, 1, 0), np.array([[0, 1]], np.int8)
    ).tolist() == [[0, 1]]
    assert elementwise(tw.exp, fp32(-np.inf, 0)).tolist() == [[0, 1]]


def floats(random, count):
    """All exponents, numbers near 1, and what is special."""
    raw = random.integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        near = random.normal(size=count) * 2.0 ** random.integers(-7, 8, count)
    special = fp32(0, -0.0, 1e-45, -1e-45, 1.5, -1.5, np.inf, -np.inf, np.nan, 88, -104, 3e38)
    return np.concatenate([raw, near.astype(np.float32), np.repeat(special, 16)])[np.newaxis, :]


#: Functions of one number: the language's, the machine's, the author's, the error in units of the
#: last significant bit that docs/numerics.md promises, and the argument from which it holds.
UNARY = [
    (tw.exp, functions.exp, np.exp, 1.1, -np.inf),
    (tw.exp2, functions.exp2, np.exp2, 1.1, -np.inf),
    (tw.sqrt, compositions.sqrt, np.sqrt, 2, -np.inf),
    (tw.rsqrt, functions.rsqrt, lambda x: 1 / np.sqrt(x), 1.1, -np.inf),
    (tw.reciprocal, functions.reciprocal, lambda x: 1 / x, 1.1, -np.inf),
    (tw.sigmoid, compositions.sigmoid, lambda x: 1 / (1 + np.exp(-x)), 3.5, -87),
    (tw.silu, compositions.silu, lambda x: x / (1 + np.exp(-x)), 3.5, -87),
]
FUNCTION_BITS = (12, 16, 24)


def same(found, exact, bound, bits=24, where=True):
    """Whether answers are within a bound in units of their last bit of float64's."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        exponent = np.clip(np.frexp(exact)[1], -125, 128)
        unit = np.ldexp(1.0, exponent - bits)
        near = np.abs(found.astype(np.float64) - exact) <= bound * unit
        # An infinity stands for 2^128 where the exact value is less, and is right beyond.
        edge = np.isinf(found) & (np.abs(exact) > 2.0**128 * (1 - bound * 2.0**-bits))
        edge &= np.signbit(found) == np.signbit(exact)
    special = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    return (special | near | edge | ~np.asarray(where)).all()


@pytest.mark.parametrize("bits", FUNCTION_BITS)
@pytest.mark.parametrize(
    ("function", "unit", "author", "bound", "start"), UNARY, ids=[row[0].__name__ for row in UNARY]
)
def test_functions_are_those_of_the_units_and_near_float64(
    function, unit, author, bound, start, bits, seed
):
    x = floats(np.random.default_rng(seed), 100_000)
    found = elementwise(function, x, function_bits=bits)
    assert found.tobytes() == unit(x, bits).tobytes()
    with np.errstate(all="ignore"):
        exact = author(x.astype(np.float64))
    assert same(found, exact, bound, bits, ~(x < start))
    # Below, e^-x may overflow: what that costs is absolute.
    below = np.isfinite(x) & (x < start)
    assert (np.abs(found[below] - exact[below]) < 2.0**-119).all()


@pytest.mark.parametrize("bits", FUNCTION_BITS)
def test_tanh_and_gelu_are_compositions_with_absolute_bounds(bits, seed):
    x = floats(np.random.default_rng(seed), 100_000)
    x[np.isnan(x)] = np.nan
    wide = x.astype(np.float64)
    found = elementwise(tw.tanh, x, function_bits=bits)
    assert found.tobytes() == compositions.tanh(x, bits).tobytes()
    error = np.abs(found - np.tanh(wide))
    assert (error[~np.isnan(x)] <= 2.0 ** -(bits - 2)).all() and np.isnan(found[np.isnan(x)]).all()
    found = elementwise(tw.gelu, x, function_bits=bits)
    assert found.tobytes() == compositions.gelu(x, bits).tobytes()
    with np.errstate(all="ignore"):
        exact = wide / (1 + np.exp(-2 * np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
        near = np.abs(found - exact) <= np.abs(wide) * 2.0 ** -(bits - 2) + 2.0**-149
    finite = np.isfinite(x)
    assert near[finite].all()
    assert (found[np.isposinf(x)] == np.inf).all() and np.isnan(found[x == -np.inf]).all()


@pytest.mark.parametrize("bits", FUNCTION_BITS)
def test_the_logarithm_is_a_composition_with_an_absolute_bound(bits, seed):
    x = np.abs(floats(np.random.default_rng(seed), 100_000))
    found = elementwise(tw.log, x, function_bits=bits)
    assert found.tobytes() == compositions.log(x, bits).tobytes()
    with np.errstate(all="ignore"):
        exact = np.log(x.astype(np.float64))
        error = np.abs(found - exact)
    rounding = 2.0**-21 + 2.0**-23 * np.abs(exact)
    usual = (x >= 2.0**-126) & (x <= 2.0**126)
    assert usual.mean() > 0.8 and (error <= 2.0 ** (1 - bits) + rounding)[usual].all()
    assert (error > 2.0 ** -(bits + 1))[usual].any()
    large = (x > 2.0**126) & np.isfinite(x)
    assert large.any() and (error <= 2.0 ** (3 - bits) + rounding)[large].all()
    assert (found[x < 2.0**-126] == -np.inf).all() and (found[x == np.inf] == np.inf).all()


@pytest.mark.parametrize("bits", FUNCTION_BITS)
def test_logarithms_of_powers_of_two_are_exact_and_those_of_signs_are_nan(bits):
    powers = np.arange(-126, 128)
    found = elementwise(tw.log, np.ldexp(np.float32(1), powers)[np.newaxis, :], function_bits=bits)
    assert (found == np.float32(compositions.LN_2) * powers.astype(np.float32)).all()
    signed = fp32(-0.0, -1e-45, -1, -3e38, -np.inf, np.nan)
    assert np.isnan(elementwise(tw.log, signed, function_bits=bits)).all()


@pytest.mark.parametrize("bits", FUNCTION_BITS)
def test_quotients_are_products_with_reciprocals_and_near_float64(bits, seed):
    random = np.random.default_rng(seed)
    x, y = floats(random, 200_000), random.permutation(floats(random, 200_000), axis=1)
    found = elementwise(lambda x, y: x / y, x, y, function_bits=bits)
    assert found.tobytes() == compositions.divide(x, y, bits).tobytes()
    with np.errstate(all="ignore"):
        exact = x.astype(np.float64) / y
        size = np.abs(y.astype(np.float64))
        usual = (size >= 2.0**-126) & (size <= 2.0**126)
        assert usual.mean() > 0.8 and same(found, exact, 2, bits, usual)
        # 1 / y is subnormal, with an absolute error; the product rounds once more.
        large = (size > 2.0**126) & np.isfinite(size) & np.isfinite(x)
        wide = np.abs(x.astype(np.float64))
        step = wide * (1.1 * 2.0 ** -(125 + bits)) + np.abs(exact) * 2.0**-24 + 2.0**-150
        assert large.any() and (np.abs(found - exact)[large] <= step[large]).all()
    # Of still smaller numbers the reciprocal is infinite.
    assert not np.isfinite(found[size <= 2.0**-128]).any() and (size <= 2.0**-128).any()
    assert (found[np.isinf(size) & np.isfinite(x)] == 0).all()


def test_a_chip_decides_the_bits_of_functions():
    x = fp32(0.1, 1.3)
    default = elementwise(tw.exp, x)
    assert default.tobytes() == functions.exp(x, PcuConfig.function_bits).tobytes()
    assert PcuConfig.function_bits == 16
    for bits in (11, 25):
        message = f"^Function bits must be an integer from 12 to 24, not {bits}$"
        with pytest.raises(BadInputError, match=message):
            elementwise(tw.exp, x, function_bits=bits)


def test_the_mean_of_a_row_is_its_sum_times_the_inverse_of_its_length(seed):
    x = np.random.default_rng(seed).normal(size=(5, 7)).astype(np.float32)
    total = np.zeros((5, 1), np.float32)
    for column in range(7):
        total = total + x[:, column : column + 1]
    found = elementwise(lambda x: tw.row_mean(x) + 0.0 * x, x, function_bits=12)
    assert (found == total * np.float32(1 / 7)).all()


def test_zeros_are_ordered_and_nan_wins():
    x = fp32(0, -0.0, -0.0, np.nan, 1, -np.inf)
    y = fp32(-0.0, 0, -0.0, 1, np.nan, np.nan)
    wanted = {
        tw.maximum: [0, 0, 0x80000000, NAN, NAN, NAN],
        tw.minimum: [0x80000000, 0x80000000, 0x80000000, NAN, NAN, NAN],
    }
    for function, bits_ in wanted.items():
        assert elementwise(function, x, y).view(np.uint32).tolist() == [bits_]
    for reduce, zero in ((tw.row_max, 0), (tw.row_min, 0x80000000)):

        def spread(x, reduce=reduce):
            return tw.where(tw.col_index(x) >= 0, reduce(x), 1.0)

        for zeros in (fp32(-0.0, 0, -0.0), fp32(0, -0.0, -0.0)):
            assert elementwise(spread, zeros).view(np.uint32).tolist() == [[zero] * 3]
        assert (elementwise(spread, fp32(1, np.nan, -np.inf)).view(np.uint32) == NAN).all()


def test_comparisons_order_zeros_infinities_and_nan():
    x, y = (each.ravel() for each in np.meshgrid(fp32(-np.inf, -0.0, 0, 1, np.nan), fp32(0, 1)))
    x, y = x[np.newaxis, :], np.where(x == 1, np.float32(np.nan), y)[np.newaxis, :]
    for compare in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):

        def chosen(x, y, compare=compare):
            return tw.where(compare(x, y), 1, 0)

        found = elementwise(chosen, x, y)
        assert found.dtype == np.int32 and (found == compare(x, y)).all()


def test_integers_are_computed_modulo_2_to_the_32(seed):
    random = np.random.default_rng(seed)
    x, y = random.integers(-(2**31), 2**31, (2, 4, 50)).astype(np.int32)
    x[0, :3] = -(2**31), 2**31 - 1, 0
    for function, wanted in (
        (lambda x, y: x - y, x - y),
        (lambda x, y: x * y, x * y),
        (lambda x, y: tw.maximum(x, y) - tw.minimum(x, -y), np.maximum(x, y) - np.minimum(x, -y)),
        (lambda x, y: abs(x) + y, np.abs(x) + y),
        (lambda x, y: tw.row_max(x) + y, x.max(1, keepdims=True) + y),
    ):
        found = elementwise(function, x, y)
        assert found.dtype == np.int32 and (found == wanted).all()
    bytes_ = np.array([[-128, 127, 0, 5]], np.int8)
    found = elementwise(tw.exp, bytes_)
    assert found.tobytes() == functions.exp(bytes_.astype(np.float32), 16).tobytes()


def test_sums_run_in_ascending_order_from_plus_zero():
    terms = fp32(2**24, 1, 1)
    kept = elementwise(lambda x: tw.row_sum(x) + 0.0 * x, terms)
    assert kept[0, 0] == 2**24
    kept = elementwise(lambda x: tw.row_sum(x) + 0.0 * x, terms[:, ::-1].copy())
    assert kept[0, 0] == 2**24 + 2
    minus = elementwise(lambda x: tw.row_sum(x), fp32(-0.0))
    assert minus.view(np.uint32)[0, 0] == 0


def test_transposes_splits_joins_and_counts():
    array = np.arange(6, dtype=np.int32).reshape(1, 6)

    def rotate(x):
        a, b = tw.split_cols(x, 2)
        return tw.join_cols(b, a) + tw.col_index(x) * 10

    assert elementwise(rotate, array).tolist() == [[3, 14, 25, 30, 41, 52]]
    square = np.arange(4, dtype=np.int32).reshape(2, 2)
    assert elementwise(lambda x: x.T - tw.row_index(x), square).tolist() == [[0, 2], [0, 2]]
    assert elementwise(
        lambda x: tw.col_max(x) - tw.col_min(x) + tw.row_min(x), square
    ).tolist() == [
        [2, 2],
        [4, 4],
    ]


def test_inputs_are_not_changed_and_updates_in_place_are_given_back():
    def double(T):
        tw.store_tile(T, tw.load_tile(T) + tw.load_tile(T))

    kernel = tw.kernel("T[M, N] -> T")(double)
    array = np.ones((2, 3), np.int32)
    program = kernel.trace(M=2, N=3, dtype=tw.int32)
    assert golden(program, {"T": array})["T"].tolist() == [[2] * 3] * 2
    assert array.tolist() == [[1] * 3] * 2


def test_what_golden_cannot_do_is_refused():
    program = matmul.trace(M=2, K=2, N=2, dtype=tw.bf16)
    good = np.zeros((2, 2), ml_dtypes.bfloat16)
    sized = accumulate(choose_sizes(program))
    for run, arrays, message in (
        (program, {"A": good, "B": good}, "Block size of loop i must be chosen"),
        (sized, {"A": good}, "Array `B` must be given"),
        (sized, {"A": good, "B": good[:1]}, r"Array `B` must be bf16 of \(2, 2\), not bfloat16"),
        (sized, {"A": good, "B": good.astype(np.float32)}, "must be bf16 of .* not float32"),
    ):
        with pytest.raises(BadInputError, match=message):
            golden(run, arrays)
