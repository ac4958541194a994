"""Tiles: the immutable matrix values of a program."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from hw.arch.errors import BadInputError, shown
from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis
from sw.ir.format_rules import Format, format_of
from sw.ir.types import TileType
from sw.language.idioms import NotAnArray
from sw.language.trace import Recorder, current, refusal

__all__ = [
    "MakesTile",
    "Tile",
    "TileLike",
    "as_affine",
    "as_operand",
    "emit",
    "tile_argument",
    "whole",
    "wrap",
]


def whole(value: object) -> int | None:
    """Return an integer as int; None for anything else, booleans included."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    return None


class MakesTile:
    """Base class of numbers that are converted to tiles where needed."""

    @property
    def affine(self) -> Affine | None:
        """The number as an affine form of loop indices, or None."""
        return None

    def as_tile(self) -> Tile:
        """Record the tile."""
        raise NotImplementedError


def as_affine(value: object) -> Affine | None:
    """Return an integer or an index expression as an affine form, anything else as None."""
    if isinstance(value, MakesTile):
        return value.affine
    number = whole(value)
    return None if number is None else Affine((), number)


class Tile(NotAnArray):
    """A tile: rows and columns of numbers on the chip.

    ``+ - * /`` and comparisons are element-wise, ``@`` multiplies matrices; an axis of one element
    broadcasts. Element math widens exactly to int32 or fp32. Tiles are immutable: ``x += y``
    rebinds ``x``.

    Programs obtain tiles from :func:`load_tile` and other operations, not from this class.
    """

    __hash__ = object.__hash__

    def __init__(self, recorder: Recorder, value: ir.Value, type_: TileType) -> None:
        self.recorder = recorder
        self.value = value
        self._type = type_

    @property
    def traced_name(self) -> str:
        """Its name in the recorder."""
        return self.value.name

    @property
    def rows(self) -> int | Axis:
        """Rows, usable as a size of new tiles: a number, or a block of a loop."""
        return _size(self._type.rows)

    @property
    def cols(self) -> int | Axis:
        """Columns, as :attr:`rows`."""
        return _size(self._type.cols)

    @property
    def shape(self) -> tuple[int | Axis, int | Axis]:
        """Rows and columns."""
        return self.rows, self.cols

    @property
    def dtype(self) -> Format:
        """Format of an element."""
        return self._type.format

    @property
    def T(self) -> Tile:
        """The transpose, which is a view."""
        return emit(ir.Transpose, self)

    def to(self, dtype: object) -> Tile:
        """Return the tile in another format: rounded to nearest even, or saturated.

        Parameters
        ----------
        dtype : Format, or a name of one
        """
        try:
            format_ = format_of(dtype)
        except BadInputError as error:
            raise refusal("format", str(error), value=str(dtype)) from error
        return emit(ir.Cast, self, format=format_)

    def _map(self, op: str, *others: object) -> Tile:
        return emit(ir.Map, self, *others, op=op)

    def __add__(self, other: object) -> Tile:
        return self._map("add", other)

    def __radd__(self, other: object) -> Tile:
        return emit(ir.Map, other, self, op="add")

    def __sub__(self, other: object) -> Tile:
        return self._map("sub", other)

    def __rsub__(self, other: object) -> Tile:
        return emit(ir.Map, other, self, op="sub")

    def __mul__(self, other: object) -> Tile:
        return self._map("mul", other)

    def __rmul__(self, other: object) -> Tile:
        return emit(ir.Map, other, self, op="mul")

    def __truediv__(self, other: object) -> Tile:
        return self._map("div", other)

    def __rtruediv__(self, other: object) -> Tile:
        return emit(ir.Map, other, self, op="div")

    def __matmul__(self, other: object) -> Tile:
        return emit(ir.Matmul, self, tile_argument("@", other))

    def __rmatmul__(self, other: object) -> Tile:
        return emit(ir.Matmul, tile_argument("@", other), self)

    def __neg__(self) -> Tile:
        return self._map("neg")

    def __abs__(self) -> Tile:
        return self._map("abs")

    def __eq__(self, other: object) -> Any:
        return self._map("eq", other)

    def __ne__(self, other: object) -> Any:
        return self._map("ne", other)

    def __lt__(self, other: object) -> Tile:
        return self._map("lt", other)

    def __le__(self, other: object) -> Tile:
        return self._map("le", other)

    def __gt__(self, other: object) -> Tile:
        return self._map("gt", other)

    def __ge__(self, other: object) -> Tile:
        return self._map("ge", other)

    def _refuse(self) -> NoReturn:
        raise refusal(
            "condition",
            "`if`, `while`, `and`, `or`, `not` and `int()` need a value while the program is "
            "traced, and a tile has one only on the chip: use `tw.where`",
        )

    def __bool__(self) -> bool:
        self._refuse()

    def __int__(self) -> int:
        self._refuse()

    def __float__(self) -> float:
        raise refusal(
            "condition",
            "`float()` and functions of `math` need a number while the program is traced, and a "
            "tile has numbers only on the chip: use `tw.exp` and the like",
        )

    def __index__(self) -> int:
        self._refuse()

    def _refuse_items(self) -> NoReturn:
        raise refusal(
            "operation",
            "A tile has no items: `x[:, a:b]` are columns of it, and rows are those of the tensor "
            "before `tw.load_tile`",
        )

    def __getitem__(self, key: object) -> Tile:
        """Some columns, ``x[:, a:b]``, a fixed number; negative numbers count from the end."""
        match key:
            case (slice(start=None, stop=None, step=None), slice(step=None) as wanted):
                first, count = self._selected(wanted)
                return emit(ir.Columns, self, first=first, count=count)
        self._refuse_items()

    def _selected(self, wanted: slice) -> tuple[Affine, int]:
        """First column of a slice, and the number of them."""
        width = self.cols
        if not isinstance(width, int):
            raise refusal("shape", "A slice takes a fixed number of columns, not a block")
        ends = []
        for each, default in ((wanted.start, 0), (wanted.stop, width)):
            end = as_affine(default if each is None else each)
            if end is None:
                raise refusal(
                    "shape", f"Columns of a tile are from one number to another, not at {each!r}"
                )
            ends.append(end + width if not end.terms and end.constant < 0 else end)
        first, count = ends[0], ends[1] - ends[0]
        reach = first.bounds(self.recorder.ranges)
        if count.terms or count.constant < 1 or reach is None:
            raise refusal(
                "shape",
                f"A slice takes a fixed number of columns, 1 or more, not {ends[0]} to {ends[1]}",
            )
        low, high = reach[0], reach[1] + count.constant
        if low < 0 or high > width:
            raise refusal("shape", f"A tile of {width} columns has none from {low} to {high - 1}")
        return first, count.constant

    def __setitem__(self, key: object, value: object) -> NoReturn:
        self._refuse_items()

    def __iter__(self) -> NoReturn:
        self._refuse_items()

    def __len__(self) -> int:
        self._refuse_items()

    def __repr__(self) -> str:
        return str(self._type)


#: Advice for operands that are not tiles.
_HINTS = {
    "TensorView": ": load one by `tw.load_tile`",
    "ndarray": ": make it an input of the kernel",
    "list": ": make it an input of the kernel",
}

#: Operand of element math.
TileLike = Tile | int | float


def _size(axis: Axis) -> int | Axis:
    return axis.size if isinstance(axis.size, int) and axis.full else axis


def tile_argument(name: str, value: object) -> Tile:
    """Check that an argument is a tile of this trace, and return it.

    Raises
    ------
    ProgramError
        If it is not.
    """
    if isinstance(value, MakesTile):
        value = value.as_tile()
    if not isinstance(value, Tile):
        given = type(value).__name__
        raise refusal(
            "operation",
            f"`{name}` takes tiles, not {given}{_HINTS.get(given, '')}",
            value=given,
        )
    if value.recorder is not current(name):
        raise refusal("scope", f"`{name}` takes a tile of another trace, which has ended")
    return value


def as_operand(name: str, value: object) -> ir.Operand:
    """Return the operand of element math: a tile's value, or a number.

    Raises
    ------
    ProgramError
        If it is neither.
    """
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return ir.Constant(int(value))
    if isinstance(value, float | np.floating):
        return ir.Constant(float(value))
    return tile_argument(name, value).value


def emit(kind: type[ir.Node], *operands: object, **attributes: Any) -> Tile:
    """Record a node with one tile as its result."""
    name = attributes.get("op", kind.__name__.lower())
    recorder = current(name)
    if kind is ir.Map and not any(isinstance(each, Tile | MakesTile) for each in operands):
        if all(isinstance(each, int | float) for each in operands):
            raise refusal(
                "operation",
                f"`{name}` takes a tile, not only numbers: for numbers use the module `math`",
                value=shown(operands[0]),
            )
    taken = (as_operand(name, each) for each in operands)
    return wrap(recorder, *recorder.record(kind, *taken, **attributes))


def wrap(recorder: Recorder, value: ir.Value) -> Tile:
    """Return the tile for a value."""
    assert isinstance(value.type, TileType)
    return Tile(recorder, value, value.type)
