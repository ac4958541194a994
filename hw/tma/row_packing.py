"""Packing of rows that end within a vector: the next row begins where one ends."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hw.lib.component import Component
from hw.tma.layouts import TmaLayouts

__all__ = ["RowPacker", "RowUnpacker"]


def _from(first: Value, layouts: TmaLayouts) -> Value:
    """Bit mask of a vector's units from a number on; of none if that is the count of units."""
    count = 1 << layouts.unit_bits
    unit = 8 << layouts.unit_shift
    most = (1 << len(first)) - 1
    # The unit that is behind any first one is not compared: Verilator warns of it.
    within = (Const(1) if number >= most else number >= first for number in range(count))
    return Cat(each.replicate(unit) for each in within)


def _rotated(m: Module, data: Value, units: Value, layouts: TmaLayouts) -> Value:
    """Data of a vector, rotated to the right by units."""
    for number in range(layouts.unit_bits):
        # A signal each: an expression of all stages would grow threefold by stage.
        stage = Signal(len(data), name=f"packed{number}")
        m.d.comb += stage.eq(data)
        turned = stage.rotate_right((8 << layouts.unit_shift) << number)
        data = Mux(units[number], turned, stage)
    return data


class RowPacker(Component):
    """Packer: from the vectors of rows to those of a box without gaps.

    One vector per cycle, and one cycle more for a box whose last row goes on in a further vector.
    The units of a box's last vector after its end are undefined.

    Parameters
    ----------
    layouts : TmaLayouts
        With `TmaFeature.PACKED_ROWS`.

    Members
    -------
    i_stream : stream of :attr:`TmaLayouts.row_vector`
    o_stream : stream of :attr:`TmaLayouts.vector`
        Not registered.
    """

    i_stream: stream.Interface
    o_stream: stream.Interface

    def __init__(self, layouts: TmaLayouts) -> None:
        self._layouts = layouts
        super().__init__(
            {
                "i_stream": In(stream.Signature(layouts.row_vector)),
                "o_stream": Out(stream.Signature(layouts.vector)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layouts = self._layouts
        given: Any = self.i_stream.payload
        packed: Any = self.o_stream.payload
        held = Signal(layouts.width_bits, reset_less=True)
        fill = Signal(layouts.unit_bits)  # units held
        known = Signal(layouts.unit_bits + 1)  # units held and given
        turned = Signal(layouts.width_bits)
        merged = Signal(layouts.width_bits)
        full, over, emits, step = Signal(), Signal(), Signal(), Signal()
        rest = Signal()  # only the last units of the vector given are still to leave
        mask = _from(fill, layouts)
        whole = 1 << layouts.unit_bits
        m.d.comb += [
            known.eq(fill + Mux(given.units == 0, whole, given.units)),
            turned.eq(_rotated(m, given.data, (-fill)[: len(fill)], layouts)),
            merged.eq((turned & mask) | (held & ~mask)),
            full.eq(known >= whole),
            over.eq(given.last & (known > whole) & ~rest),
            emits.eq(full | given.last),
            step.eq(self.i_stream.valid & (~emits | self.o_stream.ready)),
            self.o_stream.valid.eq(self.i_stream.valid & emits),
            self.i_stream.ready.eq((~emits | self.o_stream.ready) & ~over),
            *(packed[name].eq(given[name]) for name, _ in layouts.vector),
            # Of the last units, all are held: they are what is merged.
            packed.data.eq(merged),
            packed.last.eq(given.last & ~over),
        ]
        with m.If(step):
            m.d.sync += [
                rest.eq(over),
                held.eq(Mux(full, turned, merged)),
            ]
            with m.If(~over):
                m.d.sync += fill.eq(Mux(given.last, 0, known))
        return m


class RowUnpacker(Component):
    """Unpacker: from the vectors of a box without gaps to those of rows.

    One vector per cycle.

    Parameters
    ----------
    layouts : TmaLayouts
        With `TmaFeature.PACKED_ROWS`.

    Members
    -------
    i_stream, o_stream : streams of ``width_bits``
        Data of vectors; not registered.
    i_units
        Units of the row in the vector that is to leave, 0 if all; the others are undefined.
    i_ends
        It is the last of its box, so that what is left of the vector taken is dropped.
    """

    i_stream: stream.Interface
    o_stream: stream.Interface
    i_units: Signal
    i_ends: Signal

    def __init__(self, layouts: TmaLayouts) -> None:
        self._layouts = layouts
        super().__init__(
            {
                "i_stream": In(stream.Signature(layouts.width_bits)),
                "o_stream": Out(stream.Signature(layouts.width_bits)),
                "i_units": In(layouts.unit_bits),
                "i_ends": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layouts = self._layouts
        given: Any = self.i_stream.payload
        held = Signal(layouts.width_bits, reset_less=True)
        left = Signal(layouts.unit_bits)  # units held, the last ones of the vector
        whole = 1 << layouts.unit_bits
        asked = Signal(layouts.unit_bits + 1)
        needs = Signal()
        mask = _from(whole - left, layouts)
        m.d.comb += [
            asked.eq(Mux(self.i_units == 0, whole, self.i_units)),
            needs.eq(asked > left),
            self.o_stream.payload.eq(
                _rotated(m, (held & mask) | (given & ~mask), (-left)[: len(left)], layouts)
            ),
            self.o_stream.valid.eq(~needs | self.i_stream.valid),
            self.i_stream.ready.eq(needs & self.o_stream.ready),
        ]
        with m.If(self.o_stream.valid & self.o_stream.ready):
            m.d.sync += left.eq(Mux(self.i_ends, 0, left - asked))
            with m.If(needs):
                m.d.sync += held.eq(given)
        return m
