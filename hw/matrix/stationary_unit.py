"""Weight- or input-stationary matrix unit: weight buffer, array, accumulators, output stage."""

from __future__ import annotations

from amaranth.hdl import Assert as Check
from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring

from hw.array.dataflow import ArrayConfig, Dataflow
from hw.array.stationary import StationaryArray
from hw.emit.shared import shared
from hw.lib.delay import delayed
from hw.lib.stream import ElasticBuffer
from hw.matrix.base import Doing, UnitBase
from hw.matrix.bottom_adder import BottomAdder
from hw.matrix.partial_sums import PartialColumn, ResultQueue, SumGuard
from hw.matrix.unit_config import UnitConfig
from hw.matrix.weight_buffer import TileLoader

__all__ = ["StationaryUnit", "moving_layout"]


def moving_layout(config: ArrayConfig) -> data.StructLayout:
    """Layout of a vector of the streaming operand.

    ``last`` ends a tile; ``accumulate`` adds the vector's sums to those of the same row of the
    tile before; with ``finish`` they leave as results, otherwise they wait for the next tile.
    """
    return data.StructLayout(
        {"data": config.lane_bits * config.rows, "last": 1, "accumulate": 1, "finish": 1}
    )


class StationaryUnit(UnitBase):
    """Weight- or input-stationary matrix unit: weight buffer, array, accumulators, output stage.

    A packet of the streaming operand is a tile; the next R vectors of the stationary stream are its
    stationary tile. One vector per cycle is taken, and the first results leave while the last
    vectors enter, as long as stationary tiles arrive in time and results leave. An accumulating
    tile has as many rows as the tile before; each of its rows enters at least R·L + 2 cycles after
    the same row there, or L + 2 with an adder below each column.

    Weight-stationary, ``i_activation`` streams and ``i_weight`` is stationary; input-stationary,
    the reverse, and a row of results holds C rows of one column of the product.

    Parameters
    ----------
    config : UnitConfig

    Members
    -------
    i_activation, i_weight : streams
        Vectors of `moving_layout` with R lanes; vectors of C lanes.
    Others are those of :class:`hw.matrix.base.UnitBase`.
    """

    def __init__(self, config: UnitConfig) -> None:
        array = config.array
        moving, staying = moving_layout(array), array.lane_bits * array.columns
        if array.dataflow == Dataflow.WS:
            super().__init__(config, activations=moving, weights=staying)
        else:
            super().__init__(config, activations=staying, weights=moving)

    def _add_array(self, m: Module, queue: ResultQueue) -> Doing:
        config = self._config.array
        depth = self._config.accumulator_rows
        array = StationaryArray(config)
        loader = TileLoader(config, tiles=self._config.tiles_ahead)
        m.submodules.array = shared(array)
        m.submodules.loader = shared(loader)
        m.submodules.port = port = ElasticBuffer(moving_layout(config))
        moving, staying = self.i_activation, self.i_weight
        modes = self.activation_mode, self.weight_mode
        if config.dataflow == Dataflow.IS:
            moving, staying = staying, moving
            modes = modes[::-1]
        wiring.connect(m, wiring.flipped(moving), port.i_stream)
        wiring.connect(m, wiring.flipped(staying), loader.i_stream)
        vector = port.o_stream
        mark = vector.payload

        delay = array.latency_cycles
        guard = SumGuard(rows=depth, cycles=self._config.sum_cycles)
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

        # Delayed flags of the vectors that entered at the top control the sums at the bottom.
        bottom = self._config.bottom
        marks = [issue, mark.last, mark.finish, *([mark.accumulate] if bottom else [])]
        told = delayed(m, Cat(*marks), delay, name="told", reset=True)
        leaves, leaves_last, finishes = told[0], told[1], told[2]
        row = Signal(range(depth))
        with m.If(leaves):
            m.d.sync += row.eq(Mux(leaves_last, 0, row + 1))
        asks: tuple[Value, Value]
        if bottom:
            asks = told[3], row
            added = delayed(
                m, Cat(told[:3], row), self._config.adding_cycles, name="added", reset=True
            )
            leaves, leaves_last, finishes = added[0], added[1], added[2]
            stores: tuple[Value, Value] = (leaves & ~finishes, added[3:])
        else:
            accumulate, read_row = Signal(), Signal(range(depth))
            m.d.sync += [accumulate.eq(mark.accumulate), read_row.eq(guard.row)]
            asks = accumulate, read_row
            stores = (leaves & ~finishes, row)
        old_sums, sums = [], []
        for index in range(config.columns):
            column = PartialColumn(rows=depth)
            m.submodules[f"partials_{index}"] = shared(column)
            total: Value = array.o_p[index]
            if bottom:
                adder = BottomAdder(config.cell)
                m.submodules[f"adder_{index}"] = shared(adder)
                m.d.comb += [
                    adder.i_sum.eq(total),
                    adder.i_old.eq(column.o_old),
                    adder.mode.eq(self.activation_mode),
                ]
                total = adder.o_sum
            m.d.comb += [
                column.i_accumulate.eq(asks[0]),
                column.i_row.eq(asks[1]),
                column.i_store.eq(stores[0]),
                column.i_store_row.eq(stores[1]),
                column.i_sum.eq(total),
            ]
            sums.append(total)
            old_sums.append(column.o_old)
            asks = column.o_accumulate, column.o_row
            stores = column.o_store, column.o_store_row
        m.d.comb += [
            array.i_p.eq(0 if bottom else Cat(*old_sums)),
            queue.i_write.eq(leaves & finishes),
            queue.i_last.eq(leaves_last),
            queue.i_sums.eq(Cat(*sums)),
        ]

        waits = vector.valid & ~tile_there
        return Doing(issue, waits & ~loader.o_here, waits)
