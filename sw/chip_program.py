"""Program of a whole chip, with its encoding as an image and back."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterator, Mapping

from hw.arch.agcu import AgcuProgram
from hw.arch.config import ChipConfig
from hw.arch.configuration_chain import chain_configs, chain_words
from hw.arch.errors import BadInputError
from hw.arch.image import Image, fingerprint
from hw.arch.pcu import PcuProgram
from hw.arch.places import row_segments, tile_layout, token_ports, vector_ports
from hw.arch.pmu import PmuProgram
from hw.arch.ports import SwitchPorts
from hw.arch.switch import SwitchProgram

__all__ = ["ChipProgram", "ImageError", "TileProgram"]


class ImageError(BadInputError):
    """Bytes that are not an image of the chip; ``where`` names the part at fault."""

    kind = "bad-image"


@dataclasses.dataclass(frozen=True)
class TileProgram:
    """Configuration of one tile.

    Parameters
    ----------
    unit : PcuProgram, PmuProgram or None
        None for a disabled unit.
    vectors, tokens : SwitchProgram
        Its two switches.
    """

    unit: PcuProgram | PmuProgram | None
    vectors: SwitchProgram
    tokens: SwitchProgram


@dataclasses.dataclass(frozen=True)
class ChipProgram:
    """Program of a chip: exactly the content of its image.

    Parameters
    ----------
    config : ChipConfig
    tiles : mapping of (row, column) to TileProgram
        Tiles with anything enabled.
    agcus : mapping of int to AgcuProgram
        Enabled AGCUs, by number.
    """

    config: ChipConfig
    tiles: Mapping[tuple[int, int], TileProgram]
    agcus: Mapping[int, AgcuProgram]

    def pack(self) -> bytes:
        """Encode as the image that the chip loads.

        Raises
        ------
        BadInputError
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
        return word | _unit_word(chip, tile.unit) << layout["unit"].offset

    def empty_tile(self, kind: str) -> TileProgram:
        """Tile of a kind (``"pcu"`` or ``"pmu"``) with everything disabled."""
        return TileProgram(
            None,
            SwitchProgram(vector_ports(self.config, kind)),
            SwitchProgram(token_ports(self.config, kind)),
        )

    @classmethod
    def unpack(cls, config: ChipConfig, raw: bytes) -> ChipProgram:
        """Decode an image; the inverse of `pack`.

        Raises
        ------
        ImageError
            If the bytes are not what `pack` writes for this chip.
        """
        with _named("image"):
            image = Image.unpack(raw, config.width_bits)
        expected = fingerprint(config)
        if image.fingerprint != expected:
            raise ImageError(
                f"Image fingerprint must be {expected:#010x}, this chip's, "
                f"not {image.fingerprint:#010x}",
                where="image",
                value=image.fingerprint,
            )
        if len(image.rows) != config.rows:
            raise ImageError(
                f"Image must have the chip's {config.rows} rows, not {len(image.rows)}",
                where="image",
                value=len(image.rows),
            )
        tiles: dict[tuple[int, int], TileProgram] = {}
        agcus: dict[int, AgcuProgram] = {}
        program = cls(config, tiles, agcus)
        for row, chain in enumerate(image.rows):
            segments = row_segments(config, row)
            with _named(f"row {row}"):
                words = chain_configs(chain, [bits for _, _, bits in segments], config.width_bits)
            for (kind, index, _), word in zip(segments, words, strict=True):
                if not word:
                    continue
                if kind == "agcu":
                    with _named(f"AGCU {index}"):
                        agcus[index] = AgcuProgram.unpack(word, config.token_tracks)
                else:
                    with _named(f"{kind.upper()} ({row}, {index})"):
                        tiles[row, index] = program._tile_program(kind, word)
        return program

    def _tile_program(self, kind: str, word: int) -> TileProgram:
        chip = self.config
        layout = tile_layout(chip, kind)
        vectors, tokens, unit = (
            word >> layout[name].offset & (1 << layout[name].width) - 1
            for name in ("vectors", "tokens", "unit")
        )
        program = _unit_program(chip, kind, unit) if unit else None
        return TileProgram(
            program,
            _switch_program(vector_ports(chip, kind), vectors),
            _switch_program(token_ports(chip, kind), tokens),
        )


def _unit_word(chip: ChipConfig, unit: PcuProgram | PmuProgram | None) -> int:
    if isinstance(unit, PmuProgram):
        return unit.pack(
            width_bits=chip.width_bits,
            capacity_bytes=chip.pmu.capacity_bytes,
            slots=chip.pmu.slots,
        )
    return unit.pack() if unit else 0


# Units of one kind often share a word, and an image is decoded by more than one reader.
@functools.lru_cache(maxsize=256)
def _unit_program(chip: ChipConfig, kind: str, word: int) -> PcuProgram | PmuProgram:
    program: PcuProgram | PmuProgram
    if kind == "pcu":
        program = PcuProgram.unpack(word)
    else:
        pmu = chip.pmu
        program = PmuProgram.unpack(word, capacity_bytes=pmu.capacity_bytes, slots=pmu.slots)
    if _unit_word(chip, program) != word:
        raise BadInputError(f"Unit configuration must be one that a program makes, not {word:#x}")
    return program


@functools.lru_cache(maxsize=256)
def _switch_program(ports: SwitchPorts, word: int) -> SwitchProgram:
    return SwitchProgram.unpack(ports, word) if word else SwitchProgram(ports)


@contextlib.contextmanager
def _named(where: str) -> Iterator[None]:
    """Name the part of the image in every error raised inside."""
    try:
        yield
    except ValueError as error:
        raise ImageError(f"{where}: {error}", where=where) from error
