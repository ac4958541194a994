"""Operands, sums and arguments that are hard for the float cells and for the functions."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hw.numeric import reference
from hw.numeric.formats import LANE_BITS, Format, fp32
from hw.numeric.function_tables import (
    exp2_table,
    log2_table,
    reciprocal_table,
    rsqrt_table,
    tanh_table,
)
from tests.hw.float.triples import FILL, FP32_EDGES

__all__ = [
    "Macs",
    "all_pairs",
    "alone",
    "arguments",
    "assert_special",
    "edge_macs",
    "exact_values",
    "exactly",
    "expected",
    "factors",
    "products_that_cancel",
    "random_macs",
    "random_mx",
    "scales",
    "sixteen_bit_arguments",
    "table_borders",
    "ulps",
    "words",
]

Array = npt.NDArray[Any]

#: fp16 magnitudes: zero, first and last subnormals, first normals, round 1, the ends, NaN.
FP16_EDGES = (
    *(0x0000, 0x0001, 0x0002, 0x0200, 0x03FF, 0x0400, 0x0401, 0x07FF, 0x1400, 0x3800, 0x3BFF),
    *(0x3C00, 0x3C01, 0x3FFF, 0x4000, 0x5800, 0x7800, 0x7BFF, 0x7C00, 0x7C01, 0x7E00, 0x7FFF),
)


#: Bytes that are zero, the smallest, the largest, infinite or NaN in e4m3, e5m2 or both.
BYTE_EDGES = (0x00, 0x80, 0x01, 0x81, 0x04, 0x7B, 0x7C, 0xFC, 0x7D, 0x7E, 0xFE, 0x7F)


class Macs(NamedTuple):
    """Bits of multiply-accumulates: lanes of 16 bits (shorter operands, lowest first) and sums."""

    a: Array
    w: Array
    p: Array


def scales(lane: Array) -> Array:
    """Scales of microscaled lanes, in float64."""
    code = lane.astype(np.int64) >> LANE_BITS
    return np.where(code == 255, np.nan, np.ldexp(1.0, code - 127))


def _values(lane: Array, format_: Format) -> Array:
    """Operands of a lane; those of fewer than 16 bits on a last axis."""
    if format_.bits == 16:
        return format_.from_bits(lane)
    mask = (1 << format_.bits) - 1
    lows = range(0, 16, format_.bits)
    return np.stack([format_.from_bits(lane >> low & mask) for low in lows], -1)


def factors(a: int, w: int, format_: Format) -> list[tuple[int, int]]:
    """Bits of the operands of the products of two lanes."""
    mask = (1 << format_.bits) - 1
    return [(a >> low & mask, w >> low & mask) for low in range(0, 16, format_.bits)]


def expected(macs: Macs, left: Format, right: Format) -> Array:
    """Bits of the reference's answers."""
    mac = reference.mac if left.products_per_cycle == 1 else reference.mac_lane
    start = left.accumulator.from_bits(macs.p)
    return left.accumulator.bits_of(mac(start, _values(macs.a, left), _values(macs.w, right)))


def random_mx(count: int, seed: int, left: Format, right: Format) -> tuple[Macs, Array]:
    """Operands as of :func:`random_macs` with scales in bits 23..16, and the reference's answers.

    A quarter of the scales are any, a quarter the extremes, 1 and NaN, and half moderate; of those
    half bring the products to fp32's smallest values.
    """
    rng = np.random.default_rng(seed)
    a, w, p = random_macs(count, seed, left, right)
    kind = rng.integers(0, 8, count)
    ends = rng.choice([0, 1, 126, 127, 253, 254, 255], (2, count))
    near = rng.integers(67, 188, count)
    low = np.clip(254 - near - rng.integers(100, 170, count), 0, 254)
    others = rng.integers(67, 188, count), rng.integers(0, 256, count), rng.integers(0, 256, count)
    kinds = [kind < 2, kind < 4, kind < 6]
    codes = [
        np.select(kinds, [others[1], ends[0], near], near),
        np.select(kinds, [others[2], ends[1], low], others[0]),
    ]
    a, w = (x | code.astype(np.uint32) << LANE_BITS for x, code in zip((a, w), codes, strict=True))
    both = scales(a) * scales(w)
    values = [_values(x & 0xFFFF, fmt).astype(np.float64) for x, fmt in ((a, left), (w, right))]
    with np.errstate(all="ignore"):
        terms = [(values[0][:, i] * both, values[1][:, i]) for i in range(values[0].shape[1])]
        added = sum(x * y for x, y in terms).astype(np.float32).view(np.uint32).astype(np.int64)
    field = np.clip((added >> 23 & 0xFF) + rng.integers(-30, 31, count), 0, 254)
    random_bits = rng.integers(0, 1 << 32, count)
    interacting = random_bits & ~(0xFF << 23) | field << 23
    cancelling = ((added ^ 1 << 31) + rng.integers(-3, 4, count)) & 0xFFFFFFFF
    chance = rng.random(count)
    p = np.select([chance < 0.4, chance < 0.7, chance < 0.8], [interacting, cancelling, 0], p)
    with np.errstate(invalid="ignore"):
        start = fp32.from_bits(p).astype(np.float64)
        exact = fp32.bits_of(reference.add_products(start, terms))
    return Macs(a, w, p.astype(np.uint32)), exact


def all_pairs(rng: np.random.Generator, bits: int = 8) -> tuple[Array, Array]:
    """Lanes with every pair of operands as the lowest product, and so on, beside random ones."""
    pairs, mask = np.arange(1 << 2 * bits), (1 << bits) - 1
    lanes = []
    for low in range(0, 16, bits):
        others = rng.integers(0, 1 << 16, (2, len(pairs))) & ~(mask << low)
        lanes.append(others | np.stack([(pairs & mask) << low, pairs >> bits << low]))
    a, w = np.concatenate(lanes, 1).astype(np.uint32)
    return a, w


def alone(lanes: Array, bits: int) -> Array:
    """Lanes of :func:`all_pairs` without the random operands."""
    low = np.arange(len(lanes)) >> 2 * bits
    return (lanes & ((1 << bits) - 1) << low * bits).astype(np.uint32)


def edge_macs() -> Macs:
    """Every combination of the edge values of fp16 and fp32 with both signs: 100,672."""
    short = [edge | sign for edge in FP16_EDGES for sign in (0, 0x8000)]
    long = [edge | sign for edge in FP32_EDGES for sign in (0, 0x80000000)]
    p, a, w = np.meshgrid(long, short, short, indexing="ij")
    return Macs(*(column.ravel().astype(np.uint32) for column in (a, w, p)))


def _lanes(rng: np.random.Generator, count: int, format_: Format) -> Array:
    """Random lanes; a third of the fractions are nearly empty or nearly full.

    An eighth of the bytes are zeros, the ends of the range, infinities or NaN; of 4-bit operands a
    quarter of the lanes are of zeros and largest values. One 16-bit float in 128 is a fill.
    """
    lanes = rng.integers(0, 1 << 16, count)
    if format_.bits == 4:
        ends = rng.choice([0x0, 0x7, 0x8, 0xF], (4, count))
        edges = ends[0] | ends[1] << 4 | ends[2] << 8 | ends[3] << 12
        return np.where(rng.random(count) < 0.25, edges, lanes)
    fractions = (1 << format_.fraction_bits) - 1
    if format_.bits == 8:
        fractions |= fractions << 8
    sparse = lanes.copy()
    for _ in range(3):
        sparse &= rng.integers(0, 1 << 16, count)
    sparse ^= np.where(rng.random(count) < 0.5, 0xFFFF, 0)
    lanes = np.where(rng.random(count) < 0.33, lanes & ~fractions | sparse & fractions, lanes)
    if format_.bits == 8:
        for low in (0, 8):
            edges = rng.choice(BYTE_EDGES, count) << low
            lanes = np.where(rng.random(count) < 1 / 8, lanes & (0xFF00 >> low) | edges, lanes)
        return lanes
    return np.where(rng.random(count) < 1 / 128, FILL, lanes)


def random_macs(count: int, seed: int, left: Format, right: Format) -> Macs:
    """A mix: 1/8 sums of uniform bits, half with exponents that interact, 1/4 deep cancellation,
    1/8 sums round the subnormals.

    An interacting sum lies within 30 binades of what is added. A cancelling one is minus that,
    rounded to fp32, with its last bits disturbed in half the cases. Of pairs a quarter of the
    second products are nearly minus the first, of four e2m1 as many third and fourth ones.
    """
    rng = np.random.default_rng(seed)
    a, w = _lanes(rng, count, left), _lanes(rng, count, right)
    if left.bits < 16:
        nearly = rng.random(count) < 0.25
        flip = (0x80 if left.bits == 8 else 0x88) ^ rng.integers(0, 2, count)
        a = np.where(nearly, a & 0xFF | ((a ^ flip) & 0xFF) << 8, a)
        w = np.where(nearly, (w & 0xFF) * 0x101, w)
    if not left.is_float:
        # A fifth of the sums wrap round, or nearly.
        near = (1 << 31) + rng.integers(-600, 600, count)
        p = np.where(rng.random(count) < 0.2, near, rng.integers(0, 1 << 32, count))
        return Macs(a.astype(np.uint32), w.astype(np.uint32), p.astype(np.uint32))
    zero = Macs(a, w, np.zeros(count, np.uint32))
    added = expected(zero, left, right).astype(np.int64)
    field = np.clip((added >> 23 & 0xFF) + rng.integers(-30, 31, count), 0, 254)
    random_bits = rng.integers(0, 1 << 32, count)
    interacting = random_bits & ~(0xFF << 23) | field << 23
    noise = rng.integers(-7, 8, count) * rng.integers(0, 2, count) << rng.integers(0, 20, count)
    cancelling = ((added ^ 1 << 31) + noise) & 0xFFFFFFFF
    tiny = random_bits & 0x80FFFFFF
    kind = rng.random(count)
    p = np.select(
        [kind < 0.5, kind < 0.75, kind < 0.875], [interacting, cancelling, tiny], random_bits
    )
    special = rng.choice([0, 1 << 31, fp32.infinity, fp32.infinity | 1 << 31], count)
    p = np.where(rng.random(count) < 0.02, special, p)
    return Macs(a.astype(np.uint32), w.astype(np.uint32), p.astype(np.uint32))


def arguments(count: int, seed: int) -> Array:
    """Bits of fp32: every edge, half uniform bits, half of exponents where functions are alive."""
    rng = np.random.default_rng(seed)
    half = count // 2
    exponent = rng.integers(127 - 30, 127 + 8, count - half)
    alive = rng.integers(0, 2, count - half) << 31 | exponent << 23
    alive |= rng.integers(0, 1 << 23, count - half)
    edges = [edge | sign for edge in FP32_EDGES for sign in (0, 1 << 31)]
    return np.concatenate([edges, rng.integers(0, 1 << 32, half), alive]).astype(np.uint32)


def words(count: int, seed: int) -> tuple[Array, Array]:
    """Two columns of fp32 bits that meet: equal, opposite, neighbours, of near exponents, edges."""
    rng = np.random.default_rng(seed)
    a = arguments(count, seed)
    near = a.astype(np.int64) + rng.integers(-3, 4, len(a))
    near ^= rng.integers(0, 2, len(a)) << 31
    field = np.clip((a >> 23 & 0xFF) + rng.integers(-28, 29, len(a)), 0, 255)
    close = field << 23 | rng.integers(0, 1 << 23, len(a)) | rng.integers(0, 2, len(a)) << 31
    edges = np.resize([edge | sign for edge in FP32_EDGES for sign in (0, 1 << 31)], len(a))
    shuffled = rng.permutation(a)
    kind = rng.integers(0, 8, len(a))
    b = np.select([kind < 2, kind < 5, kind < 6], [near, close, edges], shuffled)
    return a, (b & 0xFFFFFFFF).astype(np.uint32)


def products_that_cancel(count: int, seed: int) -> tuple[Array, Array, Array]:
    """Bits of a, b, c with c near -a * b in half the cases."""
    a, b = words(count, seed)
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        product = -fp32.from_bits(a) * fp32.from_bits(b)
    near = product.view(np.uint32).astype(np.int64) + rng.integers(-2, 3, len(a))
    return a, b, np.where(rng.random(len(a)) < 0.5, near, rng.permutation(b)).astype(np.uint32)


def sixteen_bit_arguments(format_: Format) -> Array:
    """Bits of fp32 of every value of a 16-bit float."""
    every = format_.from_bits(np.arange(1 << 16))
    return fp32.bits_of(reference.cast(every, fp32))


def table_borders(name: str, width: int = 24) -> Array:
    """Bits of fp32 within 4 units in the last place of where a function of a width changes row.

    Every row of every binade, of both signs.
    """
    whole = np.arange(-151, 130)[:, np.newaxis]
    if name in ("exp", "exp2"):
        rows = 1 << exp2_table(width).index_bits
        borders = (whole + np.arange(rows) / rows) * (np.log(2) if name == "exp" else 1)
    elif name in ("sigmoid", "tanh"):
        rows = 1 << exp2_table(width).index_bits
        steps = 1 << reciprocal_table(width, rounded=True).index_bits
        powers = (whole + np.arange(rows) / rows).ravel() * np.log(2)
        borders = np.concatenate([powers, np.log(np.arange(1, steps) / steps)])
        if name == "tanh":
            rows = 1 << tanh_table(width).index_bits
            borders = np.concatenate([borders / 2, np.arange(rows + 1) / rows])
    else:
        table = {"reciprocal": reciprocal_table, "rsqrt": rsqrt_table, "log2": log2_table}[name]
        rows = 1 << table(width).index_bits
        mantissas = 1 + np.arange(rows) / rows
        borders = np.ldexp(mantissas, np.arange(-149, 128)[:, np.newaxis])
    with np.errstate(over="ignore"):
        near = np.abs(borders).ravel().astype(np.float32).view(np.uint32).astype(np.int64)
    near = np.unique(near)[:, np.newaxis] + np.arange(-4, 5)
    magnitudes = np.unique(np.clip(near, 0, fp32.infinity))
    return np.concatenate([magnitudes, magnitudes | 1 << 31]).astype(np.uint32)


def exact_values(name: str, x: Array) -> Array:
    """Values of a function in float64: right to some 2^-51, far below an fp32's last bit."""
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        decay = np.exp(-np.abs(wide))
        answers = {
            "exp": np.exp,
            "exp2": np.exp2,
            "log2": np.log2,
            "reciprocal": np.reciprocal,
            "rsqrt": lambda v: 1 / np.sqrt(v),
            "sigmoid": lambda v: np.where(v < 0, decay, 1) / (1 + decay),
            "tanh": np.tanh,
        }
        return answers[name](wide)


def exactly(name: str, x: Decimal) -> Decimal:
    """A function of a rational, to the digits of the context."""
    if name in ("exp", "exp2"):
        return (x * Decimal(2).ln()).exp() if name == "exp2" else x.exp()
    if name == "sigmoid":
        power = (-abs(x)).exp()
        return (power if x < 0 else 1) / (1 + power)
    if name == "tanh":
        power = (-2 * abs(x)).exp()
        return ((1 - power) / (1 + power)).copy_sign(x)
    if name == "log2":
        return x.ln() / Decimal(2).ln()
    return 1 / (x.sqrt() if name == "rsqrt" else x)


def ulps(answer: Array, exact: Array, width: int = 24) -> Array:
    """Distances of fp32 answers from exact values, in units of a significand of so many bits.

    Not counted, 0, where either is infinite or NaN: those are compared for themselves.
    """
    with np.errstate(all="ignore"):
        unit = np.ldexp(1.0, np.maximum(np.frexp(exact)[1] - width, -125 - width))
        distance = np.abs(answer.astype(np.float64) - exact) / unit
    return np.where(np.isfinite(answer) & np.isfinite(exact), distance, 0)


def assert_special(answer: Array, exact: Array, width: int = 24) -> None:
    """Assert that answers are NaN and infinite where the exact values make them so.

    What rounds beyond the largest value of the width is infinite; what is smaller than that by
    two units in the last place is not.
    """
    np.testing.assert_array_equal(np.isnan(answer), np.isnan(exact))
    with np.errstate(invalid="ignore"):
        beyond = np.abs(exact) >= 2.0**128 * (1 - 2.0 ** -(width + 1))
        within = np.abs(exact) < 2.0**128 * (1 - 2.0 ** -(width - 2))
        same_sign = np.signbit(answer) == np.signbit(exact)
    infinite = np.isinf(answer)
    wrong = (infinite & (within | ~same_sign)) | (~infinite & beyond)
    assert not wrong.any(), f"{wrong.sum()} infinities wrong, first at {np.nonzero(wrong)[0][0]}"
