"""Core of a matrix unit with a stationary operand: operand side, array, accumulators and guard."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.array.dataflow import ArrayConfig
from hw.array.stationary import StationaryArray
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.delay import delayed
from hw.lib.stream import ElasticBuffer
from hw.matrix.accumulator import Accumulators
from hw.matrix.bottom_adder import BottomAdder
from hw.matrix.softmax.rescale import Rescale
from hw.matrix.softmax.rise_loader import RISE_BITS
from hw.matrix.softmax.score_columns import ScoreColumns
from hw.matrix.sum_guard import SumGuard
from hw.matrix.weight_buffer import WeightBuffer
from hw.matrix.write_back import WriteBack, leaving_layout

__all__ = ["StationaryCore", "operand_layout", "waiting_layout"]


def operand_layout(config: ArrayConfig, flags: tuple[str, ...]) -> data.StructLayout:
    """Layout of a vector of R lanes of the streaming operand and its sideband flags."""
    return data.StructLayout({"data": config.lane_bits * config.rows} | dict.fromkeys(flags, 1))


def waiting_layout(rows: int, flags: tuple[str, ...]) -> data.StructLayout:
    """Layout of the next vector's state.

    ``valid``: it has arrived; ``first``: it begins a tile; ``tile_ready``: its stationary tile is
    active or can be swapped in; ``tile_here``: that tile is received, but not yet loaded; ``row``:
    the row that it adds to; ``last_row``: the last row before the rows began again; and its flags.
    """
    bits = dict.fromkeys(("valid", "first", "tile_ready", "tile_here"), 1)
    rows_of = {"row": range(rows), "last_row": range(rows)}
    return data.StructLayout(bits | rows_of | dict.fromkeys(flags, 1))


class StationaryCore(Component):
    """Core of a matrix unit with a stationary operand: everything before its results leave.

    A packet of the streaming operand is a tile of vectors; its stationary tile is the next one of
    the stationary stream. One vector per cycle enters the array, as soon as its tile is ready, its
    old sums can be read and there is room. The unit around it says which vectors accumulate and
    what becomes of their sums.

    Parameters
    ----------
    config : ArrayConfig
    flags : tuple of str
        Sideband flags of a vector; ``last`` ends a tile. ``accumulate``, needed with ``bottom``,
        adds to the sums of the tile before.
    leaving : tuple of str
        Those that accompany its sums until they leave.
    rows, banks : int
        Accumulators per column: rows of a bank, and banks.
    tiles_ahead : int
        Tiles that the weight buffer holds at least.
    by_column : bool
        As of :class:`hw.array.stationary.StationaryArray`.
    bottom : bool
        Whether old sums are added below the array, which needs one bank; otherwise they enter at
        its top.
    softmax : bool
        Whether it can do the products of attention (docs/fused_softmax.md); needs ``by_column`` and
        two banks.

    Members
    -------
    i_moving, i_stationary : streams
        Vectors of `operand_layout`; vectors of a stationary tile.
    moving_mode, stationary_mode, sum_mode, i_by_row
        Static: as of :class:`hw.array.stationary.StationaryArray`, the last with ``by_column``
        only; ``sum_mode`` as of :class:`hw.matrix.bottom_adder.BottomAdder`.
    o_waiting : ``Out(waiting_layout(rows, flags))``
        The next vector.
    i_begins, i_accumulate, i_bank, i_room, o_issue
        It adds to row 0, not to the row after that of the vector before; to the old sums of its
        row, of this bank; its results have room. It enters.
    i_mark, o_mark
        Only with ``by_column``: a mark of a stationary tile, with each of its vectors; that of the
        next vector's tile if the vector is its first.
    o_leaving : ``Out(leaving_layout(rows, ("begins", *leaving)))``
        The vector whose sum leaves column 0.
    i_store, i_store_bank, o_sums
        Its sums are kept, in this bank; the sum of column c leaves c cycles later.
    i_drain, o_drained
        Only with two banks or more, as of :class:`hw.matrix.accumulator.Accumulators`.
    i_rise
        Only with ``softmax``: the rise of a column, with each vector of its stationary tile. Old
        sums enter the tile times 2^-rise.
    i_hidden, o_maxima
        Only with ``softmax``: columns whose sum is stored as minus infinity, with ``o_leaving``;
        the greatest sums of the last tile in the bank that is drained.
    """

    i_moving: stream.Interface
    i_stationary: stream.Interface
    moving_mode: Signal
    stationary_mode: Signal
    sum_mode: Signal
    i_by_row: Signal
    i_mark: Signal
    o_mark: Signal
    i_begins: Signal
    o_waiting: data.View[data.StructLayout]
    i_accumulate: Signal
    i_bank: Signal
    i_room: Signal
    o_issue: Signal
    o_leaving: data.View[data.StructLayout]
    i_store: Signal
    i_store_bank: Signal
    o_sums: data.View[data.ArrayLayout]
    i_drain: data.View[data.StructLayout]
    o_drained: data.View[data.ArrayLayout]
    i_rise: Signal
    i_hidden: Signal
    o_maxima: data.View[data.ArrayLayout]

    def __init__(
        self,
        config: ArrayConfig,
        *,
        flags: tuple[str, ...],
        leaving: tuple[str, ...],
        rows: int,
        banks: int = 1,
        tiles_ahead: int,
        by_column: bool = False,
        bottom: bool = False,
        softmax: bool = False,
    ) -> None:
        self._config, self._by_column, self._bottom = config, by_column, bottom
        self._softmax = softmax
        self._flags, self._rows, self._banks = flags, rows, banks
        self._leaving = ("begins", *leaving)
        self._weights = WeightBuffer(config, tiles=tiles_ahead, by_column=by_column, rises=softmax)
        self._accumulators = Accumulators(columns=config.columns, rows=rows, banks=banks)
        drain = self._accumulators.signature.members
        modes = ("moving_mode", "stationary_mode", "sum_mode")
        marks = {"i_by_row": In(1), "i_mark": In(1), "o_mark": Out(1)} if by_column else {}
        attention = {
            "i_rise": In(RISE_BITS),
            "i_hidden": In(config.columns),
            "o_maxima": Out(data.ArrayLayout(32, config.columns)),
        }
        super().__init__(
            {
                "i_moving": In(stream.Signature(operand_layout(config, flags))),
                "i_stationary": self._weights.signature.members["i_stream"],
                "o_waiting": Out(waiting_layout(rows, flags)),
                "i_bank": In(range(banks)),
                "o_issue": Out(1),
                "o_leaving": Out(leaving_layout(rows, self._leaving)),
                "i_store": In(1),
                "i_store_bank": In(range(banks)),
                "o_sums": Out(data.ArrayLayout(32, config.columns)),
            }
            | {name: In(1) for name in (*modes, "i_begins", "i_accumulate", "i_room")}
            | marks
            | (attention if softmax else {})
            | {name: member for name, member in drain.items() if "drain" in name}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, waiting = self._config, self.o_waiting
        array = StationaryArray(config, by_column=self._by_column)
        weights = self._weights
        adding_cycles = config.adder_cycles if self._bottom else 0
        guard = SumGuard(
            rows=self._rows, cycles=1 + adding_cycles if self._bottom else config.latency_cycles
        )
        m.submodules.array = shared(array)
        m.submodules.weights = shared(weights)
        m.submodules.guard = guard
        port = ElasticBuffer(operand_layout(config, self._flags))
        m.submodules.port = port
        wiring.connect(m, wiring.flipped(self.i_moving), port.i_stream)
        wiring.connect(m, wiring.flipped(self.i_stationary), weights.i_stream)
        vector = port.o_stream
        first = Signal(init=1)
        tile_ready = ~first | weights.o_ready
        sum_ready = ~self.i_accumulate | guard.o_ready
        swap = self.o_issue & first
        m.d.comb += [
            waiting.valid.eq(vector.valid),
            waiting.first.eq(first),
            waiting.tile_ready.eq(tile_ready),
            waiting.tile_here.eq(weights.o_here),
            waiting.row.eq(guard.o_row),
            waiting.last_row.eq(guard.last_row),
            *(waiting[name].eq(vector.payload[name]) for name in self._flags),
            self.o_issue.eq(vector.valid & tile_ready & sum_ready & self.i_room),
            vector.ready.eq(self.o_issue),
            guard.i_issue.eq(self.o_issue),
            guard.i_begins.eq(self.i_begins),
            weights.i_swap.eq(swap),
            array.moving_mode.eq(self.moving_mode),
            array.stationary_mode.eq(self.stationary_mode),
            array.i_moving.eq(vector.payload.data),
            array.i_swap.eq(swap),
            array.i_stationary.eq(weights.o_vector),
            array.i_load.eq(weights.o_load),
        ]
        if self._by_column:
            m.d.comb += [
                array.i_by_row.eq(self.i_by_row),
                weights.i_by_row.eq(self.i_by_row),
                weights.i_mark.eq(self.i_mark),
                self.o_mark.eq(weights.o_mark),
            ]
        with m.If(self.o_issue):
            m.d.sync += first.eq(vector.payload.last)
        self._accumulate(m, array, adding_cycles)
        return m

    def _accumulate(self, m: Module, array: StationaryArray, adding_cycles: int) -> None:
        """Add the accumulators and the control of their reads and writes."""
        accumulators = self._accumulators
        m.submodules.accumulators = accumulators
        m.submodules.write_back = back = WriteBack(
            flags=self._leaving, rows=self._rows, cycles=self._config.latency_cycles
        )
        leaving = back.o_leaving
        read = Cat(self.o_issue & self.i_accumulate, self.i_bank, self.o_waiting.row)
        old, sums = Value.cast(accumulators.o_old), Value.cast(array.o_p)
        if self._bottom:
            read = Cat(leaving.accumulate, self.i_bank, leaving.row)
            leaving = delayed(m, leaving, adding_cycles, name="leaving", reset=True)
            old, sums = Const(0), self._added(m, array.o_p, accumulators.o_old)
        else:
            read = delayed(m, read, 1, name="read_request")
        stored = self.o_sums
        if self._softmax:
            old = self._rescaled(m, accumulators.o_old)
            stored = self._scores(m)
        m.d.comb += [
            back.i_issue.eq(self.o_issue),
            back.i_flags.eq(
                Cat(self.i_begins, *(self.o_waiting[name] for name in self._leaving[1:]))
            ),
            self.o_leaving.eq(leaving),
            self.o_sums.eq(sums),
            array.i_p.eq(old),
            accumulators.i_read.eq(read),
            accumulators.i_write.enable.eq(self.i_store),
            accumulators.i_write.bank.eq(self.i_store_bank),
            accumulators.i_write.row.eq(leaving.row),
            accumulators.i_sums.eq(stored),
        ]
        if self._banks > 1:
            m.d.comb += [
                accumulators.i_drain.eq(self.i_drain),
                self.o_drained.eq(accumulators.o_drained),
            ]

    def _rescaled(self, m: Module, old: data.View[data.ArrayLayout]) -> Value:
        """Old sums of all columns, times 2^-rise of the tile that they enter."""
        weights, found = self._weights, []
        m.d.comb += weights.i_rise.eq(self.i_rise)
        # The wave of a swap is at column c when the first old sum of its tile is; the next load
        # comes when it has passed all columns.
        swap = delayed(m, weights.i_swap, 1, name="swap_wave_0", reset=True)
        for index in range(self._config.columns):
            loaded = Signal(RISE_BITS, name=f"rise_loaded_{index}")
            rise = Signal(RISE_BITS, name=f"rise_{index}")
            with m.If(weights.o_load[index]):
                m.d.sync += loaded.eq(weights.o_rise)
            with m.If(swap):
                m.d.sync += rise.eq(loaded)
            swap = delayed(m, swap, 1, name=f"swap_wave_{index + 1}", reset=True)
            unit = Rescale()
            m.submodules[f"rescale_{index}"] = shared(unit)
            m.d.comb += [unit.i_sum.eq(old[index]), unit.i_rise.eq(rise)]
            found.append(unit.o_sum)
        return Cat(*found)

    def _scores(self, m: Module) -> data.View[data.ArrayLayout]:
        """Sums of all columns as they are stored, and the maxima of the bank that is drained."""
        columns = ScoreColumns(self._config.columns)
        m.submodules.scores = columns
        control: Any = columns.i_control
        m.d.comb += [
            control.enable.eq(self.i_store),
            control.begins.eq(self.o_leaving.begins),
            control.bank.eq(self.i_store_bank),
            columns.i_hidden.eq(self.i_hidden),
            columns.i_sums.eq(self.o_sums),
            columns.i_bank.eq(self.i_drain.access.bank),
            self.o_maxima.eq(columns.o_maxima),
        ]
        return columns.o_sums

    def _added(
        self, m: Module, sums: data.View[data.ArrayLayout], old: data.View[data.ArrayLayout]
    ) -> Value:
        """Sums of all columns, added below the array to the old ones."""
        added = []
        for index in range(self._config.columns):
            adder = BottomAdder(self._config.cell)
            m.submodules[f"adder_{index}"] = shared(adder)
            m.d.comb += [
                adder.i_sum.eq(sums[index]),
                adder.i_old.eq(old[index]),
                adder.mode.eq(self.sum_mode),
            ]
            added.append(adder.o_sum)
        return Cat(*added)
