"""Number formats: widths, numpy types and bit patterns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from hw.arch.errors import BadInputError

__all__ = [
    "LANE_BITS",
    "SCALE_BITS",
    "Format",
    "bf16",
    "e2m1",
    "e4m3",
    "e5m2",
    "fp16",
    "fp32",
    "int4",
    "int8",
    "int32",
    "mxe2m1",
    "mxe4m3",
    "mxe5m2",
    "named",
]

#: Width of a lane of an array: one 16-bit, two 8-bit or four 4-bit operands.
LANE_BITS = 16

#: Width of the scale that a lane of a microscaled format carries in addition.
SCALE_BITS = 8


@lru_cache
def _width(dtype: np.dtype[Any]) -> int:
    """Bits of a value, which may be fewer than those of its storage type."""
    # The stubs of these `finfo` and `iinfo` have no types.
    library: Any = ml_dtypes
    try:
        return int(library.iinfo(dtype).bits)
    except ValueError:
        return int(library.finfo(dtype).bits)


@dataclass(frozen=True)
class Format:
    """Number format of an operand, an accumulator or a stored element.

    A format is two's complement if ``exponent_bits`` is 0, otherwise IEEE 754 binary interchange:
    sign, biased exponent, fraction, with subnormals, infinities and NaN. Without infinities it
    follows OCP's E4M3: the highest exponent is an ordinary one, and only the code of all ones is
    NaN. Without NaN, as OCP's E2M1, that code is a number too.

    Parameters
    ----------
    name : str
        Key in :data:`named` and the name users write.
    dtype : numpy.dtype
        Element type of an array of such values; one of 4 bits lies in the low half of a byte.
    exponent_bits : int
        Width of the exponent field, 0 for an integer format.
    fraction_bits : int
        Width of the fraction field, 0 for an integer format.
    has_infinity : bool
        Whether a float has infinities.
    has_nan : bool
        Whether a float has NaN.
    has_scale : bool
        Whether operands share scales (:mod:`hw.numeric.mx`): each lane carries its block's scale.
    """

    name: str
    dtype: np.dtype[Any]
    exponent_bits: int = 0
    fraction_bits: int = 0
    has_infinity: bool = True
    has_nan: bool = True
    has_scale: bool = False

    def __post_init__(self) -> None:
        if self.is_float and self.bits != 1 + self.exponent_bits + self.fraction_bits:
            raise BadInputError(
                f"Fields of format {self.name} must fill its {self.bits} bits, not 1 + "
                f"{self.exponent_bits} + {self.fraction_bits}"
            )

    @property
    def bits(self) -> int:
        """Width of a value."""
        return _width(self.dtype)

    @property
    def is_float(self) -> bool:
        """Whether the format is a floating-point format."""
        return self.exponent_bits > 0

    @property
    def significand_bits(self) -> int:
        """Precision: the fraction and the hidden bit of a float, every bit of an integer."""
        return self.fraction_bits + 1 if self.is_float else self.bits

    @property
    def bias(self) -> int:
        """Exponent field of 1.0; 0 for an integer format."""
        return (1 << (self.exponent_bits - 1)) - 1 if self.is_float else 0

    @property
    def products_per_cycle(self) -> int:
        """Products per cell and cycle: as many as a lane has operands."""
        return max(1, LANE_BITS // self.bits)

    @property
    def lane_bits(self) -> int:
        """Width of a lane: operands, lowest first, and above them the scale they share."""
        return LANE_BITS + SCALE_BITS * self.has_scale

    @property
    def largest(self) -> int:
        """Bits of the largest finite value, without a sign."""
        if not self.is_float:
            return (1 << (self.bits - 1)) - 1
        all_ones = (1 << (self.bits - 1)) - 1
        return all_ones - (1 << self.fraction_bits if self.has_infinity else int(self.has_nan))

    @property
    def infinity(self) -> int:
        """Bits of positive infinity.

        Raises
        ------
        BadInputError
            The format has none.
        """
        if not self.is_float or not self.has_infinity:
            raise BadInputError(f"Format of an infinity must have one, not be {self.name}")
        return self.largest + 1

    @property
    def canonical_nan(self) -> int:
        """Bits of the only NaN the hardware produces: positive, quiet, no payload.

        Raises
        ------
        BadInputError
            The format has none.
        """
        if not self.is_float:
            raise BadInputError(f"Format of a NaN must be a float, not {self.name}")
        if not self.has_nan:
            raise BadInputError(f"Format of a NaN must have one, not be {self.name}")
        if not self.has_infinity:
            return self.largest + 1
        return ((1 << (self.exponent_bits + 1)) - 1) << (self.fraction_bits - 1)

    @property
    def accumulator(self) -> Format:
        """Format in which products of this format are summed."""
        return fp32 if self.is_float else int32

    def bits_of(self, values: npt.ArrayLike) -> npt.NDArray[Any]:
        """Reinterpret values as unsigned integers of the same width.

        Raises
        ------
        BadInputError
            The array is of another type (no conversion is made: it could round).
        """
        array = np.asarray(values)
        if array.dtype != self.dtype:
            raise BadInputError(f"Array of {self.name} must be of {self.dtype}, not {array.dtype}")
        bits = array.view(f"u{self.dtype.itemsize}")
        return bits if self.bits >= 8 else bits & (1 << self.bits) - 1

    def packed(self, values: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        """Bytes of values as in memory and in lanes, the first element of the last axis lowest.

        Raises
        ------
        BadInputError
            The array is of another type, or the last axis does not fill whole bytes.
        """
        bits = np.ascontiguousarray(self.bits_of(values))
        if self.bits >= 8:
            return bits.view(np.uint8)
        each = 8 // self.bits
        if bits.shape[-1] % each:
            raise BadInputError(
                f"Last axis of {self.name} must be a multiple of {each}, not {bits.shape[-1]}"
            )
        places = np.arange(each, dtype=np.uint8) * self.bits
        groups = bits.reshape(*bits.shape[:-1], -1, each)
        joined: npt.NDArray[np.uint8] = np.bitwise_or.reduce(groups << places, -1)
        return joined

    def from_bits(self, bits: npt.ArrayLike) -> npt.NDArray[Any]:
        """Reinterpret unsigned integers, which must fit the width, as values.

        Raises
        ------
        BadInputError
            An integer is negative or wider than the format.
        """
        array = np.asarray(bits)
        if array.size and not 0 <= int(array.min()) <= int(array.max()) < 1 << self.bits:
            raise BadInputError(
                f"Bits of {self.name} must be in range 0 to {(1 << self.bits) - 1}, "
                f"not {int(array.min())} to {int(array.max())}"
            )
        return array.astype(f"u{self.dtype.itemsize}").view(self.dtype)


bf16 = Format("bf16", np.dtype(ml_dtypes.bfloat16), exponent_bits=8, fraction_bits=7)
fp16 = Format("fp16", np.dtype(np.float16), exponent_bits=5, fraction_bits=10)
e4m3 = Format(
    "e4m3",
    np.dtype(ml_dtypes.float8_e4m3fn),
    exponent_bits=4,
    fraction_bits=3,
    has_infinity=False,
)
e5m2 = Format("e5m2", np.dtype(ml_dtypes.float8_e5m2), exponent_bits=5, fraction_bits=2)
e2m1 = Format(
    "e2m1",
    np.dtype(ml_dtypes.float4_e2m1fn),
    exponent_bits=2,
    fraction_bits=1,
    has_infinity=False,
    has_nan=False,
)
#: OCP's MXFP8 and MXFP4: elements of those formats with shared scales.
mxe4m3 = replace(e4m3, name="mxe4m3", has_scale=True)
mxe5m2 = replace(e5m2, name="mxe5m2", has_scale=True)
mxe2m1 = replace(e2m1, name="mxe2m1", has_scale=True)
int8 = Format("int8", np.dtype(np.int8))
int4 = Format("int4", np.dtype(ml_dtypes.int4))
fp32 = Format("fp32", np.dtype(np.float32), exponent_bits=8, fraction_bits=23)
int32 = Format("int32", np.dtype(np.int32))

#: Every format, by name.
named: Mapping[str, Format] = MappingProxyType(
    {
        format_.name: format_
        for format_ in (bf16, int8, fp32, int32, fp16, e4m3, e5m2, e2m1, int4)
        + (mxe4m3, mxe5m2, mxe2m1)
    }
)
