"""What several sub-commands' options have in common: types, configurations, settings."""

import argparse
import contextlib
import os
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from hw.arch.errors import BadInputError, TilewrightError, did_you_mean, shown
from sim.rules import SEED, Integer

if TYPE_CHECKING:
    from hw.arch.config import ChipConfig

__all__ = [
    "DEFAULT_CONFIG",
    "Subparsers",
    "add_config",
    "add_json",
    "add_seed",
    "integer",
    "kept",
    "load_config",
    "power",
    "probability",
    "setting",
    "validating",
    "whole_number",
]


#: Configuration of a command that is given none.
DEFAULT_CONFIG = "small"


class Subparsers(Protocol):
    """What ``add(subparsers)`` of a sub-command receives."""

    def add_parser(self, name: str, *, help: str, description: str) -> argparse.ArgumentParser:
        """A parser of the options of the sub-command `name`."""


# No digits but those of ASCII, no separators, no plus; as many as any option has a use for.
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,63}|0x[0-9a-fA-F]{1,64}|0o[0-7]{1,64}|0b[01]{1,64})")
_DECIMAL = re.compile(r"[0-9]{1,64}(\.[0-9]{0,64})?(e-?[0-9]{1,3})?|\.[0-9]{1,64}(e-?[0-9]{1,3})?")


def whole_number(text: str) -> int | None:
    """Integer that a word of the command line is: decimal, or after ``0x``, ``0o`` or ``0b``."""
    return int(text, 0) if _WHOLE.fullmatch(text) else None


def integer(low: int, high: int | None = None) -> Callable[[str], int]:
    """Type of an option: an integer of at least `low`, and at most `high` if that is given."""
    rule = f"an integer from {low}" + (" up" if high is None else f" to {high}")

    def convert(text: str) -> int:
        value = whole_number(text)
        if value is None or value < low or (high is not None and value > high):
            raise argparse.ArgumentTypeError(f"must be {rule}, not {shown(text)}")
        return value

    return convert


def kept(rule: Integer) -> Callable[[str], int]:
    """Type of an option: an integer that keeps a rule, which the Python interface has too."""
    return integer(0 if rule.low is None else rule.low, rule.high)


def power(low: int, high: int) -> Callable[[str], int]:
    """Type of an option: a power of two from `low` to `high`."""

    def convert(text: str) -> int:
        value = whole_number(text)
        if value is None or not low <= value <= high or value & (value - 1):
            rule = f"a power of two from {low} to {high}"
            raise argparse.ArgumentTypeError(f"must be {rule}, not {shown(text)}")
        return value

    return convert


def probability(text: str) -> float:
    """Type of an option: a probability below 1, so that what waits for luck ends."""
    value = float(text) if _DECIMAL.fullmatch(text) else -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to below 1, not {shown(text)}")
    return value


def setting(text: str) -> tuple[str, int | bool | str]:
    """Type of ``--set``: a key and its value, an integer or a truth value where it reads as one."""
    key, equals, word = text.partition("=")
    if not (key and equals and word):
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE, not {shown(text)}")
    if word in ("true", "false"):
        return key, word == "true"
    number = whole_number(word)
    return key, word if number is None else number


def add_json(parser: argparse.ArgumentParser) -> None:
    """Register the two options that every sub-command has; `app` reads them before the rest."""
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="write the report to FILE; without FILE, or for -, only it to standard output",
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Register ``--seed``, of which every random number of a run is drawn."""
    parser.add_argument(
        "--seed",
        type=kept(SEED),
        default=1,
        metavar="N",
        help="seed of every random number (default 1)",
    )


def add_config(parser: argparse.ArgumentParser, *, default: str | None = DEFAULT_CONFIG) -> None:
    """Register ``--config``, which `load_config` turns into a configuration.

    A command that must know whether it was given sets `default` to None.
    """
    parser.add_argument(
        "--config",
        default=default,
        metavar="NAME|FILE",
        help=f"named configuration or TOML file (default {DEFAULT_CONFIG})",
    )


@contextlib.contextmanager
def validating(where: str | None = None) -> Iterator[None]:
    """Context in which a refusal by a lower layer is the user's to mend: exit code 2.

    Only the checking of input belongs inside: elsewhere a ``ValueError`` is a fault of ours.
    """
    try:
        yield
    except TilewrightError as error:
        # A component cannot know the option that its parameter comes from.
        error.where = error.where or where
        raise
    except (TypeError, ValueError) as error:
        raise BadInputError(str(error), kind="bad-value", where=where) from error


def load_config(name: str, *, where: str = "--config") -> "ChipConfig":
    """The configuration of that name, or of that TOML file.

    Raises
    ------
    BadInputError
        If there is neither, or the file's values cannot work.
    """
    # Not at the top: importing it would slow the help of every sub-command.
    from hw.arch.config import from_toml, named

    if name in named:
        return named[name]
    if not name:
        raise BadInputError(
            f"{where} must name a configuration or a TOML file, not be empty", where=where, value=""
        )
    if not (os.path.isfile(name) or "/" in name or name.endswith(".toml")):
        known = f"{', '.join(named)}, or a TOML file"
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
