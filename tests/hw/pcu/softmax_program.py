"""Softmax over the vectors of a packet that comes three times, as a program of the lanes."""

from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.phase_word import (
    ElementForm,
    Fetched,
    Operand,
    PhaseSource,
    Reduction,
    ResultForm,
    UnitOrder,
)
from hw.numeric.alu_codes import AluOperation
from hw.numeric.function_codes import SpecialFunction

__all__ = ["SOFTMAX", "alu"]

_READ = {"source": PhaseSource.ACTIVATION, "form": ElementForm.BF16}


def alu(operation, a, b):
    """Fields of a phase whose ALU has two operands."""
    return {"alu": operation, "alu_operands": (a, b, Operand.ZERO, Operand.ZERO)}


#: exp(x - y), in the orders in which it is the last result, and the one before the FMA.
_EXPONENTIAL = {
    **alu(AluOperation.SUBTRACT, Operand.X, Operand.Y),
    "function": SpecialFunction.EXP,
    "argument": Operand.PREVIOUS,
}
SOFTMAX = LaneProgram(
    (
        LanePhase(
            **_READ,
            order=UnitOrder.ALU_SFU_FMA,
            reduction=Reduction.MAXIMUM,
        ),
        LanePhase(
            **_READ,
            **_EXPONENTIAL,
            y=Fetched.STATISTIC_0,
            order=UnitOrder.FMA_ALU_SFU,
            reduction=Reduction.SUM,
            statistic=1,
        ),
        LanePhase(
            PhaseSource.STATISTICS,
            fma=(Operand.Y, Operand.ONE, Operand.MINUS_ZERO),
            y=Fetched.STATISTIC_1,
            function=SpecialFunction.RECIPROCAL,
            argument=Operand.Y,
            reduction=Reduction.REPLACE,
            statistic=1,
        ),
        LanePhase(
            **_READ,
            **_EXPONENTIAL,
            y=Fetched.STATISTIC_0,
            z=Fetched.STATISTIC_1,
            order=UnitOrder.ALU_SFU_FMA,
            fma=(Operand.PREVIOUS, Operand.Z, Operand.MINUS_ZERO),
            result=ResultForm.BF16,
        ),
    )
)
