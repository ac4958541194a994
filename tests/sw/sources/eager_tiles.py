"""Tiles of the language by its definition: arrays of numpy, computed when they are stored.

Nothing of the project is imported. Tiles wait because the uses of a product decide whether a sum
goes on with it (docs/language.md#sums).
"""

import functools

import numpy as np

from tests.sw.kernels.functions_by_definition import reciprocal
from tests.sw.kernels.kernels_by_definition import BF16, FLOAT, NAN, product, stored

__all__ = [
    "INT",
    "STATE",
    "Buffer",
    "Tensor",
    "Tile",
    "Zeros",
    "canonical",
    "common",
    "element",
    "iterations",
]

INT = np.dtype(np.int32)


class State:
    """State of an execution: open loops, the iteration, stores, bits of the functions."""

    def __init__(self):
        self.begin(16)

    def begin(self, width):
        self.width = width
        self.loops = []
        self.iteration = object()
        self.stores = []


STATE = State()


class Loop:
    def __init__(self):
        self.open = True


def iterations(items):
    """A loop over items."""
    loop, outer = Loop(), STATE.iteration
    STATE.loops.append(loop)
    for item in items:
        STATE.iteration = object()
        yield item
    STATE.iteration = outer
    STATE.loops.remove(loop)
    loop.open = False


def canonical(x):
    return np.where(np.isnan(x), NAN, x) if x.dtype == FLOAT else x


class Tensor:
    """A view; a list of slices and numbers is kept, so that a store writes the tensor."""

    def __init__(self, array):
        self.array = array

    @property
    def shape(self):
        return self.array.shape

    def __getitem__(self, key):
        return Tensor(self.array[key])


class Tile:
    """A tile: shape and format at once, the array when it is asked for."""

    def __init__(self, shape, dtype, compute, *operands):
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.compute, self.operands = compute, operands
        self.iteration, self.loops = STATE.iteration, tuple(STATE.loops)
        self.uses = 0
        for operand in operands:
            operand.uses += 1

    @functools.cached_property
    def array(self):
        with np.errstate(all="ignore"):
            return self.compute(*(each.array for each in self.operands))

    @property
    def is_sum(self):
        """Whether it is a sum from zeros, with which `+` a product goes on."""
        return False

    @property
    def rows(self):
        return self.shape[0]

    @property
    def cols(self):
        return self.shape[1]

    T = property(lambda self: Tile(self.shape[::-1], self.dtype, np.transpose, self))

    def to(self, dtype):
        return Cast(self, dtype)

    def __matmul__(self, other):
        return Product(self, other)

    def __add__(self, other):
        if isinstance(other, Tile) and other.shape == self.shape:
            return Sum(self, other)
        return element(np.add, self, other)

    def __iadd__(self, other):
        """In a loop that only adds products to the tile, they are added to one another first."""
        inside = [each for each in STATE.loops if each not in self.loops]
        if isinstance(other, Product) and inside and not self.is_sum:
            return Deferred(self, other, inside[0])
        return self + other

    __radd__ = __add__

    def __sub__(self, other):
        return element(np.subtract, self, other)

    def __rsub__(self, other):
        return element(np.subtract, other, self)

    def __mul__(self, other):
        return element(np.multiply, self, other)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return element(divided, self, float_of(other))

    def __rtruediv__(self, other):
        return element(divided, float_of(other), self)

    def __neg__(self):
        return element(np.negative, self)

    def __abs__(self):
        return element(np.abs, self)

    def __lt__(self, other):
        return element(np.less, self, other, dtype=bool)

    def __gt__(self, other):
        return element(np.greater, self, other, dtype=bool)

    def __ge__(self, other):
        return element(np.greater_equal, self, other, dtype=bool)


class Cast(Tile):
    def __init__(self, tile, dtype):
        super().__init__(tile.shape, dtype, lambda x: cast(x, np.dtype(dtype)), tile)

    @property
    def is_sum(self):
        return isinstance(self.operands[0], Zeros)


class Zeros(Tile):
    is_sum = True

    def __init__(self, shape):
        super().__init__(shape, np.int8, lambda: np.zeros(shape, np.int8))


class Buffer(Tile):
    def __init__(self, tile):
        super().__init__(tile.shape, tile.dtype, lambda x: x, tile)

    @property
    def is_sum(self):
        return self.operands[0].is_sum


class Product(Tile):
    """A product of two tiles, which may enter one sum instead of being finished."""

    is_sum = True

    def __init__(self, a, b, total=None):
        assert a.cols == b.rows and (a.dtype == b.dtype)
        wide = INT if a.dtype.kind == "i" else FLOAT
        super().__init__((a.rows, b.cols), wide, self.summed, a, b, *([total] if total else []))

    @staticmethod
    def summed(a, b, total=None):
        wide = INT if a.dtype.kind == "i" else FLOAT
        found = product(a, b, None if total is None else total.astype(wide))
        return canonical(found)

    def onto(self, total):
        """The sum that begins with another tile."""
        a, b = (each.array for each in self.operands)
        return self.summed(a, b, total.array)


class Sum(Tile):
    """x + y of one shape: the sum x goes on if y is a product that nothing else reads."""

    def __init__(self, x, y):
        super().__init__(x.shape, common(x, y), self.finished, x, y)

    @property
    def going_on(self):
        x, y = self.operands
        for start, end in ((x, y), (y, x)):
            single = isinstance(end, Product) and end.uses == 1
            same = start is not end and start.dtype in (end.dtype, np.int8)
            if single and end.iteration is self.iteration and same:
                return (start, end) if start.is_sum else None
        return None

    @property
    def is_sum(self):
        return self.going_on is not None

    def finished(self, x, y):
        if self.going_on:
            start, end = self.going_on
            return end.onto(start)
        return canonical(x.astype(self.dtype) + y.astype(self.dtype))


class Deferred(Tile):
    """A tile and the products that a loop adds to it, which are added to it at the loop's end."""

    def __init__(self, base, added, loop):
        total = added
        if isinstance(base, Deferred) and base.loop.open:
            base, total, loop = base.base, Sum(base.total, added), base.loop
        super().__init__(base.shape, common(base, total), self.finished, base, total)
        self.base, self.total, self.loop = base, total, loop
        self.loops = base.loops

    def finished(self, x, y):
        return canonical(x.astype(self.dtype) + y.astype(self.dtype))


def cast(x, dtype):
    if x.dtype == dtype:
        return x
    if dtype == np.int8:
        return np.clip(x, -128, 127).astype(np.int8)
    if dtype == BF16 and x.dtype == FLOAT:
        return stored(x, BF16)
    return canonical(x.astype(dtype))


def common(*operands):
    """The format of element math: int32 if no operand is a float."""
    floats = (
        isinstance(each, float) or isinstance(each, Tile) and each.dtype.kind not in "ib"
        for each in operands
    )
    return FLOAT if any(floats) else INT


def float_of(x):
    return float(x) if isinstance(x, int | float) else x


def element(function, *operands, dtype=None, wide=None):
    tiles = [each for each in operands if isinstance(each, Tile)]
    wide = wide or common(*operands)

    def compute(*arrays):
        arrays = iter(arrays)
        values = [
            next(arrays).astype(wide) if isinstance(each, Tile) else wide.type(each)
            for each in operands
        ]
        found = function(*values)
        return found if dtype else canonical(found)

    shape = np.broadcast_shapes(*(each.shape for each in tiles))
    return Tile(shape, dtype or wide, compute, *tiles)


def divided(x, y):
    return x * reciprocal(np.asarray(y, FLOAT), STATE.width)
