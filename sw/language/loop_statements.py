"""Loops of the language, whose bodies are traced several times with the same index."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from sw.ir.affine import Axis, Bound
from sw.language.index import BlockIndex, PointIndex, StopNumber
from sw.language.loop_passes import OpenLoop
from sw.language.program_error import ProgramError, caller, caller_span
from sw.language.state import is_for_statement
from sw.language.tile_value import as_affine, whole
from sw.language.trace import Recorder, current, refusal

__all__ = ["each", "metapipe", "repeat"]


def metapipe(
    extent: int | Axis, size: int | None = None, *, until: object = None
) -> Iterator[BlockIndex]:
    """Loop over blocks of elements in time; iterations overlap where buffers allow.

    The body is traced twice or more. A name that it rebinds to a tile carries the tile to the next
    iteration.

    Parameters
    ----------
    extent : int
        Total elements; an axis that ends inside a block is refused.
    size : int or None
        Elements per block, which a schedule overrides; None leaves it to the compiler.
    until : int, sum of indices, or stop of a block
        Additional end: no block begins there or later.

    Raises
    ------
    ProgramError
        If the extent or the size is not an integer of at least 1.
    """
    recorder = current("metapipe")
    count = _count("Extent of `metapipe`", extent)
    block = None if size is None else _count("Block size of `metapipe`", size)
    bound = None
    if until is not None:
        form = as_affine(until)
        if isinstance(until, StopNumber):
            bound = until.form
        elif form is not None:
            bound = Bound((form,))
        else:
            raise refusal(
                "loop",
                f"`until` must be a number, a sum of indices or the stop of a block, not {until!r}",
            )
    loop = recorder.open_loop("metapipe", count, block, bound, caller_span())
    return _passes(recorder, loop, BlockIndex(recorder, loop.symbol, count, bound))


def each(extent: int | Axis) -> Iterator[PointIndex]:
    """Loop over single elements in time; the index drops the axis it indexes.

    Parameters
    ----------
    extent : int
        Total elements; an axis that ends inside a block is refused.

    Raises
    ------
    ProgramError
        If the extent is not an integer of at least 1.
    """
    recorder = current("each")
    count = _count("Extent of `each`", extent)
    loop = recorder.open_loop("each", count, None, None, caller_span())
    return _passes(recorder, loop, PointIndex(recorder, loop.symbol))


def repeat(extent: int | Axis) -> Iterator[PointIndex]:
    """Loop over single elements, such as layers, whose iterations are entries of one launch list.

    It stands outside all other loops. Tiles that it carries pass through memory.

    Parameters
    ----------
    extent : int
        Total elements; an axis that ends inside a block is refused.

    Raises
    ------
    ProgramError
        If the extent is not an integer of at least 1, or another loop surrounds this one.
    """
    recorder = current("repeat")
    count = _count("Extent of `repeat`", extent)
    if recorder.ranges:
        raise refusal(
            "loop",
            "`repeat` must stand outside all other loops: its iterations are entries of the launch "
            "list; write `tw.each`",
            value="repeat",
        )
    loop = recorder.open_loop("repeat", count, None, None, caller_span())
    return _passes(recorder, loop, PointIndex(recorder, loop.symbol))


def _count(noun: str, value: object) -> int:
    number = whole(value)
    if number is None or number < 1:
        raise refusal(
            "loop",
            f"{noun} must be a whole number of 1 or more, not {value!r}",
            value=repr(value),
        )
    return number


def _passes(recorder: Recorder, loop: OpenLoop, index: Any) -> Iterator[Any]:
    while not loop.ended:
        # The frame that runs the `for`; another frame only if the iterator was passed on.
        frame = sys._getframe(1)
        if frame is not caller() or not is_for_statement(frame.f_code, frame.f_lasti):
            raise ProgramError(
                "loop",
                f"`{loop.mode}` must be what a `for` statement goes over",
                loop.span,
            )
        recorder.begin_pass(loop, frame)
        try:
            yield index
        except GeneratorExit:
            recorder.leave(loop, sys._getframe(1))
            raise
        recorder.end_pass(loop, sys._getframe(1))
