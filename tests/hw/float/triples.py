"""Operands of multiply-accumulates that provoke every hazard of the arithmetic."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["FILL", "Triples", "edge_triples", "random_triples"]

Array = npt.NDArray[Any]

#: The NaN of 16-bit floats that fills boxes outside a tensor; as an operand it is +0.
FILL = 0x7FFF
#: bf16 magnitudes: zero, first and last subnormals, first normals, round 1, the ends, NaN.
BF16_EDGES = (
    *(0x0000, 0x0001, 0x0002, 0x0040, 0x007F, 0x0080, 0x0081, 0x00FF, 0x1F80, 0x2000, 0x3F7F),
    *(0x3F80, 0x3F81, 0x3FFF, 0x4000, 0x5F80, 0x7F00, 0x7F7F, 0x7F80, 0x7F81, 0x7FC0, 0x7FFF),
)
#: fp32 magnitudes, the same and their neighbours; NaN with a payload only in the lowest bit too.
FP32_EDGES = (
    *(0x00000000, 0x00000001, 0x00000002, 0x00400000, 0x007FFFFF, 0x00800000, 0x00800001),
    *(0x00FFFFFF, 0x01000000, 0x33800000, 0x3F000000, 0x3F7FFFFF, 0x3F800000, 0x3F800001),
    *(0x3FFFFFFF, 0x40000000, 0x4B000000, 0x4B7FFFFF, 0x7E800000, 0x7F7F0000, 0x7F7FFFFE),
    *(0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF),
)


class Triples(NamedTuple):
    """Sums (fp32 bits) and operands (bf16 bits) of as many multiply-accumulates."""

    acc: Array
    a: Array
    w: Array


def _fields(rng: np.random.Generator, exponent: Array, fraction_bits: int) -> Array:
    """Bits of floats with random signs and fractions, and an exponent field clipped to fit."""
    fraction = rng.integers(0, 1 << fraction_bits, exponent.size)
    # A third of the fractions are nearly empty or nearly full: ties, carries over every bit.
    sparse = rng.integers(0, 1 << fraction_bits, exponent.size)
    for _ in range(3):
        sparse &= rng.integers(0, 1 << fraction_bits, exponent.size)
    sparse ^= rng.integers(0, 2, exponent.size) * ((1 << fraction_bits) - 1)
    fraction = np.where(rng.random(exponent.size) < 0.33, sparse, fraction)
    sign = rng.integers(0, 2, exponent.size)
    field = np.clip(exponent, 0, 254)
    return (sign << (8 + fraction_bits)) | (field << fraction_bits) | fraction


def _operands(rng: np.random.Generator, product: Array) -> tuple[Array, Array]:
    """Bits of two bf16 whose product has about the given exponent (biased as in fp32)."""
    total = product + 127
    low = np.maximum(0, total - 254)
    high = np.minimum(254, total)
    a = low + (rng.random(product.size) * (high - low + 1)).astype(np.int64)
    return _fields(rng, a, 7), _fields(rng, total - a, 7)


def _value(bits: Array) -> Array:
    """Values, as float64, of bf16 bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def edge_triples() -> Triples:
    """Every combination of the edge values with both signs: 100,672."""
    bf16_edges = [edge | sign for edge in BF16_EDGES for sign in (0, 0x8000)]
    fp32_edges = [edge | sign for edge in FP32_EDGES for sign in (0, 0x80000000)]
    acc, a, w = np.meshgrid(fp32_edges, bf16_edges, bf16_edges, indexing="ij")
    return Triples(
        acc.ravel().astype(np.uint32), a.ravel().astype(np.uint16), w.ravel().astype(np.uint16)
    )


def random_triples(count: int, seed: int) -> Triples:
    """A mix: 1/8 uniform bits, 3/8 exponents that interact, 1/4 deep cancellation, 1/4 tiny.

    One operand in 128 is the NaN that fills boxes.

    The sum of an interacting triple lies within 30 binades of its product. In a cancelling one it
    is minus the product, rounded to fp32, with its last bits disturbed in half the cases. Tiny
    ones have products and sums round the smallest normal and the smallest subnormal.
    """
    rng = np.random.default_rng(seed)
    shares = (count // 8, 3 * count // 8, count // 4)
    uniform, interacting, cancelling = shares
    tiny = count - sum(shares)

    parts: list[tuple[Array, Array, Array]] = []
    parts.append(
        (
            rng.integers(0, 1 << 32, uniform),
            rng.integers(0, 1 << 16, uniform),
            rng.integers(0, 1 << 16, uniform),
        )
    )

    exponent = rng.integers(-20, 264, interacting)
    a, w = _operands(rng, exponent)
    parts.append((_fields(rng, exponent + rng.integers(-30, 31, interacting), 23), a, w))

    a, w = _operands(rng, rng.integers(-30, 258, cancelling))
    with np.errstate(over="ignore"):
        opposite = (-_value(a) * _value(w)).astype(np.float32).view(np.uint32).astype(np.int64)
    noise = rng.integers(-7, 8, cancelling) * rng.integers(0, 2, cancelling)
    noise <<= rng.integers(0, 20, cancelling)
    parts.append(((opposite + noise) & 0xFFFFFFFF, a, w))

    a, w = _operands(rng, rng.integers(-30, 8, tiny))
    parts.append((_fields(rng, rng.integers(-6, 6, tiny), 23), a, w))

    order = rng.permutation(count)
    acc, a, w = (np.concatenate(column)[order] for column in zip(*parts, strict=True))
    a, w = (np.where(rng.random(count) < 1 / 128, FILL, bits) for bits in (a, w))
    return Triples(acc.astype(np.uint32), a.astype(np.uint16), w.astype(np.uint16))
