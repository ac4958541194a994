"""Random kernels of columns of tiles: pieces anywhere, joined, beside vectors and statistics."""

import random

import sw.language as tw

__all__ = ["draw_columns"]


class _Formulas:
    """Formulas of tiles of so many columns, drawn when a kernel is traced."""

    def __init__(self, seed, width, whole):
        self.draw = random.Random(seed)
        self.width = width
        self.wide = tw.int32 if whole else tw.fp32
        self.kinds = ["cut", "join", "add", "mul", "stat", "column", "vector", "where"]
        self.kinds += [] if whole else ["exp", "cast"]

    def piece(self, tile, count):
        first = self.draw.randint(0, self.width - count)
        return tile[:, first : first + count]

    def tile(self, sources, vector, depth, count):
        draw = self.draw
        if depth == 0:
            return self.piece(draw.choice(sources), count)

        def other(columns=count):
            return self.tile(sources, vector, depth - 1, columns)

        kind = draw.choice(self.kinds)
        if kind == "cut":
            width = draw.randint(count, self.width)
            first = draw.randint(0, width - count)
            return other(width)[:, first : first + count]
        if kind == "join" and count > 1:
            width = draw.randint(1, count - 1)
            rest = tw.full(sources[0].rows, count - width, 3)
            pieces = other(width), other(count - width) if draw.random() < 0.7 else rest
            return tw.join_cols(*(each.to(self.wide) for each in pieces))
        one = other()
        match kind:
            case "exp":
                return tw.exp(one * 0.0625)
            case "cast":
                return one.to(tw.bf16)
            case "stat":
                return one - tw.row_max(one)
            case "column":
                return one + self.piece(draw.choice(sources), 1)
            case "vector":
                return one + self.piece(vector, count)
            case "where":
                return tw.where(one > 0, one, other())
            case "mul":
                return one * other()
        return one + other()


def draw_columns(draw, *, whole):
    """A random kernel, and sizes for it; of int8 if `whole`.

    One input may be loaded from another row on. Each output is stored in up to three ranges of
    columns, of all rows, in blocks, or of points.
    """
    seed, depth, blocks = draw.randrange(1 << 30), draw.randint(1, 2), draw.random() < 0.7
    points, outputs = draw.choice([0, 0, 0, 2, 3]), draw.randint(1, 2)
    columns = draw.choice([8, 20, 24, 33, 48])

    def store(X, Z, g, results):
        own = random.Random(seed + 1)
        formulas = _Formulas(seed, columns, whole)

        below = own.choice([0, 0, 1, 2, 3])

        def one(i):
            rows = slice(i.start + below, i.stop + below)
            sources = tw.load_tile(X[rows, :]), tw.load_tile(Z[i, :])
            for result in results:
                inner = (own.randint(1, columns - 1) for _ in range(own.choice([0, 0, 1, 2])))
                ends = sorted({0, columns, *inner})
                for first, end in zip(ends, ends[1:]):
                    found = formulas.tile(sources, tw.load_tile(g), depth, end - first)
                    tw.store_tile(result[i, first:end], found.to(formulas.wide))

        if not blocks:
            one(slice(0, Z.shape[0]))
            return
        for i in tw.metapipe(X.shape[0]):
            one(i)

    def every(X, Z, g, *results):
        if not points:
            store(X, Z, g, results)
            return
        for h in tw.each(points):
            store(X[h], Z[h], g, [each[h] for each in results])

    # The signature names the parameters.
    functions = {1: lambda X, Z, g, Y: every(X, Z, g, Y)}
    functions[2] = lambda X, Z, g, Y, U: every(X, Z, g, Y, U)
    dims, more = ("[H, M, N]", "[H, R, N]") if points else ("[M, N]", "[R, N]")
    results = ", ".join(f"{name}{dims}" for name in "YU"[:outputs])
    kernel = tw.kernel(f"X{more}, Z{dims}, g[N] -> {results}")(functions[outputs])
    rows = draw.choice([1, 5, 16, 37])
    sizes = {"M": rows, "R": rows + 3, "N": columns}
    return kernel, sizes | ({"H": points} if points else {})
