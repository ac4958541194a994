"""Points of a launch that one iteration takes together, on equal shares of the chip."""

from __future__ import annotations

import dataclasses

from sw.parts.part import Part, PartLaunch

__all__ = ["in_groups"]


def in_groups(part: Part, count: int) -> tuple[Part, ...]:
    """A part whose iterations take so many points each, and one of the points that are left.

    An iteration takes one point of each of ``count`` equal ranges, so what it accesses lies as far
    apart as the ranges do. Empty if the launches differ, or have fewer points.

    Parameters
    ----------
    part : Part
    count : int
    """
    first, *others = part.launches
    strides = [each.stride for each in first.arguments]
    repeat, left = divmod(first.repeat, count)
    if not repeat or any(
        each.repeat != first.repeat or [every.stride for every in each.arguments] != strides
        for each in others
    ):
        return ()
    arrays = tuple(
        dataclasses.replace(array, points=(count, repeat * stride))
        for array, stride in zip(part.arrays, strides, strict=True)
    )
    launches = tuple(dataclasses.replace(each, repeat=repeat) for each in part.launches)
    parts = [Part(part.program, arrays, launches)]
    if left:
        last = tuple(_behind(each, count * repeat) for each in part.launches)
        parts.append(Part(part.program, part.arrays, last))
    return tuple(parts)


def _behind(launch: PartLaunch, points: int) -> PartLaunch:
    """The launch without its first points."""
    arguments = tuple(
        dataclasses.replace(each, offset=each.offset + points * each.stride)
        for each in launch.arguments
    )
    return dataclasses.replace(launch, arguments=arguments, repeat=launch.repeat - points)
