"""Property of the box reader: address and bounds of a box are those of its command."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from gen.properties.support import always, kept
from gen.properties.tma.narrow_boxes import NarrowBoxes
from hw.arch.descriptor import ElementFormat, TmaFeature
from hw.arch.error_codes import TmaError
from hw.tma.box_reader import BoxReader
from hw.tma.layouts import TmaLayouts

__all__ = ["BoxesAreClipped"]


class BoxesAreClipped(wiring.Component):
    """Address and bounds of every box are those of its command, within a number of cycles.

    The descriptor is any one that does not change; coordinates fit eight bits.
    """

    descriptor: Any
    coordinates: Any
    free: Signal
    reached: Signal

    def __init__(self, *, rank: int, bits: int) -> None:
        self._boxes = NarrowBoxes(rank=rank, bits=bits)
        features = (TmaFeature.SHORTFALL,)
        self._layouts = TmaLayouts(16, self._boxes.address_bits, streams=1, features=features)
        super().__init__(
            {
                "descriptor": In(self._boxes.descriptor),
                "coordinates": In(self._boxes.coordinates),
                "free": In(2),
                "reached": Out(3),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = BoxReader(self._layouts, descriptors=2)
        boxes, given = self._boxes, self.descriptor
        kept(m, given.as_value())
        fields: Any = dut.i_descriptor
        command: Any = dut.i_stream.payload
        mine: Any = Signal(boxes.coordinates)
        m.d.comb += [
            Cat(dut.i_stream.valid, dut.o_stream.ready).eq(self.free),
            fields.rank.eq(given.rank + 1),
            fields.format.eq(ElementFormat.INT8.value),
            fields.base.eq(given.base << 4),
            fields.shortfall.eq(given.shortfall),
        ]
        for number in range(boxes.rank):
            m.d.comb += [
                command.command.coordinates[number].eq(self.coordinates[number]),
                fields.dims[number].eq(given.dims[number]),
                fields.box[number].eq(given.box[number]),
                fields.element_strides[number].eq(1),
            ]
        for number in range(boxes.rank - 1):
            m.d.comb += fields.strides[number].eq(given.strides[number] << 4)
        with m.If(dut.o_read):
            m.d.sync += mine.eq(self.coordinates)
        box: Any = dut.o_stream.payload
        valid = dut.o_stream.valid
        bounds = [boxes.bounds(given, mine, each) for each in range(boxes.rank)]
        expected = [
            (box.address, (boxes.address(given, mine) + bounds[0][0])[: boxes.address_bits]),
            (box.head, bounds[0][0]),
            (box.tail, bounds[0][1]),
            (box.vectors, given.box[0] >> 1),
        ]
        for number in range(1, boxes.rank):
            there = given.rank >= number
            expected += [
                (box.extents[number - 1], Mux(there, given.box[number] - 1, 0)),
                (box.low[number - 1], bounds[number][0]),
                (box.high[number - 1], bounds[number][1]),
            ]
            m.d.comb += always(
                ~valid | ~there | (box.strides[number - 1] == given.strides[number - 1])
            )
        shorter = box.shorter == boxes.shorter(given, mine)
        m.d.comb += [
            always(~valid | (given.rank == 0) | shorter),
            always(~valid | boxes.accepted(given)),
            *(always(~valid | (shown == value)) for shown, value in expected),
            self.reached.eq(
                Cat(
                    valid & (given.rank + 1 == boxes.rank) & (box.low[0] == 1),
                    valid & (box.head == 1) & (box.tail == 2),
                    dut.o_error != TmaError.NONE.value,
                )
            ),
        ]
        return m
