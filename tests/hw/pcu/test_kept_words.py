"""Joined phases natively: strips, their ends, what goes on over strips, and their cycles."""

import dataclasses
import itertools

import numpy as np
import pytest

from gen.verilog import emit
from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.lane_room import kept_groups
from hw.arch.lanes.phase_word import (
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
from hw.numeric.lane_model import LaneModel, VectorStream
from hw.pcu.kept_words import KeptWords
from hw.pcu.overlapping_phases import OverlappingPhases
from sw.timing.timed_lanes import PHASE_CHANGE
from tests.hw.pcu.lane_programs import (
    busy_cycles,
    check_program,
    packets,
    payloads,
    random_program,
    run_lanes,
    words_of,
)
from tests.hw.units import LANES as SETS
from tests.hw.units import lanes_of
from tests.native.clocked_bundle import ClockedBundle
from tests.native.heavy_model import heavy_model

X, Y, Z, PREVIOUS = Operand.X, Operand.Y, Operand.Z, Operand.PREVIOUS
ACTIVATION, AUXILIARY = PhaseSource.ACTIVATION, PhaseSource.AUXILIARY
KEPT = Fetched.KEPT
#: As many lanes as words; vectors of which a strip holds one, if they are of int8.
WIDE_SETS = {"eight": (256, 8, 12), "single": (1024, 2, 12)}
#: Groups of the least strip whose phases follow at once.
LONG = OverlappingPhases.latency + KeptWords.latency

#: A phase that adds its words, y and z.
ADDS = LanePhase(
    ACTIVATION,
    y=KEPT,
    z=KEPT,
    fma=(Y, Operand.ONE, Z),
    alu=AluOperation.OR,
    alu_operands=(PREVIOUS, Operand.ZERO, Operand.ZERO, Operand.ZERO),
    argument=Y,
    order=UnitOrder.SFU_FMA_ALU,
    result=ResultForm.WORD,
)
#: One that keeps x and x + 1.
BOTH = dataclasses.replace(
    ADDS,
    y=Fetched.NONE,
    z=Fetched.NONE,
    fma=(X, Operand.ONE, Operand.ONE),
    reduction=Reduction.KEEP_BOTH,
    result=ResultForm.NONE,
)


@pytest.fixture
def model(pcu_units):
    return pcu_units[2]


@pytest.fixture(scope="module")
def wide_model(heavy_lock):
    bundle = ClockedBundle({name: lanes_of(*sizes) for name, sizes in WIDE_SETS.items()})
    with heavy_model(heavy_lock, emit(bundle), bundle) as model:
        yield model


def changed(phase, **fields):
    return dataclasses.replace(phase, **fields)


def joined_program(rng, **fields):
    """A random program some of whose phases are joined."""
    while True:
        program = random_program(rng, **fields)
        if len(program.joined) < len(program.phases):
            return program


def groups_of(sizes, form=ElementForm.WORD):
    """Groups of a vector."""
    width, lanes, _ = sizes
    return width // 32 * form.per_word // lanes


def strip_of(sizes, form=ElementForm.WORD):
    """Vectors of a strip."""
    width, lanes, _ = sizes
    return kept_groups(width_bits=width, lanes=lanes) // groups_of(sizes, form)


def check_lengths(model, name, sizes, program, lengths, rng, words_of=words_of):
    """Run a program on packets of these lengths, one for each source in turn, beside others."""
    words = sizes[0] // 32
    last = np.concatenate([np.arange(1, each + 1) == each for each in lengths])
    final = last & rng.integers(2, size=len(last)).astype(bool)
    own = words_of(rng, len(last) * words).reshape(-1, words)
    streams = {ACTIVATION: VectorStream(own, last, final)}
    (group,) = (each for each in program.joined if each.source is ACTIVATION)
    beside = sum(group.auxiliary_vectors(each, words) for each in lengths)
    if beside:
        none = np.zeros(beside, bool)
        other = words_of(rng, beside * words).reshape(-1, words)
        streams[AUXILIARY] = VectorStream(other, none, none)
    golden = LaneModel(program, width_bits=sizes[0], function_bits=sizes[2]).run(streams)
    for stalls in ((0, 0, 0), (0.5, 0.2, 0.2)):
        crossed = run_lanes(model, name, program, streams, len(golden.words), stalls=stalls, seed=1)
        assert (crossed[f"{name}_o_result"].words == payloads(golden)).all(), program


@pytest.mark.few(1)
@pytest.mark.parametrize("name", SETS)
def test_random_joined_programs_equal_numpy_under_random_stalls(model, name, seed):
    rng = np.random.default_rng(seed)
    for longest in (1, 3, 10, 40, 150):
        for _ in range(8):
            program = joined_program(rng)
            check_program(model, name, SETS[name], program, rng, rounds=2, longest=longest)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SETS, *WIDE_SETS])
def test_hundreds_of_random_joined_programs_equal_numpy(request, name, seed):
    own = request.getfixturevalue("model" if name in SETS else "wide_model")
    sizes = (SETS | WIDE_SETS)[name]
    rng = np.random.default_rng(seed)
    for _ in range(150):
        longest = int(rng.choice([1, 6, 2 * strip_of(sizes) + 3]))
        check_program(own, name, sizes, joined_program(rng), rng, rounds=2, longest=longest)


def ends_of(strip):
    """Lengths of packets, in vectors, about the ends of strips."""
    return [1, strip - 1 or 1, strip, strip + 1, 2 * strip, 2 * strip + strip // 2 + 1, 2]


#: What a joined phase takes beside kept words: fields of the last one, which adds y and z.
BESIDE = {
    "row": {"z": Fetched.ROW},
    "position": {"z": Fetched.POSITION},
    "vector": {
        "z": Fetched.AUXILIARY,
        "auxiliary": AuxiliaryUse.VECTOR,
        "auxiliary_form": ElementForm.INT8_TO_FP32,
    },
    "held": {
        "z": Fetched.AUXILIARY,
        "auxiliary": AuxiliaryUse.HELD,
        "auxiliary_form": ElementForm.INT8,
    },
    "spread": {
        "z": Fetched.AUXILIARY,
        "auxiliary": AuxiliaryUse.SPREAD,
        "auxiliary_form": ElementForm.BF16,
    },
}
INTEGER_SUM = {"alu": AluOperation.ADD_INT32, "alu_operands": (Y, Z, Z, Z)}


@pytest.mark.few(14)
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("form", ElementForm, ids=lambda each: each.name)
@pytest.mark.parametrize("beside", BESIDE)
def test_a_packet_goes_on_from_strip_to_strip(model, name, form, beside, seed):
    """Rows, positions, vectors beside it and vectors of results do not begin anew with a strip."""
    rng = np.random.default_rng(seed)
    sizes = SETS[name]
    keeps = {"result": ResultForm.NONE, "reduction": Reduction.KEEP}
    lasts = changed(ADDS, result=ResultForm.BF16, statistic=0), changed(ADDS, **INTEGER_SUM)
    middle = changed(ADDS, form=form, **keeps, **BESIDE[beside])
    first = changed(BOTH, form=form)
    for last in lasts:
        own = changed(last, form=form)
        # A first, a middle and a last phase take it.
        takes_last = changed(own, **BESIDE[beside])
        takes_first = changed(
            first, **BESIDE[beside] | {"y": Fetched.NONE}, fma=(Z, Operand.ONE, X)
        )
        for phases in ((first, takes_last), (first, middle, own), (takes_first, own)):
            lengths = ends_of(strip_of(sizes, form))
            check_lengths(model, name, sizes, LaneProgram(phases), lengths, rng)


#: What a joined phase takes of a latched vector, for its operand z.
LATCHED = {
    "z": Fetched.AUXILIARY,
    "auxiliary": AuxiliaryUse.LATCHED,
    "auxiliary_form": ElementForm.INT8_TO_FP32,
}


@pytest.mark.few(9)
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("form", ElementForm, ids=lambda each: each.name)
@pytest.mark.parametrize("behind", ["vector", "held", "spread"])
def test_a_phase_takes_the_stream_behind_a_latched_vector(model, name, form, behind, seed):
    """Of a packet, in all of its strips; packets, long and short, follow one another."""
    rng = np.random.default_rng(seed)
    sizes = SETS[name]
    keeps = {"form": form, "result": ResultForm.NONE, "reduction": Reduction.KEEP}
    plain, last = changed(BOTH, form=form), changed(ADDS, form=form)
    latches_first = changed(plain, **LATCHED, fma=(Z, Operand.ONE, X))
    latches, takes = changed(ADDS, **keeps, **LATCHED), changed(ADDS, **keeps, **BESIDE[behind])
    takes_last = changed(last, **BESIDE[behind], result=ResultForm.BF16)
    lengths = ends_of(strip_of(sizes, form))
    for phases in (
        (latches_first, takes_last),
        (plain, latches, takes_last),
        (latches_first, takes, last),
        (latches_first, changed(ADDS, **keeps), takes, last),
    ):
        check_lengths(model, name, sizes, LaneProgram(phases), lengths, rng, numbers)


def numbers(rng, count):
    """Words of elements none of which is NaN, which every sum behind it would be."""
    if rng.integers(2):
        return rng.normal(0, 4, count).astype(np.float32).view(np.uint32)
    halves = rng.normal(0, 4, (count, 2)).astype(np.float32).view(np.uint32) >> 16
    return halves[:, 0] << 16 | halves[:, 1]


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(
    "reduction", [each for each in Reduction if each.changes], ids=lambda each: each.name
)
@pytest.mark.parametrize("form", [ElementForm.WORD, ElementForm.BF16], ids=lambda each: each.name)
def test_a_statistic_changes_over_the_strips_of_a_packet(model, name, reduction, form, seed):
    rng = np.random.default_rng(seed)
    sizes = SETS[name]
    sends = LanePhase(
        PhaseSource.STATISTICS,
        y=Fetched.STATISTIC_1,
        fma=(Y, Operand.ONE, Operand.MINUS_ZERO),
        alu=AluOperation.OR,
        alu_operands=(PREVIOUS, Operand.ZERO, Operand.ZERO, Operand.ZERO),
        argument=Y,
        order=UnitOrder.SFU_FMA_ALU,
        result=ResultForm.WORD,
    )
    fields = {"reduction": reduction, "statistic": 1, "result": ResultForm.NONE}
    program = LaneProgram((changed(BOTH, form=form), changed(ADDS, form=form, **fields), sends))
    check_lengths(model, name, sizes, program, ends_of(strip_of(sizes, form)), rng, numbers)


@pytest.mark.parametrize("name", WIDE_SETS)
@pytest.mark.slow
def test_wide_vectors_go_on_from_strip_to_strip(wide_model, name, seed):
    """Among them one of which a strip holds a single one."""
    rng = np.random.default_rng(seed)
    sizes = WIDE_SETS[name]
    for form in ElementForm:
        strip = strip_of(sizes, form)
        assert strip > 1 or (name == "single" and form.per_word == 4)
        first = changed(BOTH, form=form)
        # A vector beside them has elements for the rows of several strips.
        for fields in (BESIDE["row"], BESIDE["spread"]):
            last = changed(ADDS, form=form, **fields)
            program = LaneProgram((first, last))
            check_lengths(wide_model, name, sizes, program, ends_of(strip), rng)
        # Phases of a latched vector leave its element alone.
        latches = changed(first, **LATCHED, fma=(Z, Operand.ONE, X))
        program = LaneProgram((latches, last))
        check_lengths(wide_model, name, sizes, program, ends_of(strip), rng, numbers)


def cycles_of(model, name, phases, length, rng, count=4):
    """Cycles of a packet of so many vectors of words."""
    sizes = SETS[name]
    stream = packets(rng, count, length, sizes[0] // 32)
    cycles = busy_cycles(model, name, LaneProgram(tuple(phases)), stream, sizes)
    assert cycles % count == 0
    return cycles // count


@pytest.mark.few(1)
@pytest.mark.parametrize("name", SETS)
def test_joined_phases_follow_at_once_behind_a_long_strip(model, name, seed):
    """A shorter strip, the end of a packet or all of it, is written before it is read."""
    rng = np.random.default_rng(seed)
    groups, strip = groups_of(SETS[name]), strip_of(SETS[name])
    least = -(-LONG // groups)
    assert LONG == 19
    keep = changed(ADDS, reduction=Reduction.KEEP, statistic=1, result=ResultForm.NONE)
    for phases in ((BOTH, ADDS), (BOTH, keep, ADDS)):
        waits = (len(phases) - 1) * (PHASE_CHANGE - 1)
        for whole in (0, 1, 2):
            for vectors in (least - 1, least, least + 1, strip):
                length = whole * strip + vectors
                cycles = cycles_of(model, name, phases, length, rng)
                expected = len(phases) * length * groups
                if vectors < least:
                    expected += waits
                assert cycles == expected, (len(phases), length)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", SETS)
def test_joined_phases_wait_for_units_and_statistics(model, name, seed):
    """Also from a strip to the next one."""
    rng = np.random.default_rng(seed)
    groups, strip = groups_of(SETS[name]), strip_of(SETS[name])
    wait = PHASE_CHANGE - 1
    other = changed(ADDS, order=UnitOrder.SFU_ALU_FMA, alu_operands=(Y,) * 4)
    for count, rest in itertools.product((1, 2), (1, strip // 2)):
        length = count * strip + rest
        strips = count + 1
        work = 2 * length * groups
        assert cycles_of(model, name, (BOTH, other), length, rng) == work + 2 * strips * wait
        replaces = changed(ADDS, reduction=Reduction.REPLACE)
        short = rest * groups < LONG
        expected = work + (strips + short) * wait
        assert cycles_of(model, name, (BOTH, replaces), length, rng) == expected


@pytest.mark.parametrize("name", SETS)
def test_a_packet_of_one_vector_takes_the_changes_of_its_phases(model, name, seed):
    """The other phase's word takes a cycle to be there behind a phase of a single group."""
    rng = np.random.default_rng(seed)
    groups = groups_of(SETS[name])
    expected = groups + PHASE_CHANGE - 1 + max(groups, 2)
    assert cycles_of(model, name, (BOTH, ADDS), 1, rng) == expected
