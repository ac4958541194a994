"""Rules that a TMA descriptor must keep, in the order in which hardware checks them."""

from typing import Any

from amaranth.hdl import Cat, Value

from hw.arch.descriptor import (
    MAX_BOX,
    MAX_ELEMENT_STRIDE,
    MAX_RANK,
    NAN_FORMATS,
    ElementFormat,
    Mode,
    OobFill,
    Swizzle,
    TmaFeature,
)
from hw.arch.error_codes import TmaError
from hw.tma.im2col.im2col_fields import im2col_rules
from hw.tma.layouts import TmaLayouts

__all__ = ["descriptor_rules"]


def descriptor_rules(
    fields: Any, row_bytes: Value, layouts: TmaLayouts
) -> list[tuple[TmaError, Value]]:
    """Code of each rule, with a bit that is set if a descriptor breaks it.

    ``fields`` is the descriptor, ``row_bytes`` the length of a row of its box.
    """
    formats = [member.value for member in ElementFormat]
    present = [fields.rank > index for index in range(MAX_RANK)]
    box_bad = [(extent == 0) | (extent > MAX_BOX) for extent in fields.box]
    stride_bad = [(stride[:4] != 0) | (stride[40:] != 0) for stride in fields.strides]
    base_bad = fields.base[:4] != 0
    if layouts.address_bits < 64:
        base_bad |= fields.base[layouts.address_bits :] != 0
    pixels = Cat(
        fields.im2col_lower, fields.im2col_upper, fields.im2col_channels, fields.im2col_pixels
    )

    step_bad = [step != 1 for step in fields.element_strides]
    if TmaFeature.ELEMENT_STRIDES in layouts.features:
        step_bad = [(step == 0) | (step > MAX_ELEMENT_STRIDE) for step in fields.element_strides]
    swizzle_bad = fields.swizzle != 0
    if TmaFeature.SWIZZLE in layouts.features:
        codes = [(each, each.value) for each in Swizzle if each is not Swizzle.NONE]
        fits = [(fields.swizzle == code) & (row_bytes <= each.bytes) for each, code in codes]
        swizzle_bad &= ~Cat(fits).any()
    fill_bad = fields.oob_fill != 0
    if TmaFeature.NAN_FILL in layouts.features:
        has_nan = fields.format.matches(*(each.value for each in NAN_FORMATS))
        fill_bad &= (fields.oob_fill != OobFill.NAN.value) | ~has_nan

    mode_rules = [
        (TmaError.MODE, fields.mode != Mode.TILE.value),
        (TmaError.REDUCE, fields.reduce != 0),
        (TmaError.IM2COL, pixels != 0),
    ]
    early: list[tuple[TmaError, Value]] = []
    if TmaFeature.IM2COL in layouts.features:
        tiled, im2col = fields.mode == Mode.TILE.value, fields.mode == Mode.IM2COL.value
        wide = fields.mode.matches(Mode.IM2COL_W.value, Mode.IM2COL_W_128.value)
        box_bad = [bad & ~im2col for bad in box_bad]
        early = [(code, im2col & broken) for code, broken in im2col_rules(fields)]
        early.append((TmaError.IM2COL_WIDE, wide))
        mode_rules = [
            (TmaError.MODE, ~tiled & ~im2col),
            (TmaError.REDUCE, fields.reduce != 0),
            (TmaError.IM2COL, tiled & (pixels != 0)),
        ]

    dims_bad: list[Value] = [extent == 0 for extent in fields.dims]
    if TmaFeature.SHORTFALL in layouts.features:
        flat = (fields.rank == 1) | (fields.mode != Mode.TILE.value)
        row, bits = fields.dims[0], len(fields.shortfall)
        dims_bad[0] |= ~row[bits:].any() & (row[:bits] <= fields.shortfall)
        dims_bad[0] |= fields.shortfall.any() & flat

    ends: list[tuple[TmaError, Value]] = []
    if TmaFeature.TENSOR_ENDS in layouts.features:
        # Set by who stored the descriptor; only what breaks no other rule has a right answer.
        ends = [(TmaError.BASE, fields.reserved_15[0])]

    def anywhere(broken: list[Any], first: int = 0) -> Value:
        return Cat(p & b for p, b in zip(present[first:], broken)).any()

    return [
        (TmaError.RANK, (fields.rank == 0) | (fields.rank > MAX_RANK)),
        (TmaError.FORMAT, ~fields.format.matches(*formats)),
        (TmaError.BASE, base_bad),
        (TmaError.STRIDE, anywhere(stride_bad, 1)),
        (TmaError.DIMENSION, anywhere(dims_bad)),
        *early,
        (TmaError.BOX, anywhere(box_bad)),
        (TmaError.ROW_BYTES, row_bytes[: layouts.unit_shift] != 0),
        (TmaError.ELEMENT_STRIDE, anywhere(step_bad)),
        (TmaError.INTERLEAVE, fields.interleave != 0),
        (TmaError.SWIZZLE, swizzle_bad),
        (TmaError.OOB_FILL, fill_bad),
        *mode_rules,
        *ends,
    ]
