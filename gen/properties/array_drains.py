"""Property of output-stationary arrays: no drained sum is lost."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from gen.properties.array_tags import lane, tagged, view
from gen.properties.support import always
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.array.output_stationary import OutputArray
from hw.lib.delay import delayed
from hw.matrix.drain_sequencer import DrainSequencer
from hw.numeric.formats import int8

__all__ = ["DrainIsEmptied"]

_TILE, _STEP, _LANE, _TURN, _COLUMN = 2, 2, 2, 2, 1
_RIGHT = data.StructLayout(
    {"there": 1, "starts": 1, "tile": _TILE, "step": _STEP, "lane": _LANE, "turn": _TURN}
)
_DOWN = data.StructLayout({"there": 1, "step": _STEP, "column": _COLUMN})
_SUM = data.StructLayout(
    {"good": 1, "tile": _TILE, "lane": _LANE, "turn": _TURN, "column": _COLUMN, "step": _STEP}
)


def _added(a: Value, b: Value, old: Value) -> Value:
    """Tag of a step's sum from its operands and the sum before; without a step the sum stays."""
    right, down, former = view(_RIGHT, a), view(_DOWN, b), view(_SUM, old)
    follows = (
        former.good
        & (former.tile == right.tile)
        & (former.lane == right.lane)
        & (former.turn == right.turn)
        & (former.column == down.column)
        & (former.step == (right.step - 1)[:_STEP])
    )
    good = (
        down.there & (down.step == right.step) & Mux(right.starts, former.as_value() == 0, follows)
    )
    total = Cat(good, right.tile, right.lane, right.turn, down.column, right.step)
    return Mux(right.there, total, former.as_value())


class DrainIsEmptied(wiring.Component):
    """No sum of an output-stationary array is lost: each leaves before another overwrites it.

    The array is the unmodified RTL; its lanes carry the numbers of their tile and step, modulo 4,
    and of their lane, turn and column.

    Parameters
    ----------
    rows, columns, latency : int
    sequencer : type of DrainSequencer
        Drain sequencer; a faulty one shows that the proof can fail.
    """

    wants: Signal
    finish: Signal
    room: Signal
    reached: Signal

    def __init__(
        self,
        rows: int,
        columns: int,
        latency: int,
        sequencer: type[DrainSequencer] = DrainSequencer,
    ) -> None:
        self._config = ArrayConfig(rows, columns, Dataflow.OS, (int8,), latency)
        self._sequencer = sequencer
        super().__init__({"wants": In(1), "finish": In(1), "room": In(1), "reached": Out(2)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        rows, latency, width = config.rows, config.latency, config.lane_bits
        array = OutputArray(config)
        drain = self._sequencer(rows=rows, latency=latency)
        m.submodules.dut = inner = Module()
        inner.submodules.drain = drain
        inner.submodules.array = tagged(array, _added)

        # Steps of L vectors, each in the turn of its sum; the first of a tile defines the turns.
        turn, expected = Signal(range(latency)), Signal(range(latency))
        first, kept_finish = Signal(init=1), Signal()
        ends = expected == latency - 1
        finish = Mux(expected == 0, self.finish, kept_finish)
        mine = (turn == expected) | (first & (expected == 0))
        issue = self.wants & mine & (~(finish & ends) | drain.o_free)
        closes = issue & finish & ends
        after = Mux(ends, 0, expected + 1)
        tile, step = Signal(_TILE), Signal(_STEP)
        m.d.sync += turn.eq(Mux(issue, after, Mux(turn == latency - 1, 0, turn + 1)))
        with m.If(issue):
            m.d.sync += [expected.eq(after), kept_finish.eq(finish)]
            with m.If(ends):
                m.d.sync += [first.eq(finish), step.eq(step + 1), tile.eq(tile + finish)]
        tags: dict[str, Value | int] = {
            "there": 1,
            "starts": first,
            "tile": tile,
            "step": step,
            "turn": expected,
        }
        right = [lane(_RIGHT, width, lane=index, **tags) for index in range(rows)]
        down = [
            lane(_DOWN, width, there=1, step=step, column=index) for index in range(config.columns)
        ]
        m.d.comb += [
            array.i_a.eq(Mux(issue, Cat(*right), 0)),
            array.i_b.eq(Mux(issue, Cat(*down), 0)),
            array.i_first.eq(issue & first),
            array.i_finish.eq(closes),
            array.i_shift.eq(drain.o_shifts),
            drain.i_closes.eq(closes),
            drain.i_room.eq(self.room),
        ]

        # Sum expected to leave next: tiles in order, within a tile lanes, within a lane turns.
        leaving, at_lane, at_turn = Signal(_TILE), Signal(_LANE), Signal(_TURN)
        lane_ends, tile_ends = at_turn == latency - 1, at_lane == rows - 1
        with m.If(drain.o_shift):
            m.d.sync += at_turn.eq(Mux(lane_ends, 0, at_turn + 1))
            with m.If(lane_ends):
                m.d.sync += at_lane.eq(Mux(tile_ends, 0, at_lane + 1))
                with m.If(tile_ends):
                    m.d.sync += leaving.eq(leaving + 1)
        m.d.comb += always(~drain.o_shift | (drain.o_last == (lane_ends & tile_ends)))
        told: Value = Cat(drain.o_shift, leaving, at_lane, at_turn)
        for index in range(config.columns):
            sum_ = Cat(told[0], told[1:], index)
            # Except the step number, which is arbitrary at the end of a tile.
            m.d.comb += always(~told[0] | (array.o_sums[index][: len(sum_)] == sum_))
            told = delayed(m, told, 1, name=f"told_{index}", reset=True)
        overlaps = drain.o_shift & issue & (tile != leaving)
        m.d.comb += self.reached.eq(Cat(overlaps, closes & (drain.left == 1)))
        return m
