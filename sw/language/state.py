"""Detection of Python state in a loop body: caller's locals that change between passes."""

from __future__ import annotations

import dis
from collections import deque
from collections.abc import Iterable, Mapping
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

from sw.ir.affine import Affine, Bound
from sw.ir.types import Span
from sw.language.program_error import code_span

__all__ = [
    "Snapshot",
    "changed",
    "first_use",
    "is_for_statement",
    "own_attribute",
    "snapshot",
    "tiles",
]

#: What can be compared of a frame's locals, by name.
Snapshot = Mapping[str, Any]

_DEPTH = 3


def own_attribute(value: Any, name: str) -> Any:
    """Return an attribute of a value or of its class; None if there is none.

    A value of the language answers any other name with an error that says what to write instead,
    which takes long to find.
    """
    if hasattr(type(value), name) or name in getattr(value, "__dict__", ()):
        return getattr(value, name, None)
    return None


def _frozen(value: Any, depth: int) -> Any:
    """Return a key that differs if any number in the value differs; None if it has no number."""
    if isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        # Text, so that NaN equals itself and 1 is not True.
        return repr(value)
    form = own_attribute(value, "form")
    if isinstance(form, Affine | Bound):
        return str(form)
    if depth == 0:
        return None
    if isinstance(value, Mapping):
        return {repr(key): _frozen(each, depth - 1) for key, each in value.items()}
    if isinstance(value, list | tuple | deque):
        return [_frozen(each, depth - 1) for each in value]
    if isinstance(value, set | frozenset):
        return len(value)
    return None


def snapshot(frame: FrameType) -> Snapshot:
    """Return the numbers in a frame's locals, including those in lists, tuples and dictionaries."""
    taken = {name: _frozen(value, _DEPTH) for name, value in frame.f_locals.items()}
    return {name: value for name, value in taken.items() if value is not None}


def tiles(frame: FrameType) -> dict[str, str]:
    """Return the recorded names of the tiles in a frame's locals, by where they are found.

    They are looked for in lists, queues, tuples, dictionaries and attributes of objects.
    """
    found = dict[str, str]()

    def look(place: str, value: Any, depth: int) -> None:
        if own_attribute(value, "recorder") is not None:
            if (name := own_attribute(value, "traced_name")) is not None:
                found[place] = name
        elif depth:
            for key, each in _parts(value):
                look(f"{place}.{key}", each, depth - 1)

    for name, value in frame.f_locals.items():
        look(name, value, _DEPTH)
    return found


def _parts(value: Any) -> Iterable[tuple[object, Any]]:
    """Items of a container, or attributes of an object, by key."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, list | tuple | deque):
        return enumerate(value)
    if isinstance(value, ModuleType | FunctionType | type):
        return ()
    return list(getattr(value, "__dict__", {}).items())


def changed(before: Snapshot, after: Snapshot) -> dict[str, tuple[str, str]]:
    """Return the names in both snapshots whose values differ, with both values as text."""
    return {
        name: (_brief(before[name]), _brief(after[name]))
        for name in before
        if name in after and before[name] != after[name]
    }


def _brief(value: Any) -> str:
    if isinstance(value, list | dict):
        return f"{len(value)} items"
    return str(value)


def _body(code: CodeType, offset: int) -> list[dis.Instruction]:
    """Instructions of the body of the ``for`` whose iterator is at a byte offset."""
    instructions = list(dis.get_instructions(code))
    end = next(
        (each.argval for each in instructions if each.offset == offset and "FOR" in each.opname),
        len(code.co_code),
    )
    return [each for each in instructions if offset < each.offset < end]


def is_for_statement(code: CodeType, offset: int) -> bool:
    """Return whether the instruction at a byte offset is the ``next`` of a ``for`` statement."""
    return dis.opname[code.co_code[offset]] == "FOR_ITER"


def _several(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else ()


def first_use(code: CodeType, offset: int, name: str) -> Span:
    """Return where the body of a ``for`` last sets a name, otherwise where it first reads it."""
    uses = [each for each in _body(code, offset) if "ATTR" not in each.opname]
    # Newer Pythons join two uses of locals in one instruction.
    uses = [each for each in uses if name in (each.argval, *_several(each.argval))]
    stores = [each for each in uses if each.opname.startswith("STORE")]
    found = stores[-1:] or uses[:1]
    return code_span(code, found[0].offset if found else offset)
