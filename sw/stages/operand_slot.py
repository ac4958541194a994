"""Slot of an operand's buffer: some rows of A, or columns of B, over some tiles of the sum."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

__all__ = ["OperandSlot"]


@dataclasses.dataclass(frozen=True)
class OperandSlot:
    """A slot of an operand: lines over some tiles of k, as they lie in memory and in the slot.

    A line is a row of A or a column of B. The matrix unit takes both operands as vectors of k, so
    an operand differs from the other, or from its transpose, only in the axis along which its
    tensor's rows run. Along k, a slot holds its lines one after the other and is read by rows.
    Across k, it holds blocks of `lanes` × `lanes` elements, each written by rows and read by
    columns: those of a tile one after the other, then those of the next tile.

    Parameters
    ----------
    lines : int
        Across k, a multiple of `lanes`.
    tiles : int
        Tiles of k.
    lanes : int
        Elements per vector, which are the terms per tile.
    along_k : bool
        Whether the tensor's rows run along k, as those of A[M, K] and of B[N, K] do.
    """

    lines: int
    tiles: int
    lanes: int
    along_k: bool

    @property
    def terms(self) -> int:
        """Elements of k."""
        return self.tiles * self.lanes

    @property
    def elements(self) -> int:
        """Elements of the slot."""
        return self.lines * self.terms

    @property
    def line_stride(self) -> int:
        """Elements from one line to the next; across k, between lines of a block."""
        return self.terms if self.along_k else 1

    @property
    def tile_stride(self) -> int:
        """Elements from one tile to the next."""
        return self.lanes if self.along_k else self.lines * self.lanes

    @property
    def block(self) -> int:
        """Elements of a block."""
        return self.lanes**2

    @property
    def alignment(self) -> int:
        """Vectors to a multiple of which a slot is aligned."""
        return 2 if self.along_k else self.lanes

    def distance(self, lines: int) -> int:
        """Elements over so many lines, which are whole blocks if the operand lies across k."""
        return lines * self.terms if self.along_k else lines // self.lanes * self.block

    def box(self, parts: int = 1) -> tuple[int, int]:
        """Elements per row and rows, in memory, of the part that one of several AGCUs loads."""
        if self.along_k:
            return self.terms, self.lines // parts
        return self.lines, self.terms // parts

    def halves(self, lines: int, terms: int) -> bool:
        """Whether two AGCUs can share the slot's rows in memory.

        Parameters
        ----------
        lines, terms : int
            Extents of the operand.
        """
        if self.along_k:
            return not self.lines % 2 and self.lines // 2 < lines
        if self.tiles > 1 and self.tiles % 2:
            return False
        return 1 <= self.terms // 2 < terms

    def strides(self, operand: str, line: str) -> Iterator[tuple[str, int, int]]:
        """What a walk of the slot steps over, with the number of steps and their elements.

        Parameters
        ----------
        operand, line : str
            Names of the operand and of its lines.
        """
        if self.along_k:
            yield f"{line} of {operand}", self.lines, self.line_stride
        else:
            yield f"tiles of {operand}", self.tiles, self.tile_stride
            yield f"blocks of {operand}", self.lines // self.lanes, self.block
