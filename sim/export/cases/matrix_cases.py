"""Cases of matrix units: products and layers whose extents fill the unit."""

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gen.export.bus_ports import BusGroup
from hw.arch.config import ChipConfig
from hw.arch.registers.tensor_registers import TENSOR_ID, TENSOR_REGISTERS, tensor_register
from hw.arch.tensor_instructions import pack
from hw.matrix.unit_config import UnitConfig
from hw.numeric import reference
from hw.numeric.formats import Format, bf16, fp32, int8, int32
from hw.numeric.mx import mx_matmul
from hw.tpu.tensor_config import TensorConfig
from sim.drivers.matrix_unit_driver import MatrixTiling
from sim.drivers.products import payloads as marked_payloads
from sim.drivers.tensor_unit_driver import host_vectors, payloads, vectors_for_host
from sim.drivers.tensor_unit_golden import layer_results, tensor_operands
from sim.drivers.unit_driver import UnitTiling
from sim.drivers.unit_operands import unit_operands
from sim.export.cases.result_vectors import integers, result_vectors
from sim.export.core_case import CoreCase
from sim.operands import random_operand
from sim.oracle import product
from sw.tensor_program import Layer, Program, mlp_program, mlp_results

__all__ = ["matrix_unit_cases", "systolic_cases", "tensor_top_cases", "tensor_unit_cases"]

Array = npt.NDArray[Any]
Groups = Sequence[BusGroup]


def _with_last(data: Array, lasts: Array) -> list[int]:
    """Payloads of vectors, with the mark `last` in the bit after the data."""
    bits = 8 * data.shape[1]
    return [word | int(last) << bits for word, last in zip(integers(data), lasts)]


def systolic_cases(
    rng: np.random.Generator, groups: Groups, config: UnitConfig
) -> Iterator[CoreCase]:
    """A product of each format; none if the unit scales or adds a bias.

    Parameters
    ----------
    rng : numpy.random.Generator
    groups : sequence of BusGroup
    config : UnitConfig
    """
    if config.bias or (config.out is not None and not config.out.is_float):
        return
    for fmt in config.array.formats:
        yield _product(rng, groups, config, fmt)


def _product(rng: np.random.Generator, groups: Groups, config: UnitConfig, fmt: Format) -> CoreCase:
    array = config.array
    m, n = 2 * array.rows * array.latency, 2 * array.columns
    k = 2 * array.rows * UnitTiling(config, 1, 1, 1, (fmt, fmt)).elements
    tiling = UnitTiling(config, m, n, k, (fmt, fmt))
    a, b = unit_operands(rng, m, n, k, fmt)
    multiply = mx_matmul if fmt.has_scale else reference.matmul
    sums = multiply(a, b, tile=config.summed_elements(fmt))
    out = config.out or fmt.accumulator
    expected = sums if sums.dtype == out.dtype else reference.cast(sums, out)
    lasts = np.zeros(sum(tiling.packets), np.uint8)
    lasts[np.cumsum(tiling.packets) - 1] = 1
    data = result_vectors(
        lambda vectors: tiling.result(marked_payloads(vectors, lasts)),
        expected,
        vectors=len(lasts),
        vector_bytes=out.bits * array.columns // 8,
    )
    case = CoreCase(f"product_{fmt.name}", groups)
    mode = array.cell.ordered.index(fmt)
    case.set(activation_mode=mode, weight_mode=mode)
    sent = zip(("i_activation", "i_weight"), tiling.streams(a, b), strict=True)
    case.exchange(
        {name: integers(words) for name, words in sent}, {"o_result": _with_last(data, lasts)}
    )
    return case


def _marked_result(tiling: MatrixTiling, marks: Array, vectors: Array) -> Array:
    return tiling.result(marked_payloads(vectors, marks))


def matrix_unit_cases(
    rng: np.random.Generator, groups: Groups, chip: ChipConfig
) -> Iterator[CoreCase]:
    """A product of each pair of operand and result formats.

    Parameters
    ----------
    rng : numpy.random.Generator
    groups : sequence of BusGroup
    chip : ChipConfig
    """
    columns = chip.grid_columns
    for fmt, out in ((bf16, fp32), (bf16, bf16), (int8, int32)):
        if fmt not in chip.pcu.operands:
            continue
        elements = 4 * columns * 8 // fmt.bits
        tiling = MatrixTiling(
            m=6,
            n=2 * columns,
            k=2 * elements,
            columns=columns,
            accumulator_rows=chip.pcu.accumulator_rows,
            fmt=fmt,
            out=out,
        )
        a, b = (random_operand(rng, shape, fmt) for shape in ((6, tiling.k), (tiling.k, tiling.n)))
        marks = np.zeros(tiling.result_vectors, np.uint8)
        marks[len(marks) // 2 - 1 :: len(marks) // 2] = 3
        data = result_vectors(
            functools.partial(_marked_result, tiling, marks),
            product(a, b, out.dtype),
            vectors=len(marks),
            vector_bytes=tiling.vector_bytes,
        )
        case = CoreCase(f"product_{fmt.name}_{out.name}", groups)
        case.set(int8=int(fmt == int8), to_bf16=int(out == bf16))
        case.exchange(
            {
                "i_activation": integers(tiling.activations(a)),
                "i_weight": integers(tiling.weights(b)),
            },
            {"o_result": integers(marked_payloads(data, marks))},
        )
        yield case


def _two_layers(rng: np.random.Generator, config: TensorConfig) -> tuple[Program, list[int]]:
    """Program of two chained layers, and the payloads that it sends to the host."""
    rows, width = 5, config.sizes.elements * config.unit.array.columns
    layers = [
        Layer(
            tensor_operands(rng, (width, width), config),
            relu=relu,
            scale=int(rng.integers(1, 1 << 16)),
            shift=int(rng.integers(20, 26)),
        )
        for relu in (True, False)
    ]
    activations = tensor_operands(rng, (rows, width), config)
    program = mlp_program(config.sizes, activations, layers)
    counts = vectors_for_host(program)
    lasts = np.zeros(sum(counts), np.uint8)
    lasts[np.cumsum(counts) - 1] = 1

    def decode(vectors: Array) -> Array:
        found = host_vectors(config, marked_payloads(vectors, lasts), counts)
        return mlp_results(config.sizes, found, layers, rows)

    data = result_vectors(
        decode,
        layer_results(config, activations, layers),
        vectors=len(lasts),
        vector_bytes=config.vector_bits // 8,
    )
    return program, list(_with_last(data, lasts))


def tensor_unit_cases(
    rng: np.random.Generator, groups: Groups, config: TensorConfig
) -> Iterator[CoreCase]:
    """Two chained layers.

    Parameters
    ----------
    rng : numpy.random.Generator
    groups : sequence of BusGroup
    config : TensorConfig
    """
    program, expected = _two_layers(rng, config)
    case = CoreCase("two_layers", groups)
    sent = {name: integers(words) for name, words in payloads(program).items()}
    case.exchange(sent, {"o_host": expected})
    yield case


def tensor_top_cases(
    rng: np.random.Generator, groups: Groups, config: TensorConfig, instructions: int
) -> Iterator[CoreCase]:
    """Every offset of the register map; two chained layers, whose instructions are submitted first.

    Without room for so many instructions there is the first case only.

    Parameters
    ----------
    rng : numpy.random.Generator
    groups : sequence of BusGroup
    config : TensorConfig
    instructions : int
        Submitted instructions that may wait.
    """
    case = CoreCase("register_map", groups)
    known = {each.offset for each in TENSOR_REGISTERS}
    for offset in range(0, max(known) + 16, 4):
        response = "OKAY" if offset in known else "SLVERR"
        case.register("read", offset, mask=0, response=response)
    for name, word in (
        ("ID", TENSOR_ID),
        ("GEOMETRY", config.sizes.rows | config.sizes.columns << 16),
        ("BUFFER", config.sizes.buffer_rows),
        ("ACCUMULATORS", config.sizes.accumulator_rows),
    ):
        case.register("read", tensor_register(name).offset, word)
        case.register("write", tensor_register(name).offset, response="SLVERR")
    yield case

    program, expected = _two_layers(rng, config)
    if len(program.instructions) > instructions:
        return
    case = CoreCase("two_layers", groups)
    for words in pack(program.instructions):
        for number, word in enumerate(words):
            case.register("write", tensor_register(f"INSTRUCTION_{number}").offset, int(word))
        case.register("write", tensor_register("SUBMIT").offset, 1)
    sent = {name: integers(words) for name, words in payloads(program).items()}
    del sent["i_instruction"]
    case.exchange(sent, {"o_host": expected})
    status = tensor_register("STATUS")
    case.register("poll", status.offset, status.word(idle=1), mask=status.mask)
    done = tensor_register("INTERRUPT_STATUS")
    case.register("read", done.offset, done.word(done=1))
    count = len(program.instructions)
    case.register("read", tensor_register("BEGUN").offset, count)
    yield case
