"""Statistics that a program sends before its last packet of results, sent behind it instead.

A buffer of results that come behind others has these in its slots, too, and no slots of pieces of a
row. Behind them a statistic needs a phase of its own.
"""

from __future__ import annotations

import dataclasses

from hw.arch.lanes.phase_word import PHASES, ResultForm
from sw.lane_codes.lane_code import CodedPhase, LaneCode
from sw.lane_codes.lane_words import Send, keeping
from sw.lane_codes.phase_emission import PlacedPhase

__all__ = ["sent_late"]


def sent_late(code: LaneCode) -> LaneCode | None:
    """The program with such statistics sent at its end; None if it has none, or too many phases.

    A statistic must be kept, and no later phase may change it.
    """
    phases, behind = list(code.phases), []
    last = max((n for n, each in enumerate(phases) if each.source and each.result), default=0)
    for number, each in enumerate(phases[:last]):
        if each.source is not None or each.result is None:
            continue
        kept, later = each.phase.statistic, phases[number + 1 :]
        changed = any(
            other.phase.reduction.changes and other.phase.statistic == kept for other in later
        )
        if not each.phase.reduction.changes or changed:
            continue
        silent = dataclasses.replace(each.phase, result=ResultForm.NONE)
        phases[number] = dataclasses.replace(each, phase=silent, result=None)
        behind.append(_sending(each, code))
    if not behind or len(phases) + len(behind) > PHASES:
        return None
    return dataclasses.replace(code, phases=(*phases, *behind))


def _sending(phase: CodedPhase, code: LaneCode) -> CodedPhase:
    """A phase that sends the statistic that another one has made."""
    assert phase.result is not None
    word = phase.result
    send = Send(word, word, phase.phase.result, code.formats[word])
    placed = PlacedPhase((keeping(word),), (word,), None, send=send)
    placed.statistics = {word: phase.phase.statistic}
    return placed.coded(code.constants)
