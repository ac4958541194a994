"""Schedules: user choices for the compiler, as data separate from the program."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from hw.arch.errors import shown
from sw.ir.nodes import Buffer, Load, Loop, Map, Matmul
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.ir.types import Span
from sw.ir.values import variable
from sw.language.program_error import ProgramError, caller_span, near_misses
from sw.language.tile_value import whole

__all__ = ["Schedule", "check_schedule", "schedule_names"]

_Numbers = Mapping[str, int]


@dataclass(frozen=True)
class _Source:
    """Text of a schedule file, from which errors find the line of a key."""

    file: str
    text: str

    def span(self, key: str | None = None, *, line: int = 1) -> Span:
        """Source position of the first occurrence of a key; without one, of a whole line."""
        quoted = "" if key is None else json.dumps(key)
        for number, each in enumerate(self.text.splitlines(), 1):
            column = each.find(quoted) if quoted else -1
            if column >= 0:
                start = len(each[:column].encode(errors="replace"))
                return Span(self.file, number, start, number, start + len(quoted.encode()))
        return Span(self.file, line, 0, line, 1)


@dataclass(frozen=True, init=False)
class Schedule:
    """Choices by the program's variable names; those of helper functions are written ``attend.j``.

    A schedule overrides the program; the compiler makes the choices that neither names.

    Parameters
    ----------
    tile : mapping of str to int
        Block size by loop index.
    row_par, col_par, sum_par : mapping of str to int
        Units over which rows, columns or a sum are split, by the tile that a product defines.
    slots : mapping of str to int
        Slots of the buffer, by tile.
    place : mapping of str to str
        Units of a product, by the tile it defines, as ``"pcu[0, :]"``.

    Raises
    ------
    ProgramError
        If a number is not an integer of at least 1, or a name is malformed.
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
            checked = _checked(name, {} if choices is None else choices, lambda _: span)
            object.__setattr__(self, name, MappingProxyType(checked))
        self._made(span, None)

    def _made(self, span: Span | None, source: _Source | None) -> Schedule:
        object.__setattr__(self, "_span", span)
        object.__setattr__(self, "_source", source)
        return self

    def span_of(self, name: str) -> Span | None:
        """Source position of a name in it, or of its construction; None for options alone."""
        source: _Source | None = self.__dict__["_source"]
        if source is not None and json.dumps(name) in source.text:
            return source.span(name)
        span: Span | None = self.__dict__["_span"]
        return span

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
        """Merge two schedules; where both choose, ``other`` wins."""
        merged = {name: {**mine, **getattr(other, name)} for name, mine in self._choices()}
        first = self if self.__dict__["_source"] else other
        return Schedule(**merged)._made(other.__dict__["_span"], first.__dict__["_source"])

    def within(self, program: Program) -> Schedule:
        """Return the choices that name something of a program, a part of the kernel's."""
        names = schedule_names(program)
        kept = {
            field: {name: choice for name, choice in choices.items() if name in names[field]}
            for field, choices in self._choices()
        }
        return Schedule(**kept)._made(self.__dict__["_span"], self.__dict__["_source"])

    @staticmethod
    def of_options(**choices: Mapping[str, Any]) -> Schedule:
        """Make a schedule from command-line options; its errors have no source position."""
        return Schedule(**choices)._made(None, None)

    def to_json(self) -> str:
        """Return the schedule as JSON, the same text for equal schedules."""
        return json.dumps({name: dict(each) for name, each in self._choices()}, sort_keys=True)

    @staticmethod
    def from_json(text: str, *, file: str | None = None) -> Schedule:
        """Read a schedule from JSON.

        Parameters
        ----------
        text : str
        file : str or None
            Origin of the text; errors name it and the line of the key.

        Raises
        ------
        ProgramError
            If the text is not a schedule; for an unknown key the message suggests the nearest ones.
        """
        caller = caller_span()
        if not isinstance(text, str):
            raise ProgramError("schedule", f"Schedule must be text, not {shown(text)}", caller)
        source = None if file is None else _Source(file, text)

        def span(key: str | None = None, *, line: int = 1) -> Span:
            return caller if source is None else source.span(key, line=line)

        try:
            found = json.loads(text)
        except json.JSONDecodeError as error:
            raise ProgramError(
                "schedule", f"Schedule must be JSON: {error}", span(line=error.lineno)
            ) from error
        except (RecursionError, ValueError) as error:
            rule = "nested less deeply" if isinstance(error, RecursionError) else "of small numbers"
            raise ProgramError("schedule", f"Schedule must be JSON {rule}", span()) from error
        if not isinstance(found, dict):
            raise ProgramError(
                "schedule", f"Schedule must be a JSON object, not {shown(found)}", span()
            )
        keys = [each.name for each in fields(Schedule)]
        for key, choices in found.items():
            if key not in keys:
                raise ProgramError(
                    "schedule",
                    f"Schedule has `{key}`; {near_misses(key, keys, 'keys')}",
                    span(key),
                    value=key,
                )
            if not isinstance(choices, dict):
                raise ProgramError(
                    "schedule",
                    f"Schedule.{key} must be an object, not {shown(choices)}",
                    span(key),
                )
            _checked(key, choices, span)
        return Schedule(**found)._made(None if source else caller, source)


def _checked(field: str, choices: object, span: Callable[[str], Span]) -> dict[str, Any]:
    """Validated choices of a field, numbers as int."""

    def refused(noun: str, rule: str, value: object, key: str = field) -> ProgramError:
        message = f"{noun} must be {rule}, not {shown(value)}"
        return ProgramError("schedule", message, span(key), value=shown(value))

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
            raise refused(f"Schedule.{field} of `{name}`", rule, value, name)
        checked[name] = found
    return checked


def schedule_names(program: Program) -> dict[str, tuple[str, ...]]:
    """Return the names of a program that each field of a schedule may use."""
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
    """Check that a program has every name in a schedule.

    Raises
    ------
    ProgramError
        At the first unknown name; the message suggests the nearest ones.
    """
    nouns = {"tile": "loops", "slots": "tiles"}
    for field, names in schedule_names(program).items():
        for name in getattr(schedule, field):
            if name not in names:
                noun = f"{nouns.get(field, 'products')} of {program.name}"
                raise ProgramError(
                    "schedule",
                    f"Schedule.{field} has `{name}`; {near_misses(name, names, noun)}",
                    schedule.span_of(name),
                    value=name,
                )


def _results(program: Program, *, products_only: bool) -> tuple[str, ...]:
    """Variables of tiles that a schedule may name."""
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
