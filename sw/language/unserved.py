"""Reserved part of the language that is not supported yet; a call is refused at its line."""

from __future__ import annotations

from typing import NoReturn

from sw.language.program_error import unserved

__all__ = ["dynamic"]


def dynamic(*_: object, **__: object) -> NoReturn:
    """Make a dimension a launch argument."""
    raise unserved("tw.dynamic")
