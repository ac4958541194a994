"""Random sizes and schedules for any kernel, by the names in its program."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from hw.arch.config import ChipConfig
from sw.ir.program import Program
from sw.language import Schedule
from sw.language.schedule import schedule_names

__all__ = ["MOST_SIDE", "random_schedule", "random_sides"]

#: Largest side drawn, but for that of a long problem.
MOST_SIDE = 300
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 23, 31, 47, 61, 97, 127, 193, 257)
_MOST_SLOTS = 8
_LONG_SHARE = 1 / 8


def _edges(config: ChipConfig) -> list[int]:
    """Extents at which raggedness begins: lanes, array columns and accumulator rows."""
    units = (
        config.width_bits // 16,
        config.width_bits // 8,
        config.grid_columns,
        config.pcu.accumulator_rows,
    )
    return [1, *(unit + step for unit in units for step in (-1, 0, 1))]


def random_sides(
    rng: random.Random, config: ChipConfig, count: int, *, most: int = MOST_SIDE
) -> tuple[int, ...]:
    """Extents of a problem: log-uniform from 1 to `most`, three in ten next to such an edge.

    One problem in eight is long: one extent of up to four times `most`, the others a third.

    Parameters
    ----------
    rng : random.Random
    config : ChipConfig
    count : int
        Number of extents.
    most : int
    """
    long = rng.randrange(count) if rng.random() < _LONG_SHARE else None
    ends = [
        most if long is None else 4 * most if index == long else max(1, most // 3)
        for index in range(count)
    ]
    return tuple(_side(rng, config, end) for end in ends)


def _side(rng: random.Random, config: ChipConfig, most: int) -> int:
    edges = [side for side in _edges(config) if 1 <= side <= most]
    if rng.random() < 0.3:
        return rng.choice(edges)
    return min(most, round(math.exp(rng.uniform(0, math.log(most + 0.5)))))


def _tile(rng: random.Random, config: ChipConfig, most: int) -> int:
    """A block size: a prime, a multiple of a vector, beyond any extent, or arbitrary."""
    lanes = config.width_bits // 16
    choices: Sequence[int] = (
        rng.choice(_PRIMES),
        lanes * rng.randint(1, 8),
        most + rng.randint(1, most),
        rng.randint(1, most),
    )
    return rng.choice(choices)


def random_schedule(
    rng: random.Random, program: Program, config: ChipConfig, *, most: int = MOST_SIDE
) -> Schedule:
    """A random schedule, which names each choice of a program with some probability.

    Parameters
    ----------
    rng : random.Random
    program : Program
        The traced program, whose names the schedule uses.
    config : ChipConfig
    most : int
        Largest extent of the problem; block sizes may exceed it.
    """
    names = schedule_names(program)
    share = rng.choice([0.0, 0.0, 0.4, 0.8])

    def drawn(field: str) -> list[str]:
        return [name for name in names[field] if rng.random() < share]

    return Schedule(
        tile={name: _tile(rng, config, most) for name in drawn("tile")},
        row_par={name: rng.randint(1, 8) for name in drawn("row_par")},
        col_par={name: rng.choice([1, 2, 3, 4, 6, 8]) for name in drawn("col_par")},
        slots={name: rng.randint(1, _MOST_SLOTS) for name in drawn("slots")},
    )
