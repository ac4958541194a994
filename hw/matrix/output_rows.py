"""Output-stationary array with its operand ports and drain control."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.array.dataflow import ArrayConfig
from hw.array.output_stationary import OutputArray
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.stream import ElasticBuffer
from hw.matrix.drain_sequencer import DrainSequencer
from hw.matrix.result_fifo import rows_signature
from hw.matrix.stationary_core import operand_layout

__all__ = ["OutputRows"]


class OutputRows(Component):
    """Output-stationary array with its operand ports and drain control; rows of sums leave.

    A tile is R·L × C sums; its row i·L + j is sum j of lane i. A step is one element of the inner
    extent (two of 8 bits, four of 4): one weight vector and L activation vectors, vector j with the
    elements of the rows i·L + j. It takes L cycles; a late activation vector waits for its next
    turn, which comes every L cycles. After the step with ``finish`` (set in all its vectors) the
    sums leave as a packet of R·L rows while the next tile is accumulated. The last vector of that
    next tile waits until they have all left, at most R·L cycles if results are taken.

    Parameters
    ----------
    config : ArrayConfig

    Members
    -------
    i_activation, i_weight : streams
        Vectors of :func:`hw.matrix.stationary_core.operand_layout` with ``finish``; vectors of C
        lanes.
    activation_mode, weight_mode
        Static: format of each operand, as :class:`hw.array.operand.OperandRecoder` says.
    o_rows : ``Out(rows_signature(columns))``
    o_active, o_weight_stall
        A vector enters the array; one waits for its weights.
    """

    i_activation: stream.Interface
    i_weight: stream.Interface
    activation_mode: Signal
    weight_mode: Signal
    o_rows: Any
    o_active: Signal
    o_weight_stall: Signal

    def __init__(self, config: ArrayConfig) -> None:
        self._config = array = config
        super().__init__(
            {
                "i_activation": In(stream.Signature(operand_layout(array, ("finish",)))),
                "i_weight": In(stream.Signature(array.lane_bits * array.columns)),
                "activation_mode": In(1),
                "weight_mode": In(1),
                "o_rows": Out(rows_signature(array.columns)),
                "o_active": Out(1),
                "o_weight_stall": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        latency = config.latency
        array = OutputArray(config)
        m.submodules.array = shared(array)
        m.submodules.port = port = ElasticBuffer(operand_layout(config, ("finish",)))
        m.submodules.weights = weights = ElasticBuffer(config.lane_bits * config.columns)
        wiring.connect(m, wiring.flipped(self.i_activation), port.i_stream)
        wiring.connect(m, wiring.flipped(self.i_weight), weights.i_stream)
        vector, weight, rows = port.o_stream, weights.o_stream, self.o_rows

        # The L sums of a cell take turns in its adder; a vector must enter in the turn of its sum.
        # The first vector of a tile starts a new sum, so it defines the turns.
        turn = Signal(range(latency))
        expected = Signal(range(latency))
        last_of_step = expected == latency - 1
        first = Signal(init=1)
        m.submodules.drain = drain = DrainSequencer(rows=config.rows, latency=latency)
        finish = vector.payload.finish
        mine = (turn == expected) | (first & (expected == 0))
        closing = finish & last_of_step
        drain_free = ~closing | drain.o_free
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

        waits = vector.valid & ~weight.valid & mine & drain_free
        m.d.comb += [
            drain.i_closes.eq(issue & closing),
            drain.i_room.eq(rows.room),
            rows.reserve.eq(drain.o_reserve),
            rows.write.eq(drain.o_shift),
            rows.last.eq(drain.o_last),
            rows.sums.eq(array.o_sums),
            array.i_shift.eq(drain.o_shifts),
            self.o_active.eq(issue),
            self.o_weight_stall.eq(waits),
        ]
        return m
