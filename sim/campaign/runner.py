"""A run of the campaign: cases in order until the time is up, failures shrunk and kept."""

from __future__ import annotations

import collections
import dataclasses
import time
from collections.abc import Callable
from pathlib import Path

from hw.arch.config import named
from sim.campaign.case import Fields, Verdict, command
from sim.campaign.corpus import keep
from sim.campaign.features import missing
from sim.campaign.kinds import KINDS, draw, judge, order
from sim.campaign.models import Models
from sim.campaign.shrink import shrink

__all__ = ["Summary", "run_campaign"]

_SAY_SECONDS = 60.0


@dataclasses.dataclass
class Summary:
    """What a run showed.

    Parameters
    ----------
    seed : int
    seconds : float
    cases, outcomes, bins, counts : Counter
        Cases by kind, by ``"kind: outcome"``, feature bins and figures.
    failures : list of (fields, Verdict)
        As small as they became.
    """

    seed: int
    seconds: float = 0.0
    cases: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    outcomes: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    bins: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    failures: list[tuple[Fields, Verdict]] = dataclasses.field(default_factory=list)

    def add(self, kind: str, verdict: Verdict) -> None:
        """Count a case."""
        self.cases[kind] += 1
        self.outcomes[f"{kind}: {verdict.outcome}"] += 1
        self.bins.update(verdict.bins)
        self.counts.update(verdict.counts)

    @property
    def missing(self) -> list[str]:
        """Feature bins met too few times for a full run."""
        return missing(self.bins, self.cases)

    def lines(self) -> list[str]:
        """The run in words."""
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
    corpus: Path | None = None,
    most_failures: int = 10,
    say: Callable[[str], None] = print,
) -> Summary:
    """Judge cases of a seed in order until the time is up.

    Parameters
    ----------
    seed : int
    seconds : float
        No case begins later; the last may take a while more.
    kinds : tuple of str
    models : Models or None
        None leaves the RTL out.
    corpus : Path or None
        Folder for failing cases.
    most_failures : int
        Failures after which the run ends.
    say : function
        Takes each line of output.
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
        verdict = judge(fields, models)
        summary.add(kind, verdict)
        if verdict.problems:
            say(f"FAILED {kind} {number} of seed {seed}: {'; '.join(verdict.problems)}")
            say(f"  {command(fields)}")
            small, found = shrink(
                fields, verdict, lambda each: judge(each, models), KINDS[kind].smaller
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
