"""Rules of a run's options, shared by the command line and the Python interface.

A rule checks a value and returns it as plain data; a violation is a `BadInputError` that names
option, rule and value.
"""

from __future__ import annotations

import contextlib
import numbers
import operator
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hw.arch.checks import refusal
from hw.arch.errors import BadInputError, TilewrightError, did_you_mean, shown
from sim.user_files import IN_FILE, names_of

if TYPE_CHECKING:
    from hw.arch.config import ChipConfig

__all__ = [
    "JITTER",
    "LATENCY",
    "MAX_CYCLES",
    "MOST_SEEDS",
    "OPTIONS",
    "SEED",
    "WAVES",
    "Integer",
    "Rule",
    "bad_value",
    "flag",
    "instance",
    "option_rule",
    "optional",
    "path",
    "probability",
    "load_config",
    "validating",
]

#: Exclusive upper bound of seeds.
MOST_SEEDS = 1 << 63


class Rule:
    """Rule for the values of an option.

    Parameters
    ----------
    text : str
        The rule, as in "latency must be …".
    take : function
        Converts a valid value to plain data; raises TypeError or ValueError for an invalid one.
    """

    def __init__(self, text: str, take: Callable[[Any], Any]) -> None:
        self.text = text
        self.take = take

    def check(self, name: str, value: object, *, where: str | None = None) -> Any:
        """Check a value, and return it as plain data.

        Parameters
        ----------
        name : str
            Name of the option, with which the message begins.
        value
        where : str
            Location that the error names; by default the option.

        Raises
        ------
        BadInputError
            If the value breaks the rule.
        """
        try:
            return self.take(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise bad_value(name, value, self.text, where=where) from error


def bad_value(name: str, value: object, rule: str, *, where: str | None = None) -> BadInputError:
    """One-line error of an option with an invalid value."""
    plain = value if isinstance(value, str | int | float | None) else _shown(value)
    return BadInputError(
        f"{name} must be {rule}, not {_shown(value)}",
        kind="bad-value",
        where=where or name,
        value=plain,
        rule=rule,
    )


def _shown(value: object) -> str:
    # NumPy's numbers are shown as plain numbers.
    item = getattr(value, "item", None)
    return shown(item() if getattr(value, "shape", None) == () and callable(item) else value)


class Integer(Rule):
    """Rule for integers, including NumPy's but not Booleans.

    Parameters
    ----------
    low, high : int or None
        Inclusive bounds; None for no bound.
    """

    def __init__(self, low: int | None = None, high: int | None = None) -> None:
        text = "an integer"
        if low is not None:
            text += f" of {low} or more" if high is None else f" from {low} to {high}"
        super().__init__(text, self._number)
        self.low = low
        self.high = high

    def _number(self, value: Any) -> int:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
        low = number if self.low is None else self.low
        high = number if self.high is None else self.high
        if not low <= number <= high:
            raise ValueError
        return number


def _real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError
    return float(value)


def _probability(value: Any) -> float:
    number = _real(value)
    if not 0 <= number < 1:
        raise ValueError
    return number


def _flag(value: Any) -> bool:
    # A truth value of NumPy gives that of Python.
    plain = value.item() if getattr(value, "shape", None) == () else value
    if not isinstance(plain, bool):
        raise TypeError
    return plain


def _path(value: Any) -> Path:
    text = os.fspath(value)
    if not isinstance(text, str) or not text or "\0" in text:
        raise ValueError
    return Path(text)


def _waves(value: Any) -> Path:
    file = _path(value)
    if file.suffix != ".vcd":
        raise ValueError
    return file


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


#: A number from 0 to below 1, so that random stalls end.
probability = Rule("a number from 0 to below 1", _probability)
flag = Rule("true or false", _flag)
path = Rule("the path of a file", _path)


def optional(rule: Rule) -> Rule:
    """Extend a rule to accept None."""
    return Rule(f"{rule.text}, or None", lambda value: None if value is None else rule.take(value))


def instance(text: str, *kinds: type) -> Rule:
    """Rule for instances of some classes."""

    def take(value: Any) -> Any:
        if not isinstance(value, kinds):
            raise TypeError
        return value

    return Rule(text, take)


def option_rule(default: object) -> Rule:
    """Rule of a kernel option: values of the type of its default."""
    if isinstance(default, bool):
        return flag
    if isinstance(default, int):
        return Integer()
    if isinstance(default, float):
        return Rule("a number", _real)
    if isinstance(default, str):
        return Rule("text", _text)
    return Rule("any value", lambda value: value)


SEED = Integer(0, MOST_SEEDS - 1)
LATENCY = Integer(1, 65_535)
JITTER = Integer(0, 65_535)
MAX_CYCLES = Integer(1)
WAVES = Rule("a file that ends in .vcd", _waves)

#: Options of a run that are numbers, truth values or paths; the command's have dashes.
OPTIONS: Mapping[str, Rule] = MappingProxyType(
    {
        "seed": SEED,
        "place_seed": SEED,
        "latency": LATENCY,
        "jitter": JITTER,
        "stall": probability,
        "warm": flag,
        "max_cycles": optional(MAX_CYCLES),
        "use_cache": flag,
        "waves": optional(WAVES),
        "progress": flag,
    }
)


@contextlib.contextmanager
def validating(where: str | None = None) -> Iterator[None]:
    """Context manager that turns a ValueError of a lower layer into bad input, exit code 2.

    Only checks of input belong inside: elsewhere a ``ValueError`` is an internal fault.
    """
    try:
        yield
    except TilewrightError as error:
        # A component cannot know the option that its parameter comes from.
        error.where = error.where or where
        raise
    except (TypeError, ValueError) as error:
        raise BadInputError(str(error), kind="bad-value", where=where) from error


def load_config(name: str, *, where: str = "--config") -> ChipConfig:
    """Load a configuration by name, from a TOML file, or of a Python file (``FILE.py:NAME``).

    Raises
    ------
    BadInputError
        If none exists, or a value in the file is invalid.
    """
    # Not at the top: importing it would slow the help of every sub-command.
    from hw.arch.config import ChipConfig, from_toml, named

    if name in named:
        return named[name]
    match = IN_FILE.fullmatch(name)
    if match is not None:
        found = names_of(Path(match["file"]), noun="Configuration", where=where)
        chips = {key: each for key, each in found.items() if isinstance(each, ChipConfig)}
        only = next(iter(chips)) if len(chips) == 1 else None
        chosen = only if match["name"] is None else match["name"]
        if chosen not in chips:
            rule = f"be FILE.py:NAME of a ChipConfig: {', '.join(chips) or 'the file has none'}"
            raise refusal(where, rule, name)
        return chips[chosen]
    if not name:
        raise BadInputError(
            f"{where} must name a configuration or a file with one, not be empty",
            where=where,
            value="",
        )
    if not (os.path.isfile(name) or "/" in name or name.endswith(".toml")):
        known = f"{', '.join(named)}, a TOML file, or FILE.py:NAME"
        raise BadInputError(
            f"unknown configuration {shown(name)}"
            f"{did_you_mean(name, named) or f'; known: {known}'}",
            kind="unknown-configuration",
            where=where,
            value=name,
            rule=known,
        )
    with validating(where):
        return from_toml(name)
