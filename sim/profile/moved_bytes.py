"""Bytes that the loads and stores of a kernel move, by array."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

import numpy as np

from sw.prove.unrolled_loops import box_owners

if TYPE_CHECKING:
    from sw.compiled import Compiled

__all__ = ["moved_bytes"]


def moved_bytes(compiled: Compiled) -> dict[str, int]:
    """Bytes of all boxes of one launch of a kernel, by the array that they are part of.

    Boxes count as a whole, also where they lie outside their array.

    Parameters
    ----------
    compiled : Compiled
    """
    found: dict[str, int] = collections.Counter()
    for number, launch in compiled.launches:
        for agcu in compiled.parts[number].chip.agcus.values():
            for issuer in (*agcu.loads, *agcu.stores):
                if issuer is None:
                    continue
                owners = box_owners(issuer)
                for owner, program in enumerate(issuer.programs):
                    descriptor, argument = agcu.descriptors[program.descriptor]
                    boxes = int(np.count_nonzero(owners == owner))
                    array = launch.arguments[argument].array
                    found[array] += boxes * descriptor.box_bytes * launch.repeat
    return dict(found)
