"""Tilewright: generate dataflow accelerators, program them, and check the answer on the RTL.

This module is what a user imports, and the entry of the ``tilewright`` command.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from hw import __version__
from hw.errors import TilewrightError
from sw.actions import register

__all__ = ["TilewrightError", "__version__", "main"]


def __getattr__(name: str) -> Any:
    """The language's names, on first use: the command's help needs none of it."""
    if name.startswith("__"):
        raise AttributeError(name)
    import sw.language

    if name not in sw.language.__all__:
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
    return getattr(sw.language, name)


def _late(action: str) -> Callable[..., Any]:
    """What a kernel does when it is called, run or compiled; imported when it is."""

    def act(*arguments: Any, **options: Any) -> Any:
        from sim.kernels import call
        from sim.run.api import compile_kernel, run_kernel

        actions: dict[str, Callable[..., Any]] = {
            "call": call,
            "run": run_kernel,
            "compile": compile_kernel,
        }
        return actions[action](*arguments, **options)

    return act


for _action in ("call", "run", "compile"):
    register(_action, _late(_action))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the ``tilewright`` command.

    Parameters
    ----------
    argv : sequence of str
        Arguments without the program's name; the process's own by default.

    Returns
    -------
    int
        0 verified, 1 wrong result, 2 bad input, 3 missing tool, 4 hang, 5 device error,
        130 interrupted.
    """
    from sim.cli.app import main as run

    return run(argv)


if __name__ == "__main__":
    sys.exit(main())
