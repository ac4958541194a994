"""Generated tables of the contract: modules, limits and codes of ``hw.arch``."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import hw.arch
from docs.tools.markdown import table
from hw.arch.checks import Domain
from hw.arch.config import named
from hw.arch.unit_kind import UNIT_KINDS

__all__ = ["codes", "limits", "modules", "units"]


def _files() -> Iterator[tuple[str, str]]:
    """Name below the package, and text, of each module of the contract."""
    for folder in hw.arch.__path__:
        for path in sorted(Path(folder).rglob("[!_]*.py")):
            name = ".".join(path.relative_to(folder).with_suffix("").parts)
            yield name, path.read_text(encoding="utf-8")


def modules() -> str:
    """Table of the modules and their headlines."""
    rows = []
    for name, text in _files():
        headline = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
        rows.append((f"`hw.arch.{name}`", headline))
    return table(("module", "contents"), rows)


def units() -> str:
    """Table of the kinds of unit: name, letter, ports by position, program, counters."""
    rows = []
    for kind in UNIT_KINDS.values():
        ports = (", ".join(map(str, each)) or "–" for each in (kind.inputs, kind.outputs))
        counters = ", ".join(f"`{name}`" for name in kind.counters)
        program = f"`{kind.program.__module__.removeprefix('hw.arch.')}.{kind.program.__name__}`"
        letter = f"`{kind.letter}`" if kind.letter else "edge"
        bits = kind.layout(named["small"]).size
        rows.append((kind, letter, *ports, kind.token_outputs, program, bits, counters))
    heads = "unit, letter, inputs, outputs, token outputs, program, bits on `small`, own counters"
    return table(heads.split(", "), rows)


def _meaning(lines: list[str], line: int) -> str:
    """Text of the comment above a line."""
    words: list[str] = []
    while line >= 2 and lines[line - 2].startswith("#: "):
        line -= 1
        words.insert(0, lines[line - 1].removeprefix("#: ").strip())
    return " ".join(words)


def limits() -> str:
    """Table of the public integers and domains: name, value, meaning.

    Raises
    ------
    ValueError
        If one has no comment that says what it is.
    """
    rows = []
    for name, text in _files():
        module, lines = import_module(f"hw.arch.{name}"), text.splitlines()
        for node in ast.parse(text).body:
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                continue
            constant = node.targets[0].id
            value = getattr(module, constant)
            if constant.startswith("_") or not constant.isupper():
                continue
            if not isinstance(value, int | Domain):
                continue
            meaning = _meaning(lines, node.lineno)
            if not meaning:
                raise ValueError(f"hw.arch.{name}.{constant} must have a comment of its meaning")
            rows.append((f"`{name}.{constant}`", _value(value), meaning))
    return table(("name", "value", "meaning"), rows)


def _value(value: int | Domain) -> str:
    if isinstance(value, int):
        return f"{value:,}" if value < 1 << 26 else f"{value:#x}"
    return f"{_value(value.low)} to {_value(value.high)}" + ", a power of two" * value.power


def codes() -> str:
    """Table of the enumerations: name, codes, meaning."""
    rows = []
    for name, text in _files():
        module = import_module(f"hw.arch.{name}")
        for node in ast.parse(text).body:
            if not isinstance(node, ast.ClassDef):
                continue
            kind = getattr(module, node.name)
            if issubclass(kind, enum.Enum) and len(kind):
                found: list[enum.Enum] = list(kind)
                members = ", ".join(f"{each.name} {_number(each)}".strip() for each in found)
                headline = (ast.get_docstring(node) or "").partition("\n")[0]
                rows.append((f"`{name}.{node.name}`", members, headline))
    return table(("enumeration", "codes", "meaning"), rows)


def _number(member: enum.Enum) -> str:
    return str(int(member.value)) if isinstance(member.value, int) else ""
