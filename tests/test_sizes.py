"""The sizes that the packages keep: lines of a function, files of a folder, names that repeat."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_house import PACKAGES, ROOT, python_files, top

MOST_FILES, MOST_DOUBLES, MOST_LINES = 20, 12, 100


def product_files(root: Path) -> list[Path]:
    """Python files of the packages, but the heads of the packages."""
    found = [path for path in python_files(root) if top(root, path) in PACKAGES]
    return [path for path in found if path.name != "__init__.py"]


def crowded_folders(root: Path) -> Iterator[str]:
    for folder, count in Counter(path.parent for path in product_files(root)).items():
        if count > MOST_FILES:
            name = folder.relative_to(root)
            yield f"{name}: a folder must have at most {MOST_FILES} files, not {count}"


def doubled_names(root: Path) -> Iterator[str]:
    counts = Counter(path.name for path in product_files(root))
    doubled = sorted(name for name, count in counts.items() if count > 1)
    if len(doubled) > MOST_DOUBLES:
        yield f"at most {MOST_DOUBLES} names may stand twice, not {', '.join(doubled)}"


def function_lines(root: Path) -> Iterator[tuple[int, str]]:
    """Lines and place of every function of the packages."""
    for path in product_files(root):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
                place = f"{path.relative_to(root)}:{node.lineno}: {node.name}"
                yield node.end_lineno - node.lineno + 1, place


def long_functions(root: Path) -> Iterator[str]:
    for lines, place in function_lines(root):
        if lines > MOST_LINES:
            yield f"{place} must have at most {MOST_LINES} lines, not {lines}"


RULES = [crowded_folders, doubled_names, long_functions]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_packages_keep_their_sizes(rule):
    assert list(rule(ROOT)) == []


@pytest.mark.parametrize(
    ("rule", "fits", "complaint"),
    [
        (
            crowded_folders,
            {f"hw/lib/a{number}.py": "" for number in range(20)},
            "hw/lib: a folder must have at most 20 files, not 21",
        ),
        (
            doubled_names,
            {f"{home}/a{number}.py": "" for home in ("hw", "sw") for number in range(12)},
            "at most 12 names may stand twice, not a0.py, a1.py",
        ),
        (
            long_functions,
            {"hw/a.py": "def f():\n" + "    f()\n" * 99},
            "hw/lib/b.py:1: f must have at most 100 lines, not 101",
        ),
    ],
)
def test_one_more_is_named(rule, fits, complaint, tmp_path):
    for name, text in fits.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert list(rule(tmp_path)) == []
    for folder in ("hw/lib", "sw/lib"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        more = "def f():\n" + "    f()\n" * 100 if folder == "hw/lib" else ""
        (tmp_path / folder / "b.py").write_text(more)
    (found,) = rule(tmp_path)
    assert found.startswith(complaint)
