"""Topology of a chip: ports of its tiles, positions of its AGCUs, segments of its rows."""

from __future__ import annotations

import dataclasses
import functools

from hw.arch.config import ChipConfig
from hw.arch.ports import SwitchPorts
from hw.arch.switch import switch_layout
from hw.arch.unit_kind import AGCU, UnitKind
from hw.arch.words.word_layout import WordLayout
from hw.numeric.division import ceil_div

__all__ = [
    "AgcuPlace",
    "agcu_places",
    "chip_segments",
    "row_segments",
    "tile_layout",
    "token_ports",
    "vector_ports",
]


@functools.cache
def vector_ports(chip: ChipConfig, kind: UnitKind) -> SwitchPorts:
    """Ports of the vector switch of a tile with this kind of unit."""
    return SwitchPorts(
        tracks=chip.tracks, unit_inputs=len(kind.inputs), unit_outputs=len(kind.outputs)
    )


@functools.cache
def token_ports(chip: ChipConfig, kind: UnitKind) -> SwitchPorts:
    """Ports of the token switch of a tile with this kind of unit."""
    return SwitchPorts(tracks=chip.token_tracks, unit_inputs=0, unit_outputs=kind.token_outputs)


@functools.cache
def tile_layout(chip: ChipConfig, kind: UnitKind) -> WordLayout:
    """Layout of a tile's program: vector switch, token switch, unit."""
    return WordLayout(
        {
            "vectors": switch_layout(vector_ports(chip, kind)),
            "tokens": switch_layout(token_ports(chip, kind)),
            "unit": kind.layout(chip),
        }
    )


@dataclasses.dataclass(frozen=True)
class AgcuPlace:
    """Position of an AGCU: at the outer links of the switch at one end of a row."""

    row: int
    side: str

    def column(self, config: ChipConfig) -> int:
        """Column of that switch."""
        return 0 if self.side == "west" else config.columns - 1


def agcu_places(config: ChipConfig) -> tuple[AgcuPlace, ...]:
    """Positions of the AGCUs: west and east alternately, spread over the rows."""
    count = config.agcu.count
    places = []
    for index in range(count):
        side = "west" if index % 2 == 0 else "east"
        same = (count + 1 - index % 2) // 2
        row = (index // 2) * config.rows // same
        places.append(AgcuPlace(row, side))
    return tuple(places)


def row_segments(config: ChipConfig, row: int) -> list[tuple[UnitKind, int, int]]:
    """Segments of a row: kind, index, program bits.

    The index is the tile's column or the AGCU's number; a row's AGCUs come after its tiles.
    """
    segments = [
        (kind, column, tile_layout(config, kind).bits)
        for column in range(config.columns)
        for kind in [config.unit_at(row, column)]
    ]
    bits = AGCU.layout(config).as_shape().width
    return segments + [
        (AGCU, index, bits) for index, place in enumerate(agcu_places(config)) if place.row == row
    ]


def chip_segments(config: ChipConfig) -> tuple[tuple[int, ...], ...]:
    """Words of every segment, by row."""
    return tuple(
        tuple(ceil_div(bits, config.width_bits) for _, _, bits in row_segments(config, row))
        for row in range(config.rows)
    )
