"""accumulate: fuse a product and the tile it is added to; the tile becomes the initial sum.

``x + a @ b`` is one sum: x, then the terms of the product in ascending order, with one rounding
per term. The accumulators add in this order, so the result is independent of the tile size: a sum
carried over blocks of k equals the sum over all of k bit for bit. The pass runs before anything
else is moved, and the golden interpreter runs the program after it.

Terms of 8-bit floats are added in pairs, so blocks of such a carried sum must be even.
"""

from __future__ import annotations

from collections import Counter

from sw.ir.nodes import Loop, Map, Matmul, Node, Value
from sw.ir.program import Program
from sw.ir.rewrite import used, walk
from sw.ir.sizes import trips
from sw.ir.types import TileType
from sw.ir.verify import verify
from sw.language.errors import ProgramError

__all__ = ["accumulate", "require_whole_lanes"]


def accumulate(program: Program) -> Program:
    """Fuse each product with the addition that is its only use, where shapes agree."""
    uses = Counter(value.name for node in program.nodes for value in used(node))
    return verify(program.after("accumulate", _block(program.nodes, uses)))


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
