"""Times of payloads on their way to one consumer: runs of evenly spaced cycles."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Flow", "Run"]

#: Runs of taken payloads that are kept at least: those of the last payloads of a path's buffers.
_KEPT = 64
#: Cycles between payloads may differ by half of them, and so many more, where they come steadily.
_EVEN = 4


class Run(NamedTuple):
    """Cycles of successive payloads: evenly spaced from ``first`` to ``last``."""

    first: float
    last: float
    size: int

    def at(self, number: int) -> float:
        """Cycle of a payload of the run."""
        if self.size < 2:
            return self.first
        return self.first + (self.last - self.first) * number // (self.size - 1)

    def cut(self, count: int) -> tuple[Run, Run]:
        """The first ``count`` payloads, and the others."""
        before = Run(self.first, self.at(count - 1), count)
        return before, Run(self.at(count), self.last, self.size - count)

    def later(self, cycles: float) -> Run:
        """The run, so many cycles later."""
        return Run(self.first + cycles, self.last + cycles, self.size)


class Flow:
    """Payloads of a channel on their way to one of its consumers.

    Parameters
    ----------
    delay : int
        Cycles from the producer to the consumer.
    back : int
        Cycles from a payload that the consumer takes to the room for one more at the producer.
    capacity : int
        Payloads that the channel takes before the consumer takes the first of them.
    """

    def __init__(self, delay: int, back: int, capacity: int) -> None:
        self.delay, self.back, self.capacity = delay, back, capacity
        self.taken = 0
        self._coming: deque[Run] = deque()
        #: Runs of taken payloads, and how many payloads there were up to each one's end.
        self._done: list[Run] = []
        self._ends: list[int] = []

    def send(self, run: Run) -> None:
        """Payloads are on their way, and arrive in these cycles."""
        self._coming.append(run)

    def arrived(self, count: int) -> Run:
        """Cycles in which the next payloads arrive, which are on their way no longer."""
        run = self._coming.popleft()
        if run.size == count:
            return run
        first, last, left = run.first, 0.0, count
        while True:
            if run.size > left:
                run, rest = run.cut(left)
                self._coming.appendleft(rest)
            left -= run.size
            last = max(last, run.last + left)
            if not left:
                return Run(first, last, count)
            run = self._coming.popleft()

    def next_arrival(self) -> float:
        """Cycle in which the next payload arrives; 0 if none is on its way."""
        return self._coming[0].first if self._coming else 0.0

    def steady(self) -> int:
        """Number of the next payloads that come without a pause."""
        count, interval, last = 0, -1.0, 0.0
        for run in self._coming:
            within = (run.last - run.first) / (run.size - 1) if run.size > 1 else -1.0
            for each in (run.first - last if count else -1.0, within):
                if each >= 0 and interval >= 0 and abs(each - interval) > interval / 2 + _EVEN:
                    return count
                interval = max(interval, each)
            count, last = count + run.size, run.last
        return count

    def arrivals(self, count: int) -> tuple[float, float]:
        """Cycles in which the first and the last of the next payloads arrive."""
        first, last, left = self.next_arrival(), 0.0, count
        for run in self._coming:
            last = max(last, run.at(min(left, run.size) - 1))
            left -= run.size
            if left <= 0:
                break
        return first, last

    def take(self, run: Run) -> None:
        """The consumer takes the next payloads."""
        self.taken += run.size
        ends = self._ends
        ends.append(ends[-1] + run.size if ends else run.size)
        self._done.append(run)
        if len(ends) > 2 * _KEPT:
            del ends[:_KEPT], self._done[:_KEPT]

    def took(self, number: int, ready: Callable[[int], float]) -> float:
        """Cycle in which a payload was taken, as far as known.

        Parameters
        ----------
        number : int
            The payload; below 0 there is none.
        ready : function
            Cycle in which the consumer can take one of the next payloads, given its number.
        """
        before = self.taken - number
        if number < 0:
            return 0.0
        if before <= 0:
            return ready(-before)
        ends = self._ends
        if not ends:
            return 0.0
        # Payloads that were skipped count as those of the last runs.
        end = ends[-1] - before
        place = bisect_right(ends, end)
        first, last, size = self._done[place]
        left = ends[place] - end
        if left > size:
            return 0.0
        # As `Run.at`, which is called too often.
        return first if size < 2 else first + (last - first) * (size - left) // (size - 1)

    def shift(self, cycles: float) -> None:
        """Move every payload to so many cycles later."""
        self._coming = deque(run.later(cycles) for run in self._coming)
        self._done = [run.later(cycles) for run in self._done]
