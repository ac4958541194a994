"""Execution engine of the token-level run: work list, actors, channels and ports.

A channel holds the payloads that its producer has sent and its consumers have not taken. Several
payloads move in one step where the producer has them and every consumer would take them anyway;
this equals moving them one by one, so no channel exceeds its capacity.
"""

from __future__ import annotations

import abc
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from sw.prove.packets import Packets
from sw.prove.pattern import ENDLESS, Pattern
from sw.prove.unrolled_loops import MOST_STEPS, StepLimitError

__all__ = ["Actor", "Channel", "Core", "Machine", "Part", "Port", "Reason", "Consumer", "Tap"]

Reason = tuple[str, "Actor | None"]


class Machine:
    """Work list of one token-level run.

    Parameters
    ----------
    limit : int
        Most steps of the run.
    """

    def __init__(self, limit: int = MOST_STEPS) -> None:
        self._limit = limit
        self._work: deque[Actor | Port] = deque()
        self._listed: set[Actor | Port] = set()
        self.steps = 0
        self.moved = 0

    def wake(self, who: Actor | Port | None) -> None:
        """Put an actor or a port on the work list."""
        if who is not None and who not in self._listed:
            self._listed.add(who)
            self._work.append(who)

    def run(self) -> None:
        """Run until the work list is empty.

        Raises
        ------
        StepLimitError
            If the run exceeds the step limit.
        """
        while self._work:
            who = self._work.popleft()
            self._listed.discard(who)
            self.steps += 1
            if self.steps > self._limit:
                raise StepLimitError("Token-level run", self.steps, self._limit)
            who.advance()


class Part(abc.ABC):
    """A stateful element of the run: an index into its sequence of actions, and a marking."""

    @abc.abstractmethod
    def state(self) -> tuple[int, ...]:
        """Return the index of its next action, which never decreases, followed by its marking."""

    def pattern(self) -> Pattern:
        """Return its sequence of actions."""
        return ENDLESS

    def neighbours(self) -> Iterable[Part]:
        """Parts that it moves or waits for, unless they name it as one of theirs."""
        return ()

    def restart_fault(self) -> str | None:
        """Say why a further iteration of the program would not find it as this one has."""
        return None

    def skip(self, count: int) -> None:
        """Advance the index by `count` and keep the marking."""
        if count:
            raise AssertionError(f"{self} must stay at its place, not move by {count}")


class Actor(Part):
    """A sequential process of the chip.

    Parameters
    ----------
    machine : Machine
    name : str
    """

    #: Whether the chip ends only when this actor has; what the others wait for then is left over.
    ends_launch = False

    def __init__(self, machine: Machine, name: str) -> None:
        self.machine = machine
        self.name = name

    @abc.abstractmethod
    def advance(self) -> None:
        """Move as far as possible now."""

    @abc.abstractmethod
    def reasons(self) -> list[Reason]:
        """Causes of its wait, each with the actor that must move; empty if it has ended."""

    def leftovers(self) -> list[str]:
        """Payloads that remain inside at the end, in words."""
        return []


class Channel(Part):
    """A bounded channel from one producer to all its consumers.

    Parameters
    ----------
    machine : Machine
    name : str
    """

    def __init__(self, machine: Machine, name: str) -> None:
        self._machine = machine
        self.name = name
        self.producer: Actor | None = None
        self.entries = 0  # depth of the buffer at the output, in payloads
        self.written = 0
        self.taps: list[Tap] = []

    def attach(self, consumer: Consumer, room: int) -> None:
        """Add a consumer of every payload, with the room on the path to it."""
        tap = Tap(self, consumer, room - consumer.standing)
        self.taps.append(tap)
        consumer.tap = tap

    def neighbours(self) -> Iterator[Part]:
        yield from (tap.consumer for tap in self.taps)
        if self.producer is not None:
            yield self.producer

    def room(self) -> int:
        """Payloads that could be sent now, including those that would be consumed at once."""
        written = self.written
        least = 1 << 62
        for tap in self.taps:
            free = tap.room - written + tap.taken
            # Payloads are taken in order, so a consumer with a backlog has no demand for new ones.
            if written == tap.taken:
                free += tap.consumer.demand()
            if free < least:
                least = free
        return least

    def push(self, count: int) -> None:
        """Send payloads; there must be room."""
        self.written += count
        self._machine.moved += count
        for tap in self.taps:
            tap.drain()

    def state(self) -> tuple[int, ...]:
        written = self.written
        return (written, *[written - tap.taken for tap in self.taps])

    def skip(self, count: int) -> None:
        self.written += count
        self._machine.moved += count
        for tap in self.taps:
            tap.taken += count

    def undrained(self) -> Reason | None:
        """Why payloads stay in the buffer of its output, if any do."""
        # A buffer before a fork is not part of the run.
        if len(self.taps) == 1:
            (tap,) = self.taps
            if self.written - tap.taken > tap.room - self.entries:
                return f"room in {tap.consumer.name}", tap.consumer.holder()
        return None

    def fullest(self) -> Consumer | None:
        """The first consumer without room, or None."""
        for tap in self.taps:
            if tap.room - self.written + tap.taken <= 0:
                return tap.consumer
        return None

    def no_room(self) -> Reason:
        """Reason why it accepts no more payloads."""
        consumer = self.fullest()
        if consumer is None:
            return f"room in {self.name}", None
        return f"room in {consumer.name}", consumer.holder()


class Tap:
    """Read position of one consumer in a channel."""

    def __init__(self, channel: Channel, consumer: Consumer, room: int) -> None:
        self.channel = channel
        self.consumer = consumer
        self.room = room
        self.taken = 0

    def drain(self) -> bool:
        """Move payloads to the consumer, up to its demand; returns whether any moved."""
        moved = False
        while True:
            there = self.channel.written - self.taken
            if not there:
                return moved
            count = min(there, self.consumer.demand())
            if not count:
                return moved
            self.taken += count
            self.consumer.take(count)
            moved = True


class Consumer(Part):
    """A consumer of a channel.

    Parameters
    ----------
    name : str
    """

    #: Payloads of the buffer before it that it holds itself, until it takes them for good.
    standing = 0

    def __init__(self, name: str) -> None:
        self.name = name
        self.tap: Tap | None = None

    @abc.abstractmethod
    def demand(self) -> int:
        """Return its demand: the payloads it would take now."""

    @abc.abstractmethod
    def take(self, count: int) -> None:
        """Take payloads, at most its demand."""

    @abc.abstractmethod
    def holder(self) -> Actor | None:
        """The actor that keeps it from taking."""

    def neighbours(self) -> Iterator[Part]:
        holder = self.holder()
        if holder is not None:
            yield holder

    def left(self) -> int:
        """Payloads sent but not yet taken."""
        return self.tap.channel.written - self.tap.taken if self.tap else 0


class Core(Actor):
    """An actor that consumes payloads through ports."""

    @abc.abstractmethod
    def want(self, port: Port) -> int:
        """Return its demand at a port: the payloads it would take now."""

    @abc.abstractmethod
    def accept(self, port: Port, count: int) -> None:
        """Take payloads from a port, at most as many as `want` returned."""


class Port(Consumer):
    """Input port of a unit: packet filter, then an elastic buffer.

    Parameters
    ----------
    machine : Machine
    name : str
    core : Core
        The actor that takes from the buffer.
    entries : int
        Depth of the buffer, in payloads.
    packets : Packets or None
        The arriving packets; needed only if ``modulus`` is above 1.
    modulus, index : int
        Packet filter: of every `modulus` packets it takes the one of this index.
    """

    def __init__(
        self,
        machine: Machine,
        name: str,
        core: Core,
        entries: int,
        packets: Packets | None = None,
        modulus: int = 1,
        index: int = 0,
    ) -> None:
        super().__init__(name)
        self._machine = machine
        self.core = core
        self._entries = entries
        self.held = 0
        self._modulus = modulus
        self._index = index
        self._packets = packets
        self._lengths: Sequence[int] = ()
        self._packet = 0
        self._packet_left = 0
        if modulus > 1 and packets is not None:
            self._lengths = packets.lengths.data
            self._packet_left = self._length()

    def _length(self) -> int:
        # The tail has no `last` flag: it begins a packet that never ends.
        return self._lengths[self._packet] if self._packet < len(self._lengths) else 1 << 62

    def _accepts(self) -> bool:
        return self._modulus == 1 or self._packet % self._modulus == self._index

    def demand(self) -> int:
        if self._modulus > 1 and not self._accepts():
            # What stands in front of its core keeps packets of other units from passing.
            return 0 if self.standing and not self.core.want(self) else self._packet_left
        free = self._entries - self.held
        # With payloads in the buffer the core has no demand: it would have taken them.
        if not self.held:
            free += self.core.want(self)
        return free if self._modulus == 1 else min(free, self._packet_left)

    def take(self, count: int) -> None:
        if self._accepts():
            self.held += count
            self._feed()
        if self._modulus > 1:
            self._packet_left -= count
            if not self._packet_left:
                self._packet += 1
                self._packet_left = self._length()

    def _feed(self) -> None:
        while self.held:
            count = min(self.held, self.core.want(self))
            if not count:
                return
            self.held -= count
            self.core.accept(self, count)

    def advance(self) -> None:
        """Feed the core, whose demand has grown, and wake the producer."""
        self._feed()
        if self.tap is not None and self.tap.drain():
            self._machine.wake(self.tap.channel.producer)
        elif self.tap is not None and self.tap.channel.written == self.tap.taken:
            # There is demand for payloads that the producer has not sent yet.
            self._machine.wake(self.tap.channel.producer)

    def state(self) -> tuple[int, ...]:
        return self._packet, self.held, self._packet_left

    def pattern(self) -> Pattern:
        if self._packets is None or self._modulus == 1:
            return ENDLESS
        lengths = self._packets.lengths
        mine = np.arange(len(lengths)) % self._modulus == self._index
        return Pattern(len(lengths), (mine, lengths))

    def skip(self, count: int) -> None:
        self._packet += count

    def restart_fault(self) -> str | None:
        if self._modulus > 1 and self._packet % self._modulus:
            return (
                f"{self.name} ends an iteration after {self._packet} packets, "
                f"of which it takes one in {self._modulus}"
            )
        if self._modulus > 1 and self._packet_left != self._length():
            return f"{self.name} ends an iteration within a packet"
        return None

    def holder(self) -> Actor | None:
        return self.core

    def left(self) -> int:
        return super().left() + self.held

    def source(self) -> Actor | None:
        """The actor that produces the next payload; None if no stream reaches the port."""
        return self.tap.channel.producer if self.tap else None
