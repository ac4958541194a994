"""Property of the box walker: no row has a byte outside the described tensor."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from gen.properties import support
from gen.properties.support import always, kept
from gen.properties.tma.narrow_boxes import NarrowBoxes
from hw.arch.descriptor import MAX_RANK, TmaFeature
from hw.tma.box_walker import BoxWalker
from hw.tma.layouts import TmaLayouts

__all__ = ["RowsStayInside"]


class RowsStayInside(wiring.Component):
    """Whatever descriptor and coordinates, every byte of a row in memory lies in the tensor."""

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
        m.submodules.dut = dut = BoxWalker(self._layouts)
        boxes, given = self._boxes, self.descriptor
        kept(m, given.as_value())
        m.d.comb += support.given(boxes.accepted(given))
        m.d.comb += [
            Cat(dut.i_stream.valid, dut.o_stream.ready).eq(self.free),
            *(
                field.eq(value)
                for field, value in self._box(dut.i_stream.payload, self.coordinates)
            ),
        ]
        # Invariants of the walker: its box is that of some coordinates, its indices lie in the box,
        # and each level is the address that they give.
        mine: Any = Signal(boxes.coordinates)
        with m.If(dut.i_stream.valid & dut.i_stream.ready):
            m.d.sync += mine.eq(self.coordinates)
        for field, value in self._box(dut.box, mine):
            m.d.comb += always(~dut.active | (field == value))
        above: Value = dut.box.address
        for number in reversed(range(len(dut.index))):
            index, step = dut.index[number], dut.box.strides[number]
            address = Signal.like(dut.box.address, name=f"address{number}")
            m.d.comb += [
                address.eq(above + ((index[: boxes.bits] * step[: boxes.bits]) << 4)),
                always(~dut.active | (index <= dut.box.extents[number])),
                always(~dut.active | (dut.levels[number] == address)),
            ]
            above = address
        row = dut.row
        some = dut.step & (row.beats != 0)
        shift = self._layouts.beat_shift
        first = Signal(boxes.address_bits + 1)
        end = Signal(boxes.address_bits + 1)
        short = Mux(row.plan.tail == 0, 0, self._layouts.beat_bytes - row.plan.tail)
        m.d.comb += [
            first.eq((row.address << shift) + row.plan.head),
            end.eq(((row.address + row.beats) << shift) - short),
            always(~some | (boxes.holds(m, given, first, end) & (first < end))),
            self.reached.eq(
                Cat(
                    some & (given.rank + 1 == boxes.rank) & (row.plan.offset == 1),
                    some & (row.plan.head == 1) & (row.plan.tail == 1) & row.plan.last,
                    dut.step & ~some & (given.rank == 1),
                )
            ),
        ]
        return m

    def _box(self, box: Any, coordinates: Any) -> list[tuple[Value, Value]]:
        """Fields of the box at some coordinates, and their values."""
        boxes, given = self._boxes, self.descriptor
        bounds = [boxes.bounds(given, coordinates, each) for each in range(boxes.rank)]
        fields = [
            (box.address, boxes.address(given, coordinates) + bounds[0][0]),
            (box.vectors, given.box[0] >> 1),
            (box.head, bounds[0][0]),
            (box.tail, bounds[0][1]),
            (box.shorter, Mux(given.rank >= 1, boxes.shorter(given, coordinates), bounds[0][1])),
        ]
        for number in range(1, MAX_RANK):
            low, high = bounds[number] if number < boxes.rank else (Const(0), Const(1))
            extent: Value = Const(0)
            stride: Value = Const(0)
            if number < boxes.rank:
                extent = Mux(given.rank >= number, given.box[number] - 1, 0)
                stride = given.strides[number - 1]
            fields += [
                (box.strides[number - 1], stride),
                (box.extents[number - 1], extent),
                (box.low[number - 1], low),
                (box.high[number - 1], high),
            ]
        return [(field, value[: len(field)]) for field, value in fields]
