"""Field writer: replaces one field of a descriptor in memory."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, enum, stream
from amaranth.lib.wiring import In, Out

from hw.arch.boxes.descriptor_fields import DescriptorField
from hw.arch.descriptor import MAX_RANK, WORD_BITS
from hw.arch.error_codes import TmaError
from hw.lib.axi import (
    RESP_DECERR,
    Axi4WriteInterface,
    Axi4WriteSignature,
    full_width_size,
    write_constants,
)
from hw.lib.component import Component

__all__ = ["FieldWriter", "replacement_layout"]

_WORD_BYTES = WORD_BITS // 8


def replacement_layout(address_bits: int) -> data.StructLayout:
    """Layout of a replacement: descriptor, field, index in its array, and the new value."""
    return data.StructLayout(
        {"descriptor": address_bits, "field": 32, "index": 32, "value": WORD_BITS}
    )


class _State(enum.Enum, shape=2):
    IDLE = 0
    #: Waits for its turn at the port.
    ASKING = 1
    #: Address and data are on the port, until both are taken.
    SENDING = 2


class FieldWriter(Component):
    """Field writer: a burst of one beat under strobes per replacement, one at a time.

    A replacement of no field, of an index outside its array, or of a value that has more bits is
    refused with `TmaError.FIELD`, without an access.

    Parameters
    ----------
    data_bits, address_bits : int
        Those of the AXI4 port.

    Members
    -------
    i_stream : stream of :func:`replacement_layout`
    o_done, o_code
        High for one cycle when the response has come, or with the refusal; its code.
    o_asks, i_granted
        The port is wanted, and is this writer's while it is wanted.
    i_drain
        Start no burst.
    o_idle
        No burst is open or unanswered.
    axi : write half of an AXI4 manager port
    """

    i_stream: stream.Interface
    o_done: Signal
    o_code: Signal
    o_asks: Signal
    i_granted: Signal
    i_drain: Signal
    o_idle: Signal
    axi: Axi4WriteInterface

    def __init__(self, *, data_bits: int, address_bits: int) -> None:
        self._data_bits = data_bits
        self._address_bits = address_bits
        super().__init__(
            {
                "i_stream": In(stream.Signature(replacement_layout(address_bits))),
                "o_done": Out(1),
                "o_code": Out(8),
                "o_asks": Out(1),
                "i_granted": In(1),
                "i_drain": In(1),
                "o_idle": Out(1),
                "axi": Out(Axi4WriteSignature(data_bits=data_bits, address_bits=address_bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        given: Any = self.i_stream.payload
        state = Signal(_State)
        known = Signal()
        at = Signal(range(1 << 7))
        size = Signal(range(_WORD_BYTES + 1))
        self._find(m, given, known, at, size)
        axi = self.axi
        word: Any = Signal(data.ArrayLayout(8, _WORD_BYTES))  # the field's place in its word
        strobe = Signal(_WORD_BYTES)
        address = Signal(self._address_bits)
        m.d.comb += [
            self.i_stream.ready.eq(state == _State.IDLE),
            self.o_asks.eq(((state == _State.ASKING) & ~self.i_drain) | (state == _State.SENDING)),
            self.o_idle.eq((state == _State.IDLE) | (state == _State.ASKING)),
            axi.bready.eq(1),
        ]
        with m.Switch(state):
            with m.Case(_State.IDLE):
                within = at[: (_WORD_BYTES - 1).bit_length()]
                with m.If(self.i_stream.valid & ~known):
                    m.d.comb += [self.o_done.eq(1), self.o_code.eq(TmaError.FIELD.value)]
                with m.Elif(self.i_stream.valid):
                    m.d.sync += [
                        state.eq(_State.ASKING),
                        address.eq(given.descriptor + at),
                        word.eq(given.value << (within << 3)),
                        strobe.eq(((1 << size) - 1) << within),
                    ]
            with m.Case(_State.ASKING):
                with m.If(self.i_granted & ~self.i_drain):
                    m.d.sync += [state.eq(_State.SENDING), axi.awvalid.eq(1), axi.wvalid.eq(1)]
            with m.Case(_State.SENDING):
                with m.If(axi.awready):
                    m.d.sync += axi.awvalid.eq(0)
                with m.If(axi.wready):
                    m.d.sync += axi.wvalid.eq(0)
                with m.If(axi.bvalid):
                    m.d.sync += state.eq(_State.IDLE)
                    decerr = axi.bresp == RESP_DECERR
                    code = Mux(decerr, TmaError.WRITE_DECERR.value, TmaError.WRITE_SLVERR.value)
                    m.d.comb += [
                        self.o_done.eq(1),
                        self.o_code.eq(Mux(axi.bresp[1], code, TmaError.NONE.value)),
                    ]
        self._drive(m, address, word, strobe)
        return m

    def _find(self, m: Module, given: Any, known: Signal, at: Signal, size: Signal) -> None:
        """Whether there is such a field, with its byte in the descriptor and its bytes."""
        index = given.index[: (MAX_RANK - 1).bit_length()]
        with m.Switch(given.field):
            for field in DescriptorField:
                with m.Case(field.value):
                    fits = (given.index < field.count) & (given.value >> (8 * field.bytes) == 0)
                    m.d.comb += [
                        known.eq(fits),
                        at.eq(field.offset + index * field.bytes),
                        size.eq(field.bytes),
                    ]

    def _drive(self, m: Module, address: Signal, word: Any, strobe: Signal) -> None:
        """Address of the beat, and the word in each of its places, written in one of them."""
        axi = self.axi
        beat_bits = full_width_size(self._data_bits)
        words = self._data_bits // WORD_BITS
        place = address[(_WORD_BYTES - 1).bit_length() : beat_bits]
        m.d.comb += write_constants(axi)
        m.d.comb += [
            axi.awaddr.eq(Cat(Const(0, beat_bits), address[beat_bits:])),
            axi.awlen.eq(0),
            axi.wlast.eq(1),
            axi.wdata.eq(word.as_value().replicate(words)),
            *(
                axi.wstrb.word_select(number, _WORD_BYTES).eq(
                    Mux(place == number, strobe, 0) if words > 1 else strobe
                )
                for number in range(words)
            ),
        ]
