"""Argument parser that raises one-line errors with the value and the nearest known name."""

import argparse
from typing import Any, NoReturn

from hw.arch.errors import BadInputError, did_you_mean

__all__ = ["Parser"]

#: Advice on commands that are options of another one.
_OPTIONS = {
    "profile": "; write 'run KERNEL --profile FILE.html'",
    "trace": "; write 'run KERNEL --trace FILE.json'",
}


def _noun(action: argparse.Action) -> str:
    return action.option_strings[0] if action.option_strings else str(action.metavar or action.dest)


class Parser(argparse.ArgumentParser):
    """Parser of the main program and of each command.

    It never exits on an error, and does not accept abbreviated options.

    Raises
    ------
    BadInputError
        Instead of argparse's usage message and exit.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Refuse the command line."""
        raise BadInputError(f"{message}; see {self.prog} --help", kind="usage")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            raise BadInputError(
                f"{_noun(action)} {error.message}",
                kind="bad-value",
                where=_noun(action),
                value=arg_string,
                rule=error.message.partition(", not ")[0],
            ) from error

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        names = [str(choice) for choice in action.choices]
        rule = f"must be one of {', '.join(names)}"
        command = isinstance(action.choices, dict)
        raise BadInputError(
            (f"unknown command {value!r}" if command else f"{_noun(action)} {rule}, not {value!r}")
            + (
                (command and _OPTIONS.get(str(value)))
                or did_you_mean(str(value), names)
                or (f"; it {rule}" if command else "")
            ),
            kind="unknown-command" if command else "bad-value",
            where=_noun(action),
            value=value,
            rule=rule,
        )

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and refuse unknown arguments here, where the known options are at hand."""
        namespace, rest = super().parse_known_args(args, namespace)
        if rest:
            name = next((word for word in rest if word.startswith("-")), rest[0]).partition("=")[0]
            noun = "option" if name.startswith("-") else "argument"
            raise BadInputError(
                f"unknown {noun} {name!r}"
                + (did_you_mean(name, self._option_string_actions) or f"; see {self.prog} --help"),
                kind=f"unknown-{noun}",
                where=name,
                value=name,
            )
        return namespace, rest
