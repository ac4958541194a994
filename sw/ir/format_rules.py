"""Number formats of tiles and tensors, and their conversion rules."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from hw.arch.errors import BadInputError
from hw.numeric.formats import Format, bf16, e4m3, e5m2, fp16, fp32, int8, int32, named
from hw.numeric.product_formats import RESULT_FORMATS

__all__ = [
    "FORMATS",
    "Format",
    "bf16",
    "common",
    "castable",
    "convertible",
    "e4m3",
    "e5m2",
    "format_of",
    "fp16",
    "fp32",
    "int8",
    "int32",
    "narrow",
    "pred",
    "rounded",
    "takes_constant",
    "widens",
]

#: Format of a comparison's result, which cannot be stored.
pred = Format("pred", "bool", 8)

#: Every supported format, by its name; other formats of the hardware are refused.
FORMATS: dict[str, Format] = {each.name: each for each in (*RESULT_FORMATS, fp32, int32, pred)}


def narrow(format_: Format) -> bool:
    """Return whether ``@`` takes operands of this format."""
    return format_ in RESULT_FORMATS


def rounded(format_: Format) -> Format:
    """Return the format to which fp32 results are rounded for inputs of a format.

    It is the format itself, or bf16 for 8-bit floats, whose range is too short for sums.
    """
    return RESULT_FORMATS.get(format_, (format_,))[0]


def widens(source: Format, target: Format) -> bool:
    """Return whether every value of ``source`` is a value of ``target``."""
    if source == target or pred in (source, target):
        return source == target
    if source.is_float:
        return target.exponent_bits >= source.exponent_bits and (
            target.fraction_bits >= source.fraction_bits
        )
    # The least integer is a power of two, which a float has with one bit less.
    return source.bits - target.is_float <= target.significand_bits


def convertible(source: Format, target: Format) -> bool:
    """Return whether a store converts ``source`` to ``target``.

    It converts exactly where that is possible, otherwise only within floats or within integers:
    fp32 to bf16 rounds to nearest even, int32 to int8 saturates.
    """
    same_kind = source.is_float == target.is_float and pred not in (source, target)
    return same_kind or widens(source, target)


def takes_constant(source: Format, target: Format) -> bool:
    """Return whether a number of ``source`` may stand for one of ``target``: floats are rounded."""
    return widens(source, target) or (source.is_float and target.is_float)


def castable(source: Format, target: Format) -> bool:
    """Return whether ``.to`` converts ``source`` to ``target``: as a store, or by rounding.

    int32 rounds to fp32, to nearest even. A float rounds to the nearest integer, ties to even, and
    saturates; NaN becomes 0.
    """
    if convertible(source, target):
        return True
    return target == fp32 if source == int32 else source.is_float and target in (int8, int32)


def common(*formats: Format) -> Format | None:
    """Return the format of element math: int32 or fp32, whichever holds all operands exactly.

    Returns
    -------
    Format or None
        None if neither holds all of them, as for int32 beside fp32.
    """
    for candidate in (int32, fp32):
        if all(widens(each, candidate) for each in formats):
            return candidate
    return None


def format_of(dtype: object) -> Format:
    """Return the format of a numpy type, a format or a format's name.

    Raises
    ------
    BadInputError
        If it names no format, or one that is not supported yet.
    """
    supported = ", ".join(name for name in FORMATS if name != pred.name)
    found = _named(dtype)
    if found is None:
        name = dtype.name if isinstance(dtype, np.dtype) else repr(dtype)
        raise BadInputError(f"Format must be one of {supported}, not {name}")
    if found not in FORMATS.values():
        raise BadInputError(
            f"Format must be one of {supported}, not {found.name}, which is not supported yet"
        )
    return found


def _named(dtype: object) -> Format | None:
    if isinstance(dtype, Format):
        return dtype
    if isinstance(dtype, str) and dtype in named:
        return named[dtype]
    if dtype is None:
        return None
    try:
        wanted = np.dtype(cast(Any, dtype))
    except TypeError:
        return None
    return next((each for each in named.values() if each.dtype == wanted), None)
