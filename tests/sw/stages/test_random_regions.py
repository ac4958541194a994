"""Lane codes of random regions of the tile IR, and of each operation, against golden."""

import numpy as np
import pytest

from hw.arch.lanes.phase_word import PHASES
from sim.golden import Interpreter
from sw.ir import nodes as ir
from sw.ir.affine import Axis
from sw.ir.element_operations import OPERATIONS
from sw.ir.format_rules import bf16, castable, convertible, fp32, int8, int32, pred
from sw.ir.infer import infer
from sw.ir.types import TileType
from sw.lane_codes.joined_codes import joined_codes
from sw.lane_codes.lane_codes import lane_codes
from sw.language.program_error import ProgramError
from tests.sw.stages.lane_machine import interpreted, machine
from tests.sw.stages.random_regions import DrawnRegion, draw_region, numbers

SIZE = (19, 7)
#: What lanes may refuse of a random region.
REFUSED = (
    *("do not reduce int32", "takes a power of two", "as it is loaded", "whose sum is at"),
    "as many operands as one phase fetches",
)


def wanted(region, bits):
    """Stored bytes of each output by golden: those of a cast to its format."""
    values = interpreted(region.nodes, region.arrays, bits)
    for name, format_ in region.outputs.items():
        interpreter = Interpreter({}, bits)
        interpreter.values[name] = values[name]
        cast = ir.Cast((ir.Value(name, None),), (), None, format_)
        yield name, np.ascontiguousarray(interpreter.results(cast)[0])


def compare(region, bits, width, phases=PHASES, known=True):
    """The codes of a region, if they have the bits of golden."""
    codes = lane_codes(
        region.nodes,
        region.inputs,
        region.outputs,
        lane_axis=region.lane_axis,
        phases=phases,
        function_bits=bits if known else None,
    )
    found = machine(
        codes, region.arrays, lane_axis=region.lane_axis, width_bits=width, function_bits=bits
    )
    for name, array in wanted(region, bits):
        each = np.ascontiguousarray(found[name])
        assert each.shape == array.shape and each.dtype == array.dtype
        assert each.tobytes() == array.tobytes(), name
    for code in codes:
        assert 1 <= code.packet_phases <= len(code.phases) <= phases
        assert {each.source for each in code.phases} <= {code.source, None}
    return codes


@pytest.mark.few(2)
@pytest.mark.parametrize("part", range(4))
def test_random_regions_have_goldens_bits(part, seed):
    random = np.random.default_rng([seed, part])
    served = split = 0
    while served < 60:
        region = draw_region(random, 12)
        bits, width = int(random.integers(12, 25)), int(random.choice([64, 128, 256]))
        phases = int(random.choice([4, 5, 6, 6]))
        try:
            codes = compare(region, bits, width, phases, known=bool(random.integers(2)))
        except ProgramError as error:
            assert any(each in error.message for each in REFUSED), error.message
            continue
        served += 1
        split += len(codes) > 1
    assert split >= 10


def test_joined_programs_have_goldens_bits(seed):
    random = np.random.default_rng(seed)
    served, lengths = 0, set()
    while served < 60:
        region = draw_region(random, 12)
        bits, width = int(random.integers(12, 25)), int(random.choice([64, 128, 256]))
        how = {"lane_axis": region.lane_axis, "phases": 1, "function_bits": bits}
        try:
            codes = lane_codes(region.nodes, region.inputs, region.outputs, **how)
        except ProgramError:
            continue
        joined = joined_codes(codes, region.outputs, int(random.integers(2, PHASES + 1)))
        if len(joined) == len(codes):
            continue
        served += 1
        lengths |= {len(each.phases) for each in joined}
        found = machine(
            joined,
            region.arrays,
            lane_axis=region.lane_axis,
            width_bits=width,
            function_bits=bits,
        )
        for name, array in wanted(region, bits):
            if name in found:
                assert np.ascontiguousarray(found[name]).tobytes() == array.tobytes(), name
        assert found.keys() >= region.outputs.keys()
    assert lengths >= {2, 3, 4}


def one(op, format_, lane_axis, random, shapes=(SIZE, SIZE, SIZE)):
    """Region of one operation, or of a choice by it, on inputs of a format."""
    operation = OPERATIONS[op]
    types = [TileType(Axis(rows), Axis(cols), format_) for rows, cols in shapes]
    names = [ir.Value(f"x{number}", each) for number, each in enumerate(types)]
    nodes = []
    inputs = names[: 2 if operation.chooses else operation.operands]
    if operation.chooses:
        nodes.append(ir.Map((names[2], ir.Constant(0)), (), None, op="ge"))
        nodes[0] = nodes[0].replace(results=(ir.Value("c", infer(nodes[0], {})[0]),))
        node = ir.Map((nodes[0].result, *inputs), (), None, op=op)
        inputs = names
    else:
        node = ir.Map(tuple(inputs), (), None, op=op)
    (type_,) = infer(node, {})
    nodes.append(node.replace(results=(ir.Value("y", type_),)))
    if type_.format == pred:
        chosen = ir.Map((nodes[-1].result, ir.Constant(3), inputs[1]), (), None, op="where")
        nodes.append(chosen.replace(results=(ir.Value("z", infer(chosen, {})[0]),)))
    result = nodes[-1].result
    outputs = {result.name: result.type.format}
    arrays = {
        each.name: numbers(random, (each.type.rows.size, each.type.cols.size), format_)
        for each in inputs
    }
    types = {each.name: each.type for each in inputs}
    return DrawnRegion(nodes, types, outputs, lane_axis, arrays)


@pytest.mark.few(19)
@pytest.mark.parametrize("lane_axis", [0, 1])
@pytest.mark.parametrize("op", [each.name for each in OPERATIONS.values() if not each.internal])
def test_each_operation_has_goldens_bits(op, lane_axis, seed):
    random = np.random.default_rng(seed)
    column, row = (SIZE[0], 1), (1, SIZE[1])
    for shapes in (
        (SIZE, SIZE, SIZE),
        (SIZE, row, column),
        (column, SIZE, row),
        (row, row, SIZE),
        (column, column, SIZE),
    ):
        for format_ in (fp32, bf16, int8, int32):
            if not format_.is_float and not OPERATIONS[op].int32:
                continue
            if (op, format_) == ("mul", int32):
                continue
            region = one(op, format_, lane_axis, random, shapes)
            kinds = {shape == SIZE for shape in shapes[: max(2, OPERATIONS[op].operands)]}
            if True not in kinds:
                continue
            alike = (
                (SIZE, SIZE, SIZE),
                (row, row, SIZE) if lane_axis == 0 else (column, column, SIZE),
            )
            if op == "fma" and shapes in alike:
                with pytest.raises(ProgramError, match="as many operands as one phase fetches"):
                    compare(region, 16, 256)
                continue
            compare(region, int(random.integers(12, 25)), 256)


@pytest.mark.parametrize("source", [fp32, bf16, int8, int32])
@pytest.mark.parametrize("target", [fp32, bf16, int8, int32])
def test_casts_round_and_saturate_as_golden(source, target, seed):
    random = np.random.default_rng(seed)
    if not castable(source, target):
        return
    x = ir.Value("x", TileType(Axis(9), Axis(5), source))
    cast = ir.Cast((x,), (ir.Value("y", x.type.to(target)),), None, target)
    again = ir.Map((cast.result, cast.result), (), None, op="add")
    again = again.replace(results=(ir.Value("z", infer(again, {})[0]),))
    arrays = {"x": numbers(random, (9, 5), source)}
    for stored in (bf16, fp32, int8, int32):
        if convertible(target, stored) and (source, target, stored) != (bf16,) * 3:
            outputs = {"y": stored, "z": again.result.type.format}
            region = DrawnRegion([cast, again], {"x": x.type}, outputs, 0, arrays)
            compare(region, 16, 256)


@pytest.mark.parametrize("op", [each.name for each in OPERATIONS.values() if each.compares])
def test_comparisons_with_constants_have_goldens_bits(op):
    constants = [0.0, -0.0, 1e-45, -1e-45, 1.0, -2.5, 3.4028235e38, np.inf, -np.inf, np.nan]
    exact = np.array([constants] * 3, np.float32)
    with np.errstate(all="ignore"):
        for row, end in ((1, np.inf), (2, -np.inf)):
            exact[row] = np.nextafter(exact[row], np.float32(end))
    x = ir.Value("x", TileType(Axis(3), Axis(len(constants)), fp32))
    for constant in constants:
        for operands in ((x, ir.Constant(constant)), (ir.Constant(constant), x)):
            compared = ir.Map(operands, (), None, op=op)
            condition = ir.Value("c", infer(compared, {})[0])
            chosen = ir.Map(
                (condition, ir.Constant(2.0), x), (ir.Value("y", x.type),), None, op="where"
            )
            nodes = [compared.replace(results=(condition,)), chosen]
            region = DrawnRegion(nodes, {"x": x.type}, {"y": fp32}, 0, {"x": exact})
            compare(region, 16, 256)
