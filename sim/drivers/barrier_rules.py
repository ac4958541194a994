"""Rules of a barrier as a model, and random operations on it."""

import dataclasses

import numpy as np

__all__ = ["BarrierChooser", "BarrierRules"]


@dataclasses.dataclass
class BarrierRules:
    """Model of docs/barrier.md; pending counts are kept as due and arrived totals.

    Parameters
    ----------
    tx_bytes : int
        Largest number of bytes outstanding.
    """

    tx_bytes: int
    expected: int = 0
    due: int = 0
    arrived: int = 0
    asked_bytes: int = 0
    come_bytes: int = 0
    completed: int = 0
    broken: bool = False

    def apply(self, arrive: int, drop: int, expect: int, complete: int) -> None:
        """Apply the operations of one cycle."""
        if self.broken or not arrive + drop + expect + complete:
            return
        arrived = self.arrived + arrive + drop
        asked, come = self.asked_bytes + expect, self.come_bytes + complete
        if arrived > self.due or abs(asked - come) > self.tx_bytes or self.due == 0:
            self.broken = True
            return
        self.expected -= drop
        self.arrived, self.asked_bytes, self.come_bytes = arrived, asked, come
        if arrived == self.due and asked == come:
            self.completed += 1
            self.due, self.arrived = self.expected, 0

    def outputs(self) -> dict[str, int]:
        """Expected registers of the barrier."""
        return {
            "o_phase": self.completed % 2,
            "o_expected": self.expected,
            "o_pending": self.due - self.arrived,
            "o_tx": self.asked_bytes - self.come_bytes,
            "o_error": int(self.broken),
        }


class BarrierChooser:
    """Generator of mostly legal random operations, so that phases complete and errors are rare.

    Parameters
    ----------
    rng : numpy.random.Generator
    arrivals, tx_bytes : int
        As of the barrier.
    reckless : float
        Share of the operations that may be of any kind.
    """

    def __init__(
        self, rng: np.random.Generator, arrivals: int, tx_bytes: int, reckless: float
    ) -> None:
        self._rng = rng
        self._arrivals, self._bytes = arrivals, tx_bytes
        self._reckless = reckless

    def choose(self, rules: BarrierRules) -> dict[str, int]:
        """Operations of one cycle."""
        rng = self._rng
        if rng.random() < self._reckless:
            high = (self._arrivals + 1, self._arrivals + 1, self._bytes + 1, self._bytes + 1)
            values = rng.integers(0, high) * (rng.random(4) < 0.5)
        else:
            left = rules.due - rules.arrived
            owed = rules.asked_bytes - rules.come_bytes
            arrive = int(rng.integers(0, left + 1))
            drop = int(rng.random() < 0.05 and arrive < left and rules.expected > 1)
            expect = int(rng.integers(0, max(self._bytes - abs(owed), 0) // 2 + 1))
            complete = (
                owed if owed > 0 else int(rng.integers(0, (self._bytes + min(owed, 0)) // 2 + 1))
            )
            if owed < 0:
                expect, complete = -owed, 0
            values = np.array([arrive, drop, expect, complete]) * (rng.random(4) < 0.5)
        names = ("arrive", "drop", "expect", "complete")
        return {name: int(value) for name, value in zip(names, values)}
