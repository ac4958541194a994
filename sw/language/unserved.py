"""Reserved parts of the language that are not supported yet; each call is refused at its line."""

from __future__ import annotations

from typing import NoReturn

from sw.language.program_error import unserved

__all__ = [
    "dynamic",
    "op",
]


def dynamic(*_: object, **__: object) -> NoReturn:
    """Make a dimension a launch argument."""
    raise unserved("tw.dynamic")


def op(*_: object, **__: object) -> NoReturn:
    """Make a function unit of the user a function of tiles."""
    raise unserved("tw.op")
