"""End of a trace: conversion of the recording to an IR program."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sw.ir.affine import Affine, size_symbol
from sw.ir.nodes import Cast, Loop, Node, Value
from sw.ir.program import Program
from sw.ir.rewrite import rename, walk
from sw.ir.types import TileType
from sw.language.trace import Recorder

__all__ = ["make_program"]


def make_program(recorder: Recorder) -> Program:
    """Make an IR program of a recording: widen starts of carries, make names unique.

    The kernel adds the tensors, because it has the signature.

    Parameters
    ----------
    recorder : Recorder
        Recorder whose trace has ended.
    """
    variables = dict(recorder.variables)

    def fresh(like: Value, type_: TileType) -> Value:
        made = recorder.fresh(type_)
        recorder.adopt(made)
        if like.name in variables:
            variables[made.name] = variables[like.name]
        return made

    nodes = _widen(recorder.root.nodes, fresh)
    program = Program(recorder.name, (), nodes)
    return rename(program, *_names(program, variables))


def _widen(nodes: Iterable[Node], fresh: Callable[[Value, TileType], Value]) -> tuple[Node, ...]:
    """Insert a cast before a loop wherever a carry starts in a narrower format."""
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            starts: list[Any] = []
            for start, carry in zip(node.values, node.carries):
                type_ = carry.type
                if start.type != type_ and isinstance(type_, TileType):
                    wide = fresh(start, type_)
                    found.append(Cast((start,), (wide,), node.span, format=type_.format))
                    start = wide
                starts.append(start)
            body = _widen(node.body, fresh)
            node = node.replace(operands=tuple(starts), nodes=body)
        found.append(node)
    return tuple(found)


def _names(program: Program, variables: dict[str, str]) -> tuple[dict[str, str], dict[str, Affine]]:
    """Unique names of all values, and symbols of all indices."""
    values: dict[str, str] = {}
    symbols: dict[str, Affine] = {}
    taken: dict[str, int] = {}
    indices: dict[str, int] = {}
    numbers = 0
    for node in walk(program.nodes):
        made = list(node.results)
        if isinstance(node, Loop):
            made += node.carries
            name = _unique(variables.get(node.index, "index"), indices)
            symbols[node.index] = Affine.of(name)
            symbols[size_symbol(node.index)] = Affine.of(size_symbol(name))
        for value in made:
            variable = variables.get(value.name)
            if variable is None:
                numbers += 1
            values[value.name] = _unique(variable, taken) if variable else str(numbers)
    return values, symbols


def _unique(variable: str, taken: dict[str, int]) -> str:
    count = taken[variable] = taken.get(variable, 0) + 1
    return variable if count == 1 else f"{variable}.{count}"
