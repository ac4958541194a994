"""Progress of long work: steps that are shown on a terminal or in a notebook, or nowhere."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from sim.rules import OPTIONS

__all__ = ["Progress", "shown_progress"]


class Progress:
    """Progress that nobody sees; the base class of what shows it."""

    @contextlib.contextmanager
    def step(self, text: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """Context of one step of the work; steps may overlap, also those of several threads.

        Parameters
        ----------
        text : str
            What is done, in a few words.
        total : int, optional
            Units of work, if that is known: about so many.

        Returns
        -------
        function
            Takes the units done so far.
        """
        yield lambda done: None


@contextlib.contextmanager
def shown_progress(wanted: bool = True) -> Iterator[Progress]:
    """Progress that is shown while standard error is a terminal, or in a notebook.

    Nothing appears before a step has taken a second, and nothing stays behind.

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
    # Not imported by what shows nothing.
    from sim.progress_display import Notebook, ShownProgress, Terminal

    with ShownProgress(Terminal() if terminal else Notebook()) as progress:
        yield progress
