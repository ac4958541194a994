"""Cycles of merges in switches: what arrives passes at once if it is its turn."""

from __future__ import annotations

from typing import Any

from sw.prove.machine import Channel
from sw.prove.merge_actors import Merge, MergeConsumer
from sw.timing.flow import Run
from sw.timing.timed_machine import Producer, TimedConsumer

__all__ = ["TimedMerge", "TimedMergeConsumer"]


class TimedMerge(Producer, Merge):
    """Merge that passes a payload per cycle."""

    passing: Run
    sent: Run

    def leaves(self, channel: Channel, count: int) -> Run:
        first = max(self.free, self.passing.first)
        return Run(first, max(first + count - 1, self.passing.last), count)

    def left(self, channel: Channel, run: Run) -> None:
        self.sent = run
        self.free = run.last + 1


class TimedMergeConsumer(TimedConsumer, MergeConsumer):
    """Input of a merge whose payloads have cycles."""

    def ready(self, ahead: int) -> float:
        merge: Any = self._merge
        if merge.consumers[merge.at] is not self:
            return 0.0
        return float(max(merge.free + ahead, merge.channel.opens(ahead)))

    def take(self, count: int) -> None:
        merge: Any = self._merge
        merge.passing = self.flow.arrived(count)
        super().take(count)
        self.flow.take(merge.sent)
