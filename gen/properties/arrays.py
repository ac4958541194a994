"""Properties of arrays: of weights in flight, of sums, of rows of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from gen.formal import Property
from gen.properties.support import always, given
from hw.numeric.formats import int8
from hw.systolic.dataflow import ArrayConfig, Dataflow
from hw.systolic.loader import LoadSequencer, swap_distance
from hw.systolic.output_unit import DrainSequencer
from hw.systolic.skew import delayed
from hw.systolic.sums import ResultQueue, SumGuard

__all__ = [
    "ARRAY_PROPERTIES",
    "DrainIsEmptied",
    "RowsKeepTheirPlace",
    "SumsAreThere",
    "SwapKeepsProducts",
]

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


class SwapKeepsProducts(wiring.Component):
    """Each vector meets, in every cell, the weights of its own tile: none changes in flight.

    The cells are modelled by the numbers of the tiles in their registers, modulo 4.

    Parameters
    ----------
    rows, columns, latency : int
    early : int
        Cycles by which swaps may follow one another too early: a fault, to see the proof fail.
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
        rows, columns = self._config.rows, self._config.columns
        latency, depth = self._config.latency, 4
        dut = LoadSequencer(rows=rows, depth=depth, distance=self._distance)
        m.submodules.dut = inner = Module()
        dut.add_to(inner)

        first = Signal(init=1)
        issue = self.wants & (~first | dut.ready)
        swap = issue & first
        with m.If(issue):
            m.d.sync += first.eq(self.last)
        m.d.comb += [dut.comes.eq(self.comes & dut.room), dut.swap.eq(swap)]

        # The tile that is fetched, the one that is loaded, and the next to be swapped in.
        fetching, loading, next_tile = (Signal(_TAG, name=name) for name in ("f", "l", "n"))
        m.d.sync += [
            fetching.eq(fetching + (dut.fetch & (dut.fetched == rows - 1))),
            loading.eq(fetching),
            next_tile.eq(next_tile + swap),
        ]
        shadow = [Signal(_TAG, name=f"shadow_{row}", init=-1) for row in range(rows)]
        for row in range(rows):
            with m.If(dut.load[row]):
                m.d.sync += shadow[row].eq(loading)
        # What passes a cell: a swap mark and the number of swaps so far, which is one more than
        # the number of the tile in use.
        tile = (next_tile + swap)[:_TAG]
        for row in range(rows):
            here: Value = Cat(swap, tile)
            for stage in range(row * latency + columns):
                at = Signal(1 + _TAG, name=f"at_{row}_{stage}")
                m.d.sync += at.eq(here)
                m.d.comb += always((here[1:] - at[1:] - here[0])[:_TAG] == 0)
                if stage >= row * latency:
                    weight = Signal(_TAG, name=f"weight_{row}_{stage}")
                    with m.If(here[0]):
                        m.d.sync += weight.eq(shadow[row] + 1)
                    # So every vector, wherever it comes, meets its own tile's weight.
                    m.d.comb += always(weight == at[1:])
                here = at

        # What holds in every state, for the induction.
        fetched = dut.fetched
        partly = fetched != 0
        apart = (fetching - next_tile)[:_TAG]
        m.d.comb += [
            always(dut.level <= depth),
            always(fetched < rows),
            always(apart == Mux(dut.waiting, ~partly, Mux(partly, 3, 0))),
            always(~dut.first_loaded | dut.waiting),
            always(dut.waiting | ~partly | (dut.level >= rows - fetched)),
            always(dut.wave <= self._distance - 3),
        ]
        for row in range(rows):
            follows = (row + 1) % rows
            age = (row >= fetched) + dut.load[row]
            m.d.comb += [
                always(~dut.load[row] | (fetched == follows)),
                always(shadow[row] == (fetching - age)[:_TAG]),
            ]
        since = Signal(range(self._distance + 2), init=self._distance + 1)
        m.d.sync += since.eq(Mux(swap, 1, Mux(since > self._distance, since, since + 1)))
        m.d.comb += [
            always(
                (since > self._distance)
                | (dut.wave == 0)
                | (dut.wave + since == self._distance - 2)
            ),
            always((since <= self._distance) | (dut.wave == 0)),
            self.reached.eq(Cat(swap & (since == self._distance), swap & dut.load.any())),
        ]
        return m


class SumsAreThere(wiring.Component):
    """A sum is asked for after it was stored: no vector adds to what is still on its way.

    Parameters
    ----------
    rows, latency : int
        Of the array.
    fault : int
        Cycles that the guard believes a sum takes less than it does, to see the proof fail.
    """

    valid: Signal
    last: Signal
    accumulate: Signal
    reached: Signal

    def __init__(self, rows: int, latency: int, fault: int = 0) -> None:
        self._cycles = 2 + rows * latency
        self._fault = fault
        super().__init__({"valid": In(1), "last": In(1), "accumulate": In(1), "reached": Out(2)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = 4
        dut = SumGuard(rows=depth, cycles=self._cycles - self._fault)
        m.submodules.dut = inner = Module()
        dut.add_to(inner)
        issue = self.valid & (~self.accumulate | dut.there)
        m.d.comb += [dut.issue.eq(issue), dut.last.eq(self.last)]
        # An accumulating tile is as high as the one before; none is higher than the memory.
        m.d.comb += [
            given(~issue | self.last | (dut.row != depth - 1)),
            given(~(issue & self.accumulate) | (self.last == (dut.row == dut.last_row))),
        ]
        # A vector of cycle t is stored in t + cycles and can be read from the next cycle on; one
        # of cycle t reads in t + 1.
        entry: Value = Cat(issue, dut.row)
        waits: list[Value] = []
        for age in range(1, self._cycles):
            entry = delayed(m, entry, 1, name=f"age_{age}", reset=True)
            waits.append(entry[0] & (entry[1:] == dut.row))
        m.d.comb += always(~(issue & self.accumulate) | ~Cat(*waits).any())
        # Rows in flight follow one another, so as many as a tile has are of different rows.
        line = dut.line
        count = sum((line[index] for index in range(1, len(line))), line[0])
        m.d.comb += [
            always(dut.in_flight == count),
            self.reached.eq(
                Cat(
                    issue & self.accumulate & (dut.in_flight == dut.last_row),
                    self.valid & self.accumulate & ~dut.there,
                )
            ),
        ]
        return m


class RowsKeepTheirPlace(wiring.Component):
    """A row of results is overwritten by none before it was read, and read once it is whole.

    Rows arrive any number of cycles after their place was taken, so the proof holds for every
    height and latency of the array before the queue. A row that is offered stays.

    Parameters
    ----------
    columns : int
    fault : bool
        Places are given away one too many, to see the proof fail.
    """

    take: Signal
    write: Signal
    ready: Signal
    reached: Signal

    def __init__(self, columns: int, fault: bool = False) -> None:
        self._columns = columns
        self._fault = fault
        super().__init__({"take": In(1), "write": In(1), "ready": In(1), "reached": Out(2)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        places = 4
        m.submodules.dut = dut = ResultQueue(columns=self._columns, rows=places)
        coming = Signal(range(places + 2))
        m.d.comb += [
            dut.i_take.eq(self.take),
            dut.i_write.eq(self.write),
            dut.o_rows.ready.eq(self.ready),
            given(~self.take | dut.o_room | self._fault),
            given(~self.write | (coming != 0)),
        ]
        m.d.sync += coming.eq(coming + self.take - self.write)

        # Unread sums of each column, by place.
        unread = [Signal(places, name=f"unread_{index}") for index in range(self._columns)]
        counts = []
        for index, place in enumerate(dut.places):
            written = Mux(dut.o_write[index], 1 << place, 0)
            freed = Mux(dut.read, 1 << dut.read_place, 0)
            m.d.sync += unread[index].eq((unread[index] & ~freed) | written)
            m.d.comb += [
                always((unread[index] & written) == 0),
                always((freed & ~unread[index]) == 0),
            ]
            counts.append(sum((unread[index][at] for at in range(1, places)), unread[index][0]))
        m.d.comb += [
            always(dut.taken == coming + counts[0]),
            always(dut.taken <= places),
            always(dut.here == counts[-1]),
        ]
        stored = Signal(range(places + 1))
        m.d.comb += stored.eq(counts[0])
        ring = Array([(1 << count) - 1 for count in range(places + 1)])
        turned = (ring[stored] << dut.read_place) | (ring[stored] << dut.read_place) >> places
        m.d.comb += [
            always(unread[0] == turned[:places]),
            always(dut.place == (dut.read_place + stored)[: len(dut.place)]),
        ]
        for index in range(1, self._columns):
            moving = Mux(dut.o_write[index], 1 << dut.places[index], 0)
            m.d.comb += always(unread[index - 1] == unread[index] | moving)

        waiting = Signal()
        m.d.sync += waiting.eq(dut.o_rows.valid & ~self.ready)
        was_read = Signal()
        m.d.sync += was_read.eq(dut.read)
        m.d.comb += [
            always(~waiting | dut.o_rows.valid),
            # The memories keep their output unless they are read.
            always(~waiting | ~was_read),
            self.reached.eq(
                Cat((dut.taken == places) & dut.read, (stored == places) & ~self.ready)
            ),
        ]
        return m


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


def _properties() -> tuple[Property, ...]:
    found = []
    for rows, columns in ((2, 2), (3, 2)):
        for latency in (1, 2, 3):
            sizes = {"rows": rows, "columns": columns, "latency": latency}
            harnesses: dict[str, Callable[[], wiring.Component]] = {
                "a swap changes no product in flight": partial(
                    SwapKeepsProducts, rows, columns, latency
                ),
                "a sum is stored before it is added to": partial(SumsAreThere, rows, latency),
                "no sum leaves its cell over another": partial(DrainIsEmptied, rows, latency),
            }
            found += [Property("array", name, sizes, make) for name, make in harnesses.items()]
    for columns in (2, 3):
        make = partial(RowsKeepTheirPlace, columns)
        name = "no result is overwritten before it is read"
        found.append(Property("array", name, {"columns": columns}, make))
    return tuple(found)


#: What is proved of arrays, for every latency and size that is named.
ARRAY_PROPERTIES = _properties()
