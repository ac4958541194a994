"""Progress of a simulation, on a terminal and nowhere else."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

__all__ = ["progress_line"]

_INTERVAL_SECONDS = 0.5


@contextlib.contextmanager
def progress_line(name: str) -> Iterator[Callable[[int], None] | None]:
    """Function that shows cycles on one line of standard error, gone at the end.

    None if standard error is no terminal.
    """
    if not sys.stderr.isatty():
        yield None
        return
    began = time.monotonic()
    shown = began

    def show(cycles: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown < _INTERVAL_SECONDS:
            return
        shown = now
        rate = cycles / (now - began)
        sys.stderr.write(f"\r\x1b[K{name}: {cycles:,} cycles, {rate:,.0f} a second")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
