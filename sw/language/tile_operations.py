"""Operations of the language: loads, stores, products, tile construction, reductions."""

from __future__ import annotations

import math

from hw.arch.errors import BadInputError
from sw.ir import nodes as ir
from sw.ir.affine import Axis
from sw.ir.format_rules import FORMATS, Format, format_of, takes_constant
from sw.ir.types import Role
from sw.language.idioms import taking
from sw.language.index import BlockIndex
from sw.language.program_error import unserved
from sw.language.tensor import TensorView
from sw.language.tile_value import Tile, emit, tile_argument, whole
from sw.language.trace import current, refusal

__all__ = [
    "buffer",
    "col_index",
    "col_max",
    "col_min",
    "col_sum",
    "full",
    "gather",
    "scatter",
    "inf",
    "join_cols",
    "load_tile",
    "matmul",
    "row_index",
    "row_max",
    "row_mean",
    "row_min",
    "row_sum",
    "split_cols",
    "store_tile",
    "zeros",
]

#: Infinity, for starts of maxima and minima.
inf = math.inf

#: Sizes accepted in shapes: numbers, dimensions, blocks, and rows or columns of tiles.
Size = int | Axis | BlockIndex


def _view(name: str, value: object) -> TensorView:
    if not isinstance(value, TensorView):
        raise refusal(
            "operation",
            f"`{name}` takes a tensor of the kernel, not {type(value).__name__}",
            value=type(value).__name__,
        )
    if value.recorder is not current(name):
        raise refusal("scope", f"`{name}` takes a tensor of another trace, which has ended")
    return value


@taking
def load_tile(view: TensorView) -> Tile:
    """Load a view of one or two axes from memory; a view of one axis becomes a row.

    Parameters
    ----------
    view : TensorView
        Of an input, of a tensor updated in place, or of a local one.
    """
    return emit(ir.Load, view=_readable("load_tile", view).view)


def _readable(name: str, value: object) -> TensorView:
    view = _view(name, value)
    if view.role is Role.OUT:
        raise refusal(
            "output",
            f"`{view.name}` is an output and cannot be read: name it on both sides of the "
            "signature to update it in place",
            value=view.name,
        )
    return view


def _writable(name: str, value: object) -> TensorView:
    view = _view(name, value)
    if view.role is Role.IN:
        raise refusal(
            "output",
            f"`{view.name}` is an input and cannot be written",
            value=view.name,
        )
    return view


@taking
def scatter(table: TensorView, numbers: Tile, rows: Tile, op: str = "store") -> None:
    """Store rows of a tile as rows of a tensor in memory by number, or add them, in their order.

    Parameters
    ----------
    table : TensorView
        A view of two axes of a tensor that is updated in place.
    numbers : Tile
        Row or column of int32 row numbers, counted from the first row of the table.
    rows : Tile
        A row for each number, as wide as the table. Of two with one number the later one stays.
    op : str
        ``store``, or ``add``: int32 rows are added to those of an int32 table, and wrap.
    """
    table = _writable("scatter", table)
    numbers, rows = tile_argument("scatter", numbers), tile_argument("scatter", rows)
    if op not in ("store", "add"):
        raise refusal("operation", f"op must be 'store' or 'add', not {op!r}", value=repr(op))
    if table.role is not Role.INOUT:
        noun = "an output" if table.role is Role.OUT else "local"
        raise refusal(
            "output",
            f"`{table.name}` is {noun} and cannot be scattered to: name it on both sides of "
            "the signature to update it in place",
            value=table.name,
        )
    current("scatter").record(ir.Scatter, numbers.value, rows.value, view=table.view, op=op)


@taking
def gather(table: TensorView | Tile, numbers: Tile) -> Tile:
    """Read rows of a tensor in memory, or of a tile, by number.

    Parameters
    ----------
    table : TensorView or Tile
        A view of two axes, or a tile.
    numbers : Tile
        Row or column of int32 row numbers, counted from the first row of the table. The result has
        a row for each.
    """
    numbers = tile_argument("gather", numbers)
    if isinstance(table, Tile):
        return emit(ir.Take, tile_argument("gather", table), numbers)
    return emit(ir.Gather, numbers, view=_readable("gather", table).view)


@taking
def store_tile(view: TensorView, tile: Tile) -> None:
    """Store a tile to a view, in the tensor's format: rounded to nearest even, or saturated.

    Parameters
    ----------
    view : TensorView
        Of an output, or of a tensor updated in place.
    tile : Tile
        Tile of the view's shape.
    """
    view = _writable("store_tile", view)
    tile = tile_argument("store_tile", tile)
    recorder = current("store_tile")
    recorder.expect_store(view.name, tile.dtype)
    recorder.record(ir.Store, tile.value, view=view.view)


@taking
def matmul(
    a: Tile,
    b: Tile,
    *,
    row_par: int | None = None,
    col_par: int | None = None,
    sum_par: int | None = None,
) -> Tile:
    """Multiply matrices, as ``a @ b``: in fp32 or int32, with one rounding per term.

    Terms of 8-bit floats are added in pairs, with one rounding per pair.

    Parameters
    ----------
    a, b : Tile
        Of one of bf16, fp16, int8, e4m3, e5m2, or floats of one width; ``a`` has as many columns
        as ``b`` has rows.
    row_par, col_par : int or None
        Units over which the rows or columns of the result are split; a schedule overrides them.
    sum_par : int or None
        Not supported yet.
    """
    for name, value in (("row_par", row_par), ("col_par", col_par)):
        if value is not None and ((whole(value) or 0) < 1):
            raise refusal(
                "operation",
                f"{name} must be a whole number of 1 or more, not {value!r}",
                value=repr(value),
            )
    if sum_par is not None:
        raise unserved("sum_par")
    a, b = tile_argument("matmul", a), tile_argument("matmul", b)
    return emit(ir.Matmul, a, b, row_par=row_par, col_par=col_par)


@taking
def buffer(tile: Tile, slots: int | None = None) -> Tile:
    """Give a tile a separate buffer between the stages that produce and consume it.

    Parameters
    ----------
    tile : Tile
    slots : int or None
        Tiles in the buffer, which a schedule overrides; None leaves them to the compiler.
    """
    if slots is not None and (whole(slots) or 0) < 1:
        raise refusal(
            "operation",
            f"slots must be a whole number of 1 or more, not {slots!r}",
            value=repr(slots),
        )
    return emit(ir.Buffer, tile_argument("buffer", tile), slots=slots)


def _axis(name: str, value: object) -> Axis:
    if isinstance(value, Axis):
        return value
    if isinstance(value, BlockIndex):
        return value.axis
    if isinstance(value, tuple | list):
        raise refusal(
            "shape",
            f"`{name}` takes rows and columns apart, not {value!r}: write "
            f"`tw.{name}(rows, cols, value)`",
            value=repr(value),
        )
    number = whole(value)
    if number is None or number < 1:
        raise refusal(
            "shape",
            f"`{name}` takes numbers of 1 or more, dimensions, blocks and rows or columns of "
            f"tiles for a shape, not {value!r}",
            value=repr(value),
        )
    return Axis(number)


@taking
def zeros(rows: Size, cols: Size, dtype: object = None) -> Tile:
    """Make a tile of zeros.

    Parameters
    ----------
    rows, cols : int, dimension, block, or rows or columns of a tile
    dtype : Format or None
        None selects a format that widens to every other.
    """
    return full(rows, cols, 0, dtype)


@taking
def full(rows: Size, cols: Size, value: float, dtype: object = None) -> Tile:
    """Make a tile filled with one number.

    Parameters
    ----------
    rows, cols : int, dimension, block, or rows or columns of a tile
    value : int or float
    dtype : Format or None
        None selects the narrowest format that holds the number: int8 or int32 for an int, bf16 or
        fp32 for a float.
    """
    axes = _axis("full", rows), _axis("full", cols)
    number = whole(value)
    if number is None and not isinstance(value, float):
        raise refusal("operation", f"`full` takes a number, not {value!r}", value=repr(value))
    if dtype is not None:
        try:
            format_ = format_of(dtype)
        except BadInputError as error:
            raise refusal("format", str(error), value=str(dtype)) from error
        if number is None and not format_.is_float:
            raise refusal("format", f"`full` of {format_.name} takes an int, not {value!r}")
    else:
        format_ = _narrowest(value if number is None else number)
    constant = ir.Constant(value if number is None else number)
    made = emit(ir.Full, value=constant, rows=axes[0], cols=axes[1], format=format_)
    if dtype is None:
        made.recorder.untyped.add(made.value.name)
    return made


def _narrowest(value: float) -> Format:
    if isinstance(value, int):
        return FORMATS["int8"] if -128 <= value <= 127 else FORMATS["int32"]
    bf16 = FORMATS["bf16"]
    exact = float(bf16.dtype.type(value))
    return bf16 if exact == value or math.isnan(value) else FORMATS["fp32"]


def _index_tile(name: str, block: object, axis: int) -> Tile:
    size = block.rows if axis == 0 and isinstance(block, Tile) else block
    size = block.cols if axis == 1 and isinstance(block, Tile) else size
    axes = [Axis(1), Axis(1)]
    axes[axis] = _axis(name, size)
    return emit(ir.Iota, start=axes[axis].start, axis=axis, rows=axes[0], cols=axes[1])


@taking
def row_index(block: BlockIndex | Tile) -> Tile:
    """Make a column of int32 row numbers, of a block or of a tile.

    Rows of a block have their numbers in the tensor, whatever the size of the blocks.
    """
    return _index_tile("row_index", block, 0)


@taking
def col_index(block: BlockIndex | Tile) -> Tile:
    """Make a row of int32 column numbers, of a block or of a tile, as :func:`row_index`."""
    return _index_tile("col_index", block, 1)


def _reduce(name: str, tile: Tile, op: str, axis: int) -> Tile:
    return emit(ir.Reduce, tile_argument(name, tile), op=op, axis=axis)


@taking
def row_max(tile: Tile) -> Tile:
    """Return the greatest number of each row, as a column."""
    return _reduce("row_max", tile, "max", 1)


@taking
def row_min(tile: Tile) -> Tile:
    """Return the least number of each row, as a column."""
    return _reduce("row_min", tile, "min", 1)


@taking
def row_sum(tile: Tile) -> Tile:
    """Return the sum of each row, added in ascending order, as a column."""
    return _reduce("row_sum", tile, "sum", 1)


@taking
def row_mean(tile: Tile) -> Tile:
    """Return the mean of each row, as a column: its sum times fp32(1 / N), of N fixed columns."""
    tile = tile_argument("row_mean", tile)
    if not isinstance(tile.cols, int):
        raise refusal("shape", "`row_mean` takes a fixed number of columns, not a block")
    return row_sum(tile) * (1 / tile.cols)


@taking
def col_max(tile: Tile) -> Tile:
    """Return the greatest number of each column, as a row."""
    return _reduce("col_max", tile, "max", 0)


@taking
def col_min(tile: Tile) -> Tile:
    """Return the least number of each column, as a row."""
    return _reduce("col_min", tile, "min", 0)


@taking
def col_sum(tile: Tile) -> Tile:
    """Return the sum of each column, added in ascending order, as a row."""
    return _reduce("col_sum", tile, "sum", 0)


@taking
def split_cols(tile: Tile, parts: int) -> tuple[Tile, ...]:
    """Split a tile by columns into parts of equal size, as by slices ``tile[:, a:b]``."""
    tile = tile_argument("split_cols", tile)
    count, width = whole(parts), tile.cols
    if count is None or count < 1:
        raise refusal(
            "shape",
            f"`split_cols` takes a number of parts of 1 or more, not {parts!r}",
        )
    if not isinstance(width, int) or width % count:
        noun = f"{width} columns" if isinstance(width, int) else "a block"
        raise refusal("shape", f"`split_cols` takes columns in {count} equal parts, not {noun}")
    each = width // count
    return tuple(tile[:, first : first + each] for first in range(0, width, each))


@taking
def join_cols(*tiles: Tile) -> Tile:
    """Concatenate tiles along the columns; a constant without a format takes that of the others."""
    found = [tile_argument("join_cols", each) for each in tiles]
    known = {each.dtype for each in found if each.value.name not in each.recorder.untyped}
    return emit(ir.Join, *(_in_format(each, *known) for each in found))


def _in_format(tile: Tile, *known: Format) -> Tile:
    """A constant without a format in the only one that is known, if that may hold it."""
    untyped = tile.value.name in tile.recorder.untyped
    may = untyped and len(known) == 1 and takes_constant(tile.dtype, known[0])
    return tile.to(known[0]) if may else tile
