"""Properties of arrays: of weights in flight, of sums, of rows of results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from gen.formal import Property
from gen.properties.array_drains import DrainIsEmptied
from gen.properties.support import always, given
from hw.numeric.formats import int8
from hw.systolic.dataflow import ArrayConfig, Dataflow
from hw.systolic.loader import LoadSequencer, swap_distance
from hw.systolic.skew import delayed
from hw.systolic.sums import ResultQueue, SumGuard

__all__ = [
    "ARRAY_PROPERTIES",
    "RowsKeepTheirPlace",
    "SumsAreThere",
    "SwapKeepsProducts",
]

_TAG = 2


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
    cycles : int
        From a vector to the first that may ask for its sum.
    fault : int
        Cycles that the guard believes a sum takes less than it does, to see the proof fail.
    """

    valid: Signal
    last: Signal
    accumulate: Signal
    reached: Signal

    def __init__(self, cycles: int, fault: int = 0) -> None:
        self._cycles = cycles
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
        # With sums that enter the array, a vector of cycle t is stored in t + cycles and can be
        # read from the next cycle on, and one of cycle t reads in t + 1. With an adder below the
        # array both come later, by the same.
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


def _properties() -> tuple[Property, ...]:
    found = []
    for rows, columns in ((2, 2), (3, 2)):
        for latency in (1, 2, 3):
            sizes = {"rows": rows, "columns": columns, "latency": latency}
            harnesses: dict[str, Callable[[], wiring.Component]] = {
                "a swap changes no product in flight": partial(
                    SwapKeepsProducts, rows, columns, latency
                ),
                "a sum is stored before it is added to": partial(SumsAreThere, 2 + rows * latency),
                "no sum leaves its cell over another": partial(DrainIsEmptied, rows, latency),
            }
            found += [Property("array", name, sizes, make) for name, make in harnesses.items()]
    for latency in (1, 2, 3):
        below = partial(SumsAreThere, 2 + latency)
        name = "a sum is stored before the adder below takes it"
        found.append(Property("array", name, {"latency": latency}, below))
    for columns in (2, 3):
        make = partial(RowsKeepTheirPlace, columns)
        name = "no result is overwritten before it is read"
        found.append(Property("array", name, {"columns": columns}, make))
    return tuple(found)


#: What is proved of arrays, for every latency and size that is named.
ARRAY_PROPERTIES = _properties()
