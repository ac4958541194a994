"""Statistics of a PCU's lanes: running sums and extremes by an element's position in a vector."""

from __future__ import annotations

from typing import Any, Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.arch.lanes.phase_word import STATISTICS, Reduction
from hw.lib.component import Component
from hw.lib.delay import delayed
from hw.lib.mux_tree import numbered
from hw.numeric.alu_codes import AluOperation
from hw.numeric.formats import fp32
from hw.pcu.arithmetic_logic import ArithmeticLogicUnit

__all__ = ["Statistics"]

#: Operation of each change, and the word that it begins with.
_CHANGES = {
    Reduction.REPLACE: (AluOperation.OR, 0),
    Reduction.SUM: (AluOperation.ADD, 0),
    Reduction.MAXIMUM: (AluOperation.MAXIMUM, fp32.infinity | 1 << 31),
    Reduction.MINIMUM: (AluOperation.MINIMUM, fp32.infinity),
}


class Statistics(Component):
    """Two words for each position of an element, 0 after reset, and the units that change them.

    A group is as many adjacent positions as there are lanes. A change is read back `step_cycles`
    cycles later, so a group may change once in as many cycles.

    Parameters
    ----------
    lanes : int
        Lanes t.
    groups : int
        Groups of t positions.

    Members
    -------
    i_read_group, o_words
        Number of a group, and its words in the same cycle, by statistic and lane.
    i_change, i_group : ``In(1)``, ``In(range(groups))``
        The results change a group in this cycle.
    i_reduction, i_statistic : ``In(Reduction)``, ``In(1)``
        Change, and number of the statistic; they stay while changes are under way.
    i_first : ``In(1)``
        The change is the first of its packet.
    i_results : ``In(ArrayLayout(32, lanes))``
    """

    #: Cycles from a change until it can be read.
    step_cycles: Final = ArithmeticLogicUnit.latency + 1

    i_read_group: Signal
    o_words: data.View[data.ArrayLayout]
    i_change: Signal
    i_group: Signal
    i_reduction: Signal
    i_statistic: Signal
    i_first: Signal
    i_results: data.View[data.ArrayLayout]

    def __init__(self, *, lanes: int, groups: int) -> None:
        self._lanes = lanes
        self._groups = groups
        group = data.ArrayLayout(32, lanes)
        super().__init__(
            {
                "i_read_group": In(range(groups)),
                "o_words": Out(data.ArrayLayout(group, STATISTICS)),
                "i_change": In(1),
                "i_group": In(range(groups)),
                "i_reduction": In(Reduction),
                "i_statistic": In(range(STATISTICS)),
                "i_first": In(1),
                "i_results": In(group),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = 32 * self._lanes
        words = [
            [Signal(bits, name=f"statistic_{number}_{group}") for group in range(self._groups)]
            for number in range(STATISTICS)
        ]
        for number, every in enumerate(words):
            m.d.comb += self.o_words[number].as_value().eq(numbered(self.i_read_group, every))
        old = [numbered(self.i_group, every) for every in words]
        changed = self._changed(m, Mux(self.i_statistic[0], old[1], old[0]))
        late = ArithmeticLogicUnit.latency
        change = delayed(m, self.i_change, late, name="change", reset=True)
        group = delayed(m, self.i_group, late, name="group")
        for number, every in enumerate(words):
            for position, word in enumerate(every):
                own = (self.i_statistic == number) & (group == position)
                with m.If(change & own):
                    m.d.sync += word.eq(changed)
        return m

    def _changed(self, m: Module, old: Value) -> Value:
        """Words of the group after the change, as many cycles later as an ALU takes."""
        code: Any = Value.cast(self.i_reduction)
        operation = Signal(AluOperation)
        start = Signal(32)
        with m.Switch(code):
            for reduction, (each, word) in _CHANGES.items():
                with m.Case(reduction.value):
                    m.d.comb += [operation.eq(each), start.eq(Const(word, 32))]
        begins = self.i_first | (code == Reduction.REPLACE.value)
        results: list[Value] = []
        for lane in range(self._lanes):
            unit = ArithmeticLogicUnit(tuple(each for each, _ in _CHANGES.values()))
            m.submodules[f"unit_{lane}"] = unit
            m.d.comb += [
                unit.i_operation.eq(operation),
                unit.i_a.eq(Mux(begins, start, old[32 * lane : 32 * lane + 32])),
                unit.i_b.eq(self.i_results[lane]),
            ]
            results.append(unit.o_result)
        return Cat(*results)
