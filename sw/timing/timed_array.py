"""Cycles of a PCU's array, of its weights and banks, and of the drain of its results."""

from __future__ import annotations

from collections import deque
from typing import Any

from hw.arch.config import ChipConfig
from hw.arch.lanes.softmax_program import SoftmaxRole
from sw.prove.machine import Channel, Machine, Port
from sw.prove.packets import Packets
from sw.prove.pcu_actors import Grid, ResultDrain
from sw.timing.flow import Run
from sw.timing.timed_lanes import FOLLOWING, LANE_DEPTH, PHASE_CHANGE
from sw.timing.timed_machine import Clocked, Producer

__all__ = ["TimedGrid", "TimedResultDrain"]

#: Cycles from the arrival of an activation to its issue (`hw.lib.stream.ElasticBuffer`), and from
#: that of a tile's last weights to their load (the level of `hw.matrix.load_sequencer`).
_INPUT = 1
#: Cycles between tiles that add to the same rows, besides R · L (`hw.matrix.sum_guard`).
_GUARD = 2
#: Cycles from the issue of a vector to the bank that is full with it, besides R · L + C
#: (`hw.matrix.write_back`, `hw.matrix.bank_sequencer`).
_FULL = 3
#: Cycles from a full bank to the first vector of results: read, sums, output buffer
#: (`hw.matrix.drain`).
_DRAIN = 2
#: Cycles that two passes are further apart than two vectors of one: the change of banks
#: (`hw.matrix.bank_sequencer`).
_NEXT = 1


class TimedGrid(Clocked, Grid):
    """Array that takes a vector per cycle, once weights, a bank and the old sums are there.

    The weights of the next tile are loaded behind the wavefront of the last swap
    (`hw.matrix.weight_buffer`).
    """

    def __init__(self, machine: Machine, name: str, config: ChipConfig, tiles: Packets) -> None:
        super().__init__(machine, name, config, tiles)
        self.rows, self.latency = config.grid_rows, config.pcu.cell_latency
        self.by_row = False
        #: Cycle of the first vector that enters; None without any.
        self.first_issue: float | None = None
        self.issued = 0
        #: Tiles of the groups of each pass.
        self.columns: list[int] = []
        self._swapped = float("-inf")
        self._ready = 0.0
        self._starts: deque[float] = deque(maxlen=256)
        self._pass = 0
        self._group = 0  # tiles of the pass under way
        self.drained: deque[float] = deque(maxlen=4)

    @property
    def _drain(self) -> TimedResultDrain:
        drain: Any = self.results
        found: TimedResultDrain = drain
        return found

    def accept(self, port: Port, count: int) -> None:
        timed: Any = port
        came: Run = timed.buffer.arrived(count)
        if port is self.weight:
            timed.buffer.take(self._load(came))
        else:
            timed.buffer.take(self._issue(came))
        super().accept(port, count)

    def _load(self, came: Run) -> Run:
        """Load weights into the shadow registers, once all of a tile have been gathered."""
        opens = self._swapped + 1 + self._wave
        if self._loading + came.size < self._weights():
            first = max(opens, came.first) + 1
            return Run(first, max(came.last + 1, first + came.size - 1), came.size)
        fetch = max(opens, came.last + _INPUT)
        self._ready = fetch + self._weights() + 1
        return Run(fetch + 1 + self._loading, fetch + self._weights(), came.size)

    def ready(self, port: Port) -> float:
        if port is self.weight:
            return 0.0 if self._loaded else self._swapped + 2 + self._wave
        if self._begun:
            return self.free
        if not self._loaded or (self._first_of_pass and self.banks_used == 2):
            return 0.0
        first = max(self.free, self._ready)
        if self._first_of_pass and self._pass >= 2:
            # The first group may enter while its rows are drained; the next vector waits.
            rows = self._rows[self._tile] * self._width()
            first = max(first, self.drained[self._pass - 2 - self._drain.ended] + 1 - rows)
        width = self._width()
        if self._group >= width:
            first = max(first, self._starts[-width] + self.rows * self.latency + _GUARD)
        return first

    def _width(self) -> int:
        """Tiles of the groups of the pass under way."""
        return self.columns[self._pass] if self._pass < len(self.columns) else 1

    @property
    def _wave(self) -> int:
        """Cycles in which the wavefront of a swap passes."""
        return (self.rows - 1) * self.latency + (self._columns if self.by_row else 0)

    def _issue(self, came: Run) -> Run:
        """Let vectors of a tile enter."""
        first = max(self.ready(self.activation), came.first + _INPUT)
        if not self._begun:
            self._starts.append(first)
            self._swapped = first
        run = Run(first, max(first + came.size - 1, came.last + _INPUT), came.size)
        machine: Any = self.machine
        machine.tell(self.name, run, first - max(self.free, self._ready, came.first + _INPUT))
        if self.first_issue is None:
            self.first_issue = first
        self.issued += came.size
        self.free = run.last + 1
        if self._left == came.size:
            self._group += 1
            if self._finals[self._tile]:
                full = run.last + self.rows * self.latency + self._columns + _FULL
                self._drain.full_at.append(full)
                self._pass += 1
                self._group = 0
        return run

    def skip(self, count: int) -> None:
        finals = self._finals[self._tile : self._tile + count]
        self.issued += sum(self._rows[self._tile : self._tile + count])
        self._pass += sum(map(bool, finals))
        super().skip(count)

    def shift(self, cycles: float) -> None:
        super().shift(cycles)
        self._swapped += cycles
        self._ready += cycles
        self._starts = deque((at + cycles for at in self._starts), self._starts.maxlen)
        self.drained = deque((at + cycles for at in self.drained), self.drained.maxlen)


class TimedResultDrain(Producer, ResultDrain):
    """Drain that reads a row per cycle: a vector, or half of one.

    In fused softmax the rows pass through lanes, behind phases of their own at the beginning.
    """

    interval = 1.0  # a vector has a row, or two in a 16-bit format
    #: Cycles from the first maxima, or denominators, to the first vector that leaves the lanes.
    _lead = 0.0
    #: Cycles in the lanes.
    _depth = 0.0
    #: Least cycles of the phase of rows, which has followed another at once.
    _least = 0
    #: Cycle from which on the phase behind the rows may begin.
    _follows = 0.0

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        #: Cycles in which the banks are full whose drain has not begun.
        self.full_at: deque[float] = deque()
        self.ended = 0

    def set_lanes(self, role: SoftmaxRole, row: float) -> None:
        """Tell that rows pass through lanes, each in so many cycles."""
        self.interval, self._depth = 2 * row, LANE_DEPTH
        if role is SoftmaxRole.SCORES:
            self._lead = 2 * (row + PHASE_CHANGE - 1)
            self._least = FOLLOWING
        else:
            self._lead = 3 * row - 2 + 2 * PHASE_CHANGE

    def when(self) -> float:
        return max(self.free, self.full_at[0]) if self.full_at else self.free

    def leaves(self, channel: Channel, count: int) -> Run:
        begins = self._left == self._sizes[self._pass]
        if begins:
            full = self.full_at.popleft()
            if self._depth:
                self.free = max(self.free, full + _DRAIN) + self._lead
                self._follows = self.free - self._depth + 1 + self._least
            else:
                self.free = max(self.free + _NEXT, full + _DRAIN + self.interval - 1)
        return Run(self.free, self.free + (count - 1) * self.interval, count)

    def left(self, channel: Channel, run: Run) -> None:
        self.free = run.last + self.interval
        if self._left == run.size:
            if self._depth:
                # The first phase of the next pass follows the last row at once.
                self.free = max(run.last - self._depth + 1, self._follows)
            grid: Any = self._grid
            grid.drained.append(run.last - self._depth)
            self.ended += 1

    def skip(self, count: int) -> None:
        super().skip(count)
        self.ended += count

    def shift(self, cycles: float) -> None:
        super().shift(cycles)
        self.full_at = deque(at + cycles for at in self.full_at)
