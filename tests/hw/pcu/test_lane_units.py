"""Units of a lane, natively, against numpy; numpy against rationals and Python's integers."""

import math

import numpy as np
import pytest

from hw.arch.errors import BadInputError
from hw.numeric.alu import alu, ceil, fused_multiply_add
from hw.numeric.alu_codes import AluOperation
from hw.numeric.formats import fp32
from tests.hw.float.stimuli import arguments, products_that_cancel, words
from tests.hw.numeric.rationals import FP32, sum_of_products


@pytest.fixture
def model(pcu_units):
    return pcu_units[2]


def answers(model, name, columns, stall=0.0):
    """Results of a unit for columns of (values, bits), lowest first."""
    count = len(columns[0][0])
    total = [0] * count
    low = 0
    for values, bits in columns:
        for row, value in enumerate(values.tolist()):
            total[row] |= value << low
        low += bits
    payloads = np.array(
        [[word >> 32 * i & 0xFFFFFFFF for i in range((low + 31) // 32)] for word in total],
        np.uint32,
    )
    crossed = model.run(
        {f"{name}_i_stream": payloads},
        {f"{name}_o_stream": count},
        stalls={f"{name}_i_stream": stall},
    )
    return crossed[f"{name}_o_stream"].words[:, 0]


def subnormal_factors(count, seed):
    """Bits of a subnormal a, a large b, and c near -a * b or of any exponent near."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 1 << 23, count) >> rng.integers(0, 23, count)
    a |= rng.integers(0, 2, count) << 31
    b = rng.integers(0, 255, count) << 23 | rng.integers(0, 1 << 23, count)
    with np.errstate(all="ignore"):
        product = -fp32.from_bits(a.astype(np.uint32)) * fp32.from_bits(b.astype(np.uint32))
    near = product.view(np.uint32).astype(np.int64)
    near = near + rng.integers(-2, 3, count)
    field = np.clip((near >> 23 & 0xFF) + rng.integers(-27, 28, count), 0, 254)
    others = field << 23 | rng.integers(0, 1 << 23, count) | rng.integers(0, 2, count) << 31
    c = np.where(rng.random(count) < 0.5, near & 0xFFFFFFFF, others)
    return tuple(x.astype(np.uint32) for x in (a, b, c))


@pytest.mark.few(1)
@pytest.mark.parametrize("make", [products_that_cancel, subnormal_factors])
def test_the_multiply_add_unit_equals_numpy(model, make, seed):
    a, b, c = make(60_000, seed)
    rng = np.random.default_rng(seed)
    signs = rng.integers(0, 2, (2, len(a)))
    columns = [(a, 32), (b, 32), (c, 32), (signs[0], 1), (signs[1], 1)]
    got = answers(model, "fma", columns, stall=0.2)
    floats = [fp32.from_bits(x) for x in (a, b, c)]
    for product in (False, True):
        for addend in (False, True):
            own = (signs[0] == product) & (signs[1] == addend)
            exact = fused_multiply_add(
                *(x[own] for x in floats), negate_product=product, negate_addend=addend
            )
            assert (got[own] == fp32.bits_of(exact)).all()
            for x, y, z, bits in list(
                zip(*(v[own].tolist() for v in (a, b, c)), got[own].tolist(), strict=True)
            )[:500]:
                left, last = x ^ product << 31, z ^ addend << 31
                assert bits == sum_of_products(last, [(left, y)], FP32, FP32)


@pytest.mark.few(6)
@pytest.mark.parametrize("operation", AluOperation, ids=lambda operation: operation.name)
def test_the_alu_equals_numpy(model, operation, seed, draws):
    a, b = words(draws(6_000, 30_000), seed)
    rng = np.random.default_rng(seed)
    c, d = rng.integers(0, 1 << 32, (2, len(a)), dtype=np.uint32)
    if operation in (AluOperation.TO_INT32, AluOperation.CEIL):
        # Around integers and halves.
        halves = rng.integers(-(1 << 12), 1 << 12, len(a)) / 2
        near = fp32.bits_of(halves.astype(np.float32)) + rng.integers(-1, 2, len(a))
        a = np.where(rng.random(len(a)) < 0.3, near & 0xFFFFFFFF, a).astype(np.uint32)
    if operation is AluOperation.FROM_INT32:
        a >>= rng.integers(0, 32, len(a)).astype(np.uint32)
    codes = np.full(len(a), operation.value)
    got = answers(model, "alu", [(codes, 4), (a, 32), (b, 32), (c, 32), (d, 32)])
    assert (got == alu(operation, a, b, c, d)).all()


def test_the_alu_takes_another_operation_in_every_cycle(model, seed):
    a, b = words(20_000, seed)
    codes = np.random.default_rng(seed).integers(0, len(AluOperation), len(a))
    got = answers(model, "alu", [(codes, 4), (a, 32), (b, 32), (b, 32), (a, 32)], stall=0.3)
    for operation in AluOperation:
        own = codes == operation
        x, y = a[own], b[own]
        assert (got[own] == alu(operation, x, y, y, x)).all()


def test_integer_operations_in_numpy_equal_python(seed):
    a, b = words(500, seed)

    def signed(x):
        return x - (x >> 31 << 32)

    def integer(operation):
        return alu(operation, a, b, a, b).tolist()

    rows = list(zip(a.tolist(), b.tolist(), strict=True))
    mask = 0xFFFFFFFF
    assert integer(AluOperation.ADD_INT32) == [x + y & mask for x, y in rows]
    assert integer(AluOperation.SHIFT_LEFT) == [x << (y & 31) & mask for x, y in rows]
    assert integer(AluOperation.SHIFT_RIGHT) == [signed(x) >> (y & 31) & mask for x, y in rows]
    smaller = [x if signed(x) < signed(y) else y for x, y in rows]
    assert integer(AluOperation.SELECT_LESS_INT32) == smaller
    for operation, of in (("AND", int.__and__), ("OR", int.__or__), ("XOR", int.__xor__)):
        assert integer(AluOperation[operation]) == [of(x, y) for x, y in rows]


def test_the_ceiling_in_numpy_is_the_least_integer_not_below(seed):
    x = fp32.from_bits(arguments(2_000, seed))
    kept = x[np.isfinite(x)]
    assert ceil(kept).tolist() == [math.ceil(each) for each in kept.tolist()]
    assert np.signbit(ceil(np.float32([-0.5, -0.0]))).all()
    assert fp32.bits_of(ceil(np.float32([np.nan])))[0] == fp32.canonical_nan
    with pytest.raises(BadInputError, match="must be of float32, not float64"):
        ceil(np.float64(1))


def test_a_code_of_no_operation_is_refused():
    words = [np.zeros(1, np.uint32)] * 4
    with pytest.raises(BadInputError, match="must be one of AluOperation, not 16"):
        alu(len(AluOperation), *words)
