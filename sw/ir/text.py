"""Text form of the tile IR, which `sw.ir.parse` reads back.

One node per line: results, kind, operands, non-default attributes in braces, types of the
results, and the source position.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, fields
from typing import Any

from hw.arch.lanes.lane_function import LaneFunction
from sw.ir.format_rules import Format
from sw.ir.nodes import Loop, Node
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.ir.types import Span

__all__ = ["attribute_fields", "print_program"]

_COMMON = ("operands", "results", "span", "nodes", "carries", "nexts")


def attribute_fields(kind: type[Node]) -> tuple[Field[Any], ...]:
    """Return the attribute fields of a node kind."""
    return tuple(each for each in fields(kind) if each.name not in _COMMON)


def print_program(program: Program, *, spans: bool = True) -> str:
    """Return the text form of a program.

    Parameters
    ----------
    program : Program
    spans : bool
        Whether to print source positions. Without them the text does not depend on paths and lines,
        and the nodes read back have no spans.
    """
    return "\n".join(_Printer(program, spans).lines()) + "\n"


def _list(items: Iterable[object]) -> str:
    return ", ".join(str(each) for each in items)


def _attribute(item: object) -> str:
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, Format):
        return item.name
    return item.name if isinstance(item, LaneFunction) else str(item)


class _Printer:
    def __init__(self, program: Program, spans: bool) -> None:
        self._program = program
        found = (node.span.file for node in walk(program.nodes) if node.span is not None)
        self._files = {file: number for number, file in enumerate(dict.fromkeys(found))}
        self._spans = spans

    def lines(self) -> Iterator[str]:
        yield f"program {self._program.name} after {' '.join(self._program.passes)}"
        if self._spans:
            for file, number in self._files.items():
                quoted = file.replace("\\", "\\\\").replace('"', '\\"')
                yield f'file f{number} "{quoted}"'
        yield from (f"tensor {each}" for each in self._program.tensors)
        for node in self._program.nodes:
            yield from self._node(node, "")

    def _span(self, span: Span | None) -> str:
        if span is None or not self._spans:
            return ""
        ends = f"{span.line}:{span.column}-{span.end_line}:{span.end_column}"
        return f" @ f{self._files[span.file]}:{ends}"

    def _node(self, node: Node, indent: str) -> Iterator[str]:
        results = f"{_list(node.results)} = " if node.results else ""
        if isinstance(node, Loop):
            yield f"{indent}{results}{self._loop_header(node)} {{"
            for each in node.body:
                yield from self._node(each, indent + "  ")
            nexts = f" next {_list(node.nexts)}" if node.nexts else ""
            yield f"{indent}}}{nexts}{self._span(node.span)}"
            return
        head = [_attribute(getattr(node, node.HEAD))] if node.HEAD else []
        suffix = f".{getattr(node, node.SUFFIX)}" if node.SUFFIX else ""
        text = f"{indent}{results}{node.kind}{suffix}"
        listed = _list([*head, *node.operands])
        text += f" {listed}" if listed else ""
        named = [
            f"{each.name}={_attribute(getattr(node, each.name))}"
            for each in attribute_fields(type(node))
            if each.name not in (node.HEAD, node.SUFFIX)
            and (each.default is MISSING or getattr(node, each.name) != each.default)
        ]
        text += f" {{{', '.join(named)}}}" if named else ""
        if node.results:
            text += f" : {_list(each.type for each in node.results)}"
        yield f"{text}{self._span(node.span)}"

    def _loop_header(self, loop: Loop) -> str:
        text = f"loop.{loop.mode} {loop.index} over {loop.extent}"
        if loop.tile is not None:
            text += f" tile {loop.tile}"
        if loop.until is not None:
            text += f" until {loop.until}"
        if loop.carries:
            pairs = zip(loop.carries, loop.operands)
            text += f" with {_list(f'{each} = {init} : {each.type}' for each, init in pairs)}"
        return text
