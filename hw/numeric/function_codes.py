"""Operation codes of the special function unit (SFU) of a lane."""

from __future__ import annotations

import enum

__all__ = ["SpecialFunction"]


class SpecialFunction(enum.IntEnum):
    """Function of one fp32, which :func:`hw.numeric.functions.special_function` computes."""

    #: 2^x.
    EXP2 = 0
    #: e^x.
    EXP = 1
    #: 1 / x.
    RECIPROCAL = 2
    #: 1 / sqrt(x).
    RSQRT = 3
