"""Launches of a part: one of them repeats the iterations of one loop over points."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from sw.ir import nodes as ir
from sw.ir.types import Role
from sw.parts.part import Argument, PartLaunch
from sw.parts.points.point_slice import PointSlice

__all__ = ["launches_of"]


def launches_of(points: Sequence[ir.Loop], slices: Sequence[PointSlice]) -> tuple[PartLaunch, ...]:
    """One launch for each iteration of the outer loops, which repeats the innermost one.

    A loop around it whose iterations go on where those inside it end is repeated with it. Where no
    iteration reads what another one writes, the loop that makes the fewest launches is innermost.
    Launches whose iterations write rows between those of others are not repeated, but where all
    write parts of the same rows.

    Parameters
    ----------
    points : sequence of Loop
        The loops, the outermost first.
    slices : sequence of PointSlice
        What an iteration accesses.
    """
    orders = [tuple(points)]
    if _is_any_order(slices):
        orders += [(*points[:n], *points[n + 1 :], points[n]) for n in range(len(points) - 1)]
    return min((_in_order(each, slices) for each in orders), key=len)


def _is_any_order(slices: Sequence[PointSlice]) -> bool:
    """Whether no slice is read whose array another one writes."""
    written = [each.array for each in slices if each.spec.output]
    read = (each for each in slices if each.tensor.type.role is not Role.OUT)
    return all(written.count(each.array) == each.spec.output for each in read)


def _in_order(points: Sequence[ir.Loop], slices: Sequence[PointSlice]) -> tuple[PartLaunch, ...]:
    """The launches of loops of which the last one is repeated."""
    last = points[-1].index if points else ""
    between = any(_crosses(each, points[-1]) for each in slices if points and each.spec.output)
    outer = list(points if between else points[:-1])
    inner, repeat = (last, points[-1].extent) if points and not between else ("", 1)
    while inner and outer and _goes_on(outer[-1].index, inner, repeat, slices):
        repeat *= outer.pop().extent
    found = []
    for numbers in itertools.product(*(range(loop.extent) for loop in outer)):
        at = dict(zip((loop.index for loop in outer), numbers))
        arguments = (
            Argument(
                each.array,
                each.offset + sum(each.strides[index] * n for index, n in at.items()),
                each.strides.get(inner, 0),
            )
            for each in slices
        )
        found.append(PartLaunch(tuple(arguments), repeat))
    return tuple(found)


def _crosses(slice_: PointSlice, points: ir.Loop) -> bool:
    """Whether iterations lie between one another, unless all are parts of the same rows."""
    stride, spec = slice_.strides[points.index], slice_.spec
    within = abs(stride) * (points.extent - 1) + spec.row_bytes <= spec.pitch
    return stride < spec.reach - spec.row_bytes and not within


def _goes_on(outer: str, inner: str, repeat: int, slices: Sequence[PointSlice]) -> bool:
    """Whether a loop moves every slice as far as so many iterations of the loop inside it do."""
    return all(each.strides[outer] == repeat * each.strides[inner] for each in slices)
