"""Options shared by several commands: types, ``--config``, ``--set``, ``--json``, ``--seed``."""

import argparse
import re
from collections.abc import Callable
from typing import Protocol

from hw.arch.errors import shown
from sim.rules import SEED, Integer

__all__ = [
    "DEFAULT_CONFIG",
    "Subparsers",
    "add_config",
    "add_json",
    "add_seed",
    "integer",
    "kept",
    "power",
    "probability",
    "setting",
    "whole_number",
]


#: Default configuration of every command.
DEFAULT_CONFIG = "small"


class Subparsers(Protocol):
    """Type of the argument of a command's ``add(subparsers)``."""

    def add_parser(self, name: str, *, help: str, description: str) -> argparse.ArgumentParser:
        """Add the parser of a command."""


# ASCII digits only, no separators, no plus sign, and a limited length.
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,63}|0x[0-9a-fA-F]{1,64}|0o[0-7]{1,64}|0b[01]{1,64})")
_DECIMAL = re.compile(r"[0-9]{1,64}(\.[0-9]{0,64})?(e-?[0-9]{1,3})?|\.[0-9]{1,64}(e-?[0-9]{1,3})?")


def whole_number(text: str) -> int | None:
    """Parse an integer: decimal, or with the prefix ``0x``, ``0o`` or ``0b``."""
    return int(text, 0) if _WHOLE.fullmatch(text) else None


def integer(low: int, high: int | None = None) -> Callable[[str], int]:
    """Option type: an integer of at least `low` and, if given, at most `high`."""
    rule = f"an integer from {low}" + (" up" if high is None else f" to {high}")

    def convert(text: str) -> int:
        value = whole_number(text)
        if value is None or value < low or (high is not None and value > high):
            raise argparse.ArgumentTypeError(f"must be {rule}, not {shown(text)}")
        return value

    return convert


def kept(rule: Integer) -> Callable[[str], int]:
    """Option type: an integer that satisfies a rule shared with the Python interface."""
    return integer(0 if rule.low is None else rule.low, rule.high)


def power(low: int, high: int) -> Callable[[str], int]:
    """Option type: a power of two from `low` to `high`."""

    def convert(text: str) -> int:
        value = whole_number(text)
        if value is None or not low <= value <= high or value & (value - 1):
            rule = f"a power of two from {low} to {high}"
            raise argparse.ArgumentTypeError(f"must be {rule}, not {shown(text)}")
        return value

    return convert


def probability(text: str) -> float:
    """Option type: a probability below 1, so that random pauses end."""
    value = float(text) if _DECIMAL.fullmatch(text) else -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to below 1, not {shown(text)}")
    return value


def setting(text: str) -> tuple[str, int | bool | str]:
    """Option type of ``--set``: a key and its value, which may be an integer or a Boolean."""
    key, equals, word = text.partition("=")
    if not (key and equals and word):
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE, not {shown(text)}")
    if word in ("true", "false"):
        return key, word == "true"
    number = whole_number(word)
    return key, word if number is None else number


def add_json(parser: argparse.ArgumentParser) -> None:
    """Register ``--json`` and ``--debug``, which every command has; `app` reads them first."""
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="write a JSON report to FILE; without FILE or with -, print only the report",
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Register ``--seed``, the seed of every random number of a run."""
    parser.add_argument(
        "--seed",
        type=kept(SEED),
        default=1,
        metavar="N",
        help="seed of every random number (default 1)",
    )


def add_config(parser: argparse.ArgumentParser, *, default: str | None = DEFAULT_CONFIG) -> None:
    """Register ``--config``, the argument of `load_config`.

    A default of None shows whether the option was given.
    """
    parser.add_argument(
        "--config",
        default=default,
        metavar="NAME|FILE",
        help=f"named configuration, TOML file, or FILE.py:NAME (default {DEFAULT_CONFIG})",
    )
