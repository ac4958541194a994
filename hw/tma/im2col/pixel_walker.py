"""Pixel walker: the pixels of im2col boxes in order, each as a box of one row."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value, signed
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hw.arch.descriptor import MAX_ELEMENT_STRIDE, MAX_RANK, TmaFeature
from hw.lib.component import Component
from hw.tma.im2col.im2col_fields import offsets_of
from hw.tma.layouts import TmaLayouts

__all__ = ["PixelWalker"]

#: Dimensions from 1 on.
_OUTER = MAX_RANK - 1
#: Width of a pixel's coordinate with its offset, one element stride behind the bounding box.
_POSITION = signed(35)


class PixelWalker(Component):
    """Pixel walker: a box of one row per pixel, one per cycle; other boxes pass as they are.

    An im2col box takes a cycle before its first pixel, unless another one is before it.

    Parameters
    ----------
    layouts : TmaLayouts
        With `TmaFeature.IM2COL`.

    Members
    -------
    i_stream : stream of :attr:`TmaLayouts.box`
    o_stream : stream of :attr:`TmaLayouts.box`
        Boxes without pixels; those of an im2col box but the last continue.
    """

    i_stream: stream.Interface
    o_stream: stream.Interface

    def __init__(self, layouts: TmaLayouts) -> None:
        self._layouts = layouts
        self._box: Any = Signal(layouts.box)
        # Of each dimension from 1 on: where the pixel is, with its offset.
        self._positions = [Signal(_POSITION, name=f"position{index}") for index in range(_OUTER)]
        self._first = [Signal(signed(18), name=f"first{index}") for index in range(_OUTER - 1)]
        self._end = [Signal(_POSITION, name=f"end{index}") for index in range(_OUTER - 1)]
        # Address of the pixel at the position of a dimension and those after it, and at the lower
        # corner in those before it.
        self._levels = [
            Signal(layouts.address_bits, name=f"level{index}") for index in range(_OUTER)
        ]
        super().__init__(
            {
                "i_stream": In(stream.Signature(layouts.box)),
                "o_stream": Out(stream.Signature(layouts.box)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        source: Any = self.i_stream.payload
        box = self._box
        walking = Signal()
        last = Signal()
        tiled = Signal()
        free = Signal()
        moves = Signal()
        m.d.comb += [
            last.eq(box.pixels.count == 1),
            tiled.eq(source.pixels.count == 0),
            moves.eq(walking & self.o_stream.ready),
            free.eq(~walking | (moves & last)),
            self.i_stream.ready.eq(Mux(tiled, ~walking & self.o_stream.ready, free)),
            self.o_stream.valid.eq(walking | (self.i_stream.valid & tiled)),
        ]
        with m.If(walking):
            self._describe(m, last)
        with m.Else():
            m.d.comb += self.o_stream.payload.eq(source)
        with m.If(moves):
            self._advance(m)
        with m.If(free):
            m.d.sync += [walking.eq(self.i_stream.valid & ~tiled), box.eq(source)]
            self._begin(m, source)
        return m

    def _begin(self, m: Module, source: Any) -> None:
        """The first pixel of a box, and the bounds of its walk."""
        pixels = source.pixels
        offsets = offsets_of(pixels.offsets, pixels.rank)
        for index in range(_OUTER):
            m.d.sync += self._positions[index].eq(pixels.coordinates[index] + offsets[index])
            m.d.sync += self._levels[index].eq(source.address)
        for index in range(_OUTER - 1):
            m.d.sync += [
                self._first[index].eq(pixels.lower[index] + offsets[index]),
                self._end[index].eq(pixels.dims[index] + pixels.upper[index] + offsets[index]),
            ]
            with m.If(pixels.rank > index + 2):
                m.d.sync += self._levels[index].eq(pixels.levels[index])

    def _advance(self, m: Module) -> None:
        """To the next pixel: the first dimension that is not at its end advances."""
        box = self._box
        m.d.sync += box.pixels.count.eq(box.pixels.count - 1)
        strided = TmaFeature.ELEMENT_STRIDES in self._layouts.features
        base = Signal(self._layouts.address_bits)
        stride = Signal(36)
        step = Signal(range(MAX_ELEMENT_STRIDE + 1), init=1)
        following = Signal(self._layouts.address_bits)
        m.d.comb += following.eq(base + ((stride * step) << 4))
        # Images have no end: the pixels of those behind the last one are outside the tensor.
        images = [box.pixels.rank == index + 2 for index in range(_OUTER)]
        taken: list[Value] = [
            Mux(images[index], 1, box.steps[index]) if strided else Const(1)
            for index in range(_OUTER)
        ]
        later = [Signal(signed(36), name=f"later{index}") for index in range(_OUTER)]
        m.d.comb += [
            later[index].eq(self._positions[index] + taken[index]) for index in range(_OUTER)
        ]
        goes: list[Value] = [
            images[index] | (later[index] < self._end[index]) for index in range(_OUTER - 1)
        ]
        goes.append(images[-1])
        for index in range(_OUTER):
            with m.If(goes[index]) if index == 0 else m.Elif(goes[index]):
                m.d.comb += [
                    base.eq(self._levels[index]),
                    stride.eq(box.strides[index]),
                    step.eq(taken[index]),
                ]
                m.d.sync += self._positions[index].eq(later[index])
                m.d.sync += [
                    self._positions[inner].eq(self._first[inner]) for inner in range(index)
                ]
                m.d.sync += [self._levels[inner].eq(following) for inner in range(index + 1)]

    def _describe(self, m: Module, last: Signal) -> None:
        """The box of the pixel."""
        box = self._box
        row: Any = self.o_stream.payload
        inside = Signal()
        m.d.comb += inside.eq(1)
        for index in range(_OUTER):
            position, present = self._positions[index], box.pixels.rank > index + 1
            with m.If(present & ((position < 0) | (position >= box.pixels.dims[index]))):
                m.d.comb += inside.eq(0)
        m.d.comb += [
            row.eq(box),
            row.address.eq(self._levels[0]),
            row.pixels.eq(0),
            row.continues.eq(box.continues | ~last),
            *(row.extents[index].eq(0) for index in range(_OUTER)),
            *(row.low[index].eq(0) for index in range(_OUTER)),
            *(row.high[index].eq(1) for index in range(1, _OUTER)),
            row.high[0].eq(inside),
        ]
