"""The PCU's matrix unit: array, weight port, accumulators and drain between three streams."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.hdl import Assert as Check
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.counters import activity_layout
from hw.arch.errors import BadInputError
from hw.array.dataflow import LANE_BITS, ArrayConfig, Dataflow
from hw.array.stationary import StationaryArray
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.delay import delayed
from hw.lib.stream import ElasticBuffer, vector_layout, vector_signature
from hw.matrix.accumulator import AccumulatorColumn
from hw.matrix.drain import ReadOut
from hw.matrix.partial_sums import SumGuard
from hw.matrix.weight_port import WeightLoader
from hw.numeric.formats import Format

__all__ = ["MatrixUnit"]


class MatrixUnit(Component):
    """Weight-stationary matrix unit controlled by packet flags; it holds no loop bounds.

    A packet of the activation stream is one tile: its rows, R elements of k per vector. Its
    weights are the next C vectors of the weight stream. Tiles are accumulated, row by row, in
    arrival order until a vector with the flag ``final``; then the sums leave as one packet. All
    tiles of a pass have the same number of rows.

    One activation vector per cycle is taken as long as weights arrive in time, tiles have at least
    R·L + 2 rows and results leave. Each stall is counted: ``busy`` + ``wait_input`` +
    ``wait_room`` + ``idle`` is the number of cycles since reset in which ``i_hold`` was low.

    Parameters
    ----------
    rows, columns : int
        Size of the array (R, C); the link is 16·R bits wide.
    formats : tuple of Format
        Operand formats: bf16, int8 or both.
    latency : int
        Register stages on a cell's partial-sum path (L).
    accumulator_rows : int
        Rows of each of the two accumulator banks: the most rows of a tile.

    Members
    -------
    i_activation, i_weight, o_result : vector streams
    int8
        Static: operands are int8, else bf16.
    to_bf16
        Static: results are rounded to bf16, two rows per vector.
    weights_by_row
        Static: a vector of weights is rows of the tile, else a column
        (:class:`hw.matrix.weight_port.WeightLoader`).
    i_hold
        Freezes the counters and nothing else.
    o_issue
        A vector enters the array in this cycle, and its weights are present.
    counters
        Cycles by the unit's activity.

    Raises
    ------
    BadInputError
        R is not 2·C, or a parameter is outside its domain.
    """

    i_activation: stream.Interface
    i_weight: stream.Interface
    o_result: stream.Interface
    int8: Signal
    to_bf16: Signal
    weights_by_row: Signal
    i_hold: Signal
    o_issue: Signal
    counters: data.View[data.StructLayout]

    def __init__(
        self,
        *,
        rows: int,
        columns: int,
        formats: tuple[Format, ...],
        latency: int,
        accumulator_rows: int,
    ) -> None:
        # A vector of the link is R operands of 16 bits, or a row of C sums of 32 bits.
        if rows != 2 * columns:
            raise BadInputError(
                f"Rows of a matrix unit must be twice its columns, not {rows} for {columns}"
            )
        self._array = ArrayConfig(rows, columns, Dataflow.WS, formats, latency)
        self._accumulator_rows = accumulator_rows
        super().__init__(
            {
                "i_activation": In(vector_signature(16 * rows)),
                "i_weight": In(vector_signature(16 * rows)),
                "o_result": Out(vector_signature(16 * rows)),
                "int8": In(1),
                "to_bf16": In(1),
                "weights_by_row": In(1),
                "i_hold": In(1),
                "o_issue": Out(1),
                "counters": Out(activity_layout()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = self._accumulator_rows
        columns = self._array.columns
        grid = StationaryArray(self._array, by_column=True)
        weights = WeightLoader(self._array)
        readout = ReadOut(columns=columns, rows=depth)
        m.submodules.grid = shared(grid)
        m.submodules.weights = shared(weights)
        m.submodules.readout = shared(readout)
        m.submodules.port = port = ElasticBuffer(vector_layout(LANE_BITS * self._array.rows))
        wiring.connect(m, wiring.flipped(self.i_activation), port.i_stream)
        wiring.connect(m, wiring.flipped(self.i_weight), weights.i_stream)
        wiring.connect(m, readout.o_stream, wiring.flipped(self.o_result))
        vector = port.o_stream

        # Position in the pass.
        first_of_tile = Signal(init=1)
        first_of_pass = Signal(init=1)
        guard = SumGuard(rows=depth, cycles=grid.latency_cycles)
        guard.add_to(m)
        bank = Signal()
        bank_used = Array(Signal(name=f"bank_used_{index}") for index in range(2))
        weights_there = ~first_of_tile | weights.o_ready
        room = Mux(first_of_pass, ~(first_of_tile & bank_used[bank]), guard.there)
        issue = Signal()
        swap = Signal()
        m.d.comb += [
            issue.eq(vector.valid & weights_there & room),
            vector.ready.eq(issue),
            self.o_issue.eq(issue),
            guard.issue.eq(issue),
            guard.last.eq(vector.payload.last),
            swap.eq(issue & first_of_tile),
            weights.i_swap.eq(swap),
            weights.by_row.eq(self.weights_by_row),
            weights.int8.eq(self.int8),
            grid.moving_mode.eq(self.int8),
            grid.stationary_mode.eq(self.int8),
            grid.i_moving.eq(vector.payload.data),
            grid.i_swap.eq(swap),
            grid.i_stationary.eq(weights.o_vector),
            grid.i_load.eq(weights.o_load),
            grid.i_by_row.eq(self.weights_by_row),
        ]
        with m.If(issue):
            m.d.sync += first_of_tile.eq(vector.payload.last)
            with m.If(vector.payload.last):
                m.d.sync += [
                    first_of_pass.eq(vector.payload.final),
                    bank.eq(bank ^ vector.payload.final),
                ]
            with m.If(first_of_pass & first_of_tile):
                m.d.sync += bank_used[bank].eq(1)
            m.d.sync += Check(
                (guard.row != depth - 1) | vector.payload.last,
                "a tile has more rows than an accumulator bank",
            )
            m.d.sync += Check(
                first_of_pass | ~vector.payload.last | (guard.row == guard.last_row),
                "the tiles of a pass differ in rows",
            )

        # Old partial sums enter at the top of the columns; column c is c cycles behind column 0.
        read: Value = Cat(issue & ~first_of_pass, bank, guard.row)
        read = delayed(m, read, 1, name="read")
        # New partial sums leave at the bottom, where a second counter gives their row.
        told = Cat(issue, vector.payload.last, vector.payload.final)
        write = delayed(m, told, grid.latency_cycles, name="write", reset=True)
        write_row = Signal(range(depth))
        write_bank = Signal()
        with m.If(write[0]):
            m.d.sync += write_row.eq(Mux(write[1], 0, write_row + 1))
            m.d.sync += write_bank.eq(write_bank ^ write[2])
        accumulators = []
        read_step = read
        write_step: Value = Cat(write[0], write_bank, write_row)
        for index in range(columns):
            column = AccumulatorColumn(rows=depth)
            m.submodules[f"accumulator_{index}"] = shared(column)
            accumulators.append(column)
            accumulate = Signal(name=f"accumulate_{index}")
            m.d.sync += accumulate.eq(read_step[0])
            m.d.comb += [
                column.i_read_bank.eq(read_step[1]),
                column.i_read_row.eq(read_step[2:]),
                grid.i_p[index].eq(Mux(accumulate, column.o_sum, 0)),
                column.i_write_enable.eq(write_step[0]),
                column.i_write_bank.eq(write_step[1]),
                column.i_write_row.eq(write_step[2:]),
                column.i_write_sum.eq(grid.o_p[index]),
            ]
            read_step = delayed(m, read_step, 1, name=f"read_{index}")
            write_step = delayed(m, write_step, 1, name=f"write_{index}", reset=True)

        # A bank is full when the last column has written its last sum.
        full = Signal(2)
        drain_bank = Signal()
        rows_of_bank = Array(
            Signal(range(depth), name=f"rows_of_bank_{index}") for index in range(2)
        )
        with m.If(write[0] & write[2]):
            m.d.sync += rows_of_bank[write_bank].eq(write_row)
        ends: Value = Cat(write[0] & write[2] & ~write_bank, write[0] & write[2] & write_bank)
        ends = delayed(m, ends, columns, name="ends", reset=True)
        drained = Mux(drain_bank, 2, 1)
        m.d.sync += full.eq((full | ends) & ~Mux(readout.o_done, drained, 0))
        m.d.comb += [
            readout.integer.eq(self.int8),
            readout.to_bf16.eq(self.to_bf16),
            readout.i_start.eq((full & drained).any()),
            readout.i_rows.eq(rows_of_bank[drain_bank]),
        ]
        with m.If(readout.o_done):
            m.d.sync += [drain_bank.eq(~drain_bank), bank_used[drain_bank].eq(0)]
        for index, column in enumerate(accumulators):
            m.d.comb += [
                column.i_drain_active.eq(readout.i_start),
                column.i_drain_bank.eq(drain_bank),
                column.i_drain_enable.eq(readout.o_enable),
                column.i_drain_row.eq(readout.o_row),
                readout.i_sums[index].eq(column.o_drained),
            ]

        counters = self.counters
        with m.If(~self.i_hold):
            with m.If(issue):
                m.d.sync += counters.busy.eq(counters.busy + 1)
            with m.Elif(vector.valid & weights_there):
                m.d.sync += counters.wait_room.eq(counters.wait_room + 1)
            with m.Elif(~vector.valid & first_of_pass & first_of_tile):
                m.d.sync += counters.idle.eq(counters.idle + 1)
            with m.Else():
                m.d.sync += counters.wait_input.eq(counters.wait_input + 1)
        return m
