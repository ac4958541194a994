"""Properties of arrays and matrix units: the list, and those of accumulators and result FIFO."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from amaranth.hdl import Array, Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from gen.formal import Property
from gen.properties.array_drains import DrainIsEmptied
from gen.properties.array_ports import OffersStay
from gen.properties.array_stationary import SumsMeetTheirRow, SwapKeepsProducts
from gen.properties.support import always, given
from hw.array.dataflow import Dataflow
from hw.lib.delay import delayed
from hw.matrix.result_fifo import ResultFifo
from hw.matrix.sum_guard import SumGuard

__all__ = ["ARRAY_PROPERTIES", "RowsKeepTheirPlace", "SumsAreThere"]


class SumsAreThere(wiring.Component):
    """A sum is read after it was stored: no vector adds to one that is still in flight.

    The array and the adders below it are modelled by the latency of a sum.

    Parameters
    ----------
    cycles : int
        Latency from a vector to the first one that may read its sum.
    fault : int
        Cycles by which the guard underestimates a sum's latency: a fault that must be found.
    """

    valid: Signal
    begins: Signal
    accumulate: Signal
    reached: Signal

    def __init__(self, cycles: int, fault: int = 0) -> None:
        self._cycles = cycles
        self._fault = fault
        super().__init__({"valid": In(1), "begins": In(1), "accumulate": In(1), "reached": Out(2)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = 4
        dut = SumGuard(rows=depth, cycles=self._cycles - self._fault)
        m.submodules.dut = dut
        issue = self.valid & (~self.accumulate | dut.o_ready)
        # Groups of any number of rows that fit the memory; the first vector begins one.
        begun = Signal()
        m.d.sync += begun.eq(begun | issue)
        m.d.comb += [
            dut.i_issue.eq(issue),
            dut.i_begins.eq(self.begins),
            given(~issue | self.begins | (begun & (dut.o_row != 0))),
        ]
        # With sums that enter the array, a vector of cycle t is stored in t + cycles, readable from
        # the next cycle on, and one of cycle t reads in t + 1. With an adder below the array both
        # come later, by the same number of cycles.
        entry: Value = Cat(issue, dut.o_row)
        waits: list[Value] = []
        for age in range(1, self._cycles):
            entry = delayed(m, entry, 1, name=f"age_{age}", reset=True)
            waits.append(entry[0] & (entry[1:] == dut.o_row))
        m.d.comb += always(~(issue & self.accumulate) | ~Cat(*waits).any())
        # Rows in flight are consecutive, so as many as a tile has are different rows.
        line = dut.line
        count = sum((line[index] for index in range(1, len(line))), line[0])
        m.d.comb += [
            always(dut.in_flight == count),
            self.reached.eq(
                Cat(
                    issue & self.accumulate & (dut.in_flight == dut.last_row),
                    self.valid & self.accumulate & ~dut.o_ready,
                )
            ),
        ]
        return m


class RowsKeepTheirPlace(wiring.Component):
    """Rows of results leave whole, in order, unchanged: none is overwritten before it was read.

    Rows arrive any number of cycles after their entry was reserved, so the proof holds for every
    height and latency of the array. A row that is offered stays, and one that is complete is
    offered within two cycles. Each sum is one free bit, repeated 32 times.

    Parameters
    ----------
    columns : int
    fault : bool
        The FIFO grants one entry too many: a fault, which the proof must find.
    """

    take: Signal
    write: Signal
    last: Signal
    sums: Signal
    ready: Signal
    reached: Signal

    def __init__(self, columns: int, fault: bool = False) -> None:
        self._columns = columns
        self._fault = fault
        super().__init__(
            {name: In(1) for name in ("take", "write", "last", "ready")}
            | {"sums": In(columns), "reached": Out(2)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        places = 4
        together = 0 if self._fault else 1
        m.submodules.dut = dut = ResultFifo(columns=self._columns, rows=places, together=together)
        coming = Signal(range(places + 2))
        m.d.comb += [
            dut.i_rows.reserve.eq(self.take),
            dut.i_rows.write.eq(self.write),
            dut.i_rows.last.eq(self.last),
            *(dut.i_rows.sums[index].eq(bit.replicate(32)) for index, bit in enumerate(self.sums)),
            dut.o_rows.ready.eq(self.ready),
            given(~self.take | dut.i_rows.room),
            given(~self.write | (coming != 0)),
        ]
        m.d.sync += coming.eq(coming + self.take - self.write)

        # Expected rows in order: one entry more than the FIFO has, for the row that is offered.
        row = dut.o_rows
        handed = row.valid & self.ready
        leaving = Signal(range(2 * places))
        m.d.sync += leaving.eq(leaving + handed)
        arrives: Value = self.write
        begun = None
        marks = (self.last, *self.sums)
        shown = (row.payload.last, *(sum_ for sum_ in row.payload.sums))
        for index, (bit, seen) in enumerate(zip(marks, shown, strict=True)):
            if index > 1:
                arrives = delayed(m, arrives, 1, name=f"arrives_{index}", reset=True)
            told = Array(Signal(name=f"told_{index}_{at}") for at in range(2 * places))
            coming_to = Signal(range(2 * places), name=f"coming_to_{index}")
            with m.If(arrives):
                m.d.sync += [told[coming_to].eq(bit), coming_to.eq(coming_to + 1)]
            m.d.comb += always(~row.valid | (seen == told[leaving].replicate(len(seen))))
            begun = coming_to if begun is None else begun
        whole = (coming_to - leaving)[: len(leaving)]
        waits, waited = Signal(), Signal()
        m.d.sync += [waits.eq(row.valid & ~self.ready), waited.eq((whole != 0) & ~handed)]
        m.d.comb += [
            always(~row.valid | (whole != 0)),
            always(~waits | row.valid),
            always(~waited | row.valid),
            self.reached.eq(
                Cat(
                    coming + (begun - leaving)[: len(leaving)] == places + 1,
                    (whole == places + 1) & ~self.ready,
                )
            ),
        ]
        return m


def _properties() -> tuple[Property, ...]:
    found = []
    for rows, columns in ((2, 2), (3, 2)):
        for latency in (1, 2, 3):
            size = rows, columns, latency
            harnesses: dict[str, Callable[[], wiring.Component]] = {
                "a swap changes no product in flight": partial(SwapKeepsProducts, *size),
                "a vector adds to the sum of its own row": partial(SumsMeetTheirRow, *size),
                "no sum leaves its cell over another": partial(DrainIsEmptied, *size),
            }
            sizes = {"rows": rows, "columns": columns, "latency": latency}
            faults = 12 if size == (2, 2, 1) else 0
            found += [
                Property("array", name, sizes, make, "PDR", faults, faulty="top.dut*")
                for name, make in harnesses.items()
            ]
            found += [
                Property(
                    "array",
                    f"offers of a {dataflow.value} unit stay",
                    sizes,
                    partial(OffersStay, *size, dataflow),
                    "PDR",
                    faults,
                    faulty=_PORTS,
                )
                for dataflow in Dataflow
            ]
    for latency in (1, 2, 3):
        below = partial(SumsAreThere, 2 + latency)
        name = "a sum is stored before the adder below takes it"
        found.append(Property("array", name, {"latency": latency}, below))
    for columns in (2, 3):
        make = partial(RowsKeepTheirPlace, columns)
        name = "rows of results leave whole, in order, unchanged"
        found.append(Property("array", name, {"columns": columns}, make, "PDR", faulty="top.dut*"))
    return tuple(found)


#: Modules to inject faults into for the properties of a unit's streams.
_PORTS = "top.dut.rows.port top.dut.core.port top.dut.output.port"
#: Properties of arrays, for every latency and size named here.
ARRAY_PROPERTIES = _properties()
