"""Product of matrices with computed operands, recognised in a program.

A computed operand is cut like a value that passes through memory: what remains is a product of
tensors, and what computes the operand is a region of element math. Here no memory holds its tensor.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from hw.arch.config import ChipConfig
from sw.array_spec import ArraySpec
from sw.gathers.row_gather import block_of
from sw.ir import nodes as ir
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.ir.types import Role, Space, Tensor, TensorType, View
from sw.language.program_error import ProgramError
from sw.parts.slices import Cut, cuts, reload, slice_of, with_nodes
from sw.passes.product_recognition import Product, stage
from sw.stages.region import Region, TilePart, region_of

__all__ = ["ComputedProduct", "GatheredRows", "Operand", "computed_product_of", "has_computed"]


@dataclasses.dataclass(frozen=True)
class GatheredRows:
    """Rows of a table, in the order of their numbers.

    Parameters
    ----------
    table, numbers : str
        Tensors of two axes and of one.
    table_rows : int
    """

    table: str
    numbers: str
    table_rows: int


@dataclasses.dataclass(frozen=True)
class Operand:
    """Computed operand of a product.

    Parameters
    ----------
    array : ArraySpec
        The operand as it would lie in memory.
    region : Region
        Element math whose result it is.
    gathered : mapping of str to GatheredRows
        Inputs of the region that are rows by number, by their tensor there.
    """

    array: ArraySpec
    region: Region
    gathered: Mapping[str, GatheredRows]


@dataclasses.dataclass(frozen=True)
class ComputedProduct:
    """A product with one or two computed operands, or one that is both.

    Parameters
    ----------
    product : Product
        The product of tensors. Those of computed operands are in no memory.
    operands : tuple of Operand
    """

    product: Product
    operands: tuple[Operand, ...]

    @property
    def loops(self) -> Mapping[str, str]:
        """Index of the loop over ``row``, ``column`` and ``sum``, for each that exists."""
        return self.product.loops

    def text(self) -> str:
        """The product, and the inputs of its operands, as lines of text."""
        lines = [self.product.text]
        for each in self.operands:
            for source in each.region.inputs.values():
                rows = each.gathered.get(source.tensor)
                name = f"rows of {rows.table} named by {rows.numbers}" if rows else source.tensor
                lines.append(f"{each.array.name}: {source.part.value} of {name}")
        return "\n".join(lines)


def has_computed(program: Program) -> bool:
    """Whether a program has one product, with a computed operand."""
    matmuls = [node for node in walk(program.nodes) if isinstance(node, ir.Matmul)]
    return len(matmuls) == 1 and bool(_computed(program, matmuls[0]))


def computed_product_of(program: Program, config: ChipConfig) -> ComputedProduct:
    """Recognise a program as a product of computed operands that are element math of tensors.

    Raises
    ------
    ProgramError
        At the first operation that is not part of such a program.
    """
    matmul = next(node for node in walk(program.nodes) if isinstance(node, ir.Matmul))
    possible = {each.value.name: each for each in cuts(program)}
    wanted = _computed(program, matmul)
    if any(name not in possible for name in wanted):
        message = "`@` of a computed tile without a place of its own is not supported by hardware"
        raise ProgramError("unserved", f"{message} yet", matmul.span)
    taken = [possible[name] for name in wanted]
    product = stage(reload(program, taken), config)
    if product.epilogue is not None:
        message = "Element math on a product of computed tiles is not supported by hardware yet"
        raise ProgramError("unserved", message, matmul.span)
    return ComputedProduct(product, tuple(_operand(program, each, matmul) for each in taken))


def _computed(program: Program, matmul: ir.Matmul) -> tuple[str, ...]:
    """Names of the computed operands, each once."""
    makers = {each.name: node for node in walk(program.nodes) for each in node.results}
    found = []
    for value in matmul.values[:2]:
        name, maker = value.name, makers.get(value.name)
        while isinstance(maker, ir.Buffer | ir.Transpose):
            name = maker.values[0].name
            maker = makers.get(name)
        if not isinstance(maker, ir.Load):
            found.append(name)
    return tuple(dict.fromkeys(found))


def _operand(program: Program, cut: Cut, matmul: ir.Matmul) -> Operand:
    own = slice_of(program, (), [cut])
    loaded, gathered = _without_gathers(own)
    region = region_of(loaded)
    parts = [each.part for each in region.inputs.values()]
    if region.reduces or any(each not in (TilePart.BLOCK, TilePart.ROW) for each in parts):
        message = (
            "`@` of a tile that needs statistics, or a vector along its rows, is not supported by "
            "hardware yet: element math of blocks, vectors along columns and rows by number is"
        )
        raise ProgramError("unserved", message, matmul.span)
    if any(each.tensor == cut.tensor.name for each in region.inputs.values()):
        message = "`@` of a constant tile that is not in memory is not supported by hardware yet"
        raise ProgramError("unserved", message, matmul.span)
    kind = cut.tensor.type
    return Operand(ArraySpec(cut.tensor.name, kind.shape, kind.format), region, gathered)


def _without_gathers(program: Program) -> tuple[Program, dict[str, GatheredRows]]:
    """A program that loads gathered rows, as if they lay in memory, and what they are."""
    loops = {node.index: node for node in walk(program.nodes) if isinstance(node, ir.Loop)}
    makers = {each.name: node for node in walk(program.nodes) for each in node.results}
    tensors: list[Tensor] = []
    gathered: dict[str, GatheredRows] = {}

    def load_of(node: ir.Gather) -> ir.Load:
        load = makers.get(node.values[0].name)
        while isinstance(load, ir.Buffer):
            load = makers.get(load.values[0].name)
        table = program.tensor(node.view.tensor).type
        if not isinstance(load, ir.Load):
            raise ProgramError("unserved", "Row numbers must come from memory", node.span)
        numbers = program.tensor(load.view.tensor).type
        if len(numbers.shape) != 1 or len(table.shape) != 2:
            message = "A gather of tensors of this many axes is not supported yet"
            raise ProgramError("unserved", message, node.span)
        rows, columns = node.view.entries
        if block_of(rows, table.shape[0], loops, node) is not None:
            message = "A gather takes rows of the whole table"
            raise ProgramError("unserved", message, node.span)
        name = f"{node.result.name} rows"
        dims = (numbers.dims[0], table.dims[1])
        tensors.append(Tensor(name, TensorType(dims, table.format, Space.MEMORY, Role.IN)))
        gathered[name] = GatheredRows(node.view.tensor, load.view.tensor, table.shape[0])
        view = View(name, (load.view.entries[0], columns))
        return ir.Load((), node.results, node.span, view)

    def block(nodes: tuple[ir.Node, ...]) -> Iterator[ir.Node]:
        for node in nodes:
            if isinstance(node, ir.Loop):
                node = node.replace(nodes=tuple(block(node.body)))
            yield load_of(node) if isinstance(node, ir.Gather) else node

    nodes = tuple(block(program.nodes))
    whole = dataclasses.replace(program, tensors=(*program.tensors, *tensors))
    return with_nodes(whole, nodes), gathered
