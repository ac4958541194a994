"""Run writer of the command processor: directories and words of an image to the segments."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.arch.image import run_layout
from hw.arch.limits import SEGMENT_WORDS
from hw.lib.component import Component

__all__ = ["RunWriter"]


class RunWriter(Component):
    """Run writer: reads the directories of an image and writes its words to the segments.

    A directory is one beat of runs; the words of its runs follow, and then the next directory. One
    beat per cycle, latency one cycle.

    Parameters
    ----------
    width_bits : int
        Width of a beat and of a word.
    segments : tuple of tuple of int
        Words of every segment, by row.

    Members
    -------
    i_start : ``In(1)``
        Begins with a directory.
    i_valid, i_data : ``In(1)``, ``In(width_bits)``
        The next beat.
    o_complete : ``Out(1)``
        Every word of the directories so far has come.
    o_misplaced : ``Out(1)``
        The next beat is a word of no segment.
    o_row, o_segment : ``Out(rows)``, ``Out(segments of the longest row)``
        Row and segment of a word, one bit each; no bit if there is no word.
    o_word, o_data : ``Out(range(256))``, ``Out(width_bits)``
        Number of the word in its segment, and the word.
    """

    i_start: Signal
    i_valid: Signal
    i_data: Signal
    o_complete: Signal
    o_misplaced: Signal
    o_row: Signal
    o_segment: Signal
    o_word: Signal
    o_data: Signal

    def __init__(self, *, width_bits: int, segments: tuple[tuple[int, ...], ...]) -> None:
        self._width_bits = width_bits
        self._segments = segments
        super().__init__(
            {
                "i_start": In(1),
                "i_valid": In(1),
                "i_data": In(width_bits),
                "o_complete": Out(1),
                "o_misplaced": Out(1),
                "o_row": Out(len(segments)),
                "o_segment": Out(max(map(len, segments))),
                "o_word": Out(range(SEGMENT_WORDS.high + 1)),
                "o_data": Out(width_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        runs = data.ArrayLayout(run_layout, self._width_bits // run_layout.size)
        directory: Any = Signal(runs)
        run = directory[0]
        m.d.comb += [
            self.o_complete.eq(run.words == 0),
            self.o_misplaced.eq(~self.o_complete & (run.word >= self._words(m, run))),
        ]
        m.d.sync += [self.o_row.eq(0), self.o_segment.eq(0)]
        with m.If(self.i_valid & self.o_complete):
            m.d.sync += directory.eq(self.i_data)
        with m.Elif(self.i_valid):
            m.d.sync += [
                self.o_row.eq(Const(1) << run.row),
                self.o_segment.eq(Const(1) << run.segment),
                self.o_word.eq(run.word),
                self.o_data.eq(self.i_data),
                run.word.eq(run.word + 1),
                run.words.eq(run.words - 1),
            ]
            with m.If(run.words == 1):
                m.d.sync += directory.eq(directory.as_value() >> run_layout.size)
        with m.If(self.i_start):
            m.d.sync += directory.eq(0)
        return m

    def _words(self, m: Module, run: Any) -> Signal:
        """Words of the segment that a run names; 0 if there is none."""
        words = Signal(range(SEGMENT_WORDS.high + 1))
        # Most rows are equal: one table for each that is different.
        for number, kind in enumerate(dict.fromkeys(self._segments)):
            of_kind = Signal.like(words, name=f"words_{number}")
            with m.Switch(run.segment):
                for count in sorted(set(kind)):
                    with m.Case(*(at for at, each in enumerate(kind) if each == count)):
                        m.d.comb += of_kind.eq(count)
            with m.Switch(run.row):
                with m.Case(*(at for at, each in enumerate(self._segments) if each == kind)):
                    m.d.comb += words.eq(of_kind)
        return words
