"""Element math between the sums of a product and a stored tile, found from the store backwards."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from sw.ir import nodes as ir
from sw.ir.program import Program
from sw.ir.types import Span, TileType
from sw.lane_codes.lane_region import LANE_FORMATS
from sw.language.program_error import ProgramError, refused
from sw.stages.region import Source

__all__ = ["EpilogueRegion", "backwards", "unserved"]


@dataclasses.dataclass(frozen=True)
class EpilogueRegion:
    """Element math between the sums of a product and a stored tile.

    Parameters
    ----------
    sums : str
        Value of the product.
    type : TileType
        Of the sums.
    inputs : mapping of str to Source
        Tiles beside the sums, by the name of the value.
    nodes : tuple of Node
        The operations, in order.
    result : str
        The stored value.
    span : Span or None
        Source position of the store.
    """

    sums: str
    type: TileType
    inputs: Mapping[str, Source]
    nodes: tuple[ir.Node, ...]
    result: str
    span: Span | None


def backwards(
    store: ir.Store,
    matmul: ir.Matmul,
    makers: Mapping[str, ir.Node],
    carried: Mapping[str, tuple[ir.Loop, int]],
) -> tuple[ir.Value, tuple[ir.Node, ...], dict[str, ir.Load]]:
    """The sums, the nodes between them and the stored tile in order, and the tiles beside them.

    Parameters
    ----------
    store : Store
    matmul : Matmul
    makers : mapping of str to Node
        The node that makes each value.
    carried : mapping of str to (Loop, int)
        Loop that carries each value, and the number of the value there.

    Raises
    ------
    ProgramError
        If the stored tile does not come from the product by element math.
    """
    sums, wanted = None, [store.values[0]]
    between: set[str] = set()
    loads: dict[str, ir.Load] = {}
    refusal = ProgramError("unserved", "Only a product can be stored by hardware yet", store.span)
    while wanted:
        value = wanted.pop()
        maker = makers.get(value.name)
        if value.name in carried:
            loop, number = carried[value.name]
            if loop.nexts[number].name != matmul.result.name:
                raise refusal
            sums = value
        elif maker is matmul:
            sums = value
        elif isinstance(maker, ir.Load):
            loads[value.name] = maker
        elif isinstance(maker, ir.Map | ir.Cast | ir.Buffer | ir.Full):
            between.add(value.name)
            wanted += maker.values
        else:
            raise refusal
    if sums is None:
        raise refusal
    return sums, tuple(node for name, node in makers.items() if name in between), loads


def unserved(node: ir.Node, program: Program) -> ProgramError:
    """The refusal of an operation beside a product; a format of its tensors may be the reason."""
    name = str(getattr(node, node.SUFFIX) if node.SUFFIX else node.kind)
    if isinstance(node, ir.Iota):
        name = ("row_index", "col_index")[node.axis]
    why = "beside a product: element math on its sums is"
    for each in program.tensors:
        if each.type.format not in LANE_FORMATS:
            why = f"for tensors of {each.type.format.name} beside a product, as `{each.name}` is"
            break
    return refused(
        node, f"`{name}` is not supported by hardware yet {why}; back end golden computes it", name
    )
