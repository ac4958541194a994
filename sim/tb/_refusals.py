"""Invalid descriptors for the TMA engine, one bad field each, with their error codes."""

from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data

from hw.arch.descriptor import DESCRIPTOR_BYTES, descriptor_layout
from hw.arch.error_codes import TmaError

__all__ = ["REFUSALS", "with_field"]

#: Field of a descriptor of two dimensions or more, index in it (0 where it is no array), a value
#: that is refused for vectors of 64 bits or more and addresses of at most 48 bits, and the code.
REFUSALS = (
    ("rank", 0, 0, TmaError.RANK),
    ("rank", 0, 6, TmaError.RANK),
    ("format", 0, 3, TmaError.FORMAT),
    ("format", 0, 0x81, TmaError.FORMAT),
    ("base", 0, 0x1008, TmaError.BASE),
    ("base", 0, 1 << 48, TmaError.BASE),
    ("strides", 0, 72, TmaError.STRIDE),
    ("strides", 0, 1 << 40, TmaError.STRIDE),
    ("dims", 1, 0, TmaError.DIMENSION),
    ("box", 1, 0, TmaError.BOX),
    ("box", 0, 264, TmaError.BOX),
    ("box", 0, 1, TmaError.ROW_BYTES),
    ("element_strides", 1, 2, TmaError.ELEMENT_STRIDE),
    ("interleave", 0, 1, TmaError.INTERLEAVE),
    ("swizzle", 0, 1, TmaError.SWIZZLE),
    ("oob_fill", 0, 1, TmaError.OOB_FILL),
    ("mode", 0, 3, TmaError.MODE),
    ("reduce", 0, 1, TmaError.REDUCE),
    ("im2col_lower", 1, -1, TmaError.IM2COL),
    ("im2col_pixels", 0, 5, TmaError.IM2COL),
)


def with_field(packed: bytes, field: str, index: int, value: int) -> bytes:
    """The 128 bytes of a descriptor with one field replaced."""
    member: Any = data.Layout.cast(descriptor_layout)[field]
    shape = member.shape
    width = Shape.cast(shape.elem_shape if isinstance(shape, data.ArrayLayout) else shape).width
    low: int = member.offset + index * width
    mask = (1 << width) - 1
    bits = int.from_bytes(packed, "little") & ~(mask << low) | (value & mask) << low
    return bits.to_bytes(DESCRIPTOR_BYTES, "little")
