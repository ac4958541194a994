"""Tile of numbers in a lane code: its words as fp32 and as int32."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sw.ir.format_rules import Format, fp32
from sw.lane_codes.lane_words import Word, float_bits

__all__ = ["EXACT", "Number", "constant"]

#: Greatest magnitude up to which every whole number is an fp32.
EXACT = 1 << 24


class Number(NamedTuple):
    """Tile of numbers: its format, and its word as fp32 and as int32, as far as there are such."""

    format: Format
    real: Word | None
    integer: Word | None
    #: Greatest magnitude of a whole number that has both words.
    bound: int = EXACT
    #: Whether it is an input as it is loaded.
    loaded: bool = False
    #: Whether the int32 is from 0 to the bits of infinity: as fp32, such numbers have that order.
    ordered: bool = False


def constant(value: Any, format_: Format) -> Number:
    """Tile of one number."""
    stored = np.full(1, value).astype(format_.dtype)
    real = float_bits(stored.astype(np.float32)[0])
    if format_.is_float:
        return Number(format_, real, None)
    whole = int(stored.astype(np.int32).view(np.uint32)[0])
    bound = abs(int(stored[0]))
    exact = real if bound <= EXACT else None
    # Beyond, the bits are those of a NaN.
    ordered = 0 <= value <= fp32.infinity
    return Number(format_, exact, whole, max(bound, 1), ordered=ordered)
