"""mask: set tails to the identity element before sums and other reductions.

Only a ragged axis that a product contracts or a reduction runs over is masked, and only if its
tail is not known to hold the identity already: a load reads zeros beyond its tensor.
"""

from __future__ import annotations

from sw.ir.nodes import Mask, Node
from sw.ir.program import Program
from sw.ir.rewrite import Names
from sw.ir.tails import Tails
from sw.ir.verify import verify

__all__ = ["mask"]


def mask(program: Program) -> Program:
    """Insert the masks that ragged tiles need."""
    return verify(program.after("mask", _Masker(program).block(program.nodes)))


class _Masker:
    def __init__(self, program: Program) -> None:
        self._tails = Tails({each.name: each for each in program.tensors})
        self._names = Names(program)

    def block(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        found: list[Node] = []
        for node in nodes:
            if node.body:
                node = node.replace(nodes=self.block(node.body))
            for position, axis, number in self._tails.missing(node):
                source = node.values[position]
                masked = Mask(
                    (source,), (self._names.fresh(source),), node.span, axis=axis, identity=number
                )
                self._tails.note(masked)
                operands = list(node.operands)
                operands[position] = masked.result
                node = node.replace(operands=tuple(operands))
                found.append(masked)
            self._tails.note(node)
            found.append(node)
        return tuple(found)
