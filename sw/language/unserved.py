"""Reserved parts of the language that are not supported yet; each call is refused at its line."""

from __future__ import annotations

from typing import NoReturn

from sw.language.program_error import unserved

__all__ = [
    "compute",
    "dynamic",
    "finish",
    "load",
    "local",
    "op",
    "ring",
    "units",
]


def local(*_: object, **__: object) -> NoReturn:
    """Make an on-chip tensor."""
    raise unserved("tw.local")


def dynamic(*_: object, **__: object) -> NoReturn:
    """Make a dimension a launch argument."""
    raise unserved("tw.dynamic")


def op(*_: object, **__: object) -> NoReturn:
    """Make a function unit of the user a function of tiles."""
    raise unserved("tw.op")


def units(*_: object, **__: object) -> NoReturn:
    """Place units by hand."""
    raise unserved("tw.units")


def ring(*_: object, **__: object) -> NoReturn:
    """Make a buffer with full and empty barriers between stages."""
    raise unserved("tw.ring")


def load(*_: object, **__: object) -> NoReturn:
    """Open the stage that fills a ring."""
    raise unserved("tw.load")


def compute(*_: object, **__: object) -> NoReturn:
    """Open the stage that reads a ring."""
    raise unserved("tw.compute")


def finish(*_: object, **__: object) -> NoReturn:
    """Open the stage that stores."""
    raise unserved("tw.finish")
