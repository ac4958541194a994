"""The index of ARCHITECTURE.md: each file exists and defines the name that stands beside it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = 40
_ROW = re.compile(r"\| (.+\?) \| `([^`|]+)` \| `([^`|]+)` \|")


def index_rows(root=ROOT):
    """Rows of the index: question, file, name."""
    text = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.partition("\n## Where things are\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    found = [_ROW.fullmatch(line) for line in lines[2:]]
    assert all(found), [line for line, row in zip(lines[2:], found, strict=True) if not row]
    return [row.groups() for row in found]


def defined(path):
    """Names that a file defines at its top: classes, functions and constants."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".cpp":
        return set(re.findall(r"^\w[\w*: ]*?(\w+)\([^;]*\{", text, re.MULTILINE))
    names = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def wrong_rows(root=ROOT):
    """Rows whose file is missing or does not define the name."""
    for question, file, name in index_rows(root):
        if not (root / file).is_file():
            yield f"{question} {file} must be a file"
        elif name not in defined(root / file):
            yield f"{question} {file} must define {name}"


def test_each_file_of_the_index_defines_its_name():
    assert list(wrong_rows()) == []


def test_the_index_answers_every_question():
    questions = {question for question, _, _ in index_rows()}
    assert len(questions) == len(index_rows()) == QUESTIONS


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("hw/b.py", "class Cell: ...", "hw/a.py must be a file"),
        ("hw/a.py", "from hw.b import Cell", "hw/a.py must define Cell"),
        ("hw/a.py", "def f():\n    Cell = 1", "hw/a.py must define Cell"),
    ],
)
def test_a_wrong_row_is_named(file, text, complaint, tmp_path):
    head = "# Architecture\n\n## Where things are\n\n| question | file | name |\n|---|---|---|\n"
    row = "| Where is the cell? | `hw/a.py` | `Cell` |\n"
    (tmp_path / "ARCHITECTURE.md").write_text(f"{head}{row}\n## Decisions\n")
    (tmp_path / "hw").mkdir()
    (tmp_path / file).write_text(text)
    assert list(wrong_rows(tmp_path)) == [f"Where is the cell? {complaint}"]
