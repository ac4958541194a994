"""Random operands by kind: narrow or wide exponents, special values, zeros, least integer."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.numeric.formats import Format, bf16
from sw.array_spec import ArraySpec

__all__ = ["KINDS", "operands_of", "random_operands"]

Array = npt.NDArray[Any]

#: Kinds of operands; of integers all but ``zero`` and ``least`` are uniform.
KINDS = ("6", "40", "full", "special", "sparse", "zero", "least")
_SPECIALS = (0x0000, 0x8000, 0x0001, 0x807F, 0x0080, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0x7FA1)
_SPECIAL_SHARE, _SPARSE_SHARE = 0.05, 0.9


def random_operands(rng: random.Random) -> dict[str, Any]:
    """Draw kind and seed of operands as plain data."""
    return {"kind": rng.choice(KINDS), "seed": rng.getrandbits(31)}


def _floats(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> Array:
    spread = {"6": 6, "40": 40, "special": 12, "sparse": 6}.get(kind, 126)
    field = rng.integers(max(0, 127 - spread), 127 + spread + 1, shape)
    bits = rng.integers(0, 128, shape) | field << 7 | rng.integers(0, 2, shape) << 15
    if kind == "special":
        replaced = rng.random(shape) < _SPECIAL_SHARE
        bits = np.where(replaced, rng.choice(np.array(_SPECIALS), shape), bits)
    return bf16.from_bits(bits)


def _array(rng: np.random.Generator, shape: tuple[int, ...], fmt: Format, kind: str) -> Array:
    if fmt == bf16:
        array = _floats(rng, shape, kind)
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
        The inputs, in bf16 or int8.
    """
    rng = np.random.default_rng(given["seed"])
    return {spec.name: _array(rng, spec.shape, spec.format, given["kind"]) for spec in arrays}
