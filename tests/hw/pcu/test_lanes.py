"""Lanes natively: random programs under random stalls, rates, softmax and layer normalisation."""

import dataclasses
import itertools

import numpy as np
import pytest

from gen.verilog import emit
from hw.arch.errors import BadInputError
from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_program import LaneProgram
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
from hw.numeric import elementwise, functions, reference
from hw.numeric.alu_codes import AluOperation
from hw.numeric.compositions import subtract
from hw.numeric.formats import bf16, fp32
from hw.numeric.function_codes import SpecialFunction
from hw.numeric.lane_model import VectorStream
from hw.pcu.lanes import Lanes
from hw.pcu.overlapping_phases import OverlappingPhases
from hw.pcu.statistics import Statistics
from sw.timing.timed_lanes import PHASE_CHANGE
from tests.hw.pcu.lane_programs import (
    busy_cycles,
    check_program,
    packets,
    random_program,
    run_lanes,
)
from tests.hw.pcu.softmax_program import SOFTMAX, alu
from tests.hw.units import FUNCTION_LANES, FUNCTIONS, lanes_of
from tests.hw.units import LANES as SETS
from tests.native.clocked_bundle import ClockedBundle
from tests.native.heavy_model import heavy_model

_READ = {"source": PhaseSource.ACTIVATION, "form": ElementForm.BF16}
X, Y, Z, PREVIOUS = Operand.X, Operand.Y, Operand.Z, Operand.PREVIOUS
ACTIVATION, STATISTICS = PhaseSource.ACTIVATION, PhaseSource.STATISTICS
ZEROS = (Operand.ZERO,) * 2


#: Longer vectors and more lanes, up to one for each word.
WIDE_SETS = {"c": (256, 2, 16), "d": (256, 4, 12), "e": (256, 8, 24)}


@pytest.fixture
def model(pcu_units):
    return pcu_units[2]


@pytest.fixture(scope="module")
def wide_model(heavy_lock):
    bundle = ClockedBundle({name: lanes_of(*sizes) for name, sizes in WIDE_SETS.items()})
    with heavy_model(heavy_lock, emit(bundle), bundle) as model:
        yield model


@pytest.mark.few(1)
@pytest.mark.parametrize("name", SETS)
def test_random_programs_equal_numpy_under_random_stalls(model, name, seed):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        check_program(model, name, SETS[name], random_program(rng), rng, rounds=3)


def test_random_programs_with_function_units_equal_numpy(model, seed):
    rng = np.random.default_rng(seed)
    (name, sizes), functions = *FUNCTION_LANES.items(), FUNCTIONS
    own = set()
    for _ in range(40):
        program = random_program(rng, functions=functions)
        check_program(model, name, sizes, program, rng, functions, rounds=3)
        assert LaneProgram.unpack(program.pack(functions), functions) == program
        own |= {phase.function for phase in program.phases}
    assert own >= {*functions, *SpecialFunction}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SETS, *WIDE_SETS])
def test_a_thousand_random_programs_equal_numpy(request, name, seed):
    fixture = "model" if name in SETS else "wide_model"
    own = request.getfixturevalue(fixture)
    rng = np.random.default_rng(seed)
    for _ in range(200):
        check_program(own, name, (SETS | WIDE_SETS)[name], random_program(rng), rng, rounds=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", WIDE_SETS)
def test_as_many_lanes_as_words_take_a_vector_a_cycle(wide_model, name, seed):
    width, lanes, _ = WIDE_SETS[name]
    stream = packets(np.random.default_rng(seed), 20, 5, width // 32)
    program = LaneProgram((LanePhase(ACTIVATION, result=ResultForm.WORD),))
    cycles = busy_cycles(wide_model, name, program, stream, WIDE_SETS[name])
    assert cycles == width // 32 // lanes * len(stream.words)


@pytest.mark.parametrize("name", SETS)
def test_long_packets_fill_every_vector_of_the_result(model, name, seed):
    rng = np.random.default_rng(seed)
    for _ in range(5):
        check_program(model, name, SETS[name], random_program(rng), rng, rounds=1, longest=60)


@pytest.mark.parametrize("name", SETS)
def test_maps_take_t_elements_a_cycle_across_packets(model, name, seed):
    width, lanes, _ = SETS[name]
    rng = np.random.default_rng(seed)
    stream = packets(rng, 8, 5, width // 32)
    forms = itertools.product(ElementForm, list(ResultForm)[1:])
    for number, (form, result) in enumerate(forms):
        order = list(UnitOrder)[number % len(UnitOrder)]
        program = LaneProgram((LanePhase(ACTIVATION, form=form, order=order, result=result),))
        groups = width // 32 * form.per_word // lanes
        cycles = busy_cycles(model, name, program, stream, SETS[name])
        assert cycles == groups * len(stream.words), (form, result, order)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(("length", "share"), [(1, 2), (40, 8)])
def test_phases_of_the_same_times_follow_at_once(model, name, length, share, seed):
    """Unless a phase changes a statistic, or the units of the next one have other times."""
    width, lanes, _ = SETS[name]
    rng = np.random.default_rng(seed)
    stream = packets(rng, 6, length, width // 32)
    groups = length * (width // 32) // lanes
    waits, follows = groups + PHASE_CHANGE - 1, max(groups, OverlappingPhases.latency + 1)
    late = (UnitOrder.FMA_SFU_ALU, UnitOrder.FMA_ALU_LATE)
    others = list(itertools.product(UnitOrder, repeat=2))[seed % share :: share]
    for orders in (late, late[::-1], *others):
        phases = [LanePhase(ACTIVATION, order=each, result=ResultForm.WORD) for each in orders]
        cycles = busy_cycles(model, name, LaneProgram(tuple(phases)), stream, SETS[name])
        same = phases[1].follows(phases[0])
        assert same == (len({each.times for each in orders}) == 1)
        assert cycles == 6 * (follows if same else waits), orders
    changes = dataclasses.replace(phases[0], reduction=Reduction.REPLACE)
    program = LaneProgram((changes, *phases[:1] * 2))
    cycles = busy_cycles(model, name, program, stream, SETS[name])
    # The third phase comes at once, as no element of the first one is in the lanes any more.
    assert cycles == 2 * (waits + max(groups, 2) + follows)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(
    "reduction", [each for each in Reduction if each.changes], ids=lambda each: each.name
)
def test_reductions_change_a_position_once_in_four_cycles(model, name, reduction, seed):
    width, lanes, _ = SETS[name]
    rng = np.random.default_rng(seed)
    stream = packets(rng, 6, 7, width // 32)
    for form in (ElementForm.WORD, ElementForm.BF16, ElementForm.BF16_LOWER):
        phase = LanePhase(ACTIVATION, form=form, reduction=reduction, result=ResultForm.WORD)
        groups = width // 32 * form.per_word // lanes
        step = groups if reduction is Reduction.REPLACE else max(groups, Statistics.step_cycles)
        cycles = busy_cycles(model, name, LaneProgram((phase,)), stream, SETS[name])
        assert cycles == step * len(stream.words)
    assert Statistics.step_cycles == 4


#: What each reduction leaves of a packet, without the lanes' numpy.
REDUCED = {
    Reduction.REPLACE: lambda x: x[-1],
    Reduction.SUM: lambda x: np.add.accumulate(x, dtype=np.float32)[-1],
    Reduction.MAXIMUM: lambda x: x.max(axis=0),
    Reduction.MINIMUM: lambda x: x.min(axis=0),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("reduction", REDUCED, ids=lambda each: each.name)
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_reduction_begins_anew_with_each_packet(model, name, reduction, sign, seed):
    """Of negative values a maximum is not 0, of positive ones a minimum is not."""
    width = SETS[name][0]
    rng = np.random.default_rng(seed)
    program = LaneProgram(
        (
            LanePhase(**_READ, order=UnitOrder.SFU_ALU_FMA, reduction=reduction, statistic=1),
            LanePhase(
                STATISTICS,
                y=Fetched.STATISTIC_1,
                argument=Y,
                order=UnitOrder.SFU_ALU_FMA,
                fma=(Y, Operand.ONE, Operand.MINUS_ZERO),
                result=ResultForm.WORD,
            ),
        )
    )
    sizes = (7, width // 16)
    values = [
        sign * reference.cast(rng.uniform(1, 9, sizes).astype(np.float32), bf16) for _ in range(3)
    ]
    streams = [repeated(reference.cast(each.astype(np.float32), bf16), 1) for each in values]
    stream = VectorStream(*(np.concatenate(each) for each in zip(*streams, strict=True)))
    words = run_lanes(
        model, name, program, {ACTIVATION: stream}, 2 * len(values), stalls=(0.3, 0.3), seed=1
    )[f"{name}_o_result"].words[:, :-1]
    got = np.ascontiguousarray(words).view(np.float32).reshape(len(values), -1)
    expected = [REDUCED[reduction](each.astype(np.float32)) for each in values]
    assert (got == np.stack(expected)).all()


def repeated(values, times):
    """Stream of bf16 values, vectors × elements, as one packet so many times."""
    words = bf16.bits_of(values).astype(np.uint16).view(np.uint32)
    last = np.arange(len(words)) == len(words) - 1
    return VectorStream(np.tile(words, (times, 1)), np.tile(last, times), np.tile(last, times))


def results_of(model, name, program, stream, vectors):
    count = vectors
    crossed = run_lanes(model, name, program, {ACTIVATION: stream}, count, stalls=(0, 0), seed=1)
    words = np.ascontiguousarray(crossed[f"{name}_o_result"].words[:, :-1])
    return bf16.from_bits(words.view(np.uint16))


@pytest.mark.parametrize("name", SETS)
def test_softmax_in_four_phases_equals_the_functions_one_by_one(model, name, seed):
    width, _, bits = SETS[name]
    rng = np.random.default_rng(seed)
    values = reference.cast(rng.normal(0, 3, (50, width // 16)).astype(np.float32), bf16)
    x = reference.cast(values, fp32)
    powers = functions.exp(subtract(x, x.max(axis=0)), bits)
    total = np.zeros(x.shape[1], np.float32)
    for row in powers:
        total = elementwise.add(total, row)
    inverse = functions.reciprocal(total, bits)
    expected = reference.cast(elementwise.multiply(powers, inverse), bf16)
    got = results_of(model, name, SOFTMAX, repeated(values, 3), len(values))
    assert (bf16.bits_of(got) == bf16.bits_of(expected)).all()
    assert np.allclose(got.astype(np.float64).sum(axis=0), 1, atol=0.02)


def layer_norm(count):
    inverse = int(fp32.bits_of(np.float32(1 / count)))
    epsilon = int(fp32.bits_of(np.float32(1e-5)))
    scaled = (Y, Operand.CONSTANT_0, Operand.MINUS_ZERO)
    centred = alu(AluOperation.SUBTRACT, X, Y)
    last_fma, s0 = UnitOrder.SFU_ALU_FMA, Fetched.STATISTIC_0
    return LaneProgram(
        (
            LanePhase(**_READ, order=last_fma, reduction=Reduction.SUM),
            LanePhase(
                STATISTICS,
                y=s0,
                argument=Y,
                order=last_fma,
                fma=scaled,
                reduction=Reduction.REPLACE,
            ),
            LanePhase(
                **_READ,
                **centred,
                y=s0,
                order=last_fma,
                fma=(PREVIOUS, PREVIOUS, Operand.MINUS_ZERO),
                reduction=Reduction.SUM,
                statistic=1,
            ),
            LanePhase(
                STATISTICS,
                y=Fetched.STATISTIC_1,
                order=UnitOrder.ALU_FMA_SFU,
                fma=(Y, Operand.CONSTANT_0, Operand.CONSTANT_1),
                function=SpecialFunction.RSQRT,
                argument=PREVIOUS,
                reduction=Reduction.REPLACE,
                statistic=1,
            ),
            LanePhase(
                **_READ,
                **centred,
                y=s0,
                z=Fetched.STATISTIC_1,
                order=last_fma,
                fma=(PREVIOUS, Z, Operand.MINUS_ZERO),
                result=ResultForm.BF16,
            ),
        ),
        (inverse, epsilon),
    )


@pytest.mark.parametrize("name", SETS)
def test_layer_normalisation_takes_five_phases(model, name, seed):
    width, _, bits = SETS[name]
    rng = np.random.default_rng(seed)
    count = 40
    values = reference.cast(rng.normal(1, 3, (count, width // 16)).astype(np.float32), bf16)
    got = results_of(model, name, layer_norm(count), repeated(values, 3), count)
    x = values.astype(np.float64)
    exact = (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-5)
    # Half a unit of bf16, and the error of a function of the set's significand.
    bound = np.abs(exact) * (2.0**-8 + 2.0**-bits * 2) + 1e-5
    assert (np.abs(got.astype(np.float64) - exact) <= bound).all()


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"width_bits": 100}, "Link width in bits must be a power of two from 64 to 1024, not 100"),
        ({"lanes": 3}, "Lanes must be a power of two from 1 to 8, not 3"),
        ({"lanes": 4}, "Lanes must be at most the 2 words of a vector, not 4"),
        ({"function_bits": 11}, "Function bits must be an integer from 12 to 24, not 11"),
    ],
)
def test_lanes_that_cannot_be_are_refused(sizes, message):
    with pytest.raises(BadInputError, match=message):
        Lanes(**({"width_bits": 64, "lanes": 1, "function_bits": 16} | sizes))


def test_the_auxiliary_stream_has_its_room(model):
    """A phase that does not take the stream lets as many vectors wait as the FIFO holds."""
    program = LaneProgram((LanePhase(ACTIVATION, result=ResultForm.WORD),))
    rng = np.random.default_rng(1)
    words = 2
    streams = {PhaseSource.AUXILIARY: packets(rng, 1, 32, words)}
    crossed = run_lanes(model, "one", program, streams, 0, stalls=(0, 0), seed=1)
    taken = crossed["one_i_auxiliary"]
    assert taken.last_cycle - taken.first_cycle == 31
    assert AuxiliaryUse.NONE is program.phases[0].auxiliary
