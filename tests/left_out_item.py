"""Launch of a random product of which one item is no region that its accesses may touch."""

import dataclasses
import re
from typing import Self

import numpy as np

from hw.arch.config import ChipConfig
from tests.units_matmul import UnitsMatmul

__all__ = ["LeftOutItem"]


@dataclasses.dataclass
class LeftOutItem:
    """Memory and places of the launch.

    Members
    -------
    memory : bytearray
    list_address, entries : int
        Launch list.
    regions : list of (int, int)
        Of every item.
    others : list of (int, int)
        Without that of the item.
    """

    memory: bytearray
    list_address: int
    entries: int
    regions: list[tuple[int, int]]
    others: list[tuple[int, int]]
    _first: int
    _end: int
    _beat_bytes: int

    @classmethod
    def random(cls, config: ChipConfig, rng: np.random.Generator, item: str) -> Self:
        """Draw a product; `item` is an array or the image."""
        job = UnitsMatmul.random(config, rng)
        layout = job.launch_memory(int(rng.integers(1 << 40)))
        memory = layout.bytes_before(dict(zip("AB", job.operands(rng), strict=True)))
        address, size = layout.places[item]
        region = address, address + size
        others = [each for each in layout.regions if each != region]
        assert len(others) == len(layout.regions) - 1
        beat = config.width_bits // 8
        where = layout.list_address, layout.entries
        return cls(bytearray(memory), *where, list(layout.regions), others, *region, beat)

    def check_met(self, fault: str) -> None:
        """Check that a message names the address of a beat of the item."""
        (met,) = map(int, re.findall(r" at (\d+)", fault))
        assert self._first <= met + self._beat_bytes and met < self._end
