"""Copies on `tiny` by lists of programs: from a list of loads through a PMU to one of stores."""

import dataclasses

from hw.arch.agcu import AgcuInput, AgcuOutput, AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram, Wait
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.launch import HEADER_BYTES, Argument, LaunchEntry, pack_arguments, pack_list
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pmu import EngineProgram, PmuInput, PmuOutput, PmuProgram, SlotRing
from hw.arch.words.pmu_word import TokenSource
from sw.fabric.assemble import assemble
from sw.fabric.place import place
from sw.fabric.route import route
from sw.netlist import Net, Netlist, Pin
from tests.sw.chips import TINY

__all__ = ["BoxNest", "Copies", "Launch", "Relay", "chain_of", "relay"]

#: Elements of a vector, vectors of a PMU's slot, and its slots.
LANES, SLOT, SLOTS = 4, 2, 16
_LIST, _TABLE, _IMAGE, _DATA = 0x1000, 0x2000, 0x4000, 0x10000


@dataclasses.dataclass(frozen=True)
class BoxNest:
    """Boxes of a matrix of 16-bit elements, row of boxes by row of boxes.

    Parameters
    ----------
    box : (int, int)
        Columns and rows of a box: a multiple of `LANES`, and an even number of vectors.
    boxes : (int, int)
        Boxes along columns and along rows.
    cut : (int, int)
        Columns and rows by which the matrix is smaller than its boxes.
    """

    box: tuple[int, int]
    boxes: tuple[int, int]
    cut: tuple[int, int] = (0, 0)

    @classmethod
    def random(cls, rng, slots=None):
        """Some boxes; of a slot each, if there must be so many."""
        if slots is not None:
            return cls((LANES, SLOT), (1, slots), (rng.randrange(2), rng.randrange(2)))
        box = (LANES * rng.choice([1, 2, 4]), SLOT * rng.choice([1, 2]))
        return cls(
            box,
            (rng.randint(1, 3), rng.randint(1, 3)),
            (rng.randrange(LANES), rng.randrange(SLOT)),
        )

    @property
    def dims(self):
        """Columns and rows of the matrix."""
        return tuple(b * n - c for b, n, c in zip(self.box, self.boxes, self.cut, strict=True))

    @property
    def slots(self):
        """Slots that a box fills."""
        return self.box[0] // LANES * self.box[1] // SLOT

    @property
    def all_slots(self):
        """Slots that all boxes fill."""
        return self.slots * self.boxes[0] * self.boxes[1]

    @property
    def descriptor(self):
        """The matrix at its launch argument, its rows 16 bytes apart or more."""
        return Descriptor(
            base=0,
            format=ElementFormat.INT16,
            dims=self.dims,
            strides=(self.pitch,),
            box=self.box,
        )

    @property
    def pitch(self):
        """Bytes from row to row."""
        return -(-self.dims[0] * 2 // 16) * 16

    @property
    def bytes(self):
        """Bytes of the matrix with its padding."""
        return self.pitch * self.dims[1]

    def program(self, number, waits=()):
        """The nest with a descriptor's number."""
        loops = BoxLoop(self.boxes[1], 1, self.box[1]), BoxLoop(self.boxes[0], 0, self.box[0])
        return IssuerProgram(number, loops, waits)


def chain_of(programs):
    """A list of programs as one of an issuer."""
    first, *rest = programs
    return dataclasses.replace(first, following=tuple(rest))


def relay(slots):
    """Program of a PMU that passes slots on, in order, and reports those that it has freed."""
    ring = SlotRing(buffer=0, base=0, stride=SLOT * LANES, count=SLOTS)
    engine = EngineProgram(
        ring=ring,
        loops=(LoopProgram(SLOT, stride=LANES),),
        element_bytes=2,
        windows=LoopProgram(slots),
    )
    return PmuProgram(writers=(engine, None), readers=(engine, None), tokens=(TokenSource.R0,))


def lane_nets(lane, unit):
    """Nets of a copy: load, store, and tokens of free slots."""

    def net(name, source, sink, **kinds):
        return Net(f"{name}{lane}", ((Pin(*source), 1),), (Pin(*sink),), **kinds)

    return (
        net("in", ("agcu", AgcuOutput.LOAD_0 + lane), (unit, PmuInput.W0)),
        net("out", (unit, PmuOutput.R0), ("agcu", AgcuInput.STORE_0 + lane)),
        net("free", (unit, 0), ("agcu", lane), tokens=True),
    )


class Launch:
    """A netlist on `tiny` as a launch: its memory before, and the bytes of its arrays."""

    def chip_program(self):
        """The program of the chip, placed and routed."""
        placement = place(self.netlist, TINY, seed=1)
        routes = route(self.netlist, placement, TINY, seed=1)
        return assemble(self.netlist, placement, routes, TINY)

    def memory(self, arguments, data, *, repeat=1):
        """Memory of a launch: its bytes, with some data from `base` on, and the list's address."""
        image = self.chip_program().pack()
        entry = LaunchEntry(
            image_address=_IMAGE,
            image_bytes=len(image) - HEADER_BYTES,
            header=image[:HEADER_BYTES],
            argument_address=_TABLE,
            argument_count=len(arguments),
            repeat=repeat,
        )
        memory = bytearray(_DATA + len(data))
        for address, part in (
            (_LIST, pack_list([entry], TINY.width_bits)),
            (_TABLE, pack_arguments(arguments)),
            (_IMAGE, image[HEADER_BYTES:]),
            (_DATA, data),
        ):
            memory[address : address + len(part)] = part
        return memory, _LIST

    #: Address of the data.
    base = _DATA


@dataclasses.dataclass(frozen=True)
class Copies(Launch):
    """Two copies at once, each from a list of nests to another list; every nest has its matrix.

    Parameters
    ----------
    loads, stores : tuple of tuple of BoxNest
        The lists of both load streams, and of both store streams.
    """

    loads: tuple
    stores: tuple

    @classmethod
    def random(cls, rng):
        """Eight matrices in lists of one to four."""
        counts = rng.choice([(4, 1, 2, 1), (1, 3, 1, 3), (2, 2, 2, 2), (1, 1, 4, 2)])
        loads = tuple(tuple(BoxNest.random(rng) for _ in range(count)) for count in counts[:2])
        stores = []
        for nests, count in zip(loads, counts[2:], strict=True):
            left = sum(nest.all_slots for nest in nests)
            mine = []
            while len(mine) < count - 1 and left > 1:
                mine.append(BoxNest.random(rng, rng.randint(1, left - 1)))
                left -= mine[-1].all_slots
            stores.append((*mine, BoxNest.random(rng, left)))
        return cls(loads, tuple(stores))

    @property
    def nests(self):
        """All nests, in the order of their descriptors and arguments."""
        return [nest for nests in (*self.loads, *self.stores) for nest in nests]

    @property
    def netlist(self):
        numbers = iter(range(len(self.nests)))
        loads = tuple(
            chain_of(nest.program(next(numbers), (Wait(lane, nest.slots),)) for nest in nests)
            for lane, nests in enumerate(self.loads)
        )
        stores = tuple(
            chain_of(nest.program(next(numbers)) for nest in nests) for nests in self.stores
        )
        units = {
            f"pmu{lane}": relay(sum(nest.all_slots for nest in nests))
            for lane, nests in enumerate(self.loads)
        }
        units["agcu"] = AgcuProgram(
            loads=loads,
            stores=stores,
            descriptors=tuple((nest.descriptor, n) for n, nest in enumerate(self.nests)),
            credits=(SLOTS, SLOTS),
        )
        nets = tuple(net for lane in (0, 1) for net in lane_nets(lane, f"pmu{lane}"))
        return Netlist(units, nets, {"agcu": 0})

    @property
    def places(self):
        """Address of each matrix."""
        found = [self.base]
        for nest in self.nests:
            found.append(found[-1] + nest.bytes + 64)
        return found

    def launch(self, data):
        """Memory of a launch whose matrices and all between them have these bytes."""
        return self.memory([Argument(at) for at in self.places[:-1]], data)


@dataclasses.dataclass(frozen=True)
class Relay(Launch):
    """x to y, then y to z, by one load stream and one store stream: y is read after it is written.

    The list of loads has the boxes of x, the first box of y, and the rest of y. The first box of y
    takes a token of every stored box of y. In an iteration, x's loads take those of the z before.

    Parameters
    ----------
    boxes : int
        Boxes of each tensor, 2 to 15; a slot each.
    ordered : bool
        Whether the loads of y wait for the stores of y.
    """

    boxes: int
    ordered: bool = True

    @property
    def netlist(self):
        nest = BoxNest((LANES, SLOT), (1, self.boxes))
        rest = BoxNest((LANES, SLOT), (1, self.boxes - 1))
        free, stored = Wait(0), Wait(1, self.boxes)
        y_rest = Descriptor(
            base=2 * 16,
            format=ElementFormat.INT16,
            dims=rest.dims,
            strides=(rest.pitch,),
            box=rest.box,
        )
        loads = [
            nest.program(0, (free, Wait(1)) if self.ordered else (free,)),
            IssuerProgram(1, (BoxLoop(1),), (free, stored) if self.ordered else (free,)),
            rest.program(3, (free,)),
        ]
        agcu = AgcuProgram(
            loads=(chain_of(loads), None),
            stores=(None, chain_of([nest.program(1), nest.program(2)])),
            descriptors=(*((nest.descriptor, n) for n in range(3)), (y_rest, 1)),
            credits=(SLOTS, self.boxes if self.ordered else 0),
            stored=(1,),
        )
        into, out, free_slots = lane_nets(0, "pmu")
        out = dataclasses.replace(out, sinks=(Pin("agcu", AgcuInput.STORE_1),))
        nets = [into, out, free_slots]
        if self.ordered:
            nets.append(Net("stored", ((Pin("agcu", 1), 1),), (Pin("agcu", 1),), tokens=True))
        else:
            agcu = dataclasses.replace(agcu, stored=())
        return Netlist({"pmu": relay(2 * self.boxes), "agcu": agcu}, tuple(nets), {"agcu": 0})

    @property
    def size(self):
        """Bytes of a tensor."""
        return BoxNest((LANES, SLOT), (1, self.boxes)).bytes

    def arguments(self, repeat=1):
        """Places of x, y and z; each iteration has its own."""
        size = self.size
        return [Argument(self.base + n * repeat * size, size) for n in range(3)]
