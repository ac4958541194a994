"""Lane programs: their words there and back, and every program that a lane cannot run."""

import dataclasses

import numpy as np
import pytest

from hw.arch.errors import BadInputError
from hw.arch.lanes.lane_program import LanePhase, LaneProgram
from hw.arch.lanes.phase_word import (
    PHASES,
    AuxiliaryUse,
    ElementForm,
    Fetched,
    Operand,
    PhaseSource,
    Reduction,
    ResultForm,
    UnitOrder,
    lane_layout,
    phase_layout,
)
from tests.hw.pcu.lane_programs import random_program

_NONE, _NO_X = ResultForm.NONE, PhaseSource.STATISTICS
X, Y, PREVIOUS = Operand.X, Operand.Y, Operand.PREVIOUS
SENT = LanePhase(PhaseSource.ACTIVATION, result=ResultForm.WORD)
SENT_SHORT = dataclasses.replace(SENT, form=ElementForm.BF16)
SUMMED = LanePhase(PhaseSource.ACTIVATION, reduction=Reduction.SUM)
#: One over statistic 0, by itself.
FINISHED = LanePhase(
    PhaseSource.STATISTICS,
    y=Fetched.STATISTIC_0,
    fma=(Y, Y, Y),
    argument=Y,
    reduction=Reduction.REPLACE,
)


def changed(phase=SENT, **fields):
    return lambda: dataclasses.replace(phase, **fields)


def test_programs_pack_into_their_word_and_back(seed):
    rng = np.random.default_rng(seed)
    for _ in range(50):
        program = random_program(rng)
        word = program.pack()
        assert 0 < word < 1 << lane_layout().size
        assert LaneProgram.unpack(word) == program
    assert LaneProgram.unpack(0) is None


def test_the_word_has_the_fields_of_its_layout(seed):
    program = random_program(np.random.default_rng(seed))
    fields = lane_layout().from_bits(program.pack())
    assert fields["count"] == len(program.phases)
    assert tuple(fields["constants"]) == program.constants
    for phase, packed in zip(program.phases, fields["phases"], strict=False):
        assert packed["source"] is phase.source and packed["order"] is phase.order
        assert packed["fma_b"] is phase.fma[1] and packed["alu_d"] is phase.alu_operands[3]
        assert packed["statistic"] == phase.statistic and packed["result"] is phase.result


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (changed(source=1), "Phase source must be of PhaseSource, not 1"),
        (changed(fma=(X, X)), "Phase fma must be 3 of Operand"),
        (changed(negate_addend=1), "Phase negate_addend must be True or False, not 1"),
        (changed(statistic=2), "Phase statistic must be an integer from 0 to 1, not 2"),
        (changed(fma=(Operand.ONE, X, X)), "a of the FMA must be X, Y, Z or PREVIOUS, not 'ONE'"),
        (changed(argument=Operand.CONSTANT_0), "the function must be X, Y, Z or PREVIOUS"),
        (
            changed(alu_operands=(PREVIOUS, X, X, X), order=UnitOrder.ALU_SFU_FMA),
            "Operand of the first unit must not be a result, not 'PREVIOUS'",
        ),
        (
            changed(source=PhaseSource.ACCUMULATORS, form=ElementForm.BF16),
            "Form of ACCUMULATORS must be WORD, not 'BF16'",
        ),
        (
            changed(FINISHED, form=ElementForm.INT8),
            "Form of STATISTICS must be WORD, not 'INT8'",
        ),
        (
            changed(source=PhaseSource.AUXILIARY, auxiliary=AuxiliaryUse.HELD),
            "must be NONE where the auxiliary stream is the source, not 'HELD'",
        ),
        (changed(auxiliary=AuxiliaryUse.VECTOR), "taken exactly if y or z is AUXILIARY"),
        (changed(z=Fetched.AUXILIARY), "taken exactly if y or z is AUXILIARY, not 'NONE'"),
        (
            changed(y=Fetched.AUXILIARY, auxiliary=AuxiliaryUse.SPREAD_PAIR),
            "SPREAD_PAIR exactly if y or z is AUXILIARY_SECOND",
        ),
        (
            changed(auxiliary_form=ElementForm.BF16),
            "Auxiliary form must be WORD where the stream is not taken, not 'BF16'",
        ),
        (
            changed(form=ElementForm.BF16, y=Fetched.AUXILIARY, auxiliary=AuxiliaryUse.HELD),
            "Held vector must have at least 2 elements a word, as the source, not 'WORD'",
        ),
        (
            changed(form=ElementForm.BF16, y=Fetched.AUXILIARY, auxiliary=AuxiliaryUse.LATCHED),
            "Held vector must have at least 2 elements a word, as the source, not 'WORD'",
        ),
        (
            changed(
                y=Fetched.AUXILIARY,
                auxiliary=AuxiliaryUse.SPREAD,
                auxiliary_form=ElementForm.BF16_LOWER,
            ),
            "Auxiliary form BF16_LOWER must be of VECTOR alone, not 'SPREAD'",
        ),
        (
            lambda: LaneProgram((changed(form=ElementForm.BF16_LOWER)(), SENT_SHORT)),
            "must be BF16_LOWER in all phases of a program or in none, not 'BF16'",
        ),
        (changed(result=ResultForm.NONE), "must send its results, keep them or change a statistic"),
        (changed(statistic=1), "Statistic that nothing changes must be 0, not 1"),
        (
            changed(SUMMED, y=Fetched.STATISTIC_0),
            "Changed statistic must not be one that the phase reads, unless",
        ),
        (changed(SUMMED, form=ElementForm.INT8), "statistics must be WORD or BF16, not 'INT8'"),
        (changed(FINISHED, argument=X), "of STATISTICS must not be of a stream, not 'X'"),
        (lambda: LaneProgram(()), "Phases of a lane program must be an integer from 1 to 6, not 0"),
        (lambda: LaneProgram((SENT,) * (PHASES + 1)), "from 1 to 6, not 7"),
        (lambda: LaneProgram((SENT,), (0,) * 5), "Constants of a lane program must be .*, not 5"),
        (lambda: LaneProgram((SENT,), (1 << 32,)), "Constant of a lane program must be"),
        (
            lambda: LaneProgram((FINISHED,)),
            "Source of one phase must be a stream, not 'STATISTICS'",
        ),
        (
            lambda: LaneProgram((FINISHED, SUMMED)),
            "must be changed by a phase before phase 0, which reads it, not 0",
        ),
    ],
)
def test_what_a_lane_cannot_run_is_refused(make, message):
    with pytest.raises(BadInputError, match=message):
        make()


#: A phase that keeps its result, and one that reads and sends it.
KEEPS = LanePhase(PhaseSource.ACTIVATION, reduction=Reduction.KEEP)
READS = LanePhase(
    PhaseSource.ACTIVATION, y=Fetched.KEPT, fma=(Y, Y, Y), argument=Y, result=ResultForm.WORD
)
BESIDE = dataclasses.replace(READS, z=Fetched.AUXILIARY, auxiliary=AuxiliaryUse.VECTOR)
#: Phases before it that take the auxiliary stream and keep their results.
LATCHES = dataclasses.replace(KEEPS, y=Fetched.AUXILIARY, auxiliary=AuxiliaryUse.LATCHED)
LATCHES_TOO = dataclasses.replace(
    BESIDE, auxiliary=AuxiliaryUse.LATCHED, reduction=Reduction.KEEP, result=ResultForm.NONE
)


@pytest.mark.parametrize(
    ("phases", "message"),
    [
        ((READS,), "Phase that reads kept words must follow one that keeps, not 'the first phase'"),
        ((KEEPS,), "Phase that keeps words must come before one that reads them"),
        ((KEEPS, changed(READS, z=Fetched.KEPT)()), "Kept word must be kept by .*, not 1"),
        ((KEEPS, changed(READS, fma=(X, Y, Y))()), "reads kept words must not be of a stream"),
        ((KEEPS, changed(READS, form=ElementForm.BF16)()), "of a joined phase must be that of"),
        ((KEEPS, READS, READS), "Phase before a joined one must only keep words, not 'WORD'"),
        (
            (KEEPS, changed(READS, reduction=Reduction.KEEP_BOTH, result=ResultForm.NONE)(), READS),
            "Phase that keeps x must take a packet, not 'KEEP_BOTH'",
        ),
        (
            (KEEPS, changed(BESIDE, reduction=Reduction.KEEP, result=ResultForm.NONE)(), BESIDE),
            "must be LATCHED where another joined phase takes the stream behind it, not 'VECTOR'",
        ),
        ((LATCHES, LATCHES_TOO, BESIDE), "the auxiliary stream must be at most two, not 3"),
        ((LATCHES, READS), "must be followed by a joined phase that takes the stream; use HELD"),
        ((LATCHES, changed(BESIDE, auxiliary=AuxiliaryUse.LATCHED)()), "the stream; use HELD"),
        (
            (changed(SENT, y=Fetched.AUXILIARY, auxiliary=AuxiliaryUse.LATCHED)(),),
            "Phase of a latched vector must be followed by .*; use HELD, not 'the last one that",
        ),
        (
            (
                SUMMED,
                KEEPS,
                changed(READS, z=Fetched.STATISTIC_0, reduction=Reduction.KEEP, result=_NONE)(),
                changed(READS, reduction=Reduction.SUM)(),
            ),
            "Statistic that joined phases change must not be read, not 0",
        ),
        (
            (SUMMED, changed(FINISHED, reduction=Reduction.KEEP)(), changed(READS, source=_NO_X)()),
            "Source of joined phases must be a stream, not 'STATISTICS'",
        ),
    ],
)
def test_phases_that_cannot_be_joined_are_refused(phases, message):
    with pytest.raises(BadInputError, match=message):
        LaneProgram(phases)


def test_phases_joined_by_kept_words_have_the_ports_of_one():
    first = changed(KEEPS, form=ElementForm.BF16)()
    last = changed(BESIDE, form=ElementForm.BF16, result=ResultForm.BF16)()
    (joined,) = LaneProgram((first, last)).joined
    assert (joined.form, joined.auxiliary) == (ElementForm.BF16, AuxiliaryUse.VECTOR)
    assert (joined.result, joined.auxiliary_vectors(3, 8)) == (ResultForm.BF16, 6)
    assert joined.taking == (last,) and not joined.latches


@pytest.mark.parametrize(
    ("use", "vectors"),
    [(AuxiliaryUse.VECTOR, 4), (AuxiliaryUse.HELD, 2), (AuxiliaryUse.SPREAD, 2)],
    ids=lambda each: getattr(each, "name", each),
)
def test_a_latched_vector_comes_before_those_of_another_phase(use, vectors):
    last = changed(BESIDE, auxiliary=use)()
    (joined,) = LaneProgram((KEEPS, LATCHES_TOO, last)).joined
    assert joined.taking == (LATCHES_TOO, last) and joined.latches
    assert (joined.auxiliary, joined.auxiliary_vectors(3, 8)) == (use, vectors)


def test_words_that_no_program_makes_are_refused():
    word = LaneProgram((SUMMED, FINISHED)).pack()
    last = lane_layout()["phases"].offset + phase_layout().size * 2
    order = lane_layout()["phases"].offset + phase_layout()["order"].offset
    for bad, message in (
        (word | 1 << last, "must be 0 behind its last phase"),
        (word & ~7 | 7, "from 1 to 6, not 7"),
        (word & ~7, "Word of lanes that are off must be 0"),
        (word | 7 << order, "Code of order must be one of UnitOrder, not 7"),
    ):
        with pytest.raises(BadInputError, match=message):
            LaneProgram.unpack(bad)
