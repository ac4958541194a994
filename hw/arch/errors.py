"""Exception classes: message, location, offending value and rule for the user."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = [
    "BadInputError",
    "DeviceError",
    "HangError",
    "MissingToolError",
    "TilewrightError",
    "WrongResultError",
    "did_you_mean",
    "shown",
]

_MOST_SHOWN = 120


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Suffix for a message about an unknown name: the closest known names, or nothing."""
    # All options share their leading dashes, which would make them all look alike.
    known = {other.lstrip("-").lower(): other for other in sorted(names)}
    near = difflib.get_close_matches(name.lstrip("-").lower(), known, n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(repr(known[other]) for other in near)}?" if near else ""


def shown(value: object) -> str:
    """Text of a value for a message: on one line, and shortened if it is long."""
    try:
        # Arrays and foreign objects may print on several lines.
        text = " ".join(repr(value).splitlines())
    except ValueError:  # Python refuses to print an integer of thousands of digits
        return "an integer of thousands of digits"
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."


class TilewrightError(Exception):
    """Base class of all errors that are reported to the user in one line.

    The subclass says who must act: a bad parameter, of a component or of a command, is a
    :class:`BadInputError`.

    Parameters
    ----------
    message : str
        What is wrong, with the value in it.
    kind : str
        Stable identifier for programs, lower case with hyphens; each class has its own.
    where : str
        Option, file and line, or part of the chip concerned.
    value
        The offending value, as plain data.
    rule : str
        Required property of the value, or the remedy.
    result : Mapping
        Fields of the command's report that are known despite the error.

    Members
    -------
    code : int
        Exit code of the command.
    """

    code = 1
    kind = "error"

    def __init__(
        self,
        message: str,
        *,
        kind: str | None = None,
        where: str | None = None,
        value: Any = None,
        rule: str | None = None,
        result: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind or type(self).kind
        self.where = where
        self.value = value
        self.rule = rule
        self.result: dict[str, Any] = dict(result or {})

    def record(self) -> dict[str, Any]:
        """The ``error`` object of a JSON report."""
        return {
            "code": self.code,
            "kind": self.kind,
            "message": self.message,
            "where": self.where,
            "value": self.value,
            "rule": self.rule,
        }


class WrongResultError(TilewrightError):
    """Result that differs from another back end's, or exceeds its error bound."""

    code = 1
    kind = "wrong-result"


class BadInputError(TilewrightError, ValueError):
    """Input that cannot work, refused before anything is built."""

    code = 2
    kind = "bad-input"


class MissingToolError(TilewrightError):
    """Program or package that this step needs and that is not installed."""

    code = 3
    kind = "missing-tool"


class HangError(TilewrightError):
    """Run ended by the watchdog; the message names the streams and barriers that are stuck."""

    code = 4
    kind = "hang"


class DeviceError(TilewrightError):
    """Launch that the chip itself ended with an error code."""

    code = 5
    kind = "device-error"
