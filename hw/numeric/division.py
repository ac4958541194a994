"""Division of integers that rounds up."""

from typing import Any, TypeVar

__all__ = ["ceil_div"]

_Number = TypeVar("_Number", bound=Any)


def ceil_div(number: _Number, divisor: int) -> _Number:
    """Least integer that is not below ``number / divisor``, of each element if it is an array."""
    quotient: _Number = -(-number // divisor)
    return quotient
