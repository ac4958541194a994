"""Lane programs as text: a formula for each phase."""

from __future__ import annotations

import numpy as np

from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.phase_word import Fetched, Operand, PhaseSource, Reduction
from hw.arch.lanes.phase_word import ResultForm as Result
from hw.numeric.alu_codes import AluOperation

__all__ = ["phases_text"]

_SOURCES = {
    PhaseSource.ACTIVATION: "x",
    PhaseSource.AUXILIARY: "aux",
    PhaseSource.ACCUMULATORS: "sum",
}
_FETCHED = {
    Fetched.NONE: "0",
    Fetched.AUXILIARY: "aux",
    Fetched.AUXILIARY_SECOND: "aux2",
    Fetched.STATISTIC_0: "stat0",
    Fetched.STATISTIC_1: "stat1",
    Fetched.ROW: "row",
    Fetched.POSITION: "position",
}
_INFIX = {
    AluOperation.ADD: "+",
    AluOperation.SUBTRACT: "-",
    AluOperation.ADD_INT32: "+",
    AluOperation.AND: "&",
    AluOperation.OR: "|",
    AluOperation.XOR: "^",
    AluOperation.SHIFT_LEFT: "<<",
    AluOperation.SHIFT_RIGHT: ">>",
}
_SELECTS = {
    AluOperation.SELECT_LESS: "<",
    AluOperation.SELECT_EQUAL: "==",
    AluOperation.SELECT_LESS_INT32: "<",
}
#: Operations written as a call, with the number of operands that they take.
_CALLS = {
    AluOperation.MINIMUM: 2,
    AluOperation.MAXIMUM: 2,
    AluOperation.CEIL: 1,
    AluOperation.TO_INT32: 1,
    AluOperation.FROM_INT32: 1,
}
_INTEGER = {
    AluOperation.ADD_INT32,
    AluOperation.SELECT_LESS_INT32,
    AluOperation.AND,
    AluOperation.OR,
    AluOperation.XOR,
    AluOperation.SHIFT_LEFT,
    AluOperation.SHIFT_RIGHT,
}
_RESULTS = {Result.WORD: "32 bits", Result.BF16: "bf16", Result.INT8: "int8"}


def phases_text(program: LaneProgram) -> list[str]:
    """A formula for each phase: of the elements it takes, of a statistic, or of what is sent.

    ``x`` is the element of the activation stream, ``sum`` that of the accumulators, ``aux`` (and
    ``aux2``) that of the auxiliary stream, ``stat0`` and ``stat1`` the statistics, ``kept0`` and
    ``kept1`` the kept words.
    """
    return [_phase_text(phase, program.constants) for phase in program.phases]


def _phase_text(phase: LanePhase, constants: tuple[int, ...]) -> str:
    value = _value(phase, constants)
    if phase.reduction is Reduction.KEEP:
        value = f"kept{phase.statistic} = {value}"
    elif phase.reduction is Reduction.KEEP_BOTH:
        value = f"kept0 = {_SOURCES[phase.source]}, kept1 = {value}"
    elif phase.reduction is Reduction.REPLACE:
        value = f"stat{phase.statistic} = {value}"
    elif phase.reduction is not Reduction.NONE:
        value = f"stat{phase.statistic} = {phase.reduction.name.lower()} of {value}"
    if phase.result is not Result.NONE:
        value += f" -> {_RESULTS[phase.result]}"
    return value


def _value(phase: LanePhase, constants: tuple[int, ...]) -> str:
    value = ""
    for unit in phase.order.units:
        match unit:
            case "fma":
                value = _fma(phase, value, constants)
            case "alu":
                value = _alu(phase, value, constants)
            case _:
                argument = _operand(phase, phase.argument, value, constants, integer=False)
                value = f"{phase.function.name.lower()}({_bare(argument)})"
    return _bare(value)


def _fma(phase: LanePhase, previous: str, constants: tuple[int, ...]) -> str:
    a, b, c = (_operand(phase, each, previous, constants, integer=False) for each in phase.fma)
    product = a if phase.fma[1] is Operand.ONE else f"{a} * {b}"
    if phase.negate_product:
        product = f"-{a}" if phase.fma[1] is Operand.ONE else f"-({product})"
    if phase.fma[2] is Operand.MINUS_ZERO and not phase.negate_addend:
        return product if product == a else f"({product})"
    return f"({product} {'-' if phase.negate_addend else '+'} {c})"


def _alu(phase: LanePhase, previous: str, constants: tuple[int, ...]) -> str:
    operation = phase.alu
    integer = operation in _INTEGER
    a, b, c, d = (
        _operand(phase, each, previous, constants, integer=integer) for each in phase.alu_operands
    )
    if operation is AluOperation.OR and b == "0":
        return a
    if operation in _INFIX:
        return f"({a} {_INFIX[operation]} {b})"
    if operation in _SELECTS:
        return f"({c} if {a} {_SELECTS[operation]} {b} else {d})"
    taken = (a, b)[: _CALLS[operation]]
    return f"{operation.name.lower()}({', '.join(map(_bare, taken))})"


def _operand(
    phase: LanePhase, operand: Operand, previous: str, constants: tuple[int, ...], *, integer: bool
) -> str:
    match operand:
        case Operand.X:
            return _SOURCES[phase.source]
        case Operand.Y:
            return "kept0" if phase.y is Fetched.KEPT else _FETCHED[phase.y]
        case Operand.Z:
            return "kept1" if phase.z is Fetched.KEPT else _FETCHED[phase.z]
        case Operand.PREVIOUS:
            return previous
        case Operand.ZERO | Operand.ONE | Operand.MINUS_ZERO:
            return {Operand.ZERO: "0", Operand.ONE: "1", Operand.MINUS_ZERO: "-0"}[operand]
    word = np.uint32(constants[int(operand.value) - int(Operand.CONSTANT_0.value)])
    return str(word.view(np.int32)) if integer else f"{word.view(np.float32):.6g}"


def _bare(text: str) -> str:
    """A formula without parentheses around all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for character in text[:-1]:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if not depth:
            return text
    return text[1:-1]
