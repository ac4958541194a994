"""Gather and scatter by an AGCU of `tiny`: rows of tables named by indices, through a PMU."""

import dataclasses

import numpy as np

from hw.arch.agcu import AgcuInput, AgcuOutput, AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram, Wait
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.launch import Argument
from hw.arch.loops import BoxLoop
from hw.arch.pmu import PmuInput, PmuOutput
from sw.netlist import Net, Netlist, Pin
from tests.units_lists import LANES, SLOT, SLOTS, Launch, chain_of, relay

__all__ = ["Indexed", "Table"]

#: Indices of a box of an index tensor: a slot.
_INDICES = 2 * SLOT


@dataclasses.dataclass(frozen=True)
class Table:
    """A table in memory, and so many boxes of it that indices name.

    Parameters
    ----------
    width : int
        Elements of a row, 16 bits each: a multiple of 8.
    page : int
        Rows of a page; an index names a page. With 1 the table has two dimensions.
    pages : int
    count : int
        Indices: a multiple of 4, or one less.
    """

    width: int
    page: int
    pages: int
    count: int

    @classmethod
    def random(cls, rng):
        """Some table."""
        count = 4 * int(rng.integers(1, 6)) - int(rng.integers(2))
        return cls(8 * int(rng.integers(1, 4)), int(rng.integers(1, 4)), 9, count)

    @property
    def slots(self):
        """Slots that a page fills."""
        return self.width // LANES * self.page // SLOT

    @property
    def index(self):
        """Dimension that the indices name."""
        return 1 if self.page == 1 else 2

    def descriptors(self):
        """The table, the pages in the order of indices, and the indices."""
        pitch, page = 2 * self.width, (self.page,) if self.page > 1 else ()
        strides = (pitch, pitch * self.page) if self.page > 1 else (pitch,)
        table = Descriptor(
            base=0,
            format=ElementFormat.INT16,
            dims=(self.width, *page, self.pages),
            strides=strides,
            box=(self.width, *page, 1),
        )
        dense = Descriptor(
            base=0,
            format=ElementFormat.INT16,
            dims=(self.width, self.page * self.count),
            strides=(pitch,),
            box=(self.width, self.page),
        )
        indices = Descriptor(
            base=0, format=ElementFormat.INT32, dims=(self.count,), box=(_INDICES,)
        )
        return table, dense, indices

    def shapes(self):
        """Shape and type of table, dense pages and indices in memory."""
        page = self.page * self.width
        return ((self.pages, page), "<i2"), ((self.count, page), "<i2"), ((self.count,), "<i4")


@dataclasses.dataclass(frozen=True)
class Indexed(Launch):
    """Gather from tables to dense pages one after the other, or scatter from pages to tables.

    Parameters
    ----------
    tables : tuple of Table
        One or two.
    scatter : bool
    """

    tables: tuple
    scatter: bool

    @classmethod
    def random(cls, rng, *, scatter):
        """One or two tables."""
        return cls(tuple(Table.random(rng) for _ in range(rng.integers(1, 3))), scatter)

    @property
    def netlist(self):
        named, dense, indices = [], [], []
        for number, table in enumerate(self.tables):
            free = () if self.scatter else (Wait(0, table.slots),)
            named.append(IssuerProgram(3 * number, (BoxLoop(table.count),), free, table.index))
            free = (Wait(0, table.slots),) if self.scatter else ()
            pages = BoxLoop(table.count, 1, table.page)
            dense.append(IssuerProgram(3 * number + 1, (pages,), free))
            boxes = BoxLoop(-(-table.count // _INDICES), 0, _INDICES)
            indices.append(IssuerProgram(3 * number + 2, (boxes,), (Wait(1),)))
        source, target = (dense, named) if self.scatter else (named, dense)
        descriptors = [each for table in self.tables for each in table.descriptors()]
        agcu = AgcuProgram(
            loads=(chain_of(source), chain_of(indices)),
            stores=(None, chain_of(target)),
            descriptors=tuple((each, number) for number, each in enumerate(descriptors)),
            credits=(SLOTS, SLOTS),
        )
        units = {
            "pages": relay(sum(table.slots * table.count for table in self.tables)),
            "indices": relay(sum(-(-table.count // _INDICES) for table in self.tables)),
            "agcu": agcu,
        }

        def net(name, source, sink, **kinds):
            return Net(name, ((Pin(*source), 1),), (Pin(*sink),), **kinds)

        nets = (
            net("pages_in", ("agcu", AgcuOutput.LOAD_0), ("pages", PmuInput.W0)),
            net("pages_out", ("pages", PmuOutput.R0), ("agcu", AgcuInput.STORE_1)),
            net("pages_free", ("pages", 0), ("agcu", 0), tokens=True),
            net("indices_in", ("agcu", AgcuOutput.LOAD_1), ("indices", PmuInput.W0)),
            net("indices_out", ("indices", PmuOutput.R0), ("agcu", AgcuInput.STORE_0)),
            net("indices_free", ("indices", 0), ("agcu", 1), tokens=True),
        )
        return Netlist(units, nets, {"agcu": 0})

    def arrays(self, rng):
        """Table, pages and indices of each table; indices in range, some of them twice."""
        found = []
        for table in self.tables:
            for number, (shape, kind) in enumerate(table.shapes()):
                limit = (1 << 15, 1 << 15, table.pages)[number]
                found.append(rng.integers(0, limit, shape).astype(kind))
        return found

    def expected(self, arrays):
        """The arrays after the launch; an index out of range names zeros, or nothing."""
        found = [each.copy() for each in arrays]
        for number in range(len(self.tables)):
            table, dense, indices = found[3 * number : 3 * number + 3]
            for at, index in enumerate(indices.tolist()):
                inside = 0 <= index < len(table)
                if not self.scatter:
                    dense[at] = table[index] if inside else 0
                elif inside:
                    table[index] = dense[at]
        return found

    def launch(self, arrays):
        """Memory of a launch, and the address of its list; arrays lie 64 bytes apart."""
        places, data = [], b""
        for each in arrays:
            data += b"\xa5" * (64 + -len(data) % 16)
            places.append(self.base + len(data))
            data += each.tobytes()
        return self.memory([Argument(at) for at in places], data + b"\xa5" * 64)

    def data(self, arrays):
        """The bytes of the data in memory."""
        memory, _ = self.launch(arrays)
        return memory[self.base :]

    def with_index(self, arrays, position, index):
        """The arrays with one index of the first table changed."""
        changed = [each.copy() for each in arrays]
        changed[2][position] = np.array(index).astype("<i4")
        return changed
