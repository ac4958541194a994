"""Random cases of a PMU: matrices through rings of slots, and what numpy says of them."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from hw.arch.loops import LoopProgram
from hw.arch.pmu import Beyond, EngineProgram, PmuProgram, SlotRing
from hw.arch.words.pmu_word import Access, Level, TokenSource
from sim.drivers.products import Array

__all__ = ["PmuCase", "PmuSizes", "Vectors", "marked", "matrix_case", "multicast", "token_sources"]


class PmuSizes(NamedTuple):
    """Parameters of a PMU: link width, bytes of the scratchpad, most slots of a buffer."""

    width_bits: int
    capacity_bytes: int
    slots: int


@dataclasses.dataclass(frozen=True)
class Vectors:
    """Vectors of a stream, n × bytes, and their marks `last` and `final`."""

    data: Array
    last: Array
    final: Array

    @classmethod
    def none(cls, sizes: PmuSizes) -> Vectors:
        """A stream without vectors."""
        return cls(np.zeros((0, sizes.width_bits // 8), np.uint8), *[np.zeros(0, bool)] * 2)

    @property
    def words(self) -> Array:
        """Payloads as words of 32 bits, the marks in the last one."""
        marks = self.last.astype(np.uint32) | self.final.astype(np.uint32) << 1
        return np.concatenate([self.data.view(np.uint32), marks[:, np.newaxis]], axis=1)


class PmuCase(NamedTuple):
    """Program of a PMU, its streams, the tokens of each output, and its error code."""

    program: PmuProgram
    inputs: tuple[Vectors, Vectors]
    outputs: tuple[Vectors, Vectors]
    tokens: tuple[int, int]
    error: int


def marked(data: Array, last_every: int) -> Vectors:
    """Vectors with `last` after every so many, 0: never, and `final` at the end of all of these."""
    ends = np.arange(1, len(data) + 1)
    last = ends % last_every == 0 if last_every else np.zeros(len(data), bool)
    return Vectors(data, last, last & (ends == len(data)))


def multicast(rng: np.random.Generator, data: Array, modulus: int, index: int) -> Vectors:
    """Vectors in random packets, those whose number is ``index`` modulo ``modulus``."""
    ends = rng.random(len(data)) < 0.4
    ends[-1:] = True
    parts: list[Array] = []
    last: list[bool] = []
    for number, own in enumerate(np.split(data, np.flatnonzero(ends)[:-1] + 1)):
        others = index if number == 0 else modulus - 1
        parts += [rng.integers(0, 256, (others, data.shape[1]), dtype=np.uint8), own]
        last += [True] * others + [False] * (len(own) - 1) + [True]
    marks = np.array(last)
    return Vectors(np.concatenate(parts), marks, marks & (rng.random(len(marks)) < 0.5))


def token_sources(rng: np.random.Generator, turns: dict[TokenSource, int]) -> dict[str, Any]:
    """Random sources of both token outputs, and the tokens of each: one for each turn."""
    sources = [TokenSource.OFF, *turns]
    chosen = [sources[rng.integers(len(sources))] for _ in range(2)]
    return {"sources": tuple(chosen), "counts": tuple(turns.get(each, 0) for each in chosen)}


def _height(access: Access, lanes: int) -> int:
    """Rows per piece, the part of a matrix in one vector."""
    return {Access.ROW: 1, Access.TWO_ROWS: 2, Access.FOUR_ROWS: 4, Access.COLUMN: lanes}[access]


def _vectors(matrix: Array, access: Access, lanes: int) -> Array:
    """Vectors of a matrix in the order of `_loops`."""
    height = _height(access, lanes)
    width = lanes // height
    pieces = matrix.reshape(len(matrix) // height, height, -1, width)
    order = (2, 0, 1, 3) if access is Access.COLUMN else (0, 2, 1, 3)
    return pieces.transpose(order).reshape(-1, lanes).copy()


def _loops(rows: int, columns: int, access: Access, lanes: int) -> tuple[LoopProgram, ...]:
    """Address loops over a matrix stored in consecutive blocks of lanes × lanes elements."""
    height = _height(access, lanes)
    width = lanes // height
    blocks_down = LoopProgram(rows // lanes, stride=lanes * columns)
    down = LoopProgram(lanes // height, stride=height * lanes)
    blocks_across = LoopProgram(columns // lanes, stride=lanes * lanes)
    across = LoopProgram(lanes // width, stride=width)
    if access is Access.COLUMN:
        return (blocks_across, across, blocks_down, down)
    return (blocks_down, down, blocks_across, across)


class _Ring:
    """One buffer: matrices of a writer, one per slot, and readers that read each several times."""

    def __init__(
        self, rng: np.random.Generator, sizes: PmuSizes, buffer: int, readers: int, base: int
    ) -> None:
        # Each buffer has half of the scratchpad: draw shapes and slots that fit.
        half = sizes.capacity_bytes // 2
        size = int(rng.choice([s for s in (1, 2, 4) if (sizes.width_bits // 8) ** 2 // s <= half]))
        lanes = sizes.width_bits // 8 // size
        accesses = [Access.ROW, Access.TWO_ROWS, Access.COLUMN] + [Access.FOUR_ROWS] * (lanes >= 4)
        shapes = [(lanes, lanes), (2 * lanes, lanes), (lanes, 2 * lanes)]
        shapes = [shape for shape in shapes if shape[0] * shape[1] * size <= half]
        rows, columns = shapes[rng.integers(len(shapes))]
        fits = min(sizes.slots, half // size // (rows * columns))
        # Some rings are filled more than once.
        self.matrices = int(rng.integers(1, max(10, sizes.slots + 3)))
        data = rng.integers(0, 256, (self.matrices, rows, columns * size), dtype=np.uint8)
        values = data.view(f"u{size}")
        ring = SlotRing(buffer, base // size, rows * columns, int(rng.integers(1, fits + 1)))

        def engine(access: Access, **options: Any) -> EngineProgram:
            return EngineProgram(
                ring,
                _loops(rows, columns, access, lanes),
                element_bytes=size,
                access=access,
                windows=LoopProgram(self.matrices),
                **options,
            )

        write = accesses[rng.integers(len(accesses))]
        modulus = int(rng.integers(1, 4))
        index = int(rng.integers(modulus))
        self.writer = engine(write, modulus=modulus, index=index)
        given = np.concatenate([_vectors(matrix, write, lanes) for matrix in values])
        self.given = multicast(rng, given.view(np.uint8), modulus, index)
        self.readers: list[EngineProgram] = []
        self.expected: list[Vectors] = []
        for _ in range(readers):
            read = accesses[rng.integers(len(accesses))]
            repeats = int(rng.integers(1, 3))
            walked = [_vectors(matrix, read, lanes) for matrix in values for _ in range(repeats)]
            beyond = None
            if rng.integers(3) == 0:
                loops = _loops(rows, columns, read, lanes)
                beyond = self._constant(rng, walked, loops, size)
            self.readers.append(
                engine(
                    read,
                    repeats=LoopProgram(repeats),
                    last_level=int(Level.ADDRESS),
                    final_level=int(Level.LAUNCHES),
                    beyond=beyond,
                )
            )
            self.expected.append(marked(np.concatenate(walked).view(np.uint8), len(walked[0])))

    @staticmethod
    def _constant(
        rng: np.random.Generator, walked: list[Array], loops: tuple[LoopProgram, ...], size: int
    ) -> Beyond:
        """A constant in the steps from some index of the second address loop on."""
        first, second = (int(loop.base) for loop in loops[:2])
        limit = int(rng.integers(second + 1))
        constant = int(rng.integers(1 << 8 * size))
        for vectors in walked:
            vectors.reshape(first, second, -1)[:, limit:] = constant
        return Beyond(int(Level.ADDRESS) + 1, limit, constant)


def matrix_case(rng: np.random.Generator, sizes: PmuSizes) -> PmuCase:
    """Two buffers with a writer and a reader each, or one buffer with two readers."""
    shared = bool(rng.integers(2))
    if shared:
        rings = [_Ring(rng, sizes, int(rng.integers(2)), 2, 0)]
    else:
        half = sizes.capacity_bytes // 2
        rings = [_Ring(rng, sizes, buffer, 1, buffer * half) for buffer in range(2)]
    second = rings[-1]
    turns = {
        TokenSource.W0: rings[0].matrices,
        TokenSource.R0: rings[0].matrices,
        TokenSource.R1: second.matrices,
    }
    if not shared:
        turns[TokenSource.W1] = second.matrices
    tokens = token_sources(rng, turns)
    program = PmuProgram(
        (rings[0].writer, None if shared else second.writer),
        (rings[0].readers[0], second.readers[-1]),
        tokens["sources"],
    )
    beside = Vectors.none(sizes) if shared else second.given
    outputs = (rings[0].expected[0], second.expected[-1])
    return PmuCase(program, (rings[0].given, beside), outputs, tokens["counts"], 0)
