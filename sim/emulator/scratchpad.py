"""Functional model of a PMU: output of its read engines from the input of its write engines.

A reader of turn t sees all writes of turns up to t to its buffer, because it waits for the writers'
arrivals of that turn. It sees no later write: a writer of turn t + count waits for the readers of
turn t, and the turns in between write other slots. A program in which they write bytes that turn t
reads depends on timing, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.config import ChipConfig
from hw.arch.pmu import EngineProgram, PmuProgram
from sim.emulator.emulator_error import EmulatorError
from sim.emulator.index_offsets import IndexOffsets, index_offsets
from sim.emulator.slots import SlotPattern, bytes_of, slot_pattern, turn_positions
from sw.prove.index_walk import index_walk
from sw.prove.unrolled_loops import address_walk, visits

__all__ = ["Scratchpad"]

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Value of a byte that was never written: a NaN in every format that has one.
_UNWRITTEN = 0xFF


class Scratchpad:
    """Functional model of one PMU.

    Parameters
    ----------
    config : ChipConfig
    program : PmuProgram
    name : str
        Name of the PMU in messages.
    taken : callable
        Function from number of an input and count to its first vectors.

    Attributes
    ----------
    outside : bool
        An index was out of range in what has been read.
    """

    def __init__(
        self,
        config: ChipConfig,
        program: PmuProgram,
        name: str,
        taken: Callable[[int, int], Bytes],
    ) -> None:
        self._width_bits = config.width_bits
        self._capacity = config.pmu.capacity_bytes
        self._program = program
        self._name = name
        self._taken = taken
        self._checked = False
        self.outside = False

    def read(self, port: int) -> Bytes:
        """All vectors that a read engine sends."""
        reader = self._program.readers[port]
        if reader is None:
            raise EmulatorError(f"Read engine of {self._name} must be on, not off: R{port}")
        self._require_apart()
        writers = [
            (number, writer)
            for number in self._program.partners(2 + port)
            if (writer := self._program.writers[number])
        ]
        vectors = None
        if self._program.indexed is None:
            vectors = self._by_pattern(reader, writers)
        if vectors is None:
            vectors = self._by_turn(2 + port, reader, writers)
        vectors = self._with_constants(reader, vectors)
        if (offsets := self._offsets(2 + port)) is not None:
            vectors.reshape(*offsets.outside.shape, -1)[offsets.outside] = 0
        return vectors

    def _offsets(self, number: int) -> IndexOffsets | None:
        """Offsets of an engine's steps, if it takes the index stream."""
        indexed, engine = self._program.indexed, self._program.engines[number]
        if indexed is None or indexed.engine != number or engine is None:
            return None
        walk = index_walk(engine, indexed, self._width_bits)
        lanes = self._width_bits // 8 // engine.element_bytes
        offsets = index_offsets(indexed, walk, self._taken(1, walk.vectors), lanes)
        self.outside |= bool(offsets.outside.any())
        return offsets

    def _places(self, number: int, engine: EngineProgram, turns: Ints) -> Ints:
        """Bytes of the scratchpad at every step of an engine, lane by lane."""
        positions = turn_positions(engine, self._width_bits, turns)
        indexed = self._program.indexed
        if indexed is not None and (offsets := self._offsets(number)) is not None:
            if indexed.elements:  # a step of theirs has one position
                takes = index_walk(engine, indexed, self._width_bits).takes
                positions[takes] = positions[takes, :1]
            positions = positions + offsets.elements
        return bytes_of(positions, engine.element_bytes, self._width_bits) % self._capacity

    def _require_apart(self) -> None:
        """Refuse buffers that share bytes, because their engines are not ordered."""
        if self._checked:
            return
        self._checked = True
        engines = [(n, engine) for n, engine in enumerate(self._program.engines) if engine]
        if len({engine.ring.buffer for _, engine in engines}) < 2:
            return
        used = [np.zeros(self._capacity, np.bool_) for _ in range(2)]
        indexed = self._program.indexed
        for number, engine in engines:
            pattern = slot_pattern(engine, self._width_bits)
            if pattern is not None:
                slots = np.arange(engine.ring.count) * engine.ring.stride
                positions = pattern.positions + slots.reshape(-1, 1, 1, 1)
            else:
                positions = turn_positions(engine, self._width_bits, _step_turns(engine))
            if indexed is not None and indexed.engine == number:
                reach = np.arange(indexed.limit)[:, np.newaxis] << indexed.shift
                positions = np.unique(positions) + reach
            # Addresses wrap around the scratchpad by whole elements.
            elements = np.zeros(self._capacity // engine.element_bytes, np.bool_)
            elements[positions.ravel() % len(elements)] = True
            touched = bytes_of(np.flatnonzero(elements), engine.element_bytes, self._width_bits)
            used[engine.ring.buffer][touched] = True
        if (used[0] & used[1]).any():
            raise EmulatorError(
                f"Buffers of {self._name} must lie apart, for nothing orders their engines",
                where=self._name,
            )

    def _write_turns(self, writer: EngineProgram) -> tuple[Ints, int]:
        """Vectors per turn of a write engine, and their total."""
        passes = visits(writer)
        return passes.vectors, int(passes.vectors.sum())

    def _by_pattern(
        self, reader: EngineProgram, writers: list[tuple[int, EngineProgram]]
    ) -> Bytes | None:
        """Output of a reader if all slots have the same access pattern, otherwise None."""
        size = reader.element_bytes
        ring = reader.ring
        read = slot_pattern(reader, self._width_bits)
        if read is None or not writers:
            return None
        patterns: list[SlotPattern] = []
        for _, writer in writers:
            pattern = slot_pattern(writer, self._width_bits)
            if pattern is None or writer.element_bytes != size or writer.ring.stride != ring.stride:
                return None
            patterns.append(pattern)
        everything = [read.positions, *(pattern.positions for pattern in patterns)]
        low = min(int(positions.min()) for positions in everything)
        high = max(int(positions.max()) for positions in everything) + 1
        if ring.count > 1 and high - low > abs(ring.stride):
            return None

        # Per position of a slot, the index of the turn's element that is written there.
        origin = np.full(high - low, -1)
        columns, base = [], 0
        turns = read.windows * read.slots
        for (number, _), pattern in zip(writers, patterns, strict=True):
            places = pattern.positions.ravel() - low
            if (origin[places] >= 0).any():
                raise EmulatorError(
                    f"Writers of a buffer of {self._name} must not meet in a slot",
                    where=self._name,
                )
            origin[places] = base + np.arange(len(places))
            base += len(places)
            written = pattern.windows * pattern.slots
            if written < turns:
                raise EmulatorError(
                    f"Slots of {self._name} must be filled {turns} times for "
                    f"R{self._program.readers.index(reader)}, not {written}",
                    where=self._name,
                )
            data = self._taken(number, written * pattern.positions.shape[1])
            columns.append(data.reshape(written, -1)[:turns])
        slots = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
        elements = origin[read.positions - low]
        return _gather(slots, elements, read, size)

    def _by_turn(
        self, mine: int, reader: EngineProgram, writers: list[tuple[int, EngineProgram]]
    ) -> Bytes:
        """Output of a reader of any program, turn by turn."""
        count = reader.ring.count
        memory = np.full(self._capacity, _UNWRITTEN, np.uint8)
        read_last = np.full(self._capacity, -count, np.int64)  # last turn that reads a byte
        turns = _step_turns(reader)
        places = self._places(mine, reader, turns)
        # Stable, so that repetitions of a turn keep their order in the output.
        order = np.argsort(turns, kind="stable")
        edges = np.searchsorted(turns[order], np.arange(int(turns.max()) + 2))
        vectors = np.empty((len(turns), self._width_bits // 8), np.uint8)
        sides = []
        for number, writer in writers:
            sizes, total = self._write_turns(writer)
            if len(sizes) < len(edges) - 1:
                raise EmulatorError(
                    f"Slots of {self._name} must be filled {len(edges) - 1} times, "
                    f"not {len(sizes)}",
                    where=self._name,
                )
            written = self._places(number, writer, _step_turns(writer))
            starts = np.append(0, np.cumsum(sizes))
            sides.append((starts, written, self._taken(number, total), self._offsets(number)))
        if not sides:
            raise EmulatorError(
                f"Buffer {reader.ring.buffer} of {self._name} must have a writer", where=self._name
            )
        for turn in range(len(edges) - 1):
            for starts, written, data, offsets in sides:
                part = slice(starts[turn], starts[turn + 1])
                where = written[part].reshape(part.stop - part.start, -1)
                values = data[part]
                if (read_last[where] > turn - count).any():
                    raise EmulatorError(
                        f"Slots of {self._name} must lie apart: turn {turn} writes what an "
                        "earlier turn may still read",
                        where=self._name,
                    )
                if offsets is None:
                    memory[where] = values
                else:
                    _scatter(memory, where, values, offsets.outside[part], offsets.adds[part])
            steps = order[edges[turn] : edges[turn + 1]]
            where = places[steps].reshape(len(steps), -1)
            vectors[steps] = memory[where]
            read_last[where] = turn
        return vectors

    def _with_constants(self, reader: EngineProgram, vectors: Bytes) -> Bytes:
        """Replace vectors by the constant where a loop index is at or above its limit."""
        beyond = reader.beyond
        if beyond is None:
            return vectors
        steps = address_walk(reader)
        size = reader.element_bytes
        element = (beyond.constant & (1 << 8 * size) - 1).to_bytes(size, "little")
        line = np.frombuffer(element * (vectors.shape[1] // size), np.uint8)
        out = vectors.copy()
        out[steps.indices[beyond.loop] >= beyond.limit] = line
        return out


def _scatter(memory: Bytes, where: Ints, values: Bytes, outside: Bools, adds: Bools) -> None:
    """Write elements one after another, or add their int32; those outside are dropped.

    Parameters
    ----------
    memory : array
    where : (steps, bytes) array
        Byte of the memory of each byte of a vector.
    values : (steps, bytes) array
    outside : (steps, lanes) array
    adds : (steps,) array
    """
    steps, lanes = outside.shape
    places, elements = where.reshape(steps, lanes, -1), values.reshape(steps, lanes, -1)
    for step, lane in np.argwhere(~outside):
        at, element = places[step, lane], elements[step, lane]
        if adds[step]:
            element = (memory[at].view(np.uint32) + element.view(np.uint32)).view(np.uint8)
        memory[at] = element


def _step_turns(engine: EngineProgram) -> Ints:
    """Turn number of every step of an engine."""
    passes = visits(engine)
    return np.repeat(passes.turn, passes.vectors)


def _gather(slots: Bytes, elements: Ints, read: SlotPattern, size: int) -> Bytes:
    """Gather elements from each turn, with repeated windows of turns.

    Parameters
    ----------
    slots : (turns, bytes) array
    elements : (repeats, vectors, lanes) array
        Index of each element within its turn; -1 if it was never written.
    read : SlotPattern
    size : int
        Bytes per element.
    """
    repeats, count, lanes = elements.shape
    width = lanes * size
    written = slots.shape[1] // size
    group = _run(elements, written)
    # One index copies a whole group of elements; dtype `V` holds any number of bytes.
    whole = size * group
    kind = np.dtype(f"u{whole}") if whole <= 8 else np.dtype((np.void, whole))
    lines = np.ascontiguousarray(slots).view(kind).reshape(read.windows, -1)
    first = elements.reshape(-1, lanes // group, group)[:, :, 0].reshape(repeats, 1, -1)
    unwritten = first < 0
    first = np.where(unwritten, 0, first) // group
    index = first + np.arange(read.slots).reshape(1, -1, 1) * (written // group)
    taken = np.take(lines, index.ravel(), axis=1)
    if unwritten.any():
        blank = np.frombuffer(bytes([_UNWRITTEN]) * whole, kind)[0]
        holes = np.broadcast_to(unwritten, index.shape).ravel()
        taken[:, holes] = blank
    vectors: Bytes = taken.view(np.uint8).reshape(-1, width)
    return vectors


def _run(elements: Ints, written: int) -> int:
    """Largest power of two of adjacent aligned elements of which all vectors consist."""
    lanes = elements.shape[2]
    group: int = lanes
    while group > 1:
        runs = elements.reshape(-1, group)
        if (
            written % group == 0
            and not (runs[:, 0] % group).any()
            and (runs == runs[:, :1] + np.arange(group)).all()
        ):
            return group
        group //= 2
    return 1
