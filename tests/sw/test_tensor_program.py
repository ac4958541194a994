"""Tensor units without RTL: instructions, programs on the model, what is refused."""

import dataclasses

import numpy as np
import pytest
from amaranth.hdl import Shape

from hw.arch.errors import BadInputError
from hw.arch.tensor_instructions import INSTRUCTION, Instruction, pack
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.matrix.tpu_catalog import PRESETS
from hw.matrix.unit_config import UnitConfig
from hw.numeric.formats import bf16, e5m2, int8
from hw.tpu.tensor_config import TensorConfig
from hw.tpu.unit import TensorUnit
from sw.tensor_program import Layer, mlp_program, mlp_results
from tests.hw.tpu.model import TensorModel
from tests.hw.tpu.tensors import expected, layers, operands
from tests.unelaborated import unelaborated


def tensor(rows, columns, fmt=int8, *, buffer_rows=512, dataflow=Dataflow.WS, **options):
    array = ArrayConfig(rows, columns, dataflow, (fmt,), 1)
    return TensorConfig(
        UnitConfig(array, **{"accumulator_rows": 16, "out": fmt} | options), buffer_rows
    )


@pytest.mark.few(12)
@pytest.mark.parametrize("fmt", [int8, bf16])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    "size", [(8, 8), (4, 3), (3, 7), (8, 16), (5, 2), (1, 24), (24, 1), (1, 1)]
)
def test_programs_compute_what_numpy_does(size, fmt, bias, seed):
    check(tensor(*size, fmt, bias=bias, buffer_rows=4096), seed)


@pytest.mark.parametrize(("size", "fmt"), [((4, 8), int8), ((4, 4), bf16), ((4, 8), e5m2)])
def test_an_adder_below_the_array_rounds_once_a_vector(size, fmt, seed):
    """Where vectors are full, so that those of the layers in between end where numpy's tiles do."""
    check(tensor(*size, fmt, buffer_rows=4096, adder="bottom"), seed)


def check(config, seed):
    """Chains of random layers on the model against numpy."""
    rng, fmt = np.random.default_rng(seed), config.format
    for _ in range(3):
        rows = int(rng.integers(1, 40))
        extents = [int(extent) for extent in rng.integers(1, 40, int(rng.integers(2, 5)))]
        chain = layers(rng, config, extents)
        activations = operands(rng, (rows, extents[0]), fmt)
        program = mlp_program(config.sizes, activations, chain)
        vectors = TensorModel(config).run(
            program.instructions,
            host=program.host,
            weights=program.weights,
            biases=program.biases,
        )
        results = mlp_results(config.sizes, vectors, chain, rows)
        golden = expected(config, activations, chain)
        assert results.tobytes() == golden.tobytes(), (rows, extents)


def test_a_packed_instruction_has_the_layout_of_the_stream(seed):
    rng = np.random.default_rng(seed)
    for _ in range(50):
        values = {
            name: int(rng.integers(1 << Shape.cast(shape).width))
            for name, shape in INSTRUCTION.members.items()
            if name != "reserved"
        }
        flags = {name: bool(values[name]) for name in ("accumulate", "finish", "relu")}
        (words,) = pack([Instruction(**values | flags)])
        constant = INSTRUCTION.const(values).as_value().value
        assert int.from_bytes(words.tobytes(), "little") == constant
    assert pack([]).shape == (0, 4)


@pytest.mark.parametrize("field", ["opcode", "rows", "address", "slot", "shift", "scale"])
def test_a_field_that_is_too_large_is_refused(field):
    bits = Shape.cast(INSTRUCTION.members[field]).width
    values = {"opcode": 1, field: 1 << bits}
    with pytest.raises(ValueError, match=f"^Instruction {field} must have {bits} bits at most, "):
        pack([Instruction(**values)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tensor(2, 2, buffer_rows=1), "rows must be an integer from 2 to 1048576, not 1$"),
        (lambda: tensor(2, 2, buffer_rows=1 << 21), "^Unified buffer rows must be .* not 2097152$"),
        (lambda: tensor(2, 2, dataflow=Dataflow.IS), "^Tensor unit dataflow must be ws, not is$"),
        (lambda: tensor(2, 2, dataflow=Dataflow.OS), "^Tensor unit dataflow must be ws, not os$"),
        (lambda: tensor(2, 2, out=None), "must be of its operands' format int8, not int32$"),
        (lambda: tensor(2, 2, bf16, out=None), "operands' format bf16, not fp32$"),
        (
            lambda: TensorConfig(PRESETS["tpu-v4"].config, 64),
            "^Tensor unit formats must be one, not bf16, int8$",
        ),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(BadInputError, match=message):
        make()


def layer(rows, columns, dtype=np.int8, **options):
    return Layer(np.ones((rows, columns), dtype), **options)


@pytest.mark.parametrize(
    ("chain", "message"),
    [
        ([], "^Layers must be one or more, not none$"),
        ([layer(6, 2)], r"^Weights of layer 0 must be 5 × 1 or more, not \(6, 2\)$"),
        ([layer(5, 2), layer(3, 2)], r"^Weights of layer 1 must be 2 × 1 or more, not \(3, 2\)$"),
        ([layer(5, 0)], r"^Weights of layer 0 must be 5 × 1 or more, not \(5, 0\)$"),
        ([layer(5, 2, np.float32)], "^Weights must be of int8, not float32$"),
        ([layer(5, 2, bias=np.ones(2))], "^Bias of layer 0 must be of a unit with a bias$"),
        ([layer(5, 40)], "^Unified buffer rows must be at least 12 for a row .* not 8$"),
    ],
)
def test_layers_that_cannot_be_are_refused(chain, message):
    config = tensor(2, 2, buffer_rows=8)
    with pytest.raises(BadInputError, match=message):
        mlp_program(config.sizes, np.ones((3, 5), np.int8), chain)


def test_the_first_processor_has_its_buffer():
    preset = PRESETS["tpu-v1"]
    config = preset.tensor
    assert config.buffer_rows * config.vector_bits == 24 << 23
    assert (config.sizes.slots, config.sizes.parts, config.sizes.elements) == (1, 1, 256)
    assert (config.unit.accumulator_rows, config.unit.tiles_ahead) == (4096, 4)
    assert PRESETS["tpu-v2"].tensor is None and PRESETS["tpu-v2"].scaled_tensor(8) is None


def test_names_tell_units_apart():
    config = tensor(3, 3)
    changed = dataclasses.replace(config, buffer_rows=17), tensor(3, 3, bias=True)
    units = [unelaborated(TensorUnit(each)) for each in (config, *changed)]
    assert len({unit.definition_name for unit in units}) == 3
