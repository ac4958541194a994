"""Verilog of a design with the ports and the hierarchy of its module definitions."""

from __future__ import annotations

import collections
import dataclasses
import functools
import hashlib
import re
from collections.abc import Collection
from typing import NamedTuple

__all__ = ["Definition", "Design", "Port", "module_texts"]

_MODULE = re.compile(
    r"^\s*module\s+\\?(\S+?)\s*[(;].*?^\s*endmodule\b[^\n]*\n?", re.MULTILINE | re.DOTALL
)


def module_texts(verilog: str) -> dict[str, str]:
    """Text of each module by its name, with the attributes before it."""
    texts: dict[str, str] = {}
    end = 0
    for found in _MODULE.finditer(verilog):
        texts[found[1]] = verilog[end : found.end()].strip() + "\n"
        end = found.end()
    return texts


class Port(NamedTuple):
    """Port of a module.

    Members
    -------
    is_output : bool
    width : int
        Width in bits.
    """

    is_output: bool
    width: int


@dataclasses.dataclass(frozen=True)
class Definition:
    """Module definition.

    Members
    -------
    ports : dict of str to Port
        Ports in the order of the module's header.
    inside : dict of str to int
        Instances in it of each other definition.
    kind : str
        Name of its component's class; empty if the text is from a file.
    """

    ports: dict[str, Port]
    inside: dict[str, int]
    kind: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True)
class Design:
    """Emitted Verilog with its hierarchy and header.

    Members
    -------
    top : str
        Name of the top module.
    text : str
        The Verilog, the same for the same parameters on every machine.
    definitions : dict of str to Definition
        Each module definition by its name, in the order of the text.
    head : str
        Header comment: description, command and ports. It is not part of the text, so that builds
        from the text are cached independently of it.
    """

    top: str
    text: str
    definitions: dict[str, Definition]
    head: str = ""

    @property
    def file(self) -> str:
        """Content of a Verilog file: head and text."""
        return self.head + self.text

    @property
    def sha256(self) -> str:
        """Digest of the text, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @functools.cached_property
    def texts(self) -> dict[str, str]:
        """Text of each module by its name."""
        return module_texts(self.text)

    @functools.cached_property
    def instances(self) -> dict[str, int]:
        """Instances of each module definition below the top; the top itself counts as one."""
        counts: collections.Counter[str] = collections.Counter(dict.fromkeys(self.definitions, 0))

        def visit(name: str, times: int) -> None:
            counts[name] += times
            for child, count in self.definitions[name].inside.items():
                visit(child, times * count)

        visit(self.top, 1)
        return dict(counts)

    def part(self, top: str, boxes: Collection[str] = ()) -> Design:
        """Design of one of the modules; ``boxes`` keep their text, without what they instantiate.

        Parameters
        ----------
        top : str
            Name of the module.
        boxes : collection of str
            Modules that are not part of it.
        """
        found: dict[str, Definition] = {}

        def visit(name: str) -> None:
            if name not in found:
                definition = self.definitions[name]
                if name in boxes:
                    definition = dataclasses.replace(definition, inside={})
                found[name] = definition
                for child in definition.inside:
                    visit(child)

        visit(top)
        kept = {name: found[name] for name in self.definitions if name in found}
        return Design(top, "\n".join(self.texts[name] for name in kept), kept)
