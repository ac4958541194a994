"""Glossary: each of our names stands in the code that its row points to."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
NAMES = GLOSSARY.partition("## Names in the code")[2]


def rows():
    """Our words and the modules of each row of the second table."""
    for line in NAMES.splitlines():
        if line.startswith("|") and not line.startswith(("| ours", "|---")):
            ours, _, where = (cell.strip() for cell in line.strip("|").split(" | "))
            words = re.sub(r"\([^)]*\)", "", ours).replace("`", "").split(",")
            yield [word.strip() for word in words], re.findall(r"`([\w./]+)`", where)


def source(module):
    """Text of a module, or of every module of a package."""
    path = ROOT / module.replace(".", "/")
    files = [path.with_suffix(".py")] if not path.is_dir() else sorted(path.rglob("*.py"))
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


@pytest.mark.parametrize(("words", "modules"), list(rows()), ids=lambda value: ", ".join(value))
def test_our_word_stands_where_the_glossary_says(words, modules):
    text = "\n".join(source(module) for module in modules)
    assert [word for word in words if not re.search(rf"\b{word}", text, re.IGNORECASE)] == []


def test_a_term_has_one_row():
    terms = re.findall(r"^\| ([^|]+) \|", GLOSSARY.partition("## Names")[0], re.MULTILINE)
    assert len(terms) == len(set(terms)) > 30


def test_terms_are_in_alphabetical_order():
    terms = re.findall(r"^\| ([^|]+) \|", GLOSSARY.partition("## Names")[0], re.MULTILINE)[1:]
    assert terms == sorted(terms, key=str.lower)
