"""References: the author's float64 implementation of a kernel in numpy."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

import numpy as np

from sw.language.program_error import ProgramError, caller_span

__all__ = ["Reference"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Reference:
    """The author's float64 implementation of a kernel, independent of the compiler.

    As a decorator it takes the function; called with the kernel's inputs, and with options by name,
    it returns the outputs.

    Parameters
    ----------
    name : str
        Name of the kernel.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.function: Callable[..., Any] | None = None

    @overload
    def __call__(self, function: _Function, /) -> _Function: ...

    @overload
    def __call__(self, *given: Any, **named: Any) -> Any: ...

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Set the function, or apply it to arrays, converted to float64 or int64."""
        if len(given) == 1 and inspect.isfunction(given[0]):
            self.function = given[0]
            return given[0]
        if self.function is None:
            raise ProgramError("argument", f"Kernel `{self._name}` has no reference", caller_span())
        return self.function(*map(_wide, given), **{k: _wide(v) for k, v in named.items()})

    def taken(self, options: Mapping[str, Any], inputs: int) -> dict[str, Any]:
        """Options that the function takes: those with the name of a parameter behind the inputs."""
        names = [*inspect.signature(self.function).parameters][inputs:] if self.function else []
        return {name: value for name, value in options.items() if name in names}


def _wide(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    return value.astype(np.int64 if value.dtype.kind in "iub" else np.float64)
