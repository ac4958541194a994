"""Progress of long work, displayed on a terminal, in a notebook, or not at all."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from sim.rules import OPTIONS

__all__ = ["Progress", "shown_progress"]


class Progress:
    """Progress without display; base class of displays."""

    @contextlib.contextmanager
    def step(self, text: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """Context manager of one step of the work; steps may overlap, also across threads.

        Parameters
        ----------
        text : str
            The step in a few words.
        total : int, optional
            Approximate units of work, if known.

        Returns
        -------
        function
            Function to be called with the units done so far.
        """
        yield lambda done: None


@contextlib.contextmanager
def shown_progress(wanted: bool = True) -> Iterator[Progress]:
    """Progress with a display if standard error is a terminal, or in a notebook.

    Nothing appears until a step has taken a second, and the display is removed at the end.

    Parameters
    ----------
    wanted : bool
        Whether to show it at all.

    Raises
    ------
    BadInputError
        If `wanted` is no truth value.
    """
    wanted = OPTIONS["progress"].check("progress", wanted)
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if not wanted or not (terminal or "ipykernel" in sys.modules):
        yield Progress()
        return
    # Imported only if something is displayed.
    from sim.progress_display import Notebook, ShownProgress, Terminal

    with ShownProgress(Terminal() if terminal else Notebook()) as progress:
        yield progress
