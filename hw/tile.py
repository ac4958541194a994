"""Tile of the fabric: one unit, its two switches and its configuration segment."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from amaranth.hdl import Module, Signal, Value, ValueLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.config import ChipConfig
from hw.arch.counters import ACTIVITIES, COUNTER_BITS
from hw.arch.errors import BadInputError, shown
from hw.arch.launch import REPEAT_BITS
from hw.arch.limits import COUNTER_WORDS, SEGMENT_WORDS
from hw.arch.pcu import PcuInput, PcuOutput
from hw.arch.places import tile_layout, token_ports, vector_ports
from hw.arch.pmu import PmuInput
from hw.arch.unit_kind import PCU, PMU, UnitKind
from hw.emit.shared import shared
from hw.lib.activity import chosen_counter
from hw.lib.component import Component
from hw.lib.config_segment import ConfigSegment
from hw.lib.stream import vector_layout
from hw.mesh.switch import Switch
from hw.pcu.unit import Pcu
from hw.pmu.unit import Pmu

__all__ = ["SIDES", "TILE_UNITS", "Tile", "TileUnit"]

SIDES = ("north", "east", "south", "west")


class Tile(Component):
    """Tile: one unit, a vector and a token switch, and their configuration segment.

    Parameters
    ----------
    kind : UnitKind
        Kind of its unit, one of `TILE_UNITS`.
    config : ChipConfig
        Parameters of the chip it is part of.

    Members
    -------
    i_SIDE, o_SIDE, i_SIDE_token, o_SIDE_token
        Arrays of links to the neighbour on each side.
    i_begin, i_write, i_word, i_data, i_load
        Configuration, as of `ConfigSegment`.
    i_start
        Start the loaded program; one cycle, the one after ``i_load``.
    i_last_iteration
        Iterations of the program less 1; constant from the cycle after ``i_start`` on.
    i_run
        PMU engines step and the counters count in this cycle.
    o_done
        The unit has nothing left to send or write.
    o_error
        A `UnitError` that the unit detected, or 0.
    i_counter, o_counter : ``In(range(8))``, ``Out(48)``
        Number of a counter of the unit (`hw.arch.counters`), and its value.
    o_issue
        A vector enters the unit's array in this cycle, and its weights are present.
    """

    i_begin: Signal
    i_write: Signal
    i_word: Signal
    i_data: Signal
    i_load: Signal
    i_start: Signal
    i_last_iteration: Signal
    i_run: Signal
    o_done: Signal
    o_error: Signal
    i_counter: Signal
    o_counter: Signal
    o_issue: Signal

    def __init__(self, kind: UnitKind, config: ChipConfig) -> None:
        if kind not in TILE_UNITS:
            kinds = ", ".join(map(str, TILE_UNITS))
            raise BadInputError(f"Tile kind must be one of {kinds}, not {shown(kind)}")
        self._chip = config
        self._kind = kind
        link = stream.Signature(vector_layout(config.width_bits))
        token = stream.Signature(0)
        members: dict[str, wiring.Member] = {}
        for side in SIDES:
            members[f"i_{side}"] = In(link).array(config.tracks)
            members[f"o_{side}"] = Out(link).array(config.tracks)
            members[f"i_{side}_token"] = In(token).array(config.token_tracks)
            members[f"o_{side}_token"] = Out(token).array(config.token_tracks)
        super().__init__(
            members
            | {
                "i_begin": In(1),
                "i_write": In(1),
                "i_word": In(range(SEGMENT_WORDS.high + 1)),
                "i_data": In(config.width_bits),
                "i_load": In(1),
                "i_start": In(1),
                "i_last_iteration": In(REPEAT_BITS),
                "i_run": In(1),
                "o_done": Out(1),
                "o_error": Out(8),
                "i_counter": In(range(COUNTER_WORDS)),
                "o_counter": Out(COUNTER_BITS),
                "o_issue": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        chip, kind = self._chip, self._kind
        layout = tile_layout(chip, kind)
        segment = ConfigSegment(width_bits=chip.width_bits, config_bits=layout.size)
        m.submodules.segment = shared(segment)
        program = data.View(layout, segment.o_config)
        m.d.comb += [
            segment.i_begin.eq(self.i_begin),
            segment.i_write.eq(self.i_write),
            segment.i_word.eq(self.i_word),
            segment.i_data.eq(self.i_data),
            segment.i_load.eq(self.i_load),
        ]

        ports = vector_ports(chip, kind)
        vectors = Switch(
            payload_shape=vector_layout(chip.width_bits),
            tracks=ports.tracks,
            unit_outputs=ports.unit_outputs,
            unit_inputs=ports.unit_inputs,
        )
        ports = token_ports(chip, kind)
        tokens = Switch(
            payload_shape=0,
            tracks=ports.tracks,
            unit_outputs=ports.unit_outputs,
            unit_inputs=ports.unit_inputs,
        )
        for name, switch, suffix in (("vectors", vectors, ""), ("tokens", tokens, "_token")):
            m.submodules[name] = shared(switch)
            m.d.comb += [
                switch.config.eq(program[name]),
                switch.i_clear.eq(self.i_start),
            ]
            for side in SIDES:
                for outer, inner in zip(
                    getattr(self, f"i_{side}{suffix}"), getattr(switch, f"i_{side}"), strict=True
                ):
                    wiring.connect(m, wiring.flipped(outer), inner)
                for outer, inner in zip(
                    getattr(self, f"o_{side}{suffix}"), getattr(switch, f"o_{side}"), strict=True
                ):
                    wiring.connect(m, inner, wiring.flipped(outer))
        unit = TILE_UNITS[kind](chip, vectors, tokens)
        component = unit.component
        m.submodules.unit = shared(component)
        for source, sink in unit.links:
            wiring.connect(m, source, sink)
        m.d.comb += [
            component.config.eq(program.unit),
            component.i_clear.eq(self.i_start),
            component.i_run.eq(self.i_run),
            self.o_done.eq(unit.done),
            self.o_error.eq(unit.error),
        ]
        if unit.last_iteration is not None:
            m.d.comb += unit.last_iteration.eq(self.i_last_iteration)
        if unit.counters is None:
            m.d.comb += [
                component.i_counter.eq(self.i_counter),
                self.o_counter.eq(component.o_counter),
            ]
        else:
            chosen_counter(m, kind, self.i_counter, unit.counters, self.o_counter)
        m.d.comb += self.o_issue.eq(unit.issue)
        return m


@dataclasses.dataclass(frozen=True)
class TileUnit:
    """A unit as its tile connects it.

    Parameters
    ----------
    component : Component
        The unit, with the ports ``config``, ``i_clear`` and ``i_run``.
    links : sequence of (stream.Interface, stream.Interface)
        Source and sink of every stream between the unit and the two switches.
    done, error, issue : ValueLike
        Value of the ports ``o_done``, ``o_error`` and ``o_issue`` of the tile.
    counters : mapping of str to Value, or None
        Its counters by name; None if it has ports ``i_counter`` and ``o_counter`` like a tile's.
    last_iteration : Signal or None
        Its port ``i_last_iteration``; None if it has no counter chains.
    """

    component: Any
    links: Sequence[tuple[stream.Interface, stream.Interface]]
    done: ValueLike = 1
    error: ValueLike = 0
    issue: ValueLike = 0
    counters: Mapping[str, Value] | None = None
    last_iteration: Signal | None = None


def _pcu(chip: ChipConfig, vectors: Switch, tokens: Switch) -> TileUnit:
    unit = Pcu(width_bits=chip.width_bits, config=chip.pcu)
    links = (
        (vectors.o_unit[PcuInput.ACTIVATION], unit.i_activation),
        (vectors.o_unit[PcuInput.WEIGHT], unit.i_weight),
        (vectors.o_unit[PcuInput.AUXILIARY], unit.i_auxiliary),
        (unit.o_result, vectors.i_unit[PcuOutput.RESULT]),
    )
    # A PCU has no loop bounds: it is done when the units that feed and drain it are.
    return TileUnit(unit, links, issue=unit.o_issue)


def _pmu(chip: ChipConfig, vectors: Switch, tokens: Switch) -> TileUnit:
    unit = Pmu(
        width_bits=chip.width_bits, capacity_bytes=chip.pmu.capacity_bytes, slots=chip.pmu.slots
    )
    links = []
    for number in range(len(PmuInput)):
        links += [
            (vectors.o_unit[number], unit.i_stream[number]),
            (unit.o_stream[number], vectors.i_unit[number]),
            (unit.o_token[number], tokens.i_unit[number]),
        ]
    counters = {name: unit.o_counters[name] for name in ACTIVITIES}
    counters["state"] = Value.cast(unit.o_state)
    return TileUnit(
        unit,
        links,
        done=unit.o_done.all(),
        error=unit.o_error,
        counters=counters,
        last_iteration=unit.i_last_iteration,
    )


#: Hardware of each kind of unit that stands on tiles: a function of the chip and of the tile's
#: vector and token switches.
TILE_UNITS: dict[UnitKind, Callable[[ChipConfig, Switch, Switch], TileUnit]] = {
    PCU: _pcu,
    PMU: _pmu,
}
