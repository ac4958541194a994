"""The PCU's matrix unit: array with its operand side, two accumulator banks and their drain."""

from __future__ import annotations

from amaranth.hdl import Array, Const, Module, Mux, Signal, Value
from amaranth.hdl import Assert as Check
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.checks import refusal
from hw.arch.counters import activity_layout
from hw.arch.errors import BadInputError
from hw.arch.lanes.softmax_program import SoftmaxRole, softmax_layout
from hw.arch.words.pcu_word import format_modes, rounded_formats
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.array.layout import row_pairs
from hw.array.unit_parameters import ACCUMULATOR_ROWS
from hw.emit.shared import shared
from hw.lib.activity import beside_layout, count_activity
from hw.lib.component import Component
from hw.lib.stream import vector_signature
from hw.matrix.bank_sequencer import BankSequencer
from hw.matrix.drain import BankDrain
from hw.matrix.softmax.key_counters import KeyCounters
from hw.matrix.softmax.rise_loader import RiseLoader
from hw.matrix.stationary_core import StationaryCore
from hw.numeric.formats import Format
from hw.numeric.product_formats import cell_set

__all__ = ["MatrixUnit"]


class MatrixUnit(Component):
    """Weight-stationary matrix unit controlled by packet flags; it holds no loop bounds.

    A packet of the activation stream is one tile: its rows, R elements of k per vector. Its
    weights are the next C vectors of the weight stream. Tiles are accumulated, row by row, in
    arrival order until a vector with the flag ``final``, which ends a pass; then the sums leave, as
    one packet. All tiles of a pass have the same number of rows.

    A tile that continues uses the accumulator rows after those of the tile before; the others, and
    the first of a pass, begin a group at row 0. All groups of a pass have as many tiles.

    One activation vector per cycle is taken as long as weights arrive in time, results leave, and
    tiles have at least R·L + 2 rows for their sums and (R - 1)·L + C + 2 for the load of the next
    weights, C more if these come by rows. Each stall is counted: ``busy`` + ``wait_input`` +
    ``wait_room`` + ``idle`` is the number of cycles since reset in which ``i_hold`` was low.

    Parameters
    ----------
    rows, columns : int
        Size of the array (R, C); the link is 16·R bits wide.
    formats : tuple of Format
        Operand formats of the cells, a set of `hw.numeric.product_formats.CELL_SETS`.
    latency : int
        Register stages on a cell's partial-sum path (L).
    accumulator_rows : int
        Rows of each of the two accumulator banks: the most rows of a tile.
    softmax : bool
        Whether it can do the products of attention (docs/fused_softmax.md).

    Members
    -------
    i_activation, i_weight, o_result : vector streams
    i_continues
        With each weight vector: its tile continues the group of the tile before.
    int8, activation_X, weight_X, to_X
        Static: the `hw.arch.words.pcu_word.format_modes` of these formats. Results that are rounded
        have two rows per vector.
    weights_by_row
        Static: a vector of weights is rows of the tile, else a column
        (:class:`hw.array.stationary.StationaryArray`).
    i_beside
        Activity of lanes beside the unit, counted in place of its own while ``works``.
    softmax : ``In(softmax_layout())``
        Only with ``softmax``; static. Its role in attention. With `SCORES`, a tile that does not
        continue begins a query group, and the maxima of a block leave before its rows; with
        `VALUES`, packets of weights begin with rises, and the last row leaves first.
    i_clear
        Only with ``softmax``: the next packet of weights is the first, the next query group too.
    i_hold
        Freezes the counters and nothing else.
    o_issue
        A vector enters the array in this cycle, and its weights are present.
    counters
        Cycles by the unit's activity, or by that of ``i_beside``.

    Raises
    ------
    BadInputError
        R is not 2·C, or a parameter is outside its domain.
    """

    i_activation: stream.Interface
    i_weight: stream.Interface
    i_continues: Signal
    o_result: stream.Interface
    weights_by_row: Signal
    i_beside: data.View[data.StructLayout]
    i_hold: Signal
    o_issue: Signal
    counters: data.View[data.StructLayout]
    softmax: data.View[data.StructLayout]
    i_clear: Signal

    def __init__(
        self,
        *,
        rows: int,
        columns: int,
        formats: tuple[Format, ...],
        latency: int,
        accumulator_rows: int,
        softmax: bool = False,
    ) -> None:
        # A vector of the link is R operands of 16 bits, or a row of C sums of 32 bits.
        if rows != 2 * columns:
            raise BadInputError(
                f"Rows of a matrix unit must be twice its columns, not {rows} for {columns}"
            )
        self._array = ArrayConfig(rows, columns, Dataflow.WS, formats, latency)
        if formats != cell_set([fmt.name for fmt in formats]):
            names = [fmt.name for fmt in formats]
            raise refusal("Formats of a PCU", "be in the order of `OPERANDS`", names)
        ACCUMULATOR_ROWS.require(accumulator_rows)
        self._accumulator_rows = accumulator_rows
        self._softmax = softmax
        super().__init__(
            {
                "i_activation": In(vector_signature(16 * rows)),
                "i_weight": In(vector_signature(16 * rows)),
                "i_continues": In(1),
                "o_result": Out(vector_signature(16 * rows)),
                **dict.fromkeys(format_modes(formats), In(1)),
                "weights_by_row": In(1),
                "i_beside": In(beside_layout()),
                "i_hold": In(1),
                "o_issue": Out(1),
                "counters": Out(activity_layout()),
            }
            | ({"softmax": In(softmax_layout()), "i_clear": In(1)} if softmax else {})
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        array, rows, columns = self._array, self._accumulator_rows, self._array.columns
        m.submodules.core = core = StationaryCore(
            array,
            flags=("last", "final"),
            leaving=("final",),
            rows=rows,
            banks=2,
            # At least four vectors of weights are gathered.
            tiles_ahead=-(-4 // columns),
            by_column=True,
            softmax=self._softmax,
        )
        wiring.connect(m, wiring.flipped(self.i_activation), core.i_moving)
        weight = self._weights(m, core)
        weights = weight.payload.data
        second = array.formats[-1]
        if second.products_per_cycle == 2:
            paired = row_pairs(weights, columns=columns, bits=second.bits)
            pairs = self.integer if array.cell.has_mode else Const(1)
            weights = Mux(self.weights_by_row & pairs, paired, weights)
        m.d.comb += [
            core.i_stationary.payload.eq(weights),
            core.i_stationary.valid.eq(weight.valid),
            weight.ready.eq(core.i_stationary.ready),
            core.moving_mode.eq(self._mode("int8", f"activation_{second}")),
            core.stationary_mode.eq(self._mode("int8", f"weight_{second}")),
            core.i_by_row.eq(self.weights_by_row),
            core.i_mark.eq(self.i_continues),
            self.o_issue.eq(core.o_issue),
        ]
        m.submodules.banks = banks = BankSequencer(columns=columns, rows=rows)
        self._drain(m, core, banks)
        waiting = core.o_waiting
        with m.If(core.o_issue):
            m.d.sync += Check(
                banks.o_begins | ((waiting.row != 0) & (waiting.row < rows)),
                "a group of tiles has more rows than an accumulator bank",
            )
            whole = ~banks.o_begins | banks.o_starts | (waiting.last_row == banks.o_top)
            ended = ~banks.o_adds | ~(waiting.last & waiting.final) | (waiting.row == banks.o_top)
            m.d.sync += Check(whole & ended, "the groups of tiles of a pass differ in rows")
        beside = self.i_beside
        with m.If(~self.i_hold):
            count_activity(
                m,
                self.counters,
                busy=Mux(beside.works, beside.busy, core.o_issue),
                wait_room=Mux(beside.works, beside.wait_room, waiting.valid & waiting.tile_ready),
                idle=Mux(beside.works, beside.idle, ~waiting.valid & banks.o_starts),
            )
        return m

    def _mode(self, *names: str) -> Value:
        """The mode that the unit has of these; 0 if it has none."""
        found = [getattr(self, name) for name in names if name in self.signature.members]
        return found[0] if found else Const(0)

    @property
    def integer(self) -> Value:
        """Whether operands are integers."""
        floats = any(fmt.is_float for fmt in self._array.formats)
        return self._mode("int8") if floats else Const(1)

    def _drain(self, m: Module, core: StationaryCore, banks: BankSequencer) -> None:
        """Add the drain of full banks, and join it and the banks' bookkeeping to the array."""
        array = self._array
        drain = BankDrain(
            columns=array.columns,
            rows=self._accumulator_rows,
            rounded=rounded_formats(array.formats),
            softmax=self._softmax,
        )
        m.submodules.drain = shared(drain)
        waiting, leaving = core.o_waiting, core.o_leaving
        m.d.comb += [
            banks.i_first.eq(waiting.first),
            banks.i_last.eq(waiting.last),
            banks.i_final.eq(waiting.final),
            banks.i_row.eq(waiting.row),
            banks.i_continues.eq(core.o_mark),
            banks.i_issue.eq(core.o_issue),
            core.i_begins.eq(banks.o_begins),
            core.i_accumulate.eq(banks.o_adds),
            core.i_bank.eq(banks.o_bank),
            core.i_room.eq(banks.o_room),
            banks.i_ends.eq(leaving.valid & leaving.final),
            core.i_store.eq(leaving.valid),
            core.i_store_bank.eq(banks.o_write_bank),
            core.i_drain.active.eq(banks.o_full),
            core.i_drain.access.enable.eq(drain.o_enable),
            core.i_drain.access.bank.eq(banks.o_full_bank),
            core.i_drain.access.row.eq(drain.o_row),
            drain.i_sums.eq(core.o_drained),
            drain.i_start.eq(banks.o_full),
            drain.i_last_row.eq(banks.o_last_row),
            banks.i_read_rows.eq(drain.o_read_rows),
            banks.i_done.eq(drain.o_done),
            drain.integer.eq(self.integer),
            *(getattr(drain, mode).eq(getattr(self, mode)) for mode in drain.modes.values()),
        ]
        wiring.connect(m, drain.o_stream, wiring.flipped(self.o_result))
        if self._softmax:
            self._scores(m, core, banks, drain)

    def _is(self, role: SoftmaxRole) -> Value:
        """Whether it has a role in attention."""
        return Value.cast(self.softmax.role) == role.value

    def _weights(self, m: Module, core: StationaryCore) -> stream.Interface:
        """Stream of the vectors of weight tiles, from the consumer's side."""
        if not self._softmax:
            return self.i_weight
        loader = RiseLoader(width_bits=16 * self._array.rows, columns=self._array.columns)
        m.submodules.loader = loader
        wiring.connect(m, wiring.flipped(self.i_weight), loader.i_stream)
        m.d.comb += [
            loader.active.eq(self._is(SoftmaxRole.VALUES)),
            loader.i_clear.eq(self.i_clear),
            core.i_rise.eq(loader.o_rise),
        ]
        return loader.o_stream

    def _scores(
        self, m: Module, core: StationaryCore, banks: BankSequencer, drain: BankDrain
    ) -> None:
        """Mask sums, and lead with the maxima of blocks or with the last row."""
        m.submodules.keys = keys = KeyCounters(self._array.columns)
        leaving, scores = core.o_leaving, self._is(SoftmaxRole.SCORES)
        # Here the mark of a tile does not mean that its rows follow those of the tile before.
        with m.If(scores):
            m.d.comb += banks.i_continues.eq(0)
        # Whether the block in a bank is the first of a query group.
        group = Array(Signal(name=f"group_{bank}") for bank in range(2))
        with m.If(core.o_issue & banks.o_starts):
            m.d.sync += group[banks.o_bank].eq(~core.o_mark)
        m.d.comb += [
            keys.mask.eq(self.softmax.mask),
            keys.i_clear.eq(self.i_clear),
            keys.i_lands.eq(leaving.valid & scores),
            keys.i_begins.eq(leaving.begins),
            keys.i_ends.eq(leaving.final),
            keys.i_group.eq(group[banks.o_write_bank]),
            core.i_hidden.eq(Mux(scores, keys.o_hidden, 0)),
            drain.leads_maxima.eq(scores),
            drain.leads_last_row.eq(self._is(SoftmaxRole.VALUES)),
            drain.i_maxima.eq(core.o_maxima),
            drain.i_group.eq(group[banks.o_full_bank]),
        ]
