"""The matrix unit round an output-stationary array."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring

from hw.array.dataflow import ArrayConfig
from hw.array.output_stationary import OutputArray
from hw.emit.shared import shared
from hw.lib.stream import ElasticBuffer
from hw.matrix.base import Doing, UnitBase
from hw.matrix.config import UnitConfig
from hw.matrix.partial_sums import ResultQueue

__all__ = ["DrainSequencer", "OutputUnit", "step_layout"]


def step_layout(config: ArrayConfig) -> data.StructLayout:
    """Layout of a vector of activations; the last step of a tile has ``finish``."""
    return data.StructLayout({"data": config.lane_bits * config.rows, "finish": 1})


class DrainSequencer:
    """Logic that says when the sums of a finished tile leave the array.

    A row of results has its place R + L + 1 cycles before it leaves, so nothing stops it on its
    way. The L rows of one lane follow one another without a pause. A row of cells moves its drain
    until its own sums and those from above have left; then the drain keeps still for the next
    tile, whose sums come, at the earliest, as the last L of the former leave. So a tile may be
    closed once the former has all its places.

    Parameters
    ----------
    rows, latency : int
        Of the array.

    Attributes
    ----------
    closes, free : Signal
        The last vector of a tile enters the array; it may.
    room, take : Signal
        There are L places for rows of results; one is taken.
    shifts, shift, last : Signal
        Rows of the array whose drains move on at column 0, the highest first; a row of results
        leaves; it is the last of its tile.
    left, part, line : Signal
        Places still to take; those taken of a lane; the rows that will leave, the next one last.
    emptied, left_part : Signal
        Rows of the array that have nothing more to move, and rows of results that left of a lane.
    """

    def __init__(self, *, rows: int, latency: int) -> None:
        self._rows, self._latency = rows, latency
        self.closes, self.free = Signal(), Signal()
        self.room, self.take = Signal(), Signal()
        self.shifts, self.shift, self.last = Signal(rows), Signal(), Signal()
        self.left = Signal(range(rows * latency + 1))
        self.line = Signal(rows + latency + 1)
        self.emptied = Signal(rows - 1)
        self.part, self.left_part = Signal(range(latency)), Signal(range(latency))

    def add_to(self, m: Module) -> None:
        """Add the logic to a module."""
        left, part, left_part, emptied = self.left, self.part, self.left_part, self.emptied
        lane_left = left_part == self._latency - 1
        m.d.comb += [
            self.take.eq((left != 0) & (self.room | (part != 0))),
            self.free.eq((left == 0) | ((left == 1) & self.take)),
            self.shift.eq(self.line[-1]),
            self.shifts.eq(Cat(~emptied & self.shift.replicate(len(emptied)), self.shift)),
            # They empty from the top, and the lowest with the tile's last row.
            self.last.eq(lane_left & (emptied[-1] if len(emptied) else Const(1))),
        ]
        m.d.sync += self.line.eq(Cat(self.take, self.line)[: len(self.line)])
        with m.If(self.take):
            m.d.sync += part.eq(Mux(part == self._latency - 1, 0, part + 1))
        with m.If(self.closes):
            m.d.sync += left.eq(self._rows * self._latency)
        with m.Elif(self.take):
            m.d.sync += left.eq(left - 1)
        with m.If(self.shift):
            m.d.sync += left_part.eq(Mux(lane_left, 0, left_part + 1))
            with m.If(lane_left):
                m.d.sync += emptied.eq(Mux(self.last, 0, Cat(1, emptied)))


class OutputUnit(UnitBase):
    """A matrix unit whose array keeps the sums: array, queue of results, activation.

    A tile is R·L × C sums; row i·L + j of it is the sum j of lane i. A step is one element of the
    inner extent, or two bytes: one weight vector and L activation vectors, vector j with the
    elements of the rows i·L + j. It takes L cycles; where an activation vector comes late the step
    waits for its turn, every L cycles. After the step with ``finish`` (all its
    vectors have the mark) the sums leave as a packet of R·L rows while the next tile is summed;
    the last vector of that tile waits until they are all on their way, for R·L cycles at most if
    results are taken.

    Parameters
    ----------
    config : UnitConfig

    Members
    -------
    i_activation, i_weight : streams
        `step_layout`; vectors of C lanes.
    Others are those of :class:`hw.matrix.base.UnitBase`.
    """

    def __init__(self, config: UnitConfig) -> None:
        array = config.array
        super().__init__(
            config,
            activations=step_layout(array),
            weights=array.lane_bits * array.columns,
        )

    def _add_array(self, m: Module, queue: ResultQueue) -> Doing:
        config = self._config.array
        latency = config.latency
        array = OutputArray(config)
        m.submodules.array = shared(array)
        m.submodules.port = port = ElasticBuffer(step_layout(config))
        m.submodules.weights = weights = ElasticBuffer(config.lane_bits * config.columns)
        wiring.connect(m, wiring.flipped(self.i_activation), port.i_stream)
        wiring.connect(m, wiring.flipped(self.i_weight), weights.i_stream)
        vector, weight = port.o_stream, weights.o_stream

        # The L sums of a cell take turns; a vector must come when its sum is at the adder. The
        # first of a tile has no sum yet, so it sets the turns.
        turn = Signal(range(latency))
        expected = Signal(range(latency))
        last_of_step = expected == latency - 1
        first = Signal(init=1)
        drain = DrainSequencer(rows=config.rows, latency=latency)
        drain.add_to(m)
        finish = vector.payload.finish
        mine = (turn == expected) | (first & (expected == 0))
        closing = finish & last_of_step
        drain_free = ~closing | drain.free
        issue = Signal()
        m.d.comb += [
            issue.eq(vector.valid & weight.valid & mine & drain_free),
            vector.ready.eq(issue),
            weight.ready.eq(issue & last_of_step),
            array.a_mode.eq(self.activation_mode),
            array.b_mode.eq(self.weight_mode),
            # +0 changes no sum but -0, whose sign nobody sees.
            array.i_a.eq(Mux(issue, vector.payload.data, 0)),
            array.i_b.eq(Mux(issue, weight.payload, 0)),
            array.i_first.eq(issue & first),
            array.i_finish.eq(issue & closing),
        ]
        after = Mux(last_of_step, 0, expected + 1)
        m.d.sync += turn.eq(Mux(issue, after, Mux(turn == latency - 1, 0, turn + 1)))
        with m.If(issue):
            m.d.sync += expected.eq(after)
            with m.If(last_of_step):
                m.d.sync += first.eq(finish)

        m.d.comb += [
            drain.closes.eq(issue & closing),
            drain.room.eq(queue.o_room),
            queue.i_take.eq(drain.take),
            queue.i_write.eq(drain.shift),
            queue.i_last.eq(drain.last),
            queue.i_sums.eq(array.o_sums),
            array.i_shift.eq(drain.shifts),
        ]
        waits = vector.valid & ~weight.valid & mine & drain_free
        return Doing(issue, waits, Const(0))
