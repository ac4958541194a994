"""Lane programs as text: a formula for each phase."""

import numpy as np
import pytest

from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.phase_word import Fetched, Operand, PhaseSource, Reduction, ResultForm, UnitOrder
from hw.numeric.alu_codes import AluOperation
from hw.numeric.function_codes import SpecialFunction
from sw.lane_codes.phase_text import phases_text

X, Y, PREVIOUS = Operand.X, Operand.Y, Operand.PREVIOUS
ZERO, MINUS_ZERO, CONSTANT = Operand.ZERO, Operand.MINUS_ZERO, Operand.CONSTANT_0
HALF = int(np.float32(0.5).view(np.uint32))
FMA, ALU, SFU = UnitOrder.SFU_ALU_FMA, UnitOrder.FMA_SFU_ALU, UnitOrder.FMA_ALU_SFU


def phase(order, **fields):
    source = PhaseSource.ACTIVATION
    return LanePhase(source=source, order=order, **{"result": ResultForm.WORD} | fields)


def alu(operation, *operands, **fields):
    operands += (ZERO,) * (4 - len(operands))
    return phase(ALU, alu=operation, alu_operands=operands, **fields)


@pytest.mark.parametrize(
    ("phase", "constant", "text"),
    [
        (phase(FMA), 0, "x"),
        (phase(FMA, negate_product=True), 0, "-x"),
        (phase(FMA, fma=(X, CONSTANT, MINUS_ZERO)), HALF, "x * 0.5"),
        (
            phase(FMA, fma=(X, X, CONSTANT), negate_product=True, negate_addend=True),
            HALF,
            "-(x * x) - 0.5",
        ),
        (alu(AluOperation.SELECT_LESS, X, ZERO, CONSTANT, X), HALF, "0.5 if x < 0 else x"),
        (alu(AluOperation.ADD_INT32, X, CONSTANT), 2**32 - 3, "x + -3"),
        (alu(AluOperation.OR, X), 0, "x"),
        (alu(AluOperation.CEIL, X), 0, "ceil(x)"),
        (
            phase(
                SFU,
                fma=(X, CONSTANT, MINUS_ZERO),
                alu=AluOperation.MAXIMUM,
                alu_operands=(PREVIOUS, ZERO, ZERO, ZERO),
                function=SpecialFunction.RSQRT,
                argument=PREVIOUS,
            ),
            HALF,
            "rsqrt(maximum(x * 0.5, 0))",
        ),
    ],
)
def test_a_phase_is_a_formula(phase, constant, text):
    assert phases_text(LaneProgram((phase,), (constant,))) == [f"{text} -> 32 bits"]


def test_every_operation_of_the_alu_has_a_formula_of_its_own():
    texts = [phases_text(LaneProgram((alu(each, X, Y, X, Y),))) for each in AluOperation]
    # Sums of fp32 and int32 are written alike, and so are selections by either order.
    assert len({text for (text,) in texts}) == len(AluOperation) - 2


def test_statistics_are_named_where_they_change_and_where_they_are_read():
    largest = alu(AluOperation.OR, X, reduction=Reduction.MAXIMUM, result=ResultForm.NONE)
    difference = alu(AluOperation.SUBTRACT, X, Y, y=Fetched.STATISTIC_0, result=ResultForm.BF16)
    program = LaneProgram((largest, difference))
    assert phases_text(program) == ["stat0 = maximum of x", "x - stat0 -> bf16"]
