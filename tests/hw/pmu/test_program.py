"""Programs of the PMU: their word, and what they refuse."""

import pytest

from hw.arch.errors import BadInputError
from hw.arch.loops import LoopProgram
from hw.arch.pmu import EngineProgram, PmuProgram, SlotRing
from hw.arch.pmu_word import Access, TokenSource
from tests.hw.pmu.bench import (
    CAPACITY_BYTES,
    SLOTS,
    WIDTH_BITS,
    two_rings,
)
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
