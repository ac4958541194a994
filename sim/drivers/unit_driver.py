"""Driver of stand-alone matrix units: operands to streams, result streams to a matrix."""

from __future__ import annotations

import dataclasses

import numpy as np

from hw.arch.checks import require_int
from hw.arch.errors import BadInputError
from hw.array.dataflow import LANE_BITS, Dataflow
from hw.matrix.unit_config import UnitConfig
from hw.numeric.division import ceil_div
from hw.numeric.formats import Format
from hw.numeric.mx import BLOCK, MxMatrix
from sim.drivers.products import Array, Bytes, Words, equal_blocks, padded, payloads

__all__ = ["UnitTiling"]


@dataclasses.dataclass(frozen=True)
class UnitTiling:
    """Tiling of an M × K by K × N product for a stand-alone matrix unit.

    Parameters
    ----------
    config : UnitConfig
    m, n, k : int
        Extents of the product.
    formats : pair of Format
        Formats of activations and weights, of equal width.

    Raises
    ------
    BadInputError
        If a parameter is outside its domain.
    """

    config: UnitConfig
    m: int
    n: int
    k: int
    formats: tuple[Format, Format]

    def __post_init__(self) -> None:
        for noun in "mnk":
            require_int(f"Extent {noun.upper()}", getattr(self, noun), 1, 1 << 32)
        offered = self.config.array.formats
        alike = len({fmt.accumulator for fmt in self.formats if fmt in offered}) == 1
        if len(self.formats) != 2 or not alike or any(fmt not in offered for fmt in self.formats):
            names = ", ".join(fmt.name for fmt in offered)
            given = " and ".join(fmt.name for fmt in self.formats)
            raise BadInputError(
                f"Product formats must be two of {names} with one kind of sums, not {given}"
            )

    @property
    def elements(self) -> int:
        """Operands per lane: four of 4 bits, two of 8 bits, or one of 16 bits."""
        return LANE_BITS // self.formats[0].bits

    @property
    def _array(self) -> tuple[int, int, int]:
        array = self.config.array
        return array.rows, array.columns, array.latency

    @property
    def moving_extent(self) -> int:
        """Streaming vectors per stationary tile: M, or N if the activations are stationary."""
        return self.n if self.config.array.dataflow == Dataflow.IS else self.m

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """Start and stop of each block of streaming vectors, of nearly equal size."""
        most = self.config.accumulator_rows
        if self.tiles == 1:
            most = self.moving_extent
        return equal_blocks(self.moving_extent, most)

    @property
    def tiles(self) -> int:
        """Tiles along the inner extent."""
        return ceil_div(self.k, self._array[0] * self.elements)

    @property
    def groups(self) -> int:
        """Groups of columns of the array."""
        other = self.m if self.config.array.dataflow == Dataflow.IS else self.n
        return ceil_div(other, self._array[1])

    @property
    def lane_bytes(self) -> int:
        """Bytes per lane: operands, and their shared scale if the format has one."""
        return self.formats[0].lane_bits // 8

    def _lines(self, matrix: Array | MxMatrix, lines: int, inner: int) -> Bytes:
        """Lines × ``inner`` lanes × bytes of a matrix whose second axis is the inner extent."""
        elements = matrix.elements if isinstance(matrix, MxMatrix) else matrix
        whole = padded(elements, (lines, inner * self.elements))
        fmt = next(fmt for fmt in self.formats if fmt.dtype == elements.dtype)
        lanes = fmt.packed(whole).reshape(lines, inner, 2)
        if isinstance(matrix, MxMatrix):
            each = BLOCK // self.elements
            codes = padded(matrix.scales.view(np.uint8), (lines, ceil_div(inner, each)))
            scales = np.repeat(codes, each, axis=1)[:, :inner, np.newaxis]
            lanes = np.concatenate([lanes, scales], axis=2)
        return lanes

    @staticmethod
    def _require(noun: str, matrix: Array | MxMatrix, shape: tuple[int, int], fmt: Format) -> None:
        scaled = isinstance(matrix, MxMatrix)
        elements = matrix.elements if isinstance(matrix, MxMatrix) else matrix
        if elements.shape != shape or elements.dtype != fmt.dtype or scaled != fmt.has_scale:
            raise BadInputError(
                f"{noun} must be {shape[0]} x {shape[1]} of {fmt.name}, "
                f"not {' x '.join(map(str, elements.shape))} of {elements.dtype}"
                f"{' with scales' * scaled}"
            )

    def streams(self, a: Array | MxMatrix, b: Array | MxMatrix) -> tuple[Words, Words]:
        """Payloads of the activation stream and of the weight stream.

        Raises
        ------
        BadInputError
            If a matrix has another shape or format.
        """
        a_format, b_format = self.formats
        self._require("Activations", a, (self.m, self.k), a_format)
        # A microscaled operand is given by its columns.
        b_shape = (self.n, self.k) if b_format.has_scale else (self.k, self.n)
        self._require("Weights", b, b_shape, b_format)
        columns = b if isinstance(b, MxMatrix) else np.ascontiguousarray(b.T)
        if self.config.array.dataflow == Dataflow.OS:
            return self._output_streams(a, columns)
        if self.config.array.dataflow == Dataflow.WS:
            return self._moving(a), self._staying(columns)
        moving = self._moving(columns)
        return self._staying(a), moving

    def _moving(self, matrix: Array | MxMatrix) -> Words:
        rows = self._array[0]
        lanes = self._lines(matrix, self.moving_extent, self.tiles * rows)
        vectors = lanes.reshape(self.moving_extent, self.tiles, rows * self.lane_bytes)
        parts = []
        for start, stop in self.blocks:
            part = vectors[start:stop].transpose(1, 0, 2)
            marks = np.zeros(part.shape[:2], np.uint8)
            marks[:, -1] |= 1
            marks[1:] |= 2
            marks[-1] |= 4
            words = payloads(part.reshape(-1, rows * self.lane_bytes), marks.reshape(-1))
            parts.append(np.tile(words, (self.groups, 1)))
        return np.concatenate(parts)

    def _staying(self, matrix: Array | MxMatrix) -> Words:
        rows, columns, _ = self._array
        lanes = self._lines(matrix, self.groups * columns, self.tiles * rows)
        vectors = lanes.reshape(self.groups, columns, self.tiles, rows, self.lane_bytes)
        vectors = vectors.transpose(0, 2, 3, 1, 4).reshape(-1, columns * self.lane_bytes)
        return np.tile(payloads(vectors), (len(self.blocks), 1))

    @property
    def steps(self) -> int:
        """Steps per tile of an output-stationary array."""
        return ceil_div(self.k, self.elements)

    @property
    def output_blocks(self) -> int:
        """Blocks of R·L rows of an output-stationary array."""
        rows, _, latency = self._array
        return ceil_div(self.m, rows * latency)

    def _output_streams(self, a: Array | MxMatrix, b: Array | MxMatrix) -> tuple[Words, Words]:
        rows, columns, latency = self._array
        lanes = self._lines(a, self.output_blocks * rows * latency, self.steps)
        # Row i·L + j of a block is sum j of lane i.
        vectors = lanes.reshape(self.output_blocks, rows, latency, self.steps, self.lane_bytes)
        vectors = vectors.transpose(0, 3, 2, 1, 4)
        marks = np.zeros(vectors.shape[:3], np.uint8)
        marks[:, -1] = 1
        words = payloads(vectors.reshape(-1, rows * self.lane_bytes), marks.reshape(-1))
        block = words.reshape(self.output_blocks, 1, -1, words.shape[1])
        activations = np.broadcast_to(block, (self.output_blocks, self.groups, *block.shape[2:]))
        lanes = self._lines(b, self.groups * columns, self.steps)
        vectors = lanes.reshape(self.groups, columns, self.steps, -1)
        vectors = vectors.transpose(0, 2, 1, 3)
        weights = payloads(vectors.reshape(-1, columns * self.lane_bytes))
        return (
            activations.reshape(-1, words.shape[1]),
            np.tile(weights, (self.output_blocks, 1)),
        )

    @property
    def packets(self) -> list[int]:
        """Rows of each result packet."""
        rows, _, latency = self._array
        if self.config.array.dataflow == Dataflow.OS:
            return [rows * latency] * (self.output_blocks * self.groups)
        return [stop - start for start, stop in self.blocks for _ in range(self.groups)]

    def result(self, words: Words) -> Array:
        """Assemble the M × N result from the payloads of the result stream.

        Raises
        ------
        RuntimeError
            If a `last` or `final` flag is not at the end of a packet.
        """
        columns = self._array[1]
        out = self.config.out or self.formats[0].accumulator
        data = np.ascontiguousarray(words).view(np.uint8)
        bits = out.bits * columns
        marks = data[:, bits // 8] & 1
        lasts = np.zeros(len(words), np.uint8)
        lasts[np.cumsum(self.packets) - 1] = 1
        if not np.array_equal(marks, lasts):
            raise RuntimeError("A packet of results has its mark elsewhere")
        rows = np.ascontiguousarray(data[:, : bits // 8]).view(out.dtype)
        if self.config.array.dataflow == Dataflow.OS:
            tiles = rows.reshape(self.output_blocks, self.groups, -1, columns)
            return tiles.transpose(0, 2, 1, 3).reshape(-1, self.groups * columns)[
                : self.m, : self.n
            ]
        parts, position = [], 0
        for start, stop in self.blocks:
            count = (stop - start) * self.groups
            part = rows[position : position + count].reshape(self.groups, stop - start, columns)
            parts.append(part.transpose(1, 0, 2).reshape(stop - start, -1))
            position += count
        product = np.concatenate(parts)
        if self.config.array.dataflow == Dataflow.IS:
            product = product.T
        return product[: self.m, : self.n]
