"""The stand-alone matrix units that the tests share, by build, and products on them."""

import dataclasses

import numpy as np

from gen.verilog import emit
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.matrix.systolic_unit import SystolicUnit
from hw.matrix.unit_config import UnitConfig
from hw.numeric import reference
from hw.numeric.division import ceil_div
from hw.numeric.formats import (
    Format,
    bf16,
    e2m1,
    e4m3,
    e5m2,
    fp16,
    int4,
    int8,
    mxe2m1,
    mxe4m3,
    mxe5m2,
)
from hw.numeric.mx import BLOCK, SCALE, MxMatrix, mx_matmul
from sim.drivers.unit_driver import UnitTiling
from sim.native.bundle import Bundle
from sim.oracle import product
from tests.hw.matrix.cycles import product_cycles
from tests.native.product_runs import run_product, unit_counters
from tests.native.stream_model import StreamModel

__all__ = [
    "BUILDS",
    "LARGE",
    "STREAMS",
    "Case",
    "build",
    "operand",
    "outcome",
    "predicted",
    "run_case",
]

STREAMS = ("i_activation", "i_weight", "o_result")

#: Operand formats of a unit, and the sizes and latency of its array in each dataflow.
_UNITS = {
    (int8,): ((16, 8, 1), (24, 1, 2), (3, 7, 3)),
    (bf16,): ((3, 7, 1), (1, 1, 1), (4, 4, 2)),
    (fp16,): ((1, 24, 2), (2, 3, 3), (5, 2, 1)),
    (e4m3,): ((2, 2, 3), (1, 5, 1), (24, 1, 2)),
    (e5m2,): ((1, 1, 1), (3, 2, 2), (1, 24, 1)),
    (bf16, int8): ((4, 4, 2), (3, 7, 1), (2, 6, 1)),
    (e4m3, e5m2): ((2, 3, 1), (2, 2, 2), (1, 1, 3)),
    (bf16, fp16): ((5, 2, 3), (1, 3, 2), (3, 3, 2)),
    (e2m1,): ((3, 4, 2), (2, 5, 1), (7, 2, 3)),
    (int4,): ((4, 3, 1), (2, 2, 3), (1, 7, 2)),
    (mxe4m3, mxe5m2): ((4, 2, 2), (2, 3, 1), (3, 4, 3)),
    (mxe2m1,): ((8, 2, 1), (3, 1, 3), (5, 3, 2)),
}
#: A second size of units of 4-bit and of microscaled operands.
_SECOND = {
    (e2m1,): ((8, 1, 1), (1, 4, 2), (2, 6, 1)),
    (int4,): ((2, 9, 3), (6, 3, 1), (5, 1, 1)),
    (mxe4m3,): ((16, 3, 1), (3, 2, 2), (1, 5, 2)),
    (mxe2m1,): ((3, 5, 2), (2, 4, 2), (9, 1, 1)),
}
#: The same of units with an adder below each column, and the format of their results.
_BOTTOM = {
    (int8,): ((3, 2, 2), None),
    (bf16,): ((4, 3, 1), fp16),
    (bf16, int8): ((2, 3, 3), None),
    (e4m3, e5m2): ((2, 2, 2), e4m3),
    (bf16, fp16): ((3, 3, 3), e5m2),
    (mxe4m3, mxe5m2): ((3, 2, 1), bf16),
}
_DEPTH = 24


def _config(dataflow, formats, rows, columns, latency, **options):
    array = ArrayConfig(rows, columns, dataflow, formats, latency)
    return UnitConfig(array, accumulator_rows=_DEPTH, **options)


#: Units of each build, by name: all formats of one dataflow.
BUILDS = {
    dataflow.value: {
        "_".join(fmt.name for fmt in formats) + suffix: _config(dataflow, formats, *sizes[index])
        for suffix, units in (("", _UNITS), ("_second", _SECOND))
        for formats, sizes in units.items()
    }
    for index, dataflow in enumerate(Dataflow)
}
for _flow in (Dataflow.WS, Dataflow.IS):
    BUILDS[_flow.value] |= {
        "_".join(["bottom", *(fmt.name for fmt in formats)]): _config(
            _flow, formats, *sizes, adder="bottom", out=out
        )
        for formats, (sizes, out) in _BOTTOM.items()
    }

#: Larger units, in one more build.
LARGE = {
    "ws": UnitConfig(ArrayConfig(16, 16, Dataflow.WS, (int8,), 1), accumulator_rows=256),
    "os": UnitConfig(ArrayConfig(16, 16, Dataflow.OS, (int8,), 1)),
    "is": UnitConfig(ArrayConfig(16, 16, Dataflow.IS, (int8,), 1), accumulator_rows=256),
    "deep": UnitConfig(ArrayConfig(8, 8, Dataflow.WS, (int8,), 2), accumulator_rows=64),
    "lecture": UnitConfig(ArrayConfig(8, 8, Dataflow.IS, (bf16,), 1), accumulator_rows=4096),
}


def build(configs):
    """One model of several units, ports of a unit after its name."""
    bundle = Bundle({name: SystolicUnit(config) for name, config in configs.items()})
    return StreamModel(emit(bundle), bundle)


def operand(rng, shape, fmt: Format):
    """Random array: mixed exponents, a few zeros, subnormals, infinities and NaN."""
    if not fmt.is_float:
        limit = fmt.largest + 1
        return rng.integers(-limit, limit, shape, np.int8).astype(fmt.dtype)
    bits = rng.integers(0, 1 << fmt.bits, shape)
    if fmt.bits == 16:
        middle = rng.integers(fmt.bias - 6, fmt.bias + 7, shape) << fmt.fraction_bits
        kept = bits & ~(((1 << fmt.exponent_bits) - 1) << fmt.fraction_bits)
        bits = np.where(rng.random(shape) < 0.02, bits, kept | middle)
    elif fmt.has_nan:
        finite = (bits & 0x7F) <= fmt.largest
        bits = np.where(finite | (rng.random(shape) < 0.02), bits, bits & 0x0F)
    bits = np.where(rng.random(shape) < 0.03, rng.choice([0, 1, 1 << (fmt.bits - 1)], shape), bits)
    return fmt.from_bits(bits)


def microscaled(rng, lines, extent, fmt: Format):
    """Random lines in blocks: a few scales at the ends of the range or NaN."""
    shape = (lines, ceil_div(extent, BLOCK))
    codes = rng.integers(100, 154, shape)
    codes = np.where(rng.random(shape) < 0.04, rng.choice([0, 254, 255], shape), codes)
    return MxMatrix(operand(rng, (lines, extent), fmt), codes.astype(np.uint8).view(SCALE))


@dataclasses.dataclass
class Case:
    """One product on one unit of a build."""

    name: str
    config: UnitConfig
    m: int
    n: int
    k: int
    formats: tuple[Format, Format]
    seed: int = 0
    stalls: tuple[float, float, float] = (0.0, 0.0, 0.0)
    relu: bool = False

    @property
    def tiling(self):
        return UnitTiling(self.config, self.m, self.n, self.k, self.formats)

    def operands(self):
        rng = np.random.default_rng(self.seed)
        a, w = self.formats
        if a.has_scale:
            return microscaled(rng, self.m, self.k, a), microscaled(rng, self.n, self.k, w)
        return operand(rng, (self.m, self.k), a), operand(rng, (self.k, self.n), w)


def run_case(model, case):
    """Run of a case on its unit of a build, and its operands."""
    model.reset(case.seed)
    a, b = case.operands()
    run = run_product(
        model,
        case.tiling,
        a,
        b,
        prefix=f"{case.name}_",
        relu=case.relu,
        stalls=dict(zip(STREAMS, case.stalls, strict=True)),
    )
    return run, a, b


def outcome(model, case):
    """Cycles of a case, counters, and whether its result has numpy's bytes."""
    run, a, b = run_case(model, case)
    config = case.config
    multiply = mx_matmul if case.formats[0].has_scale else product
    golden = multiply(a, b, tile=config.summed_elements(case.formats[0]))
    if case.relu:
        golden = np.where(golden < 0, golden.dtype.type(0), golden)
    if config.out is not None:
        golden = reference.cast(golden, config.out)
    counters = unit_counters(model.get(f"{case.name}_counters"))
    return run.cycles, counters, run.result.tobytes() == golden.tobytes()


def predicted(case):
    """Cycles by the closed form."""
    array = case.config.array
    return product_cycles(
        array.dataflow.value,
        case.m,
        case.n,
        case.k,
        rows=array.rows,
        columns=array.columns,
        latency=array.latency,
        products=case.formats[0].products_per_cycle,
        accumulator_rows=case.config.accumulator_rows,
        adder=case.config.adder,
    )
