"""Verilog of a chip from a file instead of from the generator."""

import re
from pathlib import Path

from gen.verilog import Design
from hw.arch.errors import BadInputError
from hw.arch.text_file import read_text

__all__ = ["TOP", "read_design"]

#: Name of a chip's top module.
TOP = "tilewright"

#: Comment lines before the first module.
_HEAD = re.compile(r"(?:[ \t]*(?://[^\n]*)?\n)*")
_MODULE = re.compile(r"^\s*module\s+\\?(\S+?)\s*[(;](.*?)^\s*endmodule", re.MULTILINE | re.DOTALL)
_INSTANCE = re.compile(r"^\s*\\?(\S+)\s+(?:#\(.*?\)\s*)?\\?\S+\s*\(", re.MULTILINE)


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
    text = file[len(head) :]
    inside = {name: _INSTANCE.findall(body) for name, body in _MODULE.findall(text)}
    if TOP not in inside:
        raise BadInputError(f"{path} must have a module {TOP}")
    counts = dict.fromkeys(inside, 0)

    def visit(name: str, times: int) -> None:
        counts[name] += times
        children = [child for child in inside[name] if child in inside]
        for child in dict.fromkeys(children):
            visit(child, times * children.count(child))

    visit(TOP, 1)
    return Design(top=TOP, text=text, instances=counts, head=head)
