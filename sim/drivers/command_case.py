"""Random launch lists: what they leave in memory, and what the fabric must see of them."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hw.arch.image import Image
from hw.arch.launch import (
    HEADER_BYTES,
    Argument,
    LaunchEntry,
    alignment_bytes,
    pack_arguments,
    pack_list,
)

__all__ = [
    "LISTED_CHIP",
    "REGION_BYTES",
    "CommandSizes",
    "Event",
    "ListedKernel",
    "random_kernels",
    "store_list",
]

#: Fingerprint of the chip whose lists these are.
LISTED_CHIP = 0x1234_5678
#: Bytes of memory that a list and all it refers to lie in.
REGION_BYTES = 1 << 16
#: In a region: the list, its first image, the next image, and an image's arguments.
_LIST, _IMAGES, _NEXT, _ARGUMENTS = 0x1000, 0x3000, 0x2000, 0x1000
_MOST_KERNELS = 4

Event = tuple[Any, ...]


class CommandSizes(NamedTuple):
    """Parameters of a command processor."""

    width_bits: int
    axi_address_bits: int
    segments: tuple[tuple[int, ...], ...]
    units: int

    @property
    def words(self) -> dict[tuple[int, int], int]:
        """Words of each segment, by row and number."""
        return {
            (row, number): words
            for row, of_row in enumerate(self.segments)
            for number, words in enumerate(of_row)
        }


@dataclasses.dataclass(frozen=True)
class ListedKernel:
    """One entry of a list, and its expected events at the fabric."""

    image: Image
    arguments: list[Argument]
    repeat: int

    def events(self) -> list[Event]:
        """Expected events: reset, arguments, configuration and start."""
        arguments = [("argument", i, a.value, a.stride) for i, a in enumerate(self.arguments)]
        return [("clear",), *arguments, ("load", self.image.programs), ("start", self.repeat)]


def _kernel(rng: np.random.Generator, sizes: CommandSizes) -> ListedKernel:
    def word(bits: int = 64) -> int:
        return int.from_bytes(rng.bytes(bits // 8), "little")

    width = sizes.width_bits
    programs = {
        at: sum(word(width) << width * i for i in range(words) if rng.random() < 0.7)
        for at, words in sizes.words.items()
    }
    arguments = [Argument(word(), word() - (1 << 63)) for _ in range(rng.integers(0, 17))]
    return ListedKernel(Image(LISTED_CHIP, programs), arguments, int(rng.integers(1, 1 << 32)))


def random_kernels(
    rng: np.random.Generator, sizes: CommandSizes, most: int = _MOST_KERNELS
) -> list[ListedKernel]:
    """Draw a list of one to `most` kernels."""
    return [_kernel(rng, sizes) for _ in range(rng.integers(1, most + 1))]


def store_list(
    kernels: Sequence[ListedKernel],
    region: int,
    sizes: CommandSizes,
    write: Callable[[int, bytes], object],
) -> tuple[int, list[LaunchEntry]]:
    """Write a list and all it refers to into a region; returns the list's address and entries."""
    entries = []
    for number, kernel in enumerate(kernels):
        # Image and arguments cross a multiple of 4 KiB if they are longer than the alignment.
        at = region + _IMAGES + number * _NEXT - alignment_bytes(sizes.width_bits)
        raw = kernel.image.pack(sizes.width_bits)
        write(at, raw[HEADER_BYTES:])
        write(at + _ARGUMENTS, pack_arguments(kernel.arguments))
        entries.append(
            LaunchEntry(
                image_address=at,
                image_bytes=len(raw) - HEADER_BYTES,
                header=raw[:HEADER_BYTES],
                argument_address=at + _ARGUMENTS,
                argument_count=len(kernel.arguments),
                repeat=kernel.repeat,
            )
        )
    write(region + _LIST, pack_list(entries, sizes.width_bits))
    return region + _LIST, entries
