import re
from pathlib import Path

import pytest

from hw.arch.error_codes import LaunchError
from hw.arch.errors import BadInputError
from hw.arch.launch import (
    Argument,
    LaunchEntry,
    alignment_bytes,
    entry_layout,
    pack_arguments,
    pack_list,
)

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "command.md"

ENTRY = LaunchEntry(
    image_address=0x11_2233_4440,
    image_bytes=0x55,
    argument_address=0x66_7788_9980,
    argument_count=0xA,
    repeat=0xBBCC,
    header=bytes(range(1, 17)),
)


def test_bytes_of_an_entry():
    raw = ENTRY.pack()
    assert raw.hex(" ", 8) == " ".join(
        ["4044332211000000", "8099887766000000", "550000000a000000", "ccbb000001020304"]
        + ["05060708090a0b0c", "0d0e0f1000000000"]
        + ["0000000000000000"] * 2
    )
    assert LaunchEntry.unpack(raw) == ENTRY
    assert entry_layout.size == 512


def test_bytes_of_arguments():
    table = pack_arguments([Argument(0x0102), Argument((1 << 64) - 2, -3)])
    assert table.hex(" ", 8) == (
        "0201000000000000 0000000000000000 feffffffffffffff fdffffffffffffff"
    )


@pytest.mark.parametrize("width_bits, pitch", [(64, 64), (256, 64), (512, 64), (1024, 128)])
def test_entries_of_a_list_lie_on_whole_beats(width_bits, pitch):
    assert alignment_bytes(width_bits) == pitch
    assert pack_list([ENTRY, ENTRY], width_bits) == 2 * (ENTRY.pack() + bytes(pitch - 64))


HEADER = bytes(16)

BAD = [
    (
        lambda: LaunchEntry(image_address=0, image_bytes=1, header=b"TWIM"),
        BadInputError,
        "Image header must have 16 bytes, not",
    ),
    (
        lambda: LaunchEntry(image_address=8, image_bytes=1, header=HEADER),
        BadInputError,
        "multiple of 64, not 0x8",
    ),
    (
        lambda: LaunchEntry(image_address=0, image_bytes=0, header=HEADER),
        BadInputError,
        "1 to 16777215, not 0",
    ),
    (
        lambda: LaunchEntry(image_address=0, image_bytes=1, header=HEADER, argument_count=17),
        BadInputError,
        "Argument count must be an integer from 0 to 16, not 17",
    ),
    (
        lambda: LaunchEntry(image_address=0, image_bytes=1, header=HEADER, repeat=0),
        BadInputError,
        "Repeat must be an integer from 1 to 4294967295, not 0",
    ),
    (lambda: Argument(-1), BadInputError, "Argument value must be an integer from 0 to .*, not -1"),
    (lambda: Argument(0, 1 << 63), BadInputError, "Argument stride must be an integer from"),
    (lambda: pack_arguments(17 * [Argument(0)]), BadInputError, "at most 16, not 17"),
    (lambda: LaunchEntry.unpack(bytes(63)), BadInputError, "must have 64 bytes, not 63"),
    (lambda: LaunchEntry.unpack(ENTRY.pack()[:-1] + b"\1"), BadInputError, "Reserved bytes of"),
]


@pytest.mark.parametrize("call, kind, message", BAD)
def test_what_cannot_be_launched_is_refused(call, kind, message):
    with pytest.raises(kind, match=re.sub(r"([()])", r"\\\1", message)):
        call()


def test_document_lists_every_error_code():
    text = DOCUMENT.read_text(encoding="utf-8")
    listed = re.findall(r"^\| (\d+) \| `([A-Z_]+)` \|", text, re.MULTILINE)
    assert listed == [(str(code.value), code.name) for code in LaunchError if code.value]
