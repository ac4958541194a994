"""Index reader: one index of a vector after another, as an offset of positions."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hw.arch.pmu_word import ADDRESS_LOOPS, ENGINE_LOOPS, INDEX_BYTES, IndexUse, Level, index_layout
from hw.lib.component import Component
from hw.lib.stream import vector_signature

__all__ = ["IndexReader"]


class IndexReader(Component):
    """Index reader of a PMU: what each index of a stream of vectors adds to an engine's position.

    Combinational from the stream to the offset; one index per cycle.

    Parameters
    ----------
    width_bits : int
        Bits of a vector.
    position_bits : int
        Bits of an element position.

    Members
    -------
    config : ``In(index_layout(...))``
        The program; constant from ``i_clear`` on.
    i_stream : ``In(vector_signature(width_bits))``
        Vectors of 32-bit indices, lane 0 first.
    i_clear : ``In(1)``
        Begin anew with lane 0.
    i_write_step, i_read_step : ``In(1)``
        W0, or R1, takes its step.
    i_write_ends, i_read_ends : ``In(ENGINE_LOOPS)``
        Loops of W0's, and of R1's, step that end with it, as of ``StreamEngine.o_ends``.
    i_write_plain : ``In(1)``
        W0's step takes no index whatever the program.
    o_write, o_read : ``Out(1)``
        W0's, or R1's, step takes an index.
    o_valid : ``Out(1)``
        An index is there.
    o_offset : ``Out(position_bits)``
        ``index << shift``.
    o_outside : ``Out(1)``
        The index, taken as unsigned, is at or above the limit.
    o_error : ``Out(1)``
        A step has taken such an index since ``i_clear``.
    """

    config: data.View[data.StructLayout]
    i_stream: stream.Interface
    i_clear: Signal
    i_write_step: Signal
    i_read_step: Signal
    i_write_ends: Signal
    i_read_ends: Signal
    i_write_plain: Signal
    o_write: Signal
    o_read: Signal
    o_valid: Signal
    o_offset: Signal
    o_outside: Signal
    o_error: Signal

    def __init__(self, *, width_bits: int, position_bits: int) -> None:
        self._lanes = width_bits // (8 * INDEX_BYTES)
        super().__init__(
            {
                "config": In(index_layout(position_bits=position_bits)),
                "i_stream": In(vector_signature(width_bits)),
                "i_clear": In(1),
                "i_write_step": In(1),
                "i_read_step": In(1),
                "i_write_ends": In(ENGINE_LOOPS),
                "i_read_ends": In(ENGINE_LOOPS),
                "i_write_plain": In(1),
                "o_write": Out(1),
                "o_read": Out(1),
                "o_valid": Out(1),
                "o_offset": Out(position_bits),
                "o_outside": Out(1),
                "o_error": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        use = self.config.use
        lane = Signal(range(self._lanes))
        current = Signal(8 * INDEX_BYTES)
        step, takes, closes = Signal(), Signal(), Signal()
        ends = Signal(ADDRESS_LOOPS + 1)
        m.d.comb += [
            self.o_read.eq(use == IndexUse.GATHER),
            self.o_write.eq((use != IndexUse.OFF) & ~self.o_read & ~self.i_write_plain),
            current.eq(self.i_stream.payload.data.word_select(lane, 8 * INDEX_BYTES)),
            self.o_valid.eq(self.i_stream.valid),
            self.o_offset.eq(current[: len(self.o_offset)] << self.config.shift),
            self.o_outside.eq(current >= self.config.limit),
            step.eq(Mux(self.o_read, self.i_read_step, self.i_write_step)),
            ends.eq(
                Cat(
                    Mux(self.o_read, self.i_read_ends, self.i_write_ends)[Level.ADDRESS :],
                    Const(1, 1),
                )
            ),
            takes.eq(step & (self.o_read | self.o_write)),
            closes.eq(step & (use != IndexUse.OFF) & ends[0]),
        ]
        used = takes & ends.bit_select(self.config.level, 1)
        # A visit to a slot begins with a vector: what it leaves of its last one is dropped.
        m.d.comb += self.i_stream.ready.eq(
            (used & (lane == self._lanes - 1)) | (closes & (takes | (lane != 0)))
        )
        with m.If(used):
            m.d.sync += lane.eq(lane + 1)
        with m.If(closes | self.i_clear):
            m.d.sync += lane.eq(0)
        with m.If(takes & self.o_outside):
            m.d.sync += self.o_error.eq(1)
        with m.If(self.i_clear):
            m.d.sync += self.o_error.eq(0)
        return m
