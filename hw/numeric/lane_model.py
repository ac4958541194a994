"""Golden lanes of a PCU in numpy: packets of results of a lane program, bit-exact.

A vector is a row of W/32 words of uint32, lowest first; element j of b bits is at bit ``j * b``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hw.arch.lanes.lane_program import LanePhase, LaneProgram
from hw.arch.lanes.phase_word import (
    FIXED_WORDS,
    STATISTICS,
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

__all__ = ["LaneModel", "VectorStream", "elements", "vectors"]

Array = npt.NDArray[Any]

_REDUCTIONS = {
    Reduction.SUM: (elementwise.add, 0.0),
    Reduction.MAXIMUM: (elementwise.maximum, -np.inf),
    Reduction.MINIMUM: (elementwise.minimum, np.inf),
}


class VectorStream(NamedTuple):
    """Vectors of a stream with their marks.

    Members
    -------
    words : array of uint32, vectors × W/32
    last, final : array of bool
        Whether a vector ends a packet, and a pass.
    """

    words: Array
    last: Array
    final: Array


class _Reader:
    """Vectors of a stream that are not taken yet."""

    def __init__(self, stream: VectorStream) -> None:
        self._stream = stream
        self._taken = 0

    def take(self, count: int) -> Array | None:
        """So many vectors, or None if there are fewer."""
        words = self._stream.words[self._taken : self._taken + count]
        self._taken += count
        return words if len(words) == count else None

    def take_packet(self) -> tuple[Array, bool] | None:
        """A packet and its mark `final`, or None if there is none whole."""
        ends = np.flatnonzero(self._stream.last[self._taken :])
        if not len(ends):
            return None
        end = self._taken + int(ends[0]) + 1
        words = self._stream.words[self._taken : end]
        self._taken = end
        return words, bool(self._stream.final[end - 1])


def elements(words: Array, form: ElementForm) -> Array:
    """Elements of vectors as words of 32 bits, widened: a row for each vector."""
    words = np.ascontiguousarray(words, np.uint32)
    if form is ElementForm.WORD:
        return words
    if form is ElementForm.BF16:
        values = bf16.from_bits(words.view(np.uint16))
        return fp32.bits_of(reference.cast(values, fp32))
    numbers = words.view(np.int8)
    if form is ElementForm.INT8:
        return int32.bits_of(numbers.astype(np.int32))
    return fp32.bits_of(numbers.astype(np.float32))


def vectors(results: Array, form: ResultForm, words: int) -> Array:
    """Vectors of ``words`` words that hold results one after another; zeros fill the last."""
    count = ceil_div(len(results), words * form.per_word)
    packed: Array = np.zeros(count * words * form.per_word, np.uint32)
    packed[: len(results)] = results
    if form is ResultForm.BF16:
        packed = bf16.bits_of(reference.cast(fp32.from_bits(packed), bf16)).astype(np.uint16)
    elif form is ResultForm.INT8:
        packed = reference.cast(int32.from_bits(packed), int8).view(np.uint8)
    return packed.view(np.uint32).reshape(count, words)


class LaneModel:
    """Lanes of a PCU that run a program; the statistics remain between calls.

    Parameters
    ----------
    program : LaneProgram
    width_bits : int
        Link width W.
    function_bits : int
        Significand bits of the functions.
    """

    def __init__(self, program: LaneProgram, *, width_bits: int, function_bits: int) -> None:
        self._program = program
        self._words = width_bits // 32
        self._function_bits = function_bits
        self._statistics = np.zeros((STATISTICS, 2 * self._words), np.uint32)
        self._next = 0

    def run(self, streams: Mapping[PhaseSource, VectorStream]) -> VectorStream:
        """Results of as many phases as the streams have packets for.

        Parameters
        ----------
        streams : mapping of PhaseSource to VectorStream
            Vectors of the activation and the auxiliary stream, and rows of accumulators.
        """
        readers = {source: _Reader(stream) for source, stream in streams.items()}
        sent: list[tuple[Array, bool]] = []
        while (taken := self._take(readers)) is not None:
            phase, words, final, auxiliary = taken
            results = self._phase(phase, words, auxiliary)
            self._next = (self._next + 1) % len(self._program.phases)
            if phase.result is not ResultForm.NONE:
                sent.append((vectors(results.reshape(-1), phase.result, self._words), final))
        lengths = np.array([len(words) for words, _ in sent], int)
        count = int(lengths.sum())
        last, final_marks = np.zeros(count, bool), np.zeros(count, bool)
        last[lengths.cumsum() - 1] = True
        final_marks[lengths.cumsum() - 1] = [final for _, final in sent]
        none: Array = np.zeros((0, self._words), np.uint32)
        return VectorStream(np.concatenate([none, *(w for w, _ in sent)]), last, final_marks)

    def _take(
        self, readers: Mapping[PhaseSource, _Reader]
    ) -> tuple[LanePhase, Array, bool, Array] | None:
        """The next phase with its packet, the packet's mark, and vectors beside it."""
        phase = self._program.phases[self._next]
        packet: tuple[Array, bool] | None = np.zeros((1, 2 * self._words), np.uint32), False
        if phase.source is not PhaseSource.STATISTICS:
            own = readers.get(phase.source)
            packet = own.take_packet() if own else None
        if packet is None:
            return None
        words, final = packet
        count = self.auxiliary_vectors(phase, len(words))
        if not count:
            return phase, words, final, words[:0]
        other = readers.get(PhaseSource.AUXILIARY)
        auxiliary = other.take(count) if other else None
        return None if auxiliary is None else (phase, words, final, auxiliary)

    def auxiliary_vectors(self, phase: LanePhase, count: int) -> int:
        """Vectors of the auxiliary stream that a packet of ``count`` vectors takes beside it."""
        source, own = (
            self._words * each for each in (phase.elements_per_word, phase.auxiliary_form.per_word)
        )
        return {
            AuxiliaryUse.NONE: 0,
            AuxiliaryUse.VECTOR: ceil_div(count * source, own),
            AuxiliaryUse.HELD: 1,
            AuxiliaryUse.SPREAD: ceil_div(count, own),
            AuxiliaryUse.SPREAD_PAIR: ceil_div(2 * count, own),
        }[phase.auxiliary]

    def _phase(self, phase: LanePhase, words: Array, auxiliary: Array) -> Array:
        """Results of a phase over one packet, vectors × elements."""
        statistics = phase.source is PhaseSource.STATISTICS
        x = words if statistics else elements(words, phase.form)
        y, z = (self._fetched(each, phase, x.shape, auxiliary) for each in (phase.y, phase.z))
        known = {Operand.X: x, Operand.Y: y, Operand.Z: z}
        result = x
        for unit in phase.order.units:
            known[Operand.PREVIOUS] = result
            result = self._unit(unit, phase, known, x.shape)
        self._reduce(phase, result)
        return result

    def _fetched(
        self, origin: Fetched, phase: LanePhase, shape: tuple[int, ...], auxiliary: Array
    ) -> Array:
        """Words y or z of every element."""
        rows, columns = shape
        if origin in (Fetched.AUXILIARY, Fetched.AUXILIARY_SECOND):
            every = elements(auxiliary, phase.auxiliary_form)
            if phase.auxiliary is AuxiliaryUse.VECTOR:
                return every.reshape(-1)[: rows * columns].reshape(shape)
            if phase.auxiliary is AuxiliaryUse.HELD:
                return np.broadcast_to(every[0, :columns], shape)
            step = 2 if phase.auxiliary is AuxiliaryUse.SPREAD_PAIR else 1
            first = int(origin is Fetched.AUXILIARY_SECOND)
            spread = every.reshape(-1)[first::step][:rows]
            return np.broadcast_to(spread[:, np.newaxis], shape)
        if origin.statistic is not None:
            return np.broadcast_to(self._statistics[origin.statistic, :columns], shape)
        if origin is Fetched.ROW:
            return np.broadcast_to(np.arange(rows, dtype=np.uint32)[:, np.newaxis] & 0xFFFF, shape)
        if origin is Fetched.POSITION:
            return np.broadcast_to(np.arange(columns, dtype=np.uint32), shape)
        return np.zeros(shape, np.uint32)

    def _unit(
        self, unit: str, phase: LanePhase, known: dict[Operand, Array], shape: tuple[int, ...]
    ) -> Array:
        """Results of one unit of the lane."""

        def words(operands: Iterable[Operand]) -> list[Array]:
            return [
                known[each] if each in known else np.full(shape, self._constant(each))
                for each in operands
            ]

        if unit == "alu":
            return alu(phase.alu, *words(phase.alu_operands))
        if unit == "fma":
            floats = [fp32.from_bits(each) for each in words(phase.fma)]
            exact = fused_multiply_add(
                *floats, negate_product=phase.negate_product, negate_addend=phase.negate_addend
            )
            return fp32.bits_of(exact)
        (argument,) = words((phase.argument,))
        return fp32.bits_of(
            special_function(phase.function, fp32.from_bits(argument), self._function_bits)
        )

    def _constant(self, operand: Operand) -> np.uint32:
        if operand in FIXED_WORDS:
            return np.uint32(FIXED_WORDS[operand])
        return np.uint32(self._program.constants[operand.value - Operand.CONSTANT_0.value])

    def _reduce(self, phase: LanePhase, results: Array) -> None:
        """Change a statistic by the results, vector after vector."""
        own = self._statistics[phase.statistic, : results.shape[1]]
        if phase.reduction is Reduction.REPLACE:
            own[:] = results[-1]
        elif phase.reduction is not Reduction.NONE:
            operation, first = _REDUCTIONS[phase.reduction]
            total = np.full(results.shape[1], first, np.float32)
            for row in results:
                total = operation(total, fp32.from_bits(row))
            own[:] = fp32.bits_of(total)
