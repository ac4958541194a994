"""Modes of a TMA unit's commands in random tests: what each draws, and what it means in numpy."""

import dataclasses
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.boxes.reductions import ReductionOperation
from hw.arch.descriptor import NAN_FORMATS, Descriptor, ElementFormat, OobFill, Swizzle
from hw.arch.tma_sizes import TmaSizes
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.campaign.random_boxes import (
    SIDES,
    Combination,
    combinations,
    in_turn,
    random_box,
)
from tests.hw.tma.im2col_model import (
    im2col_elements,
    im2col_load,
    im2col_store,
    pixels_of,
    random_im2col_case,
    random_im2col_place,
)
from tests.hw.tma.model import box_elements, box_load, box_store, tensor_bytes

__all__ = [
    "MODES",
    "Boxes",
    "Bytes",
    "Case",
    "Decks",
    "Linear",
    "Mode",
    "Pixels",
    "Places",
]

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Case:
    """A command of a mode without its places: bytes of memory and of the scratchpad that it moves.

    Members
    -------
    descriptor : Descriptor, optional
        Its base is 0, and so is the address of a linear copy.
    coordinates : sequence of int
        As the command has them.
    bytes, extent : int
        Bytes in the scratchpad, and from the first to behind the last in memory.
    combination : Combination, optional
        What the descriptor was drawn for.
    offsets : sequence of int
        Those of an im2col command.
    reduction : ReductionOperation, optional
        That of a reducing store.
    """

    mode: "Mode"
    descriptor: Descriptor | None
    coordinates: tuple[int, ...]
    bytes: int
    extent: int
    combination: Combination | None = None
    offsets: tuple[int, ...] = ()
    reduction: ReductionOperation | None = None

    @property
    def swizzle(self) -> Swizzle:
        """Swizzle of the box in the scratchpad."""
        return self.descriptor.swizzle if self.descriptor else Swizzle.NONE


class Decks:
    """Random choices in which every quota is met: combinations, and sides of tensors."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.combinations = combinations(rng)
        self.sides = in_turn(rng, SIDES)


@dataclasses.dataclass(frozen=True)
class Mode:
    """A mode: its operation, and its share of the commands of a test.

    ``origin`` below is the place of the case's address 0 in ``memory``.
    """

    name: str
    operation: TmaOperation
    share: int

    @property
    def loads(self) -> bool:
        """Whether bytes go to the scratchpad."""
        return self.operation in (
            TmaOperation.LOAD,
            TmaOperation.LOAD_LINEAR,
            TmaOperation.GATHER4,
            TmaOperation.COPY,
        )

    @property
    def copies(self) -> bool:
        """Whether bytes come from a scratchpad and go to others."""
        return self.operation is TmaOperation.COPY

    def draw(self, decks: Decks, sizes: TmaSizes, most_bytes: int) -> Case:
        """Draw a random command."""
        raise NotImplementedError

    def follows(self, case: Case) -> bool:
        """Whether a command of this mode may use the descriptor of a former one."""
        return case.mode is self and case.descriptor is not None

    def again(self, rng: random.Random, case: Case) -> Case:
        """The same descriptor at other coordinates."""
        at = self.near(rng, case)
        return dataclasses.replace(case, mode=self, coordinates=tuple(at), combination=None)

    def near(self, rng: random.Random, case: Case) -> list[int]:
        """Other coordinates in or around the tensor."""
        assert case.descriptor is not None
        extents = zip(case.descriptor.box, case.descriptor.dims)
        return [rng.choice([0, n - 1, rng.randint(-b, n)]) for b, n in extents]

    def boxes(self, case: Case) -> Iterator[tuple[Descriptor, Sequence[int]]]:
        """Descriptors and coordinates of the boxes that follow one another in the scratchpad."""
        assert case.descriptor is not None
        yield case.descriptor, case.coordinates

    def leaves(self, case: Case) -> tuple[bool, bool]:
        """Whether a box leaves its tensor below, and above."""
        below = above = False
        for descriptor, coordinates in self.boxes(case):
            steps = (1, *descriptor.element_strides[1:])
            for n, step, at, size in zip(descriptor.box, steps, coordinates, descriptor.dims):
                below |= at < 0
                above |= at + (n - 1) // step * step >= size
        return below, above

    def touched(self, case: Case) -> Places:
        """Offset of each byte that the command may touch in memory."""
        places = []
        for descriptor, coordinates in self.boxes(case):
            offsets = box_elements(descriptor, coordinates)[1]
            places.append((offsets[:, None] + np.arange(descriptor.format.bytes)).reshape(-1))
        return np.concatenate(places)

    def loaded(self, case: Case, memory: Bytes, origin: int) -> Bytes:
        """Bytes that a load delivers."""
        moved = [box_load(memory[origin:], each, at) for each, at in self.boxes(case)]
        return np.concatenate(moved)

    def store(self, case: Case, memory: Bytes, origin: int, content: Bytes) -> None:
        """Put the bytes of a store into memory."""
        done = 0
        for each, at in self.boxes(case):
            box_store(memory[origin:], each, at, content[done : done + each.box_bytes])
            done += each.box_bytes


class Boxes(Mode):
    """One box of any rank."""

    def follows(self, case: Case) -> bool:
        # What a reduction has made, a store may overwrite: both are in the order of commands.
        reduced = case.reduction is not None and isinstance(case.mode, Boxes)
        return super().follows(case) or (reduced and self.operation is TmaOperation.STORE)

    def again(self, rng: random.Random, case: Case) -> Case:
        return dataclasses.replace(super().again(rng, case), reduction=None)

    def draw(self, decks: Decks, sizes: TmaSizes, most_bytes: int) -> Case:
        given = next(decks.combinations)
        descriptor, at = random_box(
            decks.rng,
            given,
            next(decks.sides),
            width_bits=sizes.width_bits,
            most_bytes=most_bytes,
            loads=self.loads,
        )
        return Case(
            self, descriptor, tuple(at), descriptor.box_bytes, tensor_bytes(descriptor), given
        )


class _Rows(Mode):
    """Four rows, each of its own index."""

    def draw(self, decks: Decks, sizes: TmaSizes, most_bytes: int) -> Case:
        rng, side = decks.rng, next(decks.sides)
        kind = rng.choice(list(ElementFormat))
        swizzle = rng.choice(list(Swizzle))
        unit = min(sizes.width_bits // 8, 16)
        longest = min(
            256 * kind.bytes, swizzle.bytes if swizzle.value else 1 << 10, most_bytes // 4
        )
        row = rng.randint(1, longest // unit) * unit // kind.bytes
        dims = [
            rng.choice([row, row + rng.randint(0, 40), rng.randint(1, row)]),
            rng.randint(1, 60),
        ]
        fills = kind in NAN_FORMATS and rng.random() < 0.5
        descriptor = Descriptor(
            base=0,
            format=kind,
            dims=dims,
            strides=[-(-dims[0] * kind.bytes // 16) * 16 + 16 * rng.choice([0, 1, 3])],
            box=(row, 1),
            element_strides=(rng.randint(1, 8), rng.randint(1, 8)),
            swizzle=swizzle,
            oob_fill=OobFill.NAN if fills else OobFill.ZERO,
        )
        rows = [rng.randrange(dims[1]) for _ in range(4)]
        starts = {"below": -rng.randint(1, row), "above": dims[0] - rng.randint(0, row - 1)}
        if side in ("below", "both"):
            rows[rng.randrange(2)] = -rng.randint(1, 9)
        if side in ("above", "both"):
            rows[rng.randrange(2, 4)] = dims[1] + rng.randint(0, 9)
        column = starts.get(rng.choice([side, "inside"]), 0)
        at = (column if side != "far" else rng.choice([-(1 << 31), (1 << 31) - 1]), *rows)
        return Case(self, descriptor, at, 4 * descriptor.box_bytes, tensor_bytes(descriptor))

    def near(self, rng: random.Random, case: Case) -> list[int]:
        assert case.descriptor is not None
        column, row = super().near(rng, case)
        rows = case.descriptor.dims[1]
        return [column, row, *(rng.randint(-1, rows) for _ in range(3))]

    def boxes(self, case: Case) -> Iterator[tuple[Descriptor, Sequence[int]]]:
        assert case.descriptor is not None
        for row in case.coordinates[1:]:
            yield case.descriptor, (case.coordinates[0], row)


class Pixels(Mode):
    """An im2col box."""

    def draw(self, decks: Decks, sizes: TmaSizes, most_bytes: int) -> Case:
        while True:
            descriptor, at, offsets = random_im2col_case(
                decks.rng, width_bits=sizes.width_bits, region=(0, 1 << 16)
            )
            if descriptor.box_bytes <= most_bytes:
                break
        descriptor = dataclasses.replace(descriptor, base=0)
        extent = tensor_bytes(descriptor)
        return Case(
            self, descriptor, tuple(at), descriptor.box_bytes, extent, offsets=tuple(offsets)
        )

    def again(self, rng: random.Random, case: Case) -> Case:
        at, offsets = random_im2col_place(rng, case.descriptor)
        return dataclasses.replace(case, coordinates=tuple(at), offsets=tuple(offsets))

    def leaves(self, case: Case) -> tuple[bool, bool]:
        assert case.descriptor is not None
        size = case.descriptor.dims
        channel = case.coordinates[0]
        places = np.array(pixels_of(case.descriptor, case.coordinates)) + (*case.offsets, 0)
        below = channel < 0 or bool((places < 0).any())
        last = channel + case.descriptor.im2col.channels - 1
        return below, last >= size[0] or bool((places >= size[1:]).any())

    def touched(self, case: Case) -> Places:
        assert case.descriptor is not None
        found = [at for _, at in im2col_elements(case.descriptor, case.coordinates, case.offsets)]
        size = case.descriptor.format.bytes
        return (np.array(found, np.int64)[:, None] + np.arange(size)).reshape(-1)

    def loaded(self, case: Case, memory: Bytes, origin: int) -> Bytes:
        return im2col_load(memory[origin:], case.descriptor, case.coordinates, case.offsets)

    def store(self, case: Case, memory: Bytes, origin: int, content: Bytes) -> None:
        im2col_store(memory[origin:], case.descriptor, case.coordinates, case.offsets, content)


class Linear(Mode):
    """A range of bytes, without a descriptor."""

    def draw(self, decks: Decks, sizes: TmaSizes, most_bytes: int) -> Case:
        size = 16 * max(1, int((most_bytes / 16) ** decks.rng.random()))
        return Case(self, None, (size,), size, size)

    def boxes(self, case: Case) -> Iterator[Any]:
        return iter(())

    def touched(self, case: Case) -> Places:
        return np.arange(case.bytes)

    def loaded(self, case: Case, memory: Bytes, origin: int) -> Bytes:
        return memory[origin : origin + case.bytes].copy()

    def store(self, case: Case, memory: Bytes, origin: int, content: Bytes) -> None:
        memory[origin : origin + case.bytes] = content


#: All modes; a new one is an entry, and a class if its boxes are of a new kind.
MODES = (
    Boxes("tile load", TmaOperation.LOAD, 36),
    Boxes("tile store", TmaOperation.STORE, 36),
    _Rows("gather4", TmaOperation.GATHER4, 7),
    _Rows("scatter4", TmaOperation.SCATTER4, 7),
    Pixels("im2col load", TmaOperation.LOAD, 10),
    Pixels("im2col store", TmaOperation.STORE, 8),
    Linear("linear load", TmaOperation.LOAD_LINEAR, 7),
    Linear("linear store", TmaOperation.STORE_LINEAR, 7),
)
