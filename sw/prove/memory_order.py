"""Order of a launch in memory: what a load reads, no store may have still to write."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from hw.arch.descriptor import Descriptor
from hw.arch.launch import Argument
from hw.arch.unit_kind import AGCU
from hw.numeric.division import ceil_div
from sw.chip_program import ChipProgram
from sw.fabric.nets import Input, Nets, Output, find_nets
from sw.prove.credits import arrivals, tokens_taken
from sw.prove.read_first import BoxStream, is_read_first, rows_of_boxes
from sw.prove.unrolled_loops import box_owners, box_points

__all__ = [
    "MemoryFault",
    "box_extents",
    "memory_faults",
    "overwritten",
    "reach",
    "rectangles",
    "runs_meet",
    "runs_of",
]

Ints = npt.NDArray[np.int64]

#: Runs of one access beyond which they are not enumerated.
_MOST_RUNS = 1 << 20


def rectangles(
    descriptor: Descriptor, base: int, points: Ints
) -> Iterator[tuple[Descriptor, int, Ints]]:
    """Tensors of equal rows that a tensor consists of: two if some of its rows are shorter.

    Each has the boxes of the whole, of which only the part inside it counts.

    Yields
    ------
    (Descriptor, int, array)
        The tensor, its address, and the coordinates of the boxes in it.
    """
    if not descriptor.shortfall:
        yield descriptor, base, points
        return
    row, last, *outer = descriptor.dims
    last -= 1
    shorter = (row - descriptor.shortfall, 1, *outer)
    if last:
        yield dataclasses.replace(descriptor, dims=(row, last, *outer), shortfall=0), base, points
    moved = points - last * (np.arange(points.shape[1]) == 1)
    described = dataclasses.replace(descriptor, dims=shorter, shortfall=0)
    yield described, base + last * descriptor.strides[0], moved


def box_extents(descriptor: Descriptor, points: Ints) -> tuple[Ints, Ints]:
    """Range of each box inside its tensor of equal rows, per dimension; empty where low = high.

    Parameters
    ----------
    descriptor : Descriptor
    points : (boxes, 5) array of int
        Coordinates of each box.
    """
    points = points[:, : descriptor.rank]
    box = np.array(descriptor.box, np.int64)
    low = np.clip(-points, 0, box)
    high = np.maximum(np.clip(np.array(descriptor.dims, np.int64) - points, 0, box), low)
    return low, high


def reach(descriptor: Descriptor, base: int, points: Ints) -> tuple[int, int]:
    """Address range that all boxes access, given the tensor's address; (0, 0) if there is none."""
    strides = np.array([descriptor.format.bytes, *descriptor.strides], np.int64)
    firsts, ends = [], []
    for each, start, corners in rectangles(descriptor, base, points):
        low, high = box_extents(each, corners)
        some = (high > low).all(axis=1)
        if some.any():
            at = corners[some, : each.rank]
            firsts.append(start + ((at + low[some]) * strides).sum(axis=1).min())
            ends.append(start + ((at + high[some] - 1) * strides).sum(axis=1).max())
    return (int(min(firsts)), int(max(ends)) + descriptor.format.bytes) if firsts else (0, 0)


def runs_of(descriptor: Descriptor, base: int, points: Ints) -> tuple[Ints, Ints] | None:
    """First byte of each run that boxes access inside their tensor, and the byte behind it.

    Parameters
    ----------
    descriptor : Descriptor
    base : int
        Address of the tensor.
    points : (boxes, 5) array of int
        Coordinates of each box.

    Returns
    -------
    (array, array) or None
        None if there are too many to enumerate.
    """
    count = math.prod(descriptor.box[1:])
    if len(points) * count > _MOST_RUNS:
        return None
    begin, elements = rows_of_boxes(descriptor, base, points)
    first, last = (
        begin + np.clip(points[:, :1] + end, 0, elements) * descriptor.format.bytes
        for end in (0, descriptor.box[0])
    )
    some = last > first
    return first[some], last[some]


def runs_meet(one: tuple[Ints, Ints], other: tuple[Ints, Ints]) -> bool:
    """Whether two accesses have a byte in common."""
    first, last = one
    order = np.argsort(first)
    # Runs of an access may meet one another, so of those that begin before, the furthest counts.
    first, last = first[order], np.maximum.accumulate(last[order])
    before = np.searchsorted(first, other[1])
    met = (before > 0) & (last[before - 1] > other[0]) if len(first) else np.zeros(1, np.bool_)
    return bool(met.any())


@dataclasses.dataclass(frozen=True)
class MemoryFault:
    """Accesses whose order in memory is not determined.

    Parameters
    ----------
    agcu : int
        The AGCU of the access that is at fault.
    text : str
        What is wrong, in words.
    """

    agcu: int
    text: str

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True)
class _Access:
    """A program of an issuer: the addresses of iteration 0, and their step per iteration.

    ``runs`` are None for rows by number, which may be any.
    """

    name: str
    boxes: BoxStream
    low: int
    high: int
    stride: int
    runs: tuple[Ints, Ints] | None

    def swept(self, repeat: int) -> tuple[int, int]:
        """Address range of all iterations."""
        moved = self.stride * (repeat - 1)
        return self.low + min(0, moved), self.high + max(0, moved)

    def fault(self, rule: str) -> MemoryFault:
        """Fault of this access, which breaks a rule."""
        return MemoryFault(self.boxes.index, f"{self.name} {rule}")


def _accesses(program: ChipProgram, arguments: Sequence[Argument], kind: str) -> Iterator[_Access]:
    for index, agcu in sorted(program.agcus.items()):
        for port, issuer in enumerate(agcu.loads if kind == "load" else agcu.stores):
            if issuer is None:
                continue
            end = 0
            for position, each in enumerate(issuer.programs):
                descriptor, number = agcu.descriptors[each.descriptor]
                points = box_points(each)
                begin, end = end, end + len(points)
                if each.index:  # any index inside the tensor, the first and the last among them
                    ends = np.array([0, descriptor.dims[each.index] - 1])
                    points = np.repeat(points, 2, axis=0)
                    points[:, each.index] = np.resize(ends, len(points))
                base = (descriptor.base + arguments[number].value) % (1 << 64)
                low, high = reach(descriptor, base, points)
                runs = None if each.index else runs_of(descriptor, base, points)
                if low < high:
                    name = f"AGCU {index} {kind} {port}"
                    name += f" program {position}" if issuer.following else ""
                    stride = arguments[number].stride
                    known = None if each.index else points
                    box = BoxStream(index, port, issuer, begin, end, descriptor, base, known)
                    yield _Access(name, box, low, high, stride, runs)


def _distances(one: _Access, other: _Access, repeat: int) -> range:
    """Iterations of one less those of the other at which both reach the same bytes.

    With different strides it is every distance, unless they never meet in any two iterations. With
    one stride the bytes are compared, if they are few, else the ranges.
    """
    everything = range(1 - repeat, repeat)
    step = one.stride
    if repeat == 1 and one.runs is not None and other.runs is not None:
        return range(int(runs_meet(one.runs, other.runs)))
    if step != other.stride or not step:
        (a, b), (c, d) = one.swept(repeat), other.swept(repeat)
        return everything if a < d and c < b else range(0)
    # At distance n, one lies n steps further, and must end behind other.low, begin before its high.
    low, high, size = other.low - one.high, other.high - one.low, abs(step)
    if step < 0:
        low, high = -high, -low
    near = range(max(low // size + 1, 1 - repeat), min(ceil_div(high, size), repeat))
    if one.runs is None or other.runs is None:
        return near
    first, last = one.runs
    if len(near) * (len(first) + len(other.runs[0])) > _MOST_RUNS:
        return near
    met = [n for n in near if runs_meet((first + n * step, last + n * step), other.runs)]
    return range(met[0], met[-1] + 1) if met else range(0)


def _is_ordered(
    program: ChipProgram,
    nets: Nets,
    load: _Access,
    store: _Access,
    distance: int,
    repeat: int,
) -> bool:
    """Whether a token proves what a load reads to be in memory.

    It reads what the store wrote ``distance`` iterations before, and begins when its first box has
    taken its tokens; all boxes of the store's program up to then must have been reported.
    """
    agcu = program.agcus[load.boxes.index]
    store_boxes = len(box_owners(store.boxes.issuer))
    for port, taken in tokens_taken(load.boxes.issuer).items():
        root = nets.feeds.get(Input(AGCU, (load.boxes.index,), port, tokens=True))
        if root is None:
            continue
        credit = agcu.credits[port] if port < len(agcu.credits) else 0
        # After so many iterations every token of the credits has been taken; later ones are alike.
        whole = ceil_div(credit, int(taken[-1])) if taken[-1] else 0
        iterations = np.arange(min(whole + distance + 1, repeat))
        tokens = np.maximum(iterations * taken[-1] + taken[load.boxes.begin] - credit, 0)
        end = Output(AGCU, (store.boxes.index,), store.boxes.port, True)
        given = arrivals(nets, root, tokens).get(end)
        if given is not None:
            needed = (iterations - distance) * store_boxes + store.boxes.end
            if (given >= needed)[iterations >= distance].all():
                return True
    return False


def overwritten(
    program: ChipProgram, arguments: Sequence[Argument]
) -> Mapping[tuple[tuple[int, int], tuple[int, int]], bool]:
    """Load and store streams that meet in a launch of one iteration.

    Parameters
    ----------
    program : ChipProgram
    arguments : sequence of Argument
        Launch arguments, by number.

    Returns
    -------
    mapping of ((int, int), (int, int)) to bool
        By AGCU and number of the load stream, and of the store stream, whether the store writes
        only after all has been read.
    """
    nets = find_nets(program)
    met: dict[tuple[tuple[int, int], tuple[int, int]], bool] = {}
    stores = list(_accesses(program, arguments, "store"))
    for load in _accesses(program, arguments, "load"):
        for store in stores:
            if _distances(load, store, 1):
                one, other = load.boxes, store.boxes
                pair = (one.index, one.port), (other.index, other.port)
                met[pair] = met.get(pair, True) and is_read_first(program, nets, one, other)
    return met


def memory_faults(
    program: ChipProgram, arguments: Sequence[Argument], repeat: int = 1
) -> tuple[MemoryFault, ...]:
    """Accesses of a launch whose order in memory its tokens do not determine.

    A load may read what a store writes in the same iteration or an earlier one if a token orders
    them. In a launch of one iteration, it may read what a store overwrites if all that is stored
    depends on all that is read, or each vector on those that are read from its bytes. Otherwise
    loads and stores, and two stores of different iterations, must not meet. Addresses are compared
    byte by byte, by the range of each program of a stream where these differ in their strides or
    have too many runs of bytes. A program that `prove` accepts for this number of iterations is
    assumed.

    Parameters
    ----------
    program : ChipProgram
    arguments : sequence of Argument
        Launch arguments, by number.
    repeat : int
        Iterations of the launch.
    """
    nets = find_nets(program)
    stores = list(_accesses(program, arguments, "store"))
    faults = []
    for load in _accesses(program, arguments, "load"):
        for store in stores:
            distances = _distances(load, store, repeat)
            one, other = load.boxes, store.boxes
            if not distances or (repeat == 1 and is_read_first(program, nets, one, other)):
                continue
            if distances[0] < 0:
                rule = f"must not read where {store.name} writes in a later iteration"
                faults.append(load.fault(rule))
            elif not _is_ordered(program, nets, load, store, distances[0], repeat):
                rule = f"must wait for a token of {store.name}, which writes what it reads"
                later = f" {distances[0]} iterations later" if distances[0] else ""
                faults.append(load.fault(rule + later))
    for number, store in enumerate(stores):
        for earlier in stores[:number]:
            one, other = store.boxes, earlier.boxes
            if (one.index, one.port) == (other.index, other.port):
                continue  # in order
            distances = _distances(store, earlier, repeat)
            if len(distances) > (0 in distances):
                rule = f"must not write where {earlier.name} writes in another iteration"
                faults.append(store.fault(rule))
    return tuple(faults)
