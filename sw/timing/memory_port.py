"""Cycles of a TMA engine and its memory: addresses, bursts under way, beats, responses."""

from __future__ import annotations

from collections import deque

from sw.timing.box_rows import Row
from sw.timing.flow import Run

__all__ = ["LoadSide", "StoreSide"]

#: Cycles from a command to the box reader: queue of the arbiter (`hw.tma.arbiter`).
QUEUE = 2
#: Cycles of the box reader besides those of the address (`hw.tma.box_reader`).
_READER = 2
#: Cycles from a box that is read to its first burst on AR: box walker 2, burst buffer, AR register
#: (`hw.tma.box_walker`, `hw.lib.stream.ElasticBuffer`, `hw.lib.bursts.issue_reads`).
_WALK = 4
#: Cycles from a beat on R to its vector at the output: landing buffer 2, output 1 (`hw.tma.load`).
_LAND = 3
#: Cycles from the arrival of a vector to its beat on W: input and output buffer (`hw.tma.store`).
_WRITE = 2
#: Cycles from the response of a box's last burst to its report (`hw.tma.store`).
_REPORT = 1


class _Side:
    """Boxes of one side of a TMA engine, in the order of their service.

    Parameters
    ----------
    latency : int
        Cycles from an address on AR to its first beat, and from the last beat of a write to its
        response.
    outstanding : int
        Most bursts under way.
    """

    def __init__(self, latency: int, outstanding: int) -> None:
        self.latency = max(1, latency)
        self._reader = 0.0  # the box reader is free
        self._walker = 0.0  # the box walker is free
        self._under_way: deque[float] = deque(maxlen=outstanding)  # ends of the last bursts

    def _begins(self, command: float, address_cycles: int) -> float:
        """First cycle of the rows of a box whose command is issued in a cycle."""
        read = max(command + QUEUE, self._reader) + address_cycles + _READER
        begins = max(read, self._walker)
        self._reader = begins
        return begins

    @property
    def free(self) -> float:
        """Cycle from which the next box can be read."""
        return self._reader

    def _oldest(self) -> float:
        """Cycle after which one burst more may begin."""
        full = len(self._under_way) == self._under_way.maxlen
        return self._under_way[0] + 1 if full else 0.0

    def shift(self, cycles: float) -> None:
        """Move everything to so many cycles later."""
        self._reader += cycles
        self._walker += cycles
        self._under_way = deque((at + cycles for at in self._under_way), self._under_way.maxlen)


class LoadSide(_Side):
    """Loads: bursts on AR reserve their beats in the landing buffer, and come in order.

    Parameters
    ----------
    latency, outstanding : int
    landing : int
        Beats of the landing buffer.
    """

    def __init__(self, latency: int, outstanding: int, landing: int) -> None:
        super().__init__(latency, outstanding)
        self._landing = landing
        self._address = self._data = self._out = 0.0
        self._used: deque[tuple[int, Run]] = deque()  # beats before, and when beats leave
        self._asked = 0  # beats

    def box(self, command: float, address_cycles: int, rows: tuple[Row, ...], width: int) -> Run:
        """Cycles of the vectors of a box at the output, if nothing holds them up."""
        begins = self._begins(command, address_cycles)
        out, data, address = self._out, self._data, self._address
        first_out = None
        for number, row in enumerate(rows):
            first_beat = last_beat = 0.0
            for beats in row.bursts:
                self._asked += beats
                address = max(
                    address + 1,
                    begins + number + _WALK,
                    self._oldest(),
                    self._room(self._asked - self._landing),
                )
                came = max(address + self.latency, data + 1)
                data = came + beats - 1
                first_beat = first_beat or came
                last_beat = data
                self._under_way.append(data)
            start = max(out + 1, first_beat + _LAND)
            out = max(start + row.cycles - 1, last_beat + _LAND)
            if first_out is None:
                first_out = start + row.cycles - width
            if row.bursts:
                count = sum(row.bursts)
                self._used.append((self._asked - count, Run(start, out, count)))
        self._walker = max(begins + len(rows), address - _WALK + 1)
        self._out, self._data, self._address = out, data, address
        return Run(first_out or out, out, len(rows) * width)

    def _room(self, beat: int) -> float:
        """Cycle after which the landing buffer has the place of a beat."""
        used = self._used
        if beat <= 0 or not used:
            return 0.0
        while len(used) > 1 and used[1][0] < beat:
            used.popleft()
        before, run = used[0]
        return run.at(min(beat - before, run.size) - 1) + 1

    def ends(self) -> float:
        """Cycle after the last vector."""
        return self._out + 1

    def held_up(self, until: float) -> None:
        """The last vector sent leaves in a cycle, perhaps later than it could."""
        late = until - self._out
        if late > 0:
            self._out = until

    def shift(self, cycles: float) -> None:
        super().shift(cycles)
        self._address += cycles
        self._data += cycles
        self._out += cycles
        self._used = deque((before, run.later(cycles)) for before, run in self._used)


class StoreSide(_Side):
    """Stores: an address leaves with its first beat, while there are not too many unanswered.

    Parameters
    ----------
    latency, outstanding : int
    """

    def __init__(self, latency: int, outstanding: int) -> None:
        super().__init__(latency, outstanding)
        self._begun = self._beat = self._answer = 0.0
        self._rows: tuple[Row, ...] = ()
        self._width = 1
        self._row = 0
        self._moved = 0  # vectors of the row

    def box(self, command: float, address_cycles: int, rows: tuple[Row, ...], width: int) -> None:
        """Begin a box."""
        self._begun = self._begins(command, address_cycles) + _WALK
        self._rows, self._width = rows, width
        self._row = self._moved = 0

    def take(self, came: Run) -> Run:
        """Cycles in which vectors of the box that arrive in these leave the input."""
        first, done = None, 0
        while done < came.size:
            row = self._rows[self._row]
            count = min(came.size - done, self._width - self._moved)
            arrives = came.at(done) + 1, came.at(done + count - 1) + 1
            begin = max(self._beat + 1, arrives[0])
            if not self._moved:
                begin = max(begin, self._begun + self._row)
                if row.bursts:
                    begin = max(begin, self._oldest())
                begin += row.cycles - self._width
            self._beat = max(begin + count - 1, arrives[1])
            first = begin if first is None else first
            done += count
            self._moved += count
            if self._moved == self._width:
                self._end_row(row)
        return Run(first or came.first, self._beat, came.size)

    def _end_row(self, row: Row) -> None:
        for _ in row.bursts:
            self._answer = max(self._answer + 1, self._beat + _WRITE - 1 + self.latency)
            self._under_way.append(self._answer)
        self._row, self._moved = self._row + 1, 0
        if self._row == len(self._rows):
            self._walker = self._beat - 3  # rows are computed ahead

    def ends(self) -> float:
        """Cycle in which the last box is reported."""
        return max(self._answer, self._beat) + _REPORT

    def shift(self, cycles: float) -> None:
        super().shift(cycles)
        self._begun += cycles
        self._beat += cycles
        self._answer += cycles
