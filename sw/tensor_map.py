"""Tensor map: a TMA descriptor from the arguments of CUDA's functions, checked as there."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

from hw.arch.boxes.im2col_box import (
    CHANNELS_PER_PIXEL,
    CORNER_BITS,
    PIXELS_PER_COLUMN,
    Im2colBox,
)
from hw.arch.checks import Domain
from hw.arch.descriptor import (
    BASE_ALIGNMENT,
    MAX_BOX,
    MAX_ELEMENT_STRIDE,
    MAX_RANK,
    NAN_FORMATS,
    Descriptor,
    ElementFormat,
    Mode,
    OobFill,
    Swizzle,
)
from hw.arch.error_codes import TmaError
from hw.arch.errors import BadInputError, shown
from hw.arch.limits import AXI_ADDRESS_BITS
from hw.numeric.formats import Format

__all__ = ["TensorMap"]

#: Data types of CUDA that are built. A copy with a fill of zero has no sign.
_DATA_TYPES = {
    "UINT8": ElementFormat.UINT8,
    "UINT16": ElementFormat.INT16,
    "UINT32": ElementFormat.INT32,
    "INT32": ElementFormat.INT32,
    "FLOAT16": ElementFormat.FP16,
    "FLOAT32": ElementFormat.FP32,
    "BFLOAT16": ElementFormat.BF16,
}
#: Interleaved layouts, with the bytes to a multiple of which the address and strides are aligned.
_INTERLEAVES = {"NONE": BASE_ALIGNMENT, "16B": BASE_ALIGNMENT, "32B": 2 * BASE_ALIGNMENT}
_SWIZZLES = {
    "NONE": Swizzle.NONE,
    "32B": Swizzle.B32,
    "64B": Swizzle.B64,
    "128B": Swizzle.B128,
}
_L2_PROMOTIONS = ("NONE", "L2_64B", "L2_128B", "L2_256B")
_FILLS = {"NONE": OobFill.ZERO, "NAN_REQUEST_ZERO_FMA": OobFill.NAN}
#: Bytes to a multiple of which a row of a box is long.
_ROW_STEP = 16


def _refusal(
    field: str, rule: str, value: object, code: TmaError | None, noun: str | None = None
) -> BadInputError:
    """Error for a field; ``noun`` is what the value is, if it is not the field itself."""
    kind = f"tma-{code.name.lower().replace('_', '-')}" if code else None
    message = f"{noun or field} must {rule}, not {shown(value)}"
    return BadInputError(message, kind=kind, where=field, value=value, rule=rule)


def _require_one_of(
    field: str, names: Sequence[str] | dict[str, Any], value: object, code: TmaError | None
) -> None:
    if not isinstance(value, str) or value not in names:
        raise _refusal(field, f"be one of {', '.join(names)}", value, code)


def _require_integers(
    field: str, values: Sequence[int], count: int, domain: Domain, code: TmaError, step: int = 1
) -> None:
    """A list of so many integers, each of the domain and a multiple of a number."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence) or len(values) != count:
        raise _refusal(field, f"have {count} integers", values, code)
    for index, value in enumerate(values):
        _require_integer(f"{field}[{index}]", value, domain, code, step)


def _require_integer(
    field: str, value: object, domain: Domain, code: TmaError, step: int = 1
) -> None:
    if not isinstance(value, int) or not domain.holds(value):
        raise _refusal(field, f"be {domain.rule}", value, code)
    if value % step:
        raise _refusal(field, f"be a multiple of {step}", value, code)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Tensor:
    """The arguments that boxes and im2col share, checked when made, in the order of CUDA's."""

    data_type: str | Format
    global_address: int
    global_dim: Sequence[int]
    global_strides: Sequence[int]
    element_strides: Sequence[int] | None
    interleave: str
    fewest_dims: int
    address_bits: int

    def __post_init__(self) -> None:
        AXI_ADDRESS_BITS.require("address_bits", self.address_bits)
        if not isinstance(self.data_type, Format):
            _require_one_of("tensor_data_type", _DATA_TYPES, self.data_type, TmaError.FORMAT)
        elif self.data_type.name.upper() not in self._formats:
            rule = f"be one of {', '.join(self._formats).lower()}"
            raise _refusal("tensor_data_type", rule, self.data_type.name, TmaError.FORMAT)
        _require_one_of("interleave", _INTERLEAVES, self.interleave, TmaError.INTERLEAVE)
        dims = self.global_dim
        if isinstance(dims, str | bytes) or not isinstance(dims, Sequence):
            raise _refusal("global_dim", "be a list of integers", dims, TmaError.DIMENSION)
        fewest = self.fewest_dims if self.interleave == "NONE" else 3
        ranks = Domain(fewest, MAX_RANK)
        if not ranks.holds(len(dims)):
            rule = f"have from {ranks.low} to {ranks.high} entries"
            raise _refusal("global_dim", rule, dims, TmaError.RANK)
        step = _INTERLEAVES[self.interleave]
        addresses = Domain(0, (1 << self.address_bits) - 1)
        _require_integer("global_address", self.global_address, addresses, TmaError.BASE, step)
        sizes, strides = Domain(1, (1 << 32) - 1), Domain(0, (1 << 40) - 1)
        _require_integers("global_dim", dims, len(dims), sizes, TmaError.DIMENSION)
        rank = len(dims)
        _require_integers(
            "global_strides", self.global_strides, rank - 1, strides, TmaError.STRIDE, step
        )
        outer = zip(dims[1:], self.global_strides)
        end = self.global_address + dims[0] * self.format.bytes
        end += sum((size - 1) * stride for size, stride in outer)
        if end > 1 << self.address_bits:
            rule = f"be such that the tensor ends within {self.address_bits} bits"
            raise _refusal("global_address", rule, self.global_address, TmaError.BASE)
        steps = Domain(1, MAX_ELEMENT_STRIDE)
        if self.element_strides is not None:
            _require_integers(
                "element_strides", self.element_strides, rank, steps, TmaError.ELEMENT_STRIDE
            )

    @property
    def _formats(self) -> dict[str, ElementFormat]:
        """Codes of the formats of Tilewright, by the names of the formats."""
        return {each.name.removeprefix("FP8_"): each for each in ElementFormat}

    @property
    def format(self) -> ElementFormat:
        """Code of the data type."""
        if isinstance(self.data_type, Format):
            return ElementFormat.of(self.data_type)
        return _DATA_TYPES[self.data_type]

    def require_layout(
        self, row: tuple[str, int], swizzle: str, l2_promotion: str, oob_fill: str
    ) -> None:
        """Check the last four arguments; a row of a box is ``row[1]`` elements, as a field says."""
        field, count = row
        row_bytes, noun = count * self.format.bytes, f"{field} × {self.format.bytes}"
        if self.interleave == "NONE" and row_bytes % _ROW_STEP:
            rule = f"be a multiple of {_ROW_STEP} bytes"
            raise _refusal(field, rule, row_bytes, TmaError.ROW_BYTES, noun)
        _require_one_of("swizzle", _SWIZZLES, swizzle, TmaError.SWIZZLE)
        if self.interleave == "32B" and swizzle != "32B":
            raise _refusal("swizzle", "be 32B where interleave is 32B", swizzle, TmaError.SWIZZLE)
        if self.interleave != "NONE":
            raise _refusal("interleave", "be NONE", self.interleave, TmaError.INTERLEAVE)
        span = _SWIZZLES[swizzle].bytes
        if swizzle != "NONE" and row_bytes > span:
            rule = f"be at most {span} bytes with swizzle {swizzle}"
            raise _refusal(field, rule, row_bytes, TmaError.SWIZZLE, noun)
        _require_one_of("l2_promotion", _L2_PROMOTIONS, l2_promotion, None)
        _require_one_of("oob_fill", _FILLS, oob_fill, TmaError.OOB_FILL)
        if _FILLS[oob_fill] is OobFill.NAN and self.format not in NAN_FORMATS:
            names = ", ".join(name for name, code in _DATA_TYPES.items() if code in NAN_FORMATS)
            rule = f"be NONE where tensor_data_type is none of {names}"
            raise _refusal("oob_fill", rule, oob_fill, TmaError.OOB_FILL)


@dataclasses.dataclass(frozen=True)
class TensorMap:
    """Tensor in memory and the box that one command of a TMA unit moves, as 128 bytes.

    Made by :meth:`encode` and :meth:`encode_im2col`. ``bytes(tensor_map)`` are what the unit reads
    at an address that is a multiple of 128.

    Parameters
    ----------
    descriptor : Descriptor
        The fields of the bytes.
    """

    descriptor: Descriptor

    def __bytes__(self) -> bytes:
        return self.descriptor.pack()

    @classmethod
    def encode(
        cls,
        *,
        tensor_data_type: str | Format,
        global_address: int,
        global_dim: Sequence[int],
        global_strides: Sequence[int] = (),
        box_dim: Sequence[int],
        element_strides: Sequence[int] | None = None,
        interleave: Literal["NONE", "16B", "32B"] = "NONE",
        swizzle: Literal["NONE", "32B", "64B", "128B"] = "NONE",
        l2_promotion: Literal["NONE", "L2_64B", "L2_128B", "L2_256B"] = "NONE",
        oob_fill: Literal["NONE", "NAN_REQUEST_ZERO_FMA"] = "NONE",
        address_bits: int = 48,
    ) -> "TensorMap":
        """Tensor map of a tiled tensor, from the arguments of cuTensorMapEncodeTiled.

        Names and values are CUDA's without its prefixes; dimensions are innermost first, and the
        rank is their number. docs/tensor_map.md says what of CUDA's function is built.

        Parameters
        ----------
        tensor_data_type : str or Format
            ``UINT8``, ``UINT16``, ``UINT32``, ``INT32``, ``FLOAT16``, ``FLOAT32`` or ``BFLOAT16``,
            or a number format such as ``tw.bf16``.
        global_address : int
            Byte address of the tensor, a multiple of 16.
        global_dim : sequence of int
            Elements of 1 to 5 dimensions, 1 to 2**32 - 1 of each.
        global_strides : sequence of int
            Bytes from one index to the next in each dimension but the first: multiples of 16 below
            2**40.
        box_dim : sequence of int
            Elements of the box per dimension, 1 to 256. Those of dimension 0 are a multiple of
            16 bytes.
        element_strides : sequence of int
            Distance between the elements taken of each dimension, 1 to 8; all 1 by default. That
            of dimension 0 is ignored.
        interleave
            ``NONE``; ``16B`` and ``32B`` are refused.
        swizzle
            Order in the scratchpad; a row of the box is at most that many bytes.
        l2_promotion
            Ignored.
        oob_fill
            Fill of elements outside the tensor: zero, or NaN for floats of 16 and 32 bits.
        address_bits : int
            Width of an address of the unit that reads the bytes; the default is that of `TmaSizes`.

        Raises
        ------
        BadInputError
            "<field> must <rule>, not <value>", also as ``where``, ``rule`` and ``value``; ``kind``
            is the code with which the hardware would refuse it (``tma-stride``).
        """
        tensor = _Tensor(
            data_type=tensor_data_type,
            global_address=global_address,
            global_dim=global_dim,
            global_strides=global_strides,
            element_strides=element_strides,
            interleave=interleave,
            fewest_dims=1,
            address_bits=address_bits,
        )
        _require_integers("box_dim", box_dim, len(global_dim), Domain(1, MAX_BOX), TmaError.BOX)
        tensor.require_layout(("box_dim[0]", box_dim[0]), swizzle, l2_promotion, oob_fill)
        return cls(
            Descriptor(
                base=global_address,
                format=tensor.format,
                dims=global_dim,
                strides=global_strides,
                box=box_dim,
                element_strides=element_strides or (),
                swizzle=_SWIZZLES[swizzle],
                oob_fill=_FILLS[oob_fill],
            )
        )

    @classmethod
    def encode_im2col(
        cls,
        *,
        tensor_data_type: str | Format,
        global_address: int,
        global_dim: Sequence[int],
        global_strides: Sequence[int],
        pixel_box_lower_corner: Sequence[int],
        pixel_box_upper_corner: Sequence[int],
        channels_per_pixel: int,
        pixels_per_column: int,
        element_strides: Sequence[int] | None = None,
        interleave: str = "NONE",
        swizzle: str = "NONE",
        l2_promotion: str = "NONE",
        oob_fill: str = "NONE",
        address_bits: int = 48,
    ) -> "TensorMap":
        """Tensor map of the pixels under a filter, from the arguments of cuTensorMapEncodeIm2col.

        Parameters are those of CUDA's function, named and checked as in :meth:`encode`.

        Parameters
        ----------
        tensor_data_type, global_address, global_dim, global_strides, element_strides, interleave
            As of :meth:`encode`; 3 to 5 dimensions: channels, then W, H, D as far as they are
            there, and images.
        swizzle, l2_promotion, oob_fill, address_bits
            As of :meth:`encode`.
        pixel_box_lower_corner, pixel_box_upper_corner : sequence of int
            Corners of the bounding box, of W, then H, then D, relative to the first and to the last
            index; it has an index or more of each dimension.
        channels_per_pixel : int
            Channels loaded of each pixel, 1 to 256, a multiple of 16 bytes.
        pixels_per_column : int
            Pixels of a command, 1 to 1024.

        Raises
        ------
        BadInputError
            For the first argument that breaks a rule, as :meth:`encode`.
        """
        tensor = _Tensor(
            data_type=tensor_data_type,
            global_address=global_address,
            global_dim=global_dim,
            global_strides=global_strides,
            element_strides=element_strides,
            interleave=interleave,
            fewest_dims=3,
            address_bits=address_bits,
        )
        rank = len(global_dim)
        half = 1 << (CORNER_BITS[rank] - 1)
        for name, corner in (
            ("pixel_box_lower_corner", pixel_box_lower_corner),
            ("pixel_box_upper_corner", pixel_box_upper_corner),
        ):
            _require_integers(name, corner, rank - 2, Domain(-half, half - 1), TmaError.IM2COL)
        for name, value, domain in (
            ("channels_per_pixel", channels_per_pixel, CHANNELS_PER_PIXEL),
            ("pixels_per_column", pixels_per_column, PIXELS_PER_COLUMN),
        ):
            _require_integer(name, value, domain, TmaError.IM2COL)
        row = ("channels_per_pixel", channels_per_pixel)
        tensor.require_layout(row, swizzle, l2_promotion, oob_fill)
        sides = zip(global_dim[1:], pixel_box_lower_corner, pixel_box_upper_corner)
        for index, (size, low, high) in enumerate(sides):
            if size + high <= low:
                rule = f"be more than {low - size}, so that the bounding box is not empty"
                field = f"pixel_box_upper_corner[{index}]"
                raise _refusal(field, rule, high, TmaError.IM2COL)
        return cls(
            Descriptor(
                base=global_address,
                format=tensor.format,
                dims=global_dim,
                strides=global_strides,
                box=(),
                element_strides=element_strides or (),
                swizzle=_SWIZZLES[swizzle],
                oob_fill=_FILLS[oob_fill],
                mode=Mode.IM2COL,
                im2col=Im2colBox(
                    pixel_box_lower_corner,
                    pixel_box_upper_corner,
                    channels_per_pixel,
                    pixels_per_column,
                ),
            )
        )
