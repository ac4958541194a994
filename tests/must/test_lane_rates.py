"""unit-c: rates of a PCU's lanes in every order, form and phase, and of a plain drain."""

import itertools

import numpy as np
import pytest

from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.phase_word import ElementForm, PhaseSource, Reduction, ResultForm, UnitOrder
from hw.arch.pcu import PcuInput, PcuProgram
from hw.numeric.formats import bf16, fp32
from hw.numeric.lane_model import LaneModel, VectorStream
from sim.drivers.matrix_unit_driver import MatrixTiling
from sim.drivers.pcu_case import PcuCase
from sim.drivers.random_lanes import stream_payloads, words_of
from sim.operands import random_operand
from sim.oracle import product
from tests.hw.pcu.lane_programs import run_case
from tests.hw.units import LANE_SETS, lane_chip

ACTIVATION = PhaseSource.ACTIVATION
#: Cycles between two changes of a statistic, at least.
STEP = 4
RUNNING = (Reduction.SUM, Reduction.MAXIMUM, Reduction.MINIMUM)
FORMS = (ElementForm.WORD, ElementForm.BF16)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def expected_results(name, lanes, streams):
    width, _, bits = LANE_SETS[name]
    return LaneModel(lanes, width_bits=width, function_bits=bits).run(streams)


def streamed(model, name, lanes, packets, length, seed):
    """Cycles from the first vector of so many packets to the last result, ports always ready."""
    rng = np.random.default_rng(seed)
    last = np.tile(np.arange(length) == length - 1, packets)
    words = words_of(rng, len(last) * LANE_SETS[name][0] // 32).reshape(len(last), -1)
    stream = VectorStream(words, last, last)
    results = expected_results(name, lanes, {ACTIVATION: stream})
    given = {PcuInput.ACTIVATION: stream_payloads(stream)}
    case = PcuCase(PcuProgram(lanes=lanes), given, stream_payloads(results))
    crossed = run_case(model, name, LANE_SETS[name][1], case, seed=seed)
    return crossed[f"{name}_o_result"].last_cycle - crossed[f"{name}_i_activation"].first_cycle


def lengthened(model, name, lanes, length, seed):
    """Cycles that six packets more take, behind six."""
    few, many = (streamed(model, name, lanes, packets, length, seed) for packets in (6, 12))
    return many - few


def groups(name, form):
    width, lanes, _ = LANE_SETS[name]
    return width // 32 * form.per_word // lanes


@pytest.mark.must("unit-c", goal="maps take t elements a cycle in every order, also across packets")
@pytest.mark.parametrize("name", LANE_SETS)
def test_maps_in_every_order_and_form(lane_pcus, name, seed, figure):
    results = list(ResultForm)[1:]
    ways = list(itertools.product(UnitOrder, ElementForm, results))
    for order, form, result in ways:
        program = LaneProgram((LanePhase(ACTIVATION, form=form, order=order, result=result),))
        cycles = lengthened(lane_pcus, name, program, 5, seed)
        assert cycles == groups(name, form) * 30, (order, form, result)
    figure(f"t = {LANE_SETS[name][1]} elements in every cycle, {len(ways)} orders and forms")


@pytest.mark.must("unit-c", goal="every phase of a map takes t elements a cycle")
@pytest.mark.parametrize("name", LANE_SETS)
def test_every_phase_is_as_fast(lane_pcus, name, seed, figure):
    """Longer packets take as many cycles more as they have more groups."""
    orders = itertools.cycle(UnitOrder)
    for count in range(2, 7):
        forms = [list(ElementForm)[number % 4] for number in range(count)]
        phases = tuple(
            LanePhase(ACTIVATION, form=form, order=next(orders), result=ResultForm.WORD)
            for form in forms
        )
        short, long = (
            streamed(lane_pcus, name, LaneProgram(phases), 2 * count, length, seed)
            for length in (3, 13)
        )
        assert long - short == 2 * 10 * sum(groups(name, form) for form in forms)
    figure(f"t = {LANE_SETS[name][1]} elements in every cycle of programs of 2 to 6 phases")


@pytest.mark.must("unit-c", goal="reductions of streams run at t * min(1, s / 4)")
@pytest.mark.parametrize("name", LANE_SETS)
def test_reductions_of_streams(lane_pcus, name, seed, figure):
    found = {}
    for reduction, form in itertools.product(RUNNING, FORMS):
        phase = LanePhase(ACTIVATION, form=form, reduction=reduction, result=ResultForm.WORD)
        cycles = lengthened(lane_pcus, name, LaneProgram((phase,)), 7, seed)
        assert cycles == max(groups(name, form), STEP) * 42
        found[form] = LANE_SETS[name][1] * groups(name, form) * 42 / cycles
    figure(", ".join(f"{form.name} {rate:.2f} elements a cycle" for form, rate in found.items()))


def rows_of_sums(name, k, rng):
    chip = lane_chip(name)
    m, columns = chip.pcu.accumulator_rows, chip.grid_columns
    tiling = MatrixTiling(
        m=m, n=columns, k=k, columns=columns, accumulator_rows=m, fmt=bf16, out=fp32
    )
    a, b = random_operand(rng, (m, k), bf16), random_operand(rng, (k, columns), bf16)
    streams = {PcuInput.ACTIVATION: tiling.activations(a), PcuInput.WEIGHT: tiling.weights(b)}
    sums = product(a, b, fp32.dtype).view(np.uint32)
    last = np.arange(1, m + 1) == m
    return tiling, streams, VectorStream(sums, last, last)


@pytest.mark.must("unit-c", goal="accumulators: maps at t, reductions at t * min(1, s / 4)")
@pytest.mark.parametrize("name", LANE_SETS)
def test_rows_of_sums(lane_pcus, name, seed, figure):
    """Results leave at the rate at which the rows of a pass are taken."""
    source, lanes = PhaseSource.ACCUMULATORS, LANE_SETS[name][1]
    step = groups(name, ElementForm.WORD)
    _, streams, sums = rows_of_sums(name, 40, np.random.default_rng(seed))
    for reduction in (Reduction.NONE, Reduction.REPLACE, *RUNNING):
        phase = LanePhase(source, reduction=reduction, result=ResultForm.WORD)
        results = stream_payloads(expected_results(name, LaneProgram((phase,)), {source: sums}))
        case = PcuCase(PcuProgram(lanes=LaneProgram((phase,))), streams, results)
        taken = run_case(lane_pcus, name, lanes, case, seed=seed)[f"{name}_o_result"]
        cycles = max(step, STEP) if reduction in RUNNING else step
        assert taken.last_cycle - taken.first_cycle == cycles * (len(results) - 1), reduction
    figure(f"a row in {step} cycles, of a running sum or extreme in {max(step, STEP)}")


@pytest.mark.must("unit-c", goal="a plain product beside lanes that are off: cycles unchanged")
@pytest.mark.parametrize("name", LANE_SETS)
def test_a_plain_product(lane_pcus, name, seed, figure):
    """The closed form of products of a PCU without lanes, to the cycle."""
    k = 2 * LANE_SETS[name][0] // 16
    tiling, streams, sums = rows_of_sums(name, k, np.random.default_rng(seed))
    case = PcuCase(PcuProgram(), streams, stream_payloads(sums))
    crossed = run_case(lane_pcus, name, LANE_SETS[name][1], case, seed=seed)
    first = min(crossed[f"{name}_i_{port}"].first_cycle for port in ("activation", "weight"))
    cycles = crossed[f"{name}_o_result"].last_cycle - first + 1
    assert cycles == tiling.undisturbed_cycles(lane_chip(name).pcu.cell_latency)
    figure(f"{cycles} cycles")
