import dataclasses
import random
import re

import pytest

from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.arch.image import Image, fingerprint, header_beats, header_layout


@pytest.mark.parametrize("width_bits", [64, 256, 1024])
@pytest.mark.parametrize("rows", [1, 2, 6, 20])
def test_images_come_back_from_their_bytes(width_bits, rows):
    rng = random.Random(rows)
    words = [[rng.getrandbits(width_bits) for _ in range(rng.randint(1, 9))] for _ in range(rows)]
    image = Image(rng.getrandbits(32), words)
    raw = image.pack(width_bits)
    beats = header_beats(rows, width_bits) + sum(map(len, words))
    assert len(raw) == beats * width_bits // 8
    assert Image.unpack(raw, width_bits) == image


def test_bytes_of_an_image():
    raw = Image(0x0403_0201, [[0xAA], [0xBB, 0xCC]]).pack(64)
    assert raw.hex(" ", 4) == (
        "5457494d 02000200 01020304 00000000 01000200 00000000 "
        "aa000000 00000000 bb000000 00000000 cc000000 00000000"
    )
    assert header_layout(2).size == 8 * 20


def test_fingerprints_tell_configurations_apart():
    prints = [fingerprint(config) for config in named.values()]
    small = named["small"]
    prints.append(fingerprint(dataclasses.replace(small, tracks=2)))
    prints.append(
        fingerprint(dataclasses.replace(small, pcu=dataclasses.replace(small.pcu, cell_latency=1)))
    )
    assert len(set(prints)) == len(prints)
    assert fingerprint(dataclasses.replace(small)) == fingerprint(small)


GOOD = Image(7, [[1], [2, 3]]).pack(64)

BAD_BYTES = [
    (b"", "Image must have at least 16 bytes, not 0"),
    (b"X" + GOOD[1:], "Image magic must be 0x4d495754, not 0x4d495758"),
    (GOOD[:4] + b"\1" + GOOD[5:], "Image version must be 0x2, not 0x1"),
    (GOOD[:-8], "Image must have the 48 bytes of its rows, not 40"),
    (GOOD + bytes(8), "Image must have the 48 bytes of its rows, not 56"),
    (GOOD[:12] + b"\1" + GOOD[13:], "Reserved bytes of an image header must be 0"),
    (GOOD[:22] + b"\1" + GOOD[23:], "Reserved bytes of an image header must be 0"),
]


@pytest.mark.parametrize("raw, message", BAD_BYTES)
def test_bytes_that_are_no_image_are_refused(raw, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Image.unpack(raw, 64)


BAD_IMAGES = [
    (lambda: Image(1 << 32, [[0]]), "Image fingerprint must have 32 bits, not 4294967296"),
    (lambda: Image(0, []), "Image rows must be 1 to 65535, not 0"),
    (lambda: Image(0, [[0], []]), "Words of a row must be 1 to 65535, not 0"),
    (lambda: Image(0, [[1 << 64]]).pack(64), f"Chain word must have 64 bits, not {1 << 64}"),
]


@pytest.mark.parametrize("call, message", BAD_IMAGES)
def test_images_that_cannot_be_are_refused(call, message):
    with pytest.raises(BadInputError, match=f"^{re.escape(message)}$"):
        call()
