"""Argument reader of the command processor: beats of memory to argument writes."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hw.arch.launch import ARGUMENT_BYTES, MAX_ARGUMENTS, argument_layout
from hw.command.burst_reader import beat_layout
from hw.lib.axi import RESP_OKAY
from hw.lib.component import Component

__all__ = ["ArgumentReader", "argument_write_layout"]


def argument_write_layout() -> data.StructLayout:
    """Layout of one write on the argument port: index, value and stride."""
    return data.StructLayout({"index": (MAX_ARGUMENTS - 1).bit_length()} | argument_layout.members)


class ArgumentReader(Component):
    """Argument reader: splits or joins beats into launch arguments, one argument per cycle.

    Parameters
    ----------
    width_bits : int
        Width of a beat; it holds several arguments, or half of one.

    Members
    -------
    i_start, i_count : ``In(1)``, ``In(range(MAX_ARGUMENTS + 1))``
        Begins with argument 0 of so many.
    o_beats : ``Out(range(...))``
        Beats of the arguments still to come.
    o_empty, o_end : ``Out(1)``
        No argument is to come; the last one leaves in this cycle.
    i_beat : stream of `beat_layout`
    o_argument : stream of `argument_write_layout`
        Not valid for a beat whose read failed.
    """

    i_start: Signal
    i_count: Signal
    o_beats: Signal
    o_empty: Signal
    o_end: Signal
    i_beat: stream.Interface
    o_argument: stream.Interface

    def __init__(self, *, width_bits: int) -> None:
        self._width_bits = width_bits
        # Arguments per beat, beats per argument; one of them is 1.
        self._lanes = max(1, width_bits // (ARGUMENT_BYTES * 8))
        self._halves = max(1, ARGUMENT_BYTES * 8 // width_bits)
        super().__init__(
            {
                "i_start": In(1),
                "i_count": In(range(MAX_ARGUMENTS + 1)),
                "o_beats": Out(range(MAX_ARGUMENTS * self._halves // self._lanes + 1)),
                "o_empty": Out(1),
                "o_end": Out(1),
                "i_beat": In(stream.Signature(beat_layout(width_bits))),
                "o_argument": Out(stream.Signature(argument_write_layout())),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes, halves = self._lanes, self._halves
        beat = self.i_beat
        write: Any = self.o_argument.payload
        left = Signal.like(self.i_count)
        index = Signal.like(write.index)
        half = Signal()
        low_half = Signal(self._width_bits)
        argument: Any = Signal(argument_layout)
        lane = index[: lanes.bit_length() - 1]
        if halves == 2:
            m.d.comb += argument.eq(Cat(low_half, beat.payload.data))
        else:
            m.d.comb += argument.eq(beat.payload.data.word_select(lane, ARGUMENT_BYTES * 8))
        last = Signal()
        sends = Signal()
        m.d.comb += [
            self.o_beats.eq((left * halves + lanes - 1) >> (lanes.bit_length() - 1)),
            self.o_empty.eq(left == 0),
            last.eq(left == 1),
            sends.eq(beat.valid & (half == halves - 1)),
            self.o_end.eq(sends & self.o_argument.ready & last),
            self.o_argument.valid.eq(sends & (beat.payload.response == RESP_OKAY)),
            write.index.eq(index),
            write.value.eq(argument.value),
            write.stride.eq(argument.stride),
            beat.ready.eq(~sends | (self.o_argument.ready & (last | lane.all()))),
        ]
        with m.If(beat.valid & ~sends):
            m.d.sync += [half.eq(1), low_half.eq(beat.payload.data)]
        with m.If(sends & self.o_argument.ready):
            m.d.sync += [half.eq(0), index.eq(index + 1), left.eq(left - 1)]
        with m.If(self.i_start):
            m.d.sync += [left.eq(self.i_count), index.eq(0), half.eq(0)]
        return m
