"""Tensor units in RTL: chained layers, commands that meet in the buffer, faults, rates."""

import dataclasses

import numpy as np
import pytest

from hw.arch.errors import HangError
from hw.arch.tensor_instructions import Fault, Instruction, Opcode
from hw.numeric.division import ceil_div
from hw.numeric.formats import int8
from hw.tpu.sequencer import STATUS
from sim.drivers.tensor_unit_driver import payloads
from sw.tensor_program import Layer, mlp_program, mlp_results
from tests.hw.tpu.model import RefusedInstructionError, TensorModel
from tests.hw.tpu.tensors import expected, layers, operands, random_program
from tests.hw.units import MORE_TENSOR_UNITS, TENSOR_UNITS
from tests.native.product_runs import run_program, unit_counters

UNITS = TENSOR_UNITS | MORE_TENSOR_UNITS
NAMES = [*TENSOR_UNITS, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE_TENSOR_UNITS)]
STREAMS = ("i_instruction", "i_weight", "i_bias", "i_host", "o_host")


@pytest.fixture
def model(request, heavy_lock):
    """The model that has the unit of the parameter ``name``; without one, that of quick tests."""
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    slow = parameters.get("name") in MORE_TENSOR_UNITS
    return request.getfixturevalue("more_tensor_units" if slow else "systolic_units")


def pauses(rng):
    """A pace for each stream, none or up to most of the time."""
    return dict(zip(STREAMS, rng.choice([0.0, 0.2, 0.5, 0.9], len(STREAMS)), strict=True))


def on_model(config, program):
    return TensorModel(config).run(
        program.instructions, host=program.host, weights=program.weights, biases=program.biases
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("paused", [False, True])
def test_three_layers_are_chained_without_the_host(model, name, paused, seed):
    rng = np.random.default_rng(seed)
    config = UNITS[name]
    activations = operands(rng, (20, 40), config.format)
    chain = layers(rng, config, (40, 56, 24, 10))
    program = mlp_program(config.sizes, activations, chain)
    model.reset(seed)
    stalls = pauses(rng) if paused else {}
    vectors = run_program(model, config, program, prefix=f"{name}_", stalls=stalls)
    assert vectors.tobytes() == on_model(config, program).tobytes()
    results = mlp_results(config.sizes, vectors, chain, 20)
    assert results.tobytes() == expected(config, activations, chain).tobytes(), stalls
    counters = unit_counters(model.get(f"{name}_counters"))
    multiplies = [each for each in program.instructions if each.opcode == Opcode.MULTIPLY]
    assert counters["active"] == sum(each.rows for each in multiplies)
    assert sum(counters.values()) == model.cycle
    # What the host gives and takes is the first and the last matrix.
    assert len(program.host) == 20 * ceil_div(40, config.sizes.elements)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", NAMES)
def test_commands_mean_what_they_mean_one_by_one(model, name, seed):
    """Whatever meets in the buffer: the model ends each command before the next begins."""
    config = UNITS[name]
    for index in range(12):
        rng = np.random.default_rng([seed, index])
        program = random_program(rng, config, 40)
        model.reset(seed + index)
        stalls = {} if index == 0 else pauses(rng)
        vectors = run_program(model, config, program, prefix=f"{name}_", stalls=stalls)
        assert vectors.tobytes() == on_model(config, program).tobytes(), (index, stalls)


def test_more_columns_cost_their_vectors_and_no_more(model, seed):
    """Each group reads the same activations again, with no pause between groups."""
    rng = np.random.default_rng(seed)
    config = UNITS["first"]
    columns = config.unit.array.columns
    spent = {}
    for groups in (2, 5):
        chain = [Layer(operands(rng, (3 * config.sizes.elements, groups * columns), int8))]
        program = mlp_program(
            config.sizes, operands(rng, (32, 3 * config.sizes.elements), int8), chain
        )
        model.reset(seed)
        # All but the writing to the host, which differs in length.
        run_program(model, config, program, prefix="first_")
        spent[groups] = model.cycle - program.instructions[-1].rows
    assert spent[5] - spent[2] == 3 * (3 * 32)


def test_a_layer_waits_for_the_results_of_the_one_before(model, seed):
    rng = np.random.default_rng(seed)
    config = UNITS["first"]
    array, rows = config.unit.array, 40
    spent = []
    for count in (1, 2, 3):
        extent = config.sizes.elements
        chain = [Layer(operands(rng, (extent, extent), int8)) for _ in range(count)]
        program = mlp_program(config.sizes, operands(rng, (rows, extent), int8), chain)
        model.reset(seed)
        run_program(model, config, program, prefix="first_")
        spent.append(model.cycle)
    wait = array.rows * array.latency + array.columns + 10
    assert np.diff(spent).tolist() == [rows + wait] * 2


def stopped(model, config, program, name):
    """Status after a program that does not end."""
    model.reset(1)
    prefix = f"{name}_"
    with pytest.raises(HangError):
        sent = {prefix + stream: words for stream, words in payloads(program).items()}
        model.run(sent, {prefix + "o_host": 1 << 16}, quiet_cycles=200)
    status = STATUS.from_bits(model.get(f"{name}_status"))
    return Fault(status.fault), status.begun


@pytest.mark.parametrize("name", ["slots", pytest.param("parts", marks=pytest.mark.slow)])
def test_a_fault_ends_a_random_program_where_the_model_ends_it(model, name, seed):
    config = UNITS[name]
    found = set()
    for index in range(40):
        rng = np.random.default_rng([seed, index])
        program = random_program(rng, config, 12)
        instructions = list(program.instructions)
        at = int(rng.integers(1, len(instructions)))
        changes = {
            "opcode": int(rng.integers(16)),
            "rows": int(rng.integers(40)),
            "address": int(rng.integers(1 << int(rng.integers(33)))),
            "slot": int(rng.integers(6)),
            "accumulate": bool(rng.integers(2)),
            "finish": bool(rng.integers(2)),
            "shift": int(rng.integers(256)),
            "scale": int(rng.integers(1 << 32)),
        }
        for field in rng.choice(list(changes), 2, replace=False):
            instructions[at] = dataclasses.replace(instructions[at], **{field: changes[field]})
        program = dataclasses.replace(program, instructions=tuple(instructions))
        try:
            on_model(config, program)
        except RefusedInstructionError as error:
            assert stopped(model, config, program, name) == (error.fault, error.begun), index
            found.add(error.fault)
        except StopIteration:
            continue
    assert len(found) >= 4


MULTIPLY = Instruction(Opcode.MULTIPLY, 0, 4, finish=True)
LEFT = Instruction(Opcode.MULTIPLY, 0, 4)

FAULTS = [
    ([Instruction(0, 0, 1)], Fault.OPCODE),
    ([Instruction(6, 0, 1)], Fault.OPCODE),
    ([Instruction(Opcode.READ_HOST, 0, 0)], Fault.ROWS),
    ([Instruction(Opcode.WRITE_HOST, 0, 0)], Fault.ROWS),
    ([Instruction(Opcode.MULTIPLY, 0, 17)], Fault.ROWS),
    ([MULTIPLY, Instruction(Opcode.ACTIVATE, 8, 3)], Fault.ROWS),
    ([LEFT, Instruction(Opcode.MULTIPLY, 0, 5, accumulate=True)], Fault.ROWS),
    ([Instruction(Opcode.READ_HOST, 160, 1)], Fault.ADDRESS),
    ([Instruction(Opcode.WRITE_HOST, 157, 4)], Fault.ADDRESS),
    ([Instruction(Opcode.READ_HOST, (1 << 32) - 1, 2)], Fault.ADDRESS),
    ([MULTIPLY, Instruction(Opcode.ACTIVATE, 157, 4)], Fault.ADDRESS),
    ([MULTIPLY, Instruction(Opcode.ACTIVATE, 8, 4, slot=2)], Fault.SLOT),
    ([Instruction(Opcode.ACTIVATE, 8, 4)], Fault.ORDER),
    ([MULTIPLY, MULTIPLY], Fault.ORDER),
    ([MULTIPLY, Instruction(Opcode.READ_HOST, 8, 1)], Fault.ORDER),
    ([MULTIPLY, Instruction(Opcode.CONFIGURE)], Fault.ORDER),
    ([Instruction(Opcode.MULTIPLY, 0, 4, accumulate=True)], Fault.ORDER),
    ([MULTIPLY, Instruction(Opcode.ACTIVATE, 3, 4)], Fault.OVERLAP),
    ([Instruction(Opcode.CONFIGURE, scale=1 << 16)], Fault.SCALING),
    ([Instruction(Opcode.CONFIGURE, shift=48)], Fault.SCALING),
]


@pytest.mark.parametrize(("instructions", "fault"), FAULTS)
def test_an_instruction_that_cannot_be_is_refused(model, instructions, fault, seed):
    """It, and all behind it, does nothing; what came before is done."""
    rng = np.random.default_rng(seed)
    config = UNITS["slots"]
    fill = Instruction(Opcode.READ_HOST, 0, 160)
    behind = [Instruction(Opcode.WRITE_HOST, 0, 1)] * 3
    program = dataclasses.replace(
        random_program(rng, config, 30), instructions=(fill, *instructions, *behind)
    )
    with pytest.raises(RefusedInstructionError) as refused:
        on_model(config, program)
    assert refused.value.fault == fault and refused.value.begun == len(instructions)
    assert stopped(model, config, program, "slots") == (fault, len(instructions))
