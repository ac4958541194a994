"""Errors of tile programs: one class, with the place in the program and a rule.

::

    gemm.py:9: `@` sums over 128 columns and 64 rows
        acc += a @ b
               ^^^^^
"""

from __future__ import annotations

import linecache
import sys
from itertools import islice
from pathlib import PurePath
from types import CodeType, FrameType

from sw.ir.types import Span

__all__ = ["ProgramError", "caller", "caller_span", "code_span", "source_lines", "unserved"]

_PACKAGE = __name__.rpartition(".")[0]


class ProgramError(ValueError):
    """A tile program, or a use of one, that breaks a rule of the language.

    Parameters
    ----------
    rule : str
        Which rule, in one word: ``state``, ``carry``, ``scope``, ``exit``, ``condition``, ``loop``,
        ``shape``, ``format``, ``contraction``, ``view``, ``operation``, ``signature``,
        ``argument``, ``schedule``, ``output`` or ``unserved``.
    message : str
        What is wrong, in one line, with the values.
    span : Span or None
        Where; None if no line of the program is at fault.
    value : str
        The value at fault, where there is one.
    """

    def __init__(self, rule: str, message: str, span: Span | None, *, value: str = "") -> None:
        self.rule = rule
        self.message = message
        self.span = span
        self.value = value
        super().__init__(self._text())

    @property
    def where(self) -> str:
        """File and line, as ``gemm.py:9``; empty if there is none."""
        return f"{PurePath(self.span.file).name}:{self.span.line}" if self.span else ""

    def _text(self) -> str:
        if self.span is None:
            return self.message
        return "\n".join((f"{self.where}: {self.message}", *source_lines(self.span)))


def source_lines(span: Span) -> tuple[str, ...]:
    """Give the first source line of a span and carets below it; nothing if there is no source."""
    line = linecache.getline(span.file, span.line).rstrip("\n")
    if not line.strip():
        return ()
    # Columns count bytes; carets count characters.
    encoded = line.encode()
    start = len(encoded[: span.column].decode(errors="ignore"))
    end = len(line)
    if span.end_line == span.line:
        end = len(encoded[: span.end_column].decode(errors="ignore"))
    margin = len(line) - len(line.lstrip())
    start = max(start, margin)
    return (f"    {line.strip()}", f"    {' ' * (start - margin)}{'^' * max(1, end - start)}")


def caller() -> FrameType:
    """Give the innermost frame that runs the user's code, not the language's."""
    frame: FrameType | None = sys._getframe(1)
    last = sys._getframe(1)
    while frame is not None:
        last = frame
        if not str(frame.f_globals.get("__name__", "")).startswith(_PACKAGE):
            return frame
        frame = frame.f_back
    return last


def code_span(code: CodeType, offset: int) -> Span:
    """Give the place of the instruction at a byte offset of some code."""
    found = next(islice(code.co_positions(), max(0, offset) // 2, None), (None,) * 4)
    line, end_line, column, end_column = found
    line = line or code.co_firstlineno
    return Span(code.co_filename, line, column or 0, end_line or line, end_column or 0)


def caller_span() -> Span:
    """Give the place in the user's code that is running."""
    frame = caller()
    return code_span(frame.f_code, frame.f_lasti)


def unserved(name: str) -> ProgramError:
    """Make the error for a part of the language that has a name but no service."""
    return ProgramError("unserved", f"`{name}` is not served yet", caller_span(), value=name)
