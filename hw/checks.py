"""Checks of parameters that many components make in the same words."""

from hw.errors import BadInputError

__all__ = ["require_bool", "require_int", "require_power"]


def require_bool(noun: str, value: object) -> None:
    """Refuse a value that is not a truth value."""
    if not isinstance(value, bool):
        raise BadInputError(f"{noun} must be True or False, not {value!r}")


def require_int(noun: str, value: object, low: int, high: int) -> None:
    """Refuse a value that is not an integer of a range."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise BadInputError(f"{noun} must be an integer from {low} to {high}, not {value!r}")


def require_power(noun: str, value: object, low: int, high: int) -> None:
    """Refuse a value that is not a power of two of a range of positive numbers."""
    if (
        not isinstance(value, int)
        or isinstance(value, bool)
        or not low <= value <= high
        or value & (value - 1)
    ):
        raise BadInputError(f"{noun} must be a power of two from {low} to {high}, not {value!r}")
