"""Box readers: several at work on one stream of commands, their boxes in order."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hw.arch.descriptor import WORD_BITS, TmaFeature, descriptor_layout
from hw.arch.error_codes import TmaError
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.numeric.division import ceil_div
from hw.tma.box_reader import BoxReader
from hw.tma.commands import tagged_command_layout
from hw.tma.layouts import TmaLayouts

__all__ = ["ROW_BYTES", "BoxReaders", "readers_of"]

#: Most box readers at work, and least: boxes of four beats are to follow each other without a gap.
_MOST, _LEAST = 4, 2
#: Cycles that a box of one row of two dimensions takes a box reader, and bytes of such a row: boxes
#: no shorter than this are to leave as fast as memory moves them.
_CYCLES, ROW_BYTES = 6, 64


def readers_of(layouts: TmaLayouts) -> int:
    """Box readers of an engine."""
    if TmaFeature.PARALLEL_BOXES not in layouts.features:
        return 1
    return min(_MOST, max(_LEAST, ceil_div(_CYCLES * layouts.beat_bytes, ROW_BYTES)))


class BoxReaders(Component):
    """Box readers in parallel: commands to each in turn, boxes and reports in order of commands.

    Parameters
    ----------
    layouts : TmaLayouts
        With `TmaFeature.PARALLEL_BOXES`.
    descriptors : int
        Descriptors in the file.

    Members
    -------
    i_stream : stream of :func:`hw.tma.commands.tagged_command_layout`
    o_stream : stream of :attr:`TmaLayouts.box`
        The boxes of commands that are not refused.
    o_reports : stream of :attr:`TmaLayouts.report`
        One per command. A box and its report leave together: both must feed buffers, whose ready
        ignores valid.
    o_index, o_read, i_descriptor, i_stride : arrays, one entry per reader
        Read ports of the descriptor file, as in :class:`hw.tma.box_reader.BoxReader`.
    o_error
        Code of a refusal, for one cycle, 0 otherwise.
    """

    i_stream: stream.Interface
    o_stream: stream.Interface
    o_reports: stream.Interface
    o_index: Sequence[Signal]
    o_read: Sequence[Signal]
    i_descriptor: Sequence[Any]
    i_stride: Sequence[Signal]
    o_error: Signal

    def __init__(self, layouts: TmaLayouts, *, descriptors: int) -> None:
        self._layouts = layouts
        self._descriptors = descriptors
        self._readers = readers = readers_of(layouts)
        commands = tagged_command_layout(descriptors, layouts.streams, layouts.features)
        super().__init__(
            {
                "i_stream": In(stream.Signature(commands)),
                "o_stream": Out(stream.Signature(layouts.box)),
                "o_reports": Out(stream.Signature(layouts.report)),
                "o_index": Out(range(descriptors)).array(readers),
                "o_read": Out(1).array(readers),
                "i_descriptor": In(descriptor_layout).array(readers),
                "i_stride": In(signed(WORD_BITS)).array(readers),
                "o_error": Out(8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        box: Any = self.o_stream.payload
        report: Any = self.o_reports.payload
        given = Signal(range(self._readers))
        taken = Signal(range(self._readers))
        ready = Signal()
        valid = Signal()
        accepted = Signal()
        leaves = Signal()
        for number in range(self._readers):
            reader = BoxReader(self._layouts, descriptors=self._descriptors)
            m.submodules[f"reader{number}"] = shared(reader)
            mine, next_one = given == number, taken == number
            m.d.comb += [
                reader.i_stream.payload.eq(self.i_stream.payload),
                reader.i_stream.valid.eq(self.i_stream.valid & mine),
                reader.o_stream.ready.eq(leaves & next_one),
                self.o_index[number].eq(reader.o_index),
                self.o_read[number].eq(reader.o_read),
                reader.i_descriptor.eq(self.i_descriptor[number]),
                reader.i_stride.eq(self.i_stride[number]),
            ]
            with m.If(mine):
                m.d.comb += ready.eq(reader.i_stream.ready)
            with m.If(next_one):
                m.d.comb += [valid.eq(reader.o_stream.valid), box.eq(reader.o_stream.payload)]
        moves = self.o_stream.ready | ~accepted
        m.d.comb += [
            accepted.eq(box.report.code == TmaError.NONE.value),
            leaves.eq(valid & moves & self.o_reports.ready),
            self.i_stream.ready.eq(ready),
            self.o_stream.valid.eq(valid & accepted & self.o_reports.ready),
            self.o_reports.valid.eq(valid & moves),
            report.eq(box.report),
        ]
        with m.If(self.i_stream.valid & self.i_stream.ready):
            m.d.sync += given.eq(Mux(given == self._readers - 1, 0, given + 1))
        with m.If(leaves):
            m.d.sync += taken.eq(Mux(taken == self._readers - 1, 0, taken + 1))
            m.d.comb += self.o_error.eq(box.report.code)
        return m
