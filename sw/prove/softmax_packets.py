"""Packets of PCUs in fused softmax, known before anything runs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hw.arch.lanes.softmax_program import SoftmaxRole
from hw.numeric.division import ceil_div
from sw.prove.packets import Packets

__all__ = ["rise_vectors", "softmax_faults", "softmax_sizes"]

Ints = npt.NDArray[np.int64]


def softmax_sizes(role: SoftmaxRole, rows: Ints) -> Ints:
    """Vectors of the results of passes of so many rows.

    Of a block of keys, a vector of rises and two keys per vector; of values, two rows per vector,
    without the row of denominators.
    """
    if role is SoftmaxRole.SCORES:
        return 1 + ceil_div(rows, 2)
    return ceil_div(rows - 1, 2)


def rise_vectors(weights: Packets, tiles: int, columns: int) -> Ints:
    """Vectors of rises before the weights of each tile of a values unit: 1 or 0.

    Parameters
    ----------
    weights : Packets
        Those that the unit takes.
    tiles : int
    columns : int
        Vectors of a tile.
    """
    found = np.zeros(tiles, np.int64)
    # The tile after all of them is the first of a packet that never ends.
    firsts = np.append(0, np.cumsum((weights.lengths - 1) // columns))
    found[firsts[firsts < tiles]] = 1
    return found


def softmax_faults(
    name: str, role: SoftmaxRole, rows: Ints, weights: Packets, columns: int
) -> list[str]:
    """Packets that a part of fused softmax cannot take.

    Parameters
    ----------
    name : str
        The unit.
    role : SoftmaxRole
    rows : array
        Rows of each pass.
    weights : Packets
        Those that the unit takes.
    columns : int
        Vectors of a tile of weights.
    """
    lengths = weights.lengths
    if role is SoftmaxRole.SCORES:
        odd = lengths[lengths != columns]
        return [
            f"{name} gets a packet of {length} weight vectors, its tiles have {columns}"
            for length in odd[:1]
        ]
    odd = lengths[(lengths < 1 + columns) | ((lengths - 1) % columns != 0)]
    faults = [
        f"{name} gets a packet of {length} weight vectors, not one of rises and whole tiles of "
        f"{columns}"
        for length in odd[:1]
    ]
    if (rows == 1).any():
        faults.append(f"{name} gets tiles of 1 row, which is that of the denominators")
    return faults
