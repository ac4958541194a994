"""Parameter checks with uniform messages, shared by components."""

from hw.arch.errors import BadInputError, shown

__all__ = ["refusal", "require_bool", "require_int", "require_power"]


def refusal(noun: str, rule: str, value: object) -> BadInputError:
    """Error for a parameter that breaks a rule: "<Noun> must <rule>, not <value>"."""
    return BadInputError(f"{noun} must {rule}, not {shown(value)}", value=value, rule=rule)


def require_bool(noun: str, value: object) -> None:
    """Refuse a value that is not a Boolean."""
    if not isinstance(value, bool):
        raise refusal(noun, "be True or False", value)


def require_int(noun: str, value: object, low: int, high: int) -> None:
    """Refuse a value that is not an integer within a range."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise refusal(noun, f"be an integer from {low} to {high}", value)


def require_power(noun: str, value: object, low: int, high: int) -> None:
    """Refuse a value that is not a power of two within a range of positive numbers."""
    if (
        not isinstance(value, int)
        or isinstance(value, bool)
        or not low <= value <= high
        or value & (value - 1)
    ):
        raise refusal(noun, f"be a power of two from {low} to {high}", value)
