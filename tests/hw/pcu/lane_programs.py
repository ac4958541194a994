"""Random lane programs, streams for them, and their run on a native model of lanes."""

import numpy as np

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
)
from hw.numeric.alu_codes import AluOperation
from hw.numeric.function_codes import SpecialFunction
from hw.numeric.lane_model import LaneModel, VectorStream

__all__ = [
    "PORTS",
    "check_program",
    "payloads",
    "random_program",
    "random_streams",
    "run_lanes",
    "words_of",
]

#: Streams by the source of a phase.
PORTS = {
    PhaseSource.ACTIVATION: "i_activation",
    PhaseSource.AUXILIARY: "i_auxiliary",
    PhaseSource.ACCUMULATORS: "i_accumulators",
}
_MARKED = (PhaseSource.ACTIVATION, PhaseSource.AUXILIARY)
_UNCONSTANT = (Operand.X, Operand.Y, Operand.Z, Operand.PREVIOUS)


def random_phase(rng, changed, **fixed):
    """A phase that a lane can run, reading only the statistics that are changed before it."""

    def one(kinds):
        kinds = list(kinds)
        return kinds[rng.integers(len(kinds))]

    def operands(count, first, constant=True):
        bad = {Operand.PREVIOUS} if first else set()
        if source is PhaseSource.STATISTICS:
            bad.add(Operand.X)
        kinds = Operand if constant else _UNCONSTANT
        return tuple(one([each for each in kinds if each not in bad]) for _ in range(count))

    while True:
        source = one(PhaseSource if changed else PORTS)
        readable = [each for each in Fetched if each.statistic is None or each.statistic in changed]
        fetched = [one(readable), one(readable)]
        uses = [each for each in AuxiliaryUse if each is not AuxiliaryUse.NONE]
        takes = Fetched.AUXILIARY in fetched
        form = one(ElementForm) if source in _MARKED else ElementForm.WORD
        order = one(UnitOrder)
        first = order.units[0]
        reduction = one(Reduction)
        values = {
            "source": source,
            "form": form,
            "auxiliary": one(uses) if takes else AuxiliaryUse.NONE,
            "auxiliary_form": one(ElementForm) if takes else ElementForm.WORD,
            "y": fetched[0],
            "z": fetched[1],
            "order": order,
            "fma": (*operands(1, first == "fma", False), *operands(2, first == "fma")),
            "negate_product": bool(rng.integers(2)),
            "negate_addend": bool(rng.integers(2)),
            "alu": one(AluOperation),
            "alu_operands": operands(4, first == "alu"),
            "function": one(SpecialFunction),
            "argument": operands(1, first == "sfu", False)[0],
            "reduction": reduction,
            "statistic": int(rng.integers(2)) if reduction is not Reduction.NONE else 0,
            "result": one(ResultForm),
        }
        try:
            return LanePhase(**(values | fixed))
        except BadInputError:
            continue


def random_program(rng, **fixed):
    """A program of one to six phases, most of whose statistics are read again."""
    while True:
        phases, changed = [], set()
        for _ in range(rng.integers(1, PHASES + 1)):
            phases.append(random_phase(rng, changed, **fixed))
            if phases[-1].reduction is not Reduction.NONE:
                changed.add(phases[-1].statistic)
        constants = tuple(int(each) for each in words_of(rng, 4))
        try:
            return LaneProgram(tuple(phases), constants)
        except BadInputError:
            continue


def words_of(rng, count):
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


def random_streams(rng, program, *, width_bits, rounds, longest=6):
    """Streams for so many rounds of the phases; packets have 1 to ``longest`` vectors."""
    words = width_bits // 32
    model = LaneModel(program, width_bits=width_bits, function_bits=16)
    lengths = {source: [] for source in PORTS}

    def add(source, count, marked):
        lengths[source].append((count, marked))

    for _ in range(rounds):
        for phase in program.phases:
            count = 1
            if phase.source is not PhaseSource.STATISTICS:
                count = int(rng.integers(1, longest + 1))
                add(phase.source, count, True)
            beside = model.auxiliary_vectors(phase, count)
            if beside:
                add(PhaseSource.AUXILIARY, beside, False)
    streams = {}
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


def payloads(stream):
    """Payloads of a stream as a native model takes them."""
    marks = (stream.last.astype(np.uint32) | stream.final.astype(np.uint32) << 1)[:, np.newaxis]
    return np.concatenate([stream.words, marks], axis=1).astype(np.uint32)


def run_lanes(model, prefix, program, streams, count, *, stalls, seed):
    """Transfers of the streams when a program runs from reset, ``count`` results of it."""
    model.reset(seed)
    model.set(f"{prefix}_config", program.pack())
    inputs = {f"{prefix}_{PORTS[source]}": payloads(stream) for source, stream in streams.items()}
    names = [f"{prefix}_o_result", *inputs]
    return model.run(
        inputs,
        {f"{prefix}_o_result": count},
        stalls=dict(zip(names, stalls, strict=False)),
        quiet_cycles=2_000,
    )


def check_program(model, prefix, sizes, program, rng, **lengths):
    """Run a program on random streams under random stalls, and compare it with numpy."""
    width, _, bits = sizes
    streams = random_streams(rng, program, width_bits=width, **lengths)
    expected = LaneModel(program, width_bits=width, function_bits=bits).run(streams)
    stalls = rng.choice([0.0, 0.3, 0.7], 1 + len(streams))
    crossed = run_lanes(
        model,
        prefix,
        program,
        streams,
        len(expected.words),
        stalls=stalls,
        seed=rng.integers(1 << 30),
    )
    got = crossed[f"{prefix}_o_result"].words
    assert (got == payloads(expected)).all(), program
