"""Model of gather and scatter in numpy: a ring's slots filled one after another, step by step."""

import numpy as np

from hw.arch.gather.index_program import IndexProgram
from hw.arch.pmu import EngineProgram, PmuProgram
from hw.arch.words.pmu_word import IndexUse, Level, lane_count, piece_positions, rows_log2
from tests.hw.pmu.bench import Vector
from tests.hw.step_model import Move, Step, moves_of, steps_of

__all__ = ["mirror", "taken"]


def taken(vectors: list[Vector], modulus: int, index: int) -> list[bytes]:
    """Vectors of the packets that a filter takes."""
    found, packet = [], 0
    for data, last, _ in vectors:
        if packet % modulus == index:
            found.append(data)
        packet += last
    return found


class _Indices:
    """Indices of a stream, lane after lane; each visit to a slot begins with a new vector."""

    def __init__(self, program: IndexProgram, vectors: list[Vector]) -> None:
        self.program = program
        self.vectors = iter(taken(vectors, program.modulus, program.index))
        self.left: list[int] = []
        self.outside = False

    def offsets(self, step: Step, lanes: int) -> list[int | None]:
        """Elements by which the step's index moves each lane; None where it is out of range."""
        if not self.left:
            self.left = np.frombuffer(next(self.vectors), np.uint32).tolist()
        if self.program.elements:
            indices, self.left = self.left, []
        else:
            indices = self.left[:1] * lanes
            if (*step.last, True)[self.program.level]:
                self.left.pop(0)
        if step.last[Level.ADDRESS]:
            self.left = []
        limit = self.program.limit
        self.outside |= max(indices) >= limit
        return [each << self.program.shift if each < limit else None for each in indices]


def mirror(
    program: PmuProgram,
    inputs: tuple[list[Vector], list[Vector]],
    *,
    width_bits: int,
    capacity_bytes: int,
) -> tuple[list[list[Vector]], bool]:
    """Outputs of R0 and R1, and whether an index was out of range; all elements of one width."""
    indexed, writer = program.indexed, program.writers[0]
    assert writer is not None
    size = writer.element_bytes
    lanes = lane_count(width_bits=width_bits, element_bytes=size)
    memory = np.zeros((capacity_bytes // size, size), np.uint8)
    indices = _Indices(indexed, inputs[1]) if indexed else None

    def places(engine: EngineProgram, move: Move, step: Step, index: bool) -> list[int | None]:
        """Position of each lane; None out of range."""
        offsets = indices.offsets(step, lanes) if index and indices else [0] * lanes
        if index and indexed and indexed.elements:
            piece = (move.position,) * lanes
        else:
            rows = rows_log2(engine.access, lanes=lanes)
            start = move.position + (offsets[0] or 0)
            piece = tuple(
                place - (offsets[0] or 0)
                for place in piece_positions(start, lanes=lanes, rows_log2=rows)
            )
        return [None if o is None else place + o for place, o in zip(piece, offsets, strict=True)]

    scatters = indexed is not None and indexed.use is not IndexUse.GATHER
    filled = []  # the memory when a turn's slot is full
    data = iter(taken(inputs[0], writer.modulus, writer.index))
    for move, step in zip(moves_of(writer), steps_of(writer.chain), strict=True):
        index = scatters and not (writer.beyond and not move.beyond)
        where = places(writer, move, step, index)
        elements = np.frombuffer(next(data), np.uint8).reshape(lanes, size)
        for place, element in zip(where, elements, strict=True):
            if place is not None:
                if index and indexed and indexed.use is IndexUse.SCATTER_ADD:
                    element = (memory[place].view(np.uint32) + element.view(np.uint32)).view(
                        np.uint8
                    )
                memory[place] = element
        if move.closes:
            filled.append(memory.copy())
    outputs: list[list[Vector]] = [[], []]
    for port, reader in enumerate(program.readers):
        if reader is None:
            continue
        for move, step in zip(moves_of(reader), steps_of(reader.chain), strict=True):
            gathers = indexed is not None and indexed.use is IndexUse.GATHER and port == 1
            where = places(reader, move, step, gathers)
            stored = filled[move.lap * reader.ring.count + move.slot]
            constant = None
            if move.beyond and reader.beyond:
                constant = reader.beyond.constant.to_bytes(4, "little")[:size]
            value = b"".join(
                bytes(size) if place is None else constant or stored[place].tobytes()
                for place in where
            )
            outputs[port].append((value, move.last, move.final))
    return outputs, bool(indices and indices.outside)
