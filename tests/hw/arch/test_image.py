import dataclasses
import random
import re

import pytest

from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.arch.image import Image, checksum, fingerprint, image_words
from hw.arch.launch import HEADER_BYTES


@pytest.mark.parametrize("width_bits", [64, 256, 1024])
@pytest.mark.parametrize("rows", [1, 2, 6, 20])
def test_images_come_back_from_their_bytes(width_bits, rows):
    rng = random.Random(rows)
    programs = {
        (row, segment): sum(
            rng.getrandbits(width_bits) << at * width_bits
            for at in range(rng.randint(1, 30))
            if rng.random() < 0.6
        )
        for row in range(rows)
        for segment in range(rng.randint(0, 4))
    }
    image = Image(rng.getrandbits(32), programs)
    raw = image.pack(width_bits)
    assert Image.unpack(raw, width_bits) == image
    # Only words that are not 0, and a directory for each so many runs of them.
    words = list(image_words(raw[HEADER_BYTES:], width_bits))
    assert all(each.value for each in words)
    runs = len(set(words)) - sum(
        (row, segment, word + 1) in {each[:3] for each in words} for row, segment, word, _ in words
    )
    directories = max(1, -(-runs * 32 // width_bits))
    assert len(raw) == HEADER_BYTES + (len(words) + directories) * width_bits // 8


def test_bytes_of_an_image():
    raw = Image(0x0403_0201, {(0, 0): 0xAA, (1, 2): 0xBB << 64 | 0xCC << 192}).pack(64)
    assert raw.hex(" ", 4) == (
        "5457494d 02000000 01020304 69eafe6d "
        "00000001 01020101 aa000000 00000000 bb000000 00000000 "
        "01020301 00000000 cc000000 00000000"
    )


def test_fingerprints_tell_configurations_apart():
    prints = [fingerprint(config) for config in named.values()]
    small = named["small"]
    prints.append(fingerprint(dataclasses.replace(small, tracks=2)))
    prints.append(
        fingerprint(dataclasses.replace(small, pcu=dataclasses.replace(small.pcu, cell_latency=1)))
    )
    assert len(set(prints)) == len(prints)
    assert fingerprint(dataclasses.replace(small)) == fingerprint(small)


GOOD = Image(7, {(0, 0): 1, (1, 0): 2}).pack(64)


def signed(body):
    """A header with the right checksum in front of other beats."""
    return GOOD[:12] + checksum(body).to_bytes(4, "little") + body


def beats(*values):
    return b"".join(value.to_bytes(8, "little") for value in values)


BAD_BYTES = [
    (b"", "Image header must have 16 bytes, not 0"),
    (b"X" + GOOD[1:], "Image magic must be 0x4d495754, not 0x4d495758"),
    (GOOD[:4] + b"\1" + GOOD[5:], "Image version must be 0x2, not 0x1"),
    (GOOD[:6] + b"\1" + GOOD[7:], "Image reserved must be 0x0, not 0x1"),
    (GOOD[:-1] + b"\1", "Image checksum must be 0x"),
    (signed(GOOD[16:-8]), "Image must have all words of its directories"),
    (signed(GOOD[16:] + bytes(8)), "Runs of an image must be as a program packs them"),
    (
        signed(beats(0x0100_0001_0100_0000, 2, 0)),
        "Runs of an image must be as a program packs them",
    ),
    (
        signed(beats(0x0100_0000_0100_0001, 2, 1)),
        "Runs of an image must be as a program packs them",
    ),
    (
        signed(beats(0x0101_0000_0100_0000, 1, 1)),
        "Runs of an image must be as a program packs them",
    ),
]


@pytest.mark.parametrize("raw, message", BAD_BYTES)
def test_bytes_that_are_no_image_are_refused(raw, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        Image.unpack(raw, 64)


BAD_IMAGES = [
    (lambda: Image(1 << 32, {}), "Image fingerprint must have 32 bits, not 4294967296"),
    (lambda: Image(0, {(255, 0): 1}), "Rows of an image must be an integer from 1 to 255, not 256"),
    (lambda: Image(0, {(0, -1): 1}), "Segments of a row must be an integer from 1 to 255, not 0"),
    (lambda: Image(0, {(0, 0): -1}), "Program must be at least 0, not -1"),
    (
        lambda: Image(0, {(0, 0): 1 << 64 * 255}).pack(64),
        "Words of a segment must be an integer from 1 to 255, not 256",
    ),
]


@pytest.mark.parametrize("call, message", BAD_IMAGES)
def test_images_that_cannot_be_are_refused(call, message):
    with pytest.raises(BadInputError, match=f"^{re.escape(message)}$"):
        call()
