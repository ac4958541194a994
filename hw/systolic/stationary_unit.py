"""The matrix unit round an array that keeps an operand, weight- or input-stationary."""

from __future__ import annotations

from amaranth.hdl import Assert as Check
from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.shared import shared
from hw.stream import ElasticBuffer
from hw.systolic.activation import Activation
from hw.systolic.dataflow import LANE_BITS, Dataflow
from hw.systolic.loader import TileLoader
from hw.systolic.stationary import StationaryArray
from hw.systolic.sums import PartialColumn, ResultQueue, SumGuard
from hw.systolic.unit_config import COUNTERS, UnitConfig

__all__ = ["StationaryUnit", "moving_layout"]


def moving_layout(rows: int) -> data.StructLayout:
    """Layout of a vector of the operand that moves.

    ``last`` ends a tile; ``accumulate`` adds the vector's sums to those of the same row of the
    tile before, ``finish`` lets them leave rather than wait for the next tile.
    """
    return data.StructLayout({"data": LANE_BITS * rows, "last": 1, "accumulate": 1, "finish": 1})


class StationaryUnit(wiring.Component):
    """A matrix unit: queue of stationary tiles, array, accumulators, activation.

    A packet of the moving stream is a tile; it takes the next R vectors of the stationary stream
    into use. One vector a cycle is taken, and the first results leave while the last vectors
    come, as long as tiles are there in time and results leave. An accumulating tile has as many
    rows as the one before it; each of its rows waits R·L + 2 cycles after the same row there.

    Weight-stationary, ``i_activation`` moves and ``i_weight`` stays; input-stationary it is the
    other way round, and a row of results holds C rows of the product at one of its columns.

    Parameters
    ----------
    config : UnitConfig

    Members
    -------
    i_activation, i_weight : streams
        `moving_layout` of R lanes; vectors of C lanes.
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
        moving = stream.Signature(moving_layout(array.rows))
        staying = stream.Signature(LANE_BITS * array.columns)
        weights_stay = array.dataflow == Dataflow.WS
        self._activation = Activation(config)
        super().__init__(
            {
                "i_activation": In(moving if weights_stay else staying),
                "i_weight": In(staying if weights_stay else moving),
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
        depth = self._config.accumulator_rows
        array = StationaryArray(config)
        loader = TileLoader(config, tiles=self._config.tiles_ahead)
        queue = ResultQueue(columns=config.columns, rows=self._config.queue_rows)
        m.submodules.array = shared(array)
        m.submodules.loader = shared(loader)
        m.submodules.queue = shared(queue)
        m.submodules.activation = shared(self._activation)
        m.submodules.port = port = ElasticBuffer(moving_layout(config.rows))
        moving, staying = self.i_activation, self.i_weight
        modes = self.activation_mode, self.weight_mode
        if config.dataflow == Dataflow.IS:
            moving, staying = staying, moving
            modes = modes[::-1]
        wiring.connect(m, wiring.flipped(moving), port.i_stream)
        wiring.connect(m, wiring.flipped(staying), loader.i_stream)
        self._activation.connect_outside(m, self, queue.o_rows)
        vector = port.o_stream
        mark = vector.payload

        delay = array.latency_cycles
        guard = SumGuard(rows=depth, cycles=delay)
        guard.add_to(m)
        first = Signal(init=1)
        tile_there = ~first | loader.o_ready
        sum_there = ~mark.accumulate | guard.there
        room = ~mark.finish | queue.o_room
        issue = Signal()
        m.d.comb += [
            issue.eq(vector.valid & tile_there & sum_there & room),
            vector.ready.eq(issue),
            guard.issue.eq(issue),
            guard.last.eq(mark.last),
            loader.i_swap.eq(issue & first),
            queue.i_take.eq(issue & mark.finish),
            array.moving_mode.eq(modes[0]),
            array.stationary_mode.eq(modes[1]),
            array.i_moving.eq(mark.data),
            array.i_swap.eq(issue & first),
            array.i_stationary.eq(loader.o_vector),
            array.i_load.eq(loader.o_load),
        ]
        with m.If(issue):
            m.d.sync += first.eq(mark.last)
            # Sums that leave at once need no accumulator, however many rows their tile has.
            m.d.sync += Check(
                mark.last | (guard.row != depth - 1) | (mark.finish & ~mark.accumulate),
                "a tile has more rows than there are accumulators",
            )

        # What leaves at the bottom is told by the marks of what entered at the top.
        told = Signal(3 * delay)
        m.d.sync += told.eq(Cat(issue, mark.last, mark.finish, told)[: len(told)])
        leaves, leaves_last, finishes = told[-3:]
        store_row = Signal(range(depth))
        with m.If(leaves):
            m.d.sync += store_row.eq(Mux(leaves_last, 0, store_row + 1))
        accumulate = Signal()
        read_row = Signal(range(depth))
        m.d.sync += [accumulate.eq(mark.accumulate), read_row.eq(guard.row)]
        asks: tuple[Value, Value] = (accumulate, read_row)
        stores: tuple[Value, Value] = (leaves & ~finishes, store_row)
        old_sums = []
        for index in range(config.columns):
            column = PartialColumn(rows=depth)
            m.submodules[f"partials_{index}"] = shared(column)
            m.d.comb += [
                column.i_accumulate.eq(asks[0]),
                column.i_row.eq(asks[1]),
                column.i_store.eq(stores[0]),
                column.i_store_row.eq(stores[1]),
                column.i_sum.eq(array.o_p[index]),
            ]
            old_sums.append(column.o_old)
            asks = column.o_accumulate, column.o_row
            stores = column.o_store, column.o_store_row
        m.d.comb += [
            array.i_p.eq(Cat(*old_sums)),
            queue.i_write.eq(leaves & finishes),
            queue.i_last.eq(leaves_last),
            queue.i_sums.eq(array.o_p),
        ]

        counters = self.counters
        with m.If(issue):
            m.d.sync += counters.active.eq(counters.active + 1)
        with m.Elif(vector.valid & ~tile_there & ~loader.o_here):
            m.d.sync += counters.weight_stall.eq(counters.weight_stall + 1)
        with m.Elif(vector.valid & ~tile_there):
            m.d.sync += counters.weight_shift.eq(counters.weight_shift + 1)
        with m.Else():
            m.d.sync += counters.non_matrix.eq(counters.non_matrix + 1)
        return m
