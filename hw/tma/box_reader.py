"""Box reader: from a command and its descriptor to a checked box, clipped to the tensor."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hw.arch.boxes.im2col_box import OFFSETS_BITS, PIXELS_PER_COLUMN
from hw.arch.descriptor import (
    MAX_BOX,
    MAX_RANK,
    WORD_BITS,
    Mode,
    TmaFeature,
    descriptor_layout,
)
from hw.arch.error_codes import TmaError, UnitError
from hw.arch.launch import REPEAT_BITS
from hw.lib.component import Component
from hw.tma.commands import BOX_UNITS_BITS, tagged_command_layout
from hw.tma.descriptor_rules import descriptor_rules
from hw.tma.extents import clamped, steps_of
from hw.tma.im2col.im2col_fields import offset_rules, offsets_of
from hw.tma.layouts import TmaLayouts
from hw.tma.reduction.reduction_fields import reduction_request, reduction_rules

__all__ = ["BoxReader"]


class BoxReader(Component):
    """Box reader: reads a command's descriptor, checks it and computes the box.

    A box takes ``rank`` + 2 cycles, plus one per further byte of a coordinate that does not fit 8
    signed bits. From iteration 1 on it takes one more cycle per byte of the iteration. An im2col
    box takes ``rank`` - 2 more, and one per further byte of the distance from its lower corner. A
    refused descriptor takes two cycles and gives no box, or with `TmaFeature.PARALLEL_BOXES` one
    whose report has the code and whose other fields mean nothing.

    Parameters
    ----------
    layouts : TmaLayouts
    descriptors : int
        Descriptors in the file.

    Members
    -------
    i_stream : stream of :func:`hw.tma.commands.tagged_command_layout`
    o_stream : stream of :attr:`TmaLayouts.box`
    o_index, o_read
        Read port of the descriptor file: ``i_descriptor`` is the descriptor of that index from
        the next cycle on, until the next read.
    i_descriptor
    i_stride
        Stride of the base, valid like the descriptor.
    o_error
        Code of a refusal, or of an index outside the tensor, whose box is as any other outside it;
        for one cycle, 0 otherwise.
    """

    i_stream: stream.Interface
    o_stream: stream.Interface
    o_index: Signal
    o_read: Signal
    i_descriptor: Any
    i_stride: Signal
    o_error: Signal

    def __init__(self, layouts: TmaLayouts, *, descriptors: int) -> None:
        self._layouts = layouts
        self._descriptors = descriptors
        bounds = data.ArrayLayout(range(MAX_BOX + 1), MAX_RANK)
        self._coordinates: Any = Signal(data.ArrayLayout(signed(32), MAX_RANK))
        self._iteration = Signal(REPEAT_BITS)
        self._index = Signal(range(MAX_RANK))
        self._owner = Signal(range(layouts.streams))
        self._row_bytes = Signal(range(MAX_BOX * 8 + 1))
        self._low: Any = Signal(bounds)
        self._high: Any = Signal(bounds)
        self._near = Signal(range(2 * MAX_BOX))  # to the end of dimension 0, if that is near
        self._ends = Signal()  # dimension 1 ends in the box
        self._address = Signal(layouts.address_bits)
        self._code = Signal(8)
        self._count = Signal(BOX_UNITS_BITS)
        self._most = Signal(BOX_UNITS_BITS)
        self._aligned = Signal()
        self._continues = Signal()
        self._four = Signal()
        self._offsets = Signal(OFFSETS_BITS)
        self._im2col = Signal()
        self._reduction: Any = Signal(reduction_request)
        levels = data.ArrayLayout(layouts.address_bits, MAX_RANK - 2)
        self._levels: Any = Signal(levels)
        commands = tagged_command_layout(descriptors, layouts.streams, layouts.features)
        super().__init__(
            {
                "i_stream": In(stream.Signature(commands)),
                "o_stream": Out(stream.Signature(layouts.box)),
                "o_index": Out(range(descriptors)),
                "o_read": Out(1),
                "i_descriptor": In(descriptor_layout),
                "i_stride": In(signed(WORD_BITS)),
                "o_error": Out(8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        command: Any = self.i_stream.payload
        checking = Signal()
        working = Signal()
        done = Signal()
        code = Signal(8)
        m.d.comb += self._row_bytes.eq(self._row_elements << self._element_shift)
        misplaced = self._iteration.any() & self.i_stride[:4].any()
        rules = [
            *descriptor_rules(self.i_descriptor, self._row_bytes, self._layouts),
            (TmaError.BASE, misplaced),
        ]
        if self._reports:
            astray = (self.i_descriptor.swizzle != 0) & ~self._aligned
            rules.append((TmaError.DESTINATION, astray))
        if self._continued:
            rules += [
                (TmaError.RANK, self._four & (self.i_descriptor.rank != 2)),
                (TmaError.BOX, self._four & (self.i_descriptor.box[1] != 1)),
            ]
        if self._walks_pixels:
            m.d.comb += self._im2col.eq(self.i_descriptor.mode == Mode.IM2COL.value)
            rules += offset_rules(self.i_descriptor, self._im2col, self._offsets)
        if TmaFeature.REDUCE in self._layouts.features:
            rules += reduction_rules(self.i_descriptor, self._reduction)
        for index, (error, broken) in enumerate(rules):
            with m.If(broken) if index == 0 else m.Elif(broken):
                m.d.comb += code.eq(error.value)
        m.d.comb += [
            self.o_stream.valid.eq(done),
            self.i_stream.ready.eq(~checking & ~working & (~done | self.o_stream.ready)),
            self.o_index.eq(command.command.descriptor),
            self.o_read.eq(self.i_stream.valid & self.i_stream.ready),
        ]
        with m.If(done & self.o_stream.ready):
            m.d.sync += done.eq(0)
        with m.If(self.o_read):
            m.d.sync += [
                checking.eq(1),
                self._coordinates.eq(command.command.coordinates),
                self._iteration.eq(command.command.iteration),
                self._index.eq(command.command.index),
                self._owner.eq(command.stream),
            ]
            if self._reports:
                m.d.sync += [
                    self._most.eq(command.command.most_units),
                    self._aligned.eq(command.command.aligned),
                ]
            if self._continued:
                m.d.sync += [
                    self._continues.eq(command.command.continues),
                    self._four.eq(command.command.four),
                ]
            if self._walks_pixels:
                m.d.sync += self._offsets.eq(command.command.offsets)
            if TmaFeature.REDUCE in self._layouts.features:
                m.d.sync += self._reduction.eq(command.command.reduction)
        with m.If(checking):
            m.d.comb += self.o_error.eq(code)
            m.d.sync += [checking.eq(0), working.eq(code == TmaError.NONE.value)]
            if self._reports:
                m.d.sync += [self._code.eq(code), done.eq(code != TmaError.NONE.value)]
        self._locate(m, checking, working, done)
        self._describe(m)
        return m

    @property
    def _reports(self) -> bool:
        return TmaFeature.PARALLEL_BOXES in self._layouts.features

    @property
    def _continued(self) -> bool:
        return TmaFeature.CONTINUED_BOXES in self._layouts.features

    @property
    def _walks_pixels(self) -> bool:
        return TmaFeature.IM2COL in self._layouts.features

    @property
    def _shortens(self) -> bool:
        return TmaFeature.SHORTFALL in self._layouts.features

    @property
    def _row_elements(self) -> Value:
        fields = self.i_descriptor
        elements: Value = fields.box[0]
        if self._walks_pixels:
            elements = Mux(self._im2col, fields.im2col_channels, elements)
        return elements

    @property
    def _element_shift(self) -> Value:
        shift: Value = self.i_descriptor.format[:2]
        return shift

    def _locate(self, m: Module, checking: Signal, working: Signal, done: Signal) -> None:
        """Address of the box and its bounds in the tensor; ``done`` comes with them.

        address = base + the sum of coordinate × stride, the iteration and the stride of the base
        among them. A 32 × 40-bit multiplier would be the engine's largest part, so a coordinate is
        multiplied eight bits per cycle, only as far as it has significant bits: small coordinates
        take one cycle.
        """
        fields, address = self.i_descriptor, self._address
        dimension = Signal(range(MAX_RANK))
        following = Signal(range(MAX_RANK + 1))
        scaled = Signal.like(address)
        coordinate = Signal(signed(REPEAT_BITS + 1))  # or the iteration, which has no sign
        iterates = Signal()
        whole = Signal()  # nothing is taken off the coordinate yet
        last_digit = Signal()
        digit = Signal(signed(9))
        returns = Signal()  # from the pixel to the lower corner, after all else
        offsets = offsets_of(Mux(self._im2col, self._offsets, 0), fields.rank)
        m.d.comb += [
            following.eq(dimension + 1),
            last_digit.eq(coordinate[7:].all() | ~coordinate[7:].any()),
            digit.eq(Cat(coordinate[:8], last_digit & coordinate[7])),
        ]
        with m.If(checking):
            m.d.sync += [
                dimension.eq(0),
                address.eq(fields.base),
                scaled.eq(1 << self._element_shift),
                coordinate.eq(self._coordinates[0]),
                whole.eq(1),
                iterates.eq(0),
            ]
            if self._walks_pixels:
                m.d.sync += returns.eq(0)
            m.d.sync += [bound.eq(0) for bound in self._low]
            m.d.sync += [bound.eq(1) for bound in self._high]
            if self._shortens:
                m.d.sync += self._ends.eq(0)
        with m.If(working):
            m.d.sync += [
                address.eq(address + scaled * digit),
                scaled.eq(scaled << 8),
                coordinate.eq(coordinate >> 8),
                whole.eq(0),
            ]
            with m.If(whole & ~iterates):
                self._clip(m, dimension, coordinate)
            with m.If(last_digit):
                m.d.sync += [
                    dimension.eq(following),
                    coordinate.eq(self._coordinates[following]),
                    whole.eq(1),
                ]
                with m.Switch(following):
                    for index in range(1, MAX_RANK):
                        with m.Case(index):
                            m.d.sync += scaled.eq(fields.strides[index - 1])
                            if self._walks_pixels:
                                there = self._coordinates[index] + offsets[index - 1]
                                m.d.sync += coordinate.eq(there)
                ended = iterates | ~self._iteration.any()
                ended_dimensions = iterates | (following == fields.rank)
                with m.If(ended_dimensions):
                    m.d.sync += [
                        iterates.eq(1),
                        coordinate.eq(self._iteration),
                        scaled.eq(self.i_stride),
                        working.eq(~ended),
                        done.eq(ended),
                    ]
                if self._walks_pixels:
                    with m.If(self._im2col & ~returns & ended & ended_dimensions):
                        m.d.sync += self._step_back(Const(1), coordinate, scaled)
                        m.d.sync += [returns.eq(1), iterates.eq(1), dimension.eq(1)]
                        m.d.sync += [working.eq(1), done.eq(0)]
                    with m.If(returns & (following != fields.rank - 1)):
                        m.d.sync += self._step_back(following, coordinate, scaled)
                        m.d.sync += [working.eq(1), done.eq(0)]
            if self._walks_pixels:
                with m.If(returns & whole):
                    place: Any = self.o_stream.payload.address
                    m.d.sync += self._levels[(dimension - 1)[:2]].eq(place)

    def _clip(self, m: Module, dimension: Signal, coordinate: Signal) -> None:
        """Bounds of the box in a dimension, from its coordinate there."""
        fields = self.i_descriptor
        extent = Signal(range(MAX_BOX + 1))
        before = Signal(signed(33))
        within = Signal(signed(34))
        m.d.comb += extent.eq(fields.box[dimension])
        if self._walks_pixels:
            with m.If(self._im2col & (dimension == 0)):
                m.d.comb += extent.eq(fields.im2col_channels)
        m.d.comb += [before.eq(-coordinate), within.eq(fields.dims[dimension] - coordinate)]
        m.d.sync += [
            self._low[dimension].eq(clamped(before, extent)),
            self._high[dimension].eq(clamped(within, extent)),
        ]
        if self._shortens:
            with m.If(dimension == 0):
                m.d.sync += self._near.eq(clamped(within, Const(2 * MAX_BOX - 1)))
            with m.If(dimension == 1):
                m.d.sync += self._ends.eq(within <= extent)
        if self._reports:
            self._multiply(m, dimension, extent)
        with m.If((dimension == self._index) & (dimension != 0)):
            with m.If((coordinate < 0) | (within <= 0)):
                m.d.comb += self.o_error.eq(UnitError.INDEX.value)

    def _step_back(self, dimension: Value, coordinate: Signal, scaled: Signal) -> list[Any]:
        """From the coordinate of a dimension back to the lower corner of an im2col box."""
        fields, inner = self.i_descriptor, (dimension - 1)[:2]
        back = fields.im2col_lower[inner] - self._coordinates[dimension]
        return [coordinate.eq(back), scaled.eq(fields.strides[inner])]

    def _multiply(self, m: Module, dimension: Value, extent: Value) -> None:
        """Count of the box's units, multiplied by the indices taken of the dimension."""
        indices: Value = extent
        if TmaFeature.ELEMENT_STRIDES in self._layouts.features:
            indices = steps_of(extent, self.i_descriptor.element_strides[dimension])
        bits = MAX_BOX.bit_length()
        if self._walks_pixels:
            pixels = Mux(dimension == 1, self.i_descriptor.im2col_pixels, 1)
            indices = Mux(self._im2col, pixels, indices)
            bits = PIXELS_PER_COLUMN.high.bit_length()
        more = Signal(BOX_UNITS_BITS + bits)
        m.d.comb += more.eq(self._count * indices)
        row = self._row_bytes >> self._layouts.unit_shift
        with m.If(dimension == 0):
            m.d.sync += self._count.eq(Mux(self._four, row << 2, row) if self._continued else row)
        with m.Else():
            m.d.sync += self._count.eq(Mux(more[BOX_UNITS_BITS:].any(), -1, more))

    def _describe(self, m: Module) -> None:
        """Fields of the box, from its address and bounds."""
        fields = self.i_descriptor
        box: Any = self.o_stream.payload
        head = self._low[0] << self._element_shift
        row: Value = self._row_bytes
        if self._layouts.packs:
            row = row + (self._layouts.beat_bytes - 1)
        m.d.comb += [
            box.stream.eq(self._owner),
            box.address.eq(self._address + head),
            box.vectors.eq(row >> self._layouts.beat_shift),
            box.head.eq(head),
            box.tail.eq(self._high[0] << self._element_shift),
        ]
        features = self._layouts.features
        if self._continued:
            m.d.comb += box.continues.eq(self._continues)
        if self._layouts.packs:
            m.d.comb += box.units.eq(self._row_bytes >> self._layouts.unit_shift)
        if self._reports:
            too_large = Mux(self._count > self._most, TmaError.DESTINATION.value, 0)
            m.d.comb += [
                box.report.code.eq(Mux(self._code.any(), self._code, too_large)),
                box.report.swizzle.eq(fields.swizzle),
                box.report.units.eq(self._count),
            ]
        if TmaFeature.NAN_FILL in features:
            m.d.comb += box.fill.eq(Mux(fields.oob_fill[0], self._element_shift, 0))
        if self._shortens:
            shorter = clamped(self._near - fields.shortfall, self._row_elements)
            high = Mux(self._ends, shorter, self._high[0])
            m.d.comb += box.shorter.eq(high << self._element_shift)
        if TmaFeature.ELEMENT_STRIDES in features:
            m.d.comb += [
                box.steps[index - 1].eq(Mux(fields.rank > index, fields.element_strides[index], 1))
                for index in range(1, MAX_RANK)
            ]
        if TmaFeature.REDUCE in features:
            m.d.comb += box.reduction.request.eq(self._reduction)
            m.d.comb += box.reduction.format.eq(fields.format)
        if self._walks_pixels:
            pixels: Any = box.pixels
            m.d.comb += [
                pixels.count.eq(Mux(self._im2col, fields.im2col_pixels, 0)),
                pixels.rank.eq(fields.rank),
                *(pixels.coordinates[n].eq(self._coordinates[1 + n]) for n in range(MAX_RANK - 1)),
                pixels.offsets.eq(self._offsets),
                pixels.lower.eq(fields.im2col_lower),
                pixels.upper.eq(fields.im2col_upper),
                *(pixels.dims[n].eq(fields.dims[1 + n]) for n in range(MAX_RANK - 1)),
                pixels.levels.eq(self._levels),
            ]
        for index in range(1, MAX_RANK):
            m.d.comb += [
                box.strides[index - 1].eq(fields.strides[index - 1][4:40]),
                box.extents[index - 1].eq(Mux(fields.rank > index, fields.box[index] - 1, 0)),
                box.low[index - 1].eq(self._low[index]),
                box.high[index - 1].eq(self._high[index]),
            ]
