"""Layouts of what the parts of a TMA engine exchange: boxes, rows, plans, bursts and vectors."""

from __future__ import annotations

import dataclasses
from typing import Any

from amaranth.hdl import signed, unsigned
from amaranth.lib import data

from hw.arch.boxes.im2col_box import OFFSETS_BITS, PIXELS_PER_COLUMN
from hw.arch.descriptor import MAX_BOX, MAX_ELEMENT_STRIDE, MAX_RANK, TmaFeature
from hw.lib.bursts import longest_burst
from hw.tma.commands import BOX_UNITS_BITS
from hw.tma.reduction.reduction_fields import reduction_layout

__all__ = ["MAX_ROW_BYTES", "TmaLayouts"]

#: Bytes of a unit of rows that are packed.
_PACKED_BYTES = 16
#: Bytes of the longest box row, whose elements have 4 bytes.
MAX_ROW_BYTES = MAX_BOX * 4


@dataclasses.dataclass(frozen=True)
class TmaLayouts:
    """Layouts of what the parts of a TMA engine exchange.

    Parameters
    ----------
    width_bits : int
        Width of a vector and of a beat.
    address_bits : int
        Width of a byte address.
    streams : int
        Streams a box may belong to.
    features : tuple of TmaFeature
        What the engine is generated with.
    """

    width_bits: int
    address_bits: int
    streams: int
    features: tuple[TmaFeature, ...] = ()

    @property
    def beat_bytes(self) -> int:
        """Bytes of a beat."""
        return self.width_bits // 8

    @property
    def beat_shift(self) -> int:
        """Bits of a byte's position in its beat."""
        return self.beat_bytes.bit_length() - 1

    @property
    def packs(self) -> bool:
        """Whether rows may end within a vector, and the next one begins there."""
        return TmaFeature.PACKED_ROWS in self.features and self.beat_bytes > _PACKED_BYTES

    @property
    def unit_shift(self) -> int:
        """log2 of the bytes of a unit; rows are whole units, and a vector is one if not packed."""
        return (_PACKED_BYTES - 1).bit_length() if self.packs else self.beat_shift

    @property
    def unit_bits(self) -> int:
        """Bits of a unit's number in its vector."""
        return self.beat_shift - self.unit_shift

    @property
    def _units(self) -> dict[str, int]:
        return {"units": self.unit_bits} if self.packs else {}

    @property
    def burst_beats(self) -> int:
        """Beats of the longest aligned burst that AXI allows."""
        return longest_burst(self.width_bits)

    @property
    def box(self) -> data.StructLayout:
        """Layout of a checked box.

        ``address`` is that of the first byte of row 0 that lies within the tensor's dimension 0. Of
        each row, bytes ``head`` to ``tail`` - 1 lie in dimension 0; of each other dimension,
        indices ``low`` to ``high`` - 1. At the last of those of dimension 1, the row's bytes end at
        ``shorter`` in place of ``tail``. ``extents`` are the box minus one, ``strides`` count 16
        bytes, ``steps`` are the element strides. ``vectors``, ``units`` and ``fill`` are `plan`'s.
        It ``continues`` with the next one. If it has ``pixels``, see there. Its ``reduction`` is
        that of every burst.
        """
        outer = MAX_RANK - 1
        more: dict[str, Any] = {}
        if TmaFeature.ELEMENT_STRIDES in self.features:
            more["steps"] = data.ArrayLayout(range(MAX_ELEMENT_STRIDE + 1), outer)
        if TmaFeature.PARALLEL_BOXES in self.features:
            more["report"] = self.report
        if self.continues:
            more["continues"] = 1
        if TmaFeature.IM2COL in self.features:
            more["pixels"] = self.pixels
        return data.StructLayout(
            {
                "stream": range(self.streams),
                "address": self.address_bits,
                "strides": data.ArrayLayout(36, outer),
                "extents": data.ArrayLayout(range(MAX_BOX), outer),
                "low": data.ArrayLayout(range(MAX_BOX + 1), outer),
                "high": data.ArrayLayout(range(MAX_BOX + 1), outer),
                "vectors": range(MAX_ROW_BYTES // self.beat_bytes + 1),
                "head": range(MAX_ROW_BYTES + 1),
                "tail": range(MAX_ROW_BYTES + 1),
                **self._units,
                **self._fill,
                **self._shorter,
                **more,
                **self._reduction,
            }
        )

    @property
    def continues(self) -> bool:
        """Whether a box may go on with the next one."""
        return not {TmaFeature.CONTINUED_BOXES, TmaFeature.IM2COL}.isdisjoint(self.features)

    @property
    def pixels(self) -> data.StructLayout:
        """Layout of the pixels of an im2col box, dimensions from 1 on.

        It has ``count`` pixels, 0 for a tile, whose other fields mean nothing. The first is at the
        ``coordinates`` + ``offsets``. ``levels`` are the addresses of the first pixel, of the one
        at the lower corner of its row, and of the one at that of its plane; at the lower corner in
        every dimension is the ``address`` of the box. ``dims`` are those of the tensor.
        """
        outer = MAX_RANK - 1
        corner = data.ArrayLayout(signed(16), outer - 1)
        return data.StructLayout(
            {
                "count": range(PIXELS_PER_COLUMN.high + 1),
                "rank": range(MAX_RANK + 1),
                "coordinates": data.ArrayLayout(signed(32), outer),
                "offsets": OFFSETS_BITS,
                "lower": corner,
                "upper": corner,
                "dims": data.ArrayLayout(unsigned(32), outer),
                "levels": data.ArrayLayout(self.address_bits, outer - 1),
            }
        )

    @property
    def _fill(self) -> dict[str, int]:
        return {"fill": 2} if TmaFeature.NAN_FILL in self.features else {}

    @property
    def _shorter(self) -> dict[str, Any]:
        found = TmaFeature.SHORTFALL in self.features
        return {"shorter": range(MAX_ROW_BYTES + 1)} if found else {}

    @property
    def report(self) -> data.StructLayout:
        """Layout of the report of a command.

        ``code`` is that of its refusal, or 0; ``swizzle`` and ``units`` are those of its box.
        """
        return data.StructLayout({"code": 8, "swizzle": 2, "units": BOX_UNITS_BITS})

    @property
    def _reduction(self) -> dict[str, Any]:
        return {"reduction": reduction_layout} if TmaFeature.REDUCE in self.features else {}

    @property
    def _response(self) -> dict[str, int]:
        return {"response": 2} if TmaFeature.PARALLEL_BOXES in self.features else {}

    @property
    def stored_bits(self) -> int:
        """Bits of the response to a stored box: SLVERR, DECERR, and the same of its reads."""
        return 4 if TmaFeature.REDUCE in self.features else 2

    @property
    def beat(self) -> data.StructLayout:
        """Layout of a beat read; bits of ``response``: SLVERR, DECERR."""
        return data.StructLayout({"data": self.width_bits, **self._response})

    @property
    def plan(self) -> data.StructLayout:
        """Layout of a row plan: the geometry of a row for realignment.

        The row starts at byte ``offset`` of its beat 0. Beats ``first`` to ``end`` - 1 are in
        memory (none if they are equal), from byte ``head`` of the first to the byte before ``tail``
        of the last (0 means the whole beat). ``last`` ends the box. The last of its ``vectors`` has
        ``units`` (0 means the whole vector). ``fill`` is log2 of the bytes of the NaN to fill with,
        0 for zeros.
        """
        vectors = MAX_ROW_BYTES // self.beat_bytes
        return data.StructLayout(
            {
                "stream": range(self.streams),
                "vectors": range(vectors + 1),
                "offset": self.beat_shift,
                "first": range(vectors + 1),
                "end": range(vectors + 2),
                "head": self.beat_shift,
                "tail": self.beat_shift,
                "last": 1,
                **self._units,
                **self._fill,
            }
        )

    @property
    def row(self) -> data.StructLayout:
        """Layout of a row: its plan, the address of its first beat in memory, its beats there."""
        return data.StructLayout(
            {
                "plan": self.plan,
                "address": self.address_bits - self.beat_shift,
                "beats": range(MAX_ROW_BYTES // self.beat_bytes + 2),
                **self._reduction,
            }
        )

    @property
    def burst(self) -> data.StructLayout:
        """Layout of a burst: address in beats, and its beats minus one, as AXI encodes them.

        ``ends``: it is the last of its box, where bursts are joined.
        """
        ends = {"ends": 1} if TmaFeature.JOINED_BURSTS in self.features else {}
        return data.StructLayout(
            {
                "address": self.address_bits - self.beat_shift,
                "length": 8,
                **ends,
                **self._reduction,
            }
        )

    @property
    def vector(self) -> data.StructLayout:
        """Layout of a vector with the number of its stream; ``last`` ends its box.

        ``response`` has the bits of `beat` of all the box's beats, with its last vector.
        """
        return data.StructLayout(
            {
                "data": self.width_bits,
                "last": 1,
                "stream": range(self.streams),
                **self._response,
            }
        )

    @property
    def row_vector(self) -> data.StructLayout:
        """Layout of a vector of one row; ``units`` of it are the row's, 0 if all are."""
        return data.StructLayout(
            {**{name: field.shape for name, field in self.vector}, **self._units}
        )

    @property
    def write(self) -> data.StructLayout:
        """Layout of a W payload."""
        return data.StructLayout({"data": self.width_bits, "strobe": self.beat_bytes, "last": 1})

    @property
    def record(self) -> data.StructLayout:
        """Layout of a store record: the actions on a write response.

        ``responds``: the record waits for a response; ``ends``: a box is stored after it.
        """
        return data.StructLayout({"responds": 1, "ends": 1, "stream": range(self.streams)})
