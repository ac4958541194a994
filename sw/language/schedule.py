"""Schedules: choices of the compiler that a user makes, as data apart from the program."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from sw.ir.nodes import Buffer, Load, Loop, Map, Matmul
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.ir.types import Span
from sw.ir.values import variable
from sw.language.errors import ProgramError, caller_span, near_misses
from sw.language.index import whole

__all__ = ["Schedule", "check_schedule", "schedule_names"]

_Numbers = Mapping[str, int]


@dataclass(frozen=True, init=False)
class Schedule:
    """Choices by the program's own variable names, those of helpers as ``attend.j``.

    A schedule beats the program, and the program the compiler; what nobody names, the compiler
    chooses.

    Parameters
    ----------
    tile : mapping of str to int
        Block size, by the index of a loop.
    row_par, col_par, sum_par : mapping of str to int
        Units to split rows, columns or a sum over, by the tile a product gives.
    slots : mapping of str to int
        Slots of the buffer of a tile.
    place : mapping of str to str
        Units for the product of a tile, as ``"pcu[0, :]"``.

    Raises
    ------
    ProgramError
        If a number is not whole or below 1, or a name is no name.
    """

    tile: _Numbers
    row_par: _Numbers
    col_par: _Numbers
    sum_par: _Numbers
    slots: _Numbers
    place: Mapping[str, str]

    def __init__(
        self,
        *,
        tile: _Numbers | None = None,
        row_par: _Numbers | None = None,
        col_par: _Numbers | None = None,
        sum_par: _Numbers | None = None,
        slots: _Numbers | None = None,
        place: Mapping[str, str] | None = None,
    ) -> None:
        span = caller_span()
        given: dict[str, Mapping[str, Any] | None] = {
            "tile": tile,
            "row_par": row_par,
            "col_par": col_par,
            "sum_par": sum_par,
            "slots": slots,
            "place": place,
        }
        for name, choices in given.items():
            checked = _checked(name, {} if choices is None else choices, span)
            object.__setattr__(self, name, MappingProxyType(checked))
        object.__setattr__(self, "_span", span)

    @property
    def span(self) -> Span:
        """Where it was made, for errors."""
        found = self.__dict__["_span"]
        assert isinstance(found, Span)
        return found

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self.to_json() == other.to_json()

    def __repr__(self) -> str:
        given = {name: dict(choices) for name, choices in self._choices() if choices}
        return f"Schedule({', '.join(f'{name}={each!r}' for name, each in given.items())})"

    def _choices(self) -> list[tuple[str, Mapping[str, Any]]]:
        return [(each.name, getattr(self, each.name)) for each in fields(self)]

    def __or__(self, other: Schedule) -> Schedule:
        """Give both; where both choose, ``other`` does."""
        merged = {name: {**mine, **getattr(other, name)} for name, mine in self._choices()}
        return Schedule(**merged)

    def to_json(self) -> str:
        """Give the schedule as JSON, the same text for equal schedules."""
        return json.dumps({name: dict(each) for name, each in self._choices()}, sort_keys=True)

    @staticmethod
    def from_json(text: str) -> Schedule:
        """Read a schedule from JSON.

        Raises
        ------
        ProgramError
            If the text is no schedule; an unknown key is named with the nearest ones.
        """
        span = caller_span()
        if not isinstance(text, str):
            raise ProgramError("schedule", f"Schedule must be text, not {text!r}", span)
        try:
            found = json.loads(text)
        except json.JSONDecodeError as error:
            raise ProgramError("schedule", f"Schedule must be JSON: {error}", span) from error
        if not isinstance(found, dict):
            raise ProgramError("schedule", f"Schedule must be a JSON object, not {found!r}", span)
        keys = [each.name for each in fields(Schedule)]
        for key, choices in found.items():
            if key not in keys:
                raise ProgramError(
                    "schedule",
                    f"Schedule has `{key}`; {near_misses(key, keys, 'keys')}",
                    span,
                    value=key,
                )
            if not isinstance(choices, dict):
                raise ProgramError(
                    "schedule", f"Schedule.{key} must be an object, not {choices!r}", span
                )
        return Schedule(**found)


def _checked(field: str, choices: object, span: Span) -> dict[str, Any]:
    """Choices of a field, numbers as ints."""

    def refused(noun: str, rule: str, value: object) -> ProgramError:
        message = f"{noun} must be {rule}, not {reprlib.repr(value)}"
        return ProgramError("schedule", message, span, value=reprlib.repr(value))

    if not isinstance(choices, Mapping):
        rule = "a mapping of names to " + ("text" if field == "place" else "whole numbers")
        raise refused(f"Schedule.{field}", rule, choices)
    checked: dict[str, Any] = {}
    for name, value in choices.items():
        found: object
        if not isinstance(name, str):
            raise refused(f"Name in Schedule.{field}", "text", name)
        if field == "place":
            found, rule = value if isinstance(value, str) else None, "text"
        else:
            number = whole(value)
            found = number if number is not None and number >= 1 else None
            rule = "a whole number of 1 or more"
        if found is None:
            raise refused(f"Schedule.{field} of `{name}`", rule, value)
        checked[name] = found
    return checked


def schedule_names(program: Program) -> dict[str, tuple[str, ...]]:
    """Give what each field of a schedule may name in a program."""
    loops = (node for node in walk(program.nodes) if isinstance(node, Loop) and node.blocks)
    products = _results(program, products_only=True)
    return {
        "tile": tuple(dict.fromkeys(variable(node.index) for node in loops)),
        "row_par": products,
        "col_par": products,
        "sum_par": products,
        "slots": _results(program, products_only=False),
        "place": products,
    }


def check_schedule(schedule: Schedule, program: Program) -> None:
    """Check that a program has everything a schedule names.

    Raises
    ------
    ProgramError
        At the first name it does not have, with the near misses.
    """
    nouns = {"tile": "loops", "slots": "tiles"}
    for field, names in schedule_names(program).items():
        for name in getattr(schedule, field):
            if name not in names:
                noun = f"{nouns.get(field, 'products')} of {program.name}"
                raise ProgramError(
                    "schedule",
                    f"Schedule.{field} has `{name}`; {near_misses(name, names, noun)}",
                    schedule.span,
                    value=name,
                )


def _results(program: Program, *, products_only: bool) -> tuple[str, ...]:
    """Variables of tiles a schedule may name."""
    names: list[str] = []
    products: set[str] = set()
    for node in walk(program.nodes):
        # A carried sum is one product with what it adds to.
        sums = isinstance(node, Map) and node.op == "add"
        fed = sums and any(each.name in products for each in node.values)
        if isinstance(node, Matmul) or fed:
            products.update(each.name for each in node.results)
        elif products_only or not isinstance(node, Load | Buffer | Map):
            continue
        names.extend(each.variable for each in node.results if each.variable)
    return tuple(dict.fromkeys(names))
