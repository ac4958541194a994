"""Recognition of a program as two products with a softmax between them, over whole matrices."""

from __future__ import annotations

from typing import NamedTuple

from hw.numeric.formats import bf16
from sw.ir import nodes as ir
from sw.ir.affine import Affine
from sw.ir.linear_conditions import Linear, seen_where
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.ir.types import Entry
from sw.language.program_error import refused
from sw.softmax.score_chain import Hidden, Missed, both_orders, score_chain
from sw.stages.softmax.softmax_product import SoftmaxProduct

__all__ = ["has_powers", "softmax_product_of"]


def has_powers(program: Program) -> bool:
    """Whether a program has a softmax over blocks in the machine's form."""
    return any(isinstance(node, ir.Powers) for node in walk(program.nodes))


def softmax_product_of(program: Program) -> SoftmaxProduct:
    """Recognise a program as a softmax between two products of matrices.

    Parameters
    ----------
    program : Program
        After `online` and `simplify`, without loops over points, on matrices.

    Raises
    ------
    ProgramError
        At the first node that is not part of such a program.
    """
    return _Finder(program).product()


class _Rules(NamedTuple):
    """Keys that a query sees, as in `SoftmaxProduct`."""

    offset: int | None
    window: int
    keys: int


class _Finder:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._makers: dict[str, ir.Node] = {}
        self._loops: dict[str, ir.Loop] = {}
        powers: list[ir.Powers] = []
        stores: list[ir.Store] = []
        for node in walk(program.nodes):
            self._makers.update((each.name, node) for each in node.results)
            if isinstance(node, ir.Loop):
                self._loops[node.index] = node
            elif isinstance(node, ir.Powers):
                powers.append(node)
            elif isinstance(node, ir.Store):
                stores.append(node)
        for several in (powers, stores):
            for node in several[1:]:
                rule = "A second softmax, or a second result, is not supported by hardware yet"
                raise refused(node, rule)
        (self._powers,), (self._store,) = powers, stores

    def product(self) -> SoftmaxProduct:
        loop = self._quotient()
        total, sums = self._sums(loop)
        try:
            chain = score_chain(self._scores(), self._makers, self._powers)
        except Missed as reason:
            raise refused(reason.node, str(reason)) from reason
        scores = chain.product
        if scores.ta or not scores.tb:
            raise refused(scores, "Scores must be `q @ k.T` of rows of queries and rows of keys")
        if sums.tb:
            raise refused(sums, "Values must be rows of keys: `p.to(tw.bf16) @ v`")
        q, k, v = (self._load(*each) for each in ((scores, 0), (scores, 1), (sums, 1)))
        query = self._rows(q)
        if self._rows(self._store) != query:
            raise refused(self._store, f"Rows of `{self._store.view}` must be those of `{q.view}`")
        key = self._rows(k)
        if key != loop.index or self._rows(v) != key:
            raise refused(v, f"Rows of `{v.view}` and of `{k.view}` must be the blocks of the loop")
        rules = self._rules(chain.hidden, loop, q, k)
        self._require_loops(loop, query)
        shapes = {each.name: each.type.shape for each in self._program.tensors}
        tensors = [each.view.tensor for each in (q, k, v, self._store)]
        for node in (q, k, v, self._store):
            if len(node.view.entries) != 2:
                rule = f"`{node.view}` must be of a matrix in a softmax between products"
                raise refused(node, rule)
        return SoftmaxProduct(
            queries=shapes[tensors[0]][0],
            keys=rules.keys,
            depth=shapes[tensors[1]][1],
            width=shapes[tensors[2]][1],
            q=tensors[0],
            k=tensors[1],
            v=tensors[2],
            o=tensors[3],
            scale=self._powers.scale,
            offset=rules.offset,
            window=rules.window,
            ends=any(each.terms for each in loop.until.forms) if loop.until else False,
            block=loop.tile,
            loops={"key": key} | ({"query": query} if query else {}),
        )

    def _maker(self, operand: ir.Operand) -> ir.Node | None:
        """The node of a tile; buffers are looked through."""
        node = self._makers.get(operand.name) if isinstance(operand, ir.Value) else None
        while isinstance(node, ir.Buffer):
            node = self._makers.get(node.values[0].name)
        return node

    def _scores(self) -> ir.Value:
        value = self._powers.operands[0]
        assert isinstance(value, ir.Value)
        return value

    def _quotient(self) -> ir.Loop:
        """The loop whose sums are divided and stored."""
        node = self._maker(self._store.operands[0])
        while isinstance(node, ir.Cast) and node.format == bf16:
            node = self._maker(node.operands[0])
        for loop in self._loops.values():
            if self._powers not in loop.body or not isinstance(node, ir.Map):
                continue
            if node.op not in ("mul", "div"):
                continue
            for first, second in both_orders(node.operands):
                if node.op == "mul":
                    inverse = self._maker(second)
                    if not isinstance(inverse, ir.Map) or inverse.op != "reciprocal":
                        continue
                    second = inverse.operands[0]
                elif first != node.operands[0]:
                    continue
                if first in loop.results and second in loop.results:
                    self._numerator = loop.results.index(first)
                    self._denominator = loop.results.index(second)
                    return loop
        rule = (
            "The quotient of a softmax between two products must be stored, or rounded before "
            "anything else takes it: `(o / l).to(tw.bf16)`"
        )
        raise refused(node or self._store, rule)

    def _sums(self, loop: ir.Loop) -> tuple[ir.Matmul, ir.Matmul]:
        """Products of the powers with ones and with values, each with its old sums scaled."""
        found = []
        for position in (self._denominator, self._numerator):
            node = self._maker(loop.nexts[position])
            if not isinstance(node, ir.Matmul) or node.operands[0] != self._powers.results[2]:
                raise refused(node or loop, "Sums must be products of the powers")
            scaled = self._maker(node.operands[2])
            wanted = (loop.carries[position], self._powers.results[1])
            if not isinstance(scaled, ir.Rescale) or scaled.operands != wanted:
                raise refused(node, "Sums must be scaled by the rise of the maximum")
            found.append(node)
        total, sums = found
        return total, sums

    def _load(self, product: ir.Matmul, number: int) -> ir.Load:
        node = self._maker(product.operands[number])
        if not isinstance(node, ir.Load):
            raise refused(
                product,
                "`@` takes a tile straight from `load_tile` here; this operand is computed, which "
                "the hardware does not support between two products",
            )
        return node

    def _rows(self, node: ir.Load | ir.Store) -> str | None:
        """Index of the loop over the blocks of rows of a matrix; None if it has all rows."""
        tensor = self._program.tensor(node.view.tensor)
        if tensor.type.format != bf16:
            raise refused(
                node,
                f"`{tensor.name}` must be bf16 in a softmax between two products, not "
                f"{tensor.type.format.name}",
            )
        # Points before rows and columns are those of loops that other passes take apart.
        if len(node.view.entries) < 2:
            raise refused(node, f"`{node.view}` must be of a matrix in a softmax between products")
        rows, columns = node.view.entries[-2:]
        count, width = tensor.type.shape[-2:]
        if not _whole(columns, width):
            raise refused(node, f"`{node.view}` must have all columns of `{tensor.name}`")
        for index, loop in self._loops.items():
            if rows.start == Affine.of(index) and loop.extent == count:
                return index
        if _whole(rows, count):
            return None
        raise refused(node, f"`{node.view}` must be all rows or the blocks of a loop over them")

    def _require_loops(self, keys: ir.Loop, query: str | None) -> None:
        for loop in self._loops.values():
            if not loop.blocks:
                raise refused(loop, f"`{loop.mode}` loop is not supported by hardware yet")
            if loop is not keys and loop.index != query:
                raise refused(loop, "A loop beside those over queries and keys is not supported")
            if loop is not keys and (loop.until is not None or loop.carries):
                raise refused(loop, "A loop over queries must not end early or carry tiles")

    def _rules(self, hidden: tuple[Hidden, ...], loop: ir.Loop, q: ir.Load, k: ir.Load) -> _Rules:
        keys = loop.extent
        for form in loop.until.forms if loop.until else ():
            keys = keys if form.terms else min(keys, form.constant)
        offset: int | None = None
        behind: int | None = None
        first, start = (each.view.entries[-2].start for each in (q, k))
        for each in hidden:
            seen = seen_where(each.condition, self._makers, holds=not each.holds)
            rules = [_rule(bound, first, start) for bound in seen]
            if not rules or None in rules:
                raise refused(
                    each.node,
                    "A mask must compare numbers of keys: `at >= tw.col_index(j)` of the last key "
                    "that a row sees, `at - tw.col_index(j) < window` beside it, or "
                    "`tw.col_index(j) < length`",
                )
            for name, number in filter(None, rules):
                if name == "offset":
                    offset = number if offset is None else min(offset, number)
                elif name == "keys":
                    keys = min(keys, number)
                elif name == "behind":
                    behind = number if behind is None else min(behind, number)
        window = 0
        if behind is not None:
            node = hidden[-1].node
            if offset is None:
                raise refused(node, "A window of keys must end at the last key that a row sees")
            window = behind + offset + 1
        if keys < 1 or (behind is not None and window < 1):
            raise refused(loop, "A softmax between two products must see a key")
        return _Rules(offset, window, keys)


def _rule(seen: Linear, first: Affine, start: Affine) -> tuple[str, int] | None:
    """What a condition says of the numbers of queries and keys, those of the tiles' first rows."""
    if (seen.rows, seen.columns) == (1, -1):
        name, number = "offset", seen.base - first + start
    elif (seen.rows, seen.columns) == (-1, 1):
        name, number = "behind", seen.base + first - start
    elif (seen.rows, seen.columns) == (0, -1):
        name, number = "keys", seen.base + start + 1
    elif (seen.rows, seen.columns) == (0, 1) and (seen.base - start).constant >= 0:
        # Keys before the first one: there are none.
        name, number = "none", seen.base - start
    else:
        return None
    return None if number.terms else (name, number.constant)


def _whole(entry: Entry, size: int) -> bool:
    return entry.start == Affine() and entry.axis is not None and entry.axis.size == size
