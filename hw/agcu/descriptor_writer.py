"""Descriptor writer of an AGCU: the program's descriptors, each with its launch argument added."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, memory, stream
from amaranth.lib.wiring import In, Out

from hw.arch.agcu import AGCU_DESCRIPTORS, agcu_layout
from hw.arch.descriptor import WORD_BITS, descriptor_layout
from hw.arch.launch import MAX_ARGUMENTS, argument_layout
from hw.command.argument_reader import argument_write_layout
from hw.lib.component import Component
from hw.tma.descriptor_file import descriptor_write_layout

__all__ = ["DescriptorWriter"]

_HALF_BITS = WORD_BITS // 2


class DescriptorWriter(Component):
    """Descriptor writer: copies descriptors to the TMA engine, one per cycle.

    The first is written three cycles after the start: less than an issuer takes for a command. The
    sum of base and argument takes two of them, half of its bits in each.

    Parameters
    ----------
    token_ports : int
        Token ports of the AGCU.

    Members
    -------
    config : ``In(agcu_layout(token_ports))``
        The program; constant from ``i_start`` on.
    i_start
        Start the program; one cycle.
    i_argument_valid, i_argument
        Launch arguments, before ``i_start``; a reset does not clear them.
    o_write : stream of `descriptor_write_layout`
        Its consumer is always ready.
    o_written
        Every descriptor of the program has left, or nothing was started: they may be used.
    o_idle
        Low from ``i_start`` until all have left, those that the program lacks too.
    """

    config: data.View[data.StructLayout]
    i_start: Signal
    i_argument_valid: Signal
    i_argument: data.View[data.StructLayout]
    o_write: stream.Interface
    o_written: Signal
    o_idle: Signal

    def __init__(self, *, token_ports: int) -> None:
        writes = stream.Signature(descriptor_write_layout(AGCU_DESCRIPTORS))
        super().__init__(
            {
                "config": In(agcu_layout(token_ports)),
                "i_start": In(1),
                "i_argument_valid": In(1),
                "i_argument": In(argument_write_layout()),
                "o_write": Out(writes),
                "o_written": Out(1),
                "o_idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        arguments: memory.Memory = memory.Memory(
            shape=argument_layout, depth=MAX_ARGUMENTS, init=[]
        )
        m.submodules.arguments = arguments
        write, read = arguments.write_port(), arguments.read_port(domain="comb")
        # A descriptor takes three cycles: its argument is read, the low halves of base and argument
        # are added, and it is written with the sum of the high halves.
        reading, adding, writing = Signal(), Signal(), Signal()
        index = Signal(range(AGCU_DESCRIPTORS))
        added, place = Signal.like(index), Signal.like(index)
        argument: Any = Signal(argument_layout)
        low = Signal(_HALF_BITS + 1)  # with its carry
        high = Signal(_HALF_BITS)
        stride = Signal.like(argument.stride)
        absent = Signal()
        descriptors = Array(self.config.descriptors[i] for i in range(AGCU_DESCRIPTORS))
        numbers = Array(self.config.arguments[i] for i in range(AGCU_DESCRIPTORS))
        # The base is the first word of a descriptor.
        bases = [self.config.descriptors[i][0] for i in range(AGCU_DESCRIPTORS)]
        lows = Array(base[:_HALF_BITS] for base in bases)
        rank = descriptor_layout["rank"]
        bits = slice(rank.offset, rank.offset + rank.width)
        ranks = Array(Cat(self.config.descriptors[i])[bits] for i in range(AGCU_DESCRIPTORS))
        highs = Array(base[_HALF_BITS:] for base in bases)
        m.d.comb += [
            write.en.eq(self.i_argument_valid),
            write.addr.eq(self.i_argument.index),
            write.data.value.eq(self.i_argument.value),
            write.data.stride.eq(self.i_argument.stride),
            read.addr.eq(numbers[index]),
            self.o_write.valid.eq(writing),
            self.o_write.payload.index.eq(place),
            self.o_write.payload.words.eq(descriptors[place]),
            self.o_write.payload.words[0].eq(
                Cat(low[:_HALF_BITS], highs[place] + high + low[_HALF_BITS])
            ),
            self.o_write.payload.stride.eq(stride),
            # Those that the program lacks stand last.
            self.o_written.eq(Mux(writing, absent, ~reading & ~adding)),
            self.o_idle.eq(~reading & ~adding & ~writing & ~self.i_start),
        ]
        m.d.sync += [
            adding.eq(reading),
            added.eq(index),
            argument.eq(read.data),
            writing.eq(adding),
            place.eq(added),
            absent.eq(ranks[added] == 0),
            low.eq(lows[added] + argument.value[:_HALF_BITS]),
            high.eq(argument.value[_HALF_BITS:]),
            stride.eq(argument.stride),
        ]
        with m.If(self.i_start):
            m.d.sync += [reading.eq(1), index.eq(0)]
        with m.Elif(reading):
            m.d.sync += index.eq(index + 1)
            with m.If(index == AGCU_DESCRIPTORS - 1):
                m.d.sync += reading.eq(0)
        return m
