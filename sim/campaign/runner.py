"""Campaign runner: cases in order until the time limit, with failures shrunk and stored."""

from __future__ import annotations

import collections
import dataclasses
import functools
import time
from collections.abc import Callable, Collection
from pathlib import Path

from hw.arch.config import named
from sim.campaign.case import Fields, Verdict, chip_of_case, command
from sim.campaign.corpus import keep
from sim.campaign.features import missing
from sim.campaign.kinds import KINDS, draw, judge, order
from sim.campaign.models import Models
from sim.campaign.shrink import shrink

__all__ = ["Summary", "run_campaign"]

_SAY_SECONDS = 60.0


@dataclasses.dataclass
class Summary:
    """Summary of a run.

    Parameters
    ----------
    seed : int
    seconds : float
    cases, outcomes, bins, counts : Counter
        Counts of cases by kind and by ``"kind: outcome"``, of feature bins, and further totals.
    failures : list of (fields, Verdict)
        Failing cases after shrinking.
    """

    seed: int
    seconds: float = 0.0
    cases: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    outcomes: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    bins: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    failures: list[tuple[Fields, Verdict]] = dataclasses.field(default_factory=list)

    def add(self, kind: str, verdict: Verdict) -> None:
        """Add a case to the summary."""
        self.cases[kind] += 1
        self.outcomes[f"{kind}: {verdict.outcome}"] += 1
        self.bins.update(verdict.bins)
        self.counts.update(verdict.counts)

    @property
    def missing(self) -> list[str]:
        """Feature bins with too few hits for a full run."""
        return missing(self.bins, self.cases)

    def lines(self) -> list[str]:
        """The summary as text."""
        met = len([name for name in self.bins if self.bins[name]])
        return [
            f"seed {self.seed}: {sum(self.cases.values())} cases in {self.seconds:.0f} s",
            *(f"  {name}: {count}" for name, count in sorted(self.outcomes.items())),
            *(f"  {name}: {count}" for name, count in sorted(self.counts.items())),
            f"  feature bins met: {met}; fewer than 5 times: {', '.join(self.missing) or 'none'}",
            f"{len(self.failures)} failures",
        ]


def run_campaign(
    seed: int,
    seconds: float,
    *,
    kinds: tuple[str, ...],
    models: Models | None,
    chips: Collection[str] | None = None,
    corpus: Path | None = None,
    most_failures: int = 10,
    say: Callable[[str], None] = print,
) -> Summary:
    """Judge the cases of a seed in order until the time limit.

    Parameters
    ----------
    seed : int
    seconds : float
        Time limit for the start of a case; the last one may take longer.
    kinds : tuple of str
    models : Models or None
        None runs without RTL.
    chips : collection of str, optional
        Configurations of which models may be built; cases of other chips run without RTL.
    corpus : Path or None
        Folder for failing cases; None stores none.
    most_failures : int
        Failures after which the run ends.
    say : function
        Function called with each line of output.
    """
    summary = Summary(seed)
    began = said = time.monotonic()
    say(f"campaign of seed {seed}, {seconds:.0f} s, kinds {', '.join(kinds)}")
    for kind, number in order(kinds):
        now = time.monotonic()
        summary.seconds = now - began
        if summary.seconds >= seconds or len(summary.failures) >= most_failures:
            break
        if now - said >= _SAY_SECONDS:
            said = now
            say(f"  {summary.seconds:.0f} s: {sum(summary.cases.values())} cases")
        fields = draw(seed, kind, number)
        built = models if chips is None or chip_of_case(fields) in chips else None
        verdict = judge(fields, built)
        summary.add(kind, verdict)
        if verdict.problems:
            say(f"FAILED {kind} {number} of seed {seed}: {'; '.join(verdict.problems)}")
            say(f"  {command(fields)}")
            small, found = shrink(
                fields, verdict, functools.partial(judge, models=built), KINDS[kind].smaller
            )
            summary.failures.append((small, found))
            say(f"  smaller: {'; '.join(found.problems)}")
            say(f"  {command(small)}")
            if corpus is not None:
                say(f"  kept as {keep(corpus, small, found.problems)}")
    if models is not None:
        summary.counts["random chips on RTL"] = len(models.chips - set(named.values()))
    for text in summary.lines():
        say(text)
    return summary
