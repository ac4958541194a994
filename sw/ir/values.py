"""What nodes of the tile IR take and give."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sw.ir.types import Type

__all__ = ["Constant", "Operand", "Value", "variable"]

_NUMBERED = re.compile(r"\.\d+$")


def variable(name: str) -> str:
    """Return the program's own name for a value or an index of this unique name; empty if none."""
    return "" if name.isdigit() else _NUMBERED.sub("", name)


@dataclass(frozen=True)
class Value:
    """What a node gives.

    Parameters
    ----------
    name : str
        Unique in its program: the variable's name, with a number behind it if the name is taken
        (``acc.2``), or a number alone if it has none.
    type : Type
        Its type.
    """

    name: str
    type: Type

    @property
    def variable(self) -> str:
        """What the program calls it, which need not be unique; empty if it has no name there."""
        return variable(self.name)

    def __str__(self) -> str:
        return f"%{self.name}"


@dataclass(frozen=True)
class Constant:
    """A number in the place of a tile; it has the format the operation computes in."""

    value: int | float

    def __eq__(self, other: object) -> bool:
        # Text, so that 1 is not 1.0, +0 not -0, and NaN is NaN.
        return isinstance(other, Constant) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))

    def __str__(self) -> str:
        return repr(self.value)


#: What a node takes.
Operand = Value | Constant
