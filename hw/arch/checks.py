"""Checks of parameters and of text files, with uniform one-line errors."""

import dataclasses
import os
from pathlib import Path

from hw.arch.errors import BadInputError, shown

__all__ = ["Domain", "refusal", "require_bool", "require_int", "MOST_BYTES", "read_text"]


def refusal(noun: str, rule: str, value: object) -> BadInputError:
    """Error for a parameter that breaks a rule: "<Noun> must <rule>, not <value>"."""
    return BadInputError(f"{noun} must {rule}, not {shown(value)}", value=value, rule=rule)


@dataclasses.dataclass(frozen=True)
class Domain:
    """Values that an integer may have: ``low`` to ``high``, or the powers of two among them."""

    low: int
    high: int
    power: bool = False

    @property
    def rule(self) -> str:
        """The values in words."""
        return f"{'a power of two' if self.power else 'an integer'} from {self.low} to {self.high}"

    def holds(self, value: object) -> bool:
        """Whether a value is one of them; a Boolean is not."""
        if not isinstance(value, int) or isinstance(value, bool):
            return False
        return self.low <= value <= self.high and not (self.power and value & (value - 1))

    def values(self) -> list[int]:
        """Every value, in ascending order."""
        if self.power:
            return [1 << bit for bit in range(self.low.bit_length() - 1, self.high.bit_length())]
        return list(range(self.low, self.high + 1))

    def require(self, noun: str, value: object) -> None:
        """Refuse another value.

        Raises
        ------
        BadInputError
            "<Noun> must be an integer from <low> to <high>, not <value>".
        """
        if not self.holds(value):
            raise refusal(noun, f"be {self.rule}", value)


def require_bool(noun: str, value: object) -> None:
    """Refuse a value that is not a Boolean."""
    if not isinstance(value, bool):
        raise refusal(noun, "be True or False", value)


def require_int(noun: str, value: object, low: int, high: int) -> None:
    """Refuse a value that is not an integer within a range."""
    # Most values of the many that a compilation checks are right.
    if type(value) is not int or not low <= value <= high:
        Domain(low, high).require(noun, value)


#: Largest file that is read; an endless device must not fill the memory.
MOST_BYTES = 64 << 20


def read_text(path: str | os.PathLike[str], *, noun: str, where: str | None = None) -> str:
    """Text of a file.

    Parameters
    ----------
    path : str or path
    noun : str
        What the file is, for messages.
    where : str
        Option that named it.

    Raises
    ------
    BadInputError
        If it cannot be read, is not UTF-8, or exceeds `MOST_BYTES`.
    """
    name = os.fspath(path)
    try:
        with Path(name).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) <= MOST_BYTES:
            return content.decode("utf-8")
        rule = f"have at most {MOST_BYTES} bytes"
    except UnicodeDecodeError as error:
        rule = f"be UTF-8 text; byte {error.start} is {error.object[error.start]:#04x}"
    except (OSError, ValueError) as error:
        # ValueError: a name that no file can have.
        said = error.strerror if isinstance(error, OSError) else error
        raise BadInputError(
            f"cannot read {shown(name)}: {said}", kind="unreadable-file", where=where, value=name
        ) from error
    raise BadInputError(f"{noun} {shown(name)} must {rule}", where=where, value=name, rule=rule)
