"""Golden arithmetic of phases of a PCU's lanes, in numpy: many packets of one length at a time.

A vector is a row of W/32 words of uint32, lowest first; element j of b bits is at bit ``j * b``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.lanes.joined_phases import JoinedPhases
from hw.arch.lanes.lane_function import LaneFunction
from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.phase_word import (
    FIXED_WORDS,
    AuxiliaryUse,
    ElementForm,
    Fetched,
    Operand,
    PhaseSource,
    Reduction,
    ResultForm,
)
from hw.numeric import elementwise, reference
from hw.numeric.alu import alu, fused_multiply_add
from hw.numeric.division import ceil_div
from hw.numeric.formats import bf16, fp32, int8, int32
from hw.numeric.functions import special_function

__all__ = ["phase_results", "vectors"]

Array = npt.NDArray[Any]

_REDUCTIONS = {
    Reduction.SUM: (elementwise.add, 0.0),
    Reduction.MAXIMUM: (elementwise.maximum, -np.inf),
    Reduction.MINIMUM: (elementwise.minimum, np.inf),
}


def elements(words: Array, form: ElementForm) -> Array:
    """Elements of vectors as words of 32 bits, widened: the last axis becomes longer."""
    words = np.ascontiguousarray(words, np.uint32)
    if form is ElementForm.WORD:
        return words
    if form is ElementForm.BF16_LOWER:
        words = np.ascontiguousarray(words[..., : words.shape[-1] // 2])
    if form in (ElementForm.BF16, ElementForm.BF16_LOWER):
        values = bf16.from_bits(words.view(np.uint16))
        return fp32.bits_of(reference.cast(values, fp32))
    numbers = words.view(np.int8)
    if form is ElementForm.INT8:
        return int32.bits_of(numbers.astype(np.int32))
    return fp32.bits_of(numbers.astype(np.float32))


def vectors(results: Array, form: ResultForm, words: int) -> Array:
    """Vectors of ``words`` words that hold results one after another; zeros fill the last.

    Parameters
    ----------
    results : array of uint32, packets × elements
    form : ResultForm
    words : int

    Returns
    -------
    packets × vectors × words array of uint32
    """
    packets, length = results.shape
    count = ceil_div(length, words * form.per_word)
    packed: Array = np.zeros((packets, count * words * form.per_word), np.uint32)
    packed[:, :length] = results
    if form is ResultForm.BF16:
        packed = bf16.bits_of(reference.cast(fp32.from_bits(packed), bf16)).astype(np.uint16)
    elif form is ResultForm.INT8:
        packed = reference.cast(int32.from_bits(packed), int8).view(np.uint8)
    return packed.view(np.uint32).reshape(packets, count, words)


def phase_results(
    joined: JoinedPhases,
    constants: Sequence[int],
    words: Array,
    auxiliary: Array,
    statistics: Array,
    function_bits: int,
) -> Array:
    """Results of joined phases over packets of one length, each with statistics of its own.

    Parameters
    ----------
    joined : JoinedPhases
        Their last one's results are given.
    constants : sequence of int
        Constants of the program.
    words : array of uint32, packets × vectors × W/32
        Packets of the source; one vector each of W/16 words that do not count for `STATISTICS`.
    auxiliary : array of uint32, packets × vectors × W/32
        Vectors of the auxiliary stream beside them; the first one is that of a `LATCHED` phase.
    statistics : array of uint32, packets × `STATISTICS` × W/16
        Changed in place.
    function_bits : int
        Significand bits of the functions.

    Returns
    -------
    packets × vectors × elements array of uint32
    """
    x = words if joined.source is PhaseSource.STATISTICS else elements(words, joined.form)
    result, kept = x, [x, x]
    behind = auxiliary[:, 1:] if joined.latches else auxiliary
    for phase in joined.phases:
        beside = auxiliary if phase.auxiliary is AuxiliaryUse.LATCHED else behind
        fetched = (
            kept[number]
            if origin is Fetched.KEPT
            else _fetched(origin, phase, x.shape, beside, statistics)
            for number, origin in enumerate((phase.y, phase.z))
        )
        known = dict(zip((Operand.X, Operand.Y, Operand.Z), (x, *fetched), strict=True))
        for unit in phase.order.units:
            known[Operand.PREVIOUS] = result
            result = _unit(unit, phase, known, constants, function_bits)
        if phase.reduction is Reduction.KEEP_BOTH:
            kept = [x, result]
        elif phase.reduction is Reduction.KEEP:
            kept[phase.statistic] = result
    _reduce(joined, result, statistics)
    return result


def _fetched(
    origin: Fetched, phase: LanePhase, shape: tuple[int, ...], auxiliary: Array, statistics: Array
) -> Array:
    """Words y or z of every element."""
    packets, rows, columns = shape
    if origin in (Fetched.AUXILIARY, Fetched.AUXILIARY_SECOND):
        every = elements(auxiliary, phase.auxiliary_form)
        if phase.auxiliary is AuxiliaryUse.VECTOR:
            return every.reshape(packets, -1)[:, : rows * columns].reshape(shape)
        if phase.auxiliary in (AuxiliaryUse.HELD, AuxiliaryUse.LATCHED):
            return np.broadcast_to(every[:, :1, :columns], shape)
        step = 2 if phase.auxiliary is AuxiliaryUse.SPREAD_PAIR else 1
        first = int(origin is Fetched.AUXILIARY_SECOND)
        spread = every.reshape(packets, -1)[:, first::step][:, :rows]
        return np.broadcast_to(spread[:, :, np.newaxis], shape)
    if origin.statistic is not None:
        return np.broadcast_to(statistics[:, origin.statistic, np.newaxis, :columns], shape)
    if origin is Fetched.ROW:
        return np.broadcast_to(np.arange(rows, dtype=np.uint32)[:, np.newaxis] & 0xFFFF, shape)
    if origin is Fetched.POSITION:
        return np.broadcast_to(np.arange(columns, dtype=np.uint32), shape)
    return np.zeros(shape, np.uint32)


def _unit(
    unit: str,
    phase: LanePhase,
    known: dict[Operand, Array],
    constants: Sequence[int],
    function_bits: int,
) -> Array:
    """Results of one unit of the lane."""

    def word(operand: Operand) -> Array:
        if operand in known:
            return known[operand]
        fixed = FIXED_WORDS.get(operand)
        if fixed is None:
            fixed = constants[operand.value - Operand.CONSTANT_0.value]
        return np.full(known[Operand.X].shape, np.uint32(fixed))

    def words(operands: Iterable[Operand]) -> list[Array]:
        return [word(each) for each in operands]

    if unit == "alu":
        return alu(phase.alu, *words(phase.alu_operands))
    if unit == "fma":
        floats = [fp32.from_bits(each) for each in words(phase.fma)]
        exact = fused_multiply_add(
            *floats, negate_product=phase.negate_product, negate_addend=phase.negate_addend
        )
        return fp32.bits_of(exact)
    argument = fp32.from_bits(word(phase.argument))
    if isinstance(phase.function, LaneFunction):
        return fp32.bits_of(phase.function.applied(argument))
    return fp32.bits_of(special_function(phase.function, argument, function_bits))


def _reduce(phase: JoinedPhases, results: Array, statistics: Array) -> None:
    """Change a statistic by the results, vector after vector."""
    packets, rows, columns = results.shape
    own = statistics[:, phase.statistic, :columns]
    if phase.reduction is Reduction.REPLACE:
        own[:] = results[:, -1]
    elif phase.reduction is not Reduction.NONE:
        operation, first = _REDUCTIONS[phase.reduction]
        total = np.full((packets, columns), first, np.float32)
        for row in range(rows):
            total = operation(total, fp32.from_bits(results[:, row]))
        own[:] = fp32.bits_of(total)
