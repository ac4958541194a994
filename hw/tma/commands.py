"""Box reader: from a command and its descriptor to a checked box, clipped to the tensor."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hw.arch.descriptor import MAX_BOX, MAX_RANK, ElementFormat, Mode, descriptor_layout
from hw.arch.error_codes import TmaError
from hw.lib.component import Component

__all__ = ["BoxReader", "box_layout", "command_layout", "tagged_command_layout"]

#: Bytes of the longest box row, whose elements have 4 bytes.
MAX_ROW_BYTES = MAX_BOX * 4


def command_layout(descriptors: int) -> data.StructLayout:
    """Layout of a command: index of a descriptor, coordinates of the box's first element."""
    return data.StructLayout(
        {
            "descriptor": range(descriptors),
            "coordinates": data.ArrayLayout(signed(32), MAX_RANK),
        }
    )


def tagged_command_layout(descriptors: int, streams: int) -> data.StructLayout:
    """Layout of a command with the number of its stream."""
    return data.StructLayout({"command": command_layout(descriptors), "stream": range(streams)})


def box_layout(width_bits: int, address_bits: int, streams: int) -> data.StructLayout:
    """Layout of a checked box.

    ``address`` is that of the first byte of row 0 that lies within the tensor's dimension 0. Of
    each row, bytes ``head`` to ``tail`` - 1 lie in dimension 0; of each other dimension, indices
    ``low`` to ``high`` - 1. ``extents`` are the box minus one, ``strides`` count 16 bytes.
    """
    outer = MAX_RANK - 1
    return data.StructLayout(
        {
            "stream": range(streams),
            "address": address_bits,
            "strides": data.ArrayLayout(36, outer),
            "extents": data.ArrayLayout(range(MAX_BOX), outer),
            "low": data.ArrayLayout(range(MAX_BOX + 1), outer),
            "high": data.ArrayLayout(range(MAX_BOX + 1), outer),
            "vectors": range(MAX_ROW_BYTES // (width_bits // 8) + 1),
            "head": range(MAX_ROW_BYTES + 1),
            "tail": range(MAX_ROW_BYTES + 1),
        }
    )


def _first_refusal(
    m: Module, rules: Sequence[tuple[Value | Signal, TmaError]], code: Signal
) -> None:
    for index, (broken, reason) in enumerate(rules):
        with m.If(broken) if index == 0 else m.Elif(broken):
            m.d.comb += code.eq(reason.value)


class BoxReader(Component):
    """Box reader: reads a command's descriptor, checks it and computes the box.

    A box takes ``rank`` + 2 cycles, plus one per further byte of a coordinate that does not fit 8
    signed bits. A refused descriptor takes two cycles and gives no box.

    Parameters
    ----------
    width_bits : int
        Width of a vector.
    address_bits : int
        Width of a byte address.
    descriptors : int
        Descriptors in the file.
    streams : int
        Number of streams.

    Members
    -------
    i_stream : stream of :func:`tagged_command_layout`
    o_stream : stream of :func:`box_layout`
    o_index, o_read
        Read port of the descriptor file: ``i_descriptor`` is the descriptor of that index from
        the next cycle on, until the next read.
    i_descriptor
    o_error
        Code of a refusal, for one cycle; 0 otherwise.
    """

    i_stream: stream.Interface
    o_stream: stream.Interface
    o_index: Signal
    o_read: Signal
    i_descriptor: Any
    o_error: Signal

    def __init__(
        self, *, width_bits: int, address_bits: int, descriptors: int, streams: int
    ) -> None:
        self._width_bits = width_bits
        self._address_bits = address_bits
        self._descriptors = descriptors
        self._streams = streams
        super().__init__(
            {
                "i_stream": In(stream.Signature(tagged_command_layout(descriptors, streams))),
                "o_stream": Out(stream.Signature(box_layout(width_bits, address_bits, streams))),
                "o_index": Out(range(descriptors)),
                "o_read": Out(1),
                "i_descriptor": In(descriptor_layout),
                "o_error": Out(8),
            }
        )

    def _check(self, m: Module, row_bytes: Signal) -> Signal:
        """Code of the first rule that the descriptor breaks."""
        fields = self.i_descriptor
        code = Signal(8)
        formats = [member.value for member in ElementFormat]
        present = [fields.rank > index for index in range(MAX_RANK)]
        box_bad = [(extent == 0) | (extent > MAX_BOX) for extent in fields.box]
        stride_bad = [(stride[:4] != 0) | (stride[40:] != 0) for stride in fields.strides]
        base_bad = fields.base[:4] != 0
        if self._address_bits < 64:
            base_bad |= fields.base[self._address_bits :] != 0
        im2col = Cat(
            fields.im2col_lower,
            fields.im2col_upper,
            fields.im2col_channels,
            fields.im2col_pixels,
        )

        def anywhere(broken: list[Any], first: int = 0) -> Value:
            return Cat(p & b for p, b in zip(present[first:], broken)).any()

        _first_refusal(
            m,
            [
                ((fields.rank == 0) | (fields.rank > MAX_RANK), TmaError.RANK),
                (~fields.format.matches(*formats), TmaError.FORMAT),
                (base_bad, TmaError.BASE),
                (anywhere(stride_bad, 1), TmaError.STRIDE),
                (anywhere([extent == 0 for extent in fields.dims]), TmaError.DIMENSION),
                (anywhere(box_bad), TmaError.BOX),
                (
                    row_bytes[: (self._width_bits // 8 - 1).bit_length()] != 0,
                    TmaError.ROW_BYTES,
                ),
                (
                    anywhere([step != 1 for step in fields.element_strides]),
                    TmaError.ELEMENT_STRIDE,
                ),
                (fields.interleave != 0, TmaError.INTERLEAVE),
                (fields.swizzle != 0, TmaError.SWIZZLE),
                (fields.oob_fill != 0, TmaError.OOB_FILL),
                (fields.mode != Mode.TILE.value, TmaError.MODE),
                (fields.reduce != 0, TmaError.REDUCE),
                (im2col != 0, TmaError.IM2COL),
            ],
            code,
        )
        return code

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fields = self.i_descriptor
        command: Any = self.i_stream.payload
        box: Any = self.o_stream.payload
        coordinates: Any = Signal(data.ArrayLayout(signed(32), MAX_RANK))
        owner = Signal(range(self._streams))
        element_shift = fields.format[:2]
        row_bytes = Signal(range(MAX_BOX * 8 + 1))
        m.d.comb += row_bytes.eq(fields.box[0] << element_shift)
        code = self._check(m, row_bytes)

        checking = Signal()
        working = Signal()
        done = Signal()
        dimension = Signal(range(MAX_RANK))

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
                coordinates.eq(command.command.coordinates),
                owner.eq(command.stream),
            ]

        # address = base + the sum of coordinate × stride. A 32 × 40-bit multiplier would be the
        # engine's largest part, so a coordinate is multiplied eight bits per cycle, only as far as
        # it has significant bits: small coordinates take one cycle.
        address = Signal(self._address_bits)
        scaled = Signal(self._address_bits)
        coordinate = Signal(signed(32))
        whole = Signal()  # nothing is taken off the coordinate yet
        last_digit = Signal()
        digit = Signal(signed(9))
        m.d.comb += [
            last_digit.eq(coordinate[7:].all() | ~coordinate[7:].any()),
            digit.eq(Cat(coordinate[:8], last_digit & coordinate[7])),
        ]
        low: Any = Signal(data.ArrayLayout(range(MAX_BOX + 1), MAX_RANK))
        high: Any = Signal(data.ArrayLayout(range(MAX_BOX + 1), MAX_RANK))
        following = Signal(range(MAX_RANK + 1))
        m.d.comb += following.eq(dimension + 1)

        with m.If(checking):
            m.d.comb += self.o_error.eq(code)
            m.d.sync += [
                checking.eq(0),
                working.eq(code == TmaError.NONE.value),
                dimension.eq(0),
                address.eq(fields.base),
                scaled.eq(1 << element_shift),
                coordinate.eq(coordinates[0]),
                whole.eq(1),
            ]
            m.d.sync += [low[index].eq(0) for index in range(MAX_RANK)]
            m.d.sync += [high[index].eq(1) for index in range(MAX_RANK)]
        with m.If(working):
            m.d.sync += [
                address.eq(address + scaled * digit),
                scaled.eq(scaled << 8),
                coordinate.eq(coordinate >> 8),
                whole.eq(0),
            ]
            with m.If(whole):
                extent = Signal(range(MAX_BOX + 1))
                before = Signal(signed(33))
                within = Signal(signed(34))
                m.d.comb += [
                    extent.eq(fields.box[dimension]),
                    before.eq(-coordinate),
                    within.eq(fields.dims[dimension] - coordinate),
                ]
                m.d.sync += [
                    low[dimension].eq(_clamp(before, extent)),
                    high[dimension].eq(_clamp(within, extent)),
                ]
            with m.If(last_digit):
                m.d.sync += [
                    dimension.eq(following),
                    coordinate.eq(coordinates[following]),
                    whole.eq(1),
                ]
                with m.Switch(following):
                    for index in range(1, MAX_RANK):
                        with m.Case(index):
                            m.d.sync += scaled.eq(fields.strides[index - 1])
                with m.If(following == fields.rank):
                    m.d.sync += [working.eq(0), done.eq(1)]

        head = low[0] << element_shift
        m.d.comb += [
            box.stream.eq(owner),
            box.address.eq(address + head),
            box.vectors.eq(row_bytes >> (self._width_bits // 8 - 1).bit_length()),
            box.head.eq(head),
            box.tail.eq(high[0] << element_shift),
        ]
        for index in range(1, MAX_RANK):
            m.d.comb += [
                box.strides[index - 1].eq(fields.strides[index - 1][4:40]),
                box.extents[index - 1].eq(Mux(fields.rank > index, fields.box[index] - 1, 0)),
                box.low[index - 1].eq(low[index]),
                box.high[index - 1].eq(high[index]),
            ]
        return m


def _clamp(value: Signal, limit: Signal) -> Value:
    """The signed value, clamped to 0 to limit."""
    return Mux(value < 0, 0, Mux(value > limit, limit, value[: len(limit)]))
