"""A number format is one entry: bits, golden sums, casts, cells, options and docs follow."""

from tests.edited_copy import edited_copy, python_in

PROGRAM = """
import ml_dtypes
import numpy as np
from amaranth.hdl import Module
from amaranth.sim import Simulator
from docs.tools.generated import GENERATED
from hw.arch.errors import BadInputError
from hw.array.cell import Cell
from hw.array.operand import OperandRecoder
from hw.float.operations import OperationUnit
from hw.numeric.formats import NAME, Format, fp32, named
from hw.numeric.reference import cast, mac_lane, matmul
from sim.cli.app import main
from hw.array.unit_parameters import FORMATS, OUT, PAIRS
from sim.oracle import product

# numpy: values, bits and casts are those of the library.
bits = np.arange(1 << NAME.bits)
values = NAME.from_bits(bits)
assert values.dtype == getattr(ml_dtypes, NAME.numpy_name)
assert (NAME.bits_of(values) == bits).all()
finite = values[np.isfinite(values.astype(np.float32))].astype(np.float32)
rng = np.random.default_rng(7)
wide = np.concatenate([finite, rng.normal(0, 4, 500).astype(np.float32)])
expected = np.clip(wide, -finite.max(), finite.max()).astype(values.dtype)
assert (NAME.bits_of(cast(wide, NAME)) == NAME.bits_of(expected)).all()

# Golden sums are those of the independent model.
a, w = (rng.normal(0, 1, (6, 6)).astype(values.dtype) for _ in range(2))
assert (matmul(a, w) == product(a, w)).all()

# Gates: casts in both directions, and a cell that is a lane of two operands wide.
def casts(name, words):
    dut, found = OperationUnit(name), []
    async def bench(ctx):
        for word in words.tolist():
            ctx.set(dut.a, word)
            await ctx.delay(1e-9)
            found.append(ctx.get(dut.o))
    simulator = Simulator(dut)
    simulator.add_testbench(bench)
    simulator.run()
    return np.array(found)

assert (casts("to_NAME_saturated", wide.view(np.uint32)) == NAME.bits_of(cast(wide, NAME))).all()
assert (casts("from_NAME", bits) == fp32.bits_of(cast(values, fp32))).all()

def lanes(formats, left, right):
    m = Module()
    m.submodules.cell = cell = Cell(formats=formats, latency=1)
    names = [format_.name for format_ in cell.config.ordered]
    for name, port, format_ in (("a", cell.i_a, left), ("w", cell.i_w, right)):
        m.submodules[name] = unit = OperandRecoder(formats=formats)
        m.d.comb += [port.eq(unit.o_operand), unit.mode.eq(names.index(format_.name))]
    m.d.comb += [cell.i_swap.eq(1), cell.i_w_load.eq(1)]
    a, w = (rng.integers(0, 1 << f.bits, (300, 2)) for f in (left, right))
    p = rng.normal(0, 4, 300).astype(np.float32)
    found = []
    async def bench(ctx):
        for even_odd, weights, start in zip(a.tolist(), w.tolist(), fp32.bits_of(p).tolist()):
            ctx.set(m.submodules.a.i_bits, even_odd[0] | even_odd[1] << 8)
            ctx.set(m.submodules.w.i_bits, weights[0] | weights[1] << 8)
            ctx.set(cell.i_p, start)
            for _ in range(6):
                await ctx.tick()
            found.append(ctx.get(cell.o_p))
    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return np.array(found), fp32.bits_of(mac_lane(p, left.from_bits(a), right.from_bits(w)))

for formats, left, right in (
    ((NAME,), NAME, NAME),
    ((NAME, named["e4m3"]), named["e4m3"], NAME),
):
    found, golden = lanes(formats, left, right)
    assert (found == golden).all(), formats

# What no multiplier takes is refused by name.
other = Format("e3m0", "float8_e8m0fnu", 4, exponent_bits=3)
try:
    Cell(formats=(other,), latency=1)
except BadInputError as error:
    print(error)
print("NAME" in FORMATS, "e4m3,NAME" in PAIRS, "e5m2 or NAME" in OUT.help)
print(next(row for row in GENERATED["number-formats"].make().splitlines() if "NAME" in row))
main("verilog --component systolic --rows 2 --cols 2 --format NAME --out NAME".split())
"""


def test_a_format_is_one_entry(tmp_path):
    entry = 'e3m4 = Format("e3m4", "float8_e3m4", 8, exponent_bits=3)\ne2m1 = '
    edited_copy(tmp_path, "hw/numeric/formats.py", "^e2m1 = ", entry)
    refused, offered, row, *verilog = python_in(tmp_path, "-c", PROGRAM.replace("NAME", "e3m4"))
    assert refused.endswith("or of e2m1 or int4 or mxe2m1 alone, not ('e3m0',)")
    assert "e4m3 and e3m4" in refused and offered == "True True True"
    encoding = "1 sign, 3 exponent, 4 fraction bits; infinities, NaN"
    assert row == f"| `e3m4` | 8 | {encoding} | 16 | 2^-6 | `fp32` | 2 |"
    assert any(" module " in line and "e3m4" in line for line in verilog)
