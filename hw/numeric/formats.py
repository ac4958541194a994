"""Number formats: their widths, their numpy types and their bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

__all__ = ["Format", "bf16", "fp32", "int8", "int32", "named"]


@dataclass(frozen=True)
class Format:
    """Number format of an operand, an accumulator or a stored element.

    A format is two's complement if ``exponent_bits`` is 0, else IEEE 754 binary interchange:
    sign, biased exponent, fraction, with subnormals, infinities and NaN.

    Parameters
    ----------
    name : str
        Key in :data:`named` and the name users write.
    dtype : numpy.dtype
        Element type of an array of such values.
    exponent_bits : int
        Width of the exponent field, 0 for an integer format.
    fraction_bits : int
        Width of the fraction field, 0 for an integer format.
    """

    name: str
    dtype: np.dtype[Any]
    exponent_bits: int = 0
    fraction_bits: int = 0

    def __post_init__(self) -> None:
        if self.is_float and self.bits != 1 + self.exponent_bits + self.fraction_bits:
            raise ValueError(
                f"Fields of format {self.name} must fill its {self.bits} bits, not 1 + "
                f"{self.exponent_bits} + {self.fraction_bits}"
            )

    @property
    def bits(self) -> int:
        """Width of a value."""
        return self.dtype.itemsize * 8

    @property
    def is_float(self) -> bool:
        """Whether values have an exponent."""
        return self.exponent_bits > 0

    @property
    def significand_bits(self) -> int:
        """Precision: the fraction and the hidden bit of a float, every bit of an integer."""
        return self.fraction_bits + 1 if self.is_float else self.bits

    @property
    def bias(self) -> int:
        """Exponent field of 1.0, 0 for an integer format."""
        return (1 << (self.exponent_bits - 1)) - 1 if self.is_float else 0

    @property
    def canonical_nan(self) -> int:
        """Bits of the only NaN the hardware produces: positive, quiet, no payload.

        Raises
        ------
        TypeError
            The format is an integer format.
        """
        if not self.is_float:
            raise TypeError(f"Format of a NaN must be a float, not {self.name}")
        return ((1 << (self.exponent_bits + 1)) - 1) << (self.fraction_bits - 1)

    @property
    def accumulator(self) -> Format:
        """Format in which products of this format are summed."""
        return fp32 if self.is_float else int32

    def bits_of(self, values: npt.ArrayLike) -> npt.NDArray[Any]:
        """Reinterpret values as unsigned integers of the same width.

        Raises
        ------
        TypeError
            The array is of another type (no conversion is made: it could round).
        """
        array = np.asarray(values)
        if array.dtype != self.dtype:
            raise TypeError(f"Array of {self.name} must be of {self.dtype}, not {array.dtype}")
        return array.view(f"u{self.bits // 8}")

    def from_bits(self, bits: npt.ArrayLike) -> npt.NDArray[Any]:
        """Reinterpret unsigned integers, which must fit the width, as values.

        Raises
        ------
        ValueError
            An integer is negative or wider than the format.
        """
        array = np.asarray(bits)
        if array.size and not 0 <= int(array.min()) <= int(array.max()) < 1 << self.bits:
            raise ValueError(
                f"Bits of {self.name} must be in range 0 to {(1 << self.bits) - 1}, "
                f"not {int(array.min())} to {int(array.max())}"
            )
        return array.astype(f"u{self.bits // 8}").view(self.dtype)


bf16 = Format("bf16", np.dtype(ml_dtypes.bfloat16), exponent_bits=8, fraction_bits=7)
int8 = Format("int8", np.dtype(np.int8))
fp32 = Format("fp32", np.dtype(np.float32), exponent_bits=8, fraction_bits=23)
int32 = Format("int32", np.dtype(np.int32))

#: Every format, by name.
named: Mapping[str, Format] = MappingProxyType(
    {format_.name: format_ for format_ in (bf16, int8, fp32, int32)}
)
