"""The tile language by its definition (docs/language.md): its functions, computed by numpy.

Source text of a kernel is executed with `LANGUAGE` in the place of `tilewright`. Loops go over
blocks of `BLOCK`, tiles are clipped slices, sums have the order of the language. Nothing of the
project is imported.
"""

import types

import numpy as np

from tests.sw.kernels.functions_by_definition import exp, exp2, reciprocal, rsqrt
from tests.sw.kernels.kernels_by_definition import (
    BF16,
    FLOAT,
    fma,
    gelu_of,
    row_max,
    row_sum,
    stored,
)
from tests.sw.sources.eager_tiles import (
    INT,
    STATE,
    Buffer,
    Tensor,
    Tile,
    Zeros,
    canonical,
    common,
    element,
    iterations,
)

__all__ = ["BLOCK", "computed"]

ONE = np.float32(1)
#: Elements of a block; results do not depend on them.
BLOCK = 5


def metapipe(extent, size=None):
    starts = range(0, extent, BLOCK)
    yield from iterations(slice(start, min(start + BLOCK, extent)) for start in starts)


def each(extent):
    yield from iterations(range(extent))


def extreme(pick, zero_sign):
    def of(x, y):
        x, y = np.broadcast_arrays(x, y)
        found = pick(x, y)
        if x.dtype != FLOAT:
            return found
        zeros = zero_sign(x.view(np.uint32), y.view(np.uint32)).view(FLOAT)
        return np.where((x == 0) & (y == 0), zeros, found)

    return of


_GREATER = extreme(np.maximum, np.bitwise_and)
_LESSER = extreme(np.minimum, np.bitwise_or)


def function(of):
    return lambda x: element(lambda x: of(x, STATE.width), x, wide=FLOAT)


def sigmoid(x, width):
    return reciprocal(ONE + exp(-x, width), width)


def where(condition, x, y):
    wide = common(x, y)
    tiles = [condition, *(each for each in (x, y) if isinstance(each, Tile))]

    def compute(chosen, *arrays):
        arrays = iter(arrays)
        values = (
            next(arrays).astype(wide) if isinstance(each, Tile) else wide.type(each)
            for each in (x, y)
        )
        return np.where(chosen, *values)

    shape = np.broadcast_shapes(*(each.shape for each in tiles))
    return Tile(shape, wide, compute, *tiles)


def reduction(of, axis, tile):
    wide = common(tile)

    def compute(x):
        x = x.astype(wide)
        found = of(x) if axis else of(np.ascontiguousarray(x.T)).T
        return canonical(found)

    return Tile((tile.rows, 1) if axis else (1, tile.cols), wide, compute, tile)


def greatest(x):
    return row_max(x) if x.dtype == FLOAT else x.max(axis=1, keepdims=True)


def least(x):
    return -row_max(-x) if x.dtype == FLOAT else x.min(axis=1, keepdims=True)


def row_mean(tile):
    return row_sum_of(tile) * float(ONE / np.float32(tile.cols))


def row_sum_of(tile):
    return reduction(row_sum, 1, tile)


def size(given):
    return given.stop - given.start if isinstance(given, slice) else given


def full(rows, cols, value):
    shape = (size(rows), size(cols))
    kind = np.int8 if isinstance(value, int) else BF16
    return Tile(shape, kind, lambda: np.full(shape, value, kind))


def load_tile(view):
    if any(np.shares_memory(view.array, target) for target, _ in STATE.stores):
        finish_stores()
    array = np.atleast_2d(view.array).copy()
    return Tile(array.shape, array.dtype, lambda: array)


def store_tile(view, tile):
    tile.uses += 1
    STATE.stores.append((view.array, tile))


def finish_stores():
    """Compute and write what is stored; the uses of its products are known."""
    with np.errstate(all="ignore"):
        for target, tile in STATE.stores:
            array = tile.array
            if array.dtype.kind != "i":
                wide = FLOAT if target.dtype == FLOAT else array.dtype
                array = stored(array.astype(wide), target.dtype)
            target[...] = array.astype(target.dtype).reshape(target.shape)
    STATE.stores.clear()


def split_cols(tile, parts):
    step = tile.cols // parts
    assert step * parts == tile.cols
    return tuple(
        Tile((tile.rows, step), tile.dtype, lambda x, at=at: x[:, at : at + step], tile)
        for at in range(0, tile.cols, step)
    )


def join_cols(*tiles):
    shape = (tiles[0].rows, sum(each.cols for each in tiles))
    return Tile(shape, tiles[0].dtype, lambda *arrays: np.concatenate(arrays, axis=1), *tiles)


LANGUAGE = types.SimpleNamespace(
    kernel=lambda signature: lambda function: function,
    bf16=BF16,
    fp32=FLOAT,
    int8=np.dtype(np.int8),
    int32=INT,
    inf=float("inf"),
    metapipe=metapipe,
    each=each,
    zeros=lambda rows, cols: Zeros((size(rows), size(cols))),
    full=full,
    load_tile=load_tile,
    store_tile=store_tile,
    buffer=Buffer,
    split_cols=split_cols,
    join_cols=join_cols,
    maximum=lambda x, y: element(_GREATER, x, y),
    minimum=lambda x, y: element(_LESSER, x, y),
    where=where,
    fma=lambda x, y, z: element(
        lambda *each: fma(*np.broadcast_arrays(*each)), x, y, z, wide=FLOAT
    ),
    exp=function(exp),
    exp2=function(exp2),
    reciprocal=function(reciprocal),
    rsqrt=function(rsqrt),
    sigmoid=function(sigmoid),
    silu=function(lambda x, width: x * sigmoid(x, width)),
    gelu=function(gelu_of),
    row_max=lambda tile: reduction(greatest, 1, tile),
    row_min=lambda tile: reduction(least, 1, tile),
    row_sum=row_sum_of,
    row_mean=row_mean,
    col_max=lambda tile: reduction(greatest, 0, tile),
    col_min=lambda tile: reduction(least, 0, tile),
    col_sum=lambda tile: reduction(row_sum, 0, tile),
)


def computed(text, name, inputs, outputs, width):
    """Outputs of a kernel by its source text.

    `inputs` are arrays by name, `outputs` shapes and dtypes, `width` the bits of the functions.
    """
    names = {"tw": LANGUAGE}
    exec(compile(text, "definition", "exec"), names)
    found = {
        key: inputs[key].copy() if key in inputs else np.zeros(shape, dtype)
        for key, (shape, dtype) in outputs.items()
    }
    STATE.begin(width)
    tensors = {key: Tensor(array) for key, array in {**inputs, **found}.items()}
    names[name](**tensors)
    finish_stores()
    return found
