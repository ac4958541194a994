"""Box transfers of tensors: loads with zeros or NaN outside the tensor, stores clipped to it."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from hw.arch.descriptor import Descriptor
from hw.arch.error_codes import LaunchError, TmaError
from hw.numeric.division import ceil_div
from sim.emulator.emulator_error import LaunchFault
from sw.prove.memory_order import box_extents, reach, rectangles

__all__ = ["BoxStream"]

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class BoxStream:
    """The boxes of one AGCU stream, in order.

    Parameters
    ----------
    descriptor : Descriptor
    base : int
        Base address of the tensor, launch argument added.
    points : (boxes, 5) array of int
        Coordinates of each box.
    beat_bytes : int
        Bytes per vector, which is one beat.
    address_bits : int
    unit : int
        Unit number of the AGCU.
    """

    descriptor: Descriptor
    base: int
    points: Ints
    beat_bytes: int
    address_bits: int
    unit: int

    @property
    def _shape(self) -> tuple[int, ...]:
        """Extents of a box, outermost first, the innermost in bytes."""
        box = self.descriptor.box
        return (*box[:0:-1], box[0] * self.descriptor.format.bytes)

    @property
    def vectors(self) -> int:
        """Vectors per box."""
        return self.descriptor.box_bytes // self.beat_bytes

    def check(self) -> None:
        """Check the descriptor by the rules of the TMA engine.

        Raises
        ------
        LaunchFault
            With the error code of the engine.
        """
        if self.base % 16 or self.base >> self.address_bits:
            raise LaunchFault(LaunchError.UNIT, int(TmaError.BASE.value), self.unit)
        if self.descriptor.row_bytes % self.beat_bytes:
            raise LaunchFault(LaunchError.UNIT, int(TmaError.ROW_BYTES.value), self.unit)

    @property
    def _rectangles(self) -> list[BoxStream]:
        """The same boxes of each tensor of equal rows that the tensor consists of."""
        return [
            dataclasses.replace(self, descriptor=descriptor, base=base, points=points)
            for descriptor, base, points in rectangles(self.descriptor, self.base, self.points)
        ]

    def _inside(self) -> tuple[Ints, Ints]:
        """Range of each box inside a tensor of equal rows, per dimension."""
        return box_extents(self.descriptor, self.points)

    def _strides(self) -> Ints:
        return np.array([self.descriptor.format.bytes, *self.descriptor.strides], np.int64)

    def reach(self) -> tuple[int, int]:
        """Address range accessed by all boxes; (0, 0) if none is accessed."""
        return reach(self.descriptor, self.base, self.points)

    def _require_memory(self, memory: Bytes, code: TmaError) -> None:
        if self.reach()[1] > len(memory):
            raise LaunchFault(LaunchError.UNIT, int(code.value), self.unit)

    def _tensor(self, memory: Bytes) -> Bytes:
        """View of the tensor in memory, outermost dimension first, the innermost in bytes."""
        descriptor = self.descriptor
        shape = (*descriptor.dims[:0:-1], descriptor.dims[0] * descriptor.format.bytes)
        strides = (*descriptor.strides[::-1], 1)
        return np.lib.stride_tricks.as_strided(memory[self.base :], shape, strides)

    def _pieces(self) -> list[tuple[int, tuple[slice, ...], tuple[slice, ...]]]:
        """Overlap of each box with the tensor: its number, slices of the box, of the tensor."""
        low, high = self._inside()
        some = np.flatnonzero((high > low).all(axis=1))
        scale = np.ones(self.descriptor.rank, np.int64)
        scale[0] = self.descriptor.format.bytes
        points = self.points[:, : self.descriptor.rank]
        boxes = zip(
            some.tolist(),
            (low * scale)[some, ::-1].tolist(),
            (high * scale)[some, ::-1].tolist(),
            (points * scale)[some, ::-1].tolist(),
            strict=True,
        )
        return [
            (
                number,
                tuple(slice(a, b) for a, b in zip(first, end)),
                tuple(slice(p + a, p + b) for p, a, b in zip(point, first, end)),
            )
            for number, first, end, point in boxes
        ]

    def load(self, memory: Bytes) -> Bytes:
        """Load all boxes as vectors.

        Raises
        ------
        LaunchFault
            If an element lies beyond the end of memory.
        """
        self._require_memory(memory, TmaError.READ_DECERR)
        fill = np.frombuffer(self.descriptor.fill_element, np.uint8)
        boxes = np.empty((len(self.points), *self._shape), np.uint8)
        boxes.reshape(-1, fill.size)[:] = fill
        for each in self._rectangles:
            tensor = each._tensor(memory)
            for number, inner, outer in each._pieces():
                boxes[number][inner] = tensor[outer]
        return boxes.reshape(-1, self.beat_bytes)

    def store(self, memory: Bytes, vectors: Bytes) -> None:
        """Store boxes in order, so that later ones overwrite earlier ones.

        Raises
        ------
        LaunchFault
            If an element lies beyond the end of memory.
        """
        self._require_memory(memory, TmaError.WRITE_DECERR)
        boxes = vectors.reshape(-1, *self._shape)
        for each in self._rectangles:
            tensor = each._tensor(memory)
            for number, inner, outer in each._pieces():
                tensor[outer] = boxes[number][inner]

    def bytes_inside(self) -> int:
        """Total bytes of the boxes inside the tensor."""
        inside = [each._inside() for each in self._rectangles]
        elements = sum(int((high - low).prod(axis=1).sum()) for low, high in inside)
        return elements * self.descriptor.format.bytes

    def beats(self) -> int:
        """Total beats that contain at least one byte of a row."""
        return sum(each._beats() for each in self._rectangles)

    def _beats(self) -> int:
        """Beats of a tensor of equal rows."""
        low, high = self._inside()
        points = self.points[:, : self.descriptor.rank]
        size, beat = self.descriptor.format.bytes, self.beat_bytes
        strides = self._strides()
        rows = (high - low)[:, 1:].prod(axis=1) * (high > low)[:, 0]
        if not (strides[1:] % beat).any():
            start = self.base + (points[:, 0] + low[:, 0]) * size
            end = self.base + (points[:, 0] + high[:, 0]) * size
            return int(((ceil_div(end, beat) - start // beat) * rows).sum())
        total = 0
        for at in np.flatnonzero(rows).tolist():
            address = np.array([self.base + (points[at, 0] + low[at, 0]) * size])
            for axis in range(1, self.descriptor.rank):
                steps = (points[at, axis] + np.arange(low[at, axis], high[at, axis])) * strides[
                    axis
                ]
                address = (address[:, np.newaxis] + steps).ravel()
            end = address + (high[at, 0] - low[at, 0]) * size
            total += int((ceil_div(end, beat) - address // beat).sum())
        return total
