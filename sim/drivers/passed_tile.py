"""A box on its way from one tensor through scratchpads to another, and what memory then has."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.boxes.reductions import INTEGER_FORMATS
from hw.arch.descriptor import DESCRIPTOR_BYTES, Descriptor
from hw.numeric.division import ceil_div
from sim.drivers.box_tensor import REGION_BYTES, BoxTensor

__all__ = ["TILES", "TILE_DESCRIPTORS", "TILE_MEMORY_BYTES", "PassedTile"]

#: Tiles in flight, each with a region of memory to load from, and one to store to.
TILES = 4
#: Address of the first descriptor, and bytes of the memory.
TILE_DESCRIPTORS = 2 * TILES * REGION_BYTES
TILE_MEMORY_BYTES = TILE_DESCRIPTORS + 2 * TILES * DESCRIPTOR_BYTES
#: An integer format of each size, for sums in memory.
_NUMBERS = {each.bytes: each for each in INTEGER_FORMATS}

Bytes = npt.NDArray[np.uint8]


@dataclasses.dataclass
class PassedTile:
    """A box of a random tensor, and a tensor of its size.

    Members
    -------
    number : int
        From 0 to `TILES` − 1.
    tensor : BoxTensor
    corner : list of int
        Coordinates of the box.
    adds : bool
        Whether the box is added to the target by REDUCE, as integers, not stored.
    destinations, source, leaves : int
        A bit per scratchpad that it is loaded to, one of them, and the one that it leaves from,
        to which it is copied if that is another one.
    """

    number: int
    tensor: BoxTensor
    corner: list[int]
    adds: bool = False
    destinations: int = 1
    source: int = 0
    leaves: int = 0

    @classmethod
    def random(
        cls,
        rng: np.random.Generator,
        number: int,
        *,
        vector_bytes: int,
        most_bytes: int,
        reduces: bool,
        scratchpads: int,
    ) -> "PassedTile":
        """A random tile of at most some bytes, for a unit with so many scratchpads."""
        start = number * REGION_BYTES
        while True:
            tensor = BoxTensor(rng, start, vector_bytes)
            if tensor.descriptor.box_bytes <= min(most_bytes, REGION_BYTES):
                break
        tile = cls(number, tensor, tensor.corner(rng))
        if reduces:
            tile.adds = bool(rng.random() < 0.5)
        if scratchpads > 1:
            tile.destinations = int(rng.integers(1, 1 << scratchpads))
            loaded = [pad for pad in range(scratchpads) if tile.destinations >> pad & 1]
            tile.source = int(rng.choice(loaded))
            tile.leaves = tile.source if rng.random() < 0.5 else int(rng.integers(scratchpads))
        return tile

    @property
    def pointers(self) -> tuple[int, int]:
        """Addresses of the descriptors to load and to store by."""
        first = TILE_DESCRIPTORS + 2 * self.number * DESCRIPTOR_BYTES
        return first, first + DESCRIPTOR_BYTES

    @property
    def target(self) -> Descriptor:
        """Tensor that is the box and nothing else, its rows one after the other."""
        box, size = self.tensor.box, self.tensor.size
        strides = [ceil_div(box[0] * size, 16) * 16]
        for extent in box[1:-1]:
            strides.append(strides[-1] * extent)
        return dataclasses.replace(
            self.tensor.descriptor,
            base=(TILES + self.number) * REGION_BYTES,
            format=_NUMBERS[size] if self.adds else self.tensor.descriptor.format,
            dims=box,
            strides=strides[: len(box) - 1],
        )

    @property
    def rows(self) -> Iterator[tuple[int, int]]:
        """First and end address of each row of the target."""
        row = self.tensor.box[0] * self.tensor.size
        for number in range(math.prod(self.tensor.box[1:])):
            first = self.target.base + number * (ceil_div(row, 16) * 16)
            yield first, first + row

    def owns(self, region: Any, owned: bool = True) -> None:
        """Set the target's bytes of its region if they are owned, and clear the others."""
        base = self.target.base
        region[base : base + REGION_BYTES] = False
        for first, end in self.rows:
            region[first:end] = owned

    def expected(self, image: Bytes) -> None:
        """Write into the image of memory what the load and the store move."""
        address, exists = self.tensor.where(self.corner)
        taken = np.where(exists, image[np.where(exists, address, 0)], 0).astype(np.uint8)
        row = self.tensor.box[0] * self.tensor.size
        number = np.dtype(f"<u{self.tensor.size}")
        for (first, end), content in zip(self.rows, taken.reshape(-1, row), strict=True):
            if self.adds:
                content = (image[first:end].view(number) + content.view(number)).view(np.uint8)
            image[first:end] = content
