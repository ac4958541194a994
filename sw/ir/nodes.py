"""Nodes of the tile IR: all kinds, with operands, results and attributes.

A program is a list of nodes. A node has operands and results, which are values, and attributes. A
loop also has a body: it may use any outer value, and its values leave it only as nexts and results.
Tiles are immutable values; only tensors have effects.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

from hw.arch.lanes.lane_function import LaneFunction
from sw.ir.affine import Affine, Axis, Bound
from sw.ir.element_operations import OPERATIONS, ElementOperation
from sw.ir.format_rules import Format
from sw.ir.types import Span, TileType, View
from sw.ir.values import Constant, Operand, Value

__all__ = [
    "Buffer",
    "Cast",
    "Columns",
    "Constant",
    "Full",
    "Gather",
    "Iota",
    "Join",
    "Load",
    "Loop",
    "Map",
    "Mask",
    "Matmul",
    "NODES",
    "Node",
    "Operand",
    "Powers",
    "Reduce",
    "Rescale",
    "Scatter",
    "Store",
    "Take",
    "Transpose",
    "Value",
]


@dataclass(frozen=True)
class Node:
    """Base class of nodes.

    Parameters
    ----------
    operands : tuple of Operand
        Its inputs, tokens last.
    results : tuple of Value
        Its outputs, a token last.
    span : Span or None
        Its source position. The verifier requires one.
    """

    operands: tuple[Operand, ...]
    results: tuple[Value, ...]
    span: Span | None

    #: Attribute that the text form appends to the kind, as in ``map.add``.
    SUFFIX: ClassVar[str] = ""
    #: Attribute that the text form writes first, as in ``load A[i]``.
    HEAD: ClassVar[str] = ""

    @property
    def kind(self) -> str:
        """Name of the kind in the text form."""
        return type(self).__name__.lower()

    @property
    def body(self) -> tuple[Node, ...]:
        """Nodes inside it; empty except for loops."""
        return ()

    @property
    def result(self) -> Value:
        """The only or the first result."""
        return self.results[0]

    @functools.cached_property
    def values(self) -> tuple[Value, ...]:
        """Operands that are values."""
        return tuple([each for each in self.operands if isinstance(each, Value)])

    @functools.cached_property
    def symbols(self) -> frozenset[str]:
        """Loop indices in its types, views and bounds, and in those of nodes inside it."""
        parts = (getattr(self, each.name) for each in fields(self))
        return frozenset(name.strip("|") for part in parts for name in _symbols(part))

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields replaced."""
        return replace(self, **changes)


def _symbols(item: Any) -> Iterator[str]:
    """Symbols of a part of a node."""
    if isinstance(item, tuple):
        for each in item:
            yield from _symbols(each)
    elif isinstance(item, Value):
        yield from _symbols(item.type)
    elif isinstance(item, TileType):
        yield from (*item.rows.symbols, *item.cols.symbols)
    elif isinstance(item, Node | View | Affine | Axis | Bound):
        yield from item.symbols


@dataclass(frozen=True)
class Loop(Node):
    """A counted loop: start values of its carries → their final values.

    Parameters
    ----------
    mode : str
        ``metapipe`` (blocks, overlapped), ``each`` (points) or ``repeat`` (points, by the command
        processor).
    index : str
        The symbol of its index.
    extent : int
        Elements that the index ranges over.
    tile : int or None
        Block size: the program's hint until sizes are chosen, then the choice. None without a hint,
        and for points.
    until : Bound or None
        Further bound that may end the loop earlier.
    carries : tuple of Value
        Values at the entry of an iteration.
    nodes : tuple of Node
        The body.
    nexts : tuple of Value
        Values for the entry of the next iteration.
    """

    mode: str
    index: str
    extent: int
    tile: int | None
    until: Bound | None
    carries: tuple[Value, ...]
    nodes: tuple[Node, ...]
    nexts: tuple[Value, ...]

    @property
    def body(self) -> tuple[Node, ...]:
        """The nodes of an iteration."""
        return self.nodes

    @property
    def blocks(self) -> bool:
        """Whether the index is a block of elements rather than a point."""
        return self.mode == "metapipe"


@dataclass(frozen=True)
class Load(Node):
    """View of a tensor → tile."""

    view: View
    HEAD: ClassVar[str] = "view"


@dataclass(frozen=True)
class Store(Node):
    """Tile → view of a tensor, in the tensor's format."""

    view: View
    HEAD: ClassVar[str] = "view"


@dataclass(frozen=True)
class Gather(Node):
    """Row or column of row numbers → those rows of a tensor."""

    view: View
    HEAD: ClassVar[str] = "view"


@dataclass(frozen=True)
class Take(Node):
    """Tile, and row or column of row numbers → those rows of the tile."""


@dataclass(frozen=True)
class Scatter(Node):
    """Row numbers and rows → those rows of a tensor; ``op`` is store or add."""

    op: str
    view: View
    SUFFIX: ClassVar[str] = "op"
    HEAD: ClassVar[str] = "view"


@dataclass(frozen=True)
class Matmul(Node):
    """Matrix product of two narrow tiles in fp32 or int32, with an optional initial sum.

    Operands are a, b and, optionally, the tile that the sum starts from. Terms are added in
    ascending order of the contracted axis, with one rounding per term.

    Parameters
    ----------
    ta, tb : bool
        Whether the operand is read transposed.
    row_par, col_par, sum_par : int or None
        Units over which rows, columns and the sum are split; None leaves it to the schedule.
    """

    ta: bool = False
    tb: bool = False
    row_par: int | None = None
    col_par: int | None = None
    sum_par: int | None = None


@dataclass(frozen=True)
class Map(Node):
    """Element-wise operation on one to three tiles or constants; axes of one element broadcast.

    Parameters
    ----------
    op : str
        Name of an entry of `sw.ir.element_operations.OPERATIONS`, or of the function.
    function : LaneFunction or None
        Function of a user, with a unit of its own in the lanes.
    """

    op: str
    function: LaneFunction | None = None
    SUFFIX: ClassVar[str] = "op"

    @property
    def operation(self) -> ElementOperation | None:
        """The operation, or None if there is none of that name."""
        if self.function is None:
            return OPERATIONS.get(self.op)
        return ElementOperation(self.op, self.function.applied, operands=1)


@dataclass(frozen=True)
class Reduce(Node):
    """Reduction of a tile along one axis to one element; axis 0 is the rows, 1 the columns."""

    op: str
    axis: int
    SUFFIX: ClassVar[str] = "op"


@dataclass(frozen=True)
class Full(Node):
    """A tile filled with one number."""

    value: Constant
    rows: Axis
    cols: Axis
    format: Format
    HEAD: ClassVar[str] = "value"


@dataclass(frozen=True)
class Iota(Node):
    """Consecutive int32 numbers along one axis, from ``start``."""

    start: Affine
    axis: int
    rows: Axis
    cols: Axis


@dataclass(frozen=True)
class Cast(Node):
    """Conversion of a tile to another format: rounded to nearest even, or saturated."""

    format: Format
    HEAD: ClassVar[str] = "format"


@dataclass(frozen=True)
class Columns(Node):
    """Some columns of a tile, side by side: ``count`` of them from ``first`` on."""

    first: Affine
    count: int


@dataclass(frozen=True)
class Join(Node):
    """Concatenation of tiles along the columns."""


@dataclass(frozen=True)
class Transpose(Node):
    """Transpose of a tile."""


@dataclass(frozen=True)
class Mask(Node):
    """A tile with its tail along one axis set to a number."""

    axis: int
    identity: Constant


@dataclass(frozen=True)
class Buffer(Node):
    """A tile in a separate buffer; slots of None are left to the schedule."""

    slots: int | None = None


@dataclass(frozen=True)
class Powers(Node):
    """Scores of a block and running maxima m of their rows → new maxima m', rises, powers of two.

    With c = fp32(scale · log2 e), a row has m' = max(m, ⌈c · maximum⌉), the rise m' − m as a whole
    number, and in bf16 the powers exp2(c · score − m'), as of `hw.numeric.fused_softmax`.

    Parameters
    ----------
    scale : float
        Factor of the scores, above 0.
    """

    scale: float


@dataclass(frozen=True)
class Rescale(Node):
    """Sums in fp32 and the rise of the maximum of each row → sums · 2^-rise."""


#: Every kind by its name in the text form.
NODES: dict[str, type[Node]] = {each.__name__.lower(): each for each in Node.__subclasses__()}
