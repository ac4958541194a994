"""Prose of the pages: no sentence is too long for one reading."""

import re

import pytest

from docs.tools.blocks import without_blocks
from tests.docs.fences import GUIDE, PAGES

WORDS = 45
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n)+(?=\n)")
_TABLE = re.compile(r"^\s*\|.*$", re.MULTILINE)
_HEADING = re.compile(r"^#+ .*$", re.MULTILINE)
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ", re.MULTILINE)
_CODE = re.compile(r"(`+)[^`].*?\1", re.DOTALL)
_TARGET = re.compile(r"\]\([^)]*\)")
_SHORT = re.compile(r"\b(e\.g|i\.e|vs|cf|etc|al|Fig|No)\. ")
_END = re.compile(r"(?<=[.!?])[)\"*_’”]*\s+")


def sentences(text):
    """Sentences of a page without its code blocks, tables, generated blocks and headings.

    An item of a list begins a sentence. A piece of code is one word, a link the words it shows.
    """
    text = _INDENTED.sub("\n", _FENCED.sub("\n", without_blocks(text)))
    text = _HEADING.sub("\n", _TABLE.sub("\n", text))
    text = _TARGET.sub("]", _CODE.sub("code", text))
    for paragraph in re.split(r"\n\s*\n", _ITEM.sub("\n\n", text)):
        yield from _END.split(_SHORT.sub(r"\1 ", " ".join(paragraph.split())))


def too_long(text, words=WORDS):
    """Number of words and the sentence, for each of more than ``words`` words."""
    for sentence in sentences(text):
        count = sum(any(letter.isalnum() for letter in word) for word in sentence.split())
        if count > words:
            yield count, sentence


@pytest.mark.parametrize("page", PAGES + GUIDE, ids=lambda page: page.name)
def test_no_sentence_is_too_long(page):
    assert list(too_long(page.read_text(encoding="utf-8"))) == []


LONG = " ".join(["word"] * (WORDS + 1))


@pytest.mark.parametrize(
    "text",
    [
        f"Short. {LONG}. Short.",
        f"A\n{LONG.replace(' ', chr(10))}",
        f"- short\n- {LONG}\n",
        f"`code` {LONG}",
        f"[{LONG}](page.md)",
        f"{LONG.replace('word', 'e.g. 0.5')}",
        f"1. {LONG}",
        f"- short\n  - short\n    {LONG}\n\nAfter.",
    ],
)
def test_a_long_sentence_is_found(text):
    assert [count > WORDS for count, _ in too_long(text)] == [True]


@pytest.mark.parametrize(
    "text",
    [
        f"```text\n{LONG}\n```\n",
        f"| {LONG} |\n|---|\n| {LONG} |\n",
        f"<!-- generated: x -->\n{LONG}\n<!-- end of x -->\n",
        f"Code:\n\n    {LONG}\n    {LONG}\n\nAfter.",
        f"`{LONG}`",
        f"[page](<{LONG}>)",
        f"{LONG[:-5]}. {LONG[:-5]}! ({LONG[:-5]}.) {LONG[:-5]}",
        f"- {LONG[:-5]}\n- {LONG[:-5]}\n\n{LONG[:-5]}\n",
        f"# {LONG[:-5]}\n{LONG[:-5]}\n",
    ],
)
def test_only_prose_counts(text):
    assert list(too_long(text)) == []
