"""Driver of a PCU's matrix unit: operands to tile streams, result streams to a matrix."""

import dataclasses
from typing import Any

import numpy as np

from hw.arch.config import ChipConfig
from hw.arch.counters import ACTIVITIES, activity_layout
from hw.matrix.matrix_unit import MatrixUnit
from hw.numeric.division import ceil_div
from hw.numeric.formats import Format
from sim.drivers.products import Array, Bytes, Words, equal_blocks, padded, payloads

__all__ = ["MatrixTiling", "matrix_unit", "waits"]


def matrix_unit(config: ChipConfig) -> MatrixUnit:
    """The matrix unit inside a PCU of this configuration."""
    return MatrixUnit(
        rows=config.grid_rows,
        columns=config.grid_columns,
        formats=config.pcu.operands,
        latency=config.pcu.cell_latency,
        accumulator_rows=config.pcu.accumulator_rows,
    )


def waits(word: int) -> dict[str, int]:
    """Decode the port ``counters`` of a matrix unit to counters by name."""
    fields: Any = activity_layout().from_bits(word)
    return {name: int(fields[name]) for name in ACTIVITIES}


@dataclasses.dataclass(frozen=True)
class MatrixTiling:
    """Tiling of an M × K by K × N product for a matrix unit.

    Rows are divided into nearly equal blocks that fit an accumulator bank, columns into groups of
    C, the inner extent into tiles of one vector. The order is block, group, tile.

    Parameters
    ----------
    m, n, k : int
        Extents of the product.
    columns : int
        Columns C of the array; a vector has 4·C bytes.
    accumulator_rows : int
        Most rows per block.
    fmt : Format
        Format of the activations.
    out : Format
        Format of the results; of 16 bits, two rows per vector.
    packet_vectors : int
        Vectors of a result packet; 0: a pass is one packet.
    weight_fmt : Format or None
        Format of the weights if it differs.
    """

    m: int
    n: int
    k: int
    columns: int
    accumulator_rows: int
    fmt: Format
    out: Format
    packet_vectors: int = 0
    weight_fmt: Format | None = None

    @property
    def vector_bytes(self) -> int:
        """Bytes per vector."""
        return 4 * self.columns

    @property
    def elements(self) -> int:
        """Operand elements per vector, which is the inner extent of a tile."""
        return self.vector_bytes * 8 // self.fmt.bits

    @property
    def tiles(self) -> int:
        """Tiles along the inner extent."""
        return ceil_div(self.k, self.elements)

    @property
    def groups(self) -> int:
        """Groups of columns."""
        return ceil_div(self.n, self.columns)

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """Start and stop of each block of rows."""
        return equal_blocks(self.m, self.accumulator_rows)

    def _vectors(self, matrix: Array, lines: int) -> Bytes:
        """Lines × tiles × bytes of a matrix with the inner extent second, padded with +0."""
        whole = padded(matrix, (lines, self.tiles * self.elements))
        return whole.view(np.uint8).reshape(lines, self.tiles, self.vector_bytes)

    def activations(self, a: Array) -> Words:
        """Payloads of the activation stream."""
        vectors = self._vectors(a, self.m)
        parts = []
        for start, stop in self.blocks:
            rows = stop - start
            part = vectors[start:stop].transpose(1, 0, 2).reshape(-1, self.vector_bytes)
            index = np.arange(self.tiles * rows)
            marks = (index % rows == rows - 1) | (index == len(index) - 1) << 1
            parts.append(np.tile(payloads(part, marks), (self.groups, 1)))
        return np.concatenate(parts)

    def weights(self, b: Array, *, by_row: bool = False) -> Words:
        """Payloads of the weight stream: C vectors per tile, each a column or, by row, rows."""
        lines = self.groups * self.columns
        if by_row:
            whole = padded(b, (self.tiles * self.elements, lines))
            shape = (self.tiles, self.elements, self.groups, self.columns)
            vectors = np.ascontiguousarray(whole.reshape(shape).transpose(2, 0, 1, 3))
            vectors = vectors.view(np.uint8).reshape(-1, self.vector_bytes)
        else:
            vectors = self._vectors(np.ascontiguousarray(b.T), lines)
            vectors = vectors.reshape(self.groups, self.columns, self.tiles, self.vector_bytes)
            vectors = vectors.transpose(0, 2, 1, 3).reshape(-1, self.vector_bytes)
        last = np.arange(len(vectors)) % self.columns == self.columns - 1
        return np.tile(payloads(vectors, last), (len(self.blocks), 1))

    def _pass_vectors(self, rows: int) -> int:
        return ceil_div(rows, 2) if self.out.bits == 16 else rows

    @property
    def result_vectors(self) -> int:
        """Number of vectors of the result stream."""
        return self.groups * sum(self._pass_vectors(stop - start) for start, stop in self.blocks)

    def undisturbed_cycles(self, latency: int) -> int | None:
        """Cycles from the first operand to the last result if no stream stalls.

        The weight port gathers and loads the first tile (2·C + 3); a vector is taken every cycle;
        the last one crosses rows and columns (R·L + C + 2), and its packet is drained.

        Parameters
        ----------
        latency : int
            Registers on a cell's sum path.

        Returns
        -------
        int or None
            None if tiles or passes are too short to hide sum latency, weight loads or drain.
        """
        rows = 2 * self.columns
        lengths = [stop - start for start, stop in self.blocks]
        hidden = (rows - 1) * latency + 2 * self.columns + 4
        if min(lengths) < max(hidden, rows * latency + 2) or self.tiles < 2:
            return None
        vectors = self.groups * self.tiles * self.m
        return 3 * self.columns + rows * latency + 5 + vectors + lengths[-1]

    def result(self, words: Words) -> Array:
        """Assemble the M × N result from the payloads of the result stream.

        Raises
        ------
        RuntimeError
            If a `last` flag is not at the end of a packet, or a `final` flag of a pass.
        """
        dtype = self.out.dtype
        out = np.empty((self.m, self.groups * self.columns), dtype)
        marks, position = words[:, -1], 0
        for start, stop in self.blocks:
            for group in range(self.groups):
                count = self._pass_vectors(stop - start)
                vectors = slice(position, position + count)
                position += count
                expected = np.zeros(count, np.uint32)
                if self.packet_vectors:
                    expected[self.packet_vectors - 1 :: self.packet_vectors] = 1
                expected[-1] = 3
                if not np.array_equal(marks[vectors], expected):
                    raise RuntimeError(f"Pass of rows {start} to {stop} has its marks elsewhere")
                rows = np.ascontiguousarray(words[vectors, :-1]).view(dtype)
                rows = rows.reshape(-1, self.columns)[: stop - start]
                out[start:stop, group * self.columns : (group + 1) * self.columns] = rows
        return out[:, : self.n]
