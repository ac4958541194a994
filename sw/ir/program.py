"""Tile programs: tensors, nodes and the passes applied."""

from __future__ import annotations

import functools
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
        Name of the kernel.
    tensors : tuple of Tensor
        Arguments in signature order, then local tensors.
    nodes : tuple of Node
        The body.
    passes : tuple of str
        Passes applied so far; some rules hold only after a certain pass.
    """

    name: str
    tensors: tuple[Tensor, ...]
    nodes: tuple[Node, ...]
    passes: tuple[str, ...] = ("trace",)

    @functools.cached_property
    def _hash(self) -> int:
        return hash((self.name, self.tensors, self.nodes, self.passes))

    def __hash__(self) -> int:
        # That of all its nodes, and a division looks programs up many times.
        return self._hash

    def tensor(self, name: str) -> Tensor:
        """Return a tensor by its name.

        Raises
        ------
        KeyError
            If there is no such tensor.
        """
        for each in self.tensors:
            if each.name == name:
                return each
        raise KeyError(name)

    @property
    def level(self) -> str:
        """Lowering level: traced, staged or placed."""
        if "place" in self.passes:
            return "placed"
        return "staged" if "stage" in self.passes else "traced"

    def after(self, name: str, nodes: tuple[Node, ...]) -> Program:
        """Return the program with new nodes, marked as the result of a pass."""
        return replace(self, nodes=nodes, passes=(*self.passes, name))
