"""The program of a whole chip, and the image it packs into."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from hw.agcu.config import AgcuProgram
from hw.chain import chain_words
from hw.command.image import Image, fingerprint
from hw.config import ChipConfig
from hw.mesh.config import SwitchProgram
from hw.pcu.program import PcuProgram
from hw.places import row_segments, tile_layout, token_ports, vector_ports
from hw.pmu.program import PmuProgram

__all__ = ["ChipProgram", "TileProgram"]


@dataclasses.dataclass(frozen=True)
class TileProgram:
    """Configuration of one tile.

    Parameters
    ----------
    unit : PcuProgram, PmuProgram or None
        None for a unit that is off.
    vectors, tokens : SwitchProgram
        Its two switches.
    """

    unit: PcuProgram | PmuProgram | None
    vectors: SwitchProgram
    tokens: SwitchProgram


@dataclasses.dataclass(frozen=True)
class ChipProgram:
    """Configuration of a chip: what its image holds, and nothing more.

    Parameters
    ----------
    config : ChipConfig
    tiles : mapping of (row, column) to TileProgram
        Tiles that are not all off.
    agcus : mapping of int to AgcuProgram
        AGCUs that are on, by number.
    """

    config: ChipConfig
    tiles: Mapping[tuple[int, int], TileProgram]
    agcus: Mapping[int, AgcuProgram]

    def pack(self) -> bytes:
        """The image in memory.

        Raises
        ------
        ValueError
            If a program does not fit its unit.
        """
        chip = self.config
        rows = []
        for row in range(chip.rows):
            words, bits = [], []
            for kind, index, size in row_segments(chip, row):
                bits.append(size)
                if kind == "agcu":
                    agcu = self.agcus.get(index)
                    words.append(agcu.pack(chip.token_tracks) if agcu else 0)
                else:
                    words.append(self._tile_word(kind, self.tiles.get((row, index))))
            rows.append(chain_words(words, bits, chip.width_bits))
        return Image(fingerprint(chip), rows).pack(chip.width_bits)

    def _tile_word(self, kind: str, tile: TileProgram | None) -> int:
        chip = self.config
        if tile is None:
            return 0
        layout = tile_layout(chip, kind)
        word = tile.vectors.pack() << layout["vectors"].offset
        word |= tile.tokens.pack() << layout["tokens"].offset
        if isinstance(tile.unit, PmuProgram):
            unit = tile.unit.pack(
                width_bits=chip.width_bits,
                capacity_bytes=chip.pmu.capacity_bytes,
                slots=chip.pmu.slots,
            )
        else:
            unit = tile.unit.pack() if tile.unit else 0
        return word | unit << layout["unit"].offset

    def empty_tile(self, kind: str) -> TileProgram:
        """Tile of a kind (``"pcu"`` or ``"pmu"``) with everything off."""
        return TileProgram(
            None,
            SwitchProgram(vector_ports(self.config, kind)),
            SwitchProgram(token_ports(self.config, kind)),
        )
