"""Rules of a barrier of a bank as a model, and random operations on a bank."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from hw.arch.error_codes import BarrierError
from hw.tma.barriers.barrier_layouts import BarrierOperation

__all__ = ["BankBarrier", "random_operation"]

_KNOWN = [each.value for each in BarrierOperation]


@dataclasses.dataclass
class BankBarrier:
    """Model of docs/barrier.md; pending counts are kept as due and arrived totals.

    Parameters
    ----------
    tx_bytes : int
        Largest number of bytes outstanding.
    """

    tx_bytes: int
    valid: bool = False
    flag: bool = False
    completed: int = 0
    expected: int = 0
    due: int = 0
    arrived: int = 0
    owed: int = 0

    def state(self) -> dict[str, int]:
        """What an answer has, but for its error."""
        state = {
            "phase": self.completed % 2,
            "pending": self.due - self.arrived,
            "expected": self.expected,
            "tx": self.owed,
            "flag": int(self.flag),
        }
        return state if self.valid else dict.fromkeys(state, 0)

    def apply(self, values: dict[str, int]) -> BarrierError:
        """Apply an operation; the flag of a barrier in use rises if it is refused."""
        error = self._tried(**values)
        self.flag |= self.valid and error is not BarrierError.NONE
        return error

    def _tried(
        self, operation: int, barrier: int, arrivals: int, bytes: int, failed: int
    ) -> BarrierError:
        if operation not in _KNOWN:
            return BarrierError.OPERATION
        kind = BarrierOperation(operation)
        if kind is BarrierOperation.INIT:
            if arrivals == 0:
                return BarrierError.EXPECTED
            vars(self).update(
                vars(BankBarrier(self.tx_bytes, valid=True, expected=arrivals, due=arrivals))
            )
            return BarrierError.NONE
        if not self.valid:
            return BarrierError.UNINITIALISED
        if kind is BarrierOperation.INVALIDATE:
            self.valid = False
        drops = arrivals if kind is BarrierOperation.DROP else 0
        coming = arrivals if kind.name.startswith("ARRIVE") else drops
        more = bytes if kind.name.endswith("EXPECT") else 0
        less = bytes if kind is BarrierOperation.COMPLETE else 0
        arrived, owed = self.arrived + coming, self.owed + more - less
        if self.due == 0 and coming + more + less:
            return BarrierError.RETIRED
        if arrived > self.due:
            return BarrierError.ARRIVALS
        if abs(owed) > self.tx_bytes:
            return BarrierError.TX
        complete = bool(coming + more + less) and arrived == self.due and owed == 0
        if complete and kind is BarrierOperation.ARRIVE_NO_COMPLETE:
            return BarrierError.COMPLETES
        self.expected -= drops
        self.arrived, self.owed = arrived, owed
        self.flag |= kind is BarrierOperation.COMPLETE and bool(failed)
        if complete:
            self.completed += 1
            self.due, self.arrived = self.expected, 0
        return BarrierError.NONE


def random_operation(
    rng: np.random.Generator, barriers: Sequence[BankBarrier], most: int, reckless: float
) -> dict[str, int]:
    """A random operation; unless reckless, mostly one that its barrier accepts.

    Parameters
    ----------
    rng : numpy.random.Generator
    barriers : sequence of BankBarrier
        Every barrier of the bank.
    most : int
        Most arrivals of a phase.
    reckless : float
        Share of the operations that may be of any kind.
    """
    barrier = int(rng.integers(len(barriers)))
    at = barriers[barrier]
    values = {"barrier": barrier, "failed": int(rng.random() < 0.01)}
    if rng.random() < reckless:
        names = {"operation": 16, "arrivals": most + 1, "bytes": 1 << at.tx_bytes.bit_length()}
        anything = {name: int(rng.integers(high)) for name, high in names.items()}
        return values | anything | {"barrier": int(rng.integers(len(barriers) + 3))}
    if not at.valid or at.due == 0:
        kind, arrivals, size = BarrierOperation.INIT, int(rng.integers(1, most + 1)), 0
    else:
        kind = BarrierOperation(int(rng.integers(2, len(_KNOWN))))
        arrivals = int(rng.integers(0, at.due - at.arrived + 1))
        size = int(rng.integers(0, (at.tx_bytes - abs(at.owed)) // 2 + 1))
        settles = at.owed < 0 if kind.name.endswith("EXPECT") else at.owed > 0
        size = abs(at.owed) if settles else size
    return values | {"operation": kind.value, "arrivals": arrivals, "bytes": size}
