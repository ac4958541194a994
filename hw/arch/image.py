"""Image: programs of a whole chip, as they lie in memory, and word order of its chains."""

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Const
from amaranth.lib import data

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError, shown
from hw.arch.limits import FINGERPRINT
from hw.numeric.division import ceil_div

__all__ = [
    "IMAGE_MAGIC",
    "IMAGE_VERSION",
    "MAX_IMAGE_ROWS",
    "MAX_ROW_BEATS",
    "Image",
    "fingerprint",
    "header_beats",
    "header_layout",
    "chain_configs",
    "chain_words",
    "segment_words",
]

#: "TWIM" in memory order.
IMAGE_MAGIC = int.from_bytes(b"TWIM", "little")
#: Version of the format, and of every program word in it.
IMAGE_VERSION = 2
#: Most rows of the fabric that an image configures.
MAX_IMAGE_ROWS = (1 << 16) - 1
#: Most beats of the configuration of a row of the fabric.
MAX_ROW_BEATS = (1 << 16) - 1


def header_layout(rows: int) -> data.StructLayout:
    """Layout of an image's header in memory order; it is padded with zeros to whole beats.

    ``beats`` are the numbers of words of each row's chain.
    """
    return data.StructLayout(
        {
            "magic": 32,
            "version": 16,
            "rows": range(MAX_IMAGE_ROWS + 1),
            "fingerprint": range(FINGERPRINT.high + 1),
            "reserved": 32,
            "beats": data.ArrayLayout(range(MAX_ROW_BEATS + 1), rows),
        }
    )


def header_beats(rows: int, width_bits: int) -> int:
    """Beats of the header."""
    return ceil_div(header_layout(rows).size, width_bits)


def fingerprint(config: ChipConfig) -> int:
    """32-bit fingerprint of a chip's parameters, which ties an image to its chip."""
    text = json.dumps(config.resolved(), sort_keys=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


@dataclasses.dataclass(frozen=True)
class Image:
    """Programs of a whole chip.

    Parameters
    ----------
    fingerprint : int
        Configuration fingerprint of the chip that the image is for.
    rows : tuple of tuple of int
        Words of each row's chain, in the order of `chain_words`.

    Raises
    ------
    BadInputError
        If the fingerprint does not have 32 bits, or a row has no words or too many.
    """

    fingerprint: int
    rows: tuple[tuple[int, ...], ...]

    def __init__(self, fingerprint: int, rows: Sequence[Sequence[int]]) -> None:
        if not FINGERPRINT.holds(fingerprint):
            bits = FINGERPRINT.high.bit_length()
            raise BadInputError(
                f"Image fingerprint must have {bits} bits, not {shown(fingerprint)}"
            )
        if not 1 <= len(rows) <= MAX_IMAGE_ROWS:
            raise BadInputError(f"Image rows must be 1 to {MAX_IMAGE_ROWS}, not {len(rows)}")
        for row in rows:
            if not 1 <= len(row) <= MAX_ROW_BEATS:
                raise BadInputError(f"Words of a row must be 1 to {MAX_ROW_BEATS}, not {len(row)}")
        object.__setattr__(self, "fingerprint", fingerprint)
        object.__setattr__(self, "rows", tuple(tuple(row) for row in rows))

    def pack(self, width_bits: int) -> bytes:
        """Bytes of the image for a chip of the given link width.

        Raises
        ------
        BadInputError
            If a word is wider than the link.
        """
        beat = width_bits // 8
        header = header_layout(len(self.rows)).const(
            {
                "magic": IMAGE_MAGIC,
                "version": IMAGE_VERSION,
                "rows": len(self.rows),
                "fingerprint": self.fingerprint,
                "reserved": 0,
                "beats": [len(row) for row in self.rows],
            }
        )
        value = Const.cast(header).value
        parts = [value.to_bytes(header_beats(len(self.rows), width_bits) * beat, "little")]
        for row in self.rows:
            for word in row:
                if not 0 <= word < 1 << width_bits:
                    raise BadInputError(
                        f"Chain word must have {width_bits} bits, not {shown(word)}"
                    )
                parts.append(word.to_bytes(beat, "little"))
        return b"".join(parts)

    @classmethod
    def unpack(cls, raw: bytes, width_bits: int) -> "Image":
        """Image from its bytes; the inverse of `pack`.

        Raises
        ------
        BadInputError
            If `pack` makes no such bytes.
        """
        beat = width_bits // 8
        fixed = header_layout(0).size // 8
        if len(raw) < fixed:
            raise BadInputError(f"Image must have at least {fixed} bytes, not {len(raw)}")
        head: Any = header_layout(0).from_bits(int.from_bytes(raw[:fixed], "little"))
        for field, expected in (("magic", IMAGE_MAGIC), ("version", IMAGE_VERSION)):
            if head[field] != expected:
                raise BadInputError(f"Image {field} must be {expected:#x}, not {head[field]:#x}")
        layout = header_layout(head["rows"])
        start = header_beats(head["rows"], width_bits) * beat
        header: Any = layout.from_bits(
            int.from_bytes(raw[:start], "little") & (1 << layout.size) - 1
        )
        rows: list[list[int]] = []
        position = start
        for index in range(head["rows"]):
            end = position + header["beats"][index] * beat
            row = raw[position:end]
            rows.append(
                [int.from_bytes(row[at : at + beat], "little") for at in range(0, len(row), beat)]
            )
            position = end
        if position != len(raw):
            raise BadInputError(f"Image must have the {position} bytes of its rows, not {len(raw)}")
        image = cls(head["fingerprint"], rows)
        if image.pack(width_bits) != raw:
            raise BadInputError("Reserved bytes of an image header must be 0")
        return image


def segment_words(config_bits: int, width_bits: int) -> int:
    """Words of the segment of a program of so many bits."""
    return ceil_div(config_bits, width_bits)


def chain_words(configs: Sequence[int], bits: Sequence[int], width_bits: int) -> list[int]:
    """Words to push, first to last, for the programs of a row's units.

    The first word ends in the segment furthest from the source. Within a segment the low word
    goes first, so a row in memory is its units' little-endian programs, last unit first.

    Parameters
    ----------
    configs : sequence of int
        Program words in the order of the segments, nearest to the source first.
    bits : sequence of int
        Width of each program.
    width_bits : int
        Width of the chain.

    Raises
    ------
    BadInputError
        If the numbers of widths and programs differ, or a program exceeds its width.
    """
    if len(configs) != len(bits):
        raise BadInputError(
            f"Widths must be as many as configurations, {len(configs)}, not {shown(bits)}"
        )
    words = []
    for config, config_bits in zip(reversed(configs), reversed(bits)):
        if not 0 <= config < 1 << config_bits:
            raise BadInputError(f"Configuration must have {config_bits} bits, not {shown(config)}")
        for index in range(segment_words(config_bits, width_bits)):
            words.append(config >> index * width_bits & (1 << width_bits) - 1)
    return words


def chain_configs(words: Sequence[int], bits: Sequence[int], width_bits: int) -> list[int]:
    """Programs of a row's units after a push of words; the inverse of `chain_words`.

    Raises
    ------
    BadInputError
        If the number of words is not the chain's, or a bit beyond a program is set.
    """
    expected = sum(segment_words(config_bits, width_bits) for config_bits in bits)
    if len(words) != expected:
        raise BadInputError(f"Words of the chain must be {expected}, not {len(words)}")
    configs: list[int] = []
    position = 0
    for config_bits in reversed(bits):
        config = 0
        for index in range(segment_words(config_bits, width_bits)):
            config |= words[position] << index * width_bits
            position += 1
        if config >> config_bits:
            raise BadInputError(f"Configuration must have {config_bits} bits, not {config:#x}")
        configs.insert(0, config)
    return configs
