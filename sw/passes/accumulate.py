"""accumulate: fuse products that are added to one another into one sum, which starts from zeros.

The terms of a sum are added in ascending order, with one rounding per term, as the accumulators
add them. So the result is independent of the tile size: a sum carried over blocks of k equals the
sum over all of k bit for bit. What a sum starts from, other than zeros, is added to it at its end,
and so is a sum that is finished: that of another product, or of another loop.
The pass runs before anything else is moved, and the golden interpreter runs the program after it.

Terms of 8-bit floats are added in pairs, so blocks of such a carried sum must be even.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator

from sw.ir.nodes import Buffer, Cast, Constant, Full, Loop, Map, Matmul, Node, Value
from sw.ir.program import Program
from sw.ir.rewrite import Names, used, walk
from sw.ir.sizes import trips
from sw.ir.types import TileType
from sw.ir.verify import verify
from sw.ir.written_loops import written_loops
from sw.language.program_error import ProgramError
from sw.passes.simplify import live

__all__ = ["accumulate", "require_whole_lanes"]


def accumulate(program: Program) -> Program:
    """Fuse each product with the addition to a sum that is its only use, where shapes agree."""
    written, program = program, written_loops(program)
    if program is not written:
        program = dataclasses.replace(program, nodes=live(program.nodes))
    uses = Counter(value.name for node in program.nodes for value in used(node))
    nodes = _FromZeros(Names(program)).block(_block(program.nodes, uses), set())
    return verify(program.after("accumulate", nodes))


def _block(nodes: tuple[Node, ...], uses: Counter[str]) -> tuple[Node, ...]:
    kept: dict[int, Node] = {}
    # Products of this block that nothing has taken yet, by the name of the result.
    products: dict[str, tuple[int, Matmul]] = {}
    for position, node in enumerate(nodes):
        if node.body:
            node = node.replace(nodes=_block(node.body, uses))
        found = _sum(node, products, uses)
        if found is not None:
            start, name = found
            taken, product = products.pop(name)
            del kept[taken]
            node = product.replace(operands=(*product.operands, start), results=node.results)
        elif isinstance(node, Matmul) and len(node.operands) == 2:
            products[node.result.name] = (position, node)
        kept[position] = node
    return tuple(kept[position] for position in sorted(kept))


def _sum(
    node: Node, products: dict[str, tuple[int, Matmul]], uses: Counter[str]
) -> tuple[Value, str] | None:
    """The addend and the name of the product, if the node adds a product to a tile."""
    if not isinstance(node, Map) or node.op != "add" or len(node.values) != 2:
        return None
    left, right = node.values
    for start, product in ((left, right), (right, left)):
        single = uses[product.name] == 1 and product.name in products
        if single and start.type == product.type and start.name != product.name:
            return start, product.name
    return None


class _FromZeros:
    """Rewriter of sums that start from other tiles: the tile is added to the sum at its end.

    A sum goes on with zeros, and with what a loop around it carries and nothing else reads.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._zeros: set[str] = set()

    def block(self, nodes: tuple[Node, ...], sums: set[str]) -> tuple[Node, ...]:
        """The nodes; names of zeros and of sums that go on are added to a set."""
        return tuple(each for node in nodes for each in self._node(node, sums))

    def _node(self, node: Node, sums: set[str]) -> Iterator[Node]:
        match node:
            case Loop():
                yield from self._loop(node, sums)
                return
            case Full() | Cast():
                known = self._is_zeros(node)
                self._zeros |= {node.result.name} if known else set()
            case Buffer():
                known = node.values[0].name in sums
            case Matmul():
                starts = {each.name for each in node.values[2:]}
                known = bool(starts & sums - self._zeros)
                if starts - sums:
                    product = self._names.fresh(node.result)
                    yield node.replace(operands=node.operands[:2], results=(product,))
                    node = Map((node.operands[2], product), node.results, node.span, "add")
            case _:
                known = False
        if known:
            sums.update(each.name for each in node.results)
        yield node

    def _is_zeros(self, node: Full | Cast) -> bool:
        if isinstance(node, Full):
            return node.value.value == 0
        return node.values[0].name in self._zeros

    def _loop(self, loop: Loop, sums: set[str]) -> Iterator[Node]:
        starts, results, added = list(loop.values), list(loop.results), []
        for position, start in enumerate(loop.values):
            if start.name in sums or not _only_summed(loop, position):
                continue
            zeros, total = (self._names.fresh(results[position]) for _ in range(2))
            kind = zeros.type
            assert isinstance(kind, TileType)
            number = Constant(0.0 if kind.format.is_float else 0)
            yield Full((), (zeros,), loop.span, number, kind.rows, kind.cols, kind.format)
            added.append(Map((start, total), (results[position],), loop.span, "add"))
            starts[position], results[position] = zeros, total
            self._zeros.add(zeros.name)
            sums.add(zeros.name)
        names = [each.name for each in loop.carries]
        carried = {
            each
            for each, start in enumerate(starts)
            if start.name in sums and not _is_read(loop.body, {names[each]})
        }
        while True:
            inside = sums | {loop.carries[each].name for each in carried}
            body = self.block(loop.body, inside)
            lost = {each for each in carried if loop.nexts[each].name not in inside}
            if not lost:
                break
            carried -= lost
        sums.update(results[each].name for each in carried if starts[each].name not in self._zeros)
        yield loop.replace(operands=tuple(starts), results=tuple(results), nodes=body)
        yield from added


def _is_read(nodes: tuple[Node, ...], sums: set[str]) -> bool:
    """Whether nodes need a carried sum for more than to go on with it."""
    sums = set(sums)
    for node in nodes:
        taken = [number for number, each in enumerate(node.values) if each.name in sums]
        match node:
            case Loop():
                inner = {node.carries[each].name for each in taken}
                if _is_read(node.body, sums | inner):
                    return True
                sums |= {node.results[each].name for each in taken}
            case Buffer():
                sums |= {each.name for each in node.results if taken}
            case Matmul():
                if any(each < 2 for each in taken):
                    return True
                sums |= {each.name for each in node.results if taken}
            case _:
                if taken:
                    return True
    return False


def _only_summed(loop: Loop, position: int) -> bool:
    """Whether a loop does nothing with a carry but add products to it."""
    last = loop.carries[position].name
    sums = {last}
    for node in loop.body:
        touched = [each.name for each in used(node) if each.name in sums]
        if not touched:
            continue
        if touched != [last]:
            return False
        if isinstance(node, Matmul) and last in (each.name for each in node.values[2:]):
            last = node.result.name
        elif isinstance(node, Loop) and last in (each.name for each in node.values):
            place = [each.name for each in node.values].index(last)
            if not _only_summed(node, place):
                return False
            last = node.results[place].name
        else:
            return False
        sums.add(last)
    return [each.name for each in loop.nexts if each.name in sums] == [last] and (
        loop.nexts[position].name == last
    )


def require_whole_lanes(program: Program) -> None:
    """Refuse a sum carried over blocks that split the products of a lane.

    Parameters
    ----------
    program : Program
        After `accumulate`, with all block sizes chosen.

    Raises
    ------
    ProgramError
        At a product of 8-bit floats that is carried over blocks of an odd number of terms.
    """
    for loop in walk(program.nodes):
        if not isinstance(loop, Loop) or trips(loop) < 2:
            continue
        carried = {value.name for value in loop.carries}
        for node in loop.body:
            if not isinstance(node, Matmul) or len(node.operands) < 3:
                continue
            left = node.values[0].type
            assert isinstance(left, TileType)
            terms = left.axis(0 if node.ta else 1).size
            each = left.format.products_per_cycle if left.format.is_float else 1
            if node.values[2].name in carried and isinstance(terms, int) and terms % each:
                raise ProgramError(
                    "shape",
                    f"`@` of {left.format.name} takes terms in groups of {each}: a sum is carried "
                    f"over blocks of a multiple of {each}, not {terms}",
                    node.span,
                    value=str(terms),
                )
