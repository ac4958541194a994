"""Image: programs of a whole chip as runs of words, their header and checksum, in memory."""

import dataclasses
import hashlib
import itertools
import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError, shown
from hw.arch.launch import HEADER_BYTES, header_layout
from hw.arch.limits import FABRIC_ROWS, FINGERPRINT, SEGMENT_WORDS, SEGMENTS
from hw.arch.words.word_layout import WordLayout
from hw.numeric.division import ceil_div

__all__ = [
    "IMAGE_MAGIC",
    "IMAGE_VERSION",
    "Image",
    "ImageWord",
    "checked_header",
    "checksum",
    "fingerprint",
    "image_words",
    "run_layout",
]

#: "TWIM" in memory order.
IMAGE_MAGIC = int.from_bytes(b"TWIM", "little")
#: Version of the format, and of every program word in it.
IMAGE_VERSION = 2

#: A run in a directory: consecutive words of one segment, from ``word`` on; 0 words: none.
run_layout = WordLayout(
    {
        "row": range(FABRIC_ROWS.high + 1),
        "segment": range(SEGMENTS.high + 1),
        "word": range(SEGMENT_WORDS.high + 1),
        "words": range(SEGMENT_WORDS.high + 1),
    }
)


class ImageWord(NamedTuple):
    """A word of an image: its position on the chip, and its value."""

    row: int
    segment: int
    word: int
    value: int


def fingerprint(config: ChipConfig) -> int:
    """32-bit fingerprint of a chip's parameters, which ties an image to its chip."""
    text = json.dumps(config.resolved(), sort_keys=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


def checksum(body: bytes) -> int:
    """CRC-32 of an image's beats (polynomial 0x04C11DB7, reflected; as of IEEE 802.3)."""
    return zlib.crc32(body)


def _runs(program: int, width_bits: int) -> Iterator[tuple[int, list[int]]]:
    """Runs of words of a program that are not 0: first word, words."""
    count = ceil_div(program.bit_length(), width_bits)
    words = [program >> at * width_bits & (1 << width_bits) - 1 for at in range(count)]
    for used, group in itertools.groupby(range(count), lambda at: bool(words[at])):
        if used:
            places = list(group)
            yield places[0], [words[at] for at in places]


def image_words(body: bytes, width_bits: int) -> Iterator[ImageWord]:
    """Words of an image's beats, in their order.

    Raises
    ------
    BadInputError
        If the beats end before the words of a directory.
    """
    beat, bits = width_bits // 8, run_layout.size
    beats = (int.from_bytes(body[at : at + beat], "little") for at in range(0, len(body), beat))
    for directory in beats:
        for index in range(width_bits // bits):
            run = run_layout.unpack(directory >> index * bits & (1 << bits) - 1)
            if not run["words"]:
                break
            for number in range(run["words"]):
                value = next(beats, None)
                if value is None:
                    raise BadInputError("Image must have all words of its directories")
                yield ImageWord(run["row"], run["segment"], run["word"] + number, value)


def checked_header(header: bytes) -> Any:
    """Fields of a header.

    Raises
    ------
    BadInputError
        If magic number, version or reserved bits are wrong.
    """
    if len(header) != HEADER_BYTES:
        raise BadInputError(f"Image header must have {HEADER_BYTES} bytes, not {len(header)}")
    fields: Any = header_layout.unpack(int.from_bytes(header, "little"))
    for name, expected in (("magic", IMAGE_MAGIC), ("version", IMAGE_VERSION), ("reserved", 0)):
        if fields[name] != expected:
            raise BadInputError(f"Image {name} must be {expected:#x}, not {fields[name]:#x}")
    return fields


@dataclasses.dataclass(frozen=True)
class Image:
    """Programs of a whole chip.

    Parameters
    ----------
    fingerprint : int
        Configuration fingerprint of the chip that the image is for.
    programs : mapping of (int, int) to int
        Program word of each segment in use, by row and segment. One of 0 is left out: off.

    Raises
    ------
    BadInputError
        If the fingerprint does not have 32 bits, or a segment is none that a run can name.
    """

    fingerprint: int
    programs: Mapping[tuple[int, int], int]

    def __init__(self, fingerprint: int, programs: Mapping[tuple[int, int], int]) -> None:
        if not FINGERPRINT.holds(fingerprint):
            bits = FINGERPRINT.high.bit_length()
            raise BadInputError(
                f"Image fingerprint must have {bits} bits, not {shown(fingerprint)}"
            )
        for (row, segment), program in programs.items():
            # A chip has from 1 on; a run names them from 0 on.
            FABRIC_ROWS.require("Rows of an image", row + 1)
            SEGMENTS.require("Segments of a row", segment + 1)
            if program < 0:
                raise BadInputError(f"Program must be at least 0, not {shown(program)}")
        object.__setattr__(self, "fingerprint", fingerprint)
        used = {at: programs[at] for at in sorted(programs) if programs[at]}
        object.__setattr__(self, "programs", used)

    def pack(self, width_bits: int) -> bytes:
        """Bytes of the image for a chip of the given link width: header, then beats.

        Raises
        ------
        BadInputError
            If a program has more words than a run can name.
        """
        runs = []
        for at, program in self.programs.items():
            count = ceil_div(program.bit_length(), width_bits)
            SEGMENT_WORDS.require("Words of a segment", count)
            runs += [(*at, *run) for run in _runs(program, width_bits)]
        beats = []
        room = width_bits // run_layout.size
        # An image of nothing has one empty directory.
        for first in range(0, max(1, len(runs)), room):
            group = runs[first : first + room]
            directory = 0
            for index, (row, segment, word, words) in enumerate(group):
                fields: dict[int | str, Any] = {
                    "row": row,
                    "segment": segment,
                    "word": word,
                    "words": len(words),
                }
                run = run_layout.pack(fields)
                directory |= run << index * run_layout.size
            beats += [directory, *(value for *_, words in group for value in words)]
        body = b"".join(each.to_bytes(width_bits // 8, "little") for each in beats)
        header = header_layout.pack(
            {
                "magic": IMAGE_MAGIC,
                "version": IMAGE_VERSION,
                "reserved": 0,
                "fingerprint": self.fingerprint,
                "checksum": checksum(body),
            }
        )
        return header.to_bytes(HEADER_BYTES, "little") + body

    @classmethod
    def unpack(cls, raw: bytes, width_bits: int) -> "Image":
        """Image from its bytes; the inverse of `pack`.

        Raises
        ------
        BadInputError
            If `pack` makes no such bytes.
        """
        header = checked_header(raw[:HEADER_BYTES])
        body = raw[HEADER_BYTES:]
        if header["checksum"] != checksum(body):
            raise BadInputError(
                f"Image checksum must be {checksum(body):#x}, that of its beats, "
                f"not {header['checksum']:#x}"
            )
        programs: dict[tuple[int, int], int] = {}
        for row, segment, word, value in image_words(body, width_bits):
            programs[row, segment] = programs.get((row, segment), 0) | value << word * width_bits
        image = cls(header["fingerprint"], programs)
        if image.pack(width_bits) != raw:
            raise BadInputError(
                "Runs of an image must be as a program packs them: in order, joined"
            )
        return image
