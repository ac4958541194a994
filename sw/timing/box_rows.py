"""Rows of a box in memory: the beats that each one spans, and the cycles of its vectors."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hw.arch.agcu import AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram
from hw.arch.descriptor import MAX_BOX, Descriptor
from sw.prove.unrolled_loops import box_owners, box_points

__all__ = ["BoxRows", "Row"]

Ints = npt.NDArray[np.int64]


class Row(NamedTuple):
    """A row of a box.

    Parameters
    ----------
    cycles : int
        Cycles of its vectors: one each, and one more if it begins within a beat.
    bursts : tuple of int
        Beats of its bursts; none if it lies outside the tensor.
    """

    cycles: int
    bursts: tuple[int, ...]


class BoxRows:
    """Boxes of an issuer, by number: rank, vectors of a row, rows.

    Parameters
    ----------
    agcu : AgcuProgram
    issuer : IssuerProgram
        One of its issuers.
    arguments : tuple of int
        Launch arguments, which are added to the bases of descriptors.
    beat_bytes : int
    burst_beats : int
        No burst crosses a multiple of so many beats.
    """

    def __init__(
        self,
        agcu: AgcuProgram,
        issuer: IssuerProgram,
        arguments: tuple[int, ...],
        beat_bytes: int,
        burst_beats: int,
    ) -> None:
        self._agcu, self._arguments = agcu, arguments
        self._beat, self._burst = beat_bytes, burst_beats
        self._owners: list[int] = box_owners(issuer).tolist()
        self._programs = issuer.programs
        self._points = np.concatenate([box_points(program) for program in issuer.programs])
        self._known: dict[tuple[object, ...], tuple[Row, ...]] = {}

    def _address(self, descriptor: Descriptor, argument: int, point: Any) -> Any:
        """Address of the element at a point, or of those at many."""
        base = descriptor.base
        base += self._arguments[argument] if argument < len(self._arguments) else 0
        steps = (descriptor.format.bytes, *descriptor.strides)
        return base + sum(at * step for at, step in zip(point, steps, strict=False))

    def places(self) -> Ints:
        """Per box, a number that tells boxes apart which differ in cycles."""
        found = np.zeros(len(self._owners), np.int64)
        owners = np.array(self._owners)
        for number, program in enumerate(self._programs):
            mine = np.flatnonzero(owners == number)
            descriptor, argument = self._agcu.descriptors[program.descriptor]
            points = self._points[mine].T
            value = self._address(descriptor, argument, points) % self._beat
            for at, box, dim in zip(points, descriptor.box, descriptor.dims, strict=False):
                low, high = np.minimum(np.maximum(-at, 0), box), np.clip(dim - at, 0, box)
                value = (value * (box + 1) + low) * (box + 1) + high
            for each in _shorter(descriptor, points):
                value = value * (MAX_BOX + 2) + each
            found[mine] = value
        return found

    def beats(self) -> int:
        """Beats of all boxes."""
        _, examples, counts = np.unique(self.places(), return_index=True, return_counts=True)
        total = 0
        for number, count in zip(examples.tolist(), counts.tolist(), strict=True):
            _, _, rows = self.box(number)
            total += count * sum(sum(row.bursts) for row in rows)
        return total

    def box(self, number: int) -> tuple[int, int, tuple[Row, ...]]:
        """Cycles of the address, vectors of a row, and rows of a box."""
        program = self._programs[self._owners[number]]
        descriptor, argument = self._agcu.descriptors[program.descriptor]
        point = self._points[number].tolist()[: len(descriptor.dims)]
        address = self._address(descriptor, argument, point)
        inside = tuple(
            (max(0, -at), max(0, min(box, dim - at)))
            for at, box, dim in zip(point, descriptor.box, descriptor.dims, strict=False)
        )
        shorter = _shorter(descriptor, point)
        key = (program.descriptor, inside, shorter, address % (self._burst * self._beat))
        rows = self._known.get(key)
        if rows is None:
            rows = self._known[key] = tuple(self._rows(descriptor, inside, shorter, address))
        # A coordinate takes a cycle per byte.
        cycles = sum(at.bit_length() // 8 + 1 for at in point)
        return cycles, descriptor.box[0] * descriptor.format.bytes // self._beat, rows

    def _rows(
        self,
        descriptor: Descriptor,
        inside: tuple[tuple[int, int], ...],
        shorter: tuple[int, int],
        address: int,
    ) -> list[Row]:
        """Rows of a box whose first element has an address, given the part inside the tensor."""
        size, beat = descriptor.format.bytes, self._beat
        vectors = descriptor.box[0] * size // beat
        low, longest = inside[0]
        rows = []
        outer = [range(box) for box in descriptor.box[1:]]
        for index in itertools.product(*reversed(outer)):
            place = tuple(reversed(index))
            start = address + sum(
                at * step for at, step in zip(place, descriptor.strides, strict=False)
            )
            high = shorter[1] if place[:1] == shorter[:1] else longest
            present = low < high and all(
                first <= at < end for at, (first, end) in zip(place, inside[1:], strict=False)
            )
            if not present:
                rows.append(Row(vectors, ()))
                continue
            begin, end = (start + low * size) // beat, -(-(start + high * size) // beat)
            bursts = []
            while begin < end:
                stop = min(end, (begin // self._burst + 1) * self._burst)
                bursts.append(stop - begin)
                begin = stop
            rows.append(Row(vectors + bool(start % beat), tuple(bursts)))
        return rows


def _shorter(descriptor: Descriptor, point: Any) -> tuple[Any, Any]:
    """Index in the box at a point of rows that are shorter, outside it if none is; their end."""
    if not descriptor.shortfall:
        return -1, 0
    (row, last), (wide, high) = descriptor.dims[:2], descriptor.box[:2]
    place = np.clip(last - 1 - point[1], -1, high)
    return place, np.clip(row - descriptor.shortfall - point[0], 0, wide)
