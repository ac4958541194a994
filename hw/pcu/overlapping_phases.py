"""Phases of the elements in a PCU's lanes: each unit works by the phase of the element it has."""

from __future__ import annotations

from typing import Any, Final

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.arch.lanes.lane_function import LaneFunction
from hw.arch.lanes.phase_word import STATISTICS, Reduction, UnitOrder, phase_layout
from hw.lib.component import Component
from hw.lib.mux_tree import chosen_narrowly
from hw.pcu.kept_words import keeps_words
from hw.pcu.lane import Lane, unit_start

__all__ = ["OverlappingPhases", "follows_at_once"]

#: Fields of a phase by the unit whose element they are for. Of the orders, only that of the ALU
#: differs among phases that overlap.
_OF_UNIT = {
    "fma": ("fma_a", "fma_b", "fma_c", "negate_product", "negate_addend"),
    "alu": ("order", "alu", "alu_a", "alu_b", "alu_c", "alu_d"),
    "sfu": ("function", "argument"),
}
_OF_RESULTS = ("reduction", "statistic", "result")


class OverlappingPhases(Component):
    """Selection of fields from two phases whose elements are in the lanes at the same time.

    Which one elements are issued of travels with them. Both reach every unit at the same times, as
    the rule of `hw.arch.lanes.lane_phase.LanePhase.follows` demands; otherwise the lanes are
    empty when another phase begins.

    Parameters
    ----------
    functions : tuple of LaneFunction
        Function units of the lanes; the phases' word depends on their number.

    Members
    -------
    i_phases : ``In(ArrayLayout(phase_layout(len(functions)), 2))``
        Two phases; each changes only while no element of it is in the lanes.
    i_number : ``In(1)``
        Number of the one whose elements are issued; from 0 on.
    i_clear : ``In(1)``
        No element is in the lanes.
    o_lanes : ``Out(phase_layout(len(functions)))``
        Fields of units, each of the phase whose element reaches the unit.
    o_results : ``Out(phase_layout(len(functions)))``
        Fields of results, of the phase whose results come.
    o_next_statistic : ``Out(1)``
        Statistic of the phase whose results come in the next cycle.
    """

    #: Cycles from the issue of a group to its results.
    latency: Final = 1 + Lane.latency

    i_phases: data.View[data.ArrayLayout]
    i_number: Signal
    i_clear: Signal
    o_lanes: data.View[data.StructLayout]
    o_results: data.View[data.StructLayout]
    o_next_statistic: Signal

    def __init__(self, functions: tuple[LaneFunction, ...] = ()) -> None:
        phase = phase_layout(len(functions))
        super().__init__(
            {
                "i_phases": In(data.ArrayLayout(phase, 2)),
                "i_number": In(1),
                "i_clear": In(1),
                "o_lanes": Out(phase),
                "o_results": Out(phase),
                "o_next_statistic": Out(range(STATISTICS)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        phases: Any = self.i_phases
        ago = Signal(self.latency)
        m.d.sync += ago.eq(Mux(self.i_clear, 0, Cat(self.i_number, ago)))
        # Word of an element is there a cycle after its issue.
        taps = list(ago)
        order = Value.cast(Mux(self.i_number, phases[1].order, phases[0].order))

        def select(output: Any, number: Value, names: tuple[str, ...]) -> None:
            for name in names:
                first, second = (Value.cast(phases[each][name]) for each in range(2))
                m.d.comb += Value.cast(output[name]).eq(Mux(number, second, first))

        for unit, names in _OF_UNIT.items():
            starts = {each.value: taps[unit_start(each, unit)] for each in UnitOrder}
            number = Signal(name=f"{unit}_number")
            m.d.comb += number.eq(chosen_narrowly(order, starts))
            select(self.o_lanes, number, names)
        select(self.o_results, taps[-1], _OF_RESULTS)
        statistics = (Value.cast(phases[each].statistic) for each in (1, 0))
        m.d.comb += self.o_next_statistic.eq(Mux(taps[-2], *statistics))
        return m


def follows_at_once(before: Any, phase: Any) -> Value:
    """Whether a phase may follow another at once (`LanePhase.follows`)."""
    changes_none = (Value.cast(before.reduction) == Reduction.NONE.value) | keeps_words(before)
    late, plain = UnitOrder.FMA_ALU_LATE.value, UnitOrder.FMA_SFU_ALU.value
    orders = (Value.cast(each.order) for each in (before, phase))
    times = [Mux(order == late, plain, order) for order in orders]
    return changes_none & (times[0] == times[1])
