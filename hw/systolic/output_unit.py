"""The matrix unit round an output-stationary array."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data, wiring

from hw.shared import shared
from hw.stream import ElasticBuffer
from hw.systolic.dataflow import LANE_BITS
from hw.systolic.output_stationary import OutputArray
from hw.systolic.sums import ResultQueue
from hw.systolic.unit_base import Doing, UnitBase
from hw.systolic.unit_config import UnitConfig

__all__ = ["DrainSequencer", "OutputUnit", "step_layout"]


def step_layout(rows: int) -> data.StructLayout:
    """Layout of a vector of activations; the last step of a tile has ``finish``."""
    return data.StructLayout({"data": LANE_BITS * rows, "finish": 1})


class DrainSequencer:
    """Logic that says when the sums of a finished tile leave the array.

    They leave once the highest row has its last; until then, and until all have left, no other
    tile may finish.

    Parameters
    ----------
    rows, latency : int
        Of the array.

    Attributes
    ----------
    finishes, closes : Signal
        A vector of a last step enters the array; it is the last of that step.
    free : Signal
        A tile may begin its last step.
    room, shift : Signal
        There is a place for a row of results; one leaves the array at column 0.
    left, draining, line : Signal
        Rows that are still to leave; a tile has finished and not left; its way to the top row.
    """

    def __init__(self, *, rows: int, latency: int) -> None:
        self._sums = rows * latency
        self.finishes, self.closes = Signal(), Signal()
        self.free, self.room, self.shift = Signal(), Signal(), Signal()
        self.left = Signal(range(self._sums + 1))
        self.draining = Signal()
        self.line = Signal(1 + latency + rows)

    def add_to(self, m: Module) -> None:
        """Add the logic to a module."""
        line, left = self.line, self.left
        m.d.comb += [
            self.free.eq(~self.draining),
            self.shift.eq((left != 0) & self.room),
        ]
        m.d.sync += line.eq(((line << 1) | self.closes)[: len(line)])
        with m.If(line[-1]):
            m.d.sync += left.eq(self._sums)
        with m.Elif(self.shift):
            m.d.sync += left.eq(left - 1)
        with m.If(self.finishes):
            m.d.sync += self.draining.eq(1)
        with m.Elif(self.shift & (left == 1)):
            m.d.sync += self.draining.eq(0)


class OutputUnit(UnitBase):
    """A matrix unit whose array keeps the sums: array, queue of results, activation.

    A tile is R·L × C sums; row i·L + j of it is the sum j of lane i. A step is one element of the
    inner extent, or two bytes: one weight vector and L activation vectors, vector j with the
    elements of the rows i·L + j. It takes L cycles; where an activation vector comes late the step
    waits for its turn, every L cycles. After the step with ``finish`` (all its
    vectors have the mark) the sums leave as a packet of R·L rows while the next tile is summed;
    its last step waits until they have left the array.

    Parameters
    ----------
    config : UnitConfig

    Members
    -------
    i_activation, i_weight : streams
        `step_layout`; vectors of C lanes.
    Others are those of :class:`hw.systolic.unit_base.UnitBase`.
    """

    def __init__(self, config: UnitConfig) -> None:
        array = config.array
        super().__init__(
            config, activations=step_layout(array.rows), weights=LANE_BITS * array.columns
        )

    def _add_array(self, m: Module, queue: ResultQueue) -> Doing:
        config = self._config.array
        latency = config.latency
        array = OutputArray(config)
        m.submodules.array = shared(array)
        m.submodules.port = port = ElasticBuffer(step_layout(config.rows))
        m.submodules.weights = weights = ElasticBuffer(LANE_BITS * config.columns)
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
        drain_free = ~finish | drain.free | (expected != 0)
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
            array.i_finish.eq(issue & finish),
        ]
        after = Mux(last_of_step, 0, expected + 1)
        m.d.sync += turn.eq(Mux(issue, after, Mux(turn == latency - 1, 0, turn + 1)))
        with m.If(issue):
            m.d.sync += expected.eq(after)
            with m.If(last_of_step):
                m.d.sync += first.eq(finish)

        # Column c does the same c cycles later.
        m.d.comb += [
            drain.finishes.eq(issue & finish),
            drain.closes.eq(issue & finish & last_of_step),
            drain.room.eq(queue.o_room),
            queue.i_take.eq(drain.shift),
            queue.i_write.eq(drain.shift),
            queue.i_last.eq(drain.left == 1),
            queue.i_sums.eq(array.o_sums),
            array.i_shift.eq(queue.o_write),
        ]

        waits = vector.valid & ~weight.valid & mine & drain_free
        return Doing(issue, waits, Const(0))
