"""Files and modules that the pages name in code are in the project."""

import re
from pathlib import Path

import pytest

from tests.docs.fences import GUIDE, PAGES

ROOT = Path(__file__).resolve().parents[2]
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"(?:hw|sw|sim|gen|docs|tests|examples)/[a-z_0-9/]+\.[a-z]+(?:::\w+)?")
_TABLE = re.compile(r"^\| file of `([\w/]+)` \|.*\n\|[-|]+\n((?:\|.*\n?)+)", re.MULTILINE)
_NAME = re.compile(r"(?:hw|sw|sim|gen|docs)(?:\.\w+)+")


def spellings(code):
    """A name, or each name that a group in braces stands for."""
    head, brace, rest = code.partition("{")
    group, _, tail = rest.partition("}")
    return [head + each + tail for each in group.split(",")] if brace else [code]


def is_there(name):
    """Whether a file, or a module and the name after it, is in the project."""
    if _FILE.fullmatch(name):
        file, _, inside = name.partition("::")
        return (ROOT / file).is_file() and inside in (ROOT / file).read_text(encoding="utf-8")
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:count])
        module = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if module.is_file() or path.is_dir():
            text = module.read_text(encoding="utf-8") if module.is_file() else ""
            return all(re.search(rf"\b{part}\b", text) for part in parts[count:])
    return False


def unknown(text):
    """Files and modules in the code of a page that are not in the project."""
    for code in re.findall(r"`([^`\n]+)`", _FENCED.sub("", text)):
        for name in spellings(code):
            if (_FILE.fullmatch(name) or _NAME.fullmatch(name)) and not is_there(name):
                yield name


@pytest.mark.parametrize("page", PAGES + GUIDE, ids=lambda page: page.name)
def test_a_page_names_what_is_there(page):
    assert list(unknown(page.read_text(encoding="utf-8"))) == []


def test_a_table_of_a_folder_names_each_file():
    tables = [table for page in PAGES for table in _TABLE.findall(page.read_text(encoding="utf-8"))]
    assert {folder for folder, _ in tables} == {"sw/ir", "sw/language", "sw/parts"}
    for folder, rows in tables:
        files = {path.name for path in (ROOT / folder).glob("[!_]*.py")}
        assert set(re.findall(r"`(\w+\.py)`", rows)) == files


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`hw/tile.py`, `hw.tile.Tile`, `hw.tile`, `hw.arch` and `hw.float.{dot1,dot2}`", []),
        ("`hw/tiles.py`", ["hw/tiles.py"]),
        ("`hw.tile.Tiles`", ["hw.tile.Tiles"]),
        ("`hw.float.{dot1,dot9}`", ["hw.float.dot9"]),
        ("`hw/tile.py::Tile` and `hw/tile.py::Tiles`", ["hw/tile.py::Tiles"]),
        ("```text\n`hw/tiles.py`\n```\n", []),
    ],
)
def test_a_name_that_is_not_there_is_found(text, found):
    assert list(unknown(text)) == found
