"""Who feeds whom in a part of a kernel: units by the streams and tokens between them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from hw.arch.counters import unit_kinds
from hw.arch.unit_kind import AGCU, kind_of
from sw.timing.prediction import unit_name

if TYPE_CHECKING:
    from sw.compiled_part import CompiledPart

__all__ = ["UnitGraph", "graph_of", "names_of"]


@dataclasses.dataclass(frozen=True)
class UnitGraph:
    """Streams between the units of a part, by their names in a report.

    Members
    -------
    suppliers, consumers : mapping of str to tuple of str
        Units that send vectors to a unit, and that take its vectors.
    credits : mapping of str to tuple of str
        Units whose tokens a unit takes.
    slots : mapping of str to int
        Slots of the smallest buffer of a unit.
    loads, stores : frozenset of str
        AGCUs that load and that store.
    """

    suppliers: dict[str, tuple[str, ...]]
    consumers: dict[str, tuple[str, ...]]
    credits: dict[str, tuple[str, ...]]
    slots: dict[str, int]
    loads: frozenset[str]
    stores: frozenset[str]

    @property
    def units(self) -> tuple[str, ...]:
        """Units in use."""
        return tuple(self.suppliers)


def names_of(part: CompiledPart) -> dict[str, str]:
    """Name in a report of each unit of a part's netlist."""
    fixed, tiles = part.netlist.fixed, part.placement.tiles
    return {
        name: unit_name(kind_of(unit), (fixed[name],) if name in fixed else tiles[name])
        for name, unit in part.netlist.units.items()
    }


def graph_of(part: CompiledPart) -> UnitGraph:
    """The graph of a compiled part."""
    names = names_of(part)
    order = {name: place for place, name in enumerate(unit_kinds(part.chip.config))}
    used = sorted(names.values(), key=order.__getitem__)
    forward: dict[str, set[str]] = {name: set() for name in used}
    back: dict[str, set[str]] = {name: set() for name in used}
    tokens: dict[str, set[str]] = {name: set() for name in used}
    for net in part.netlist.nets:
        for pin, _ in net.sources:
            for sink in net.sinks:
                ends = names[pin.unit], names[sink.unit]
                if net.tokens:
                    tokens[ends[1]].add(ends[0])
                else:
                    forward[ends[0]].add(ends[1])
                    back[ends[1]].add(ends[0])
    slots: dict[str, int] = {}
    for home in part.homes.values():
        pmu = names.get(f"pmu{home.pmu}")
        if pmu is not None:
            slots[pmu] = min(home.slots, slots.get(pmu, home.slots))
    agcus = {unit_name(AGCU, (number,)): agcu for number, agcu in part.chip.agcus.items()}
    return UnitGraph(
        suppliers={name: tuple(sorted(back[name], key=order.__getitem__)) for name in used},
        consumers={name: tuple(sorted(forward[name], key=order.__getitem__)) for name in used},
        credits={name: tuple(sorted(tokens[name], key=order.__getitem__)) for name in used},
        slots=slots,
        loads=frozenset(name for name, agcu in agcus.items() if any(agcu.loads)),
        stores=frozenset(name for name, agcu in agcus.items() if any(agcu.stores)),
    )
