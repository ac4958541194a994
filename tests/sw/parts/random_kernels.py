"""Random kernels as source text: products, element math, statistics, carried sums, loops."""

import linecache

import sw.language as tw

__all__ = ["draw_kernel", "draw_layers"]

_UNARY = ("tw.exp({} * 0.01)", "tw.silu({})", "abs({})", "{} * 0.5", "-{}", "tw.tanh({})")
_BINARY = ("{} + {}", "{} - {}", "{} * {}", "tw.maximum({}, {})")
_KINDS = ("unary", "unary", "binary", "binary", "row", "reduce", "dot", "mlp")


class _Drawing:
    def __init__(self, draw, kinds=_KINDS):
        self.draw = draw
        self.kinds = kinds
        self.lines = []
        self.count = 0
        self.depth = 1
        self.widths = {"D": [], "F": [], "1": []}
        self.wide = {}
        self.extra = False

    def line(self, text):
        self.lines.append("    " * self.depth + text)

    def name(self, width, text, wide=True):
        self.count += 1
        name = f"v{self.count}"
        self.line(f"{name} = {text}")
        self.widths[width].append(name)
        self.wide[name] = wide
        return name

    def pick(self, width):
        # Later values more often, so that chains grow.
        values = self.widths[width]
        return max(self.draw.sample(values, min(2, len(values))), key=lambda each: int(each[1:]))

    def float_of(self, name):
        return name if self.wide[name] else f"{name}.to(tw.fp32)"

    def statement(self, row, weights, slot):
        draw = self.draw
        width = draw.choice([each for each in ("D", "D", "F") if self.widths[each]])
        value = self.pick(width)
        number = self.float_of(value)
        match draw.choice(self.kinds):
            case "unary":
                self.name(width, draw.choice(_UNARY).format(f"({number})"))
            case "binary":
                other = self.pick(draw.choice([width, "1"] if self.widths["1"] else [width]))
                self.name(width, draw.choice(_BINARY).format(number, self.float_of(other)))
            case "row":
                vector = "tw.load_tile(g)" if width == "D" else "tw.load_tile(f)"
                self.name(width, f"{number} * {vector}")
            case "reduce":
                self.name("1", draw.choice(("tw.row_max({})", "tw.row_sum({})")).format(number))
            case "dot":
                left = value if not self.wide[value] else f"{value}.to(tw.bf16)"
                matrix, other = ("W", "F") if width == "D" else ("V", "D")
                self.name(other, f"{left} @ tw.load_tile({matrix}[{slot}])")
            case "heads":
                y = self.name("F", "tw.load_tile(f) * 1.0 + tw.zeros(i, f.shape[0])")
                index = f"h{self.count}"
                self.line(f"for {index} in tw.each(X.shape[0]):")
                self.line(f"    x = (tw.load_tile(X[{index}, i, :]) * 0.5).to(tw.bf16)")
                self.line(f"    {y} += x @ tw.load_tile(W[{index}])")
            case "mlp":
                if not self.widths["D"]:
                    return
                left = self.pick("D")
                left = left if not self.wide[left] else f"{left}.to(tw.bf16)"
                y = self.name("D", "tw.zeros(i, g.shape[0])")
                index = f"k{self.count}"
                self.line(f"for {index} in tw.metapipe(f.shape[0]):")
                loads = [f"tw.load_tile({each})" for each in weights(slot, index)]
                self.line(f"    h = ({left} @ {loads[0]}).to(tw.bf16)")
                self.line(f"    {y} += h @ {loads[1]}")

    def body(self, target, outer, own):
        """A loop over rows with loads, some statements and a store."""
        draw = self.draw
        points = [f"p{own}{number}" for number in range(outer)]
        slot, extents = "0", ("H",)
        if outer == 1:
            slot = points[0]
        if outer == 2:
            slot, extents = f"{points[0]} * R + {points[1]}", ("H // R", "R")
        for point, extent in zip(points, extents):
            self.line(f"for {point} in tw.each({extent}):")
            self.depth += 1
        self.line("for i in tw.metapipe(X.shape[1]):")
        self.depth += 1
        here = f"[{slot}, i, :]"
        self.name("D", f"tw.load_tile(X{here})", wide=False)
        if draw.random() < 0.5:
            self.name("D", f"tw.load_tile({'T' if target == 'T' else 'Z'}{here})", wide=False)

        def weights(at, index):
            return f"W[{at}, :, {index}]", f"V[{at}, {index}, :]"

        for _ in range(draw.randint(2, 8)):
            self.statement(here, weights, slot)
        value = self.pick("D")
        self.line(f"tw.store_tile({target}{here}, {value})")
        if draw.random() < 0.4 and not self.extra:
            self.extra = True
            if target == "T" and draw.random() < 0.5:
                self.name("D", f"tw.load_tile(T{here})", wide=False)
            self.line(f"tw.store_tile(E{here}, {self.pick('D')})")
        self.depth -= 1 + outer
        self.widths = {"D": [], "F": [], "1": []}


def draw_kernel(draw, number):
    """A kernel, its sizes, and its text."""
    drawing = _Drawing(draw, (*_KINDS, "heads"))
    outer = draw.randint(0, 2)
    heads = 1 if outer == 0 else draw.choice((2, 4))
    drawing.body("Y", outer, "a")
    again = draw.random() < 0.4
    if again:
        drawing.body("T", draw.randint(1, 2) if outer else 0, "b")
    extra = drawing.extra
    outputs = "Y[H, M, D]" + (", E[H, M, D]" if extra else "") + (", T" if again else "")
    names = "X, Z, W, V, g, f, T" if again else "X, Z, W, V, g, f"
    inputs = "X[H, M, D], Z[H, M, D], W[H, D, F], V[H, F, D], g[D], f[F]"
    inputs += ", T[H, M, D]" if again else ""
    lines = [
        f'@tw.kernel("{inputs} -> {outputs}")',
        f"def drawn({names}, Y{', E' if extra else ''}):",
        "    H, R = X.shape[0], 2 if X.shape[0] % 2 == 0 else 1",
        *drawing.lines,
    ]
    sizes = {"H": heads, "M": draw.randint(1, 11), "D": 8 * draw.randint(1, 3)}
    sizes["F"] = 8 * draw.randint(1, 3) if again else draw.choice((8, 16, 24))
    return _kernel(lines, f"drawn_{number}.py"), sizes, "\n".join(lines)


def _kernel(lines, file):
    text = "\n".join(lines) + "\n"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names = {"tw": tw}
    exec(compile(text, file, "exec"), names)
    return names["drawn"]


def draw_layers(draw, number):
    """A kernel with a loop of `tw.repeat` that carries two tiles, its sizes, and its text."""
    drawing = _Drawing(draw)
    start = drawing.name("D", "tw.load_tile(X)", wide=False)
    total = drawing.name("D", draw.choice(_UNARY).format(f"{start}.to(tw.fp32)"))
    if draw.random() < 0.5:
        drawing.name("1", f"tw.row_sum({total})")
    drawing.line("for n in tw.repeat(W.shape[0]):")
    drawing.depth += 1
    # Only what the body reads is carried.
    drawing.name("D", f"{start}.to(tw.fp32) + {total}")
    if draw.random() < 0.5:
        drawing.name("D", "tw.load_tile(T[n])", wide=False)
    for _ in range(draw.randint(2, 6)):
        drawing.statement(
            "", lambda at, index: (f"W[{at}, :, {index}]", f"V[{at}, {index}, :]"), "n"
        )
    drawing.line(f"tw.store_tile(T[n], {drawing.pick('D')})")
    drawing.line(f"{start} = {drawing.float_of(drawing.pick('D'))}.to(tw.bf16)")
    if draw.random() < 0.5:
        drawing.line(f"{total} = {total} + {drawing.float_of(drawing.pick('D'))}")
    drawing.depth -= 1
    last = draw.choice((start, total, f"{start}.to(tw.fp32) * {total}"))
    drawing.line(f"tw.store_tile(Y, {last})")
    lines = [
        '@tw.kernel("X[M, D], W[L, D, F], V[L, F, D], g[D], f[F], T[L, M, D] -> Y[M, D], T")',
        "def drawn(X, W, V, g, f, T, Y):",
        "    i = X.shape[0]",
        *drawing.lines,
    ]
    sizes = {"L": draw.randint(1, 4), "M": draw.randint(1, 5)}
    sizes |= {"D": 8 * draw.randint(1, 3), "F": 8 * draw.randint(1, 3)}
    return _kernel(lines, f"drawn_layers_{number}.py"), sizes, "\n".join(lines)
