"""Statistics of a PCU's lanes: running sums and extremes by an element's position in a vector."""

from __future__ import annotations

from typing import Any, Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, memory
from amaranth.lib.wiring import In, Out

from hw.arch.lanes.phase_word import STATISTICS, Reduction
from hw.float.wires import named
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
#: -2^20: what the running maximum of scores begins with.
_LEAST_MAXIMUM = (fp32.bias + 20) << fp32.fraction_bits | 1 << 31


class Statistics(Component):
    """Two words for each position of an element, 0 after reset, and the units that change them.

    A group is as many adjacent positions as there are lanes. A change is read back `step_cycles`
    cycles later, so a group may change once in as many cycles. The words are in memories.

    Parameters
    ----------
    lanes : int
        Lanes t.
    groups : int
        Groups of t positions.

    Members
    -------
    i_read_group, o_words
        Number of a group, and its words in the next cycle, by statistic and lane.
    i_change, i_group : ``In(1)``, ``In(range(groups))``
        The results change a group in this cycle.
    i_next_group, i_next_statistic : ``In(range(groups))``, ``In(1)``
        Group that a change in the next cycle is for, and the number of its statistic.
    i_reduction, i_statistic : ``In(Reduction)``, ``In(1)``
        Change, and number of the statistic; they stay while changes are under way.
    i_first : ``In(1)``
        The change is the first of its packet.
    i_results : ``In(ArrayLayout(32, lanes))``
    i_scores : ``In(1)``
        Static: a maximum goes on over packets, and statistic 1 becomes what it was before.
    i_restart : ``In(1)``
        With ``i_scores``: a maximum begins with -2^20.
    """

    #: Cycles from a change until it can be read.
    step_cycles: Final = ArithmeticLogicUnit.latency + 1

    i_read_group: Signal
    o_words: data.View[data.ArrayLayout]
    i_change: Signal
    i_group: Signal
    i_next_group: Signal
    i_next_statistic: Signal
    i_reduction: Signal
    i_statistic: Signal
    i_first: Signal
    i_results: data.View[data.ArrayLayout]
    i_scores: Signal
    i_restart: Signal

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
                "i_next_group": In(range(groups)),
                "i_next_statistic": In(range(STATISTICS)),
                "i_reduction": In(Reduction),
                "i_statistic": In(range(STATISTICS)),
                "i_first": In(1),
                "i_results": In(group),
                "i_scores": In(1),
                "i_restart": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        late = ArithmeticLogicUnit.latency
        statistic = self.i_statistic[0]
        old = Signal(32 * self._lanes)
        before, changed = self._changed(m, old)
        write = named(m, "write", delayed(m, self.i_change, late, name="change", reset=True))
        group = named(m, "write_group", delayed(m, self.i_group, late, name="group"))
        keeps = self.i_scores & (Value.cast(self.i_reduction) == Reduction.MAXIMUM.value)
        for number in range(STATISTICS):
            own: Value = write & (statistic == number)
            at: Value = group
            kept: Value = changed
            if number:
                own = Mux(keeps, self.i_change, own)
                at, kept = Mux(keeps, self.i_group, group), Mux(keeps, before, changed)
            own = named(m, f"write_{number}", own)
            at = named(m, f"group_{number}", at)
            words = self._memory(m, f"words_{number}", self._groups, own, at, kept)
            m.d.comb += words.addr.eq(self.i_read_group)
            # What was not changed since the reset is 0, whatever the memory holds.
            known = Signal(self._groups, name=f"known_{number}")
            with m.If(own):
                m.d.sync += known.bit_select(at, 1).eq(1)
            shown = Signal(name=f"shown_{number}")
            m.d.sync += shown.eq(numbered(self.i_read_group, list(known)))
            hidden = words.data & shown.replicate(len(changed))
            m.d.comb += self.o_words[number].as_value().eq(hidden)
        # The same words again, for the next change. One that is written in the cycle in which it is
        # read comes past the memory.
        again = self._memory(
            m,
            "words_again",
            STATISTICS * self._groups,
            write,
            Cat(group, statistic),
            changed,
        )
        past, latest = Signal(), Signal.like(changed, reset_less=True)
        m.d.comb += [
            again.addr.eq(Cat(self.i_next_group, self.i_next_statistic)),
            old.eq(Mux(past, latest, again.data)),
        ]
        m.d.sync += [past.eq(write & (group == self.i_next_group)), latest.eq(changed)]
        return m

    def _memory(
        self, m: Module, name: str, depth: int, write: Value, address: Value, words: Value
    ) -> Any:
        """Read port of a memory that is written with these words."""
        cells: Any = memory.Memory(shape=unsigned(len(words)), depth=depth, init=[])
        m.submodules[name] = cells
        writer = cells.write_port()
        m.d.comb += [writer.en.eq(write), writer.addr.eq(address), writer.data.eq(words)]
        return cells.read_port()

    def _changed(self, m: Module, old: Value) -> tuple[Value, Value]:
        """Words of the group before a change, and after it, an ALU's latency later."""
        code: Any = Value.cast(self.i_reduction)
        operation = Signal(AluOperation)
        start = Signal(32)
        with m.Switch(code):
            for reduction, (each, word) in _CHANGES.items():
                with m.Case(reduction.value):
                    m.d.comb += [operation.eq(each), start.eq(Const(word, 32))]
        with m.If(self.i_scores & (code == Reduction.MAXIMUM.value)):
            m.d.comb += start.eq(Const(_LEAST_MAXIMUM, 32))
        restarts = Mux(self.i_scores, self.i_restart, self.i_first)
        begins = restarts | (code == Reduction.REPLACE.value)
        before: list[Value] = []
        results: list[Value] = []
        for lane in range(self._lanes):
            unit = ArithmeticLogicUnit(tuple(each for each, _ in _CHANGES.values()))
            m.submodules[f"unit_{lane}"] = unit
            before.append(Mux(begins, start, old[32 * lane : 32 * lane + 32]))
            m.d.comb += [
                unit.i_operation.eq(operation),
                unit.i_a.eq(before[-1]),
                unit.i_b.eq(self.i_results[lane]),
            ]
            results.append(unit.o_result)
        return Cat(*before), Cat(*results)
