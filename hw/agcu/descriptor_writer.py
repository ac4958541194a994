"""Descriptor writer of an AGCU: the program's descriptors, each with its launch argument added."""

from __future__ import annotations

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, memory, stream
from amaranth.lib.wiring import In, Out

from hw.arch.agcu import AGCU_DESCRIPTORS, agcu_layout
from hw.arch.descriptor import STORED_WORDS
from hw.arch.launch import MAX_ARGUMENTS, argument_layout
from hw.command.argument_reader import argument_write_layout
from hw.lib.component import Component
from hw.tma.descriptor_file import descriptor_word_layout

__all__ = ["DescriptorWriter"]


class DescriptorWriter(Component):
    """Descriptor writer: copies descriptors to the TMA engine after the start, one word per cycle.

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
    o_word : stream of `descriptor_word_layout`
        Its consumer is always ready.
    o_written
        Every word has left, or nothing was started: descriptors may be used.
    o_idle
        Low from ``i_start`` to the cycle in which ``o_written`` rises again, both included.
    """

    config: data.View[data.StructLayout]
    i_start: Signal
    i_argument_valid: Signal
    i_argument: data.View[data.StructLayout]
    o_word: stream.Interface
    o_written: Signal
    o_idle: Signal

    def __init__(self, *, token_ports: int) -> None:
        words = stream.Signature(descriptor_word_layout(AGCU_DESCRIPTORS))
        super().__init__(
            {
                "config": In(agcu_layout(token_ports)),
                "i_start": In(1),
                "i_argument_valid": In(1),
                "i_argument": In(argument_write_layout()),
                "o_word": Out(words),
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
        starting = Signal()
        writing = Signal()
        ends = Signal()
        index = Signal(range(AGCU_DESCRIPTORS))
        word = Signal(range(STORED_WORDS))
        words = Array(
            Array(self.config.descriptors[i][j] for j in range(STORED_WORDS))
            for i in range(AGCU_DESCRIPTORS)
        )
        m.d.comb += [
            write.en.eq(self.i_argument_valid),
            write.addr.eq(self.i_argument.index),
            write.data.value.eq(self.i_argument.value),
            write.data.stride.eq(self.i_argument.stride),
            read.addr.eq(Array(self.config.arguments[i] for i in range(AGCU_DESCRIPTORS))[index]),
            self.o_word.valid.eq(writing),
            self.o_word.payload.index.eq(index),
            self.o_word.payload.word.eq(word),
            # The base is the first word of a descriptor.
            self.o_word.payload.data.eq(words[index][word] + Mux(word == 0, read.data.value, 0)),
            self.o_word.payload.stride.eq(read.data.stride),
            self.o_written.eq(ends | ~starting),
            self.o_idle.eq(~starting & ~self.i_start),
        ]
        m.d.sync += ends.eq(0)
        with m.If(self.i_start):
            m.d.sync += [starting.eq(1), writing.eq(1), index.eq(0), word.eq(0)]
        with m.Else():
            with m.If(ends):
                m.d.sync += starting.eq(0)
            with m.If(writing):
                m.d.sync += word.eq(word + 1)
                with m.If(word == STORED_WORDS - 1):
                    m.d.sync += [word.eq(0), index.eq(index + 1)]
                    with m.If(index == AGCU_DESCRIPTORS - 1):
                        m.d.sync += [writing.eq(0), ends.eq(1)]
        return m
