"""Programs of the tile IR."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sw.ir.nodes import Node
from sw.ir.types import Tensor

__all__ = ["Program"]


@dataclass(frozen=True)
class Program:
    """A tile program.

    Parameters
    ----------
    name : str
        The kernel's.
    tensors : tuple of Tensor
        Arguments in the order of the signature, then local tensors.
    nodes : tuple of Node
        The body.
    passes : tuple of str
        What it has gone through; some rules hold only after a pass.
    """

    name: str
    tensors: tuple[Tensor, ...]
    nodes: tuple[Node, ...]
    passes: tuple[str, ...] = ("trace",)

    def tensor(self, name: str) -> Tensor:
        """Return a tensor by its name.

        Raises
        ------
        KeyError
            If there is none.
        """
        for each in self.tensors:
            if each.name == name:
                return each
        raise KeyError(name)

    @property
    def level(self) -> str:
        """How far it is: traced, staged or placed."""
        if "place" in self.passes:
            return "placed"
        return "staged" if "stage" in self.passes else "traced"

    def after(self, name: str, nodes: tuple[Node, ...]) -> Program:
        """Return the program that the pass of this name made of it."""
        return replace(self, nodes=nodes, passes=(*self.passes, name))
