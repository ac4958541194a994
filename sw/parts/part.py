"""Parts of a kernel: what one image computes, and the launches of it that follow one another."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from sw.array_spec import ArraySpec, points_of
from sw.ir.program import Program

__all__ = ["Argument", "Division", "Part", "PartLaunch", "in_order"]


@dataclasses.dataclass(frozen=True)
class Argument:
    """Where in memory an array of a part's program begins.

    Parameters
    ----------
    array : str
        An argument of the kernel, or one of `Division.intermediates`.
    offset : int
        Bytes from the beginning of that array to the first element, in the first iteration.
    stride : int
        Bytes from one iteration to the next.
    """

    array: str
    offset: int = 0
    stride: int = 0


@dataclasses.dataclass(frozen=True)
class PartLaunch:
    """An entry of the launch list: one or more iterations of a part's image.

    Parameters
    ----------
    arguments : tuple of Argument
        One per array of the part, in order.
    repeat : int
        Iterations.
    group : int
        Launches follow one another by groups, and in each group part by part. A loop of `tw.repeat`
        has a group for each iteration.
    """

    arguments: tuple[Argument, ...]
    repeat: int = 1
    group: int = 0


@dataclasses.dataclass(frozen=True)
class Part:
    """Operations of a kernel that one image computes.

    Parameters
    ----------
    program : Program
        The operations. Each of its tensors is all or a slice of an array of the launch.
    arrays : tuple of ArraySpec
        Memory layout of its tensors, in order. The rows of a slice have the pitch of its array.
    launches : tuple of PartLaunch
        In order: several if more than one loop over points surrounds the operations.
    """

    program: Program
    arrays: tuple[ArraySpec, ...]
    launches: tuple[PartLaunch, ...]

    @property
    def repeat(self) -> int:
        """Most iterations of a launch."""
        return max(launch.repeat for launch in self.launches)

    @property
    def points(self) -> int:
        """Points that an iteration takes together."""
        return points_of(self.arrays)

    def singly(self) -> Part:
        """The part with a launch for each iteration."""
        launches = (
            PartLaunch(
                tuple(
                    Argument(each.array, each.offset + each.stride * number)
                    for each in launch.arguments
                ),
                group=launch.group,
            )
            for launch in self.launches
            for number in range(launch.repeat)
        )
        return dataclasses.replace(self, launches=tuple(launches))


@dataclasses.dataclass(frozen=True)
class Division:
    """A kernel as parts that run one after another.

    Parameters
    ----------
    parts : tuple of Part
    intermediates : tuple of ArraySpec
        Arrays that a part writes and later ones read; no argument of the kernel.
    """

    parts: tuple[Part, ...]
    intermediates: tuple[ArraySpec, ...] = ()


def in_order(launches: Iterable[Iterable[PartLaunch]]) -> list[tuple[int, PartLaunch]]:
    """The launch list: launches in order, each with the number of its part, from 0.

    Parameters
    ----------
    launches : iterable of iterable of PartLaunch
        Those of each part.
    """
    every = ((number, each) for number, part in enumerate(launches) for each in part)
    return sorted(every, key=lambda entry: entry[1].group)
