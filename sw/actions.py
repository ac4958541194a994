"""Registry of the functions behind kernels and units placed by hand, such as call and run.

The language knows no back end: `tilewright` registers the functions. This module imports only the
error class, so registering does not import the language.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hw.arch.errors import BadInputError

__all__ = ["ACTIONS", "registered", "register"]

#: Actions of kernels, and ``launch`` of the program of a chip.
ACTIONS = ("call", "run", "compile", "tune", "launch")

_ACTIONS: dict[str, Callable[..., Any]] = {}


def register(action: str, function: Callable[..., Any]) -> None:
    """Register the function that implements one action of kernels or of units placed by hand.

    A later registration of the same action replaces the former.

    Parameters
    ----------
    action : str
        One of `ACTIONS`.
    function : function
        Its first argument is the kernel, or for ``launch`` the program of the chip, the others
        those of ``__call__``, ``run``, ``compile`` or ``tune``, or of ``Units.run``.
    """
    if action not in ACTIONS:
        raise BadInputError(f"Action must be one of {', '.join(ACTIONS)}, not {action!r}")
    _ACTIONS[action] = function


def registered(action: str) -> Callable[..., Any] | None:
    """Registered function of an action; None if there is none yet."""
    return _ACTIONS.get(action)
