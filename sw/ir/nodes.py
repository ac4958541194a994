"""Nodes of the tile IR: the whole set on one page.

A program is a list of nodes. A node has operands and results, which are values, and attributes;
a loop and a stage have a body besides, into which values flow freely, and out of which they come
only through nexts and results. Tiles are values and nothing changes them; only tensors, channels
and tokens have effects.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from sw.ir.affine import Affine, Axis, Bound
from sw.ir.formats import Format
from sw.ir.types import ChannelType, Span, View
from sw.ir.values import Constant, Operand, Value

__all__ = [
    "Buffer",
    "Cast",
    "Constant",
    "Fork",
    "Full",
    "Gather",
    "Get",
    "Iota",
    "Join",
    "Load",
    "Local",
    "Loop",
    "Map",
    "Mask",
    "Matmul",
    "Merge",
    "NODES",
    "Node",
    "Operand",
    "Put",
    "Reduce",
    "Route",
    "Scatter",
    "Split",
    "Stage",
    "Store",
    "Transpose",
    "Unit",
    "Value",
]


@dataclass(frozen=True)
class Node:
    """A node: what all kinds have in common.

    Parameters
    ----------
    operands : tuple of Operand
        What it takes; tokens come last.
    results : tuple of Value
        What it gives; a token comes last.
    span : Span or None
        Where in the program it comes from. The verifier demands one.
    """

    operands: tuple[Operand, ...]
    results: tuple[Value, ...]
    span: Span | None

    #: Attribute which the text form joins to the kind, as in ``map.add``.
    SUFFIX: ClassVar[str] = ""
    #: Attribute which the text form writes first, as in ``load A[i]``.
    HEAD: ClassVar[str] = ""

    @property
    def kind(self) -> str:
        """The kind's name in the text form."""
        return type(self).__name__.lower()

    @property
    def body(self) -> tuple[Node, ...]:
        """Nodes inside it; empty for most kinds."""
        return ()

    @property
    def result(self) -> Value:
        """The only or the first result."""
        return self.results[0]

    @property
    def values(self) -> tuple[Value, ...]:
        """Operands that are values."""
        return tuple(each for each in self.operands if isinstance(each, Value))

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other fields."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Loop(Node):
    """A counted loop: takes the starts of its carries, gives their last values.

    Parameters
    ----------
    mode : str
        ``metapipe`` (blocks, overlapped), ``each`` (points) or ``repeat`` (points, by the command
        processor).
    index : str
        The symbol of its index.
    extent : int
        Elements the index goes over.
    tile : int or None
        Block size: the program's wish until sizes are chosen, then the choice. None if the program
        has no wish, and for points.
    until : Bound or None
        What else ends the loop.
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
        """Whether the index is a block of elements, not a point."""
        return self.mode == "metapipe"


@dataclass(frozen=True)
class Load(Node):
    """A view of a tensor, as a tile."""

    view: View
    HEAD: ClassVar[str] = "view"


@dataclass(frozen=True)
class Store(Node):
    """A tile into a view of a tensor, in the tensor's format."""

    view: View
    HEAD: ClassVar[str] = "view"


@dataclass(frozen=True)
class Gather(Node):
    """Rows of a tensor by number: takes a row or a column of numbers."""

    view: View
    HEAD: ClassVar[str] = "view"


@dataclass(frozen=True)
class Scatter(Node):
    """Rows into a tensor by number: takes the numbers and the rows; ``op`` is store or add."""

    op: str
    view: View
    SUFFIX: ClassVar[str] = "op"
    HEAD: ClassVar[str] = "view"


@dataclass(frozen=True)
class Matmul(Node):
    """A product of two narrow tiles in fp32 or int32, and a sum that enters before the first term.

    Takes a, b and, if there is a third operand, the sum. Terms are added in ascending order of the
    contracted axis with one rounding each.

    Parameters
    ----------
    ta, tb : bool
        Whether the operand is read by columns.
    row_par, col_par, sum_par : int or None
        Units to split rows, columns and the sum over; None leaves it to the schedule.
    """

    ta: bool = False
    tb: bool = False
    row_par: int | None = None
    col_par: int | None = None
    sum_par: int | None = None


@dataclass(frozen=True)
class Map(Node):
    """One to three tiles or constants, element by element; axes of one element broadcast."""

    op: str
    SUFFIX: ClassVar[str] = "op"


@dataclass(frozen=True)
class Reduce(Node):
    """A tile along one axis, which keeps one element: 0 the rows, 1 the columns."""

    op: str
    axis: int
    SUFFIX: ClassVar[str] = "op"


@dataclass(frozen=True)
class Full(Node):
    """A tile with one number everywhere."""

    value: Constant
    rows: Axis
    cols: Axis
    format: Format
    HEAD: ClassVar[str] = "value"


@dataclass(frozen=True)
class Iota(Node):
    """Ascending int32 numbers along one axis, from ``start``."""

    start: Affine
    axis: int
    rows: Axis
    cols: Axis


@dataclass(frozen=True)
class Cast(Node):
    """A tile in another format: rounded to nearest even, or saturated."""

    format: Format
    HEAD: ClassVar[str] = "format"


@dataclass(frozen=True)
class Split(Node):
    """A tile cut by columns into ``parts`` tiles of equal size."""

    parts: int


@dataclass(frozen=True)
class Join(Node):
    """Tiles side by side."""


@dataclass(frozen=True)
class Transpose(Node):
    """A tile with rows and columns exchanged."""


@dataclass(frozen=True)
class Mask(Node):
    """A tile whose tail along one axis holds a number."""

    axis: int
    identity: Constant


@dataclass(frozen=True)
class Buffer(Node):
    """A tile in a buffer of its own; None leaves the slots to the schedule."""

    slots: int | None = None


@dataclass(frozen=True)
class Local(Node):
    """A FIFO on the chip: gives the channel."""

    channel: ChannelType


@dataclass(frozen=True)
class Put(Node):
    """Tiles into a slot of a channel: takes the channel and the tiles."""


@dataclass(frozen=True)
class Get(Node):
    """Tiles out of a slot of a channel, which it frees: takes the channel."""


@dataclass(frozen=True)
class Stage(Node):
    """Part of a body that runs as an actor of its own: takes the channels it reads and writes.

    Parameters
    ----------
    role : str
        Load, compute or finish.
    nodes : tuple of Node
        What it does.
    """

    role: str
    nodes: tuple[Node, ...]
    SUFFIX: ClassVar[str] = "role"

    @property
    def body(self) -> tuple[Node, ...]:
        """The nodes of the stage."""
        return self.nodes


@dataclass(frozen=True)
class Fork(Node):
    """A channel to several readers: takes one, gives one each."""

    readers: int


@dataclass(frozen=True)
class Merge(Node):
    """Channels into one, ``rotation`` packets of each in turn."""

    rotation: tuple[int, ...]


@dataclass(frozen=True)
class Unit(Node):
    """A unit with what runs on it: takes its channels.

    Parameters
    ----------
    role : str
        The unit's kind.
    row, column : int
        Where it is.
    """

    role: str
    row: int
    column: int
    SUFFIX: ClassVar[str] = "role"


@dataclass(frozen=True)
class Route(Node):
    """The switches a channel passes, ``(row, column, track)`` each: takes the channel."""

    hops: tuple[tuple[int, int, int], ...]


#: Every kind by its name in the text form.
NODES: dict[str, type[Node]] = {each.__name__.lower(): each for each in Node.__subclasses__()}
