"""Random descriptors and coordinates that reach what quotas ask for: ranks, strides, sides."""

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from hw.arch.descriptor import (
    MAX_BOX,
    MAX_ELEMENT_STRIDE,
    MAX_RANK,
    NAN_FORMATS,
    Descriptor,
    ElementFormat,
    OobFill,
    Swizzle,
)
from hw.numeric.division import ceil_div
from tests.hw.tma.model import tensor_bytes

__all__ = ["SIDES", "Combination", "combinations", "in_turn", "random_box"]

#: Where a box leaves its tensor, and the shares of the boxes.
SIDES = {"inside": 5, "below": 5, "above": 5, "both": 4, "far": 1}
#: Most bytes of a tensor; a larger one is drawn again.
_MOST_BYTES = 1 << 16
_FAR = (-(1 << 31), (1 << 31) - 1, -40_000, 70_000)


T = TypeVar("T")


class Combination(NamedTuple):
    """What is combined pairwise: an element stride, a swizzle, a rank, the bytes of an element."""

    step: int
    swizzle: Swizzle
    rank: int
    size: int

    @property
    def pairs(self) -> set[tuple[tuple[str, int], ...]]:
        """Every two of the values, by name."""
        values = {"step": self.step, "swizzle": self.swizzle.value}
        values |= {"rank": self.rank, "size": self.size}
        return set(itertools.combinations(values.items(), 2))


def _all_combinations() -> list[Combination]:
    steps, ranks = range(1, MAX_ELEMENT_STRIDE + 1), range(1, MAX_RANK + 1)
    return [Combination(*each) for each in itertools.product(steps, Swizzle, ranks, (1, 2, 4))]


def combinations(rng: random.Random) -> Iterator[Combination]:
    """All combinations in random order, again and again; the first few have all pairs."""
    left = _all_combinations()
    rng.shuffle(left)
    missing = set().union(*(each.pairs for each in left))
    while missing:
        best = max(left, key=lambda each: len(each.pairs & missing))
        left.remove(best)
        missing -= best.pairs
        yield best
    yield from left
    while True:
        yield from rng.sample(_all_combinations(), k=len(_all_combinations()))


def in_turn(rng: random.Random, shares: dict[T, int]) -> Iterator[T]:
    """Keys in random order, each as often as its share, again and again."""
    deck = [key for key, share in shares.items() for _ in range(share)]
    while True:
        yield from rng.sample(deck, k=len(deck))


def _split(rng: random.Random, rows: int, steps: Sequence[int]) -> list[int]:
    """Numbers of indices of dimensions with these element strides: about ``rows`` rows."""
    counts = [1] * len(steps)
    for spot in rng.sample(range(len(steps)), k=len(steps)):
        most = min(rows // math.prod(counts), ceil_div(MAX_BOX, steps[spot]))
        last = spot == 0 and rng.random() < 0.5
        counts[spot] = max(1, most if last else int(most ** rng.random()))
    return counts


def _place(rng: random.Random, side: str, last: int) -> tuple[int, int]:
    """Size of a dimension and coordinate of a box that runs over ``last`` further indices."""
    if side == "below":
        at = -rng.randint(1, max(1, last))
        return max(1, at + last + 1) + rng.choice([0, rng.randint(0, 9)]), at
    if side == "above":
        size = rng.randint(1, last + 3)
        return size, rng.randint(max(0, size - last), size - 1) if last else size
    if side == "both":
        size = rng.randint(1, last - 1)
        return size, -rng.randint(1, last - size)
    at = rng.choice([0, rng.randint(0, 9)])
    size = at + last + 1 + rng.choice([0, rng.randint(0, 9)])
    return size, rng.choice(_FAR) if side == "far" else at


def _sides(rng: random.Random, side: str, reach: Sequence[int]) -> list[str]:
    """Side on which each dimension is left, so that the box leaves its tensor on ``side``."""
    chosen = ["inside"] * len(reach)
    # A long one goes first: something of the box is left inside.
    order = sorted(range(len(reach)), key=lambda each: (-min(reach[each], 2), rng.random()))
    if side in ("below", "above"):
        for spot in order[: rng.randint(1, len(order))]:
            chosen[spot] = side
    elif side == "both" and reach[order[0]] >= 2:
        chosen[order[0]] = side
    elif side == "both":
        for spot, one in zip(order, ("below", "above")):
            chosen[spot] = one
    elif side == "far":
        chosen[rng.choice(order)] = side
    return chosen


def random_box(
    rng: random.Random,
    combination: Combination,
    side: str,
    *,
    width_bits: int,
    most_bytes: int,
    loads: bool,
) -> tuple[Descriptor, list[int]]:
    """Descriptor of a tensor at address 0 with a box of at most some bytes, and coordinates.

    The box leaves its tensor on a side of `SIDES`. Rows of a tensor that is only loaded may
    overlap.
    """
    while True:
        box, steps = _shape(rng, combination, width_bits, most_bytes)
        reach = [(n - 1) // step * step for n, step in zip(box, (1, *steps[1:]))]
        places = [_place(rng, each, last) for each, last in zip(_sides(rng, side, reach), reach)]
        dims = [size for size, _ in places]
        strides = _pitches(rng, dims, combination.size, loads)
        formats = [each for each in ElementFormat if each.bytes == combination.size]
        kind = rng.choice(formats)
        fills = kind in NAN_FORMATS and rng.random() < 0.5
        made = Descriptor(
            base=0,
            format=kind,
            dims=dims,
            strides=strides,
            box=box,
            element_strides=steps,
            swizzle=combination.swizzle,
            oob_fill=OobFill.NAN if fills else OobFill.ZERO,
        )
        if made.box_bytes <= most_bytes and tensor_bytes(made) <= _MOST_BYTES:
            return made, [at for _, at in places]


def _shape(
    rng: random.Random, given: Combination, width_bits: int, most_bytes: int
) -> tuple[list[int], list[int]]:
    """Box and element strides."""
    unit, rank, size = min(width_bits // 8, 16), given.rank, given.size
    target = int(unit * (most_bytes / unit) ** rng.random())
    longest = min(target, MAX_BOX * size, given.swizzle.bytes if given.swizzle.value else 1 << 10)
    # Most boxes have rows as long as they may be: bytes are what makes traffic.
    row = longest if rng.random() < 0.5 else rng.randint(1, longest)
    row = max(1, row // unit) * unit
    steps = [rng.choice([1, given.step, rng.randint(1, MAX_ELEMENT_STRIDE)]) for _ in range(rank)]
    steps[rng.randrange(min(1, rank - 1), rank)] = given.step
    box = [row // size]
    for count, step in zip(_split(rng, max(1, target // row), steps[1:]), steps[1:]):
        box.append(min(MAX_BOX, rng.randint((count - 1) * step + 1, count * step)))
    return box, steps


def _pitches(rng: random.Random, dims: Sequence[int], size: int, loads: bool) -> list[int]:
    """Strides: without or with a gap, and few that overlap."""
    strides: list[int] = []
    reach = dims[0] * size
    for count in dims[1:]:
        strides.append(ceil_div(reach, 16) * 16 + 16 * rng.choice([0, 0, 1, 3]))
        reach = strides[-1] * count
    if loads and strides and rng.random() < 0.05:
        strides[rng.randrange(len(strides))] = 16 * rng.randrange(4)
    return strides
