"""Parts of PCUs in fused softmax: their words there and back, and every one that is refused."""

import dataclasses

import numpy as np
import pytest

from hw.arch.errors import BadInputError
from hw.arch.lanes.key_mask import KeyMask
from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.phase_word import PhaseSource, ResultForm
from hw.arch.lanes.softmax_program import SoftmaxProgram, SoftmaxRole
from hw.arch.pcu import FilterProgram, PcuProgram
from hw.arch.words.pcu_word import pcu_layout
from hw.numeric.formats import bf16, int8, int32
from hw.numeric.fused_softmax import score_scale

MASK = KeyMask(length=1000, causal=True, offset=-5, query_step=72, window=300, groups=14)
FACTOR = float(score_scale(0.125))
SCORES = PcuProgram(
    softmax=SoftmaxProgram(SoftmaxRole.SCORES, FACTOR, MASK),
    weight=FilterProgram(9, 4),
)
VALUES = PcuProgram(softmax=SoftmaxProgram(SoftmaxRole.VALUES), weights_by_row=True)
SENT = LaneProgram((LanePhase(PhaseSource.ACCUMULATORS, result=ResultForm.WORD),))


@pytest.mark.parametrize("program", [SCORES, VALUES, dataclasses.replace(VALUES, packet_vectors=1)])
def test_parts_pack_into_the_word_of_a_pcu_and_back(program):
    word = program.pack(2)
    assert 0 < word < 1 << pcu_layout(2).size
    assert PcuProgram.unpack(word, 2) == program
    assert program.sums and program.inputs == (0, 1) and program.outputs == (0,)


def changed(program, **fields):
    return lambda: dataclasses.replace(program, **fields)


def part(*arguments):
    return lambda: SoftmaxProgram(*arguments)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (changed(SCORES, fmt=int8, out=int32), "Operand format of a scores unit must be bf16"),
        (changed(VALUES, out=bf16), "Format of sums of a values unit must be fp32, not bf16"),
        (changed(SCORES, by_group=True), "Tiles by group of a scores unit must be False"),
        (
            changed(SCORES, packet_vectors=4),
            "Vectors of a result packet of a scores unit",
        ),
        (changed(VALUES, weights_by_row=False), "Weights by row of a values unit must be True"),
        (changed(VALUES, lanes=SENT), "Lane program of a values unit must be None"),
        (lambda: SCORES.pack(0), "Lanes of a PCU with a lane program must be at least 1, not 0"),
        (part(SoftmaxRole.NONE), "Role in fused softmax must be SCORES or VALUES, not 'NONE'"),
        (part(SoftmaxRole.VALUES, 0.0, MASK), "Mask of a values unit must hide no key"),
        (part(SoftmaxRole.VALUES, 1.0), "Factor of a values unit must be 0, not 1.0"),
        (part(SoftmaxRole.SCORES), "Factor of a scores unit must be a positive, finite fp32"),
        (part(SoftmaxRole.SCORES, -1.0), "Factor of a scores unit must be a positive"),
        (part(SoftmaxRole.SCORES, 0.1), "Factor of a scores unit must be a positive"),
        (part(SoftmaxRole.SCORES, 1e39), "Factor of a scores unit must be a positive"),
        (part(SoftmaxRole.SCORES, float("nan")), "Factor of a scores unit must be a positive"),
    ],
)
def test_parts_that_a_pcu_cannot_have_are_refused(make, message):
    with pytest.raises(BadInputError, match=message):
        make()


def test_words_that_no_part_has_are_refused():
    layout = pcu_layout(2)
    role, lanes = 1 << layout["softmax"].offset, 1 << layout["lanes"].offset
    phases = SCORES.pack(2) ^ SoftmaxProgram(SoftmaxRole.SCORES, FACTOR, MASK).pack() * role
    for word, message in (
        (PcuProgram().pack(2) | 3 * role, "Role in fused softmax must be SCORES or VALUES, not 3"),
        (PcuProgram().pack(2) | 4 * role, "Role in fused softmax must be SCORES or VALUES, not 0"),
        (SCORES.pack(2) + 8 * lanes, "Phases of lanes in fused softmax must be those of SCORES"),
        (PcuProgram().pack(2) | SCORES.softmax.pack() * role, "Factor of a scores unit"),
        # Without its part, statistic 1 of these phases is never written.
        (phases, "Statistic must be changed by a phase before phase 1, which reads it, not 1"),
    ):
        with pytest.raises(BadInputError, match=message):
            PcuProgram.unpack(word, 2)


def test_the_factor_is_a_word_of_fp32():
    assert np.float32(FACTOR) == FACTOR
    constants = pcu_layout(2).from_bits(SCORES.pack(2))["lanes"]["constants"]
    assert constants[0] == int(np.float32(FACTOR).view(np.uint32))
