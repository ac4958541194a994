"""Order of a launch in memory: what a load reads, no store may have still to write."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from hw.arch.agcu import IssuerProgram
from hw.arch.descriptor import Descriptor
from hw.arch.launch import Argument
from hw.arch.unit_kind import AGCU
from hw.numeric.division import ceil_div
from sw.chip_program import ChipProgram
from sw.fabric.nets import Input, Nets, Output, find_nets
from sw.prove.credits import arrivals
from sw.prove.unrolled_loops import box_points

__all__ = ["box_extents", "memory_faults", "reach"]

Ints = npt.NDArray[np.int64]


def box_extents(descriptor: Descriptor, points: Ints) -> tuple[Ints, Ints]:
    """Range of each box inside its tensor, per dimension; empty where low = high.

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
    low, high = box_extents(descriptor, points)
    some = (high > low).all(axis=1)
    if not some.any():
        return 0, 0
    points, low, high = (each[some] for each in (points, low, high))
    points = points[:, : descriptor.rank]
    strides = np.array([descriptor.format.bytes, *descriptor.strides], np.int64)
    first = base + ((points + low) * strides).sum(axis=1)
    end = base + ((points + high - 1) * strides).sum(axis=1)
    return int(first.min()), int(end.max()) + descriptor.format.bytes


@dataclasses.dataclass(frozen=True)
class _Access:
    """A stream of boxes: the addresses of iteration 0, and their step per iteration."""

    name: str
    index: int
    port: int
    issuer: IssuerProgram
    boxes: int
    low: int
    high: int
    stride: int

    def swept(self, repeat: int) -> tuple[int, int]:
        """Address range of all iterations."""
        moved = self.stride * (repeat - 1)
        return self.low + min(0, moved), self.high + max(0, moved)


def _accesses(program: ChipProgram, arguments: Sequence[Argument], kind: str) -> Iterator[_Access]:
    for index, agcu in sorted(program.agcus.items()):
        for port, issuer in enumerate(agcu.loads if kind == "load" else agcu.stores):
            if issuer is None:
                continue
            descriptor, number = agcu.descriptors[issuer.descriptor]
            points = box_points(issuer)
            base = (descriptor.base + arguments[number].value) % (1 << 64)
            low, high = reach(descriptor, base, points)
            if low < high:
                name = f"AGCU {index} {kind} {port}"
                stride = arguments[number].stride
                yield _Access(name, index, port, issuer, len(points), low, high, stride)


def _distances(one: _Access, other: _Access, repeat: int) -> range:
    """Iterations of one less those of the other at which both reach the same bytes.

    With different strides it is every distance, unless they never meet in any two iterations.
    """
    everything = range(1 - repeat, repeat)
    step = one.stride
    if step != other.stride or not step:
        (a, b), (c, d) = one.swept(repeat), other.swept(repeat)
        return everything if a < d and c < b else range(0)
    # At distance n, one lies n steps further, and must end behind other.low, begin before its high.
    low, high = other.low - one.high, other.high - one.low
    if step < 0:
        low, high, step = -high, -low, -step
    return range(max(low // step + 1, 1 - repeat), min(ceil_div(high, step), repeat))


def _stored_before(program: ChipProgram, nets: Nets, load: _Access, store: _Access) -> int | None:
    """Boxes of the store that are in memory when an iteration of the load begins.

    They are counted from the first box of the store in the same iteration: 0 says that all boxes of
    earlier iterations are. None if no token says anything.
    """
    agcu = program.agcus[load.index]
    best = None
    for wait in load.issuer.waits:
        root = nets.feeds.get(Input(AGCU, (load.index,), wait.port, tokens=True))
        if root is None:
            continue
        credit = agcu.credits[wait.port] if wait.port < len(agcu.credits) else 0
        # So many iterations on that every token of the credits has been taken.
        whole = ceil_div(credit, load.boxes * wait.tokens)
        tokens = np.array([(whole * load.boxes + 1) * wait.tokens - credit])
        given = arrivals(nets, root, tokens).get(Output(AGCU, (store.index,), store.port, True))
        if given is not None:
            stored = int(given[0]) - whole * store.boxes
            best = stored if best is None else max(best, stored)
    return best


def memory_faults(
    program: ChipProgram, arguments: Sequence[Argument], repeat: int = 1
) -> tuple[str, ...]:
    """Accesses of a launch whose order in memory its tokens do not determine, in words.

    A load may read what a store writes in an earlier iteration if a token orders them. Otherwise
    loads and stores, and two stores of different iterations, must not meet. Addresses are compared
    by the range of each stream; a program that `prove` accepts for this number of iterations is
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
            if not distances:
                continue
            if distances[0] <= 0:
                faults.append(
                    f"{load.name} must not read where {store.name} writes in the same kernel, "
                    "unless in an earlier iteration"
                )
                continue
            before = _stored_before(program, nets, load, store)
            if before is None or before < (1 - distances[0]) * store.boxes:
                faults.append(
                    f"{load.name} must wait for a token of {store.name}, which writes what it "
                    f"reads {distances[0]} iterations later"
                )
    for number, one in enumerate(stores):
        for other in stores[:number]:
            distances = _distances(one, other, repeat)
            if len(distances) > (0 in distances):
                faults.append(
                    f"{one.name} must not write where {other.name} writes in another iteration"
                )
    return tuple(faults)
