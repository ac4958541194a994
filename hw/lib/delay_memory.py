"""Delay of wide words by a number of cycles that may change, in a memory."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import memory
from amaranth.lib.wiring import In, Out

from hw.arch.errors import BadInputError, shown
from hw.lib.component import Component

__all__ = ["DelayMemory"]


class DelayMemory(Component):
    """Delay line in a memory: a word of every cycle, given back some cycles later.

    It takes no register for a cycle of a long delay, and no multiplexer to choose among delays.

    Parameters
    ----------
    width : int
        Bits of a word.
    most : int
        Greatest delay, at least 2.

    Members
    -------
    i_data, o_data : ``In(width)``, ``Out(width)``
        A word, and the one of ``i_cycles`` cycles ago.
    i_cycles : ``In(range(most + 1))``
        Delay, 2 to ``most``; while it changes, the output is undefined for as many cycles.

    Raises
    ------
    BadInputError
        If the greatest delay is less than 2.
    """

    i_data: Signal
    i_cycles: Signal
    o_data: Signal

    def __init__(self, *, width: int, most: int) -> None:
        if not isinstance(most, int) or most < 2:
            raise BadInputError(
                f"Greatest delay must be an integer of at least 2, not {shown(most)}"
            )
        self._width = width
        self._bits = (most - 1).bit_length()
        super().__init__(
            {"i_data": In(width), "i_cycles": In(range(most + 1)), "o_data": Out(width)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cells: Any = memory.Memory(shape=unsigned(self._width), depth=1 << self._bits, init=[])
        m.submodules.cells = cells
        writer, reader = cells.write_port(), cells.read_port()
        place = Signal(self._bits)
        m.d.sync += place.eq(place + 1)
        m.d.comb += [
            writer.en.eq(1),
            writer.addr.eq(place),
            writer.data.eq(self.i_data),
            # The word is there a cycle after its address.
            reader.addr.eq(place + 1 - self.i_cycles),
            self.o_data.eq(reader.data),
        ]
        return m
