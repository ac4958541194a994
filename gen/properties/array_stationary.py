"""Properties of stationary-operand arrays, proved on their own wiring (`array_tags`)."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from gen.properties.array_tags import lane, tagged, view
from gen.properties.support import always, given
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.array.stationary import StationaryArray
from hw.lib.delay import delayed
from hw.matrix.accumulator import Accumulators
from hw.matrix.load_sequencer import LoadSequencer
from hw.matrix.sum_guard import SumGuard
from hw.matrix.weight_buffer import swap_distance
from hw.matrix.write_back import WriteBack
from hw.numeric.formats import int8

__all__ = ["SumsMeetTheirRow", "SwapKeepsProducts"]

_TILE, _ROW, _TIME, _COLUMN = 2, 2, 3, 1
_MOVING = data.StructLayout({"tile": _TILE, "row": _ROW, "time": _TIME})
_STAYING = data.StructLayout({"tile": _TILE, "row": _ROW, "column": _COLUMN})
_SUM = data.StructLayout({"good": 1, "row": _ROW, "time": _TIME, "column": _COLUMN})


def _product_of_one_tile(a: Value, b: Value, old: Value) -> Value:
    """Whether both operands belong to one tile and row, and the partial sum to the same vector."""
    moving, staying, above = view(_MOVING, a), view(_STAYING, b), view(_SUM, old)
    good = (
        above.good
        & (moving.tile == staying.tile)
        & (moving.row == staying.row)
        & (above.row == moving.row)
        & (above.time == moving.time)
        & (above.column == staying.column)
    )
    return Cat(good, (above.row + 1)[:_ROW], above.time, above.column)


class SwapKeepsProducts(wiring.Component):
    """Each vector meets, in every cell, the weights of its own tile: none changes in flight.

    The array is the unmodified RTL; its lanes carry the numbers of their tile, modulo 4, of
    their row and column, and of their cycle, modulo 8.

    Parameters
    ----------
    rows, columns, latency : int
    early : int
        Cycles by which swaps may follow one another too early: a fault, which the proof must find.
    """

    comes: Signal
    wants: Signal
    last: Signal
    reached: Signal

    def __init__(self, rows: int, columns: int, latency: int, early: int = 0) -> None:
        self._config = ArrayConfig(rows, columns, Dataflow.WS, (int8,), latency)
        self._distance = swap_distance(self._config) - early
        super().__init__({"comes": In(1), "wants": In(1), "last": In(1), "reached": Out(2)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        rows, columns, width = config.rows, config.columns, config.lane_bits
        array = StationaryArray(config)
        wave = self._distance - 3
        loader = LoadSequencer(vectors=rows, depth=4, wave=wave, whole_tiles=False)
        m.submodules.dut = inner = Module()
        inner.submodules.loader = loader
        inner.submodules.array = tagged(array, _product_of_one_tile)

        first = Signal(init=1)
        issue = self.wants & (~first | loader.o_ready)
        swap = issue & first
        with m.If(issue):
            m.d.sync += first.eq(self.last)
        # The tile that is fetched, the one that is loaded, and the one in use.
        fetching, loading, used = (Signal(_TILE, name=name) for name in ("f", "l", "u"))
        whole = loader.o_fetch & (loader.fetched == rows - 1)
        m.d.sync += [fetching.eq(fetching + whole), loading.eq(fetching), used.eq(used + swap)]
        loaded = sum((Mux(loader.o_load[row], row, 0) for row in range(1, rows)), Const(0))
        time = Signal(_TIME)
        m.d.sync += time.eq(time + 1)
        tile = (used + swap - 1)[:_TILE]
        m.d.comb += [
            loader.i_wave.eq(wave),
            loader.i_comes.eq(self.comes & loader.o_room),
            loader.i_swap.eq(swap),
            array.i_swap.eq(swap),
            array.i_load.eq(loader.o_load),
            array.i_moving.eq(
                Cat(*(lane(_MOVING, width, tile=tile, row=row, time=time) for row in range(rows)))
            ),
            array.i_stationary.eq(
                Cat(
                    *(
                        lane(_STAYING, width, tile=loading, row=loaded, column=column)
                        for column in range(columns)
                    )
                )
            ),
        ]
        there = delayed(m, issue, config.latency_cycles, name="there", reset=True)
        for column in range(columns):
            old = lane(_SUM, 32, good=1, row=0, time=time - 2 - column, column=column)
            sum_ = lane(
                _SUM,
                32,
                good=1,
                row=rows % (1 << _ROW),
                time=time - config.latency_cycles - column,
                column=column,
            )
            m.d.comb += [
                array.i_p[column].eq(old),
                always(~there | (array.o_p[column] == sum_)),
            ]
            there = delayed(m, there, 1, name=f"there_{column}", reset=True)

        since = Signal(range(self._distance + 2), init=self._distance + 1)
        m.d.sync += since.eq(Mux(swap, 1, Mux(since > self._distance, since, since + 1)))
        m.d.comb += self.reached.eq(
            Cat(swap & (since == self._distance), swap & loader.o_load.any())
        )
        return m


_SUMMAND = data.StructLayout({"tile": 1, "lane": _ROW, "chosen": 1, "starts": 1})
_STORED = data.StructLayout({"good": 1, "tile": 1, "chosen": 1, "lanes": _ROW})


class SumsMeetTheirRow(wiring.Component):
    """A vector adds to the sum of its own row in the tile before: none is overwritten or missed.

    Array, accumulators, :class:`hw.matrix.sum_guard.SumGuard` and
    :class:`hw.matrix.write_back.WriteBack` are unmodified RTL. One arbitrary row is chosen; lanes
    say whether they belong to it and to which tile, modulo 2.

    Parameters
    ----------
    rows, columns, latency : int
    fault : int
        Cycles by which the guard underestimates a sum's latency: a fault that must be found.
    """

    valid: Signal
    last: Signal
    finish: Signal
    row: Signal
    reached: Signal

    def __init__(self, rows: int, columns: int, latency: int, fault: int = 0) -> None:
        self._config = ArrayConfig(rows, columns, Dataflow.WS, (int8,), latency)
        self._fault = fault
        self._depth = 2
        super().__init__(
            {name: In(1) for name in ("valid", "last", "finish")}
            | {"row": In(range(self._depth)), "reached": Out(2)}
        )

    def _added(self, a: Value, b: Value, old: Value) -> Value:
        """Whether the sum is that of the rows above, or of the tile before, of the same row."""
        summand, above = view(_SUMMAND, a), view(_STORED, old)
        top = Mux(
            summand.starts,
            view(_STORED, old).as_value() == 0,
            above.good
            & above.chosen
            & (above.tile != summand.tile)
            & (above.lanes == self._config.rows),
        )
        inside = (
            above.good & above.chosen & (above.tile == summand.tile) & (above.lanes == summand.lane)
        )
        good = ~summand.chosen | Mux(summand.lane == 0, top, inside)
        return Cat(good, summand.tile, summand.chosen, (summand.lane + 1)[:_ROW])

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, depth = self._config, self._depth
        array = StationaryArray(config)
        guard = SumGuard(rows=depth, cycles=config.latency_cycles - self._fault)
        back = WriteBack(
            flags=("begins", "finish", "chosen", "tile"), rows=depth, cycles=config.latency_cycles
        )
        accumulators = Accumulators(columns=config.columns, rows=depth, banks=1)
        m.submodules.dut = inner = Module()
        inner.submodules.guard = guard
        inner.submodules.write_back = back
        inner.submodules.accumulators = accumulators
        inner.submodules.array = tagged(array, self._added)

        # All tiles of a pass have the same number of rows; all but the last keep their sums.
        accumulate, inside, kept_finish = Signal(), Signal(), Signal()
        height, tile = Signal(range(depth)), Signal()
        chosen_row, started = Signal(range(depth)), Signal()
        m.d.sync += [started.eq(1), chosen_row.eq(Mux(started, chosen_row, self.row))]
        row = guard.o_row
        finish = Mux(inside, kept_finish, self.finish)
        last = Mux(accumulate, row == height, self.last)
        issue = self.valid & started & (~accumulate | guard.o_ready)
        with m.If(issue):
            m.d.sync += [inside.eq(~last), kept_finish.eq(finish)]
            with m.If(last):
                m.d.sync += [tile.eq(~tile), accumulate.eq(~finish), height.eq(row)]
        chosen = row == chosen_row
        tags = {"tile": tile & chosen, "chosen": chosen, "starts": ~accumulate}
        lanes = [
            lane(_SUMMAND, config.lane_bits, lane=index, **tags) for index in range(config.rows)
        ]
        m.d.comb += [
            given(~self.valid | last | (row != depth - 1)),
            guard.i_issue.eq(issue),
            guard.i_begins.eq(~inside),
            array.i_moving.eq(Cat(*lanes)),
            # No sum depends on the stationary operand; yosys would stumble over constants here.
            array.i_swap.eq(issue),
            array.i_load.eq(self.valid.replicate(config.rows)),
            array.i_stationary.eq(Cat(*lanes)),
        ]

        m.d.comb += [
            back.i_issue.eq(issue),
            back.i_flags.eq(Cat(~inside, finish, chosen, tile)),
            accumulators.i_read.enable.eq(
                delayed(m, accumulate, 1, name="read_enable", reset=True)
            ),
            accumulators.i_read.row.eq(delayed(m, row, 1, name="read_row", reset=True)),
            accumulators.i_write.enable.eq(back.o_leaving.valid & ~back.o_leaving.finish),
            accumulators.i_write.row.eq(back.o_leaving.row),
            accumulators.i_sums.eq(array.o_p),
            array.i_p.eq(accumulators.o_old),
        ]
        leaving = back.o_leaving
        expected: Value = Cat(leaving.valid & leaving.chosen, leaving.tile)
        for index in range(config.columns):
            whole = lane(_STORED, 32, good=1, tile=expected[1], chosen=1, lanes=config.rows)
            m.d.comb += always(~expected[0] | (array.o_p[index] == whole))
            expected = delayed(m, expected, 1, name=f"expected_{index}", reset=True)
        m.d.comb += self.reached.eq(
            Cat(
                issue & accumulate & (guard.in_flight == guard.last_row),
                self.valid & accumulate & ~guard.o_ready,
            )
        )
        return m
