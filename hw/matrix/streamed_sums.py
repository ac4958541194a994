"""Sums of a matrix unit that stream out: accumulated over tiles, those of the last tile leave."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Assert as Check
from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib.wiring import In, Out

from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.delay import delayed
from hw.matrix.accumulator import Accumulators, access_layout
from hw.matrix.bottom_adder import BottomAdder
from hw.matrix.result_fifo import rows_signature
from hw.matrix.stationary_core import sums_signature
from hw.matrix.sum_guard import SumGuard
from hw.matrix.unit_config import UnitConfig
from hw.matrix.write_back import WriteBack

__all__ = ["FLAGS", "StreamedSums"]

#: Flags of a vector: it is the last of its tile; it adds to the sums of the same row of the tile
#: before; its sums leave as results, otherwise they wait for the next tile.
FLAGS = ("last", "accumulate", "finish")


class StreamedSums(Component):
    """Partial sums of tiles in one accumulator bank; sums of vectors with ``finish`` leave at once.

    Parameters
    ----------
    config : UnitConfig

    Members
    -------
    i_sums : ``In(sums_signature(columns, FLAGS))``
    mode
        Static: 1 for int32 sums, below cells with a mode input.
    o_rows : ``Out(rows_signature(columns))``
    """

    i_sums: Any
    mode: Signal
    o_rows: Any

    def __init__(self, config: UnitConfig) -> None:
        self._config = config
        columns = config.array.columns
        super().__init__(
            {
                "i_sums": In(sums_signature(columns, FLAGS)),
                "mode": In(1),
                "o_rows": Out(rows_signature(columns)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, columns = self._config, self._config.array.columns
        rows, cycles = config.accumulator_rows, config.array.latency_cycles
        sums, flags, results = self.i_sums, self.i_sums.flags, self.o_rows
        m.submodules.guard = guard = SumGuard(rows=rows, cycles=config.sum_cycles)
        m.submodules.write_back = back = WriteBack(flags=FLAGS, rows=rows, cycles=cycles)
        m.submodules.accumulators = accumulators = Accumulators(columns=columns, rows=rows, banks=1)
        read: Any = Signal(access_layout(rows, 1))
        m.d.comb += [
            sums.room.eq((~flags.accumulate | guard.o_ready) & (~flags.finish | results.room)),
            results.reserve.eq(sums.issue & flags.finish),
            guard.i_issue.eq(sums.issue),
            guard.i_last.eq(flags.last),
            back.i_issue.eq(sums.issue),
            back.i_flags.eq(flags),
        ]
        leaving, row = back.o_vector, Value.cast(back.o_row)
        if config.bottom:
            # Delayed with the sums; the adders read the old ones.
            m.d.comb += [
                read.enable.eq(leaving.accumulate),
                read.row.eq(row),
                accumulators.i_read.eq(read),
                sums.old.eq(0),
                results.sums.eq(self._added(m, accumulators.o_old)),
            ]
            cycles = config.adding_cycles
            leaving = delayed(m, leaving, cycles, name="leaving", reset=True)
            row = delayed(m, row, cycles, name="leaving_row", reset=True)
        else:
            m.d.comb += [
                read.enable.eq(flags.accumulate),
                read.row.eq(guard.o_row),
                accumulators.i_read.eq(delayed(m, read, 1, name="read_request")),
                sums.old.eq(accumulators.o_old),
                results.sums.eq(sums.sums),
            ]
        m.d.comb += [
            accumulators.i_write.enable.eq(leaving.valid & ~leaving.finish),
            accumulators.i_write.row.eq(row),
            accumulators.i_sums.eq(results.sums),
            results.write.eq(leaving.valid & leaving.finish),
            results.last.eq(leaving.last),
        ]
        with m.If(sums.issue):
            # Sums that leave at once need no accumulator, however many rows their tile has.
            m.d.sync += Check(
                flags.last | (guard.o_row != rows - 1) | (flags.finish & ~flags.accumulate),
                "a tile has more rows than there are accumulators",
            )
        return m

    def _added(self, m: Module, old: Any) -> Value:
        """Sums of all columns, added below the array to the old ones."""
        added = []
        for index in range(self._config.array.columns):
            adder = BottomAdder(self._config.array.cell)
            m.submodules[f"adder_{index}"] = shared(adder)
            m.d.comb += [
                adder.i_sum.eq(self.i_sums.sums[index]),
                adder.i_old.eq(old[index]),
                adder.mode.eq(self.mode),
            ]
            added.append(adder.o_sum)
        return Cat(*added)
