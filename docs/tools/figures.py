"""Table of the figures in the prose of the pages: ``docs/figures.toml``.

An entry names a page, the words around its figures, and where they come from:

- ``values``: Python whose last line gives the figures, ``r`` being the JSON report of ``command``
  if there is one. Exact: they are computed again and compared. ``text`` has a field of
  `str.format` for each.
- ``test``: the test that holds a figure of a contract.
- ``measured``: the command that measured figures of time, or how they were measured. Not compared.
- ``cited``: the source of somebody else's figure.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
import string
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from docs.tools.reports import report

__all__ = ["ROOT", "Figure", "Table", "figures", "tables"]

ROOT = Path(__file__).resolve().parents[2]
_SOURCES = ("values", "test", "measured", "cited")
_NUMBER = r"(?P<f{}>\d[\d,]*(?:\.\d+)?)"


def _computed(source: str, report: Any) -> tuple[Any, ...]:
    """Values of the last line of a piece of Python."""
    *before, last = ast.parse(source).body
    if not isinstance(last, ast.Expr):
        raise ValueError(f"Last line of values must be an expression, not {ast.unparse(last)!r}")
    names: dict[str, Any] = {"r": report}
    exec(compile(ast.Module(before, []), "<values>", "exec"), names)
    value = eval(compile(ast.Expression(last.value), "<values>", "eval"), names)
    return value if isinstance(value, tuple) else (value,)


@dataclasses.dataclass(frozen=True)
class Source:
    """Origin of a figure or table; exactly one of the four is set.

    Parameters
    ----------
    page : str
        File of the page, from the top of the project.
    command : str or None
        Command whose report ``values`` reads.
    values, test, measured, cited : str or None
    slow : bool
        Whether computing the values takes more than a second.
    """

    page: str
    command: str | None = None
    values: str | None = None
    test: str | None = None
    measured: str | None = None
    cited: str | None = None
    slow: bool = False

    def __post_init__(self) -> None:
        given = [name for name in _SOURCES if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"Origin of a figure must be one of {_SOURCES}, not {given}")


@dataclasses.dataclass(frozen=True)
class Figure(Source):
    """Figures in one piece of prose.

    Parameters
    ----------
    text : str
        Words around the figures as they stand in the page; a line break is a space.
    """

    text: str = ""

    @functools.cached_property
    def pattern(self) -> re.Pattern[str]:
        """Pattern that finds the text in its page, with a group for each figure."""
        parts = []
        number = 0
        pieces = string.Formatter().parse(self.text) if self.values else [(self.text, None, "", "")]
        for literal, field, _, _ in pieces:
            parts.append(r"\s+".join(map(re.escape, re.split(r"\s+", literal))))
            if field is not None:
                parts.append(_NUMBER.format(number))
                number += 1
        return re.compile("".join(parts))

    @functools.cached_property
    def expected(self) -> tuple[str, ...]:
        """Figures as the page must have them, in its spelling."""
        found = None if self.command is None else report(self.command)
        values = _computed(self.values or "", found)
        fields = string.Formatter().parse(self.text)
        specs = [spec for _, field, spec, _ in fields if field is not None]
        return tuple(format(value, spec or "") for value, spec in zip(values, specs, strict=True))

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Places of the page that the entry accounts for."""
        return (found.span() for found in self.pattern.finditer(text))

    def stated(self, text: str) -> list[tuple[str, ...]]:
        """Figures that the page states, at each place."""
        return [found.groups() for found in self.pattern.finditer(text)]

    def corrected(self, text: str, values: Sequence[str]) -> str:
        """Page with these figures in the place of those it states."""

        def change(found: re.Match[str]) -> str:
            pieces, end = [], found.start()
            for number, value in enumerate(values):
                pieces += [text[end : found.start(f"f{number}")], value]
                end = found.end(f"f{number}")
            return "".join([*pieces, text[end : found.end()]])

        return self.pattern.sub(change, text)


@dataclasses.dataclass(frozen=True)
class Table(Source):
    """Table of figures that is not generated.

    Parameters
    ----------
    head : str
        Beginning of the table's first line.
    """

    head: str = ""


@functools.cache
def _document() -> Mapping[str, Any]:
    return tomllib.loads((ROOT / "docs" / "figures.toml").read_text(encoding="utf-8"))


def figures() -> list[Figure]:
    """Every entry of figures in prose."""
    return [Figure(**entry) for entry in _document()["figure"]]


def tables() -> list[Table]:
    """Every table that is not generated and holds figures."""
    return [Table(**entry) for entry in _document()["table"]]
