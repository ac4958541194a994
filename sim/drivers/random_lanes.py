"""Random lane programs, random streams for them, and those as payloads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from hw.arch.errors import BadInputError
from hw.arch.lanes.joined_phases import JoinedPhases
from hw.arch.lanes.lane_function import LaneFunction
from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_program import LaneProgram
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
)
from hw.numeric.alu_codes import AluOperation
from hw.numeric.function_codes import SpecialFunction
from hw.numeric.lane_model import LaneModel, VectorStream
from sim.drivers.products import Words

__all__ = ["STREAMS", "random_program", "random_streams", "stream_payloads", "words_of"]

#: Sources of a phase that are streams.
STREAMS = (PhaseSource.ACTIVATION, PhaseSource.AUXILIARY, PhaseSource.ACCUMULATORS)
_UNCONSTANT = (Operand.X, Operand.Y, Operand.Z, Operand.PREVIOUS)
#: Words of a packet of joined phases that may be long: more than a strip of a few lanes.
_LONG = 150

#: Uses of the auxiliary stream if no other joined phase takes it.
_USES = tuple(each for each in AuxiliaryUse if each is not AuxiliaryUse.LATCHED)

#: Forms that each phase of a program may have.
_FORMS: tuple[ElementForm, ...] = tuple(
    each for each in ElementForm if each is not ElementForm.BF16_LOWER
)

T = TypeVar("T")


def _random_phase(
    rng: np.random.Generator,
    changed: Collection[int],
    sources: Collection[PhaseSource],
    orders: Collection[UnitOrder],
    functions: tuple[LaneFunction, ...],
    before: Sequence[LanePhase] = (),
    keeps: bool = False,
    uses: Sequence[AuxiliaryUse] = _USES,
) -> LanePhase:
    """A phase that a lane can run, reading only the statistics that are changed before it.

    It continues the phases ``before`` it, if there are some, and may be continued if it ``keeps``.
    ``uses`` are those of the auxiliary stream that it may have.
    """

    def one(kinds: Iterable[T]) -> T:
        listed = list(kinds)
        return listed[rng.integers(len(listed))]

    def operands(count: int, first: bool, constant: bool = True) -> tuple[Operand, ...]:
        bad = {Operand.PREVIOUS} if first else set()
        if before or source is PhaseSource.STATISTICS:
            bad.add(Operand.X)
        kinds = Operand if constant else _UNCONSTANT
        return tuple(one(each for each in kinds if each not in bad) for _ in range(count))

    plain = len(orders) < len(UnitOrder)
    readable = [each for each in Fetched if each.statistic is None or each.statistic in changed]
    readable.remove(Fetched.KEPT)
    joined = bool(before) or keeps
    words = (PhaseSource.STATISTICS, PhaseSource.ACCUMULATORS)
    while True:
        source = one(sources if joined else [*sources, PhaseSource.STATISTICS])
        form = ElementForm.WORD if source in words else one(_FORMS)
        fetched = [one(readable), one(readable)]
        if before:
            source, form = before[0].source, before[0].form
            fetched[rng.integers(2)] = Fetched.KEPT
            if rng.integers(2):
                fetched = [Fetched.KEPT] * 2
        takes = Fetched.AUXILIARY in fetched
        fitting = [each for each in uses if takes == (each is not AuxiliaryUse.NONE)]
        if not fitting:
            continue
        order = one(orders)
        first = order.units[0]
        reduction = one(each for each in Reduction if each.keeps == keeps)
        if plain and not keeps and rng.integers(2):
            reduction = Reduction.NONE
        numbered = reduction not in (Reduction.NONE, Reduction.KEEP_BOTH)
        values: dict[str, Any] = {
            "source": source,
            "form": form,
            "auxiliary": one(fitting),
            "auxiliary_form": one(_FORMS) if takes else ElementForm.WORD,
            "y": fetched[0],
            "z": fetched[1],
            "order": order,
            "fma": (*operands(1, first == "fma", False), *operands(2, first == "fma")),
            "negate_product": bool(rng.integers(2)),
            "negate_addend": bool(rng.integers(2)),
            "alu": one(AluOperation),
            "alu_operands": operands(4, first == "alu"),
            "function": one((*SpecialFunction, *functions)),
            "argument": operands(1, first == "sfu", False)[0],
            "reduction": reduction,
            "statistic": int(rng.integers(2)) if numbered else 0,
            "result": ResultForm.NONE if keeps else one(ResultForm),
        }
        try:
            return LanePhase(**values)
        except BadInputError:
            continue


def _random_join(
    rng: np.random.Generator,
    changed: Collection[int],
    sources: Collection[PhaseSource],
    orders: Collection[UnitOrder],
    functions: tuple[LaneFunction, ...],
    count: int,
) -> tuple[LanePhase, ...]:
    """So many phases that can be joined, and read no statistic that they change; or one phase.

    In half of the joins of another source than the auxiliary stream two phases take this one.
    """
    uses: list[Sequence[AuxiliaryUse]] = [_USES] * count
    others = [each for each in sources if each is not PhaseSource.AUXILIARY]
    if count > 1 and others and rng.integers(2):
        first, second = sorted(rng.choice(count, 2, replace=False))
        uses = [_USES[:1]] * count
        uses[first], uses[second] = (AuxiliaryUse.LATCHED,), _USES[1:]
        sources = others
    while True:
        phases: list[LanePhase] = []
        for number in range(1, count + 1):
            keeps = number < count
            own = _random_phase(
                rng, changed, sources, orders, functions, phases, keeps, uses[number - 1]
            )
            phases.append(own)
        try:
            joined = JoinedPhases(tuple(phases))
        except BadInputError:
            continue
        if count == 1 or not joined.reduction.changes or joined.statistic not in joined.statistics:
            return joined.phases


def random_program(
    rng: np.random.Generator,
    sources: Collection[PhaseSource] = STREAMS,
    functions: tuple[LaneFunction, ...] = (),
) -> LaneProgram:
    """A program of one to six phases, most of whose statistics are read again.

    In half of the programs phases have the same times, so that some follow others at once. In a
    third of them there are joined phases, and in a third bf16 lies in the lower halves of vectors.

    Parameters
    ----------
    rng : numpy.random.Generator
    sources : collection of PhaseSource
        Streams that phases may take; the auxiliary stream also beside another source.
    functions : tuple of LaneFunction
        Function units of the lanes.
    """
    while True:
        phases: list[LanePhase] = []
        changed: set[int] = set()
        times = UnitOrder(int(rng.integers(len(UnitOrder)))).times if rng.integers(2) else None
        orders = [each for each in UnitOrder if times in (None, each.times)]
        joins = rng.integers(3) == 0
        count = int(rng.integers(1 + joins, PHASES + 1))
        while len(phases) < count:
            size = min(int(rng.integers(1, 5)), count - len(phases)) if joins else 1
            phases += _random_join(rng, changed, sources, orders, functions, size)
            if phases[-1].reduction.changes:
                changed.add(phases[-1].statistic)
        if not rng.integers(3):
            phases = [each.of_lower_halves() for each in phases]
        constants = tuple(int(each) for each in words_of(rng, 4))
        try:
            return LaneProgram(tuple(phases), constants)
        except BadInputError:
            continue


def words_of(rng: np.random.Generator, count: int) -> Words:
    """Words that are interesting as fp32, as int32 or as elements of other forms."""
    bits = rng.integers(0, 1 << 32, count, dtype=np.uint32)
    near = (rng.normal(0, 4, count)).astype(np.float32).view(np.uint32)
    small = rng.integers(-300, 300, count).astype(np.int32).view(np.uint32)
    halves = rng.normal(0, 4, (count, 2)).astype(np.float32).view(np.uint32) >> 16
    pairs = halves[:, 0] << 16 | halves[:, 1]
    special = rng.choice(
        np.array([0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00001, 1, 0x3F800000], np.uint32),
        count,
    )
    kind = rng.integers(0, 16, count)
    return np.select(
        [kind < 2, kind < 8, kind < 10, kind < 15], [bits, near, small, pairs], special
    ).astype(np.uint32)


def random_streams(
    rng: np.random.Generator,
    program: LaneProgram,
    *,
    width_bits: int,
    rounds: int,
    longest: int = 6,
) -> dict[PhaseSource, VectorStream]:
    """Streams for so many rounds of the phases; packets have 1 to ``longest`` vectors.

    Some packets of streams for joined phases are longer than that, and than a strip.
    """
    words = width_bits // 32
    model = LaneModel(program, width_bits=width_bits, function_bits=16)
    lengths: dict[PhaseSource, list[tuple[int, bool]]] = {source: [] for source in STREAMS}
    for _ in range(rounds):
        for phase in program.joined:
            count = 1
            if phase.source is not PhaseSource.STATISTICS:
                is_long = len(phase.phases) > 1 and phase.source is not PhaseSource.ACCUMULATORS
                most = _LONG // phase.elements_per_word if is_long and not rng.integers(4) else 0
                count = int(rng.integers(1, max(most, longest) + 1))
                lengths[phase.source].append((count, True))
            beside = model.auxiliary_vectors(phase, count)
            if beside:
                lengths[PhaseSource.AUXILIARY].append((beside, False))
    streams: dict[PhaseSource, VectorStream] = {}
    for source, packets in lengths.items():
        total = sum(count for count, _ in packets)
        last = rng.integers(0, 2, total).astype(bool)
        final = rng.integers(0, 2, total).astype(bool)
        end = 0
        for count, marked in packets:
            end += count
            if marked:
                last[end - count : end - 1] = False
                last[end - 1] = True
        streams[source] = VectorStream(
            words_of(rng, total * words).reshape(total, words), last, final & last
        )
    return streams


def stream_payloads(stream: VectorStream) -> Words:
    """Payloads of a stream, vectors × words; the marks are in the last word."""
    marks = (stream.last.astype(np.uint32) | stream.final.astype(np.uint32) << 1)[:, np.newaxis]
    return np.concatenate([stream.words, marks], axis=1).astype(np.uint32)
