"""Actors of switches: merges in a fixed rotation, and ends at which nothing is taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from sw.prove.machine import Actor, Channel, Consumer, Machine, Part, Reason
from sw.prove.pattern import ENDLESS, Pattern

__all__ = ["ClosedEnd", "Merge", "MergeConsumer"]

Ints = npt.NDArray[np.int64]


class Merge(Actor):
    """Switch output that takes whole packets of its sources in a fixed rotation.

    Parameters
    ----------
    machine : Machine
    name : str
    channel : Channel
        Its output.
    counts : sequence of int
        Packets per turn.
    """

    def __init__(
        self, machine: Machine, name: str, channel: Channel, counts: Sequence[int]
    ) -> None:
        super().__init__(machine, name)
        self.channel = channel
        self._counts = counts
        self.consumers: list[MergeConsumer] = []
        self.at = 0
        self._passed = 0

    def advance(self) -> None:
        consumer = self.consumers[self.at]
        tap = consumer.tap
        if tap is not None and (tap.drain() or tap.channel.written == tap.taken):
            self.machine.wake(tap.channel.producer)

    def passed(self) -> None:
        """Count one more merged packet."""
        self._passed += 1
        if self._passed == self._counts[self.at]:
            self._passed = 0
            self.at = (self.at + 1) % len(self._counts)
            self.machine.wake(self)

    def neighbours(self) -> Iterator[Part]:
        yield self.channel
        yield from self.consumers

    def state(self) -> tuple[int, ...]:
        return 0, self.at, self._passed

    def restart_fault(self) -> str | None:
        if self.at or self._passed:
            return f"{self.name} ends an iteration within its rotation"
        return None

    def reasons(self) -> list[Reason]:
        consumer = self.consumers[self.at]
        if consumer.tap is None:
            return [(f"a packet for {consumer.name}, which nothing reaches", None)]
        if consumer.left():
            return [self.channel.no_room()]
        return [(f"a packet from {consumer.tap.channel.name}", consumer.tap.channel.producer)]


class MergeConsumer(Consumer):
    """Input of a merge for one source.

    Parameters
    ----------
    name : str
    merge : Merge
    lengths : array or None
        Vectors of each packet; None for tokens, each of which is a packet.
    """

    def __init__(self, name: str, merge: Merge, lengths: Ints | None) -> None:
        super().__init__(name)
        self._merge = merge
        self._pattern = ENDLESS if lengths is None else Pattern(len(lengths), (lengths,))
        self._lengths: Sequence[int] | None = None if lengths is None else lengths.data
        self._packet = 0
        self._left = self._length()

    def _length(self) -> int:
        if self._lengths is None:
            return 1
        # Vectors after the last `last` flag begin a packet that never ends.
        return self._lengths[self._packet] if self._packet < len(self._lengths) else 1 << 62

    def demand(self) -> int:
        if self._merge.consumers[self._merge.at] is not self:
            return 0
        return max(0, min(self._left, self._merge.channel.room()))

    def take(self, count: int) -> None:
        self._left -= count
        if not self._left:
            self._packet += 1
            self._left = self._length()
            self._merge.passed()
        self._merge.channel.push(count)

    def restart_fault(self) -> str | None:
        if self._left != self._length():
            return f"{self.name} ends an iteration within a packet"
        return None

    def state(self) -> tuple[int, ...]:
        return self._packet, self._left

    def pattern(self) -> Pattern:
        return self._pattern

    def skip(self, count: int) -> None:
        self._packet += count

    def holder(self) -> Actor | None:
        return self._merge


class ClosedEnd(Consumer):
    """End of a net where nothing takes payloads: the edge of the chip, or a port that is off."""

    def demand(self) -> int:
        return 0

    def take(self, count: int) -> None:
        raise AssertionError(f"{self.name} must take nothing, not {count}")

    def holder(self) -> Actor | None:
        return None

    def state(self) -> tuple[int, ...]:
        return (0,)
