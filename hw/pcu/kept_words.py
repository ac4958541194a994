"""Kept words of a PCU's lanes: two words for each element of a strip, from phase to phase."""

from __future__ import annotations

from typing import Any, Final

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, memory
from amaranth.lib.wiring import In, Out

from hw.arch.lanes.phase_word import Fetched, Reduction
from hw.lib.component import Component

__all__ = ["WORDS", "KeptWords", "keeps_words", "reads_kept"]

#: Kept words of an element.
WORDS = 2


def keeps_words(phase: Any) -> Value:
    """Whether a phase keeps words (`Reduction.keeps`), so that the one behind it continues it."""
    code = Value.cast(phase.reduction)
    return (code == Reduction.KEEP.value) | (code == Reduction.KEEP_BOTH.value)


def reads_kept(phase: Any) -> Value:
    """Whether a phase reads kept words, and so continues the one before it."""
    codes = (Value.cast(phase[name]) for name in ("y", "z"))
    return Cat(code == Fetched.KEPT.value for code in codes).any()


class KeptWords(Component):
    """Two words for each element of a strip, which joined phases write and read by group.

    Results become either word; x becomes word 0 as soon as it is there, so that it does not have to
    travel with its results. The words are in memories, undefined before they are written.

    Parameters
    ----------
    lanes : int
        Lanes t.
    groups : int
        Groups of t elements in a strip, a power of two.

    Members
    -------
    i_read, o_words : ``In(range(groups))``, ``Out(…)``
        Number of a group in its strip, and its words in the next cycle, by word and lane.
    i_keep, i_group, i_results : ``In(2)``, ``In(range(groups))``, ``In(ArrayLayout(32, lanes))``
        By word: whether it becomes the results in this cycle; their group, and the results.
    i_keep_x, i_x_group, i_x : ``In(1)``, ``In(range(groups))``, ``In(ArrayLayout(32, lanes))``
        Word 0 becomes x in this cycle; not in one in which it becomes the results.
    """

    #: Cycles from results to the first one in which their group may be the one that is read.
    latency: Final = 1

    i_read: Signal
    o_words: data.View[data.ArrayLayout]
    i_keep: Signal
    i_group: Signal
    i_results: data.View[data.ArrayLayout]
    i_keep_x: Signal
    i_x_group: Signal
    i_x: data.View[data.ArrayLayout]

    def __init__(self, *, lanes: int, groups: int) -> None:
        self._lanes = lanes
        self._groups = groups
        group = data.ArrayLayout(32, lanes)
        super().__init__(
            {
                "i_read": In(range(groups)),
                "o_words": Out(data.ArrayLayout(group, WORDS)),
                "i_keep": In(WORDS),
                "i_group": In(range(groups)),
                "i_results": In(group),
                "i_keep_x": In(1),
                "i_x_group": In(range(groups)),
                "i_x": In(group),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # The two writers of word 0 never meet. x is written in the cycle after a group's issue, by
        # the first phase of a strip. Results for word 0 are of a phase that another one continues:
        # either that one follows at once, on a strip so long that all of them are written before it
        # has issued its groups, or it begins when the lanes are empty. So they are written before
        # the last phase of the strip, which keeps nothing, has issued its last group.
        keep_x = self.i_keep_x
        results, x = self.i_results.as_value(), self.i_x.as_value()
        writes: tuple[tuple[Value, Value, Value], ...] = (
            (
                self.i_keep[0] | keep_x,
                Mux(keep_x, self.i_x_group, self.i_group),
                Mux(keep_x, x, results),
            ),
            (self.i_keep[1], self.i_group, results),
        )
        for number, (write, at, words) in enumerate(writes):
            cells: Any = memory.Memory(
                shape=unsigned(32 * self._lanes), depth=self._groups, init=[]
            )
            m.submodules[f"words_{number}"] = cells
            writer, reader = cells.write_port(), cells.read_port()
            m.d.comb += [
                writer.en.eq(write),
                writer.addr.eq(at),
                writer.data.eq(words),
                reader.addr.eq(self.i_read),
                self.o_words[number].as_value().eq(reader.data),
            ]
        return m
