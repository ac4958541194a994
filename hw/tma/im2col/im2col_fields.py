"""Fields of im2col descriptors and commands in hardware: their rules, and offsets by rank."""

from typing import Any

from amaranth.hdl import Cat, Const, Mux, Value

from hw.arch.boxes.im2col_box import (
    CHANNELS_PER_PIXEL,
    CORNER_BITS,
    IM2COL_RANKS,
    OFFSET_BITS,
    OFFSETS_BITS,
    PIXELS_PER_COLUMN,
)
from hw.arch.error_codes import TmaError

__all__ = ["im2col_rules", "offset_rules", "offsets_of"]


def im2col_rules(fields: Any) -> list[tuple[TmaError, Value]]:
    """Code of each rule of an im2col descriptor, with a bit that is set if one breaks it."""
    channels, pixels = fields.im2col_channels, fields.im2col_pixels
    out_of_range = [
        (channels == 0) | (channels > CHANNELS_PER_PIXEL.high),
        (pixels == 0) | (pixels > PIXELS_PER_COLUMN.high),
    ]
    for index in range(IM2COL_RANKS.high - 2):
        present = fields.rank > 2 + index
        lower, upper = fields.im2col_lower[index], fields.im2col_upper[index]
        for rank, bits in CORNER_BITS.items():
            for value in (lower, upper):
                same = value[bits - 1 :].all() | ~value[bits - 1 :].any()
                out_of_range.append(present & (fields.rank == rank) & ~same)
        extent = fields.dims[1 + index] + upper - lower
        out_of_range.append(present & (extent <= 0))
    return [
        (TmaError.RANK, fields.rank < IM2COL_RANKS.low),
        (TmaError.IM2COL, Cat(out_of_range).any()),
    ]


def offset_rules(fields: Any, im2col: Value, offsets: Value) -> list[tuple[TmaError, Value]]:
    """The same for the offsets of a command with a descriptor, which has mode im2col or not."""
    excess = [
        (fields.rank == rank) & offsets[bits * (rank - 2) :].any()
        for rank, bits in OFFSET_BITS.items()
        if bits * (rank - 2) < OFFSETS_BITS
    ]
    return [(TmaError.OFFSETS, im2col & Cat(excess).any())]


def offsets_of(offsets: Value, rank: Value) -> list[Value]:
    """Offset of each dimension from 1 on, 0 where there is none."""
    taken: list[Value] = []
    for index in range(IM2COL_RANKS.high - 1):
        offset: Value = Const(0)
        for number, bits in OFFSET_BITS.items():
            if index < number - 2:
                offset = Mux(rank == number, offsets[bits * index : bits * (index + 1)], offset)
        taken.append(offset)
    return taken
