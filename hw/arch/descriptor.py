"""Tensor descriptor: a tensor's address, shape and strides, and the box to move, in memory."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from amaranth.hdl import signed, unsigned
from amaranth.lib import data, enum

from hw.arch.boxes.im2col_box import Im2colBox
from hw.arch.checks import require_int
from hw.arch.errors import BadInputError, shown
from hw.arch.words.word_layout import WordLayout
from hw.numeric.division import ceil_div
from hw.numeric.formats import Format, named

__all__ = [
    "BASE_ALIGNMENT",
    "DESCRIPTOR_BYTES",
    "MAX_BOX",
    "MAX_RANK",
    "Descriptor",
    "MAX_ELEMENT_STRIDE",
    "NAN_FORMATS",
    "ElementFormat",
    "Mode",
    "OobFill",
    "Swizzle",
    "TmaFeature",
    "descriptor_layout",
    "STORED_WORDS",
    "WORD_BITS",
]

#: Bytes to a multiple of which a tensor's base and strides are aligned.
BASE_ALIGNMENT = 16
#: Bytes of a descriptor.
DESCRIPTOR_BYTES = 128
#: Most dimensions of a tensor.
MAX_RANK = 5
#: Most elements of a box in one dimension.
MAX_BOX = 256
#: Largest distance between the elements taken of one dimension.
MAX_ELEMENT_STRIDE = 8
#: Width of the words in which a descriptor is written.
WORD_BITS = 64


class ElementFormat(enum.Enum, shape=8):
    """Format of an element; the two low bits of the code are log2 of its bytes."""

    INT8 = 0x00
    UINT8 = 0x04
    FP8_E4M3 = 0x08
    FP8_E5M2 = 0x0C
    BF16 = 0x01
    FP16 = 0x05
    INT16 = 0x09
    FP32 = 0x02
    INT32 = 0x06

    @classmethod
    def of(cls, format_: Format) -> "ElementFormat":
        """The code of a number format of whole bytes."""
        name = format_.name.upper()
        return cls[f"FP8_{name}" if format_.is_float and format_.bits == 8 else name]

    @property
    def bytes(self) -> int:
        """Bytes of an element."""
        return 1 << (int(self.value) & 3)


#: Formats that have a NaN to fill with.
NAN_FORMATS = (ElementFormat.BF16, ElementFormat.FP16, ElementFormat.FP32)


class OobFill(enum.Enum, shape=8):
    """Value of the elements of a loaded box that lie outside the tensor."""

    ZERO = 0
    #: The NaN of the format, `Format.fill_nan`: every bit is set but the sign.
    NAN = 1


class Swizzle(enum.Enum, shape=8):
    """Order of a box's units of 16 bytes in a scratchpad.

    Within each span of `bytes`, the number of the unit is XORed with that of the 128 bytes.
    """

    NONE = 0
    B32 = 1
    B64 = 2
    B128 = 3

    @property
    def bytes(self) -> int:
        """Bytes within which units change places, and longest row of such a box; 16 for none."""
        return 16 << int(self.value)


class TmaFeature(enum.Enum, shape=8):
    """Optional features of a TMA engine, beyond dense boxes filled with zeros."""

    #: Element strides above 1 in dimensions from 1 on.
    ELEMENT_STRIDES = 0
    #: Boxes filled with NaN outside the tensor.
    NAN_FILL = 1
    #: Descriptors with a swizzle, which the reports carry to the scratchpad.
    SWIZZLE = 2
    #: Bursts that continue one another leave as one.
    JOINED_BURSTS = 3
    #: Boxes prepared at a time, as many as the width asks for, with a report of each command.
    PARALLEL_BOXES = 4
    #: Rows of any number of 16 bytes, without gaps between them in the vectors of a box.
    PACKED_ROWS = 5
    #: Boxes of several commands, each with a descriptor or with a row of its own.
    CONTINUED_BOXES = 6
    #: Boxes of the pixels that a filter's tap needs.
    IM2COL = 7
    #: Stores whose elements are combined with those in memory.
    REDUCE = 8
    #: Descriptors with byte 15 set, whose tensors pass the address width, are refused.
    TENSOR_ENDS = 9
    #: Tensors whose rows at the last index of dimension 1 are shorter than the others.
    SHORTFALL = 10


class Mode(enum.Enum, shape=8):
    """Address mode: the mapping from coordinates to addresses."""

    #: A dense box: consecutive indices in every dimension.
    TILE = 0
    #: Pixels within a bounding box, each moved by the offsets of the command.
    IM2COL = 3
    #: CUDA's im2col::w and im2col::w::128: refused.
    IM2COL_W = 4
    IM2COL_W_128 = 5


#: The bytes in memory order; the one declaration for hardware and Python.
descriptor_layout = WordLayout(
    {
        "base": 64,
        "format": 8,
        "rank": 8,
        "interleave": 8,
        "swizzle": 8,
        "oob_fill": 8,
        "mode": 8,
        "reduce": 8,
        "reserved_15": 8,
        "dims": data.ArrayLayout(unsigned(32), MAX_RANK),
        "box": data.ArrayLayout(unsigned(16), MAX_RANK),
        "element_strides": data.ArrayLayout(unsigned(8), MAX_RANK),
        "shortfall": 8,
        "reserved_52": 32,
        "strides": data.ArrayLayout(unsigned(64), MAX_RANK - 1),
        "im2col_lower": data.ArrayLayout(signed(16), 3),
        "im2col_upper": data.ArrayLayout(signed(16), 3),
        "im2col_channels": 16,
        "im2col_pixels": 16,
        "reserved_104": 192,
    }
)
#: Words of a descriptor that are stored; the reserved ones after them are not.
STORED_WORDS = descriptor_layout["reserved_104"].offset // WORD_BITS
_SEQUENCES = ("dims", "strides", "box", "element_strides")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Descriptor:
    """Tensor in memory and the box that one command moves, as in CUDA's tensor map.

    Dimensions are listed innermost first; rank is the number of ``dims``.

    Parameters
    ----------
    base : int
        Byte address of the tensor, a multiple of 16.
    format : ElementFormat
        Format of an element.
    dims : sequence of int
        Elements per dimension (1 to 2**32 - 1); 1 to `MAX_RANK` dimensions.
    strides : sequence of int
        Bytes from one index to the next in dimension 1, 2, ...: multiples of 16 below 2**40.
    box : sequence of int
        Elements of the box per dimension (1 to `MAX_BOX`); empty with ``im2col``.
    element_strides : sequence of int
        Distance between elements taken (1 to `MAX_ELEMENT_STRIDE`), of which each dimension has
        ceil(box / element stride). That of dimension 0 is ignored, as in CUDA. Empty means all 1.
    swizzle : Swizzle
        Order in the scratchpad; the bytes of a row are at most its span.
    oob_fill : OobFill
        NaN for a format of `NAN_FORMATS` only.
    interleave, reduce : int
        Only 0 is supported: none, plain store.
    mode : Mode
        ``Mode.TILE``, or with ``im2col`` ``Mode.IM2COL``.
    im2col : Im2colBox
        Pixels to move instead of a box.
    shortfall : int
        Elements by which rows at the last index of dimension 1 are shorter than ``dims[0]``, less
        than that and `MAX_BOX`; 0 for one dimension and for im2col.

    Raises
    ------
    BadInputError
        If one parameter is out of range, parameters contradict each other, or a value is not
        supported.
    """

    base: int
    format: ElementFormat
    dims: Sequence[int]
    strides: Sequence[int] = ()
    box: Sequence[int]
    element_strides: Sequence[int] = ()
    interleave: int = 0
    swizzle: Swizzle = Swizzle.NONE
    oob_fill: OobFill = OobFill.ZERO
    mode: Mode = Mode.TILE
    im2col: Im2colBox | None = None
    reduce: int = 0
    shortfall: int = 0

    def __post_init__(self) -> None:
        for name in _SEQUENCES:
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.element_strides:
            object.__setattr__(self, "element_strides", (1,) * len(self.dims))
        require_int("Descriptor base", self.base, 0, (1 << 64) - 1)
        if self.base % BASE_ALIGNMENT:
            raise BadInputError(
                f"Descriptor base must be a multiple of {BASE_ALIGNMENT}, not {self.base:#x}"
            )
        if not isinstance(self.format, ElementFormat):
            raise BadInputError(
                f"Descriptor format must be an ElementFormat, not {shown(self.format)}"
            )
        require_int("Descriptor rank", self.rank, 1, MAX_RANK)
        for noun, values, count in (
            ("strides", self.strides, self.rank - 1),
            ("box", self.box, 0 if self.im2col else self.rank),
            ("element strides", self.element_strides, self.rank),
        ):
            if len(values) != count:
                raise BadInputError(
                    f"Descriptor {noun} must have {count} entries for rank {self.rank}, "
                    f"not {len(values)}"
                )
        for index in range(self.rank):
            require_int(f"Dimension {index}", self.dims[index], 1, (1 << 32) - 1)
            step = self.element_strides[index]
            require_int(f"Element stride {index}", step, 1, MAX_ELEMENT_STRIDE)
        for index, extent in enumerate(self.box):
            require_int(f"Box dimension {index}", extent, 1, MAX_BOX)
        if self.im2col:
            self.im2col.require_fits(self.dims)
        for index, stride in enumerate(self.strides, start=1):
            require_int(f"Stride {index}", stride, 0, (1 << 40) - 1)
            if stride % BASE_ALIGNMENT:
                raise BadInputError(
                    f"Stride {index} must be a multiple of {BASE_ALIGNMENT}, not {stride}"
                )
        most = min(self.dims[0], MAX_BOX) - 1 if self.rank > 1 and not self.im2col else 0
        require_int("Shortfall", self.shortfall, 0, most)
        for noun, code in (("Interleave", self.interleave), ("Reduction", self.reduce)):
            if code != 0:
                raise BadInputError(f"{noun} must be 0, the only one supported, not {shown(code)}")
        for noun, value, kind in (
            ("Swizzle", self.swizzle, Swizzle),
            ("Fill outside the tensor", self.oob_fill, OobFill),
        ):
            if not isinstance(value, kind):
                raise BadInputError(
                    f"{noun} must be a member of {kind.__name__}, not {shown(value)}"
                )
        if self.swizzle is not Swizzle.NONE and self.row_bytes > self.swizzle.bytes:
            raise BadInputError(
                f"Row of a box with swizzle {self.swizzle.name} must be at most "
                f"{self.swizzle.bytes} bytes, not {self.row_bytes}"
            )
        if self.oob_fill is OobFill.NAN and self.format not in NAN_FORMATS:
            names = ", ".join(each.name for each in NAN_FORMATS)
            raise BadInputError(f"Fill with NaN must be for one of {names}, not {self.format.name}")
        wanted = Mode.IM2COL if self.im2col else Mode.TILE
        if self.mode is not wanted:
            which = "with" if self.im2col else "without"
            raise BadInputError(f"Mode must be {wanted} {which} im2col, not {shown(self.mode)}")

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.dims)

    @property
    def row_bytes(self) -> int:
        """Bytes of a box row, which runs along dimension 0."""
        return (self.im2col.channels if self.im2col else self.box[0]) * self.format.bytes

    @property
    def rows(self) -> int:
        """Rows of the box; pixels of im2col."""
        if self.im2col:
            return self.im2col.pixels
        return math.prod(
            ceil_div(extent, step) for extent, step in zip(self.box[1:], self.element_strides[1:])
        )

    @property
    def features(self) -> set[TmaFeature]:
        """Features that an engine needs for it."""
        asked = {
            TmaFeature.ELEMENT_STRIDES: any(step != 1 for step in self.element_strides[1:]),
            TmaFeature.NAN_FILL: self.oob_fill is OobFill.NAN,
            TmaFeature.SWIZZLE: self.swizzle is not Swizzle.NONE,
            TmaFeature.IM2COL: self.im2col is not None,
            TmaFeature.SHORTFALL: self.shortfall != 0,
        }
        return {feature for feature, is_asked in asked.items() if is_asked}

    @property
    def fill_element(self) -> bytes:
        """Bytes of a loaded element outside the tensor."""
        fill = 0
        if self.oob_fill is OobFill.NAN:
            fill = named[self.format.name.lower()].fill_nan or 0
        return fill.to_bytes(self.format.bytes, "little")

    @property
    def box_bytes(self) -> int:
        """Bytes of the whole box, including any part outside the tensor."""
        return self.rows * self.row_bytes

    def _init(self) -> dict[int | str, Any]:
        return {
            **(self.im2col.fields if self.im2col else {}),
            "base": self.base,
            "format": self.format.value,
            "rank": self.rank,
            "interleave": self.interleave,
            "swizzle": self.swizzle.value,
            "oob_fill": self.oob_fill.value,
            "mode": self.mode.value,
            "reduce": self.reduce,
            "shortfall": self.shortfall,
            **{name: list(getattr(self, name)) for name in _SEQUENCES},
        }

    def pack(self) -> bytes:
        """Bytes of the descriptor in memory."""
        return descriptor_layout.pack(self._init()).to_bytes(DESCRIPTOR_BYTES, "little")

    @classmethod
    def unpack(cls, packed: bytes) -> "Descriptor":
        """Descriptor with these bytes.

        Raises
        ------
        BadInputError
            If the length is not `DESCRIPTOR_BYTES`, a field is out of range, or a value is not
            supported.
        """
        if len(packed) != DESCRIPTOR_BYTES:
            raise BadInputError(f"Descriptor must be {DESCRIPTOR_BYTES} bytes, not {len(packed)}")
        fields: Any = descriptor_layout.unpack(int.from_bytes(packed, "little"))
        rank = int(fields["rank"])
        require_int("Descriptor rank", rank, 1, MAX_RANK)
        codes = {int(member.value): member for member in ElementFormat}
        if int(fields["format"]) not in codes:
            raise BadInputError(
                f"Descriptor format must be a code of ElementFormat, not {int(fields['format'])}"
            )
        numbers = "interleave", "reduce", "shortfall"
        named: dict[str, Any] = {name: int(fields[name]) for name in numbers}
        for name, kind in (("mode", Mode), ("swizzle", Swizzle), ("oob_fill", OobFill)):
            members = {int(member.value): member for member in kind}
            code = int(fields[name])
            if code not in members:
                noun = name.replace("_", " ").capitalize()
                raise BadInputError(f"{noun} must be a code of {kind.__name__}, not {code}")
            named[name] = members[code]
        pixels = named["mode"] is Mode.IM2COL
        if pixels:
            named["im2col"] = Im2colBox.of(fields, rank)
        elif any(packed[88:104]):
            raise BadInputError(f"im2col fields must be 0 of a tile, not {packed[88:104]!r}")
        return cls(
            base=int(fields["base"]),
            format=codes[int(fields["format"])],
            dims=[int(fields["dims"][index]) for index in range(rank)],
            strides=[int(fields["strides"][index]) for index in range(rank - 1)],
            box=[int(fields["box"][index]) for index in range(0 if pixels else rank)],
            element_strides=[int(fields["element_strides"][index]) for index in range(rank)],
            **named,
        )
