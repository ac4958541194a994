"""Random programs of an AGCU: lists of box nests, with all that they move by numpy."""

import dataclasses
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hw.arch.agcu import AGCU_DESCRIPTORS, AGCU_STREAMS, INDEX_BITS, AgcuProgram, index_input
from hw.arch.boxes.issuer_program import ISSUER_PROGRAMS, IssuerProgram, Wait
from hw.arch.descriptor import Descriptor
from hw.arch.error_codes import UnitError
from hw.arch.errors import BadInputError
from hw.arch.launch import MAX_ARGUMENTS, Argument
from hw.arch.loops import BoxLoop
from hw.numeric.division import ceil_div
from sim.drivers.box_tensor import REGION_BYTES, BoxTensor, box_payloads
from sw.prove.unrolled_loops import box_points

__all__ = ["MEMORY_BYTES", "AgcuCase", "AgcuSizes", "random_case"]

#: A region for each load stream, then for each store stream.
MEMORY_BYTES = 2 * AGCU_STREAMS * REGION_BYTES
#: Most boxes of one program of a list in one iteration.
_MOST_BOXES = 10

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]


class AgcuSizes(NamedTuple):
    """Parameters of an AGCU."""

    width_bits: int
    axi_address_bits: int
    landing_beats: int
    outstanding: int
    token_tracks: int


@dataclasses.dataclass
class AgcuCase:
    """A program with its launch, its inputs and everything that must leave the unit.

    Parameters
    ----------
    program : AgcuProgram
    arguments : list of Argument
        All launch arguments, by number.
    iterations : int
    inputs, outputs : list of lists of int
        Payloads of each vector input, and of each load stream.
    given, reported : list of int
        Tokens sent to each token port, and expected at each token output.
    memory, expected : array of bytes
        Memory before and after the program.
    error : int
        Error code at the end.
    """

    program: AgcuProgram
    arguments: list[Argument]
    iterations: int
    inputs: list[list[int]]
    outputs: list[list[int]]
    given: list[int]
    reported: list[int]
    memory: Bytes
    expected: Bytes
    error: int = 0


class _Table(NamedTuple):
    """A tensor with its number as a descriptor."""

    number: int
    tensor: BoxTensor


def _indexed_streams(rng: np.random.Generator) -> tuple[list[tuple[int, bool]], set[int]]:
    """Streams in use, as number and whether it stores, and their positions that take indices."""
    used = [(number, store) for store in (False, True) for number in range(AGCU_STREAMS)]
    used = [each for each in used if rng.random() < 0.8] or used[:1]
    indexed = set()
    taken = {number for number, store in used if store}
    for position in rng.permutation(len(used)).tolist():
        port = index_input(used[position][0], store=used[position][1])
        if port not in taken and rng.random() < 0.7:
            indexed.add(position)
            taken.add(port)
    return used, indexed


def _nest(
    rng: np.random.Generator, table: _Table, waits: tuple[Wait, ...], index: int
) -> IssuerProgram:
    """A random nest of few boxes, in which a count may depend on an outer index."""
    tensor = table.tensor
    while True:
        loops: list[BoxLoop] = []
        for depth in range(int(rng.integers(1, 5))):
            dimension = int(rng.integers(len(tensor.dims)))
            still = index and dimension == index
            step = 0 if still else int(rng.integers(-1, tensor.box[dimension] + 2))
            slope = int(rng.integers(-1, 4)) if depth and rng.random() < 0.4 else 0
            shift = int(rng.integers(0, 3)) if slope else 0
            outer = int(rng.integers(depth)) if slope else 0
            count = int(rng.integers(1, 4)) << shift
            loops.append(BoxLoop(count, dimension, step, slope, outer, shift))
        try:
            nest = IssuerProgram(table.number, tuple(loops), waits, index)
        except BadInputError:
            continue  # a count below 0
        if len(box_points(nest)) <= _MOST_BOXES:
            return nest


class _Drawing:
    """One case while its streams are drawn, one after another."""

    def __init__(self, rng: np.random.Generator, sizes: AgcuSizes) -> None:
        self.rng, self.sizes = rng, sizes
        self.vector_bytes = sizes.width_bits // 8
        self.iterations = int(rng.choice([1, 1, 2, 3]))
        self.ports = rng.permutation(sizes.token_tracks).tolist()
        self.memory = rng.integers(0, 256, MEMORY_BYTES, dtype=np.uint8)
        self.expected = self.memory.copy()
        self.descriptors: list[tuple[Descriptor, int]] = []
        self.arguments = [
            Argument(int.from_bytes(rng.bytes(8), "little")) for _ in range(MAX_ARGUMENTS)
        ]
        self.numbers = rng.permutation(MAX_ARGUMENTS).tolist()
        self.inputs: list[list[int]] = [[] for _ in range(AGCU_STREAMS)]
        self.outputs: list[list[int]] = [[] for _ in range(AGCU_STREAMS)]
        self.taken = [0] * sizes.token_tracks
        self.outside = False

    def table(self, region: int, *, indexed: bool) -> _Table:
        """Add a tensor: its base is a descriptor's and an argument's, which steps per iteration."""
        rng = self.rng
        while True:
            tensor = BoxTensor(rng, region * REGION_BYTES, self.vector_bytes, shortens=True)
            if not indexed or len(tensor.dims) > 1:
                break
        if indexed:
            tensor.box[int(rng.integers(1, len(tensor.box)))] = 1
        stride = 0
        if self.iterations > 1:
            below = tensor.base - region * REGION_BYTES
            above = REGION_BYTES - below - tensor.extent
            steps = self.iterations - 1
            stride = 16 * int(
                rng.integers(-(below // 16 // steps), above // 16 // steps, endpoint=True)
            )
        base = 16 * int(rng.integers(0, 1 << self.sizes.axi_address_bits - 4))
        argument = self.numbers[len(self.descriptors)]
        self.arguments[argument] = Argument((tensor.base - base) % (1 << 64), stride)
        described = dataclasses.replace(tensor.descriptor, base=base, box=tuple(tensor.box))
        self.descriptors.append((described, argument))
        return _Table(len(self.descriptors) - 1, tensor)

    def _indices(self, nest: IssuerProgram, points: Ints, store: int, stream: int) -> None:
        """Draw the index of each box, add vectors of indices, put them into the coordinates."""
        if not nest.index or not len(points):
            return
        rng = self.rng
        extent = self.descriptors[nest.descriptor][0].dims[nest.index]
        per_vector = self.sizes.width_bits // INDEX_BITS
        drawn = rng.integers(0, extent, ceil_div(len(points), per_vector) * per_vector)
        beyond = rng.random(len(drawn)) < 0.05
        drawn[beyond] = rng.choice([-1, extent, (1 << 31) - 1, -(1 << 31)], int(beyond.sum()))
        points[:, nest.index] = drawn[: len(points)]
        used = points[:, nest.index]
        self.outside |= bool(((used < 0) | (used >= extent)).any())
        port = index_input(stream, store=bool(store))
        vectors = np.ascontiguousarray(drawn.astype("<i4")).view(np.uint8)
        lines = vectors.reshape(-1, self.vector_bytes)
        self.inputs[port] += [int.from_bytes(line.tobytes(), "little") for line in lines]

    def _move(self, table: _Table, points: Ints, iteration: int, store: int, stream: int) -> None:
        """Load or store the boxes at these points."""
        tensor = table.tensor
        stride = self.arguments[self.descriptors[table.number][1]].stride
        for point in points.tolist():
            address, exists = tensor.where(point[: len(tensor.dims)])
            address = address + iteration * stride
            if store:
                data = self.rng.integers(0, 256, len(address), dtype=np.uint8)
                self.expected[address[exists]] = data[exists]
                self.inputs[stream] += box_payloads(data, self.vector_bytes)
            else:
                found = np.where(exists, self.memory[np.where(exists, address, 0)], 0)
                self.outputs[stream] += box_payloads(found.astype(np.uint8), self.vector_bytes)

    def stream(self, stream: int, store: int, *, indexed: bool) -> tuple[IssuerProgram, int]:
        """Draw the list of one stream and run it by numpy; returns it and its boxes."""
        rng = self.rng
        each = AGCU_DESCRIPTORS // (2 * AGCU_STREAMS)
        tables = [
            self.table(AGCU_STREAMS * store + stream, indexed=indexed)
            for _ in range(int(rng.integers(1, each + 1)))
        ]
        own = [self.ports.pop() for _ in range(min(len(self.ports), int(rng.integers(0, 3))))]
        nests = []
        for _ in range(int(rng.integers(1, ISSUER_PROGRAMS + 1))):
            table = tables[rng.integers(len(tables))]
            waits = tuple(Wait(port, int(rng.integers(1, 4))) for port in own if rng.random() < 0.7)
            whole = [d for d, extent in enumerate(table.tensor.box) if d and extent == 1]
            index = int(rng.choice(whole)) if indexed and rng.random() < 0.8 else 0
            nests.append((table, _nest(rng, table, waits, index)))
        boxes = 0
        for iteration in range(self.iterations):
            for table, nest in nests:
                points = box_points(nest)
                self._indices(nest, points, store, stream)
                self._move(table, points, iteration, store, stream)
                boxes += len(points)
                for wait in nest.waits:
                    self.taken[wait.port] += wait.tokens * len(points)
        first, *rest = (nest for _, nest in nests)
        return dataclasses.replace(first, following=tuple(rest)), boxes


def random_case(rng: np.random.Generator, sizes: AgcuSizes) -> AgcuCase:
    """Draw a program of up to four streams, each of up to four nests over two tensors."""
    drawing = _Drawing(rng, sizes)
    used, indexed = _indexed_streams(rng)
    streams: list[list[IssuerProgram | None]] = [[None] * AGCU_STREAMS, [None] * AGCU_STREAMS]
    reports = set(rng.permutation(min(sizes.token_tracks, AGCU_STREAMS)).tolist())
    reports = {number for number in reports if rng.random() < 0.7}
    reported = [0] * min(sizes.token_tracks, AGCU_STREAMS)
    for position, (number, store) in enumerate(used):
        listed, boxes = drawing.stream(number, int(store), indexed=position in indexed)
        streams[store][number] = listed
        if store and number in reports:
            reported[number] = boxes
    credits = [int(rng.integers(0, count + 1)) for count in drawing.taken]
    credits = [min(count, 15) for count in credits]
    program = AgcuProgram(
        loads=tuple(streams[False]),
        stores=tuple(streams[True]),
        descriptors=tuple(drawing.descriptors),
        credits=tuple(credits),
        stored=tuple(sorted(reports)),
    )
    return AgcuCase(
        program,
        drawing.arguments,
        drawing.iterations,
        drawing.inputs,
        drawing.outputs,
        [taken - credit for taken, credit in zip(drawing.taken, credits)],
        reported,
        drawing.memory,
        drawing.expected,
        int(UnitError.INDEX) if drawing.outside else 0,
    )
