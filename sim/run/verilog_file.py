"""Verilog of a chip from a file instead of from the generator."""

import collections
import re
from pathlib import Path

from gen.design import Definition, Design, Port, module_texts
from hw.arch.checks import read_text
from hw.arch.errors import BadInputError

__all__ = ["TOP", "parsed", "read_design"]

#: Name of a chip's top module.
TOP = "tilewright"

#: Comment lines before the first module.
_HEAD = re.compile(r"(?:[ \t]*(?://[^\n]*)?\n)*")
_PORT = re.compile(
    r"^\s*(input|output)\s+(?:wire\s+|reg\s+)?(?:\[(\d+):0\]\s*)?\\?(\S+?)\s*;", re.MULTILINE
)
_INSTANCE = re.compile(r"^\s*\\?(\S+)\s+(?:#\(.*?\)\s*)?\\?\S+\s*\(", re.MULTILINE)


def parsed(top: str, text: str, head: str = "") -> Design:
    """Design of a Verilog text that was not emitted here."""
    texts = module_texts(text)
    definitions = {}
    for name, module in texts.items():
        ports = {
            port: Port(direction == "output", int(high or 0) + 1)
            for direction, high, port in _PORT.findall(module)
        }
        inside = collections.Counter(kind for kind in _INSTANCE.findall(module) if kind in texts)
        definitions[name] = Definition(ports, inside)
    return Design(top, text, definitions, head)


def read_design(path: Path | str) -> Design:
    """Read a chip's Verilog; the comment before the first module is the header.

    Raises
    ------
    OSError
        If the file cannot be read.
    BadInputError
        If it has no module named `TOP`.
    """
    file = read_text(path, noun="Verilog")
    found = _HEAD.match(file)
    head = found[0] if found else ""
    design = parsed(TOP, file[len(head) :], head)
    if TOP not in design.definitions:
        raise BadInputError(f"{path} must have a module {TOP}")
    return design
