"""Who feeds whom in a part of a kernel: units by the streams and tokens between them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from hw.arch.counters import unit_kinds
from hw.arch.pmu import PmuProgram
from hw.arch.unit_kind import AGCU, kind_of
from sw.prove.unrolled_loops import visits
from sw.timing.prediction import unit_name

if TYPE_CHECKING:
    from sw.compiled_part import CompiledPart
    from sw.passes.pack import Home

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
    refilled : frozenset of str
        Units whose smallest buffer has a slot that is filled more than once.
    loads, stores : frozenset of str
        AGCUs that load and that store.
    """

    suppliers: dict[str, tuple[str, ...]]
    consumers: dict[str, tuple[str, ...]]
    credits: dict[str, tuple[str, ...]]
    slots: dict[str, int]
    refilled: frozenset[str]
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


def _filled_again(part: CompiledPart, home: Home) -> bool:
    """Whether a slot of a buffer is filled more than once, so that a fill may wait for a reader."""
    program = part.chip.unit(part.placement.tiles[f"pmu{home.pmu}"])
    if not isinstance(program, PmuProgram):
        return False
    writer = program.writers[home.writer]
    return writer is not None and int(visits(writer).turn.max(initial=0)) >= home.slots


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
    fewest: dict[str, tuple[int, bool]] = {}
    for home in part.homes.values():
        pmu = names.get(f"pmu{home.pmu}")
        if pmu is not None:
            own = home.slots, not _filled_again(part, home)
            fewest[pmu] = min(own, fewest.get(pmu, own))
    agcus = {unit_name(AGCU, (number,)): agcu for number, agcu in part.chip.agcus.items()}
    return UnitGraph(
        suppliers={name: tuple(sorted(back[name], key=order.__getitem__)) for name in used},
        consumers={name: tuple(sorted(forward[name], key=order.__getitem__)) for name in used},
        credits={name: tuple(sorted(tokens[name], key=order.__getitem__)) for name in used},
        slots={name: slots for name, (slots, _) in fewest.items()},
        refilled=frozenset(name for name, (_, once) in fewest.items() if not once),
        loads=frozenset(name for name, agcu in agcus.items() if any(agcu.loads)),
        stores=frozenset(name for name, agcu in agcus.items() if any(agcu.stores)),
    )
