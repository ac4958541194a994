"""Actors of AGCUs: box streams, the server that they share, token counters, completion tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from hw.arch.limits import MAX_CREDITS
from sw.prove.machine import Actor, Channel, Consumer, Core, Machine, Part, Port, Reason
from sw.prove.pattern import Pattern

__all__ = ["BoxServer", "BoxStream", "IndexVectors", "StoredTokens", "TokenCount"]

Ints = npt.NDArray[np.int64]


class TokenCount(Consumer):
    """Token counter at a token port of an AGCU.

    Parameters
    ----------
    machine : Machine
    name : str
    credits : int
        Initial tokens.
    """

    def __init__(self, machine: Machine, name: str, credits: int) -> None:
        super().__init__(name)
        self._machine = machine
        self._credits = credits
        self.count = credits
        self.waiting: BoxServer | None = None

    def demand(self) -> int:
        return MAX_CREDITS - self.count

    def take(self, count: int) -> None:
        self.count += count
        self._machine.wake(self.waiting)

    def spend(self, count: int) -> None:
        """Consume tokens; there must be enough."""
        self.count -= count
        if self.tap is not None and self.tap.drain():
            self._machine.wake(self.tap.channel.producer)

    def restart_fault(self) -> str | None:
        if self.count != self._credits:
            return (
                f"{self.name} ends an iteration with {self.count} tokens, "
                f"not with its {self._credits} credits"
            )
        return None

    def state(self) -> tuple[int, ...]:
        return 0, self.count

    def holder(self) -> Actor | None:
        return self.waiting

    def source(self) -> Actor | None:
        """The actor that produces the next token."""
        return self.tap.channel.producer if self.tap else None


class IndexVectors(TokenCount):
    """Index stream of an AGCU: vectors that have arrived, of which boxes take indices.

    One vector waits besides that in use. A vector of indices is in use from the box that takes its
    first index on.

    Parameters
    ----------
    machine : Machine
    name : str
    vectors : int
        Vectors that all boxes take.
    """

    def __init__(self, machine: Machine, name: str, vectors: int) -> None:
        super().__init__(machine, name, 0)
        self._vectors = vectors
        self._taken = 0

    def demand(self) -> int:
        return min(1 - self.count, self._vectors - self._taken)

    def take(self, count: int) -> None:
        self._taken += count
        super().take(count)

    def restart_fault(self) -> str | None:
        return None  # what is left over is a fault in any case

    def state(self) -> tuple[int, ...]:
        return self._taken, self.count

    def pattern(self) -> Pattern:
        return Pattern(self._vectors)

    def skip(self, count: int) -> None:
        self._taken += count


#: What a box takes: token counters or index streams, and how many of each.
Waits = Sequence[tuple[TokenCount, int]]


class BoxStream(Part):
    """The boxes of one stream, in order, each with its vectors and its token condition.

    Parameters
    ----------
    name : str
    sizes : array
        Vectors of each box.
    kinds : array
        Kind of each box, by which it has the same waits as others.
    waits : sequence of Waits
        What each box of a kind consumes.
    """

    def __init__(self, name: str, sizes: Ints, kinds: Ints, waits: Sequence[Waits]) -> None:
        self.name = name
        self.boxes = len(sizes)
        self._sizes = sizes
        self._kinds = kinds
        self._waits = waits
        self.moved = 0  # boxes
        self.channel: Channel | None = None  # of a load
        self.port: Port | None = None  # of a store
        self.stored: StoredTokens | None = None

    @property
    def done(self) -> bool:
        """Whether all boxes have been moved."""
        return self.moved == self.boxes

    @property
    def vectors(self) -> int:
        """Vectors of the next box, which must be left."""
        return int(self._sizes[self.moved])

    @property
    def waits(self) -> Waits:
        """Tokens of the next box; none if none is left."""
        return () if self.done else self._waits[int(self._kinds[self.moved])]

    @property
    def counters(self) -> list[TokenCount]:
        """Token counters of all boxes."""
        return [count for waits in self._waits for count, _ in waits]

    def state(self) -> tuple[int, ...]:
        return (self.moved,)

    def pattern(self) -> Pattern:
        return Pattern(self.boxes, (self._sizes, self._kinds))

    def skip(self, count: int) -> None:
        self.moved += count

    def ready(self) -> bool:
        """Whether a box is left and its tokens have arrived."""
        return not self.done and all(port.count >= tokens for port, tokens in self.waits)


class BoxServer(Core):
    """Server of AGCU streams that share a port: one whole box at a time.

    Between boxes it takes the first stream in the list that has a box left. While that one waits
    for tokens, another stream is served only by `give_way`: see docs/liveness.md.

    Parameters
    ----------
    machine : Machine
    streams : sequence of BoxStream
        The preferred one first.
    in_turn : bool
        Whether the streams alternate box by box, in the order of the list.
    """

    ends_launch = True

    def __init__(
        self, machine: Machine, streams: Sequence[BoxStream], *, in_turn: bool = False
    ) -> None:
        super().__init__(machine, " and ".join(stream.name for stream in streams))
        self.streams = list(streams)
        self._numbers = {stream: number for number, stream in enumerate(streams)}
        self._in_turn = in_turn
        self._box: BoxStream | None = None
        self._left = 0

    def _begin(self, stream: BoxStream) -> None:
        for port, tokens in stream.waits:
            port.spend(tokens)
        self._box, self._left = stream, stream.vectors
        if stream.port is not None:
            self.machine.wake(stream.port)

    def _next(self) -> bool:
        """Begin the next box if possible; returns whether a box is in progress."""
        if self._box is None:
            for stream in self.streams:
                if stream.ready():
                    self._begin(stream)
                    if self._in_turn:
                        self.streams.remove(stream)
                        self.streams.append(stream)
                    break
                if not stream.done:
                    break
        return self._box is not None

    def give_way(self) -> bool:
        """Begin a box of any stream that is ready; returns whether there was one."""
        if self._box is None:
            for stream in self.streams:
                if stream.ready():
                    self._begin(stream)
                    self.machine.wake(self)
                    return True
        return False

    def _move(self, count: int) -> None:
        self._left -= count
        stream = self._box
        if not self._left and stream is not None:
            stream.moved += 1
            self._box = None
            if stream.stored is not None:
                stream.stored.add()

    def advance(self) -> None:
        while self.step():
            pass

    def step(self) -> bool:
        """Send what it can of one box now; returns whether it sent anything."""
        if not self._next() or self._box is None:
            return False
        channel = self._box.channel
        if channel is None:
            return False  # a store: its port moves it
        count = min(self._left, channel.room())
        if count <= 0:
            return False
        channel.push(count)
        self._move(count)
        return True

    def neighbours(self) -> Iterator[Part]:
        for stream in self.streams:
            yield stream
            yield from stream.counters
            if stream.stored is not None:
                yield stream.stored

    def state(self) -> tuple[int, ...]:
        box = -1 if self._box is None else self._numbers[self._box]
        return (0, box, self._left, *[self._numbers[stream] for stream in self.streams])

    def restart_fault(self) -> str | None:
        boxes = [stream.boxes for stream in self.streams]
        if self._in_turn and len(set(boxes)) > 1:
            return f"{self.name} take turns, so an iteration must have as many boxes of each"
        return None

    def want(self, port: Port) -> int:
        if not self._next() or self._box is None or self._box.port is not port:
            return 0
        return self._left

    def accept(self, port: Port, count: int) -> None:
        self._move(count)
        if self._box is None:
            self.machine.wake(self)

    def reasons(self) -> list[Reason]:
        box = self._box
        if box is not None:
            if box.channel is not None:
                return [box.channel.no_room()]
            if box.port is not None and box.port.tap is not None:
                return [(f"a vector from {box.port.tap.channel.name}", box.port.source())]
            return [("a vector, but no stream reaches it", None)]
        found: list[Reason] = []
        for stream in self.streams:
            for port, tokens in stream.waits:
                if port.count < tokens:
                    giver = port.tap.channel.name if port.tap else "nothing that sends any"
                    payload = "an index" if isinstance(port, IndexVectors) else "a token"
                    found.append((f"{payload} from {giver} at {port.name}", port.source()))
        return found


class StoredTokens(Actor):
    """Source of completion tokens, one per box that is visible in memory.

    Parameters
    ----------
    machine : Machine
    name : str
    channel : Channel
    """

    def __init__(self, machine: Machine, name: str, channel: Channel) -> None:
        super().__init__(machine, name)
        self._channel = channel
        self.pending = 0
        self.most = 0

    def add(self) -> None:
        """Count one more stored box."""
        self.pending += 1
        self.most = max(self.most, self.pending)
        self.advance()

    def advance(self) -> None:
        while self.pending and self._channel.room() > 0:
            self._channel.push(1)
            self.pending -= 1
            self.most = max(self.most, self.pending)

    def state(self) -> tuple[int, ...]:
        return 0, self.pending, self.most

    def reasons(self) -> list[Reason]:
        return [self._channel.no_room()] if self.pending else []
