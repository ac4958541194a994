"""Operands and results of nodes: values and constants."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sw.ir.types import Type

__all__ = ["Constant", "Operand", "Value", "variable"]

_NUMBERED = re.compile(r"\.\d+$")


def variable(name: str) -> str:
    """Return the source name behind a unique name of a value or an index; empty if none."""
    return "" if name.isdigit() else _NUMBERED.sub("", name)


@dataclass(frozen=True)
class Value:
    """A result of a node, or a carry of a loop.

    Parameters
    ----------
    name : str
        Unique in its program: the variable's name, with a number appended if the name is taken
        (``acc.2``), or a number alone if there is no variable.
    type : Type
        Its type.
    """

    name: str
    #: Not hashed: the name tells values of a program apart.
    type: Type = field(hash=False)

    @property
    def variable(self) -> str:
        """Its variable's name in the source, which need not be unique; empty if none."""
        return variable(self.name)

    def __str__(self) -> str:
        return f"%{self.name}"


@dataclass(frozen=True)
class Constant:
    """A scalar operand instead of a tile, in the format of the operation."""

    value: int | float

    def __eq__(self, other: object) -> bool:
        # Compared as text, so that 1 differs from 1.0 and +0 from -0, and NaN equals NaN.
        return isinstance(other, Constant) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))

    def __str__(self) -> str:
        return repr(self.value)


#: Operand of a node.
Operand = Value | Constant
