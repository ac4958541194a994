"""Loop indices, and integer expressions of them."""

from __future__ import annotations

from typing import Any, NoReturn

from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis, Bound, size_symbol
from sw.language.tile_value import MakesTile, Tile, as_affine, emit, whole
from sw.language.trace import Recorder, refusal

__all__ = ["BlockIndex", "IndexNumber", "PointIndex", "StopNumber"]


class _OnChip(MakesTile):
    """Base class of indices and index expressions, whose values exist only on the chip."""

    __array_ufunc__ = None
    __hash__ = object.__hash__

    def as_tile(self) -> Tile:
        """Record a tile of one element with this number."""
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
    """An affine index expression: integer multiples of indices, plus an integer.

    It supports ``+``, ``-`` and ``*`` with integers and other index expressions, indexes and slices
    tensors, and becomes a tile of one int32 where element math needs one.
    """

    def __init__(self, recorder: Recorder, form: Affine) -> None:
        self.recorder = recorder
        self.form = form

    @property
    def affine(self) -> Affine:
        """The affine form."""
        return self.form

    def as_tile(self) -> Tile:
        """Record a tile of one element with this number."""
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
    """Index of :func:`each`: the number of the iteration; it drops the axis that it indexes."""

    def __init__(self, recorder: Recorder, symbol: str) -> None:
        super().__init__(recorder, Affine.of(symbol))
        self.traced_name = symbol


class StopNumber(_OnChip):
    """End of a block plus an integer: a possible end of a slice or of another loop."""

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

    def __mul__(self, other: object) -> NoReturn:
        raise refusal(
            "view",
            "A block's end is moved by a number added to it, not by `*`: rows with gaps are those "
            "of a tensor of one more axis, as `X[i, 0, :]` of `X[M, 2, N]`",
        )

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return str(self.form)


class BlockIndex(_OnChip):
    """Index of :func:`metapipe`: a block of consecutive elements; the last block may be shorter.

    It slices a block from a tensor; as a size of a new tile it means the size of the block.
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
        """The tile axis of the block."""
        start = Affine.of(self.traced_name)
        rests = tuple(dict.fromkeys(end - start for end in self._ends))
        return Axis(size_symbol(self.traced_name), rests)

    @property
    def start(self) -> IndexNumber:
        """First element."""
        return IndexNumber(self.recorder, Affine.of(self.traced_name))

    @property
    def stop(self) -> StopNumber:
        """The index after the last element."""
        end = Affine.of(self.traced_name) + Affine.of(size_symbol(self.traced_name))
        return StopNumber(self.recorder, Bound.least((end, *self._ends)))

    def as_tile(self) -> Tile:
        """Record a tile of one element with the number of the block's first element."""
        return self.start.as_tile()

    def _no_math(self, other: object) -> NoReturn:
        raise refusal(
            "view",
            "A block is not a number: compute with its `start` or `stop`, as in "
            "`A[i.start + 1 : i.stop + 1]`",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _no_math

    def __repr__(self) -> str:
        return f"block of {self.extent}"
