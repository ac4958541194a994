"""Registry of the functions behind ``kernel(...)``, ``kernel.run`` and ``kernel.compile``.

The language knows no back end: `tilewright` registers the functions. This module imports only the
error class, so registering does not import the language.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hw.arch.errors import BadInputError

__all__ = ["registered", "register"]

_ACTIONS: dict[str, Callable[..., Any]] = {}


def register(action: str, function: Callable[..., Any]) -> None:
    """Register the function that implements one action of kernels.

    A later registration of the same action replaces the former.

    Parameters
    ----------
    action : str
        ``call``, ``run`` or ``compile``.
    function : function
        Its first argument is the kernel, the others those of ``__call__``, ``run`` or ``compile``.
    """
    if action not in ("call", "run", "compile"):
        raise BadInputError(f"Action must be call, run or compile, not {action!r}")
    _ACTIONS[action] = function


def registered(action: str) -> Callable[..., Any] | None:
    """Registered function of an action; None if there is none yet."""
    return _ACTIONS.get(action)
