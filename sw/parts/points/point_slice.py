"""Slice of an array that an iteration of loops over points accesses."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from sw.array_spec import ArraySpec, Segments
from sw.ir import nodes as ir
from sw.ir.types import Dim, Tensor

__all__ = ["PointSlice"]


@dataclasses.dataclass(frozen=True)
class PointSlice:
    """A slice of an array.

    Parameters
    ----------
    array : str
    offset : int
        Bytes from the beginning of the array.
    strides : mapping of str to int
        Bytes per iteration of each loop over points.
    tensor : Tensor
    spec : ArraySpec
    """

    array: str
    offset: int
    strides: Mapping[str, int]
    tensor: Tensor
    spec: ArraySpec

    @property
    def rows(self) -> int:
        """Rows of its matrix; a vector is one."""
        return math.prod(each.size for each in self.tensor.type.dims[:-1])

    def of_points(self, loop: ir.Loop, rows: int, *, cut: bool, between: bool) -> PointSlice | None:
        """The slice with a row for each row of all iterations of a loop.

        Parameters
        ----------
        loop : Loop
        rows : int
            Rows of an iteration.
        cut : bool
            Whether the slice has as many; else all rows of an iteration are its only one.
        between : bool
            Whether the rows of an iteration lie between those of the others, not behind them.

        Returns
        -------
        PointSlice or None
            None if rows of a result would lie in one place, or it has another number of rows.
        """
        *before, columns = self.tensor.type.dims
        sizes = [each.size for each in before]
        if sizes != ([rows] if cut else [1] * len(before)):
            return None
        spec = self.spec
        levels = [(rows, spec.pitch if cut else 0)]
        if spec.segments is not None:
            if spec.segments.axis:
                return None
            levels = [*spec.segments.loops, (rows // spec.segments.count, spec.pitch)]
        point = loop.extent, self.strides[loop.index]
        *outer, (_, pitch) = _merged([*levels, point] if between else [point, *levels])
        if spec.output and not all(stride for _, stride in (*outer, (0, pitch))):
            return None
        name = before[0].name if cut else loop.index
        dims = Dim(name, rows * loop.extent), columns
        kind = dataclasses.replace(self.tensor.type, dims=dims)
        segments = Segments(0, tuple(outer)) if outer else None
        spec = dataclasses.replace(spec, shape=kind.shape, row_pitch=None, segments=segments)
        if pitch != spec.pitch:
            spec = dataclasses.replace(spec, row_pitch=pitch)
        return dataclasses.replace(self, tensor=Tensor(self.tensor.name, kind), spec=spec)

    def with_columns(self, loop: ir.Loop, axis: int) -> PointSlice | None:
        """The slice with those of all iterations of a loop beside one another along an axis.

        Parameters
        ----------
        loop : Loop
        axis : int
            0 or -1.

        Returns
        -------
        PointSlice or None
            None if those of several points lie in one place or in descending order, or another axis
            is in segments.
        """
        dims, spec = [*self.tensor.type.dims], self.spec
        axis %= len(dims)
        step = spec.steps[axis] if axis == len(dims) - 1 else spec.pitch
        levels = [(dims[axis].size, step)]
        if spec.segments is not None:
            if spec.segments.axis != axis:
                return None
            levels = [*spec.segments.loops, (dims[axis].size // spec.segments.count, step)]
        *outer, (_, inner) = _merged([(loop.extent, self.strides[loop.index]), *levels])
        if inner != step or any(stride <= 0 for _, stride in outer):
            return None
        dims[axis] = Dim(dims[axis].name, dims[axis].size * loop.extent)
        kind = dataclasses.replace(self.tensor.type, dims=tuple(dims))
        segments = Segments(axis, tuple(outer)) if outer else None
        pitch = spec.pitch if len(dims) > 1 and dims[0].size > 1 else None
        spec = dataclasses.replace(spec, shape=kind.shape, row_pitch=None, segments=segments)
        if pitch is not None and pitch != spec.pitch:
            spec = dataclasses.replace(spec, row_pitch=pitch)
        return dataclasses.replace(self, tensor=Tensor(self.tensor.name, kind), spec=spec)


def _merged(levels: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Loops over rows, counts and bytes, with those joined of which the inner one goes on."""
    found: list[tuple[int, int]] = []
    for count, stride in levels:
        if found and count == 1:
            continue
        if found and (found[-1][0] == 1 or found[-1][1] == count * stride):
            count *= found.pop()[0]
        found.append((count, stride))
    return found
