"""Memory layout of a kernel's arrays: shape, format and row pitch."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

from hw.arch.descriptor import BASE_ALIGNMENT
from hw.numeric.division import ceil_div
from hw.numeric.formats import Format
from sw.ir.program import Program
from sw.ir.types import Role

__all__ = ["ArraySpec", "Segments", "arrays_of", "points_of"]


@dataclasses.dataclass(frozen=True)
class Segments:
    """Equal segments of an axis that do not follow one another in memory.

    Parameters
    ----------
    axis : int
        0 for rows, 1 for columns.
    loops : tuple of (int, int)
        Counts, and bytes from one to the next, outer before inner. Their product is the number of
        segments, of which each has adjacent elements or rows.
    """

    axis: int
    loops: tuple[tuple[int, int], ...]

    @property
    def count(self) -> int:
        """Number of segments."""
        return math.prod(count for count, _ in self.loops)


@dataclasses.dataclass(frozen=True)
class ArraySpec:
    """Memory layout of an array: row-major, rows padded to `BASE_ALIGNMENT` bytes.

    Parameters
    ----------
    name : str
        Its name in the kernel.
    shape : tuple of int
        Extents, outermost first.
    format : Format
    output : bool
        The kernel writes it.
    row_pitch : int or None
        Bytes from the start of one row to the start of the next, if they are not the least: rows of
        a slice of columns have the pitch of the whole array.
    segments : Segments or None
        Where an axis of a matrix does not lie in memory as a whole.
    points : (int, int)
        Number of such arrays, of as many points, that one iteration accesses together, and bytes
        from one to the next.
    """

    name: str
    shape: tuple[int, ...]
    format: Format
    output: bool = False
    row_pitch: int | None = None
    segments: Segments | None = None
    points: tuple[int, int] = (1, 0)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row, padding not included."""
        return self.shape[-1] * self.format.bits // 8

    @property
    def matrix(self) -> tuple[int, int]:
        """Rows and columns of an array of two axes, or of one, which is a row."""
        rows, columns = self.shape if len(self.shape) > 1 else (1, *self.shape)
        return rows, columns

    @property
    def pitch(self) -> int:
        """Bytes from the start of one row to the start of the next."""
        if self.row_pitch is not None:
            return self.row_pitch
        return ceil_div(self.row_bytes, BASE_ALIGNMENT) * BASE_ALIGNMENT

    @property
    def bytes(self) -> int:
        """Bytes of the whole array, padding included."""
        return math.prod(self.shape[:-1]) * self.pitch

    @property
    def steps(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis."""
        steps, step = [self.format.bits // 8], self.pitch
        for size in reversed(self.shape[:-1]):
            steps.append(step)
            step *= size
        return tuple(reversed(steps))

    @property
    def reach(self) -> int:
        """Bytes from the first element to the end of the last one, of all points."""
        shape, between = [*self.shape], 0
        if self.segments is not None:
            shape[self.segments.axis] //= self.segments.count
            between = sum((count - 1) * stride for count, stride in self.segments.loops)
        row = shape[-1] * self.format.bits // 8
        count, stride = self.points
        between += (count - 1) * stride
        return between + (math.prod(shape[:-1]) - 1) * self.pitch + row


def arrays_of(program: Program) -> tuple[ArraySpec, ...]:
    """Memory layout of a program's arguments, in order."""
    return tuple(
        ArraySpec(each.name, each.type.shape, each.type.format, each.type.role is not Role.IN)
        for each in program.tensors
        if each.type.role is not Role.LOCAL
    )


def points_of(arrays: Iterable[ArraySpec]) -> int:
    """Points that one iteration of a launch with such arrays takes together."""
    return max((each.points[0] for each in arrays), default=1)
