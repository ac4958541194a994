"""Index reader: positions of an engine's accesses by a stream of indices."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hw.arch.words.pmu_word import ENGINE_LOOPS, INDEX_BYTES, IndexUse, Level, index_layout
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.stream import vector_signature
from hw.pmu.element_selector import ElementSelector, pass_layout

__all__ = ["IndexReader"]


class IndexReader(Component):
    """Index reader of a PMU: positions of R1 or W0 by the indices of a stream of vectors.

    An access of a step takes one index, or all that an `ElementSelector` chooses of a vector, and
    is then one of several of its step. Combinational from the stream to the positions.

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
    i_write_access, i_read_access : ``In(1)``
        W0, or R1, makes the access.
    i_write_position, i_read_position : ``In(position_bits)``
        Positions of their steps without an index.
    i_write_ends, i_read_ends : ``In(ENGINE_LOOPS)``
        Loops that end with their steps, as of ``StreamEngine.o_ends``.
    i_write_plain : ``In(1)``
        W0's step takes no index whatever the program.
    o_write, o_read : ``Out(1)``
        W0's, or R1's, step takes an index.
    o_valid : ``Out(1)``
        An index is there.
    o_position : ``Out(position_bits)``
        Position of the access, if it is one of a whole vector.
    o_outside : ``Out(1)``
        It must not be made: its index, taken as unsigned, is at or above the limit.
    o_elements : ``Out(1)``
        The access is one of elements: ``o_pass``.
    o_pass : ``Out(pass_layout(...))``
    o_last : ``Out(1)``
        It is the last access of its step.
    o_reads_on : ``Out(1)``
        R1 has made some accesses of its step but not all.
    o_error : ``Out(1)``
        An index was at or above the limit since ``i_clear``.
    """

    config: data.View[data.StructLayout]
    i_stream: stream.Interface
    i_clear: Signal
    i_write_access: Signal
    i_read_access: Signal
    i_write_position: Signal
    i_read_position: Signal
    i_write_ends: Signal
    i_read_ends: Signal
    i_write_plain: Signal
    o_write: Signal
    o_read: Signal
    o_valid: Signal
    o_position: Signal
    o_outside: Signal
    o_elements: Signal
    o_pass: Any
    o_last: Signal
    o_reads_on: Signal
    o_error: Signal

    def __init__(self, *, width_bits: int, position_bits: int) -> None:
        self._lanes = width_bits // (8 * INDEX_BYTES)
        self._sizes = {"width_bits": width_bits, "position_bits": position_bits}
        super().__init__(
            {
                "config": In(index_layout(position_bits=position_bits)),
                "i_stream": In(vector_signature(width_bits)),
                "i_clear": In(1),
                "i_write_access": In(1),
                "i_read_access": In(1),
                "i_write_position": In(position_bits),
                "i_read_position": In(position_bits),
                "i_write_ends": In(ENGINE_LOOPS),
                "i_read_ends": In(ENGINE_LOOPS),
                "i_write_plain": In(1),
                "o_write": Out(1),
                "o_read": Out(1),
                "o_valid": Out(1),
                "o_position": Out(position_bits),
                "o_outside": Out(1),
                "o_elements": Out(1),
                "o_pass": Out(pass_layout(**self._sizes)),
                "o_last": Out(1),
                "o_reads_on": Out(1),
                "o_error": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        use = self.config.use
        lane = Signal(range(self._lanes))
        current = Signal(8 * INDEX_BYTES)
        position = Signal.like(self.o_position)
        access, takes, step, closes = Signal(), Signal(), Signal(), Signal()
        ends = Signal(ENGINE_LOOPS)
        selector = ElementSelector(**self._sizes)
        m.submodules.selector = shared(selector)
        beyond = current >= self.config.limit
        m.d.comb += [
            self.o_read.eq(use == IndexUse.GATHER),
            self.o_write.eq((use != IndexUse.OFF) & ~self.o_read & ~self.i_write_plain),
            self.o_valid.eq(self.i_stream.valid),
            access.eq(Mux(self.o_read, self.i_read_access, self.i_write_access)),
            position.eq(Mux(self.o_read, self.i_read_position, self.i_write_position)),
            ends.eq(Mux(self.o_read, self.i_read_ends, self.i_write_ends)),
            takes.eq(access & (self.o_read | self.o_write)),
            step.eq(access & (use != IndexUse.OFF) & (~takes | self.o_last)),
            closes.eq(step & ends[Level.ADDRESS]),
            # One index.
            current.eq(self.i_stream.payload.data.word_select(lane, 8 * INDEX_BYTES)),
            self.o_position.eq(position + (current[: len(position)] << self.config.shift)),
            self.o_outside.eq(beyond & ~self.config.elements),
            # All indices of a vector.
            selector.i_indices.eq(self.i_stream.payload.data),
            selector.i_base.eq(position),
            selector.i_limit.eq(self.config.limit),
            selector.i_next.eq(takes & self.config.elements),
            selector.i_clear.eq(self.i_clear),
            self.o_elements.eq(self.config.elements),
            self.o_pass.eq(selector.o_pass),
            self.o_last.eq(~self.config.elements | selector.o_last),
            self.o_reads_on.eq(self.config.elements & self.o_read & ~selector.o_pass.first),
        ]
        level = Cat(ends[Level.ADDRESS :], Const(1, 1)).bit_select(self.config.level, 1)
        uses = takes & step & level
        # A visit to a slot begins with a vector: what it leaves of its last one is dropped.
        m.d.comb += self.i_stream.ready.eq(
            (uses & ((lane == self._lanes - 1) | self.config.elements))
            | (closes & (takes | (lane != 0)))
        )
        with m.If(uses & ~self.config.elements):
            m.d.sync += lane.eq(lane + 1)
        with m.If(closes | self.i_clear):
            m.d.sync += lane.eq(0)
        with m.If(takes & Mux(self.config.elements, selector.o_outside, beyond)):
            m.d.sync += self.o_error.eq(1)
        with m.If(self.i_clear):
            m.d.sync += self.o_error.eq(0)
        return m
