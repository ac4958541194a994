"""Bytes that the loads and stores of a kernel move."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from sw.prove.unrolled_loops import box_owners

if TYPE_CHECKING:
    from sw.compiled import Compiled

__all__ = ["MovedBoxes", "moved_boxes", "moved_bytes"]


@dataclasses.dataclass(frozen=True)
class MovedBoxes:
    """Boxes of an array that a stream of an AGCU moves in one launch of a part.

    Members
    -------
    part : int
        Number of the part, from 0.
    argument : int
        Number of the array among those of the part.
    array : str
        Its name in memory.
    stored : bool
        Whether they are stored.
    bytes : int
        Whole boxes, also where they lie outside their array.
    """

    part: int
    argument: int
    array: str
    stored: bool
    bytes: int


def moved_boxes(compiled: Compiled) -> Iterator[MovedBoxes]:
    """Boxes of one launch of a kernel, by part, stream and array.

    Parameters
    ----------
    compiled : Compiled
    """
    for number, launch in compiled.launches:
        for agcu in compiled.parts[number].chip.agcus.values():
            streams = [(each, False) for each in agcu.loads] + [
                (each, True) for each in agcu.stores
            ]
            for issuer, stored in streams:
                if issuer is None:
                    continue
                owners = box_owners(issuer)
                for owner, program in enumerate(issuer.programs):
                    descriptor, argument = agcu.descriptors[program.descriptor]
                    boxes = int(np.count_nonzero(owners == owner))
                    array = launch.arguments[argument].array
                    moved = boxes * descriptor.box_bytes * launch.repeat
                    yield MovedBoxes(number, argument, array, stored, moved)


def moved_bytes(compiled: Compiled) -> dict[str, int]:
    """Bytes of all boxes of one launch of a kernel, by the array that they are part of.

    Parameters
    ----------
    compiled : Compiled
    """
    found: dict[str, int] = collections.Counter()
    for moved in moved_boxes(compiled):
        found[moved.array] += moved.bytes
    return dict(found)
