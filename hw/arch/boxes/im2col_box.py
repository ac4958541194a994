"""Im2col box of a tensor descriptor: the pixels that one command visits."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from hw.arch.checks import Domain, require_int
from hw.arch.errors import BadInputError, shown

__all__ = [
    "CHANNELS_PER_PIXEL",
    "CORNER_BITS",
    "IM2COL_RANKS",
    "OFFSETS_BITS",
    "OFFSET_BITS",
    "PIXELS_PER_COLUMN",
    "Im2colBox",
    "packed_offsets",
]

#: Channels that each pixel gives.
CHANNELS_PER_PIXEL = Domain(1, 256)
#: Pixels that one command visits.
PIXELS_PER_COLUMN = Domain(1, 1024)
#: Bits of a signed entry of a corner, by rank; the dimensions between channels and images have one.
CORNER_BITS = {3: 16, 4: 8, 5: 5}
#: Dimensions of a tensor that im2col reads.
IM2COL_RANKS = Domain(min(CORNER_BITS), max(CORNER_BITS))
#: Bits of an offset of a command, by rank.
OFFSET_BITS = CORNER_BITS
#: Width of the offsets of a command.
OFFSETS_BITS = 16


@dataclasses.dataclass(frozen=True)
class Im2colBox:
    """Pixels of an im2col command, as in CUDA's tensor map.

    Parameters
    ----------
    lower, upper : sequence of int
        Corners of the bounding box, of W, then H, then D: it begins at ``lower`` and ends before
        the tensor's elements + ``upper``. 16, 8, 5 signed bits for ranks 3, 4, 5.
    channels : int
        Channels that each pixel gives (`CHANNELS_PER_PIXEL`).
    pixels : int
        Pixels that a command visits (`PIXELS_PER_COLUMN`).
    """

    lower: Sequence[int]
    upper: Sequence[int]
    channels: int
    pixels: int

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def fields(self) -> dict[int | str, Any]:
        """Fields of the descriptor in memory."""
        return {
            "im2col_lower": list(self.lower),
            "im2col_upper": list(self.upper),
            "im2col_channels": self.channels,
            "im2col_pixels": self.pixels,
        }

    @classmethod
    def of(cls, fields: Any, rank: int) -> "Im2colBox":
        """The one that a descriptor of a rank has in its fields."""
        lower, upper = (
            [int(fields[name][index]) for index in range(max(rank - 2, 0))]
            for name in ("im2col_lower", "im2col_upper")
        )
        return cls(lower, upper, int(fields["im2col_channels"]), int(fields["im2col_pixels"]))

    def require_fits(self, dims: Sequence[int]) -> None:
        """Refuse what does not fit a tensor of these elements per dimension.

        Raises
        ------
        BadInputError
            If a field is out of range, or the bounding box is empty.
        """
        rank = len(dims)
        require_int("Rank of an im2col descriptor", rank, IM2COL_RANKS.low, IM2COL_RANKS.high)
        half = 1 << (CORNER_BITS[rank] - 1)
        for noun, corner in (("Lower corner", self.lower), ("Upper corner", self.upper)):
            if len(corner) != rank - 2:
                raise BadInputError(
                    f"{noun} must have {rank - 2} entries for rank {rank}, not {len(corner)}"
                )
            for index, value in enumerate(corner):
                require_int(f"{noun} {index}", value, -half, half - 1)
        CHANNELS_PER_PIXEL.require("Channels per pixel", self.channels)
        PIXELS_PER_COLUMN.require("Pixels per column", self.pixels)
        for index, (low, high) in enumerate(zip(self.lower, self.upper)):
            extent = dims[1 + index] + high - low
            if extent < 1:
                raise BadInputError(
                    f"Bounding box must have 1 index or more of each dimension, "
                    f"not {shown(extent)} of dimension {1 + index}"
                )


def packed_offsets(offsets: Sequence[int]) -> int:
    """Offsets of a command, of W, then H, then D, as the field ``offsets`` has them.

    Raises
    ------
    BadInputError
        If an offset is out of range for the rank, which is their number + 2.
    """
    require_int("Offsets", len(offsets), IM2COL_RANKS.low - 2, IM2COL_RANKS.high - 2)
    bits = OFFSET_BITS[len(offsets) + 2]
    packed = 0
    for index, offset in enumerate(offsets):
        require_int(f"Offset {index}", offset, 0, (1 << bits) - 1)
        packed |= offset << (bits * index)
    return packed
