"""Registry of the kinds of unit: name, position, ports, program and counters of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from amaranth.lib import data

from hw.arch.agcu import AGCU_STREAMS, AgcuInput, AgcuOutput, AgcuProgram, agcu_layout
from hw.arch.pcu import PcuInput, PcuOutput, PcuProgram
from hw.arch.pmu import PmuInput, PmuOutput, PmuProgram
from hw.arch.ports import PortNames, UnitProgram
from hw.arch.words.pmu_word import pmu_layout

if TYPE_CHECKING:
    from hw.arch.config import ChipConfig

__all__ = ["AGCU", "PCU", "PMU", "UNIT_KINDS", "UnitKind", "kind_of"]


@dataclasses.dataclass(frozen=True, eq=False)
class UnitKind:
    """Kind of unit: the facts on which hardware, compiler, proof, emulator and docs agree.

    Two kinds are equal only if they are one object. In messages a kind is its name in capitals.

    Parameters
    ----------
    name : str
        Lower case; part of the names of units, modules and files.
    letter : str or None
        Letter of a tile in a chip's pattern; None for a unit at the edges of the mesh.
    inputs, outputs : type of PortNames
        Vector ports, by position.
    token_outputs : int
        Token outputs of a tile's unit.
    program : type of UnitProgram
        Class of its programs, which no other kind has.
    layout : function of a ChipConfig
        Layout of its program word.
    pack : function of a program and a ChipConfig
        Program word.
    unpack : function of a word and a ChipConfig
        Program of a word, which `pack` must return to the same word.
    counters : mapping of str to (int, str)
        Number and meaning of each counter besides the activity (`hw.arch.counters`).
    """

    name: str
    letter: str | None
    inputs: type[PortNames]
    outputs: type[PortNames]
    token_outputs: int
    program: type[UnitProgram]
    layout: Callable[[ChipConfig], data.StructLayout]
    pack: Callable[[Any, ChipConfig], int]
    unpack: Callable[[int, ChipConfig], UnitProgram]
    counters: Mapping[str, tuple[int, str]]

    def __str__(self) -> str:
        return self.name.upper()


PCU = UnitKind(
    name="pcu",
    letter="c",
    inputs=PcuInput,
    outputs=PcuOutput,
    token_outputs=0,
    program=PcuProgram,
    layout=lambda chip: chip.pcu.layout,
    pack=lambda program, chip: program.pack(chip.pcu.lanes, chip.pcu.operands, chip.pcu.functions),
    unpack=lambda word, chip: PcuProgram.unpack(
        word, chip.pcu.lanes, chip.pcu.operands, chip.pcu.functions
    ),
    counters={
        "vectors": (4, "vectors that entered the array, with their weights present"),
        "groups": (5, "groups of t elements that entered the lanes"),
    },
)
PMU = UnitKind(
    name="pmu",
    letter="m",
    inputs=PmuInput,
    outputs=PmuOutput,
    token_outputs=2,
    program=PmuProgram,
    layout=lambda chip: pmu_layout(capacity_bytes=chip.pmu.capacity_bytes, slots=chip.pmu.slots),
    pack=lambda program, chip: program.pack(
        width_bits=chip.width_bits, capacity_bytes=chip.pmu.capacity_bytes, slots=chip.pmu.slots
    ),
    unpack=lambda word, chip: PmuProgram.unpack(
        word, capacity_bytes=chip.pmu.capacity_bytes, slots=chip.pmu.slots
    ),
    counters={"state": (7, "state of each engine: `pmu_state_layout`")},
)
AGCU = UnitKind(
    name="agcu",
    letter=None,
    inputs=AgcuInput,
    outputs=AgcuOutput,
    token_outputs=AGCU_STREAMS,
    program=AgcuProgram,
    layout=lambda chip: agcu_layout(chip.token_tracks),
    pack=lambda program, chip: program.pack(chip.token_tracks),
    unpack=lambda word, chip: AgcuProgram.unpack(word, chip.token_tracks),
    counters={
        "commands": (4, "boxes begun: commands accepted by the TMA engine"),
        "boxes": (5, "boxes ended: last vector of a load sent, response of a store received"),
        "bytes": (6, "beats on R and W, times the bytes per beat"),
        "bus_idle": (7, "cycles without a beat on R or W"),
    },
)

#: Every kind of unit by its name.
UNIT_KINDS: dict[str, UnitKind] = {kind.name: kind for kind in (PCU, PMU, AGCU)}


def kind_of(program: UnitProgram) -> UnitKind:
    """Kind of unit that a program is for."""
    return next(kind for kind in UNIT_KINDS.values() if isinstance(program, kind.program))
