"""Peeling of loops over points: a program becomes launches of the program of one iteration.

The innermost loop over points is repeated by the launch, with those around it that go on where it
ends. Others are several launches.
Loops over points that add one product in each iteration become one product. What an iteration
accesses are matrices or vectors: slices of the arrays, each with an offset, and a stride from one
iteration to the next.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Container, Mapping, Sequence

from hw.arch.descriptor import BASE_ALIGNMENT
from sw.array_spec import ArraySpec, Segments, arrays_of
from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis
from sw.ir.program import Program
from sw.ir.rewrite import unused, walk
from sw.ir.types import Dim, Entry, Role, Tensor, View
from sw.parts.part import Part
from sw.parts.points.joined_columns import of_all_columns
from sw.parts.points.joined_rows import (
    cut_tensors,
    joined_rows,
    right_operands,
    row_loop,
    whole_rows_loop,
    with_values_inside,
    without_single_blocks,
)
from sw.parts.points.point_launches import launches_of
from sw.parts.points.point_slice import PointSlice
from sw.parts.points.point_sums import JoinedLoad, point_sum
from sw.parts.slices import whole_block
from sw.passes.simplify import live, simplified

__all__ = ["peeled", "peeled_parts"]

#: Programs whose parts are remembered.
_REMEMBERED = 2048


def peeled(program: Program, arrays: Mapping[str, ArraySpec]) -> tuple[Part, ...]:
    """The program of one iteration of the loops over points, and its launches.

    Parameters
    ----------
    program : Program
        After `simplify`.
    arrays : mapping of str to ArraySpec
        Layout of the arrays that its tensors are.

    Returns
    -------
    tuple of Part
        The rows of all points as those of one iteration, then those of ever fewer loops over
        points, from the innermost one on, where all tensors have them; last each point by itself.
        Empty if loops over points are side by side or carry tiles that are no sum of one product;
        if a slice is no matrix or vector with adjacent elements in a row, or begins at no multiple
        of `BASE_ALIGNMENT`.
    """
    points: list[ir.Loop] = []
    joined: dict[str, JoinedLoad] = {}
    inputs = {each.name for each in program.tensors if each.type.role is Role.IN}
    loads = {
        each.result.name: each
        for each in walk(program.nodes)
        if isinstance(each, ir.Load) and each.view.tensor in inputs
    }
    try:
        nodes = live(_without_points(program.nodes, (), points, joined, loads))
        _require_once(program.nodes, points)
        slices = _Slices(program, arrays, nodes, points, joined)
        nodes = slices.block(nodes)
    except _NoSliceError:
        return ()
    made: Sequence[PointSlice] = slices.made
    parts = [_part(program, nodes, made, points)]
    while points:
        longer = _of_all_points(nodes, points[-1], made) or of_all_columns(nodes, points[-1], made)
        if not longer:
            break
        points.pop()
        parts += [_part(program, *each, points) for each in reversed(longer)]
        nodes, made = longer[0]
    return tuple(reversed(parts))


@functools.lru_cache(maxsize=_REMEMBERED)
def peeled_parts(program: Program) -> tuple[Part, ...]:
    """A slice without loops over points; a second division of the program has most of the same."""
    return peeled(program, {each.name: each for each in arrays_of(program)})


def _part(
    program: Program,
    nodes: tuple[ir.Node, ...],
    made: Sequence[PointSlice],
    points: Sequence[ir.Loop],
) -> Part:
    """The part whose iteration accesses some slices, launched for each of some points."""
    order = [each.name for each in program.tensors]
    made = sorted(made, key=lambda each: order.index(each.array))
    whole = dataclasses.replace(program, tensors=tuple(each.tensor for each in made), nodes=nodes)
    whole = dataclasses.replace(whole, nodes=simplified(whole))
    return Part(whole, tuple(each.spec for each in made), launches_of(points, made))


class _NoSliceError(Exception):
    """A loop or a view that launches do not make."""


def _without_points(
    nodes: tuple[ir.Node, ...],
    around: tuple[ir.Loop, ...],
    points: list[ir.Loop],
    joined: dict[str, JoinedLoad],
    loads: Mapping[str, ir.Load],
) -> tuple[ir.Node, ...]:
    """The nodes with the bodies of loops over points in their place; these are added to a list.

    A loop without carries has no effect but its stores. So its iterations together are the program
    without the loop, once for each index. Loads of joined tiles are noted by their results' names.
    """
    found: list[ir.Node] = []
    for node in nodes:
        if not isinstance(node, ir.Loop):
            found.append(node)
        elif node.blocks:
            body = _without_points(node.body, around, points, joined, loads)
            found.append(node.replace(nodes=body))
        elif (whole := point_sum(node, loads)) is not None:
            joined |= zip((each.result.name for each in whole.loads), whole.joined)
            found += (*whole.loads, whole.product)
        elif node.carries or node.until is not None or tuple(points) != around:
            raise _NoSliceError
        else:
            points.append(node)
            found.extend(_without_points(node.body, (*around, node), points, joined, loads))
    return tuple(found)


def _require_once(nodes: tuple[ir.Node, ...], points: Sequence[ir.Loop]) -> None:
    """Refuse a store outside of a loop over points to a tensor that is also loaded.

    Every iteration would load what the one before has stored.
    """
    if not points:
        return
    once = {id(each) for each in walk(points[-1].body)}
    stored = (each for each in walk(nodes) if isinstance(each, ir.Store) and id(each) not in once)
    repeated = {each.view.tensor for each in stored}
    if any(isinstance(each, ir.Load) and each.view.tensor in repeated for each in walk(nodes)):
        raise _NoSliceError


class _Slices:
    """Tensors of the program of one iteration, one for each slice of an array that it accesses."""

    def __init__(
        self,
        program: Program,
        arrays: Mapping[str, ArraySpec],
        nodes: tuple[ir.Node, ...],
        points: Sequence[ir.Loop],
        joined: Mapping[str, JoinedLoad],
    ) -> None:
        self._program, self._arrays, self._joined = program, arrays, joined
        self._blocks = [each for each in walk(nodes) if isinstance(each, ir.Loop)]
        self._points = [each.index for each in points]
        self.made: list[PointSlice] = []

    def block(self, nodes: tuple[ir.Node, ...]) -> tuple[ir.Node, ...]:
        """The nodes with views of the slices."""
        return tuple(self._node(node) for node in nodes)

    def _node(self, node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Loop):
            return node.replace(nodes=self.block(node.body))
        if isinstance(node, ir.Load | ir.Store):
            joined = self._joined.get(node.results[0].name) if node.results else None
            return node.replace(view=self._view(node.view, joined))
        if isinstance(node, ir.Gather):
            return node.replace(view=self._view(node.view, None))
        if isinstance(node, ir.Scatter):
            raise _NoSliceError
        return node

    def _view(self, view: View, joined: JoinedLoad | None) -> View:
        tensor, spec = self._program.tensor(view.tensor), self._arrays[view.tensor]
        steps = spec.steps
        loops = joined.loops if joined else ()
        offset, strides = 0, dict.fromkeys((*self._points, *(each.index for each in loops)), 0)
        dims, entries, pitches = [], [], []
        segments = None
        for entry, dim, step in zip(view.entries, tensor.type.dims, steps):
            begin, inside, size = self._split(entry, strides)
            offset += step * begin.constant
            for symbol, factor in begin.terms:
                strides[symbol] += step * factor
            if entry.axis is not None:
                pitches.append(step)
                dims.append(Dim(dim.name, size))
                entries.append(Entry(inside, entry.axis))
        if joined is not None:
            if len(dims) != 2:
                raise _NoSliceError
            dim, segments = _join(joined, dims[joined.axis], pitches[joined.axis], strides)
            dims[joined.axis], entries[joined.axis] = dim, Entry(Affine(), Axis(dim.size))
        pitch = pitches[0] if len(pitches) == 2 else 0
        # Elements of a row are adjacent, and all rows begin at multiples of the alignment.
        if pitches[-1:] != [steps[-1]] or view.entries[-1].axis is None or len(pitches) > 2:
            raise _NoSliceError
        if any(each % BASE_ALIGNMENT for each in (offset, pitch, *strides.values())):
            raise _NoSliceError
        place = (pitch or spec.pitch, segments)
        name = self._tensor(tensor, tuple(dims), place, offset, strides)
        return View(name, tuple(entries))

    def _split(self, entry: Entry, outside: Container[str]) -> tuple[Affine, Affine, int]:
        """Where the slice begins on an axis, where a block begins in the slice, and its extent."""
        inside, size = Affine(), 1
        if entry.axis is not None:
            used = (each for each in self._blocks if each.index in entry.start.symbols)
            loop = next(used, None)
            whole = entry.axis.full if loop is None else _is_block(entry.axis, loop)
            extent = entry.axis.size if loop is None else loop.extent
            if not whole or not isinstance(extent, int):
                raise _NoSliceError
            inside, size = Affine.of(loop.index) if loop else Affine(), extent
        begin = entry.start - inside
        if any(symbol not in outside for symbol in begin.symbols):
            raise _NoSliceError
        return begin, inside, size

    def _tensor(
        self,
        tensor: Tensor,
        dims: tuple[Dim, ...],
        place: tuple[int, Segments | None],
        offset: int,
        strides: Mapping[str, int],
    ) -> str:
        """Name of the tensor of a slice, which is made at its first access."""
        names = {each.tensor.name for each in self.made}
        shape = tuple(each.size for each in dims)
        for each in self.made:
            same = (each.array, each.offset, each.strides) == (tensor.name, offset, strides)
            found = each.spec.shape, each.spec.pitch, each.spec.segments
            if same and found == (shape, *place):
                return each.tensor.name
        others = {each.name for each in self._program.tensors} - {tensor.name}
        name = unused(tensor.name, names | others)
        kind = dataclasses.replace(tensor.type, dims=dims)
        spec = ArraySpec(name, shape, kind.format, kind.role is not Role.IN)
        pitch, segments = place
        if pitch != spec.pitch:
            spec = dataclasses.replace(spec, row_pitch=pitch)
        spec = dataclasses.replace(spec, segments=segments)
        self.made.append(PointSlice(tensor.name, offset, strides, Tensor(name, kind), spec))
        return name


def _of_all_points(
    nodes: tuple[ir.Node, ...], points: ir.Loop, slices: Sequence[PointSlice]
) -> list[tuple[tuple[ir.Node, ...], list[PointSlice]]]:
    """Nodes and slices with a row for each row of all points of the innermost loop over them.

    Rows are in one order or in both, that of fewest slices in segments first.
    """
    nodes = with_values_inside(nodes)
    loop = row_loop(nodes)
    if loop is not None:
        cut = cut_tensors(loop)
    else:
        rows = max(each.rows for each in slices if each.spec.output)
        cut = frozenset(each.tensor.name for each in slices if each.rows == rows > 1)
        cut -= right_operands(nodes)
        nodes = without_single_blocks(nodes)
        loop = whole_rows_loop(nodes, points, rows)
        if loop is None:
            return []
        nodes = (loop,)
    own = cut | {each.tensor.name for each in slices if each.strides[points.index]}
    choices = []
    for between in (False, True):
        made = [
            each.of_points(points, loop.extent, cut=each.tensor.name in cut, between=between)
            if each.tensor.name in own
            else each
            for each in slices
        ]
        whole = [each for each in made if each is not None]
        if len(whole) == len(made):
            choices.append(whole)
    choices.sort(key=_segmented)
    has_product = any(isinstance(each, ir.Matmul) for each in walk(nodes))
    if has_product or not all(map(_segmented, choices)):
        choices = [each for each in choices if not _segmented(each)][:1]
    found = []
    for whole in choices:
        tensors = {each.tensor.name: each.tensor for each in whole if each.tensor.name in own}
        longer = joined_rows(nodes, loop, points.extent, tensors)
        found += [(longer, whole)] if longer is not None else []
    return found


def _segmented(slices: Sequence[PointSlice]) -> int:
    """How many slices lie in segments of rows."""
    return sum(each.spec.segments is not None and each.spec.segments.axis == 0 for each in slices)


def _is_block(axis: Axis, loop: ir.Loop) -> bool:
    """Whether an axis is the block of a loop, clipped at its extent, and perhaps at its end."""
    block = whole_block(loop)
    ends = loop.until.forms if loop.until else ()
    least = {each - Affine.of(loop.index) for each in ends}
    return axis.size == block.size and {*block.rests} <= {*axis.rests} <= {*block.rests} | least


def _join(
    joined: JoinedLoad, dim: Dim, step: int, strides: dict[str, int]
) -> tuple[Dim, Segments | None]:
    """The axis along which all tiles lie, in segments where a tile begins further on."""
    size = dim.size
    further: list[tuple[int, int]] = []
    for loop in reversed(joined.loops):
        stride = strides.pop(loop.index)
        if loop.extent == 1:
            continue
        if further or stride != step * size:
            if stride < 0 or stride % BASE_ALIGNMENT:
                raise _NoSliceError
            further.append((loop.extent, stride))
        else:
            size *= loop.extent
    for count, _ in further:
        size *= count
    segments = Segments(joined.axis, tuple(reversed(further))) if further else None
    return Dim(dim.name, size), segments
