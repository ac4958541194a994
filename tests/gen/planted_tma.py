"""Faults planted in the TMA engine, each against the property that it breaks."""

import dataclasses
from types import ModuleType
from typing import Any

from gen.formal import Property, prove
from gen.proof import Outcome
from gen.properties import PROPERTIES
from gen.properties.tma import (
    TMA_PROPERTIES,
    load_completions,
    read_boxes,
    read_reports,
    rows_inside,
    strobes,
)
from hw.lib import bursts, fifo
from hw.tma import box_reader, box_walker, load, realign, reorder_buffer, row_packing, store
from hw.tma.standalone import load_ends
from tests.hw.tma.test_faults import mutant

__all__ = ["PLANTED", "Planted", "refuted", "tma_properties"]


@dataclasses.dataclass(frozen=True)
class Planted:
    """A fault: a piece of a module's source, what it becomes, and where its copy is put in.

    With ``cycles``, the counterexample is sought in traces of that length, which is faster.
    """

    property: str
    module: ModuleType
    healthy: str
    faulty: str
    target: Any
    name: str
    cycles: int = 0

    def plant(self, monkeypatch) -> Property:
        """Put the fault in; the first property of that name that is broken by it."""
        copy: Any = mutant(self.module, self.healthy, self.faulty)
        if isinstance(self.target, type):
            copy = getattr(copy, self.target.__name__)
        monkeypatch.setattr(self.target, self.name, getattr(copy, self.name))
        broken = next(each for each in TMA_PROPERTIES if each.name == self.property)
        if self.cycles:
            return dataclasses.replace(broken, method="bounded", cycles=self.cycles)
        return broken


def refuted(property: Property) -> bool:
    """Whether the property ends in a counterexample: by its own method, or by PDR."""
    method = "bounded" if property.method == "bounded" else "PDR"
    planted = dataclasses.replace(property, method=method, faults=0)
    return prove(planted).outcome is Outcome.COUNTEREXAMPLE


_BOXES = "a box is where its descriptor and coordinates say"
_ROWS = "no row of a box leaves the tensor"
_STROBES = "strobes are those of a row's bytes in the tensor"
_LANDS = "R never waits, and its errors are kept"
_ORDER = "beats leave the landing FIFO once, in order"
_IDS = "beats of several IDs leave in the order of their bursts"
_BURSTS = "beats of bursts of several IDs leave in their order"
_BEATS = "a box has its own beats and their responses"
_PACKED = "a box of packed rows has its own beats and their responses"
_COMPLETED = "each load is completed once, with its code"
_WRITTEN = "each B is taken, and reported with its box"
_READ = "a command is a box, or refused, within 27 cycles"
_LOADED = "a box is loaded within 8 + 2s + n(1 + s) cycles"
_STORED = "a box is stored within 8 + 3s + n(1 + s) cycles"

#: Faults by what is wrong.
PLANTED = {
    "a bound that is one too far": Planted(
        _BOXES,
        box_reader,
        "before.eq(-coordinate)",
        "before.eq(-coordinate - 1)",
        read_boxes,
        "BoxReader",
    ),
    "a coordinate without its sign": Planted(
        _BOXES,
        box_reader,
        "last_digit & coordinate[7]",
        "coordinate[7] & 0",
        read_boxes,
        "BoxReader",
    ),
    "a row beyond the last index": Planted(
        _ROWS,
        box_walker,
        "(index[number] >= box.high[number])",
        "(index[number] > box.high[number])",
        rows_inside,
        "BoxWalker",
    ),
    "a row as long outside as inside": Planted(
        _ROWS,
        box_walker,
        "span.eq(head + tail - box.head)",
        "span.eq(head + tail)",
        rows_inside,
        "BoxWalker",
    ),
    "a row as long at the last index": Planted(
        _ROWS,
        box_walker,
        "index[0] + 1 == box.high[0]",
        "index[0] == box.high[0]",
        rows_inside,
        "BoxWalker",
    ),
    "a row shorter before the last index": Planted(
        _BOXES,
        box_reader,
        "self._ends.eq(within <= extent)",
        "self._ends.eq(1)",
        read_boxes,
        "BoxReader",
    ),
    "a strobe outside": Planted(
        _STROBES,
        realign,
        "(slot + 1 == plan.end) & (plan.tail != 0)",
        "(slot + 1 == plan.end)",
        strobes,
        "VectorsToBeats",
        cycles=20,
    ),
    "a beat without a place": Planted(
        _LANDS,
        load,
        "(room > burst.length)",
        "(room + 1 > burst.length)",
        load.LoadEngine,
        "_land",
        cycles=40,
    ),
    "a beat over another in the landing FIFO": Planted(
        _ORDER,
        fifo,
        "enters.eq(self.i_stream.valid & self.i_stream.ready)",
        "enters.eq(self.i_stream.valid)",
        read_reports,
        "Queue",
    ),
    "a beat counted for another ID": Planted(
        _IDS,
        reorder_buffer,
        "            owner.eq(self.i_id),",
        "            owner.eq(~self.i_id),",
        reorder_buffer.ReorderBuffer,
        "_place",
    ),
    "a beat that leaves before it came": Planted(
        _IDS,
        reorder_buffer,
        "leaves.eq(reader.en & lengths.o_stream.valid & present[turn])",
        "leaves.eq(reader.en & lengths.o_stream.valid)",
        reorder_buffer.ReorderBuffer,
        "_leave",
    ),
    "a burst after its first beat": Planted(
        _BURSTS,
        reorder_buffer,
        "following[owner].eq(entry + 1)",
        "following[owner].eq(entry)",
        reorder_buffer.ReorderBuffer,
        "_place",
    ),
    "a read response dropped": Planted(
        _BEATS,
        realign,
        "response | Mux(slots.present, beat.response, 0)",
        "Mux(slots.present, beat.response, 0)",
        read_reports,
        "BeatsToVectors",
        cycles=12,
    ),
    "a response told of the next box": Planted(
        _BEATS,
        realign,
        "response.eq(Mux(vector.last, 0, vector.response))",
        "response.eq(Mux(vector.last & (response == 0), 0, vector.response))",
        read_reports,
        "BeatsToVectors",
        cycles=12,
    ),
    "a beat taken for the next row": Planted(
        _BEATS,
        realign,
        "(slot >= plan.first) & (slot < plan.end)",
        "(slot >= plan.first) & (slot <= plan.end)",
        read_reports,
        "BeatsToVectors",
        cycles=12,
    ),
    "a box of packed rows that ends twice": Planted(
        _PACKED,
        row_packing,
        "packed.last.eq(given.last & ~over)",
        "packed.last.eq(given.last)",
        read_reports,
        "RowPacker",
    ),
    "the code of a load dropped": Planted(
        _COMPLETED,
        load_ends,
        "Mux(load.code != TmaError.NONE.value, load.code, Mux(asked, latest, 0))",
        "Mux(asked, latest, 0)",
        load_completions,
        "LoadEnds",
    ),
    "a write response dropped": Planted(
        _WRITTEN,
        store,
        "records.o_stream.ready.eq(~record.responds | axi.bvalid)",
        "records.o_stream.ready.eq(1)",
        store.StoreEngine,
        "elaborate",
    ),
    "an address every other cycle": Planted(
        _LOADED,
        bursts,
        "offered & (~axi.arvalid | axi.arready)",
        "offered & ~axi.arvalid",
        load,
        "issue_reads",
    ),
    "half a byte of a coordinate in a cycle": Planted(
        _READ,
        box_reader,
        "coordinate.eq(coordinate >> 8)",
        "coordinate.eq(coordinate >> 4)",
        box_reader.BoxReader,
        "_locate",
    ),
    "one write burst at a time": Planted(
        _STORED,
        store,
        "(unanswered != self._outstanding)",
        "(unanswered == 0)",
        store.StoreEngine,
        "elaborate",
    ),
}


def tma_properties() -> tuple[Property, ...]:
    """Properties of the must-show line: of the barriers, of their bank, and of the TMA engine."""
    return tuple(each for each in PROPERTIES if each.block in ("barrier", "barrier_bank", "tma"))
