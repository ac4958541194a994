"""stage: pattern recognition of a matrix product, and of element math on its sums.

Loads, the product with its carried sum, the operations between it and the store, and the store are
recognised by their dataflow, whatever their order; everything else is refused at its line.
"""

from __future__ import annotations

import dataclasses
import functools

from hw.arch.config import ChipConfig
from hw.numeric.formats import Format
from hw.numeric.product_formats import result_formats
from sw.epilogue.epilogue import Epilogue
from sw.epilogue.epilogue_region import EpilogueRegion, backwards, unserved
from sw.epilogue.joined_epilogue import epilogues_of
from sw.ir import nodes as ir
from sw.ir.affine import Affine
from sw.ir.program import Program
from sw.ir.types import Entry, Span, TileType
from sw.language.program_error import ProgramError, refused
from sw.stages.region import Source, TilePart

__all__ = ["Product", "stage"]

#: How loops nest: rows of the result outermost, the sum innermost.
_ORDER = ("row", "column", "sum")


@dataclasses.dataclass(frozen=True)
class Product:
    """A matrix product C[m, n] = A[m, k] · B[k, n], with the program's names and hints.

    Parameters
    ----------
    kernel : str
    m, n, k : int
        Extents.
    fmt, b_fmt, out : Format
        Formats of A, of B, which has the same width, and of the result.
    a, b, c : str
        Tensors.
    a_tile, b_tile, product : str
        The program's names of the operands' tiles and of the product; empty for none.
    c_tiles : tuple of str
        Names of the stored tile, the last one first.
    loops : mapping of str to str
        Index of the loop over ``row``, ``column`` and ``sum``, for each that exists.
    tiles : mapping of str to int
        The program's hints for block sizes, by the same keys.
    row_par, col_par : int or None
        The program's hints for the units over which rows and columns are split.
    slots : int or None
        The program's hint for the slots of the buffer of C.
    span : Span or None
        Source position of the product.
    a_along_k, b_along_k : bool
        Whether the rows of an operand's tensor run along k: those of A[M, K] and B[N, K] do, those
        of A[K, M] and B[K, N] do not.
    turned : bool
        Whether rows of C in memory are columns of this product, which is that of the transposes,
        Cᵀ = Bᵀ·Aᵀ.
    epilogue : Epilogue or None
        Element math on the sums before they are stored.
    turned_epilogue : Epilogue or None
        The same behind the product of the transposes, if lanes compute it there.
    segments : int
        Segments of the sum that do not follow one another in memory (`sw.array_spec.Segments`).
    digits : (tuple of tuple of int, tuple of tuple of int)
        `sw.stages.segment_digits.digits_of` each tensor whose rows, or columns, lie in segments.
    """

    kernel: str
    m: int
    n: int
    k: int
    fmt: Format
    b_fmt: Format
    out: Format
    a: str
    b: str
    c: str
    a_tile: str
    b_tile: str
    product: str
    c_tiles: tuple[str, ...]
    loops: dict[str, str]
    tiles: dict[str, int]
    row_par: int | None
    col_par: int | None
    slots: int | None
    span: Span | None
    a_along_k: bool = True
    b_along_k: bool = False
    turned: bool = False
    epilogue: Epilogue | None = None
    turned_epilogue: Epilogue | None = None
    segments: int = 1
    digits: tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]] = ((), ())

    @property
    def adjacent(self) -> int:
        """Terms of a segment."""
        return self.k // self.segments

    @property
    def turns(self) -> bool:
        """Whether it may be computed as the product of the transposes."""
        return self.epilogue is None or self.turned_epilogue is not None

    def turn(self) -> Product:
        """The product of the transposes: same sums, with operands and axes of C exchanged."""
        return dataclasses.replace(
            self,
            m=self.n,
            n=self.m,
            fmt=self.b_fmt,
            b_fmt=self.fmt,
            a=self.b,
            b=self.a,
            a_tile=self.b_tile,
            b_tile=self.a_tile,
            a_along_k=self.b_along_k,
            b_along_k=self.a_along_k,
            turned=True,
            epilogue=self.turned_epilogue,
            turned_epilogue=None,
            digits=self.digits[::-1],
        )

    @property
    def text(self) -> str:
        """The product of the tensors as text."""
        return f"{self.c} = {self.a}{'.T' * (not self.a_along_k)} @ {self.b}{'.T' * self.b_along_k}"

    @functools.cached_property
    def narrowest(self) -> int:
        """Bits of the shortest element of the result, of tiles and, turned, of vectors beside."""
        formats = [self.out]
        if self.epilogue is not None:
            taken = self.epilogue.inputs if self.turned else self.epilogue.tiles
            formats += self.epilogue.formats(taken)
        return min(each.bits for each in formats)

    @property
    def operands(self) -> str:
        """Formats of A and B as text: one name, or two if they differ."""
        return " x ".join(dict.fromkeys((self.fmt.name, self.b_fmt.name)))


def stage(program: Program, config: ChipConfig) -> Product:
    """Recognise a program as a matrix product that a chip can compute.

    Raises
    ------
    ProgramError
        At the first operation that hardware does not support yet.
    """
    finder = _Finder(program)
    product, region = finder.product(), finder.epilogue
    _require_cells(product, config)
    if region is None:
        return product
    epilogue, turned = epilogues_of(region, (product.k, product.fmt, product.out), config)
    return dataclasses.replace(product, epilogue=epilogue, turned_epilogue=turned)


def _require_cells(product: Product, config: ChipConfig) -> None:
    """Refuse a product whose operands the cells of the chip do not multiply."""
    needed = dict.fromkeys((product.fmt, product.b_fmt))
    cells = config.pcu.operands
    if any(each not in cells for each in needed):
        needs, has = (" and ".join(each.name for each in some) for some in (needed, cells))
        raise ProgramError(
            "cells",
            f"`@` of {needs} needs cells of {needs}, and those of the chip have {has}: name its "
            "formats in `pcu.formats` of the configuration",
            product.span,
            value=needs,
        )


_Access = ir.Load | ir.Store


class _Finder:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._loops: list[ir.Loop] = []
        self._makers: dict[str, ir.Node] = {}
        self._carried: dict[str, tuple[ir.Loop, int]] = {}
        self._matmul: ir.Matmul | None = None
        self._store: ir.Store | None = None
        #: Set by `product`: the element math between product and store, if there is any.
        self.epilogue: EpilogueRegion | None = None
        self._visit(program.nodes)

    def _visit(self, nodes: tuple[ir.Node, ...]) -> None:
        for node in nodes:
            match node:
                case ir.Loop():
                    if node.mode != "metapipe":
                        raise refused(node, f"`{node.mode}` loop is not supported by hardware yet")
                    if node.until is not None:
                        rule = "`until` is not supported by hardware yet in a loop of a product"
                        raise refused(node, f"{rule}: multiply all blocks, of `tw.where` with 0.0")
                    if self._store is not None or any(
                        isinstance(each, ir.Loop) for each in nodes if each is not node
                    ):
                        raise refused(node, "A second loop is not supported by hardware yet")
                    self._loops.append(node)
                    for number, (carry, result) in enumerate(
                        zip(node.carries, node.results, strict=True)
                    ):
                        self._carried[carry.name] = (node, number)
                        self._carried[result.name] = (node, number)
                    self._visit(node.body)
                case ir.Matmul():
                    if self._matmul is not None:
                        raise refused(node, "A second product is not supported by hardware yet")
                    self._matmul = node
                case ir.Store():
                    if self._store is not None:
                        raise refused(node, "A second store is not supported by hardware yet")
                    self._store = node
                case ir.Load() | ir.Full() | ir.Cast() | ir.Buffer() | ir.Transpose() | ir.Map():
                    pass
                case _:
                    raise unserved(node, self._program)
            self._makers.update((each.name, node) for each in node.results)

    def product(self) -> Product:
        """Match the product; every operand, loop and store is checked."""
        matmul, store = self._matmul, self._store
        if store is None or matmul is None:
            node = next(iter(self._program.nodes), None)
            raise refused(node, "A kernel without a product is not supported by hardware yet")
        a_load, ta = self._operand(matmul, 0)
        b_load, tb = self._operand(matmul, 1)
        if matmul.sum_par not in (None, 1):
            raise refused(matmul, "`sum_par` is not supported by hardware yet")
        sums, nodes, loads = backwards(store, matmul, self._makers, self._carried)
        loops = self._roles((a_load, int(ta)), (b_load, int(not tb)), store)
        self._start(matmul, loops)
        a, b, c = (each.view.tensor for each in (a_load, b_load, store))
        types = [self._program.tensor(name).type for name in (a, b, c)]
        (m, n), k = types[2].shape, types[0].shape[0 if ta else 1]
        fmt, b_fmt, out = (each.format for each in types)
        plain = out in result_formats(fmt, b_fmt) and all(
            isinstance(node, ir.Buffer)
            or (isinstance(node, ir.Cast) and node.format in (out, fmt.accumulator))
            for node in nodes
        )
        if not plain:
            self._take_epilogue(store, sums, nodes, loads)
        buffers = [node for node in reversed(nodes) if isinstance(node, ir.Buffer)]
        slots = next((node.slots for node in buffers if node.slots is not None), None)
        values = (*(node.result for node in reversed(nodes)), sums, matmul.result)
        names = tuple(dict.fromkeys(each.variable for each in values if each.variable))
        return Product(
            kernel=self._program.name,
            m=m,
            n=n,
            k=k,
            fmt=fmt,
            b_fmt=b_fmt,
            out=out,
            a=a,
            b=b,
            c=c,
            a_tile=a_load.result.variable,
            b_tile=b_load.result.variable,
            product=matmul.result.variable,
            c_tiles=names,
            loops={role: loop.index for role, loop in loops.items()},
            tiles={role: loop.tile for role, loop in loops.items() if loop.tile is not None},
            row_par=matmul.row_par,
            col_par=matmul.col_par,
            slots=slots,
            span=matmul.span,
            a_along_k=not ta,
            b_along_k=tb,
        )

    def _operand(self, matmul: ir.Matmul, number: int) -> tuple[ir.Load, bool]:
        """Load of an operand, and whether its transpose is multiplied."""
        maker = self._makers.get(matmul.values[number].name)
        transposed = (matmul.ta, matmul.tb)[number]
        while isinstance(maker, ir.Buffer | ir.Transpose):
            transposed ^= isinstance(maker, ir.Transpose)
            maker = self._makers.get(maker.values[0].name)
        if not isinstance(maker, ir.Load):
            raise refused(matmul, "`@` of a computed tile is not supported by hardware yet")
        return maker, transposed

    def _take_epilogue(
        self,
        store: ir.Store,
        sums: ir.Value,
        nodes: tuple[ir.Node, ...],
        loads: dict[str, ir.Load],
    ) -> None:
        """Note the element math between the sums and the store."""
        inputs = {}
        for name, load in loads.items():
            kind = load.result.type
            assert isinstance(kind, TileType)
            inputs[name] = Source(load.view.tensor, self._part(load, store), kind)
        assert isinstance(sums.type, TileType)
        result = store.values[0].name
        self.epilogue = EpilogueRegion(sums.name, sums.type, inputs, nodes, result, store.span)

    def _part(self, load: ir.Load, store: ir.Store) -> TilePart:
        """Part of a tensor that a tile beside the sums is."""
        shape, sizes = (self._program.tensor(each.view.tensor).type.shape for each in (store, load))
        frame, found = (
            tuple(self._index(each, entry, axis) for axis, entry in enumerate(each.view.entries))
            for each in (store, load)
        )
        if sizes == shape and found == frame:
            return TilePart.BLOCK
        if sizes in ((shape[1],), (1, shape[1])) and found[-1] == frame[1]:
            return TilePart.ROW
        if sizes == (shape[0], 1) and shape[0] > 1 and found == (frame[0], None):
            return TilePart.COLUMN
        raise refused(
            load,
            f"`{load.view}` is not supported by hardware yet beside a result of {shape[0]} x "
            f"{shape[1]}: the part at the result's place and vectors along columns and rows are",
        )

    def _roles(
        self, a: tuple[_Access, int], b: tuple[_Access, int], store: ir.Store
    ) -> dict[str, ir.Loop]:
        """The loops over rows, columns and the sum, from the axes of A's rows and B's columns."""
        indices = {loop.index: loop for loop in self._loops}
        roles: dict[str, ir.Loop] = {}
        ends: dict[str, tuple[tuple[_Access, int], tuple[_Access, int]]] = {
            "row": (a, (store, 0)),
            "column": (b, (store, 1)),
            "sum": ((a[0], 1 - a[1]), (b[0], 1 - b[1])),
        }
        for role, (first, second) in ends.items():
            found = []
            for node, axis in (first, second):
                if (axes := len(node.view.entries)) != 2:
                    rule = f"two axes in a product, as a row `x[1, N]` has, not {axes}"
                    raise refused(node, f"`{node.view.tensor}` must have {rule}", str(axes))
                found.append(self._index(node, node.view.entries[axis], axis))
            if found[0] != found[1]:
                raise refused(
                    second[0],
                    f"`{second[0].view}` does not go with `{first[0].view}`: hardware supports "
                    "C[i, j] from row i of A, or of A.T, and column j of B, or of B.T, so far",
                )
            if found[0] is not None:
                roles[role] = indices[found[0]]
        nested = [loop.index for loop in self._loops]
        if nested != [roles[role].index for role in _ORDER if role in roles]:
            raise refused(
                self._loops[0],
                f"Loops in the order {', '.join(nested)} are not supported by hardware yet: rows "
                "of the result are outermost, the sum is innermost",
            )
        return roles

    def _index(self, node: _Access, entry: Entry, axis: int) -> str | None:
        """Index of the loop whose block an entry selects; None if it selects the whole axis."""
        size = self._program.tensor(node.view.tensor).type.shape[axis]
        for loop in self._loops:
            if entry.start == Affine.of(loop.index) and loop.extent == size:
                return loop.index
        if entry.start == Affine() and entry.axis is not None and entry.axis.size == size:
            return None
        raise refused(
            node, f"`{node.view}` is not supported by hardware yet: whole axes and blocks are"
        )

    def _start(self, matmul: ir.Matmul, loops: dict[str, ir.Loop]) -> None:
        """Check that the sum starts from zero and is carried only by the loop over the sum."""
        if len(matmul.operands) < 3:
            if "sum" in loops:
                raise refused(matmul, "`@` in the loop over its sum must add to a carried tile")
            return
        value = matmul.values[2]
        if value.name in self._carried:
            loop, number = self._carried[value.name]
            if loop is not loops.get("sum") or loop.nexts[number].name != matmul.result.name:
                raise refused(
                    matmul, "A sum carried by another loop is not supported by hardware yet"
                )
            value = loop.values[number]
        elif "sum" in loops:
            raise refused(matmul, "`@` in the loop over its sum must add to a carried tile")
        maker = self._makers.get(value.name)
        while isinstance(maker, ir.Cast):
            maker = self._makers.get(maker.values[0].name)
        if not isinstance(maker, ir.Full) or maker.value.value != 0:
            raise refused(matmul, "A sum that does not start from zeros is not supported yet")
