"""Keyboard interrupts (SIGINT) that are not lost in finalizers.

Python ignores an exception raised in a finalizer. Elaboration creates and frees thousands of
components with finalizers, so most interrupts would arrive in one and be lost.
"""

import contextlib
import signal
import threading
import warnings
from collections.abc import Iterator
from types import FrameType

__all__ = ["interruptible"]

_RETRY_SECONDS = 0.02


def _interrupt(number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            # Ignored here: send it again after the finalizer has returned. The main thread may
            # sleep or wait for a process by then, which a signal of another thread would not end.
            main = threading.main_thread().ident
            again = threading.Timer(_RETRY_SECONDS, signal.pthread_kill, [main, number])
            again.daemon = True
            again.start()
            return
        frame = frame.f_back
    # Amaranth would warn of every component not elaborated yet.
    warnings.filterwarnings("ignore", ".* created but never used")
    raise KeyboardInterrupt


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Context manager in which SIGINT raises KeyboardInterrupt outside of finalizers.

    Only the main thread receives signals; in other threads it has no effect. A handler other than
    Python's default is kept.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
