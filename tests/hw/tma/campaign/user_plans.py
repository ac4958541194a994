"""What the users of a TMA unit's scratchpads do while commands run, at random, and its sums."""

import dataclasses
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.tma_sizes import TmaSizes
from hw.tma.barriers.barrier_layouts import BarrierOperation
from tests.hw.tma.standalone.native_unit import UserActions

__all__ = ["BarrierSums", "UserPlan", "draw_plan"]

_ARRIVES = (
    BarrierOperation.ARRIVE,
    BarrierOperation.ARRIVE_NO_COMPLETE,
    BarrierOperation.ARRIVE_EXPECT,
    BarrierOperation.DROP,
)
_OPERATIONS = (
    *_ARRIVES,
    BarrierOperation.EXPECT,
    BarrierOperation.COMPLETE,
    BarrierOperation.PENDING_COUNT,
)
#: Most operations, vectors written and vectors read of a user, and bytes of an operation.
_MOST_OPERATIONS, _MOST_VECTORS, _MOST_BYTES = 300, 200, 512
#: Range of a signed count of bytes of a barrier.
_TX_RANGE = 1 << 21


@dataclasses.dataclass(frozen=True)
class UserPlan:
    """Operations at barriers of any scratchpad, and vectors written and read in one's own."""

    operations: Sequence[Mapping[str, Any]]
    written: Sequence[int]
    read: Sequence[int]
    stall: float

    def actions(self, vectors: npt.NDArray[np.uint8]) -> UserActions:
        """The actions, where what is written are the bytes that are there."""
        writes = [(number, vectors[number]) for number in self.written]
        return UserActions(self.operations, writes, self.read, self.stall)


def draw_plan(rng: random.Random, sizes: TmaSizes) -> UserPlan:
    """Draw a plan, whose vectors are in the upper half of the scratchpad."""
    operations = []
    for _ in range(rng.randrange(_MOST_OPERATIONS)):
        drawn = {"operation": rng.choice(_OPERATIONS), "barrier": rng.randrange(sizes.barriers)}
        drawn |= {"arrivals": rng.randint(0, 3), "bytes": rng.randint(0, _MOST_BYTES)}
        if sizes.scratchpads > 1:
            drawn["scratchpad"] = rng.randrange(sizes.scratchpads)
        operations.append(drawn)
    upper = range(sizes.vectors // 2, sizes.vectors)
    written, read = (rng.choices(upper, k=rng.randrange(_MOST_VECTORS)) for _ in range(2))
    return UserPlan(operations, written, read, rng.choice([0.0, 0.5, 0.95]))


class BarrierSums:
    """Sums of every barrier, by scratchpad and number, in which no phase ends by itself.

    Members
    -------
    initial : array of int
        Arrivals of INIT: one more than the plans have.
    """

    def __init__(self, sizes: TmaSizes, plans: Sequence[UserPlan]) -> None:
        shape = (sizes.scratchpads, sizes.barriers)
        self._arrived, self._dropped, self._bytes = (np.zeros(shape, np.int64) for _ in range(3))
        for each in (each for plan in plans for each in plan.operations):
            spot, operation = (each.get("scratchpad", 0), each["barrier"]), each["operation"]
            if operation in _ARRIVES:
                self._arrived[spot] += each["arrivals"]
            if operation is BarrierOperation.DROP:
                self._dropped[spot] += each["arrivals"]
            if operation in (BarrierOperation.EXPECT, BarrierOperation.ARRIVE_EXPECT):
                self._bytes[spot] += each["bytes"]
            if operation is BarrierOperation.COMPLETE:
                self._bytes[spot] -= each["bytes"]
        self.initial = self._arrived + 1

    def complete(self, pad: int, barrier: int, size: int) -> None:
        """Bytes of a load complete at a barrier."""
        self._bytes[pad, barrier] -= size

    def ends(self, pad: int, barrier: int) -> list[dict[str, Any]]:
        """Operations that end the barrier's phase, and look at it before and after."""
        tx = int(self._bytes[pad, barrier])
        balance = BarrierOperation.COMPLETE if tx > 0 else BarrierOperation.EXPECT
        steps: list[dict[str, Any]] = [
            {"operation": BarrierOperation.PENDING_COUNT},
            {"operation": BarrierOperation.ARRIVE_NO_COMPLETE, "arrivals": 0},
            {"operation": balance, "bytes": abs(tx)},
            {"operation": BarrierOperation.ARRIVE, "arrivals": 1},
            {"operation": BarrierOperation.PENDING_COUNT},
        ]
        return [{"barrier": barrier, **each} for each in steps]

    def check(self, pad: int, barrier: int, answers: Sequence[Mapping[str, int]]) -> None:
        """Compare the answers to `ends`: the phase ends with its last operation alone."""
        where = f"barrier {barrier} of scratchpad {pad}: {answers}"
        assert not any(each["error"] or each["flag"] for each in answers), where
        assert [each["phase"] for each in answers] == [0, 0, 0, 0, 1], where
        first, last = answers[0], answers[-1]
        assert first["pending"] == 1, where
        assert first["tx"] == int(self._bytes[pad, barrier]) % _TX_RANGE, where
        assert last["pending"] == self.initial[pad, barrier] - self._dropped[pad, barrier], where
        assert last["tx"] == 0, where
