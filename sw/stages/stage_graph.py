"""Stage graph of a kernel: loads, stores, buffers, products and lane programs, and their streams.

Order, orientation and repetition of what passes change in buffers alone: a `Hold` is written in one
walk over its slots and read in another. All other stages pass packets on in the order in which they
come, so two stages whose streams agree are joined directly.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import TypeVar

from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.gather.index_program import IndexProgram
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import PcuProgram
from hw.arch.pmu import Beyond
from hw.arch.words.pmu_word import Access
from sw.array_spec import ArraySpec
from sw.pcu_text import pcu_text

__all__ = [
    "Boxes",
    "Hold",
    "Lanes",
    "Load",
    "Product",
    "Socket",
    "Stage",
    "StageGraph",
    "Store",
    "Stream",
    "Walk",
    "argument_of",
    "boxes_of",
    "segmented_boxes",
]


@dataclasses.dataclass(frozen=True)
class Walk:
    """Order in which the vectors of a buffer's slots pass one of its engines.

    Parameters
    ----------
    loops : tuple of LoopProgram
        Loops inside a slot, outermost first, strides in elements.
    offset : int
        Element of the slot with which the walk begins.
    access : Access
        Block of elements per vector.
    launches, windows, repeats, slots : LoopProgram
        Loops over slots, as of `hw.arch.pmu.EngineProgram`.
    last_level, final_level : int or None
        Levels that end a packet and a group of packets, as of `hw.arch.pmu.EngineProgram`.
    beyond : Beyond or None
        Vectors of a constant that a read engine sends in place of elements.
    modulus, index : int
        A write engine takes packet i if i mod modulus = index.
    element_bytes : int or None
        Bytes of the elements that it moves and counts, if these are not those of the buffer.
    """

    loops: tuple[LoopProgram, ...]
    offset: int = 0
    access: Access = Access.ROW
    launches: LoopProgram = LoopProgram()
    windows: LoopProgram = LoopProgram()
    repeats: LoopProgram = LoopProgram()
    slots: LoopProgram = LoopProgram()
    last_level: int | None = None
    final_level: int | None = None
    beyond: Beyond | None = None
    modulus: int = 1
    index: int = 0
    element_bytes: int | None = None


@dataclasses.dataclass(frozen=True)
class Stage:
    """Base class of stages."""

    @property
    def kind(self) -> str:
        """Name of the kind in the text form."""
        return type(self).__name__.lower()


#: Tensors in boxes: descriptor, launch argument and loops over boxes of each.
Boxes = tuple[tuple[Descriptor, int, tuple[BoxLoop, ...]], ...]


@dataclasses.dataclass(frozen=True)
class _Transfer(Stage):
    """Boxes of a tensor, one after the other.

    Parameters
    ----------
    agcu, stream : int
        AGCU, and number of the stream among its load or store streams.
    descriptor : Descriptor
        The tensor, and the box.
    argument : int
        Launch argument with the tensor's address.
    loops : tuple of BoxLoop
        Loops over boxes, outermost first.
    index : int
        Dimension whose coordinate each box takes from a stream of numbers; 0: none.
    following : tuple of (Descriptor, int, tuple of BoxLoop)
        Tensors that pass after it, one after the other: descriptor, argument and loops.
    """

    agcu: int
    stream: int
    descriptor: Descriptor
    argument: int
    loops: tuple[BoxLoop, ...]
    index: int = dataclasses.field(default=0, kw_only=True)
    following: Boxes = dataclasses.field(default=(), kw_only=True)

    @property
    def lists(self) -> Boxes:
        """Descriptor, argument and loops of each tensor that passes."""
        return ((self.descriptor, self.argument, self.loops), *self.following)


@dataclasses.dataclass(frozen=True)
class Load(_Transfer):
    """Stream of boxes from memory to one or several buffers.

    Parameters
    ----------
    port : int
        Token port of the AGCU at which freed slots arrive.
    slots : int
        Slots that a box fills in a buffer.
    takers : int
        Buffers that take each box; the next ones take the next box.
    readers : int
        Read engines of a buffer that report that they have left a slot.
    """

    port: int
    slots: int = 1
    takers: int = 1
    readers: int = 1


@dataclasses.dataclass(frozen=True)
class Store(_Transfer):
    """Stream of boxes to memory."""


@dataclasses.dataclass(frozen=True)
class Hold(Stage):
    """Buffer in a PMU: a ring of slots, written and read in walks of its own.

    Parameters
    ----------
    slot_bytes : int
    element_bytes : int
    writes, reads : tuple of Walk
        One per write engine and per read engine.
    indexed : IndexProgram or None
        Indices that its one write engine takes from the stream at sink 1.
    """

    slot_bytes: int
    element_bytes: int
    writes: tuple[Walk, ...]
    reads: tuple[Walk, ...]
    indexed: IndexProgram | None = None

    @property
    def inputs(self) -> int:
        """Inputs of a PMU that it needs: write engines, and the stream of indices."""
        return len(self.writes) + (self.indexed is not None)


@dataclasses.dataclass(frozen=True)
class Product(Stage):
    """Matrix unit of a PCU: sums of products of a streaming and a stationary operand."""

    program: PcuProgram


@dataclasses.dataclass(frozen=True)
class Lanes(Stage):
    """Lanes of a PCU: element operations, functions and reductions of packets."""

    program: PcuProgram


@dataclasses.dataclass(frozen=True, order=True)
class Socket:
    """Port of a stage.

    Parameters
    ----------
    stage : str
    port : int
        Number of the walk of a `Hold`, 1 its stream of indices; port of the PCU (`hw.arch.pcu`); 0
        of a `Load` or a `Store`.
        A sink of a `Load`, or port 1 of a `Store`, takes the numbers that name its boxes.
    """

    stage: str
    port: int = 0


@dataclasses.dataclass(frozen=True)
class Stream:
    """Packets from sources in a fixed rotation to every sink.

    Parameters
    ----------
    name : str
    sources : tuple of (Socket, int)
        In the order of the rotation, each with its packets per turn.
    sinks : tuple of Socket
    """

    name: str
    sources: tuple[tuple[Socket, int], ...]
    sinks: tuple[Socket, ...]


_Kind = TypeVar("_Kind", bound=Stage)


@dataclasses.dataclass(frozen=True)
class StageGraph:
    """Stages by name, and the streams between them.

    Parameters
    ----------
    stages : mapping of str to Stage
    streams : tuple of Stream
    """

    stages: Mapping[str, Stage]
    streams: tuple[Stream, ...]

    def of(self, kind: type[_Kind]) -> Iterator[tuple[str, _Kind]]:
        """Stages of a kind, with their names."""
        for name, stage in self.stages.items():
            if isinstance(stage, kind):
                yield name, stage

    def sinks(self, stage: str) -> tuple[Socket, ...]:
        """Sockets that take the packets of a stage."""
        return tuple(
            sink
            for stream in self.streams
            if any(source.stage == stage for source, _ in stream.sources)
            for sink in stream.sinks
        )

    def text(self) -> str:
        """The graph as text: a line per stage and per stream."""
        lines = [f"{name}: {_stage_text(stage)}" for name, stage in self.stages.items()]
        for stream in self.streams:
            sources = ", ".join(
                f"{each.stage}.{each.port}" + (f" x{packets}" if packets > 1 else "")
                for each, packets in stream.sources
            )
            sinks = ", ".join(f"{each.stage}.{each.port}" for each in stream.sinks)
            lines.append(f"stream {stream.name}: {sources} -> {sinks}")
        return "\n".join(lines)


def argument_of(arrays: tuple[ArraySpec, ...], name: str) -> tuple[int, ArraySpec]:
    """Number and memory layout of a launch argument."""
    return next((number, each) for number, each in enumerate(arrays) if each.name == name)


def boxes_of(
    arrays: tuple[ArraySpec, ...], name: str, box: tuple[int, int], row: int = 0, column: int = 0
) -> tuple[Descriptor, int]:
    """Descriptor of a matrix in memory from a row and a column on, and its launch argument.

    Parameters
    ----------
    arrays : tuple of ArraySpec
        Arguments of the launch, in order.
    name : str
        An array of one axis is a row.
    box : tuple of (int, int)
        Columns and rows of a box.
    row, column : int
        The bytes of the columns before are a multiple of 16.
    """
    number, array = argument_of(arrays, name)
    rows, columns = array.matrix
    descriptor = Descriptor(
        base=row * array.pitch + column * array.format.bits // 8,
        format=ElementFormat.of(array.format),
        dims=(columns - column, rows - row),
        strides=(array.pitch,),
        box=box,
    )
    return descriptor, number


def segmented_boxes(
    arrays: tuple[ArraySpec, ...],
    name: str,
    box: tuple[int, int],
    segments: tuple[int, int, int],
    row: int = 0,
    column: int = 0,
) -> tuple[Descriptor, int, tuple[BoxLoop, ...]]:
    """Descriptor and argument of a matrix that lies in segments, and the loops over these.

    Parameters
    ----------
    arrays, name, box, row, column
        As of `boxes_of`.
    segments : tuple of (int, int, int)
        Axis that is cut (0 for rows, 1 for columns), number of segments, and elements of each, at
        most those of a segment of the array.
    """
    axis, count, size = segments
    descriptor, number = boxes_of(arrays, name, box, row, column)
    if count == 1:
        return descriptor, number, ()
    array = arrays[number]
    step = array.pitch if axis == 0 else array.format.bits // 8
    levels = list(array.segments.loops) if array.segments else []
    levels.append((count // math.prod(each for each, _ in levels), size * step))
    # Two loops are one where the segments of the inner one end where the next of the outer begins.
    merged: list[tuple[int, int]] = []
    for each, stride in levels:
        if each == 1:
            continue
        if merged and merged[-1][1] == each * stride:
            each *= merged.pop()[0]
        merged.append((each, stride))
    dims = list(descriptor.dims)
    dims[1 - axis] = size - (row, column)[axis]
    outer = [*reversed(merged)]
    descriptor = dataclasses.replace(
        descriptor,
        dims=(*dims, *(each for each, _ in outer)),
        strides=(*descriptor.strides, *(stride for _, stride in outer)),
        box=(*descriptor.box, *(1 for _ in outer)),
        element_strides=(),
    )
    last = len(outer) + 1
    loops = (BoxLoop(each, last - place, 1) for place, (each, _) in enumerate(merged))
    return descriptor, number, tuple(loops)


def _stage_text(stage: Stage) -> str:
    match stage:
        case Load() | Store():
            boxes = [_boxes_text(*each) for each in stage.lists]
            kind = f"{stage.kind} by number" if stage.index else stage.kind
            return f"{kind} {', then '.join(boxes)}; agcu{stage.agcu}.{stage.stream}"
        case Hold():
            walks = [f"written {_walk_text(each)}" for each in stage.writes]
            walks += [f"read {_walk_text(each)}" for each in stage.reads]
            if stage.indexed is not None:
                walks.append(f"{stage.indexed.use.name} by index below {stage.indexed.limit}")
            return f"hold slots of {stage.slot_bytes} bytes; {'; '.join(walks)}"
        case Product() | Lanes():
            return pcu_text(stage.program)
    raise AssertionError(stage.kind)


def _boxes_text(descriptor: Descriptor, argument: int, loops: tuple[BoxLoop, ...]) -> str:
    box = " x ".join(map(str, reversed(descriptor.box)))
    counts = ", ".join(f"{_count_text(each, each.count)} by {each.step}" for each in loops)
    return f"argument {argument} in boxes of {box}: {counts}"


def _count_text(loop: LoopProgram | BoxLoop, base: int) -> str:
    """Count of a loop, which may depend on the index i of an outer one."""
    if not loop.slope:
        return str(base)
    count = f"{base}{loop.slope:+}*i{loop.outer}"
    return f"({count})>>{loop.shift}" if loop.shift else f"({count})"


def _walk_text(walk: Walk) -> str:
    outer = " ".join(
        f"{name} {_count_text(loop, loop.base)}"
        for name, loop in (
            ("launches", walk.launches),
            ("windows", walk.windows),
            ("repeats", walk.repeats),
            ("slots", walk.slots),
        )
        if loop != LoopProgram()
    )
    inner = " ".join(f"{_count_text(loop, loop.base)}x{loop.stride}" for loop in walk.loops)
    access = walk.access.name + (f" of {walk.element_bytes} bytes" if walk.element_bytes else "")
    return f"{access} {outer} [{inner}]".replace("  ", " ")
