"""The kernel's source, line by line: units that work for a line, and bytes that it moves."""

from __future__ import annotations

import ast
import collections
import linecache
from collections.abc import Collection, Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from sim.profile.moved_bytes import moved_boxes
from sim.profile.part_lines import Line, PartLines
from sim.profile.unit_graph import names_of
from sw.stages.stage_graph import Hold, Load, Store

if TYPE_CHECKING:
    from sw.compiled import Compiled

__all__ = ["SourceLines"]


class SourceLines:
    """Lines behind the units and the transfers of a compiled kernel.

    A line is given as text: number of its source, and number in the file.

    Parameters
    ----------
    compiled : Compiled

    Members
    -------
    sources : list
        Functions that hold a line, as fields of a profile.
    """

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled
        self._parts = [PartLines(part) for part in compiled.parts]
        self._units = self._lines_of_units()
        self._transfers = self._lines_of_transfers()
        every = [*self._units.values(), *(lines for _, lines in self._transfers.values())]
        self._functions = _functions({line for lines in every for line in lines})
        self.sources = [
            {
                "file": PurePath(file).name,
                "first": first,
                "text": "".join(linecache.getlines(file)[first - 1 : last]),
            }
            for file, first, last in self._functions
        ]

    def of_unit(self, name: str) -> list[str]:
        """Lines behind a unit, by its name in a report."""
        return self._texts(self._units.get(name, ()))

    def transfers(self) -> list[dict[str, Any]]:
        """Bytes and lines of all loads and all stores of each array, as fields of a profile."""
        return [
            {"tensor": array, "output": stored, "bytes": count, "lines": self._texts(lines)}
            for (array, stored), (count, lines) in self._transfers.items()
        ]

    def _lines_of_units(self) -> dict[str, set[Line]]:
        found: dict[str, set[Line]] = collections.defaultdict(set)
        for part, lines in zip(self._compiled.parts, self._parts, strict=True):
            names = names_of(part)
            for name, stage in part.graph.stages.items():
                match stage:
                    case Load() | Store():
                        unit = f"agcu{stage.agcu}"
                    case Hold():
                        unit = f"pmu{part.homes[name].pmu}"
                    case _:
                        unit = name
                found[names[unit]] |= lines.of(name)
        return found

    def _lines_of_transfers(self) -> dict[tuple[str, bool], tuple[int, set[Line]]]:
        found: dict[tuple[str, bool], tuple[int, set[Line]]] = {}
        for moved in moved_boxes(self._compiled):
            tensor = self._compiled.parts[moved.part].part.arrays[moved.argument].name
            count, lines = found.get((moved.array, moved.stored), (0, set()))
            lines |= self._parts[moved.part].moving(tensor, stored=moved.stored)
            found[moved.array, moved.stored] = count + moved.bytes, lines
        return found

    def _texts(self, lines: Collection[Line]) -> list[str]:
        return [
            f"{number} {line}"
            for number, (file, first, last) in enumerate(self._functions)
            for name, line in sorted(lines)
            if name == file and first <= line <= last
        ]


def _functions(lines: Iterable[Line]) -> list[tuple[str, int, int]]:
    """File, first and last line of the functions that hold lines, where a file can be read."""
    by_file: dict[str, list[int]] = collections.defaultdict(list)
    for file, line in lines:
        by_file[file].append(line)
    found = []
    for file, numbers in sorted(by_file.items()):
        try:
            tree = ast.parse("".join(linecache.getlines(file)))
        except SyntaxError:
            continue
        for node in tree.body:
            marks = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(each.lineno for each in marks)])
            last = node.end_lineno or first
            if any(first <= number <= last for number in numbers):
                found.append((file, first, last))
    return found
