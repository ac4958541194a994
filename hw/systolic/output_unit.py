"""The matrix unit round an output-stationary array."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.shared import shared
from hw.stream import ElasticBuffer
from hw.systolic.activation import Activation
from hw.systolic.dataflow import LANE_BITS
from hw.systolic.output_stationary import OutputArray
from hw.systolic.sums import ResultQueue
from hw.systolic.unit_config import COUNTERS, UnitConfig

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


class OutputUnit(wiring.Component):
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
    o_result : stream of rows
        As :class:`hw.systolic.activation.Activation` sends them.
    activation_mode, weight_mode
        Static: format of each operand, as :class:`hw.systolic.operand.OperandRecoder` says.
    counters
        Cycles since reset by what was done in them; exactly one moves in a cycle.
    """

    i_activation: stream.Interface
    i_weight: stream.Interface
    o_result: stream.Interface
    activation_mode: Signal
    weight_mode: Signal
    counters: data.View[data.StructLayout]

    def __init__(self, config: UnitConfig) -> None:
        self._config = config
        array = config.array
        self._activation = Activation(config)
        super().__init__(
            {
                "i_activation": In(stream.Signature(step_layout(array.rows))),
                "i_weight": In(stream.Signature(LANE_BITS * array.columns)),
                "weight_mode": In(1),
                "counters": Out(COUNTERS),
            }
            | self._activation.outer_members
        )

    @property
    def definition_name(self) -> str:
        """Name of the shared module."""
        return f"systolic_{self._config.name}"

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config.array
        latency = config.latency
        array = OutputArray(config)
        queue = ResultQueue(columns=config.columns, rows=self._config.queue_rows)
        m.submodules.array = shared(array)
        m.submodules.queue = shared(queue)
        m.submodules.activation = shared(self._activation)
        m.submodules.port = port = ElasticBuffer(step_layout(config.rows))
        m.submodules.weights = weights = ElasticBuffer(LANE_BITS * config.columns)
        wiring.connect(m, wiring.flipped(self.i_activation), port.i_stream)
        wiring.connect(m, wiring.flipped(self.i_weight), weights.i_stream)
        self._activation.connect_outside(m, self, queue.o_rows)
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

        counters = self.counters
        waits: Value = vector.valid & ~weight.valid & mine & drain_free
        with m.If(issue):
            m.d.sync += counters.active.eq(counters.active + 1)
        with m.Elif(waits):
            m.d.sync += counters.weight_stall.eq(counters.weight_stall + 1)
        with m.Else():
            m.d.sync += counters.non_matrix.eq(counters.non_matrix + 1)
        m.d.comb += counters.weight_shift.eq(0)
        return m
