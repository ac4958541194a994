"""Sums of a matrix unit that are drained: two accumulator banks and the drain of a full one."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Assert as Check
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.array.dataflow import ArrayConfig
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.delay import delayed
from hw.lib.stream import vector_signature
from hw.matrix.accumulator import Accumulators, access_layout
from hw.matrix.bank_sequencer import BankSequencer
from hw.matrix.drain import BankDrain
from hw.matrix.stationary_core import sums_signature
from hw.matrix.sum_guard import SumGuard
from hw.matrix.write_back import WriteBack

__all__ = ["FLAGS", "DrainedSums"]

#: Flags of a vector: it is the last of its tile, or of its pass.
FLAGS = ("last", "final")
_BANKS = 2


class DrainedSums(Component):
    """Partial sums of passes: accumulated in one bank, while the other is drained as one packet.

    A pass ends with a vector that has the flag ``final``; all its tiles have equally many rows, at
    most those of a bank.

    Parameters
    ----------
    config : ArrayConfig
        Parameters of the array.
    rows : int
        Rows of a bank.

    Members
    -------
    i_sums : ``In(sums_signature(columns, FLAGS))``
    integer, to_bf16
        Static, as of :class:`hw.matrix.drain.BankDrain`.
    o_first_of_pass
        The next vector's tile is the first of its pass.
    o_stream : vector stream
    """

    i_sums: Any
    integer: Signal
    to_bf16: Signal
    o_first_of_pass: Signal
    o_stream: stream.Interface

    def __init__(self, config: ArrayConfig, *, rows: int) -> None:
        self._config, self._rows = config, rows
        super().__init__(
            {
                "i_sums": In(sums_signature(config.columns, FLAGS)),
                "integer": In(1),
                "to_bf16": In(1),
                "o_first_of_pass": Out(1),
                "o_stream": Out(vector_signature(32 * config.columns)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        columns, rows, cycles = self._config.columns, self._rows, self._config.latency_cycles
        sums, flags = self.i_sums, self.i_sums.flags
        m.submodules.guard = guard = SumGuard(rows=rows, cycles=cycles)
        m.submodules.banks = banks = BankSequencer(columns=columns, rows=rows)
        m.submodules.write_back = back = WriteBack(flags=FLAGS, rows=rows, cycles=cycles)
        m.submodules.accumulators = accumulators = Accumulators(
            columns=columns, rows=rows, banks=_BANKS
        )
        drain = BankDrain(columns=columns, rows=rows)
        m.submodules.drain = shared(drain)
        read: Any = Signal(access_layout(rows, _BANKS))
        m.d.comb += [
            sums.room.eq(banks.o_room & (banks.o_first_of_pass | guard.o_ready)),
            guard.i_issue.eq(sums.issue),
            guard.i_last.eq(flags.last),
            banks.i_first.eq(sums.first),
            banks.i_last.eq(flags.last),
            banks.i_final.eq(flags.final),
            banks.i_issue.eq(sums.issue),
            back.i_issue.eq(sums.issue),
            back.i_flags.eq(flags),
            banks.i_ends.eq(back.o_vector.valid & back.o_vector.final),
            banks.i_row.eq(back.o_row),
            self.o_first_of_pass.eq(banks.o_first_of_pass),
            read.enable.eq(sums.issue & ~banks.o_first_of_pass),
            read.bank.eq(banks.o_bank),
            read.row.eq(guard.o_row),
            accumulators.i_read.eq(delayed(m, read, 1, name="read_request")),
            accumulators.i_write.enable.eq(back.o_vector.valid),
            accumulators.i_write.bank.eq(banks.o_write_bank),
            accumulators.i_write.row.eq(back.o_row),
            accumulators.i_sums.eq(sums.sums),
            sums.old.eq(accumulators.o_old),
            accumulators.i_draining.eq(banks.o_full),
            accumulators.i_drain.enable.eq(drain.o_enable),
            accumulators.i_drain.bank.eq(banks.o_full_bank),
            accumulators.i_drain.row.eq(drain.o_row),
            drain.i_sums.eq(accumulators.o_drained),
            drain.i_start.eq(banks.o_full),
            drain.i_last_row.eq(banks.o_last_row),
            banks.i_done.eq(drain.o_done),
            drain.integer.eq(self.integer),
            drain.to_bf16.eq(self.to_bf16),
        ]
        wiring.connect(m, drain.o_stream, wiring.flipped(self.o_stream))
        with m.If(sums.issue):
            m.d.sync += Check(
                (guard.o_row != rows - 1) | flags.last,
                "a tile has more rows than an accumulator bank",
            )
            m.d.sync += Check(
                banks.o_first_of_pass | ~flags.last | (guard.o_row == guard.last_row),
                "the tiles of a pass differ in rows",
            )
        return m
