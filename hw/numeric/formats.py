"""Number formats: one entry has a format's widths, numpy type and values; the rest follows.

numpy is imported on first use, so that help texts can name the formats without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hw.arch.errors import BadInputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = [
    "LANE_BITS",
    "OPERANDS",
    "PAIRS",
    "SCALE_BITS",
    "Format",
    "bf16",
    "e2m1",
    "e4m3",
    "e5m2",
    "format_table",
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
    numpy_name : str
        Element type of an array of such values, of ml_dtypes or numpy.
    bits : int
        Width of a value.
    exponent_bits : int
        Width of the exponent field, 0 for an integer format.
    has_infinity : bool
        Whether a float has infinities.
    has_nan : bool
        Whether a float has NaN.
    has_scale : bool
        Whether operands share scales (:mod:`hw.numeric.mx`): each lane carries its block's scale.
    """

    name: str
    numpy_name: str
    bits: int
    exponent_bits: int = 0
    has_infinity: bool = True
    has_nan: bool = True
    has_scale: bool = False

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Element type of an array; a value of 4 bits lies in the low half of a byte."""
        import ml_dtypes
        import numpy as np

        return np.dtype(getattr(ml_dtypes, self.numpy_name, self.numpy_name))

    @property
    def fraction_bits(self) -> int:
        """Width of the fraction field, 0 for an integer format."""
        return self.bits - 1 - self.exponent_bits if self.is_float else 0

    @property
    def is_stored(self) -> bool:
        """Whether results can have this format: values of whole bytes, without a scale."""
        return self.bits >= 8 and not self.has_scale

    @property
    def element(self) -> Format:
        """The format of an element, without a scale."""
        return next(each for each in named.values() if self in (each, each.scaled))

    @property
    def scaled(self) -> Format:
        """The microscaled format of such elements."""
        return replace(self, name=f"mx{self.name}", has_scale=True)

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
    def fill_nan(self) -> int | None:
        """Bits of the NaN that fills boxes outside a tensor: positive, every other bit set.

        As an operand of a product it counts as +0. No result is this NaN. Floats of less than 16
        bits, and integers, have none.
        """
        return (1 << (self.bits - 1)) - 1 if self.is_float and self.bits >= LANE_BITS else None

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
        import numpy as np

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
        import numpy as np

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
        import numpy as np

        array = np.asarray(bits)
        if array.size and not 0 <= int(array.min()) <= int(array.max()) < 1 << self.bits:
            raise BadInputError(
                f"Bits of {self.name} must be in range 0 to {(1 << self.bits) - 1}, "
                f"not {int(array.min())} to {int(array.max())}"
            )
        return array.astype(f"u{self.dtype.itemsize}").view(self.dtype)


bf16 = Format("bf16", "bfloat16", 16, exponent_bits=8)
fp16 = Format("fp16", "float16", 16, exponent_bits=5)
int8 = Format("int8", "int8", 8)
e4m3 = Format("e4m3", "float8_e4m3fn", 8, exponent_bits=4, has_infinity=False)
e5m2 = Format("e5m2", "float8_e5m2", 8, exponent_bits=5)
e2m1 = Format("e2m1", "float4_e2m1fn", 4, exponent_bits=2, has_infinity=False, has_nan=False)
int4 = Format("int4", "int4", 4)
#: OCP's MXFP8 and MXFP4: elements of those formats with shared scales.
mxe4m3, mxe5m2, mxe2m1 = e4m3.scaled, e5m2.scaled, e2m1.scaled
fp32 = Format("fp32", "float32", 32, exponent_bits=8)
int32 = Format("int32", "int32", 32)

#: Every format, by name.
named: Mapping[str, Format] = MappingProxyType(
    {each.name: each for each in tuple(globals().values()) if isinstance(each, Format)}
)


def _multiplies(format_: Format) -> bool:
    """Whether a cell has a multiplier for operands of a format, whose products are exact in fp32.

    Those are integers of 8 and 4 bits, floats of 16 and 8 bits, and of 4 bits with 2 of exponent.
    """
    if not format_.is_float:
        return format_.bits in (4, 8)
    if format_.bits == 4:
        return format_.exponent_bits == 2
    return format_.bits in (8, 16) and 2 * format_.significand_bits <= fp32.significand_bits


#: Formats of operands, in the order of module names and of the mode input of a cell.
OPERANDS = tuple(each for each in named.values() if _multiplies(each))
#: Pairs of formats that one cell can have: bf16 and int8, and floats of a width that is recoded.
PAIRS = (
    (bf16, int8),
    *(
        (first, second)
        for first, second in combinations(OPERANDS, 2)
        if first.is_float and second.is_float
        if first.bits == second.bits > 4 and first.has_scale == second.has_scale
    ),
)


def format_table() -> str:
    """Markdown table of the formats, as in the documentation."""
    lines = [
        "| name | bits | encoding | largest | smallest | sums in | products per cycle |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in (each for each in named.values() if not each.has_scale):
        encoding, smallest, largest = "two's complement", "1", f"{each.largest:,}"
        if each.is_float:
            infinity = "infinities" if each.has_infinity else "no infinity"
            nan = "NaN" if each.has_nan else "no NaN"
            encoding = f"1 sign, {each.exponent_bits} exponent, {each.fraction_bits} fraction bits"
            encoding += f"; {infinity}, {nan}"
            power = (each.largest >> each.fraction_bits) - each.bias - each.fraction_bits
            fraction = each.largest & (1 << each.fraction_bits) - 1 | 1 << each.fraction_bits
            number = fraction * 2.0**power
            largest = f"{number:,.0f}" if number < 1e6 else f"{fraction} · 2^{power}"
            smallest = f"2^{1 - each.bias - each.fraction_bits}"
        rate = f"`{each.accumulator.name}` | {each.products_per_cycle}"
        lines.append(
            f"| `{each.name}` | {each.bits} | {encoding} | {largest} | {smallest} | "
            f"{rate if each in OPERANDS else ' | '} |"
        )
    return "\n".join(lines) + "\n"
