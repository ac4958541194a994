"""Region of element math: the loads, operations and stores of a kernel without products.

Its loops only say where blocks begin: every tile is the part of a tensor that the others have at
the same place, or a vector along one of its axes. So a pipeline may choose blocks of its own.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from enum import Enum

from hw.arch.descriptor import BASE_ALIGNMENT
from hw.numeric.formats import bf16, fp32
from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis
from sw.ir.format_rules import Format
from sw.ir.program import Program
from sw.ir.types import Entry, Role, TileType, Type
from sw.language.program_error import refused

__all__ = ["TilePart", "Region", "Source", "region_of"]


#: Vectors of a packet that have numbers of their own.
_NUMBERS = 1 << 16


class TilePart(Enum):
    """Part of a tensor that a tile of the region is."""

    #: The rows and columns of the region.
    BLOCK = "block"
    #: One row, the same for all rows of the region: a vector of one element per column.
    ROW = "row"
    #: One column, the same for all columns of the region: a vector of one element per row. Of a
    #: tensor of one element, every row has that one.
    COLUMN = "column"
    #: The columns and rows of the region.
    TURNED = "turned"


@dataclasses.dataclass(frozen=True)
class Source:
    """A loaded tile.

    Parameters
    ----------
    tensor : str
    part : TilePart
    type : TileType
    """

    tensor: str
    part: TilePart
    type: TileType


@dataclasses.dataclass(frozen=True)
class Region:
    """Element math on all of some tensors.

    Parameters
    ----------
    rows, columns : int
        Extents of its tiles.
    inputs : mapping of str to Source
        Loaded tiles by the name of the value.
    nodes : tuple of Node
        The operations, in order.
    outputs : mapping of str to str
        Tensor in which each stored value is stored.
    formats : mapping of str to Format
        Of every tensor.
    loops : mapping of str to str
        Index of the loop over ``row`` and ``column`` of the tiles, for each that exists.
    """

    rows: int
    columns: int
    inputs: Mapping[str, Source]
    nodes: tuple[ir.Node, ...]
    outputs: Mapping[str, str]
    formats: Mapping[str, Format]
    loops: Mapping[str, str]

    @property
    def reduces(self) -> frozenset[int]:
        """Axes of its reductions: 1 for statistics of rows, 0 for those of columns."""
        return frozenset(node.axis for node in self.nodes if isinstance(node, ir.Reduce))

    @property
    def whole(self) -> frozenset[int]:
        """Axes along which packets are whole: those of reductions, and of numbers.

        Numbers are those of vectors in their packet.
        """
        numbers = (node for node in self.nodes if isinstance(node, ir.Iota))
        counted = {each.axis for each in numbers if not (each.rows, each.cols)[each.axis].one}
        return self.reduces | counted

    def widened(self) -> Region | None:
        """The region whose tiles of bf16 are fp32 to the lanes; None if there are none."""
        wide = {
            name: dataclasses.replace(each, type=dataclasses.replace(each.type, format=fp32))
            for name, each in self.inputs.items()
            if each.part is TilePart.BLOCK and each.type.format == bf16
        }
        return dataclasses.replace(self, inputs={**self.inputs, **wide}) if wide else None


def region_of(program: Program) -> Region:
    """Recognise a program as element math on whole tensors.

    Raises
    ------
    ProgramError
        At the first node that is not part of such a program.
    """
    return _Finder(program).region()


class _Finder:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._loops: dict[str, ir.Loop] = {}
        self._loads: list[ir.Load] = []
        self._stores: list[ir.Store] = []
        self._nodes: list[ir.Node] = []
        self._visit(program.nodes)

    def _visit(self, nodes: tuple[ir.Node, ...]) -> None:
        for node in nodes:
            match node:
                case ir.Loop():
                    if node.mode != "metapipe" or node.until is not None:
                        updates = any(
                            each.type.role is Role.INOUT for each in self._program.tensors
                        )
                        way = ": `tw.repeat` runs iterations that need what others store"
                        rule = f"`{node.mode}` loop is not supported by hardware yet"
                        raise refused(node, rule + (way if updates else ""))
                    if node.carries:
                        rule = "A tile carried by a loop without a product is not supported yet"
                        raise refused(node, rule)
                    if self._stores or any(
                        isinstance(each, ir.Loop) for each in nodes if each is not node
                    ):
                        raise refused(node, "A second loop is not supported by hardware yet")
                    self._loops[node.index] = node
                    self._visit(node.body)
                case ir.Load():
                    self._loads.append(node)
                case ir.Store():
                    self._stores.append(node)
                case ir.Gather() | ir.Scatter() | ir.Take() | ir.Columns() | ir.Join():
                    name = node.kind
                    raise refused(node, f"`{name}` is not supported by hardware yet")
                case _:
                    self._nodes.append(node)

    def region(self) -> Region:
        if not self._stores:
            raise refused(None, "A kernel must store a tile")
        tensors = {each.name: each.type for each in self._program.tensors}
        # Others have one element per row or column of it.
        first = max(self._stores, key=lambda each: math.prod(self._shape(each)))
        frame, shape = self._frame(first)
        for store in self._stores:
            if store is not first and self._part(store, frame, shape) is TilePart.TURNED:
                raise refused(store, f"`{store.view}` beside a result that is not turned")
        inputs = {}
        for load in self._loads:
            kind = load.result.type
            assert isinstance(kind, TileType)
            part = self._part(load, frame, shape)
            if part is TilePart.COLUMN and kind.rows.one:
                kind = dataclasses.replace(kind, rows=self._rows(first, frame, shape))
            inputs[load.result.name] = Source(load.view.tensor, part, kind)
        for node in self._nodes:
            if isinstance(node, ir.Iota) and shape[node.axis] > _NUMBERS:
                rule = f"numbers of at most {_NUMBERS:,} vectors"
                raise refused(node, f"Lanes have {rule}, not {shape[node.axis]}")
        if not inputs:
            inputs = {f"{first.view.tensor}#before": self._before(first)}
        outputs: dict[str, str] = {}
        for store in self._stores:
            tensor = store.view.tensor
            value = self._computed(store, tensors[tensor].format)
            if value.name in inputs or value.name in outputs:
                # What is stored has a name of its own.
                kept = ir.Value(f"{value.name}#{tensor}", value.type)
                self._nodes.append(ir.Buffer((value,), (kept,), store.span))
                value = kept
            outputs[value.name] = tensor
        return Region(
            rows=shape[0],
            columns=shape[1],
            inputs=inputs,
            nodes=tuple(self._nodes),
            outputs=outputs,
            formats={name: each.format for name, each in tensors.items()},
            loops={
                role: index for role, index in zip(("row", "column"), frame) if index is not None
            },
        )

    def _before(self, store: ir.Store) -> Source:
        """The tile that a store overwrites: source of a result of no loaded tile, bits unused."""
        kind = store.values[0].type
        assert isinstance(kind, TileType)
        tensor = self._program.tensor(store.view.tensor)
        return Source(
            tensor.name, TilePart.BLOCK, dataclasses.replace(kind, format=tensor.type.format)
        )

    def _computed(self, store: ir.Store, form: Format) -> ir.Value:
        """The stored value, without a cast from fp32 to the tensor's format: the store rounds."""
        (value,) = store.values
        uses = {each.name for node in self._nodes for each in node.values}
        made = {each.name for node in self._nodes for each in node.results}
        stores = sum(each.values == store.values for each in self._stores)
        if not form.is_float or value.name in uses or stores > 1:
            return value
        for node in self._nodes:
            if isinstance(node, ir.Cast) and node.result == value and node.format == form:
                (source,) = node.values
                assert isinstance(source.type, TileType)
                if source.name in made and source.type.format == fp32:
                    self._nodes.remove(node)
                    return source
        return value

    def _rows(self, store: ir.Store, frame: tuple[str | None, ...], shape: tuple[int, int]) -> Axis:
        """Rows of the tiles of the region."""
        tiles: list[tuple[ir.Load | ir.Store, Type]] = [(store, store.values[0].type)]
        tiles += [(load, load.result.type) for load in self._loads]
        for node, kind in tiles:
            if isinstance(kind, TileType) and self._part(node, frame, shape) is TilePart.BLOCK:
                return kind.rows
        return Axis(shape[0])

    def _shape(self, node: ir.Load | ir.Store) -> tuple[int, ...]:
        """Shape of a node's tensor; one axis is a row."""
        shape = self._program.tensor(node.view.tensor).type.shape
        return (1, *shape) if len(shape) == 1 else shape

    def _frame(self, store: ir.Store) -> tuple[tuple[str | None, ...], tuple[int, int]]:
        """Loops over the rows and columns of the region, and its extents.

        A result of one column or row may be that of rows or columns: the tiles that are loaded have
        more.
        """
        frame, shape = self._selected(store), self._shape(store)
        if len(shape) != 2:
            raise refused(store, "A tensor of this many axes is not supported by hardware yet")
        for axis in (1, 0):
            for load in self._loads:
                wide = self._shape(load)
                same = len(wide) == 2 and wide[1 - axis] == shape[1 - axis]
                if shape[axis] == 1 and frame[axis] is None and same and wide[axis] > 1:
                    return self._selected(load), (wide[0], wide[1])
        return frame, (shape[0], shape[1])

    def _selected(self, node: ir.Load | ir.Store) -> tuple[str | None, ...]:
        """Index of the loop whose block each entry selects; None if it selects the whole axis."""
        entries, shape = node.view.entries, self._shape(node)
        found = [
            self._selects(node, each, size)
            for each, size in zip(entries, shape[len(shape) - len(entries) :], strict=True)
        ]
        return tuple([None] * (len(shape) - len(entries)) + found)

    def _selects(self, node: ir.Load | ir.Store, entry: Entry, size: int) -> str | None:
        for name, loop in self._loops.items():
            if entry.start == Affine.of(name) and loop.extent == size:
                return name
        if entry.start == Affine() and entry.axis is not None and entry.axis.size == size:
            return None
        last, bits = node.view.entries[-1], self._program.tensor(node.view.tensor).type.format.bits
        if last.start.constant * bits // 8 % BASE_ALIGNMENT:
            raise refused(
                node,
                f"Columns of `{node.view.tensor}` that are loaded or stored alone must begin at a "
                f"multiple of {BASE_ALIGNMENT * 8 // bits} ({BASE_ALIGNMENT} bytes), not at "
                f"{last.start}",
            )
        shifted = any(name in last.start.symbols for name in self._loops)
        way = "; blocks that are shifted, or of a part of an axis, may be rows, as of `u[N, 1]`"
        raise refused(
            node,
            f"`{node.view}` is not supported by hardware yet: whole axes and blocks are"
            f"{way if shifted else ''}",
        )

    def _part(
        self, load: ir.Load | ir.Store, frame: tuple[str | None, ...], shape: tuple[int, int]
    ) -> TilePart:
        sizes, found = self._shape(load), self._selected(load)
        turned = sizes == shape[::-1] and found == frame[::-1]
        if turned and self._is_transposed(load):
            return TilePart.TURNED
        if sizes == shape and found == frame:
            return TilePart.BLOCK
        if turned:
            return TilePart.TURNED
        if sizes == (1, shape[1]) and found == (None, frame[1]):
            return TilePart.ROW
        if sizes == (shape[0], 1) and found == (frame[0], None):
            return TilePart.COLUMN
        if sizes == (1, 1) and isinstance(load, ir.Load):
            return TilePart.COLUMN
        raise refused(
            load,
            f"`{load.view}` is not supported by hardware yet beside tiles of {shape[0]} x "
            f"{shape[1]}: the part at the same place and vectors along columns and rows are",
        )

    def _is_transposed(self, load: ir.Load | ir.Store) -> bool:
        """Whether a whole square, loaded, is transposed: its view does not tell."""
        users = [each for each in self._nodes if set(load.results) & set(each.values)]
        return any(isinstance(each, ir.Transpose) for each in users)
