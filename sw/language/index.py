"""Indices of loops, and the numbers a program computes from them."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis, Bound, size_symbol
from sw.language.tile import MakesTile, Tile, emit
from sw.language.trace import Recorder, refusal

__all__ = ["BlockIndex", "IndexNumber", "PointIndex", "StopNumber", "as_affine", "whole"]


def whole(value: object) -> int | None:
    """Return a whole number as an int; None for anything else, booleans included."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    return None


def as_affine(value: object) -> Affine | None:
    """Return a whole number or a number made from indices as an affine form, else None."""
    if isinstance(value, IndexNumber):
        return value.form
    number = whole(value)
    return None if number is None else Affine((), number)


class _OnChip(MakesTile):
    """What indices and numbers made from them have in common: a value only on the chip."""

    __array_ufunc__ = None
    __hash__ = object.__hash__

    def as_tile(self) -> Tile:
        """Record the tile of one element that holds the number."""
        raise refusal(
            "operation",
            f"{type(self).__name__} must be used to slice or to end a loop, not as a tile",
        )

    def __eq__(self, other: object) -> Any:
        return self.as_tile() == other

    def __ne__(self, other: object) -> Any:
        return self.as_tile() != other

    def __lt__(self, other: object) -> Tile:
        return self.as_tile() < other

    def __le__(self, other: object) -> Tile:
        return self.as_tile() <= other

    def __gt__(self, other: object) -> Tile:
        return self.as_tile() > other

    def __ge__(self, other: object) -> Tile:
        return self.as_tile() >= other

    def _refuse(self) -> NoReturn:
        raise refusal(
            "condition",
            "`if`, `range` and `int()` need a number while the program is traced, and a loop's "
            "index has one only on the chip: use `tw.where`, `tw.each` or `tw.metapipe`",
        )

    def __bool__(self) -> bool:
        self._refuse()

    def __index__(self) -> int:
        self._refuse()


class IndexNumber(_OnChip):
    """A sum of indices with whole factors and a whole number.

    It takes ``+``, ``-`` and ``*`` with whole numbers and other sums, indexes and slices tensors,
    and becomes a tile of one int32 where element math needs one.
    """

    def __init__(self, recorder: Recorder, form: Affine) -> None:
        self.recorder = recorder
        self.form = form

    def as_tile(self) -> Tile:
        """Record the tile of one element that holds the number."""
        return emit(ir.Iota, start=self.form, axis=0, rows=Axis(1), cols=Axis(1))

    def _sum(self, other: object, sign: int, own: int = 1) -> Any:
        if isinstance(other, StopNumber) and sign == 1:
            return StopNumber(self.recorder, other.form + self.form * own)
        form = as_affine(other)
        if form is None:
            return NotImplemented
        return IndexNumber(self.recorder, self.form * own + form * sign)

    def __add__(self, other: object) -> Any:
        return self._sum(other, 1)

    __radd__ = __add__

    def __sub__(self, other: object) -> Any:
        return self._sum(other, -1)

    def __rsub__(self, other: object) -> Any:
        return self._sum(other, 1, own=-1)

    def __neg__(self) -> IndexNumber:
        return IndexNumber(self.recorder, -self.form)

    def __mul__(self, other: object) -> Any:
        factor = whole(other)
        if factor is None:
            if isinstance(other, IndexNumber):
                self._not_affine("*")
            return NotImplemented
        return IndexNumber(self.recorder, self.form * factor)

    __rmul__ = __mul__

    def _not_affine(self, sign: str) -> NoReturn:
        raise refusal(
            "view",
            f"`{sign}` makes a number that is no sum of indices with whole factors: split the "
            "loop in two instead",
        )

    def __floordiv__(self, other: object) -> NoReturn:
        self._not_affine("//")

    def __mod__(self, other: object) -> NoReturn:
        self._not_affine("%")

    def __repr__(self) -> str:
        return str(self.form)


class PointIndex(IndexNumber):
    """Index of :func:`each`: the number of the iteration. It drops the axis it indexes."""

    def __init__(self, recorder: Recorder, symbol: str) -> None:
        super().__init__(recorder, Affine.of(symbol))
        self.traced_name = symbol


class StopNumber(_OnChip):
    """End of a block, plus a whole number: where a slice or another loop may end."""

    def __init__(self, recorder: Recorder, form: Bound) -> None:
        self.recorder = recorder
        self.form = form

    def __add__(self, other: object) -> Any:
        form = as_affine(other)
        return NotImplemented if form is None else StopNumber(self.recorder, self.form + form)

    __radd__ = __add__

    def __sub__(self, other: object) -> Any:
        form = as_affine(other)
        return NotImplemented if form is None else StopNumber(self.recorder, self.form - form)

    def __repr__(self) -> str:
        return str(self.form)


class BlockIndex(_OnChip):
    """Index of :func:`metapipe`: a block of consecutive elements, the last one maybe shorter.

    It cuts a block out of a tensor, and stands for the block's size where a tile is made.
    """

    def __init__(
        self, recorder: Recorder, symbol: str, extent: int, until: Bound | None = None
    ) -> None:
        self.recorder = recorder
        self.traced_name = symbol
        self.extent = extent
        self._ends = (Affine((), extent), *(until.forms if until else ()))

    @property
    def axis(self) -> Axis:
        """The block as an axis of a tile."""
        start = Affine.of(self.traced_name)
        rests = tuple(dict.fromkeys(end - start for end in self._ends))
        return Axis(size_symbol(self.traced_name), rests)

    @property
    def start(self) -> IndexNumber:
        """First element."""
        return IndexNumber(self.recorder, Affine.of(self.traced_name))

    @property
    def stop(self) -> StopNumber:
        """One after the last element."""
        end = Affine.of(self.traced_name) + Affine.of(size_symbol(self.traced_name))
        return StopNumber(self.recorder, Bound.least((end, *self._ends)))

    def as_tile(self) -> Tile:
        """Record the tile of one element that holds the first element's number."""
        return self.start.as_tile()

    def _no_math(self, other: object) -> NoReturn:
        raise refusal(
            "view",
            "A block is not a number: compute with its `start` or `stop`",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _no_math

    def __repr__(self) -> str:
        return f"block of {self.extent}"
