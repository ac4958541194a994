"""Random tensors in memory, and the vectors of their boxes by numpy."""

from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.descriptor import MAX_BOX, Descriptor, ElementFormat
from hw.lib.axi import BOUNDARY_BYTES
from hw.numeric.division import ceil_div

__all__ = ["REGION_BYTES", "BoxTensor", "box_payloads"]

#: Bytes of a region of memory, in which a tensor stands.
REGION_BYTES = 1 << 14

Array = npt.NDArray[Any]


class BoxTensor:
    """A random tensor in a memory region, and its expected boxes by numpy.

    Parameters
    ----------
    rng : numpy.random.Generator
    start_byte : int
        Address of its region of `REGION_BYTES` bytes.
    vector_bytes : int
        Bytes per vector, of which a row of a box has a whole number.
    shortens : bool
        Rows at the last index of dimension 1 may be shorter.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        start_byte: int,
        vector_bytes: int,
        *,
        shortens: bool = False,
    ) -> None:
        formats = {format_.bytes: format_ for format_ in ElementFormat if format_.bytes <= 4}
        self.size = int(rng.choice(list(formats)))
        rank = int(rng.integers(1, 5))
        # Extents shrink with the rank, so that the tensor stays inside its region.
        most = {1: 200, 2: 40, 3: 12, 4: 6}[rank]
        self.dims = [int(extent) for extent in rng.integers(1, most + 1, rank)]
        self.strides: list[int] = []
        extent = self.dims[0] * self.size
        for dimension in self.dims[1:]:
            extent = ceil_div(extent, 16) * 16 + 16 * int(rng.integers(0, 2))
            self.strides.append(extent)
            extent *= dimension
        assert extent <= REGION_BYTES
        #: Bytes from the first element to the end of the last row.
        self.extent = extent
        room = (REGION_BYTES - extent) // 16
        offset = 16 * int(rng.integers(0, room + 1))
        if rng.random() < 0.5:
            # A 4 KiB boundary lies inside the first row.
            offset = min(BOUNDARY_BYTES - 16 * int(rng.integers(1, 3)), 16 * room)
        self.base = start_byte + offset
        unit = vector_bytes // self.size
        units = min(5, MAX_BOX // unit)
        row = unit * int(rng.integers(1, units + 1))
        self.box = [row, *(int(extent) for extent in rng.integers(1, 5, rank - 1))]
        #: Elements by which rows at the last index of dimension 1 are shorter.
        self.shortfall = 0
        if shortens and rank > 1 and rng.random() < 0.5:
            self.shortfall = int(rng.integers(0, self.dims[0]))
        self.descriptor = Descriptor(
            base=self.base,
            format=formats[self.size],
            dims=self.dims,
            strides=self.strides,
            box=self.box,
            shortfall=self.shortfall,
        )

    def corner(self, rng: np.random.Generator) -> list[int]:
        """Random coordinates of a box, which may lie partly or completely outside."""
        return [int(rng.integers(-box, extent + 2)) for box, extent in zip(self.box, self.dims)]

    def owns(self, region: Array) -> None:
        """Set those of the region's bytes that the tensor has, and clear its others.

        ``region`` has a bool per byte of memory.
        """
        first = self.base // REGION_BYTES * REGION_BYTES
        region[first : first + REGION_BYTES] = False
        index = np.indices((*reversed(self.dims), self.size))
        address = self.base + index[-1]
        places = [index[len(self.dims) - 1 - number] for number in range(len(self.dims))]
        for place, pitch in zip(places, [self.size, *self.strides], strict=True):
            address = address + place * pitch
        region[address[self._exists(places)]] = True

    def _exists(self, places: list[Array]) -> Array:
        """Whether elements of some indices in each dimension lie inside the tensor."""
        inside = np.ones(places[0].shape, bool)
        for place, extent in zip(places, self.dims, strict=True):
            inside &= (place >= 0) & (place < extent)
        if self.shortfall:
            shorter = places[1] == self.dims[1] - 1
            inside &= ~shorter | (places[0] < self.dims[0] - self.shortfall)
        return inside

    def where(self, corner: list[int]) -> tuple[Array, Array]:
        """Address of each byte of a box in stream order, and whether it lies inside the tensor."""
        shape = (*reversed(self.box), self.size)
        index = np.indices(shape)
        address = self.base + index[-1]
        places = [index[len(self.box) - 1 - number] + at for number, at in enumerate(corner)]
        for place, pitch in zip(places, [self.size, *self.strides], strict=True):
            address = address + place * pitch
        return address.reshape(-1), self._exists(places).reshape(-1)


def box_payloads(data: Array, vector_bytes: int) -> list[int]:
    """Payloads of a box's vectors, with `last` at its end."""
    lines = data.reshape(-1, vector_bytes)
    words = [int.from_bytes(line.tobytes(), "little") for line in lines]
    return [
        word | (index == len(words) - 1) << 8 * vector_bytes for index, word in enumerate(words)
    ]
