"""The units in the models that tests share."""

import dataclasses

from hw.arch.config import AgcuConfig, ChipConfig, PcuConfig
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.matrix.matrix_unit import MatrixUnit
from hw.matrix.tpu_catalog import PRESETS
from hw.matrix.unit_config import UnitConfig
from hw.numeric.formats import bf16, e4m3, e5m2, fp16, int8
from hw.numeric.product_formats import DEFAULT_CELLS
from hw.pcu.lanes import Lanes
from hw.tpu.tensor_config import TensorConfig
from tests.function_units import ABSOLUTE, RELU6

__all__ = [
    "ACCUMULATOR_ROWS",
    "CELLS",
    "CELLS_SIZE",
    "EIGHTHS_CHIP",
    "LANES_CHIP",
    "FUNCTIONS",
    "FUNCTION_LANES",
    "LANES",
    "LANE_SETS",
    "MATRIX_UNITS",
    "MORE_TENSOR_UNITS",
    "PCUS",
    "PCU_CHIP",
    "READOUTS",
    "SYSTOLIC_UNITS",
    "TENSOR_UNITS",
    "lane_chip",
    "lanes_of",
    "matrix_unit",
]

ACCUMULATOR_ROWS = 32
#: Grid rows and cell latency of each matrix unit of a PCU.
MATRIX_UNITS = {"a": (4, 1), "b": (4, 2), "c": (4, 3), "d": (8, 2)}
#: Matrix units of a PCU with other cells, all of `CELLS_SIZE`, by their formats.
CELLS = {
    "halves": (bf16, fp16),
    "eighths": (e4m3, e5m2),
}
CELLS_SIZE = (4, 2)
#: The chip whose PCU without lanes is tested.
PCU_CHIP = ChipConfig(
    rows=2,
    columns=2,
    width_bits=64,
    pcu=PcuConfig(accumulator_rows=16, lanes=0),
    agcu=AgcuConfig(count=1),
)
#: The chip whose PCU with lanes is tested.
LANES_CHIP = dataclasses.replace(PCU_CHIP, pcu=PcuConfig(accumulator_rows=16))
#: The chip whose PCU has cells of 8-bit floats, and no lanes.
EIGHTHS_CHIP = dataclasses.replace(
    PCU_CHIP, pcu=PcuConfig(accumulator_rows=16, lanes=0, formats=("e4m3", "e5m2"))
)
#: Chips of the PCUs in the model of matrix units, by the PCU's name there.
PCUS = {"pcu": PCU_CHIP, "lanes": LANES_CHIP, "eighths_pcu": EIGHTHS_CHIP}

#: Link width, lanes and significand bits of functions of the PCUs in must-show tests.
LANE_SETS = {
    "a": (64, 1, 12),
    "b": (64, 2, 24),
    "c": (256, 2, 16),
    "d": (256, 4, 12),
    "e": (256, 8, 24),
}


#: The same of lanes by themselves.
LANES = {"one": (64, 1, 12), "two": (64, 2, 24)}


#: The same with function units of a user, and those units.
FUNCTION_LANES = {"own": (64, 2, 16)}
FUNCTIONS = (RELU6, ABSOLUTE)


def lanes_of(width, lanes, bits, functions=()):
    """Lanes by themselves."""
    return Lanes(width_bits=width, lanes=lanes, function_bits=bits, functions=functions)


def lane_chip(name):
    """The chip whose PCU is one of `LANE_SETS`."""
    width, lanes, bits = LANE_SETS[name]
    pcu = PcuConfig(accumulator_rows=64, lanes=lanes, function_bits=bits)
    return ChipConfig(2, 2, width_bits=width, pcu=pcu)


def _tensor(rows, columns, fmt, latency, buffer_rows, **options):
    array = ArrayConfig(rows, columns, Dataflow.WS, (fmt,), latency)
    unit = UnitConfig(array, accumulator_rows=16, out=fmt, **options)
    return TensorConfig(unit, buffer_rows)


#: Tensor units of quick tests: several rows of results to a vector, with an end that is never
#: used; a preset, scaled down.
TENSOR_UNITS = {
    "slots": _tensor(4, 3, int8, 1, 160, bias=True),
    "first": PRESETS["tpu-v1"].scaled_tensor(128),
}
#: Those of slow tests: several vectors to a row of results, the last not full; as many operands as
#: columns.
MORE_TENSOR_UNITS = {
    "parts": _tensor(3, 7, bf16, 2, 384, result_rows=2),
    "biased": _tensor(5, 2, bf16, 1, 256, bias=True),
    "bytes": _tensor(4, 8, e4m3, 1, 128, adder="bottom"),
}


def _unit(dataflow, fmt, **options):
    return UnitConfig(ArrayConfig(2, 3, dataflow, (fmt,), 1), accumulator_rows=16, **options)


#: Stand-alone units: every kind of read-out, an adder below, and presets scaled down.
SYSTOLIC_UNITS = {
    "scaled": _unit(Dataflow.WS, int8, out=int8, bias=True),
    "summed": _unit(Dataflow.IS, int8, bias=True, result_rows=2),
    "kept": _unit(Dataflow.OS, int8, out=int8),
    "rounded": _unit(Dataflow.OS, bf16, out=bf16),
    "halved": _unit(Dataflow.IS, fp16, out=fp16),
    "eighth": _unit(Dataflow.OS, bf16, out=e4m3),
    "fifth": _unit(Dataflow.WS, bf16, out=e5m2),
    "below": _unit(Dataflow.WS, bf16, adder="bottom"),
    "affine": _unit(Dataflow.WS, bf16, out=bf16, bias=True),
    "v1": PRESETS["tpu-v1"].scaled(128),
    "v4": PRESETS["tpu-v4"].scaled(64),
    "v7": PRESETS["tpu-v7"].scaled(128),
}


def _narrow(config):
    """A unit of one column."""
    return dataclasses.replace(config, array=dataclasses.replace(config.array, columns=1))


#: Read-outs that scale, by themselves: their sums are any int32.
READOUTS = {name: _narrow(SYSTOLIC_UNITS[name]) for name in ("scaled", "kept")}


def matrix_unit(rows, latency, formats=DEFAULT_CELLS):
    """The matrix unit of a PCU whose grid has so many rows."""
    return MatrixUnit(
        rows=rows,
        columns=rows // 2,
        formats=formats,
        latency=latency,
        accumulator_rows=ACCUMULATOR_ROWS,
    )
