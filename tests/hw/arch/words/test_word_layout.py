"""Words are packed and unpacked as Amaranth's constants are."""

import random

import pytest
from amaranth.hdl import Const, signed
from amaranth.lib import data, enum

from hw.arch.errors import BadInputError
from hw.arch.words.word_layout import Word, WordLayout


class Colour(enum.Enum, shape=2):
    RED = 0
    BLUE = 3


ENTRY = WordLayout({"count": signed(5), "level": range(6), "colour": Colour})
LAYOUT = WordLayout(
    {
        "enable": 1,
        "entries": data.ArrayLayout(ENTRY, 3),
        "plain": data.StructLayout({"low": 3, "high": signed(2)}),
        "numbers": data.ArrayLayout(7, 2),
    }
)


def entry(rng):
    colour = rng.choice(list(Colour))
    return {"count": rng.randint(-16, 15), "level": rng.randrange(8), "colour": colour}


def values(rng):
    return {
        "enable": rng.randrange(2),
        "entries": [entry(rng) for _ in range(rng.randrange(4))],
        "plain": {"low": rng.randrange(8), "high": rng.randint(-2, 1)},
        "numbers": [rng.randrange(128), rng.randrange(128)],
    }


def plain(word):
    """All fields of a word, of this class or of Amaranth's."""
    entries = [word["entries"][number] for number in range(3)]
    numbers = [word["numbers"][number] for number in range(2)]
    fields = [[each["count"], each["level"], each["colour"]] for each in entries]
    return [word["enable"], fields, word["plain"]["low"], word["plain"]["high"], numbers]


def test_words_are_those_of_amaranth(seed):
    rng = random.Random(seed)
    for _ in range(100):
        given = values(rng)
        word = LAYOUT.pack(given)
        assert word == Const.cast(LAYOUT.const(given)).value
        assert plain(LAYOUT.unpack(word)) == plain(LAYOUT.from_bits(word))


def test_numbers_are_cut_to_their_fields():
    given = {"entries": [{"count": -17, "level": 8}], "plain": {"high": 7}, "numbers": [-1, 128]}
    word = LAYOUT.pack(given)
    assert plain(LAYOUT.unpack(word)) == [
        0,
        [[15, 0, Colour.RED], [0, 0, Colour.RED], [0, 0, Colour.RED]],
        0,
        -1,
        [127, 0],
    ]


def test_a_field_with_fields_is_given_by_its_bits_and_has_them():
    bits = ENTRY.pack({"count": -3, "level": 5, "colour": Colour.BLUE})
    word = LAYOUT.unpack(LAYOUT.pack({"entries": [0, bits]}))
    assert isinstance(word["entries"][1], Word) and word["entries"][1].bits == bits
    assert word.bits == LAYOUT.pack({"entries": [0, {"count": -3, "level": 5, "colour": 3}]})


def test_a_word_of_another_width_is_refused():
    with pytest.raises(
        BadInputError, match=f"Word must have {LAYOUT.size} bits, not {1 << LAYOUT.size}"
    ):
        LAYOUT.unpack(1 << LAYOUT.size)
    with pytest.raises(BadInputError, match="not -1"):
        LAYOUT.unpack(-1)


def test_an_unknown_field_or_code_is_an_error():
    with pytest.raises(KeyError, match="speed"):
        LAYOUT.pack({"speed": 1})
    with pytest.raises(ValueError, match="1 is not a valid Colour"):
        ENTRY.unpack(1 << ENTRY["colour"].offset)["colour"]
