"""Stand-alone matrix unit of any dataflow: array, sums, result FIFO, output stage and counters."""

from __future__ import annotations

from amaranth.hdl import Assert as Check
from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.array.dataflow import Dataflow
from hw.emit.shared import shared
from hw.lib.activity import count_activity
from hw.lib.component import Component
from hw.matrix.output_rows import OutputRows
from hw.matrix.output_stage import OutputStage
from hw.matrix.result_fifo import ResultFifo
from hw.matrix.stationary_core import StationaryCore, operand_layout
from hw.matrix.unit_config import COUNTERS, UnitConfig

__all__ = ["FLAGS", "SystolicUnit"]

#: Flags of a vector: it is the last of its tile; it adds to the sums of the same row of the tile
#: before; its sums leave as results, otherwise they wait for the next tile.
FLAGS = ("last", "accumulate", "finish")


class SystolicUnit(Component):
    """Stand-alone matrix unit: array with its operand side and sums, result FIFO, output stage.

    With a stationary operand, a packet of the streaming operand is a tile; the next R vectors of
    the stationary stream are its stationary tile. One vector per cycle is taken, and the first
    results leave while the last vectors enter, as long as stationary tiles arrive in time and
    results leave. An accumulating tile has as many rows as the tile before; each of its rows enters
    at least R·L + 2 cycles after the same row there, or L + 2 with an adder below each column.

    Weight-stationary, ``i_activation`` streams and ``i_weight`` is stationary; input-stationary,
    the reverse, and a row of results holds C rows of one column of the product. For an
    output-stationary array see :class:`hw.matrix.output_rows.OutputRows`.

    Parameters
    ----------
    config : UnitConfig

    Members
    -------
    i_activation, i_weight : streams
        Vectors of R lanes with `FLAGS` for the streaming operand,
        ``finish`` in an output-stationary unit; vectors of C lanes for the other.
    o_result : stream of rows
        Rows of results, as :class:`hw.matrix.output_stage.OutputStage` sends them.
    activation_mode, weight_mode
        Static: format of each operand, as :class:`hw.array.operand.OperandRecoder` says.
    counters
        Cycles since reset by activity; exactly one counter advances per cycle.
    Others are those of :class:`hw.matrix.output_stage.OutputStage`.
    """

    i_activation: stream.Interface
    i_weight: stream.Interface
    o_result: stream.Interface
    activation_mode: Signal
    weight_mode: Signal
    counters: data.View[data.StructLayout]

    def __init__(self, config: UnitConfig) -> None:
        self._config = config
        self._output = OutputStage(config)
        array = config.array
        flags = ("finish",) if array.dataflow == Dataflow.OS else FLAGS
        operands = [
            In(stream.Signature(operand_layout(array, flags))),
            In(stream.Signature(array.lane_bits * array.columns)),
        ]
        if array.dataflow == Dataflow.IS:
            operands.reverse()
        super().__init__(
            {
                "i_activation": operands[0],
                "i_weight": operands[1],
                "weight_mode": In(1),
                "counters": Out(COUNTERS),
            }
            | self._output.outer_members
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        fifo = ResultFifo(
            columns=config.array.columns, rows=config.queue_rows, together=config.together
        )
        m.submodules.fifo = shared(fifo)
        m.submodules.output = shared(self._output)
        self._output.connect_outside(m, self, fifo.o_rows)
        add = self._add_output if config.array.dataflow == Dataflow.OS else self._add_stationary
        count_activity(m, self.counters, otherwise="non_matrix", **add(m, fifo))
        return m

    def _add_stationary(self, m: Module, fifo: ResultFifo) -> dict[str, Value]:
        """Add an array with a stationary operand; return the unit's activities."""
        config = self._config
        m.submodules.core = core = StationaryCore(
            config.array,
            flags=FLAGS,
            leaving=FLAGS,
            rows=config.accumulator_rows,
            tiles_ahead=config.tiles_ahead,
            bottom=config.bottom,
        )
        operands = [
            (self.i_activation, self.activation_mode),
            (self.i_weight, self.weight_mode),
        ]
        if config.array.dataflow == Dataflow.IS:
            operands.reverse()
        (moving, moving_mode), (stationary, stationary_mode) = operands
        wiring.connect(m, wiring.flipped(moving), core.i_moving)
        wiring.connect(m, wiring.flipped(stationary), core.i_stationary)
        rows, waiting, leaving = fifo.i_rows, core.o_waiting, core.o_leaving
        m.d.comb += [
            core.moving_mode.eq(moving_mode),
            core.stationary_mode.eq(stationary_mode),
            core.sum_mode.eq(self.activation_mode),
            core.i_begins.eq(waiting.first),
            core.i_accumulate.eq(waiting.accumulate),
            core.i_room.eq(~waiting.finish | rows.room),
            rows.reserve.eq(core.o_issue & waiting.finish),
            core.i_store.eq(leaving.valid & ~leaving.finish),
            rows.write.eq(leaving.valid & leaving.finish),
            rows.last.eq(leaving.last),
            rows.sums.eq(core.o_sums),
        ]
        with m.If(core.o_issue):
            # Sums that leave at once need no accumulator, however many rows their tile has.
            m.d.sync += Check(
                waiting.last
                | (waiting.row != config.accumulator_rows - 1)
                | (waiting.finish & ~waiting.accumulate),
                "a tile has more rows than there are accumulators",
            )
        missing = waiting.valid & ~waiting.tile_ready
        return {
            "active": core.o_issue,
            "weight_stall": missing & ~waiting.tile_here,
            "weight_shift": missing,
        }

    def _add_output(self, m: Module, fifo: ResultFifo) -> dict[str, Value]:
        """Add an output-stationary array; return the unit's activities."""
        m.submodules.rows = rows = OutputRows(self._config.array)
        wiring.connect(m, wiring.flipped(self.i_activation), rows.i_activation)
        wiring.connect(m, wiring.flipped(self.i_weight), rows.i_weight)
        wiring.connect(m, rows.o_rows, fifo.i_rows)
        m.d.comb += [
            rows.activation_mode.eq(self.activation_mode),
            rows.weight_mode.eq(self.weight_mode),
        ]
        return {"active": rows.o_active, "weight_stall": rows.o_weight_stall}
