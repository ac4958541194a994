"""Random regions of the tile IR: element math, casts, masks and reductions, and their inputs."""

import dataclasses

import numpy as np

from sw.ir import nodes as ir
from sw.ir.affine import Axis
from sw.ir.element_operations import OPERATIONS
from sw.ir.format_rules import bf16, convertible, fp32, int8, int32, pred
from sw.ir.infer import RuleError, infer
from sw.ir.types import Span, TileType

__all__ = ["DrawnRegion", "draw_region", "numbers"]

_SPAN = Span("random.py", 1, 0, 1, 1)
_OPS = [each.name for each in OPERATIONS.values() if not each.internal]
_FLOATS = [0.0, -0.0, 1e-40, -1e-40, 1.5, 80.0, -80.0, 3e38, -3e38, np.inf, -np.inf]
_CONSTANTS = [0, 1, 2, -3, 8, 100, 0.0, -0.0, 1.0, 0.5, -2.25, 1e-5, 3e38, np.inf, np.nan]
_PATTERNS = [0x7FC00001, 0xFFC00000, 0x7F800001, 0xFFFFFFFF, 0x00000001, 0x80000001]


def numbers(random, shape, format_):
    """Numbers of a format, special ones among them: payloads of NaN, subnormals, infinities."""
    if not format_.is_float:
        bound = 1 << (format_.bits - 1)
        small = random.integers(-20, 20, shape)
        wide = random.integers(-bound, bound, shape)
        return np.where(random.random(shape) < 0.5, small, wide).astype(format_.dtype)
    values = random.normal(size=shape) * random.choice([0.1, 3, 30])
    values = np.where(random.random(shape) < 0.1, random.choice(_FLOATS, shape), values)
    with np.errstate(all="ignore"):
        array = values.astype(format_.dtype)
    bits = np.ascontiguousarray(array).view(f"u{format_.dtype.itemsize}")
    other = random.choice(_PATTERNS, shape) >> (32 - format_.bits)
    return np.where(random.random(shape) < 0.03, other, bits).astype(bits.dtype).view(format_.dtype)


@dataclasses.dataclass
class DrawnRegion:
    """Nodes, types of the inputs, formats of the outputs, axis on the lanes, and arrays."""

    nodes: list
    inputs: dict
    outputs: dict
    lane_axis: int
    arrays: dict


class _Drawing:
    def __init__(self, random):
        self.random = random
        self.lane_axis = int(random.integers(2))
        self.size = (int(random.integers(1, 21)), int(random.integers(1, 13)))
        self.nodes, self.values, self.inputs = [], [], {}

    def shape(self):
        kind = self.random.choice(["full", "full", "full", "lane", "step"])
        size = list(self.size)
        if kind != "full":
            size[(kind == "lane") ^ self.lane_axis] = 1
        return size

    def input(self, full):
        rows, cols = self.size if full else self.shape()
        format_ = [bf16, bf16, fp32, int8, int32][self.random.integers(5)]
        value = ir.Value(f"in{len(self.inputs)}", TileType(Axis(rows), Axis(cols), format_))
        self.inputs[value.name] = value.type
        self.values.append(value)

    def pick(self, wanted=None):
        values = [each for each in self.values if wanted is None or wanted(each.type)]
        # Later values more often, so that chains grow.
        if not values:
            return None
        return values[max(self.random.integers(len(values), size=2))]

    def number(self):
        if self.random.random() < 0.2:
            value = _CONSTANTS[self.random.integers(len(_CONSTANTS))]
            return ir.Constant(value)
        return self.pick(lambda type_: type_.format != pred)

    def node(self):
        kind = self.random.choice(["map"] * 8 + ["reduce", "cast", "cast", "full", "same"])
        if kind == "reduce":
            value = self.pick(lambda type_: type_.format != pred)
            op = str(self.random.choice(["sum", "max", "min"]))
            return ir.Reduce((value,), (), _SPAN, op=op, axis=1 - self.lane_axis)
        if kind == "cast":
            format_ = [bf16, fp32, int8, int32][self.random.integers(4)]
            return ir.Cast((self.pick(lambda type_: type_.format != pred),), (), _SPAN, format_)
        if kind == "full":
            rows, cols = self.shape()
            format_ = [bf16, fp32, int32][self.random.integers(3)]
            constant = ir.Constant(int(self.random.integers(-9, 9)))
            return ir.Full((), (), _SPAN, constant, Axis(rows), Axis(cols), format_)
        if kind == "same":
            value = self.pick(lambda type_: type_.format != pred)
            if self.random.integers(2):
                return ir.Buffer((value,), (), _SPAN)
            return ir.Mask((value,), (), _SPAN, axis=0, identity=ir.Constant(0))
        op = str(self.random.choice([*_OPS, "where", "where", "add", "mul", "sub"]))
        count = OPERATIONS[op].operands
        if OPERATIONS[op].chooses:
            condition = self.pick(lambda type_: type_.format == pred)
            return ir.Map((condition, self.number(), self.number()), (), _SPAN, op=op)
        return ir.Map(tuple(self.number() for _ in range(count)), (), _SPAN, op=op)

    def grow(self):
        """Enter a node if it has a type."""
        node = self.node()
        if any(each is None for each in node.operands):
            return
        try:
            (type_,) = infer(node, {})
        except RuleError:
            return
        if isinstance(node, ir.Map) and not node.values:
            return
        result = ir.Value(f"v{len(self.nodes)}", type_)
        self.nodes.append(node.replace(results=(result,)))
        self.values.append(result)

    def outputs(self):
        """Formats of all values that nothing reads, and of some others."""
        read = {each.name for node in self.nodes for each in node.values}
        found = {}
        for node in self.nodes:
            type_ = node.result.type
            narrow = type_.axis(self.lane_axis).one and self.size[self.lane_axis] > 1
            wanted = node.result.name not in read or self.random.random() < 0.1
            if type_.format == pred or narrow or not wanted:
                continue
            formats = [fp32, bf16, int32, int8]
            fitting = [each for each in formats if convertible(type_.format, each)]
            found[node.result.name] = fitting[self.random.integers(len(fitting))]
        return found


def draw_region(random, most):
    """A region of at most so many operations whose outputs lanes can send."""
    while True:
        drawing = _Drawing(random)
        for number in range(random.integers(1, 5)):
            drawing.input(number == 0)
        count = random.integers(1, most + 1)
        for _ in range(10 * count):
            if len(drawing.nodes) < count:
                drawing.grow()
        outputs = drawing.outputs()
        if outputs:
            break
    arrays = {
        name: numbers(random, (type_.rows.size, type_.cols.size), type_.format)
        for name, type_ in drawing.inputs.items()
    }
    return DrawnRegion(drawing.nodes, drawing.inputs, outputs, drawing.lane_axis, arrays)
