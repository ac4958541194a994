"""Counters of the keys of a scores unit: which queries see the key whose scores are stored."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.arch.lanes.key_mask import KEY_BITS, key_mask_layout
from hw.lib.component import Component

__all__ = ["KeyCounters"]

_COUNTERS = ("key", "distance")


class KeyCounters(Component):
    """Numbers of the keys whose scores leave column 0, and the queries that do not see them.

    Each tile of a block has the same keys; the next block goes on behind them, and a query group
    begins with its first key. Bit-identical to :func:`hw.numeric.fused_softmax.seen`.

    Parameters
    ----------
    columns : int
        Queries C.

    Members
    -------
    mask : ``In(key_mask_layout())``
        Static.
    i_lands : ``In(1)``
        A row of scores leaves column 0.
    i_begins, i_ends : ``In(1)``
        It is the first of a tile; the last of a block.
    i_group : ``In(1)``
        Its block is the first of a query group.
    i_clear : ``In(1)``
        The next query group is group 0.
    o_hidden : ``Out(C)``
        Queries that do not see the key of the row.
    """

    mask: data.View[data.StructLayout]
    i_lands: Signal
    i_begins: Signal
    i_ends: Signal
    i_group: Signal
    i_clear: Signal
    o_hidden: Signal

    def __init__(self, columns: int) -> None:
        self._columns = columns
        flags = ("lands", "begins", "ends", "group", "clear")
        super().__init__(
            {"mask": In(key_mask_layout()), "o_hidden": Out(columns)}
            | {f"i_{name}": In(1) for name in flags}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        mask: Any = self.mask
        # The next query group is group 0; groups before it since then.
        restarts, group = Signal(init=1), Signal(len(mask.groups))
        ends = self.i_lands & self.i_ends
        with m.If(ends & self.i_group):
            again = group + 1 == mask.groups
            m.d.sync += [restarts.eq(again), group.eq(Mux(again, 0, group + 1))]
        with m.If(self.i_clear):
            m.d.sync += [restarts.eq(1), group.eq(0)]
        numbers: list[Value] = []
        for name in _COUNTERS:
            # What the next query group, the current block and the next row begin with.
            following = Signal(KEY_BITS, name=f"{name}_of_group")
            block = Signal(KEY_BITS, name=f"{name}_of_block")
            row = Signal(KEY_BITS, name=f"{name}_of_row")
            number = Signal(KEY_BITS, name=name)
            start = Mux(restarts, mask[name], following)
            m.d.comb += number.eq(
                Mux(self.i_begins, Mux(self.i_group, start, block), row),
            )
            with m.If(self.i_lands):
                m.d.sync += row.eq(number + 1)
            with m.If(ends):
                m.d.sync += block.eq(number + 1)
                with m.If(self.i_group):
                    m.d.sync += following.eq(start + mask[f"{name}_step"])
            numbers.append(number)
        key, distance = numbers
        beyond = (mask.length != 0) & (key[:-1] >= mask.length)
        signed = distance.as_signed()
        hidden = [
            key[-1]
            | beyond
            | (mask.causal & (signed > query))
            | ((mask.window != 0) & (signed <= query - mask.window))
            for query in range(self._columns)
        ]
        m.d.comb += self.o_hidden.eq(Cat(*hidden))
        return m
