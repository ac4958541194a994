"""Blocks of a timeline: what each engine, stream and array does without a pause in between."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hw.arch.counters import counter_numbers, pmu_state_layout
from hw.arch.pmu import PmuProgram
from hw.arch.unit_kind import PMU
from sim.native.samples import KernelSamples
from sim.profile.unit_graph import names_of
from sw.prove.unrolled_loops import visits
from sw.timing.prediction import unit_name
from sw.timing.timeline import Timeline

if TYPE_CHECKING:
    from sw.compiled_part import CompiledPart

__all__ = [
    "MOST_BLOCKS",
    "Blocks",
    "block_names",
    "engine_turns",
    "sampled_blocks",
    "thinned",
    "timeline_blocks",
]

#: Most blocks of a profile: beyond, neighbours of a row are joined.
MOST_BLOCKS = 20_000
#: Most cycles between two moves of an array that belong to one block.
_GAP = 4

_ENGINES = ("W0", "W1", "R0", "R1")

#: Slots of an engine's ring, and the turns that it visits, in order.
Turns = tuple[int, npt.NDArray[np.int64]]
#: Blocks as a profile has them.
Blocks = list[dict[str, Any]]


def block_names(part: CompiledPart) -> dict[tuple[str, str], str]:
    """Buffer or stream of the program behind each engine and stream: by unit and its part."""
    names = names_of(part)
    found: dict[tuple[str, str], str] = {}
    for buffer, home in part.homes.items():
        pmu = names.get(f"pmu{home.pmu}")
        if pmu is not None:
            found[pmu, f"W{home.writer}"] = buffer
            found[pmu, f"R{home.reader}"] = buffer
    for net in part.netlist.nets:
        if net.tokens:
            continue
        for pin, _ in net.sources:
            unit = names[pin.unit]
            if unit.startswith("agcu"):
                found[unit, f"load {int(pin.port)}"] = net.name
            elif unit.startswith("pmu"):
                found.setdefault((unit, f"R{int(pin.port)}"), net.name)
            else:
                found[unit, ""] = net.name
        for sink in net.sinks:
            unit = names[sink.unit]
            if unit.startswith("agcu"):
                found[unit, f"store {int(sink.port)}"] = net.name
            elif unit.startswith("pmu"):
                found.setdefault((unit, f"W{int(sink.port)}"), net.name)
    return found


def engine_turns(part: CompiledPart) -> dict[tuple[str, str], Turns]:
    """Turns of the slots at each engine of a part's PMUs, by unit and engine."""
    found: dict[tuple[str, str], Turns] = {}
    for kind, at, program in part.chip.units():
        if isinstance(program, PmuProgram):
            for name, engine in zip(_ENGINES, program.engines, strict=True):
                if engine is not None:
                    turns = visits(engine).turn
                    changes = np.diff(turns, prepend=-1) != 0
                    found[unit_name(kind, at), name] = engine.ring.count, turns[changes]
    return found


def _block(
    unit: str, part: str, names: Mapping[tuple[str, str], str], number: int, *cycles: float
) -> dict[str, Any]:
    begin, end, ready = (round(each) for each in cycles)
    return {
        "unit": unit,
        "part": part,
        "name": names.get((unit, part), part),
        "number": number,
        "begin": begin,
        "end": end,
        "ready": min(ready, begin),
    }


def timeline_blocks(
    timeline: Timeline, names: Mapping[tuple[str, str], str], origin: int
) -> Blocks:
    """Blocks of a predicted kernel: turns of slots, boxes, and runs of an array.

    Parameters
    ----------
    timeline : Timeline
    names : mapping of (str, str) to str
        As of `block_names`.
    origin : int
        Cycle of the run in which the kernel begins.
    """
    last: dict[tuple[str, str], dict[str, Any]] = {}
    found: Blocks = []
    for move in timeline.moves:
        key = move.unit, move.part
        begin, end = origin + move.run.first, origin + move.run.last + 1
        before = last.get(key)
        joins = before is not None and before["number"] == move.number
        if before is not None and joins and (move.number >= 0 or begin - before["end"] <= _GAP):
            before["end"] = max(before["end"], round(end))
            continue
        block = _block(*key, names, move.number, begin, end, begin - move.room)
        last[key] = block
        found.append(block)
    return found


def sampled_blocks(
    samples: KernelSamples,
    names: Mapping[tuple[str, str], str],
    turns: Mapping[tuple[str, str], Turns],
    origin: int,
) -> Blocks:
    """Blocks of a kernel that was sampled, as exact as the distance of two samples.

    A turn of a slot begins in the first sample in which its barrier has let the engine in, and its
    port has a vector or room; it ends in the first one in which the engine is at another slot.
    Work of arrays and AGCUs is what advances their counters.

    Parameters
    ----------
    samples : KernelSamples
    names : mapping of (str, str) to str
        As of `block_names`.
    turns : mapping of (str, str) to Turns
        As of `engine_turns`.
    origin : int
        Cycle of the model that is cycle 0 of the run.
    """
    cycles = [int(cycle) - origin for cycle in samples.cycles]
    found: Blocks = []
    for unit, words in samples.units.items():
        if unit.startswith("pmu"):
            found += _turns(unit, words, cycles, names, turns)
            continue
        part = next((part for name, part in names if name == unit), None)
        if part is None:
            continue
        works = np.diff(words[:, 0]) > 0
        number = 0
        for busy, group in itertools.groupby(enumerate(works), key=lambda each: bool(each[1])):
            inside = [index for index, _ in group]
            if busy:
                begin, end = cycles[inside[0]], cycles[inside[-1] + 1]
                found.append(_block(unit, part, names, number, begin, end, begin))
                number += 1
    return found


def _turns(
    unit: str,
    words: Any,
    cycles: list[int],
    names: Mapping[tuple[str, str], str],
    turns: Mapping[tuple[str, str], Turns],
) -> Iterable[dict[str, Any]]:
    """Turns of the slots of a PMU's engines, from the samples of its word ``state``."""
    state = words[:, counter_numbers(PMU)["state"]]
    whole = pmu_state_layout()
    for engine, field in whole:
        inner: Any = field.shape
        fields = {
            name: (state >> (field.offset + each.offset)) & ((1 << each.width) - 1)
            for name, each in inner
        }
        if not fields["enabled"].any():
            continue
        place = fields["lap"] * 2 + fields["done"] + (fields["slot"] << 2)
        changes = [0, *(np.flatnonzero(np.diff(place)) + 1), len(place)]
        works = fields["entered"] & fields["port"] & fields["reported"] & ~fields["done"] & 1
        count, coming = turns.get((unit, engine.upper()), (1, np.zeros(0, np.int64)))
        seen = fields["lap"] * count + fields["slot"]
        for first, end in itertools.pairwise(changes):
            inside = np.flatnonzero(works[first:end])
            if inside.size:
                # A turn that passed between two samples is left out.
                ahead = np.flatnonzero(coming % (2 * count) == seen[first])
                number = int(coming[ahead[0]]) if ahead.size else -1
                coming = coming[ahead[0] + 1 :] if ahead.size else coming
                begin = cycles[first + int(inside[0])]
                last = cycles[min(end, len(cycles) - 1)]
                yield _block(unit, engine.upper(), names, number, begin, last, cycles[first])


def thinned(blocks: Blocks, most: int = MOST_BLOCKS) -> Blocks:
    """At most so many blocks, in the order of their cycles; neighbours of a row are joined."""
    gap = 0
    while len(blocks) > most:
        gap = 2 * gap + 1
        last: dict[tuple[str, str], dict[str, Any]] = {}
        kept: Blocks = []
        for block in sorted(blocks, key=lambda each: each["begin"]):
            key = block["unit"], block["part"]
            before = last.get(key)
            if before is not None and block["begin"] - before["end"] <= gap:
                before["end"] = max(before["end"], block["end"])
                before["number"] = -1
            else:
                last[key] = dict(block)
                kept.append(last[key])
        blocks = kept
    return sorted(blocks, key=lambda each: (each["begin"], each["unit"], each["part"]))
