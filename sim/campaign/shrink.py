"""Greedy reduction of failing cases that fail in the same way."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from sim.campaign.case import Fields, Verdict

__all__ = ["shrink", "way"]

#: Most judgements and seconds that one failure of a campaign is worth.
_MOST_TRIES, _MOST_SECONDS = 120, 120.0


def way(verdict: Verdict) -> str:
    """Class of a failure: the words of its first problem, without numbers and details."""
    return re.split(r"[:(\d]", verdict.problems[0])[0].strip() if verdict.problems else ""


def shrink(
    fields: Fields,
    verdict: Verdict,
    judge: Callable[[Fields], Verdict],
    smaller: Callable[[Fields], Iterator[dict[str, Any]]],
    *,
    tries: int = _MOST_TRIES,
    seconds: float = _MOST_SECONDS,
) -> tuple[dict[str, Any], Verdict]:
    """Reduce a failing case; returns the simplest one with the same class, and its verdict.

    Parameters
    ----------
    fields : mapping
        A failing case.
    verdict : Verdict
    judge : function
        Function from fields to a verdict.
    smaller : function
        Function to simpler fields, the greatest simplification first.
    tries : int
        Most judgements.
    seconds : float
        Time after which none begins.
    """
    best, found = dict(fields), verdict
    wanted = way(verdict)
    began, judged = time.monotonic(), 0
    while True:
        for candidate in smaller(best):
            judged += 1
            if judged > tries or time.monotonic() - began > seconds:
                return best, found
            answer = judge(candidate)
            if answer.problems and way(answer) == wanted:
                best, found = candidate, answer
                break
        else:
            return best, found
