"""Programs of the PMU: their word, and what they refuse."""

import dataclasses
import random

import pytest

from hw.arch.errors import BadInputError
from hw.arch.gather.index_program import IndexProgram
from hw.arch.loops import LoopProgram
from hw.arch.pmu import Beyond, EngineProgram, PmuProgram, SlotRing
from hw.arch.words.pmu_word import Access, IndexUse, TokenSource, index_layout, pmu_layout
from tests.hw.pmu.bench import (
    CAPACITY_BYTES,
    SLOTS,
    WIDTH_BITS,
    two_rings,
)
from tests.hw.pmu.index_programs import gather, scatter
from tests.hw.step_model import moves_of


def test_programs_survive_packing() -> None:
    program = two_rings(windows=4, element_bytes=2)
    sizes = {"capacity_bytes": CAPACITY_BYTES, "slots": SLOTS}
    word = program.pack(width_bits=WIDTH_BITS, **sizes)
    unpacked = PmuProgram.unpack(word, **sizes)
    assert unpacked.pack(width_bits=WIDTH_BITS, **sizes) == word
    assert unpacked.tokens == program.tokens
    for ours, theirs in zip(program.engines, unpacked.engines):
        assert list(moves_of(ours)) == list(moves_of(theirs))


SQUARE = (LoopProgram(8, stride=8),)
RING = SlotRing(0, 0, 64, 2)


@pytest.mark.parametrize(
    ("make", "error", "rule"),
    [
        (lambda: EngineProgram(RING, SQUARE, element_bytes=3), BadInputError, "1, 2 or 4, not 3"),
        (lambda: EngineProgram(RING, SQUARE * 5), BadInputError, "at most 4 address loops, not 5"),
        (lambda: EngineProgram(RING, SQUARE, last_level=9), BadInputError, "from 0 to 8, not 9"),
        (
            lambda: EngineProgram(RING, SQUARE, final_level=2),
            BadInputError,
            "at most the last level",
        ),
        (lambda: EngineProgram(RING, SQUARE, modulus=2, index=2), BadInputError, "not 2 and 2"),
        (
            lambda: EngineProgram(RING, (LoopProgram(4), LoopProgram(0, slope=1, outer=4))),
            ValueError,
            "Loop 5 of an engine must have an iteration everywhere",
        ),
        (
            lambda: EngineProgram(RING, SQUARE, repeats=LoopProgram(2), slots=LoopProgram(3)),
            ValueError,
            "at most the ring's 2, not 3",
        ),
        (
            lambda: PmuProgram((EngineProgram(RING, SQUARE, repeats=LoopProgram(2)), None)),
            ValueError,
            "Repeats of a write engine must be 1",
        ),
        (
            lambda: PmuProgram(
                (EngineProgram(RING, SQUARE), None),
                (EngineProgram(SlotRing(0, 0, 64, 3), SQUARE), None),
            ),
            ValueError,
            r"Engines of buffer 0 must agree on its slots, not \[2, 3\]",
        ),
        (
            lambda: PmuProgram(tokens=(TokenSource.R1, TokenSource.OFF)),
            ValueError,
            "Token source must be an engine that is on, not R1",
        ),
    ],
)
def test_programs_that_cannot_work_are_refused(make, error, rule) -> None:
    with pytest.raises(error, match=rule):
        make()


@pytest.mark.parametrize(
    ("program", "rule"),
    [
        (EngineProgram(SlotRing(count=5), SQUARE, 1), "Ring must have 1 to 4 slots, not 5"),
        (EngineProgram(SlotRing(0, 0, 968, 2), SQUARE, 1), "1024 elements, not 1024"),
        (EngineProgram(SlotRing(0, 4, 64, 2), SQUARE, 1), "1 by 8 elements, not"),
        (EngineProgram(RING, SQUARE, 4, Access.FOUR_ROWS), "FOUR_ROWS must have at least 4 lanes"),
    ],
)
def test_programs_that_do_not_fit_a_pmu_are_refused(program: EngineProgram, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        PmuProgram((program, None)).pack(
            width_bits=WIDTH_BITS, capacity_bytes=CAPACITY_BYTES, slots=SLOTS
        )


ROWS = EngineProgram(RING, SQUARE, element_bytes=1)
FILLED = EngineProgram(RING, (LoopProgram(2),), element_bytes=4, beyond=Beyond(4, 1))
GATHER = IndexProgram(IndexUse.GATHER, 8, 3)
ADD = IndexProgram(IndexUse.SCATTER_ADD, 8, 1)


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: IndexProgram(IndexUse.OFF, 8, 3), "GATHER or a SCATTER, not <IndexUse.OFF"),
        (lambda: IndexProgram(IndexUse.GATHER, 0, 3), "Index limit must be an integer from 1 to"),
        (lambda: IndexProgram(IndexUse.GATHER, 8, 32), "Index shift must be .* 0 to 31, not 32"),
        (lambda: IndexProgram(IndexUse.GATHER, 8, 3, 3), "level must be .* 4 to 8, not 3"),
        (lambda: IndexProgram(IndexUse.GATHER, 8, 3, 8, 2, 2), "index below it, not 2 and 2"),
        (
            lambda: PmuProgram((ROWS, ROWS), (None, ROWS), indexed=GATHER),
            "W1 must be off, for it takes the index stream",
        ),
        (
            lambda: PmuProgram((ROWS, None), (ROWS, None), indexed=GATHER),
            "Engine R1 must be on for GATHER, not None",
        ),
        (lambda: PmuProgram(indexed=ADD), "Engine W0 must be on for SCATTER_ADD, not None"),
        (
            lambda: PmuProgram((ROWS, None), indexed=ADD),
            "Element bytes must be 4 for indices of elements, and to add int32, not 1",
        ),
        (
            lambda: PmuProgram((FILLED, None)),
            "Limit of a write engine must be that of a scatter, not Beyond",
        ),
        (
            lambda: PmuProgram((FILLED, None), indexed=IndexProgram(IndexUse.SCATTER, 8, 1, 4)),
            "Limit loop of a scatter must lie outside .* from 4, not 4",
        ),
        (
            lambda: PmuProgram(
                (dataclasses.replace(FILLED, beyond=Beyond(4, 1, 5)), None), indexed=ADD
            ),
            "Constant of a scatter must be 0, not 5",
        ),
    ],
)
def test_index_programs_that_cannot_work_are_refused(make, rule) -> None:
    with pytest.raises(BadInputError, match=rule):
        make()


@pytest.mark.parametrize(
    ("indexed", "rule"),
    [
        (IndexProgram(IndexUse.GATHER, 121, 3), "1024 elements, not 1080"),
        (IndexProgram(IndexUse.GATHER, 8, 2), "1 by 8 elements, not"),
        (IndexProgram(IndexUse.GATHER, 1 << 32, 3), "1024 elements, not 34359738480"),
        (IndexProgram(IndexUse.GATHER, 1, 10), "Index shift must be .* 0 to 9, not 10"),
    ],
)
def test_indices_that_reach_what_a_pmu_lacks_are_refused(indexed, rule) -> None:
    sizes = {"width_bits": WIDTH_BITS, "capacity_bytes": CAPACITY_BYTES, "slots": SLOTS}
    with pytest.raises(BadInputError, match=rule):
        PmuProgram((ROWS, None), (None, ROWS), indexed=indexed).pack(**sizes)


def test_index_programs_survive_packing(seed: int) -> None:
    rng = random.Random(seed)
    sizes = {"capacity_bytes": CAPACITY_BYTES, "slots": SLOTS}
    for use in (IndexUse.GATHER, IndexUse.SCATTER, IndexUse.SCATTER_ADD):
        for _ in range(20):
            make = gather(rng) if use is IndexUse.GATHER else scatter(rng, use)
            word = make[0].pack(width_bits=WIDTH_BITS, **sizes)
            unpacked = PmuProgram.unpack(word, **sizes)
            assert unpacked.indexed == make[0].indexed and unpacked.inputs == (0, 1)
            assert unpacked.pack(width_bits=WIDTH_BITS, **sizes) == word
    broken = (
        word
        | 7 << pmu_layout(**sizes)["index"].offset + index_layout(position_bits=10)["level"].offset
    )
    with pytest.raises(BadInputError, match="level must be .* 4 to 8, not 11"):
        PmuProgram.unpack(broken, **sizes)
