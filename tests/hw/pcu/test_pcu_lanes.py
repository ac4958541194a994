"""A PCU with lanes natively: products, lanes and lanes that take sums, against numpy by bits."""

import numpy as np
import pytest

from gen.verilog import emit
from hw.arch.config import PcuConfig
from hw.arch.counters import ACTIVITIES, counter_numbers
from hw.arch.errors import HangError
from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.phase_word import Operand, PhaseSource, ResultForm, UnitOrder
from hw.arch.pcu import PcuInput, PcuProgram
from hw.arch.unit_kind import PCU
from hw.numeric.alu_codes import AluOperation
from hw.numeric.formats import bf16, fp32
from hw.pcu.unit import Pcu
from sim.drivers.matrix_unit_driver import MatrixTiling
from sim.drivers.pcu_case import PcuCase, random_case
from sim.operands import random_operand
from sim.oracle import product
from tests.hw.pcu.lane_programs import check_case, run_case, words_of
from tests.hw.units import LANES_CHIP as CHIP

ACCUMULATORS, ACTIVATION = PhaseSource.ACCUMULATORS, PhaseSource.ACTIVATION
#: Results are the words themselves.
COPY = LanePhase(
    ACTIVATION,
    alu=AluOperation.OR,
    alu_operands=(Operand.X, *(Operand.ZERO,) * 3),
    order=UnitOrder.FMA_SFU_ALU,
    result=ResultForm.WORD,
)


@pytest.fixture
def model(pcu_units):
    return pcu_units[2]


def test_random_programs_equal_numpy_under_random_stalls(model, seed):
    rng = np.random.default_rng(seed)
    for _ in range(100):
        check_case(model, "lanes", CHIP, random_case(rng, CHIP), rng)


def test_a_plain_product_takes_the_cycles_of_a_pcu_without_lanes(model, seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        while (case := random_case(rng, CHIP)).program.lanes or case.program.softmax:
            pass
        taken = []
        for prefix, lanes in (("pcu", 0), ("lanes", CHIP.pcu.lanes)):
            crossed = run_case(model, prefix, lanes, case, seed=seed)
            taken.append(
                {
                    name.removeprefix(prefix): (each.first_cycle, each.last_cycle)
                    for name, each in crossed.items()
                    if name.startswith(f"{prefix}_")
                }
            )
        assert taken[0] == taken[1]


def doubled(source):
    """A program of one phase: twice each word."""
    phase = LanePhase(
        source,
        fma=(Operand.X, Operand.CONSTANT_0, Operand.MINUS_ZERO),
        order=UnitOrder.ALU_SFU_FMA,
        result=ResultForm.WORD,
    )
    return LaneProgram((phase,), (0x4000_0000,))


def product_case(rng, lanes, *, rows, k):
    """A product in six passes of so many rows, of C columns."""
    m, columns = 6 * rows, CHIP.grid_columns
    tiling = MatrixTiling(
        m=m,
        n=columns,
        k=k,
        columns=columns,
        accumulator_rows=rows,
        fmt=bf16,
        out=fp32,
    )
    a, b = random_operand(rng, (m, k), bf16), random_operand(rng, (k, columns), bf16)
    sums = product(a, b, np.dtype(np.float32)) * np.float32(2 if lanes else 1)
    marks = 3 * (np.arange(1, m + 1) % rows == 0).astype(np.uint32)[:, np.newaxis]
    streams = {PcuInput.ACTIVATION: tiling.activations(a), PcuInput.WEIGHT: tiling.weights(b)}
    results = np.concatenate([sums.view(np.uint32), marks], axis=1)
    return PcuCase(PcuProgram(lanes=lanes), streams, results)


def test_the_grid_runs_on_while_the_lanes_drain_the_other_bank(model, seed):
    """Two lanes take a row of two sums in a cycle, as the plain drain does."""
    for k in (8, 16, 20):
        taken = []
        for lanes in (None, doubled(ACCUMULATORS)):
            case = product_case(np.random.default_rng(seed), lanes, rows=16, k=k)
            crossed = run_case(model, "lanes", CHIP.pcu.lanes, case, seed=seed)
            taken.append(crossed["lanes_i_activation"].last_cycle)
        assert taken[0] == taken[1]


def counters(model):
    found = {}
    for name, number in counter_numbers(PCU).items():
        model.set("lanes_i_counter", number)
        found[name] = model.get("lanes_o_counter")
    assert sum(found[name] for name in ACTIVITIES) == model.cycle
    return found


@pytest.mark.parametrize(
    ("counter", "stalls"),
    [("busy", (0, 0)), ("wait_room", (0.9, 0)), ("wait_input", (0, 0.9))],
)
def test_counters_tell_what_lanes_do(model, counter, stalls, seed):
    words = words_of(np.random.default_rng(seed), 600).reshape(200, 3)
    words[:, -1] = np.arange(200) == 199
    lanes = LaneProgram((COPY,))
    case = PcuCase(PcuProgram(lanes=lanes), {PcuInput.ACTIVATION: words}, words)
    if counter == "busy":
        with pytest.raises(HangError):
            run_case(model, "lanes", 2, case._replace(streams={}), seed=seed, quiet_cycles=99)
        found = counters(model)
        assert found["idle"] >= 95 and found["groups"] == found["vectors"] == 0
    run_case(model, "lanes", 2, case, seed=seed, stalls=stalls)
    found = counters(model)
    assert found["groups"] == 200 and found["vectors"] == 0
    assert found[counter] >= (200 if counter == "busy" else 1000)
    assert found["busy"] <= 210


def test_components_that_a_run_does_not_name_stand_still(model, seed):
    case = product_case(np.random.default_rng(seed), None, rows=16, k=8)
    model.reset(seed)
    model.set("pcu_i_run", 1)
    run_case(model, "lanes", CHIP.pcu.lanes, case, seed=None)
    numbers, counted = counter_numbers(PCU), {}
    for prefix in ("lanes", "pcu"):
        counted[prefix] = 0
        for name in ACTIVITIES:
            model.set(f"{prefix}_i_counter", numbers[name])
            counted[prefix] += model.get(f"{prefix}_o_counter")
    assert counted == {"lanes": model.cycle, "pcu": 0} and model.cycle > 100


def test_a_product_counts_its_vectors_and_the_groups_of_its_lanes(model, seed):
    case = product_case(np.random.default_rng(seed), doubled(ACCUMULATORS), rows=16, k=12)
    run_case(model, "lanes", CHIP.pcu.lanes, case, seed=seed)
    found = counters(model)
    assert found["vectors"] == found["busy"] == 6 * 16 * 3 and found["groups"] == 6 * 16


def test_a_clear_begins_lanes_filters_and_packets_anew(model, seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        while not (case := random_case(rng, CHIP)).program.lanes or case.program.sums:
            pass
        half = {port: words[: len(words) // 2] for port, words in case.streams.items()}
        with pytest.raises(HangError):
            # More results than there can be.
            results = np.concatenate([case.results, case.results, np.zeros((1, 3), np.uint32)])
            cut = PcuCase(case.program, half, results)
            run_case(model, "lanes", CHIP.pcu.lanes, cut, seed=seed, quiet_cycles=300)
        model.set("lanes_i_clear", 1)
        with pytest.raises(HangError):
            model.run({}, {"lanes_o_result": 1}, limit_cycles=1)
        model.set("lanes_i_clear", 0)
        run_case(model, "lanes", CHIP.pcu.lanes, case, seed=None)


def test_a_pcu_without_lanes_has_nothing_of_them():
    definitions = emit(Pcu(width_bits=64, config=PcuConfig(lanes=0))).definitions
    kinds = {each.kind for each in definitions.values()}
    assert "MatrixUnit" in kinds and not kinds & {"Lanes", "Lane"}
