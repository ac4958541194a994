"""Arrays in memory: shape, format, and how rows lie."""

from __future__ import annotations

import dataclasses
import math

from hw.numeric.formats import Format

__all__ = ["ROW_ALIGNMENT_BYTES", "ArraySpec"]

#: Rows of arrays in memory are padded to a multiple of this.
ROW_ALIGNMENT_BYTES = 16


@dataclasses.dataclass(frozen=True)
class ArraySpec:
    """An argument of a kernel as it lies in memory: row-major, rows padded to 16 bytes.

    Parameters
    ----------
    name : str
        The kernel's name of it.
    shape : tuple of int
        Extents, outermost first.
    format : Format
    output : bool
        The kernel writes it.
    """

    name: str
    shape: tuple[int, ...]
    format: Format
    output: bool = False

    @property
    def row_bytes(self) -> int:
        """Bytes of a row that hold elements."""
        return self.shape[-1] * self.format.bits // 8

    @property
    def pitch(self) -> int:
        """Bytes from one row to the next."""
        return -(-self.row_bytes // ROW_ALIGNMENT_BYTES) * ROW_ALIGNMENT_BYTES

    @property
    def bytes(self) -> int:
        """Bytes of the whole array, padding included."""
        return math.prod(self.shape[:-1]) * self.pitch
