"""Error class of tile programs, with source position and rule, and helpers to find the position.

::

    gemm.py:9: `@` sums over 128 columns and 64 rows
        acc += a @ b
               ^^^^^
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterable
from pathlib import PurePath
from types import CodeType, FrameType

from hw.arch.errors import BadInputError, did_you_mean
from sw.ir.format_rules import int32
from sw.ir.nodes import Matmul, Node
from sw.ir.types import Span, TileType

__all__ = [
    "RULES",
    "ProgramError",
    "caller",
    "caller_span",
    "code_span",
    "integer_product",
    "refused",
    "source_lines",
    "unserved",
]

#: First and last line, first column and the one after the last, of an instruction.
_Position = tuple[int | None, int | None, int | None, int | None]

_PACKAGE = __name__.rpartition(".")[0]
#: The package that users import the language from.
_FACE = "tilewright"


#: The rule behind each kind of error.
RULES: dict[str, str] = {
    "state": "only tiles change from iteration to iteration: a body records the same operations "
    "and Python numbers every time",
    "carry": "a carried tile starts before the loop, keeps its shape and format, and is what the "
    "iteration before made",
    "scope": "a tile made in a loop is read inside it; only a carried tile outlives the loop",
    "exit": "a loop runs to its end",
    "condition": "what Python decides while it traces does not depend on tiles or indices",
    "loop": "a loop is a `for` over whole numbers of elements",
    "shape": "tiles agree in size and extent; an axis of one element broadcasts",
    "format": "element math is int32 or fp32, `@` takes short formats, only `.to` and stores round",
    "cells": "the cells of a chip multiply the formats that its configuration names",
    "contraction": "`@` has as many columns on its left as rows on its right",
    "view": "a tensor is cut by numbers, sums of indices, blocks and slices of fixed length, and "
    "inside its bounds",
    "operation": "operations take tiles, tensors and numbers of the kernel that is traced",
    "output": "inputs are read, each element of an output is written once, and a name on both "
    "sides of the signature is updated in place",
    "signature": "a signature is `A[M, K], B[K, N] -> C[M, N]` and names the function's tensors",
    "argument": "a call fits the kernel's signature and options",
    "schedule": "a schedule names loops and tiles of its program, and numbers of 1 or more",
    "unserved": "this part of the language is reserved and not supported yet",
}


class ProgramError(BadInputError):
    """A violation of the language's rules by a tile program or by its caller.

    ``message`` is one line; the text of the error adds the source line and carets below it.

    Parameters
    ----------
    kind : str
        Key of the rule in :data:`RULES`.
    message : str
        What is wrong, with the values.
    span : Span or None
        Source position; None if no line of the program is at fault.
    value : str
        The value at fault; empty if there is none.
    """

    def __init__(self, kind: str, message: str, span: Span | None, *, value: str = "") -> None:
        place = f"{PurePath(span.file).name}:{span.line}" if span else None
        super().__init__(
            f"{place}: {message}" if place else message,
            kind=kind,
            where=place,
            value=value or None,
            rule=RULES[kind],
        )
        self.span = span

    def __str__(self) -> str:
        return "\n".join((self.message, *(source_lines(self.span) if self.span else ())))


def source_lines(span: Span) -> tuple[str, ...]:
    """Return the first source line of a span with carets below it; empty without source."""
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
    """Return the innermost frame of user code."""
    frame: FrameType | None = sys._getframe(1)
    last = sys._getframe(1)
    while frame is not None:
        last = frame
        module = str(frame.f_globals.get("__name__", ""))
        if not module.startswith(_PACKAGE) and module != _FACE:
            return frame
        frame = frame.f_back
    return last


# By identity: equal code in two files has two positions. The reference keeps the id valid.
_POSITIONS: dict[int, tuple[CodeType, list[_Position]]] = {}
_MOST_POSITIONS = 256


def _positions(code: CodeType) -> list[_Position]:
    if id(code) not in _POSITIONS:
        if len(_POSITIONS) >= _MOST_POSITIONS:
            _POSITIONS.clear()
        _POSITIONS[id(code)] = (code, list(code.co_positions()))
    return _POSITIONS[id(code)][1]


def code_span(code: CodeType, offset: int) -> Span:
    """Return the source position of the instruction at a byte offset."""
    line, end_line, column, end_column = _positions(code)[max(0, offset) // 2]
    line = line or code.co_firstlineno
    return Span(code.co_filename, line, column or 0, end_line or line, end_column or 0)


def caller_span() -> Span:
    """Return the current source position in user code."""
    frame = caller()
    return code_span(frame.f_code, frame.f_lasti)


def unserved(name: str) -> ProgramError:
    """Make the error for a part of the language that is not supported yet."""
    return ProgramError("unserved", f"`{name}` is not supported yet", caller_span(), value=name)


def refused(node: Node | None, message: str, value: str = "") -> ProgramError:
    """Make the error at the line of an operation that is not supported there."""
    return ProgramError("unserved", message, node.span if node else None, value=value)


def near_misses(name: str, known: Iterable[str], noun: str) -> str:
    """Return advice on an unknown name: the nearest known names, or all of them."""
    names = list(dict.fromkeys(known))
    return f"{noun} are {', '.join(names) or 'none'}{did_you_mean(name, names)}"


def integer_product(node: Node, made: Iterable[Node]) -> str:
    """Return what to write where a refused operation takes a product of integers, of those made."""
    products = {each.results[0] for each in made if isinstance(each, Matmul)}
    for each in products.intersection(node.operands):
        if isinstance(each.type, TileType) and each.type.format == int32:
            return "; products of int8 are int32: write `.to(tw.bf16)` on their operands"
    return ""
