"""Result of ``kernel.tune``: the schedules tried, and the fastest of them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sw.language.schedule import Schedule

__all__ = ["Trial", "Tuning"]


@dataclasses.dataclass(frozen=True)
class Trial:
    """One schedule of a tuning.

    Members
    -------
    schedule : Schedule
        Its choices beside the user's; empty for the compiler's own.
    predicted : int or None
        Predicted cycles; None if the compiler refuses it.
    measured : int or None
        Cycles of its run; None if it did not run, or the back end has no timing.
    verified : bool or None
        Whether every check of the run passed; None if it did not run.
    refusal : str or None
        Message of the compiler.
    """

    schedule: Schedule
    predicted: int | None
    measured: int | None = None
    verified: bool | None = None
    refusal: str | None = None

    @property
    def cycles(self) -> int:
        """Measured cycles if there are any, otherwise predicted ones."""
        return self.measured or self.predicted or 0


@dataclasses.dataclass(frozen=True)
class Tuning:
    """Result of a tuning: the fastest schedule found.

    Members
    -------
    trials : tuple of Trial
        Every schedule tried, the compiler's own first.
    best : Trial
        The fastest of those that ran and are verified.
    exhausted : bool
        Whether the search ended because no single change is predicted faster, not for its limit.
    """

    trials: tuple[Trial, ...]
    best: Trial
    exhausted: bool

    @property
    def schedule(self) -> Schedule:
        """For ``kernel.run(..., schedule=...)``; empty if the compiler's own is the fastest."""
        return self.best.schedule

    @property
    def cycles(self) -> int:
        """Cycles with that schedule: measured on RTL, predicted by the emulator."""
        return self.best.cycles

    @property
    def default_cycles(self) -> int:
        """Cycles with the compiler's own schedule."""
        return self.trials[0].cycles

    def __str__(self) -> str:
        measured = sum(each.measured is not None for each in self.trials)
        refused = sum(each.refusal is not None for each in self.trials)
        ended = "no single change is predicted faster" if self.exhausted else "out of trials"
        return (
            f"{self.schedule}: {self.cycles:,} cycles, {self.default_cycles:,} by default; "
            f"{len(self.trials)} schedules tried, {refused} of them refused, {measured} measured; "
            f"{ended}"
        )
