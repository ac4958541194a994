"""Softmaxes of whole rows, between two products, as loops over blocks of keys.

Scores of all keys, their exponentials, their sum and the product with values are written as the
loop that carries a maximum and two sums over blocks of keys (docs/online.md). The pass `online`
then finds it as it finds one that a program has itself.
"""

from __future__ import annotations

import math
from typing import Any

from hw.numeric.formats import bf16, fp32
from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis
from sw.ir.program import Program
from sw.ir.rewrite import Names, unused, walk
from sw.ir.types import Entry, Span, TileType, View
from sw.passes.simplify import live
from sw.softmax.row_softmax import RowSoftmax, row_softmax_of
from sw.softmax.running_softmax import SoftmaxFinder
from sw.softmax.score_chain import Missed
from sw.softmax.stored_rows import with_stored_rows

__all__ = ["over_blocks"]


def over_blocks(program: Program) -> Program:
    """Rewrite each softmax of whole rows of scores that is multiplied by loaded values.

    Parameters
    ----------
    program : Program
        After `accumulate` and `simplify`.

    Returns
    -------
    Program
        The same program, if it has no such softmax.
    """
    plain, stored = _Rewriter(program), with_stored_rows(program)
    rewritten = plain.over_blocks()
    if stored is program:
        return rewritten
    # Rows are stored in vain where no more softmaxes are those of blocks then.
    other = _Rewriter(stored)
    rewritten_too = other.over_blocks()
    return rewritten_too if other.count > plain.count else rewritten


class _Rewriter:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._finder = SoftmaxFinder(program)
        self._names = Names(program)
        self._indices = {each.index for each in walk(program.nodes) if isinstance(each, ir.Loop)}
        #: Softmaxes that it has rewritten.
        self.count = 0

    def over_blocks(self) -> Program:
        """The program, rewritten."""
        nodes = live(self._block(self._program.nodes))
        return self._program.after("over_blocks", nodes) if self.count else self._program

    def _block(self, nodes: tuple[ir.Node, ...]) -> tuple[ir.Node, ...]:
        """Nodes of a program or of a loop, rewritten."""
        found: list[ir.Node] = []
        for node in nodes:
            softmax = row_softmax_of(node, self._finder, nodes)
            try:
                made = self._over_blocks(softmax) if softmax else None
            except Missed:
                made = None
            if made is not None:
                self.count += 1
                found.extend(made)
            elif node.body:
                found.append(node.replace(nodes=self._block(node.body)))
            else:
                found.append(node)
        return tuple(found)

    def _over_blocks(self, softmax: RowSoftmax) -> list[ir.Node]:
        """Starts of the carries, the loop and the quotient.

        Raises
        ------
        Missed
            If a tile of all keys is none of blocks.
        """
        index = unused("keys", self._indices)
        span = softmax.sums.span
        blocks = _Blocks(self._finder, self._names, index, softmax)
        self._indices.add(index)
        sums = softmax.sums.result.type
        assert isinstance(sums, TileType)
        column = TileType(sums.rows, Axis(1), fp32)
        starts, carries, results = _Nodes(self._names, span), [], []
        for name, type_, start in (("m", column, -math.inf), ("l", column, 0.0), ("o", sums, 0.0)):
            constant = ir.Constant(start)
            starts.add(ir.Full, (), type_, constant, type_.rows, type_.cols, type_.format)
            carries.append(self._names.fresh(ir.Value(name, type_)))
            results.append(self._names.fresh(ir.Value(name, type_)))
        nexts = self._nexts(blocks, softmax, tuple(carries), column, sums)
        loop = ir.Loop(
            operands=tuple(each.result for each in starts.made),
            results=tuple(results),
            span=span,
            mode="metapipe",
            index=index,
            extent=blocks.keys,
            tile=None,
            until=None,
            carries=tuple(carries),
            nodes=tuple(blocks.nodes.made),
            nexts=nexts,
        )
        quotient = ir.Map((results[2], results[1]), (softmax.result,), span, op="div")
        return [*starts.made, loop, quotient]

    def _nexts(
        self,
        blocks: _Blocks,
        softmax: RowSoftmax,
        carries: tuple[ir.Value, ...],
        column: TileType,
        sums: TileType,
    ) -> tuple[ir.Value, ...]:
        """Next carries; what makes them of the scores of a block follows the scores."""
        add, scores, op = blocks.nodes.add, blocks.scores, softmax.op
        kind = scores.type
        assert isinstance(kind, TileType)
        old, total, product = carries
        top = add(ir.Map, (old, add(ir.Reduce, (scores,), column, "max", 1)), column, "max")
        powers = add(ir.Map, (add(ir.Map, (scores, top), kind, "sub"),), kind, op)
        fade = add(ir.Map, (add(ir.Map, (old, top), column, "sub"),), column, op)
        added = add(ir.Reduce, (powers,), column, "sum", 1)
        faded = add(ir.Map, (total, fade), column, "mul")
        new_total = add(ir.Map, (faded, added), column, "add")
        narrow = add(ir.Cast, (powers,), kind.to(bf16), bf16)
        added = add(ir.Matmul, (narrow, blocks.values), sums)
        faded = add(ir.Map, (product, fade), sums, "mul")
        return top, new_total, add(ir.Map, (faded, added), sums, "add")


class _Nodes:
    """Nodes in their order, with new results.

    Parameters
    ----------
    names : Names
    span : Span or None
        Their source position.
    """

    def __init__(self, names: Names, span: Span | None) -> None:
        self._names = names
        self._span = span
        self.made: list[ir.Node] = []

    def add(
        self,
        kind: type[ir.Node],
        operands: tuple[ir.Value, ...],
        type_: TileType,
        *attributes: Any,
    ) -> ir.Value:
        """Result of a new node."""
        result = self._names.fresh(ir.Value("1", type_))
        self.made.append(kind(operands, (result,), self._span, *attributes))
        return result

    def copy(self, node: ir.Node, type_: TileType, **changes: Any) -> ir.Value:
        """Result of a copy of a node, of a type."""
        result = self._names.fresh(node.result, type_)
        self.made.append(node.replace(results=(result,), **changes))
        return result


class _Blocks:
    """Scores and values of a block of keys, and the nodes that make them.

    Parameters
    ----------
    finder : SoftmaxFinder
    names : Names
    index : str
        Of the loop over blocks.
    softmax : RowSoftmax

    Raises
    ------
    Missed
        If they are made of all keys in another way.
    """

    def __init__(
        self, finder: SoftmaxFinder, names: Names, index: str, softmax: RowSoftmax
    ) -> None:
        self._finder = finder
        self._softmax = softmax
        self._copies: dict[str, ir.Value] = {}
        kind = softmax.scores.type
        assert isinstance(kind, TileType)
        self._whole = kind.cols
        size = kind.cols.size
        if not isinstance(size, int) or size == 1 or not kind.cols.full:
            raise Missed(softmax.product, "Scores must be of all keys")
        self.keys = size
        self._start = Affine.of(index)
        self._axis = Axis(f"|{index}|", (Affine.of(size) - self._start,))
        self.nodes = _Nodes(names, softmax.sums.span)
        self.scores = self._scored(softmax.scores)
        self.values = self._loaded(softmax.sums.operands[1])

    def _scored(self, operand: ir.Operand) -> Any:
        """Columns of the block, of a tile that has one for each key; other tiles as they are."""
        if not isinstance(operand, ir.Value):
            return operand
        kind, node = operand.type, self._finder.maker(operand)
        if not isinstance(kind, TileType) or kind.cols != self._whole:
            return operand
        if operand.name not in self._copies:
            self._copies[operand.name] = self._columns(kind, node)
        return self._copies[operand.name]

    def _columns(self, kind: TileType, node: ir.Node | None) -> ir.Value:
        kind = TileType(kind.rows, self._axis, kind.format)
        product = self._softmax.product
        match node:
            case ir.Matmul() if node == product:
                operands = (product.operands[0], self._loaded(product.operands[1]))
                return self.nodes.copy(node, kind, operands=operands)
            case ir.Map() | ir.Cast():
                operands = tuple(self._scored(each) for each in node.operands)
                return self.nodes.copy(node, kind, operands=operands)
            case ir.Iota(axis=1):
                return self.nodes.copy(node, kind, start=node.start + self._start, cols=self._axis)
            case ir.Full():
                return self.nodes.copy(node, kind, cols=self._axis)
        raise Missed(node or product, "Scores and their mask must be computed of numbers of keys")

    def _loaded(self, operand: ir.Operand) -> ir.Value:
        """Rows of the block, of keys or values."""
        node = self._finder.maker(operand)
        kind = operand.type if isinstance(operand, ir.Value) else None
        if isinstance(kind, TileType) and kind.rows == self._whole:
            blocks = TileType(self._axis, kind.cols, kind.format)
            if isinstance(node, ir.Buffer):
                return self.nodes.copy(node, blocks, operands=(self._loaded(node.operands[0]),))
            if isinstance(node, ir.Load) and len(node.view.axes) == 2:
                view = self._view(node.view)
                return self.nodes.copy(node, blocks, view=view)
        raise Missed(node or self._softmax.product, "Keys and values must be loaded")

    def _view(self, view: View) -> View:
        """Rows of the block."""
        entries = list(view.entries)
        row = next(number for number, each in enumerate(entries) if each.axis is not None)
        entries[row] = Entry(entries[row].start + self._start, self._axis)
        return View(view.tensor, tuple(entries))
