"""Operation codes of a lane's arithmetic logic unit (ALU)."""

from __future__ import annotations

import enum

__all__ = ["AluOperation"]


class AluOperation(enum.IntEnum):
    """Operation of the ALU on the words a, b, c, d; fp32 unless it says int32."""

    #: a + b.
    ADD = 0
    #: a - b.
    SUBTRACT = 1
    #: The smaller of a and b; NaN if either is, -0 before +0.
    MINIMUM = 2
    #: The larger of a and b; NaN if either is, +0 after -0.
    MAXIMUM = 3
    #: c if a < b, else d; d if either is NaN.
    SELECT_LESS = 4
    #: c if a = b, else d; d if either is NaN.
    SELECT_EQUAL = 5
    #: The least integer that is not below a.
    CEIL = 6
    #: The int32 nearest to a, ties to even; it saturates, and NaN becomes 0.
    TO_INT32 = 7
    #: The fp32 nearest to the int32 a, ties to even.
    FROM_INT32 = 8
    #: a + b of int32, modulo 2^32.
    ADD_INT32 = 9
    #: c if a < b of int32, else d.
    SELECT_LESS_INT32 = 10
    #: The bits that a and b share.
    AND = 11
    #: The bits of a, and those of b.
    OR = 12
    #: The bits in which a and b differ.
    XOR = 13
    #: a shifted left by the five low bits of b.
    SHIFT_LEFT = 14
    #: The int32 a shifted right by the five low bits of b, with copies of its sign.
    SHIFT_RIGHT = 15
