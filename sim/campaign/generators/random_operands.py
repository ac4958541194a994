"""Random operands by kind: narrow or wide exponents, special values, zeros, least integer."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.numeric.formats import Format
from sw.array_spec import ArraySpec

__all__ = ["KINDS", "operands_of", "random_operands"]

Array = npt.NDArray[Any]

#: Kinds of operands; of integers all but ``zero`` and ``least`` are uniform.
KINDS = ("6", "40", "full", "special", "sparse", "zero", "least")
_SPECIAL_SHARE, _SPARSE_SHARE = 0.05, 0.9


def random_operands(rng: random.Random) -> dict[str, Any]:
    """Draw kind and seed of operands as plain data."""
    return {"kind": rng.choice(KINDS), "seed": rng.getrandbits(31)}


def _specials(fmt: Format) -> list[int]:
    """Bits of zeros, subnormals, the smallest normal, the largest values, infinities and NaN."""
    normal, sign = 1 << fmt.fraction_bits, 1 << (fmt.bits - 1)
    chosen = [0, sign, 1, sign | normal - 1, normal, fmt.largest, sign | fmt.largest]
    if fmt.has_infinity:
        # One NaN has a payload as long as the format has room for.
        payload = fmt.infinity | 0x21 & normal - 1
        infinities = [fmt.infinity, sign | fmt.infinity]
        fill = [] if fmt.fill_nan is None else [fmt.fill_nan]
        return [*chosen, *infinities, fmt.canonical_nan, payload, *fill]
    return [*chosen, fmt.canonical_nan, sign | fmt.canonical_nan]


def _floats(rng: np.random.Generator, shape: tuple[int, ...], fmt: Format, kind: str) -> Array:
    spread = {"6": 6, "40": 40, "special": 12, "sparse": 6}.get(kind, 126)
    width, most = fmt.fraction_bits, fmt.largest >> fmt.fraction_bits
    field = rng.integers(max(0, fmt.bias - spread), min(most, fmt.bias + spread) + 1, shape)
    fraction = rng.integers(0, 1 << width, shape)
    magnitude = np.minimum(fraction | field << width, fmt.largest)
    bits = magnitude | rng.integers(0, 2, shape) << (fmt.bits - 1)
    if kind == "special":
        replaced = rng.random(shape) < _SPECIAL_SHARE
        bits = np.where(replaced, rng.choice(np.array(_specials(fmt)), shape), bits)
    return fmt.from_bits(bits)


def _array(rng: np.random.Generator, shape: tuple[int, ...], fmt: Format, kind: str) -> Array:
    if fmt.is_float:
        array = _floats(rng, shape, fmt, kind)
    else:
        array = rng.integers(-128, 128, shape).astype(fmt.dtype)
        if kind == "least":
            array = np.full(shape, -128, fmt.dtype)
    if kind in ("zero", "sparse"):
        array[rng.random(shape) < (1.0 if kind == "zero" else _SPARSE_SHARE)] = 0
    return array


def operands_of(given: dict[str, Any], arrays: Iterable[ArraySpec]) -> dict[str, Array]:
    """Generate the arrays of a kind and a seed, by name.

    Parameters
    ----------
    given : mapping
        ``kind``, one of `KINDS`, and ``seed``.
    arrays : iterable of ArraySpec
        The inputs, in formats that cells multiply.
    """
    rng = np.random.default_rng(given["seed"])
    return {spec.name: _array(rng, spec.shape, spec.format, given["kind"]) for spec in arrays}
