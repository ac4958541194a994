"""Random kernels as source text, with sizes, formats, operands, a chip and a schedule.

A program is plain data, so that `source_reduction` can reduce it: lines of text, sizes by name.
"""

import json
import linecache
import re

import numpy as np

import sw.language as tw
from hw.numeric.formats import named as formats
from sim.campaign.generators.chips import chip_fields, chip_of
from sim.campaign.generators.random_sizes import random_schedule
from sim.run.job import Problem
from sw.language import Schedule
from tests.sw.kernels.test_golden_kernels import operand

__all__ = ["draw_source", "inputs_of", "kernel_of", "problem_of_source"]

SIGNATURE = (
    "X[H, M, D], Z[H, M, D], W[H, D, F], V[H, F, D], g[D], f[F] -> Y[H, M, {width}]",
    "X[H, M, D], Z[H, M, D], W[H, D, F], V[H, F, D], g[D], f[F] -> Y[H, D, {width}]",
    "X[H, M, D], T[H, M, D], W[H, D, F], V[H, F, D], g[D], f[F] -> Y[H, M, {width}], T",
)
#: Element math by the format of the operands.
_UNARY = {
    "bf16": (
        *("tw.exp({} * 0.01)", "tw.silu({})", "abs({})", "{} * 0.5", "-{}", "tw.sigmoid({})"),
        *("tw.gelu({})", "1.0 / (abs({}) + 1.0)", "tw.rsqrt(abs({}) + 0.1)", "tw.exp2({})"),
    ),
    "int8": ("abs({})", "{} * 4", "-{}", "{} + 7", "tw.maximum({}, 0)"),
}
_BINARY = (
    *("{} + {}", "{} - {}", "{} * {}", "tw.maximum({}, {})", "tw.minimum({}, {})"),
    *("tw.where({0} > {1}, {0}, {1})", "tw.where({0} >= {1}, {1}, 0)"),
)
_FLOAT_BINARY = (*_BINARY, "{} / (abs({}) + 1.0)", "tw.fma({0}, {1}, {0})")
#: Sums of three.
_CHAINS = ("{} * 0.7 + {} * 0.3 + {}", "{} * 0.7 + {} * 0.3 + {}", "{} + ({} * 0.3 + {})")
#: Element math with a statistic of the rows.
_NORMS = (
    *("{0} - tw.row_sum({0} * 1)", "{0} - tw.row_mean({0})", "tw.exp({0} - tw.row_max({0}))"),
    "{0} * tw.rsqrt(tw.row_sum({0} * {0}) + 1.0)",
)
_KINDS = (
    *("unary", "unary", "binary", "binary", "row", "reduce", "dot", "dot", "mlp"),
    *("heads", "turn", "buffer"),
    *("chain", "chain", "chain", "chain", "normal", "normal", "normal", "normal"),
)


class _Source:
    def __init__(self, draw, fmt, sizes):
        self.draw, self.fmt, self.sizes = draw, fmt, sizes
        self.lines, self.depth, self.count = [], 1, 0
        self.values = {"D": [], "F": [], "1": []}
        self.narrow = set()

    def line(self, text):
        self.lines.append("    " * self.depth + text)

    def name(self, width, text, narrow=False):
        self.count += 1
        name = f"v{self.count}"
        self.line(f"{name} = {text}")
        self.values[width].append(name)
        if narrow:
            self.narrow.add(name)
        return name

    def pick(self, width):
        # Later values more often, so that chains grow.
        values = self.values[width]
        return max(self.draw.sample(values, min(2, len(values))), key=lambda each: int(each[1:]))

    def operand(self, name):
        """A tile that `@` takes."""
        return name if name in self.narrow else f"{name}.to(tw.{self.fmt})"

    def dot(self, value, width, slot):
        """A product of a tile of D (F) columns with a matrix, as it is or transposed."""
        matrices = {"D": ("W[{}]", "V[{}]"), "F": ("V[{}]", "W[{}]")}[width]
        plain, turned = (f"tw.load_tile({each.format(slot)})" for each in matrices)
        right = plain if self.draw.random() < 0.6 else f"{turned}.T"
        return f"{self.operand(value)} @ {right}"

    def statement(self, slot):
        draw = self.draw
        width = draw.choice([each for each in ("D", "D", "F") if self.values[each]])
        value = self.pick(width)
        match draw.choice(_KINDS):
            case "unary":
                text = draw.choice(_UNARY[self.fmt]).format(value)
                self.name(width, text)
            case "binary":
                binary = _FLOAT_BINARY if self.fmt == "bf16" else _BINARY
                other = self.pick(draw.choice([width, "1"] if self.values["1"] else [width]))
                self.name(width, draw.choice(binary).format(value, other))
            case "row":
                vector = "tw.load_tile(g)" if width == "D" else "tw.load_tile(f)"
                self.name(width, draw.choice(("{} * {}", "{} + {}")).format(value, vector))
            case "reduce":
                floats = ("tw.row_max({})", "tw.row_sum({})", "tw.row_mean({})", "tw.row_min({})")
                ints = ("tw.row_sum({} * 1)",)
                self.name("1", draw.choice(floats if self.fmt == "bf16" else ints).format(value))
            case "chain":
                chains = _CHAINS if self.fmt == "bf16" else ("{} + {} + {}", "{} - ({} + {})")
                chain = draw.choice(chains)
                self.name(width, chain.format(*(self.pick(width) for _ in range(3))))
            case "normal":
                norms = _NORMS if self.fmt == "bf16" else _NORMS[:1]
                self.name(width, draw.choice(norms).format(value))
            case "turn":
                if self.sizes[width] % 2 == 0:
                    self.line(f"a, b = tw.split_cols({value}, 2)")
                    self.name(width, draw.choice(("tw.join_cols(b, a)", "tw.join_cols(-b, a * 2)")))
            case "buffer":
                self.name(width, f"tw.buffer({value})", narrow=value in self.narrow)
            case "dot":
                other = "F" if width == "D" else "D"
                self.name(other, self.dot(value, width, slot))
            case "mlp":
                self.sum_over_blocks(slot)
            case "heads":
                start = self.draw.choice(("", "tw.load_tile(f) * 1 + "))
                y = self.name("F", f"{start}tw.zeros(i, {self.size('F')})")
                index = f"h{self.count}"
                self.line(f"for {index} in tw.each(X.shape[0]):")
                self.line(f"    {y} += tw.load_tile(X[{index}, i, :]) @ tw.load_tile(W[{index}])")

    def store(self, view):
        """Store a value, perhaps with another that nothing reads; its width."""
        width = self.draw.choice([each for each in "DF" if self.values[each]])
        value = self.pick(width)
        text = "\n".join(self.lines)
        unread = [each for each in self.values[width] if len(re.findall(rf"\b{each}\b", text)) == 1]
        if unread and unread[-1] != value and self.draw.random() < 0.6:
            value = f"{value} + {unread[-1]}"
        self.line(f"tw.store_tile({view}, {value})")
        return width

    def size(self, width):
        return {"D": "g.shape[0]", "F": "f.shape[0]"}[width]

    def sum_over_blocks(self, slot):
        """Two products in a loop over blocks of F, added to zeros or to a value."""
        if not self.values["D"]:
            return
        left = self.operand(self.pick("D"))
        y = self.name("D", f"tw.zeros(i, {self.size('D')})")
        index = f"k{self.count}"
        self.line(f"for {index} in tw.metapipe({self.size('F')}):")
        middle = f"({left} @ tw.load_tile(W[{slot}, :, {index}])).to(tw.{self.fmt})"
        self.line(f"    {y} += {middle} @ tw.load_tile(V[{slot}, {index}, :])")

    def loops(self, outer, header):
        """Open the loops outside; the number of the slice along H."""
        slot = "0"
        if outer:
            slot = "p"
            self.line("for p in tw.each(X.shape[0]):")
            self.depth += 1
        if header:
            self.line(header)
            self.depth += 1
        return slot


def _rows(source, outer):
    """A loop over rows with loads, some statements and a store."""
    draw = source.draw
    slot = source.loops(outer, "for i in tw.metapipe(X.shape[1]):")
    source.name("D", f"tw.load_tile(X[{slot}, i, :])", narrow=True)
    if draw.random() < 0.5:
        source.name("D", f"tw.load_tile(Z[{slot}, i, :])", narrow=True)
    for _ in range(draw.randint(1, 7)):
        source.statement(slot)
    return 0, source.store(f"Y[{slot}, i, :]")


def _in_place(source, outer):
    """A tensor updated in place by what does not depend on it; its old or new values are used."""
    draw = source.draw
    rows = "for i in tw.metapipe(X.shape[1]):"
    slot = source.loops(outer, rows)
    tensor = f"T[{slot}, i, :]"
    again = draw.random() < 0.4
    if not again:
        source.line(f"old = tw.load_tile({tensor})")
    source.name("D", f"tw.load_tile(X[{slot}, i, :])", narrow=True)
    for _ in range(draw.randint(0, 2)):
        source.statement(slot)
    source.line(f"tw.store_tile({tensor}, {source.pick('D')}.to(tw.{source.fmt}))")
    source.values = {"D": [], "F": [], "1": []}
    if again:
        source.depth = 1
        source.loops(outer, rows)
    old = source.name("D", f"tw.load_tile({tensor})" if again else "tw.buffer(old)", narrow=True)
    source.name("F", source.dot(old, "D", slot))
    for _ in range(draw.randint(0, 2)):
        source.statement(slot)
    return 2, source.store(f"Y[{slot}, i, :]")


def _product(source, outer):
    """A product with its sum over blocks, and element math on it."""
    draw = source.draw
    slot = source.loops(outer, "for i in tw.metapipe(X.shape[1]):")
    columns = "W.shape[2]"
    source.line(f"for j in tw.metapipe({columns}):")
    source.depth += 1
    source.line("acc = tw.zeros(i, j)")
    source.line("for k in tw.metapipe(X.shape[2]):")
    right = draw.choice(("tw.load_tile(W[{}, k, j])", "tw.load_tile(V[{}, j, k]).T"))
    source.line(f"    acc += tw.load_tile(X[{slot}, i, k]) @ {right.format(slot)}")
    value = "acc"
    if draw.random() < 0.5:
        value = draw.choice(
            ("acc + tw.load_tile(f[j])", "acc * 2 + tw.load_tile(f[j])", "abs(acc)")
        )
    source.line(f"tw.store_tile(Y[{slot}, i, j], {value})")
    return 0, "F"


def _columns(source, outer):
    """Statistics of columns, of which each block has all rows."""
    draw = source.draw
    slot = source.loops(outer, "for j in tw.metapipe(X.shape[2]):")
    x = source.name("D", f"tw.load_tile(X[{slot}, :, j])", narrow=True)
    z = source.name("D", f"tw.load_tile(Z[{slot}, :, j])", narrow=True)
    if draw.random() < 0.6:
        x = source.name("D", draw.choice(_UNARY[source.fmt]).format(x))
    statistics = ("tw.col_sum({})", "tw.col_max({})", "tw.col_min({})")
    statistic = draw.choice(statistics if source.fmt == "bf16" else statistics[:1])
    total = source.name("D", statistic.format(f"{x} * 1"))
    value = draw.choice(_BINARY).format(draw.choice((x, z)), total)
    source.line(f"tw.store_tile(Y[{slot}, :, j], {value})")
    return 0, "D"


def _turned(source, outer):
    """A transpose, of which each block has all rows."""
    draw = source.draw
    slot = source.loops(outer, "for j in tw.metapipe(X.shape[2]):")
    x = source.name("D", f"tw.load_tile(X[{slot}, :, j])", narrow=True)
    if draw.random() < 0.6:
        x = source.name("D", draw.choice(_UNARY[source.fmt]).format(x))
    source.line(f"tw.store_tile(Y[{slot}, j, :], {x}.T)")
    return 1, "M"


def _outer(source, outer):
    """A sum of outer products over blocks of rows."""
    draw = source.draw
    slot = source.loops(outer, None)
    source.line(f"s = tw.zeros({source.size('D')}, {source.size('D')})")
    source.line("for i in tw.metapipe(X.shape[1]):")
    left, right = f"tw.load_tile(X[{slot}, i, :])", f"tw.load_tile(Z[{slot}, i, :])"
    if draw.random() < 0.4:
        math = draw.choice(_UNARY[source.fmt]).format(left)
        left = f"({math}).to(tw.{source.fmt})"
    source.line(f"    s += {left}.T @ {right}")
    source.line(f"tw.store_tile(Y[{slot}], {draw.choice(('s', 's * 2', 'abs(s)'))})")
    return 1, "D"


#: Families of programs, each as often as it stands here.
_FAMILIES = (
    *(_rows, _rows, _rows, _rows, _rows, _in_place, _in_place),
    *(_product, _product, _columns, _outer, _turned),
)


def _size(draw, most):
    return 1 if draw.random() < 0.1 else round(most ** draw.random())


def draw_source(draw, chip):
    """A random program for a chip, as plain data."""
    fits = [each for each in ("bf16", "bf16", "int8") if each in chip.pcu.formats] or ["bf16"]
    fmt = draw.choice(fits)
    outer = draw.random() < 0.4
    most = draw.choice((12, 40, 70))
    sizes = {"H": draw.choice((2, 3)) if outer else 1}
    sizes |= {name: _size(draw, most) for name in "MDF"}
    if draw.random() < 0.5:
        # Square matrices, of which an orientation shows in the values alone.
        sizes["F"] = sizes["D"]
    source = _Source(draw, fmt, sizes)
    family = draw.choice(_FAMILIES)
    signature, width = family(source, outer)
    text = SIGNATURE[signature].format(width=width)
    second = "T" if signature == 2 else "Z"
    head = [f'@tw.kernel("{text}")', f"def drawn(X, {second}, W, V, g, f, Y):"]
    found = {
        "lines": [*head, *source.lines],
        "dims": sizes,
        "dtype": fmt,
        "out": "int32" if fmt == "int8" else draw.choice(("bf16", "fp32")),
        "chip": chip_fields(chip),
        "schedule": {},
        "operands": {"seed": draw.getrandbits(31), "mild": draw.random() < 0.7},
        "memory": draw.randint(1, 1000),
    }
    if draw.random() < 0.3:
        program = problem_of_source(found).program
        schedule = random_schedule(draw, program, chip, most=most)
        given = json.loads(schedule.to_json())
        found["schedule"] = {name: each for name, each in given.items() if each}
    return found


def kernel_of(lines):
    """The kernel of source text."""
    text = "\n".join(lines) + "\n"
    file = f"drawn_{hash(text) & 0xFFFFFF:x}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names = {"tw": tw}
    exec(compile(text, file, "exec"), names)
    return names["drawn"]


def problem_of_source(fields):
    """The problem of a program."""
    return Problem(
        kernel_of(fields["lines"]),
        chip_of(fields["chip"]),
        fields["dims"],
        formats[fields["dtype"]],
        formats[fields["out"]],
        schedule=Schedule(**fields["schedule"]),
    )


def inputs_of(fields, problem):
    """The operands of a program."""
    rng = np.random.default_rng(fields["operands"]["seed"])
    mild = fields["operands"]["mild"]
    return {
        spec.name: operand(rng, spec.shape, spec.format.dtype, mild=mild) for spec in problem.inputs
    }
