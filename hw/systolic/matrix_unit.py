"""The matrix unit: grid, weight port, accumulators and read-out between three streams."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.hdl import Assert as Check
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.numeric.formats import Format
from hw.shared import shared
from hw.stream import ElasticBuffer, vector_layout, vector_signature
from hw.systolic.accumulator import AccumulatorColumn
from hw.systolic.grid import Grid
from hw.systolic.readout import ReadOut
from hw.systolic.skew import delayed
from hw.systolic.weights import WeightLoader

__all__ = ["WAITS", "MatrixUnit"]

#: Counters of cycles by what a unit did in them; exactly one moves in a cycle.
WAITS = data.StructLayout({"busy": 48, "wait_input": 48, "wait_room": 48, "idle": 48})


class MatrixUnit(wiring.Component):
    """A weight-stationary matrix unit that follows marks and holds no loop bounds.

    A packet of the activation stream is one tile: its rows, R elements of k each. Its weights are
    the next C vectors of the weight stream. Tiles are summed, row by row, in the order in which
    they come until a vector with the mark ``final``; then the sums leave as one packet. All tiles
    of a pass have the same number of rows.

    One activation vector a cycle is taken as long as weights arrive in time, tiles have at least
    R·L + 2 rows and results leave. Each wait is counted: ``busy`` + ``wait_input`` + ``wait_room``
    + ``idle`` is the number of cycles since reset in which ``i_hold`` was low.

    Parameters
    ----------
    rows, columns : int
        Size of the grid (R, C); the link is 16·R bits wide.
    formats : tuple of Format
        Operand formats: bf16, int8 or both.
    latency : int
        Registers on a cell's sum path (L).
    accumulator_rows : int
        Rows of each of the two accumulator banks: the most rows of a tile.

    Members
    -------
    i_activation, i_weight, o_result : vector streams
    int8, to_bf16, weights_by_row
        Static: operands are int8; results are rounded to bf16, two rows a vector; layout of the
        weight vectors (see :class:`hw.systolic.grid.Grid`).
    i_hold
        The counters stand still; nothing else does.
    o_issue
        A vector enters the grid in this cycle, its weights there.
    counters
        Cycles by what the unit did in them.
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
        self._rows = rows
        self._columns = columns
        self._formats = formats
        self._latency = latency
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
                "counters": Out(WAITS),
            }
        )

    @property
    def definition_name(self) -> str:
        """Name of the shared module."""
        formats = "_".join(sorted(fmt.name for fmt in self._formats))
        return (
            f"matrix_unit_{self._rows}x{self._columns}_{formats}_l{self._latency}"
            f"_a{self._accumulator_rows}"
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width_bits = 16 * self._rows
        grid = Grid(
            rows=self._rows,
            columns=self._columns,
            formats=self._formats,
            latency=self._latency,
        )
        weights = WeightLoader(
            rows=self._rows,
            columns=self._columns,
            latency=self._latency,
            width_bits=width_bits,
        )
        readout = ReadOut(columns=self._columns, rows=self._accumulator_rows)
        m.submodules.grid = shared(grid)
        m.submodules.weights = shared(weights)
        m.submodules.readout = shared(readout)
        m.submodules.port = port = ElasticBuffer(vector_layout(width_bits))
        wiring.connect(m, wiring.flipped(self.i_activation), port.i_stream)
        wiring.connect(m, wiring.flipped(self.i_weight), weights.i_stream)
        wiring.connect(m, readout.o_stream, wiring.flipped(self.o_result))
        vector = port.o_stream

        # Position in the pass. A row may be summed again once its former sum is written, that is,
        # while fewer vectors are in flight than a tile has rows.
        first_of_tile = Signal(init=1)
        first_of_pass = Signal(init=1)
        row = Signal(range(self._accumulator_rows))
        tile_rows = Signal(range(self._accumulator_rows))
        in_flight = Signal(range(grid.latency_cycles + 2))
        bank = Signal()
        bank_used = Array(Signal(name=f"bank_used_{index}") for index in range(2))
        weights_there = ~first_of_tile | weights.o_ready
        room = Mux(first_of_pass, ~(first_of_tile & bank_used[bank]), in_flight <= tile_rows)
        issue = Signal()
        swap = Signal()
        m.d.comb += [
            issue.eq(vector.valid & weights_there & room),
            vector.ready.eq(issue),
            self.o_issue.eq(issue),
            swap.eq(issue & first_of_tile),
            weights.i_swap.eq(swap),
            weights.by_row.eq(self.weights_by_row),
            grid.mode.eq(self.int8),
            grid.i_a.eq(vector.payload.data),
            grid.i_swap.eq(swap),
            grid.i_w.eq(weights.o_w),
            grid.i_w_index.eq(weights.o_w_index),
            grid.i_w_load.eq(weights.o_w_load),
            grid.i_w_by_row.eq(self.weights_by_row),
        ]
        with m.If(issue):
            m.d.sync += [first_of_tile.eq(vector.payload.last), row.eq(row + 1)]
            with m.If(vector.payload.last):
                m.d.sync += [
                    row.eq(0),
                    tile_rows.eq(row),
                    first_of_pass.eq(vector.payload.final),
                    bank.eq(bank ^ vector.payload.final),
                ]
            with m.If(first_of_pass & first_of_tile):
                m.d.sync += bank_used[bank].eq(1)
            m.d.sync += Check(
                (row != self._accumulator_rows - 1) | vector.payload.last,
                "a tile has more rows than an accumulator bank",
            )
            m.d.sync += Check(
                first_of_pass | ~vector.payload.last | (row == tile_rows),
                "the tiles of a pass differ in rows",
            )

        # Old sums go on top of the columns; column c is c cycles behind column 0.
        read: Value = Cat(issue & ~first_of_pass, bank, row)
        read = delayed(m, read, 1, name="read")
        # Sums leave at the bottom; their rows are counted again there.
        leaving = delayed(
            m,
            Cat(issue, vector.payload.last, vector.payload.final),
            grid.latency_cycles - 1,
            name="leaving",
            reset=True,
        )
        m.d.sync += in_flight.eq(in_flight + issue - leaving[0])
        write = delayed(m, leaving, 1, name="write", reset=True)
        write_row = Signal(range(self._accumulator_rows))
        write_bank = Signal()
        with m.If(write[0]):
            m.d.sync += write_row.eq(Mux(write[1], 0, write_row + 1))
            m.d.sync += write_bank.eq(write_bank ^ write[2])
        columns = []
        read_step = read
        write_step: Value = Cat(write[0], write_bank, write_row)
        for index in range(self._columns):
            column = AccumulatorColumn(rows=self._accumulator_rows)
            m.submodules[f"accumulator_{index}"] = shared(column)
            columns.append(column)
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

        # A bank is full once the last column has its last sum.
        full = Signal(2)
        drain_bank = Signal()
        rows_of_bank = Array(
            Signal(range(self._accumulator_rows), name=f"rows_of_bank_{index}")
            for index in range(2)
        )
        with m.If(write[0] & write[2]):
            m.d.sync += rows_of_bank[write_bank].eq(write_row)
        ends: Value = Cat(write[0] & write[2] & ~write_bank, write[0] & write[2] & write_bank)
        ends = delayed(m, ends, self._columns, name="ends", reset=True)
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
        for index, column in enumerate(columns):
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
