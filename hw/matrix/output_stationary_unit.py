"""Output-stationary matrix unit: array, drain sequencer, result FIFO, output stage."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring

from hw.array.dataflow import ArrayConfig
from hw.array.output_stationary import OutputArray
from hw.emit.shared import shared
from hw.lib.stream import ElasticBuffer
from hw.matrix.base import Doing, UnitBase
from hw.matrix.partial_sums import ResultQueue
from hw.matrix.unit_config import UnitConfig

__all__ = ["DrainSequencer", "OutputUnit", "step_layout"]


def step_layout(config: ArrayConfig) -> data.StructLayout:
    """Layout of an activation vector; the last step of a tile has the flag ``finish``."""
    return data.StructLayout({"data": config.lane_bits * config.rows, "finish": 1})


class DrainSequencer:
    """Drain control of an output-stationary array: when the sums of a finished tile leave.

    The result-FIFO entry of a row is reserved R + L + 1 cycles before the row leaves the array, so
    nothing can stall it. The L rows of one lane leave back to back. A row of cells shifts its drain
    registers until its own sums and those from above have left. Then the drain stands still for
    the next tile, whose sums arrive, at the earliest, while the last L of the former tile leave.
    So a tile may be completed when the former tile has all its entries reserved.

    Parameters
    ----------
    rows, latency : int
        Of the array.

    Attributes
    ----------
    closes, free : Signal
        The last vector of a tile enters the array; it may enter.
    room, take : Signal
        L result-FIFO entries are free; one is reserved.
    shifts, shift, last : Signal
        Rows of the array whose drain registers shift at column 0, the highest first; a row of
        results leaves; it is the last of its tile.
    left, part, line : Signal
        Entries still to reserve; those reserved of the current lane; delay line of reserved rows.
    emptied, left_part : Signal
        Rows of the array that have nothing more to shift; rows of results that left of a lane.
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
            # Rows empty from the top; the lowest one empties with the tile's last row of results.
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
    """Output-stationary matrix unit: array, result FIFO and output stage.

    A tile is R·L × C sums; its row i·L + j is sum j of lane i. A step is one element of the inner
    extent (two of 8 bits, four of 4): one weight vector and L activation vectors, vector j with the
    elements of the rows i·L + j. It takes L cycles; a late activation vector waits for its next
    turn, which comes every L cycles. After the step with ``finish`` (set in all its vectors) the
    sums leave as a packet of R·L rows while the next tile is accumulated. The last vector of that
    next tile waits until they have all left, at most R·L cycles if results are taken.

    Parameters
    ----------
    config : UnitConfig

    Members
    -------
    i_activation, i_weight : streams
        Vectors of `step_layout`; vectors of C lanes.
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

        # The L sums of a cell take turns in its adder; a vector must enter in the turn of its sum.
        # The first vector of a tile starts a new sum, so it defines the turns.
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
            # Adding +0 changes no sum but -0, whose sign no output shows.
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
