"""Program of a whole chip, with its encoding as an image and back."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections import Counter
from collections.abc import Iterator, Mapping

from hw.arch.agcu import AgcuProgram
from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError, shown
from hw.arch.image import Image, fingerprint
from hw.arch.places import row_segments, tile_layout, token_ports, vector_ports
from hw.arch.ports import SwitchPorts, UnitProgram
from hw.arch.switch import SwitchProgram
from hw.arch.unit_kind import AGCU, UNIT_KINDS, UnitKind

__all__ = ["ChipProgram", "ImageError", "TileProgram"]


class ImageError(BadInputError):
    """Bytes that are not an image of the chip; ``where`` names the part at fault."""

    kind = "bad-image"


@dataclasses.dataclass(frozen=True)
class TileProgram:
    """Configuration of one tile.

    Parameters
    ----------
    unit : UnitProgram or None
        None for a disabled unit.
    vectors, tokens : SwitchProgram
        Its two switches.
    """

    unit: UnitProgram | None
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

    def units(self) -> Iterator[tuple[UnitKind, tuple[int, ...], UnitProgram]]:
        """Enabled units: kind, position (row and column, or the number of an AGCU) and program."""
        for at, tile in self.tiles.items():
            if tile.unit is not None:
                yield self.config.unit_at(*at), at, tile.unit
        for index, agcu in self.agcus.items():
            yield AGCU, (index,), agcu

    def unit(self, at: tuple[int, ...]) -> UnitProgram | None:
        """Program of the unit at a position; None if it is off."""
        if len(at) == 1:
            return self.agcus.get(at[0])
        tile = self.tiles.get((at[0], at[1]))
        return tile.unit if tile else None

    def units_used(self) -> dict[str, int]:
        """Number of enabled units by the name of their kind."""
        used = Counter(kind for kind, _, _ in self.units())
        return {name: used[kind] for name, kind in UNIT_KINDS.items()}

    def pack(self) -> bytes:
        """Encode as the image that the chip loads.

        Raises
        ------
        BadInputError
            If a program does not fit its unit.
        """
        return self._packed

    @functools.cached_property
    def _packed(self) -> bytes:
        chip = self.config
        programs = {}
        for row in range(chip.rows):
            for number, (kind, index, bits) in enumerate(row_segments(chip, row)):
                if kind is AGCU:
                    agcu = self.agcus.get(index)
                    word = AGCU.pack(agcu, chip) if agcu else 0
                else:
                    word = self._tile_word(kind, self.tiles.get((row, index)))
                _require_bits(word, bits)
                programs[row, number] = word
        return Image(fingerprint(chip), programs).pack(chip.width_bits)

    def _tile_word(self, kind: UnitKind, tile: TileProgram | None) -> int:
        chip = self.config
        if tile is None:
            return 0
        words = {
            "vectors": tile.vectors.pack(),
            "tokens": tile.tokens.pack(),
            "unit": kind.pack(tile.unit, chip) if tile.unit else 0,
        }
        return tile_layout(chip, kind).pack(words)

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
        tiles: dict[tuple[int, int], TileProgram] = {}
        agcus: dict[int, AgcuProgram] = {}
        program = cls(config, tiles, agcus)
        for (row, number), word in image.programs.items():
            with _named(f"row {row}"):
                kind, index, bits = _segment(config, row, number)
            where = f"AGCU {index}" if kind is AGCU else f"{kind} ({row}, {index})"
            with _named(where):
                _require_bits(word, bits)
                if kind is AGCU:
                    agcus[index] = AgcuProgram.unpack(word, config.token_tracks)
                else:
                    tiles[row, index] = program._tile_program(kind, word)
        return program

    def _tile_program(self, kind: UnitKind, word: int) -> TileProgram:
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


def _segment(chip: ChipConfig, row: int, number: int) -> tuple[UnitKind, int, int]:
    """Kind, index and program bits of a segment."""
    segments = row_segments(chip, row) if row < chip.rows else []
    if number >= len(segments):
        raise BadInputError(f"Segment must be one of the row's {len(segments)}, not {number}")
    return segments[number]


def _require_bits(word: int, bits: int) -> None:
    if word >> bits:
        raise BadInputError(f"Configuration must have {bits} bits, not {shown(word)}")


# Units of one kind often share a word, and an image is decoded by more than one reader.
@functools.lru_cache(maxsize=256)
def _unit_program(chip: ChipConfig, kind: UnitKind, word: int) -> UnitProgram:
    program = kind.unpack(word, chip)
    if kind.pack(program, chip) != word:
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
