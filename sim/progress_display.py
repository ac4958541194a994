"""Display of progress: one line per step under way, redrawn until the work ends."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
from rich.progress import Progress as Steps
from rich.text import Text

from sim.closing import Closing
from sim.progress import Progress

__all__ = ["Notebook", "ShownProgress", "Surface", "Terminal"]

_DELAY_SECONDS, _REDRAW_SECONDS = 1.0, 0.2
#: Fraction at which a bar stops until its step has ended.
_ALMOST = 0.99


class Surface(Protocol):
    """Abstract display surface."""

    def draw(self, picture: RenderableType) -> None:
        """Replace the previous drawing."""

    def clear(self) -> None:
        """Remove the drawing."""


class Terminal:
    """The last lines of the terminal on standard error."""

    def __init__(self) -> None:
        # The caller has checked for a terminal; environment variables are not reliable.
        console = Console(stderr=True, force_terminal=True, force_jupyter=False)
        # Output of others is not redirected: standard output may be a file.
        self._live = Live(
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def draw(self, picture: RenderableType) -> None:
        """Replace the lines drawn before."""
        self._live.start()
        self._live.update(picture, refresh=True)

    def clear(self) -> None:
        """Erase the lines and show the cursor again."""
        self._live.stop()


class Notebook:
    """Output area of the executing notebook cell."""

    def __init__(self) -> None:
        self._handle: Any = None

    def _show(self, text: str) -> None:
        from IPython.display import display

        data = {"text/plain": text}
        if self._handle is None:
            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)

    def draw(self, picture: RenderableType) -> None:
        """Replace the content of the output area by this text."""
        text = io.StringIO()
        Console(file=text, width=100, force_jupyter=False).print(picture)
        self._show(text.getvalue().rstrip())

    def clear(self) -> None:
        """Empty the output area."""
        if self._handle is not None:
            self._show("")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"


class _Share(ProgressColumn):
    """Percent done, time taken and time left, as far as known."""

    def render(self, task: Task) -> Text:
        words = [] if task.total is None else [f"{task.percentage:.0f} %"]
        words.append(_clock(task.elapsed or 0))
        if task.total is not None and task.time_remaining is not None:
            words.append(f"about {_clock(task.time_remaining)} left")
        return Text(", ".join(words))


class ShownProgress(Progress, Closing):
    """Progress drawn on a surface by a separate thread, after a delay.

    Parameters
    ----------
    surface : Surface
    delay_seconds : float
        Time from the first step to the first drawing.
    """

    def __init__(self, surface: Surface, delay_seconds: float = _DELAY_SECONDS) -> None:
        self._surface = surface
        self._delay_seconds = delay_seconds
        bar = BarColumn(bar_width=24)
        self._steps = Steps(TextColumn("{task.description}", markup=False), bar, _Share())
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._draw)
        self._lock = threading.Lock()

    def close(self) -> None:
        """End the drawing."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _draw(self) -> None:
        if self._ended.wait(self._delay_seconds):
            return
        try:
            while not self._ended.wait(_REDRAW_SECONDS):
                with self._lock:
                    if self._steps.tasks:
                        self._surface.draw(self._steps.get_renderable())
        finally:
            self._surface.clear()

    @contextlib.contextmanager
    def step(self, text: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """Context manager of one step of the work, shown as one line while it lasts."""
        with self._lock:
            number = self._steps.add_task(text, total=total)
            if self._thread.ident is None and not self._ended.is_set():
                self._thread.start()

        def show(done: int) -> None:
            most = done if total is None else min(done, _ALMOST * total)
            self._steps.update(number, completed=most)

        try:
            yield show
        finally:
            with self._lock:
                self._steps.remove_task(number)
                # Output between steps must not mix with the drawing.
                if not self._steps.tasks:
                    self._surface.clear()
