"""PMU: slots written by rows, read by rows, pieces and columns, compared with numpy."""

from typing import Any

import cocotb
import numpy as np
import numpy.typing as npt

from hw.arch.loops import LoopProgram
from hw.arch.pmu import EngineProgram, PmuProgram, SlotRing
from hw.arch.pmu_word import Access, Level, TokenSource
from hw.pmu.unit import Pmu
from sim.cocotb.bench_support import Sink, Source, bench, clocks, random_generator, start

__all__ = ["design", "matrices_leave_in_the_order_of_their_readers"]

_WIDTH, _CAPACITY, _SLOTS = 64, 1024, 4
_PROGRAMS = 15

Array = npt.NDArray[Any]


def design() -> Pmu:
    """The pattern memory unit under test."""
    return Pmu(width_bits=_WIDTH, capacity_bytes=_CAPACITY, slots=_SLOTS)


def _height(access: Access, lanes: int) -> int:
    """Rows per piece, the part of a matrix in one vector."""
    return {Access.ROW: 1, Access.TWO_ROWS: 2, Access.FOUR_ROWS: 4, Access.COLUMN: lanes}[access]


def _vectors(matrix: Array, access: Access, lanes: int) -> Array:
    """Vectors of a matrix in the order of `_loops`."""
    height = _height(access, lanes)
    width = lanes // height
    pieces = matrix.reshape(len(matrix) // height, height, -1, width)
    order = (2, 0, 1, 3) if access is Access.COLUMN else (0, 2, 1, 3)
    return pieces.transpose(order).reshape(-1, lanes)


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


def _payloads(vectors: Array, *, last_every: int = 0) -> list[int]:
    """Payloads of vectors, with `last` at each packet's end and `final` at the end of all."""
    words = [int.from_bytes(vector.tobytes(), "little") for vector in np.ascontiguousarray(vectors)]
    if last_every:
        words = [
            word
            | ((index + 1) % last_every == 0) << _WIDTH
            | (index == len(words) - 1) << _WIDTH + 1
            for index, word in enumerate(words)
        ]
    return words


class _Ring:
    """One buffer: matrices of a writer, one per slot, and readers that read each several times."""

    def __init__(self, rng: np.random.Generator, buffer: int, readers: int, base: int) -> None:
        size = int(rng.choice([1, 2, 4]))
        lanes = _WIDTH // 8 // size
        accesses = [Access.ROW, Access.TWO_ROWS, Access.COLUMN] + [Access.FOUR_ROWS] * (lanes >= 4)
        # Each buffer has half of the scratchpad: draw shapes and slots that fit.
        shapes = [(lanes, lanes), (2 * lanes, lanes), (lanes, 2 * lanes), (8, 8)]
        shapes = [shape for shape in shapes if not (shape[0] % lanes or shape[1] % lanes)]
        rows, columns = shapes[rng.integers(len(shapes))]
        fits = min(_SLOTS, _CAPACITY // 2 // size // (rows * columns))
        count = int(rng.integers(1, fits + 1))
        self.matrices = int(rng.integers(1, 10))
        data = rng.integers(0, 256, (self.matrices, rows, columns * size), dtype=np.uint8)
        values = data.view(f"u{size}")
        ring = SlotRing(buffer, base // size, rows * columns, count)

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
        self.writer = engine(write)
        self.given = _payloads(
            np.concatenate([_vectors(matrix, write, lanes) for matrix in values])
        )
        self.readers: list[EngineProgram] = []
        self.expected: list[list[int]] = []
        for _ in range(readers):
            read = accesses[rng.integers(len(accesses))]
            repeats = int(rng.integers(1, 3))
            self.readers.append(
                engine(
                    read,
                    repeats=LoopProgram(repeats),
                    last_level=int(Level.ADDRESS),
                    final_level=int(Level.LAUNCHES),
                )
            )
            walked = [_vectors(matrix, read, lanes) for matrix in values for _ in range(repeats)]
            self.expected.append(_payloads(np.concatenate(walked), last_every=len(walked[0])))


@bench(limit_cycles=60_000)
@cocotb.parametrize(stall=[0.0, 0.3, 0.8], shared=[False, True])
async def matrices_leave_in_the_order_of_their_readers(
    dut: Any, stall: float, shared: bool
) -> None:
    """Two buffers with a writer and a reader each, or one buffer with two readers."""
    rng = random_generator()
    for _ in range(_PROGRAMS):
        if shared:
            rings = [_Ring(rng, int(rng.integers(2)), 2, 0)]
        else:
            rings = [_Ring(rng, buffer, 1, buffer * _CAPACITY // 2) for buffer in range(2)]
        writers = [ring.writer for ring in rings]
        readers = [reader for ring in rings for reader in ring.readers]
        expected = [payloads for ring in rings for payloads in ring.expected]
        program = PmuProgram(
            (writers[0], None if shared else writers[1]),
            (readers[0], readers[1]),
            (TokenSource.W0, TokenSource.R1),
        )
        sources = [Source(dut, f"i_stream__{index}", stall=stall) for index in range(2)]
        sinks = [Sink(dut, f"o_stream__{index}", stall=stall) for index in range(2)]
        tokens = [Sink(dut, f"o_token__{index}", stall=stall) for index in range(2)]
        config = program.pack(width_bits=_WIDTH, capacity_bytes=_CAPACITY, slots=_SLOTS)
        await start(dut, config=config, i_last_iteration=0, i_clear=1, i_run=0)
        await clocks(dut, 1)
        dut.i_clear.value, dut.i_run.value = 0, 1
        for source, ring in zip(sources, rings):
            cocotb.start_soon(source.send(ring.given))
        # One token per slot filled, and one per slot that its reader has freed.
        reported = [cocotb.start_soon(sink.take(rings[0].matrices)) for sink in tokens[:1]]
        reported.append(cocotb.start_soon(tokens[1].take(rings[-1].matrices)))
        taking = [
            cocotb.start_soon(sink.take(len(payloads))) for sink, payloads in zip(sinks, expected)
        ]
        for index, task in enumerate(taking):
            assert await task == expected[index], f"reader {index} of {program}"
        for task in reported:
            await task
        silent = [cocotb.start_soon(sink.expect_silence(20)) for sink in [*sinks, *tokens]]
        for quiet in silent:
            await quiet
        assert int(dut.o_done.value) == 15
        assert int(dut.o_error.value) == 0
