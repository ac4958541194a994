"""Property of output-stationary arrays: of the sums that leave them."""

from __future__ import annotations

from collections.abc import Iterable

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from gen.properties.support import always
from hw.systolic.output_unit import DrainSequencer

__all__ = ["DrainIsEmptied"]

#: Width of the number of a tile.
_TAG = 2
#: Widths of the number of a row of results in its tile, and among those of some tiles.
_NUMBER, _WIDE = 4, 5


def _count(bits: Value, start: int, stop: int) -> Value:
    """How many of these bits are 1."""
    return sum((bits[index] for index in range(start, stop)), Const(0))


def _any(bits: Iterable[Value]) -> Value:
    return Cat(*bits).any()


def _tagged(tile: Value, number: Value | int) -> Value:
    """Number of a tile and of a row of results."""
    return Cat(tile[:_TAG], (Const(0, _NUMBER) + number)[:_NUMBER])


class DrainIsEmptied(wiring.Component):
    """No sum of an output-stationary array is lost: each leaves before another takes its place.

    Parameters
    ----------
    rows, latency : int
    fault : bool
        A tile begins its last step without asking, to see the proof fail.
    """

    wants: Signal
    finish: Signal
    room: Signal
    reached: Signal

    def __init__(self, rows: int, latency: int, fault: bool = False) -> None:
        self._rows = rows
        self._latency = latency
        self._fault = fault
        super().__init__({"wants": In(1), "finish": In(1), "room": In(1), "reached": Out(2)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rows, latency = self._rows, self._latency
        sums = rows * latency
        dut = DrainSequencer(rows=rows, latency=latency)
        m.submodules.dut = inner = Module()
        dut.add_to(inner)
        left, line = dut.left, dut.line
        closes = self.wants & (dut.free | self._fault)
        m.d.comb += [dut.closes.eq(closes), dut.room.eq(self.room)]

        # Tiles that were closed, and those whose rows of results have all left.
        closed, gone = Signal(_TAG), Signal(_TAG)
        m.d.sync += [closed.eq(closed + closes), gone.eq(gone + (dut.shift & dut.last))]
        # Whether a tile was closed 1, 2, ... cycles ago. Its sums come to row r of the array one
        # after the other, from 3 + r cycles after that on.
        history = Signal(len(line))
        m.d.sync += history.eq(Cat(closes, history)[: len(history)])
        tile_of = [(closed - 1 - _count(history, 0, age))[:_TAG] for age in range(len(history))]
        leaves = Signal(range(sums))
        m.d.comb += leaves.eq(_count(dut.emptied, 0, rows - 1) * latency + dut.left_part)

        drains = []
        above: Value = Const(0, _TAG + _NUMBER)
        for row in range(rows):
            places = range(latency)
            drain = [Signal(_TAG + _NUMBER, name=f"drain_{row}_{place}") for place in places]
            enters, comes = above, dut.shifts[row]
            for index in range(latency):
                came = history[2 + row + index]
                number = (rows - 1 - row) * latency + index
                enters = Mux(came, _tagged(tile_of[2 + row + index], number), enters)
                comes = comes | came
            with m.If(comes):
                m.d.sync += [
                    place.eq(old) for place, old in zip(drain, [enters, *drain[:-1]], strict=True)
                ]
            above = drain[-1]
            drains.append(drain)
        m.d.comb += always(~dut.shift | (drains[-1][-1] == _tagged(gone, leaves)))

        # What holds in every state, for the induction. Every row of results of the tiles that
        # have not gone has left, is on its way, or has no place yet.
        tiles = (closed - gone)[:_TAG]
        m.d.comb += [
            always(leaves + _count(line, 0, len(line)) + left == tiles * sums),
            always(left <= sums),
            always(dut.left_part < latency),
            always((dut.emptied & (dut.emptied + 1)[: rows - 1]) == 0),
            *(
                always((left != count) | (dut.part == (sums - count) % latency))
                for count in range(sums + 1)
            ),
            always((dut.left_part == 0) | dut.shift),
        ]
        for age in range(len(line)):
            # The rows of a lane follow one another; they take their places after their tile was
            # closed.
            order = (leaves + _count(line, age + 1, len(line)))[:_WIDE]
            ends = _any(order == last for last in range(latency - 1, 1 << _WIDE, latency))
            since = _count(line, 0, age) + left
            m.d.comb += [
                always(~line[age] | ends | (line[age - 1] if age else dut.take)),
                always(~history[age] | (since == (_count(history, 0, age) + 1) * sums)),
            ]
        for row, drain in enumerate(drains):
            lowest = (rows - 1 - row) * latency
            still = [
                _any(history[age] & (tile_of[age] == tile) for age in range(2 + row + latency))
                for tile in (gone, (gone + 1)[:_TAG])
            ]
            for place, held in enumerate(drain):
                after = latency - 1 - place
                stays = (tiles != 0) & ~still[0] & (leaves + after < (row + 1) * latency)
                m.d.comb += [
                    # Of the tile that leaves, of the next one, of one whose sums are coming.
                    always(~stays | (held == _tagged(gone, leaves + (lowest + after)))),
                    always((tiles < 2) | still[1] | (held == _tagged(gone + 1, lowest + after))),
                    *(
                        always(
                            ~history[2 + row + count]
                            | (
                                held
                                == _tagged(tile_of[2 + row + count], lowest + count - 1 - place)
                            )
                        )
                        for count in range(place + 1, latency)
                    ),
                ]
        overlaps = dut.shift & (history[2:-1] != 0) & (tiles == 2)
        m.d.comb += self.reached.eq(Cat(overlaps, closes & (left == 1)))
        return m
