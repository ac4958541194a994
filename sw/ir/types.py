"""Types of the tile IR: tiles, tensors, views, tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from sw.ir.affine import Affine, Axis
from sw.ir.format_rules import Format

__all__ = [
    "Dim",
    "Entry",
    "Role",
    "Space",
    "Span",
    "Tensor",
    "TensorType",
    "TileType",
    "TokenType",
    "Type",
    "View",
]


class Role(Enum):
    """Role of a tensor: input, output, updated in place, or local."""

    #: Read only.
    IN = "in"
    #: Every element is written exactly once, none is read.
    OUT = "out"
    #: Updated in place, in the order of its tokens.
    INOUT = "inout"
    #: Local to the program.
    LOCAL = "local"


class Space(Enum):
    """Memory space of a tensor."""

    #: In external memory.
    MEMORY = "memory"
    #: In the scratchpads.
    CHIP = "chip"


@dataclass(frozen=True)
class Span:
    """Source range of a node.

    Parameters
    ----------
    file : str
        Path of the source file.
    line, end_line : int
        First and last line, counted from 1.
    column, end_column : int
        First column and the one after the last, counted from 0 in bytes.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def joined(self, other: Span) -> Span:
        """The range that holds both; this one if the other is in another file."""
        if other.file != self.file:
            return self
        first = min((self.line, self.column), (other.line, other.column))
        last = max((self.end_line, self.end_column), (other.end_line, other.end_column))
        return Span(self.file, *first, *last)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Dim:
    """A dimension of a tensor: name in the signature, and size."""

    name: str
    size: int

    def __str__(self) -> str:
        return f"{self.name}={self.size}"


@dataclass(frozen=True)
class TileType:
    """Type of a tile; tiles always have two axes.

    Parameters
    ----------
    rows, cols : Axis
        Size and extent of the two axes.
    format : Format
        Format of an element.
    """

    rows: Axis
    cols: Axis
    format: Format

    def axis(self, number: int) -> Axis:
        """Return the axis of the rows for 0, of the columns for 1."""
        return self.cols if number else self.rows

    def to(self, format: Format) -> TileType:
        """Return the type with another format."""
        return replace(self, format=format)

    def same_shape(self, other: TileType) -> bool:
        """Return whether sizes and extents agree."""
        return (self.rows, self.cols) == (other.rows, other.cols)

    def __str__(self) -> str:
        return f"tile<{self.rows} x {self.cols}, {self.format.name}>"


@dataclass(frozen=True)
class TokenType:
    """Type of a token, which orders accesses to one tensor."""

    tensor: str

    def __str__(self) -> str:
        return f"token<{self.tensor}>"


#: Type of a value.
Type = TileType | TokenType


@dataclass(frozen=True)
class TensorType:
    """Type of a tensor.

    Parameters
    ----------
    dims : tuple of Dim
        Dimensions, outermost first.
    format : Format
        Format of an element.
    space : Space
        Memory space.
    role : Role
        Input, output or both.
    """

    dims: tuple[Dim, ...]
    format: Format
    space: Space
    role: Role

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return tuple(dim.size for dim in self.dims)

    def __str__(self) -> str:
        dims = ", ".join(str(dim) for dim in self.dims)
        return f"{self.space.value} {self.role.value} [{dims}] {self.format.name}"


@dataclass(frozen=True)
class Tensor:
    """A tensor of a program."""

    name: str
    type: TensorType

    @property
    def whole(self) -> View:
        """The view of all of it."""
        return View(self.name, tuple(Entry(Affine(), Axis(each.size)) for each in self.type.dims))

    def __str__(self) -> str:
        return f"{self.name} : {self.type}"


@dataclass(frozen=True)
class Entry:
    """Selection of a view along one axis of its tensor.

    Parameters
    ----------
    start : Affine
        The first element.
    axis : Axis or None
        The resulting axis; None for a single element, which drops the axis.
    """

    start: Affine
    axis: Axis | None = None

    @property
    def symbols(self) -> tuple[str, ...]:
        """Symbols in the entry."""
        return self.start.symbols + (self.axis.symbols if self.axis else ())

    def __str__(self) -> str:
        return str(self.start) if self.axis is None else f"{self.start} +: {self.axis}"


@dataclass(frozen=True)
class View:
    """A part of a tensor: one entry for each of its axes."""

    tensor: str
    entries: tuple[Entry, ...]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Axes that the view keeps."""
        return tuple(entry.axis for entry in self.entries if entry.axis is not None)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Symbols in the entries."""
        return tuple(symbol for entry in self.entries for symbol in entry.symbols)

    def __str__(self) -> str:
        return f"{self.tensor}[{', '.join(str(entry) for entry in self.entries)}]"
