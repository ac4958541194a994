"""What kernels do when they are called, run or compiled; the language knows no back end.

This module imports nothing, so that the public face can register before anyone needs the language.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hw.arch.errors import BadInputError

__all__ = ["registered", "register"]

_ACTIONS: dict[str, Callable[..., Any]] = {}


def register(action: str, function: Callable[..., Any]) -> None:
    """Set what a kernel does when it is called, run or compiled.

    The language knows no backend; :mod:`tilewright` registers them.

    Parameters
    ----------
    action : str
        ``call``, ``run`` or ``compile``.
    function : function
        Takes the kernel and then what its ``__call__``, ``run`` or ``compile`` take.
    """
    if action not in ("call", "run", "compile"):
        raise BadInputError(f"Action must be call, run or compile, not {action!r}")
    _ACTIONS[action] = function


def registered(action: str) -> Callable[..., Any] | None:
    """Function of an action; None if there is none yet."""
    return _ACTIONS.get(action)
