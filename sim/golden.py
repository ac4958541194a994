"""Golden interpreter: bit-exact execution of the tile IR with the numpy model of the arithmetic.

It defines the meaning of a program: numpy on slices clipped to the tensors. It runs the program
after the pass that fixes the order of sums, so that RTL can equal it bit for bit.

Element math is that of the hardware units: :mod:`hw.numeric.elementwise`,
:mod:`hw.numeric.functions` and their :mod:`hw.numeric.compositions`. So golden equals the results
of the hardware, roundings and tables included; docs/numerics.md states their distance from exact
values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch import limits
from hw.arch.config import PcuConfig
from hw.arch.errors import BadInputError
from hw.numeric.elementwise import canonical
from hw.numeric.fused_softmax import rescaled, score_block, score_scale
from hw.numeric.reference import cast, matmul
from sim.row_numbers import rows_named, scatter_rows
from sw.ir import nodes as ir
from sw.ir.affine import Axis
from sw.ir.element_operations import OPERATIONS
from sw.ir.format_rules import Format, common, format_of, fp32, pred
from sw.ir.program import Program
from sw.ir.sizes import open_sizes
from sw.ir.tails import identity
from sw.ir.types import Role, TileType, View

__all__ = ["Interpreter", "golden"]

Array = npt.NDArray[Any]


def golden(
    program: Program,
    arrays: Mapping[str, npt.ArrayLike],
    *,
    poison: bool = False,
    function_bits: int = PcuConfig.function_bits,
) -> dict[str, Array]:
    """Run a program in the golden interpreter.

    Parameters
    ----------
    program : Program
        With all block sizes chosen.
    arrays : mapping of str to array
        Inputs, including those updated in place; they are not modified.
    poison : bool
        Compute on tiles of full size with NaN (integers: the largest number) in their tails,
        instead of clipped tiles. The result must not change. Before the pass `mask` every
        reduction hides the tails; after it, only the inserted masks do.
    function_bits : int
        Significand bits of exp2, exp, reciprocal and rsqrt (`limits.FUNCTION_BITS`), as in the
        configuration of the chip.

    Returns
    -------
    dict of str to array
        Outputs, including tensors updated in place.

    Raises
    ------
    BadInputError
        If a block size is not chosen, an array is missing or does not fit, the function bits are
        out of their range, or a node kind is not supported by golden yet.
    """
    limits.FUNCTION_BITS.require("Function bits", function_bits)
    if left := open_sizes(program):
        raise BadInputError(f"Block size of loop {left[0]} must be chosen before golden runs")
    memory: dict[str, Array] = {}
    for tensor in program.tensors:
        type_ = tensor.type
        if type_.role in (Role.OUT, Role.LOCAL):
            memory[tensor.name] = np.zeros(type_.shape, type_.format.dtype)
            continue
        if tensor.name not in arrays:
            raise BadInputError(f"Array `{tensor.name}` must be given")
        array = np.asarray(arrays[tensor.name])
        if array.shape != type_.shape or array.dtype != type_.format.dtype:
            raise BadInputError(
                f"Array `{tensor.name}` must be {type_.format.name} of {type_.shape}, not "
                f"{array.dtype} of {array.shape}"
            )
        memory[tensor.name] = array.copy()
    masks = "mask" in program.passes
    if poison:
        interpreter: Interpreter = _Poisoned(memory, function_bits, masks)
    else:
        interpreter = Interpreter(memory, function_bits)
    with np.errstate(all="ignore"):
        interpreter.run(program.nodes)
    roles = {each.name: each.type.role for each in program.tensors}
    stored = (Role.OUT, Role.INOUT)
    return {name: array for name, array in memory.items() if roles[name] in stored}


def _canonical(array: Array) -> Array:
    return canonical(array) if array.dtype == fp32.dtype else array


def _convert(array: Array, format_: Format) -> Array:
    """Round, saturate or widen to a format; the same format is copied bit by bit, NaN included."""
    return array if array.dtype == format_.dtype else cast(array, format_)


class Interpreter:
    """Interpreter on tiles clipped to their extents.

    Parameters
    ----------
    memory : dict of str to array
        Tensors, which stores modify.
    function_bits : int
        As of :func:`golden`.
    """

    def __init__(
        self, memory: dict[str, Array], function_bits: int = PcuConfig.function_bits
    ) -> None:
        self.memory = memory
        self.function_bits = function_bits
        self.index: dict[str, int] = {}
        self.values: dict[str, Any] = {}

    def run(self, nodes: tuple[ir.Node, ...]) -> None:
        for node in nodes:
            if isinstance(node, ir.Loop):
                self.loop(node)
                continue
            for value, array in zip(node.results, self.results(node)):
                self.values[value.name] = self.settle(array, value, node)

    def settle(self, array: Any, value: ir.Value, node: ir.Node) -> Any:
        """Return a result in the form in which it is kept."""
        return array

    def loop(self, node: ir.Loop) -> None:
        carried = [self.operand(each) for each in node.operands]
        end = node.extent
        if node.until is not None:
            end = min(end, node.until.evaluate(self.index))
        for start in range(0, end, (node.tile or 1) if node.blocks else 1):
            self.index[node.index] = start
            self.values.update(zip((each.name for each in node.carries), carried))
            self.run(node.body)
            carried = [self.operand(each) for each in node.nexts]
        self.index.pop(node.index, None)
        self.values.update(zip((each.name for each in node.results), carried))

    def operand(self, operand: ir.Operand) -> Any:
        return operand.value if isinstance(operand, ir.Constant) else self.values[operand.name]

    def room(self, axis: Axis) -> int:
        """Return the number of elements to compute along an axis."""
        return axis.extent(self.index)

    def box(self, view: View) -> tuple[slice | int, ...]:
        """Return the part of a tensor that a view covers."""
        found: list[slice | int] = []
        for entry in view.entries:
            start = entry.start.evaluate(self.index)
            length = None if entry.axis is None else entry.axis.extent(self.index)
            found.append(start if length is None else slice(start, start + length))
        return tuple(found)

    def masked(
        self, operand: ir.Operand, axis: int, number: float, *, asked: bool = False
    ) -> Array:
        """Return an operand with its tail along an axis set to a number."""
        found: Array = self.operand(operand)
        return found

    def load(self, view: View, type_: TileType) -> Array:
        """Return a view of a tensor as a matrix."""
        part = self.memory[view.tensor][self.box(view)]
        return part.reshape(type_.rows.extent(self.index), type_.cols.extent(self.index))

    def stored(self, value: ir.Value) -> Array:
        """Return the part of a tile that is stored."""
        array: Array = self.operand(value)
        return array

    def results(self, node: ir.Node) -> tuple[Any, ...]:
        match node:
            case ir.Load():
                assert isinstance(node.result.type, TileType)
                return (self.load(node.view, node.result.type).copy(),)
            case ir.Store():
                self.store(node)
                return ()
            case ir.Matmul():
                return (self.matmul(node),)
            case ir.Map():
                return (self.map(node),)
            case ir.Reduce():
                return (self.reduce(node),)
            case ir.Full():
                shape = (self.room(node.rows), self.room(node.cols))
                return (np.full(shape, node.value.value).astype(node.format.dtype),)
            case ir.Iota():
                shape = (self.room(node.rows), self.room(node.cols))
                numbers = np.arange(shape[node.axis], dtype=np.int32)
                numbers = numbers + np.int32(node.start.evaluate(self.index))
                column = numbers[:, np.newaxis] if node.axis == 0 else numbers
                return (np.broadcast_to(column, shape).copy(),)
            case ir.Cast():
                return (_convert(self.operand(node.operands[0]), node.format),)
            case ir.Transpose():
                return (self.operand(node.operands[0]).T.copy(),)
            case ir.Columns():
                first = node.first.evaluate(self.index)
                return (self.operand(node.operands[0])[:, first : first + node.count],)
            case ir.Join():
                return (np.concatenate([self.operand(each) for each in node.operands], axis=1),)
            case ir.Gather() | ir.Take():
                return (self.gather(node),)
            case ir.Scatter():
                self.scatter(node)
                return ()
            case ir.Mask():
                return (self.masked(node.operands[0], node.axis, node.identity.value, asked=True),)
            case ir.Buffer():
                return (self.operand(node.operands[0]),)
            case ir.Powers():
                return self.powers(node)
            case ir.Rescale():
                sums, rises = (self.operand(each) for each in node.operands)
                return (rescaled(sums, rises),)
        raise BadInputError(f"Golden does not know `{node.kind}` yet")

    def store(self, node: ir.Store) -> None:
        target = self.memory[node.view.tensor]
        array = self.stored(node.values[0])
        box = self.box(node.view)
        target[box] = _convert(array, format_of(target.dtype)).reshape(target[box].shape)

    def gather(self, node: ir.Gather | ir.Take) -> Array:
        if isinstance(node, ir.Take):
            table = self.operand(node.operands[0])
        else:
            rows, cols = node.view.axes
            table = self.load(node.view, TileType(rows, cols, _format(node.result)))
        rows_taken, inside = self.named_rows(node, self.operand(node.values[-1]))
        found: Array = table[rows_taken]
        found[~inside] = 0
        return found

    def scatter(self, node: ir.Scatter) -> None:
        numbers, rows = (self.stored(each) for each in node.values[:2])
        table = self.memory[node.view.tensor][self.box(node.view)]
        scatter_rows(node, numbers, ((table, _convert(rows, format_of(table.dtype))),))

    def named_rows(self, node: ir.Gather | ir.Take, numbers: Array) -> tuple[Array, Array]:
        """Return the row that each row number names, as `sim.row_numbers.rows_named`."""
        types = [each.type for each in (*node.values[:1], node.result)]
        table, taken = (each for each in types if isinstance(each, TileType))
        rows = node.view.axes[0] if isinstance(node, ir.Gather) else table.rows
        count, limit = taken.rows.extent(self.index), rows.extent(self.index)
        return rows_named(node, numbers, count, limit)

    def matmul(self, node: ir.Matmul) -> Array:
        a = self.masked(node.operands[0], 0 if node.ta else 1, 0)
        b = self.masked(node.operands[1], 1 if node.tb else 0, 0)
        start = self.operand(node.operands[2]) if len(node.operands) == 3 else None
        return matmul(a.T if node.ta else a, b.T if node.tb else b, start)

    def map(self, node: ir.Map) -> Array:
        condition = None
        numbers = list(node.operands)
        operation = node.operation
        assert operation is not None
        if operation.chooses:
            condition = self.operand(numbers.pop(0))
        formats = [_format(each) for each in numbers if isinstance(each, ir.Value)]
        assert isinstance(node.result.type, TileType)
        kind = node.result.type.format
        if kind == pred:
            real = any(
                isinstance(each, ir.Constant) and isinstance(each.value, float) for each in numbers
            )
            kind = common(*formats, *((fp32,) if real else ())) or fp32
        arrays = [np.asarray(self.operand(each)).astype(kind.dtype) for each in numbers]
        if condition is not None:
            arrays.insert(0, condition)
        return _canonical(operation.arithmetic(kind, self.function_bits)(*arrays))

    def powers(self, node: ir.Powers) -> tuple[Any, ...]:
        scores = self.masked(node.operands[0], 1, -np.inf)
        old, factor = self.operand(node.operands[1]), score_scale(node.scale)
        maxima, found = score_block(scores.T, old[:, 0], factor, self.function_bits)
        rises = found.rises.astype(np.int32)
        return maxima[:, np.newaxis], rises[:, np.newaxis], found.powers.T

    def reduce(self, node: ir.Reduce) -> Array:
        format_ = _format(node.values[0])
        number = identity(node.op, format_).value
        wide = _format(node.result)
        array = self.masked(node.operands[0], node.axis, number).astype(wide.dtype)
        name = "add" if node.op == "sum" else node.op
        operation = OPERATIONS[name].arithmetic(wide, self.function_bits)
        # Sequential, in ascending order: numpy's own sums are pairwise.
        terms = np.moveaxis(array, node.axis, 0)
        total = np.full(terms.shape[1:], number).astype(wide.dtype)
        for term in terms:
            total = operation(total, term)
        return _canonical(np.expand_dims(total, node.axis))


def _format(value: ir.Value) -> Format:
    assert isinstance(value.type, TileType)
    return value.type.format


#: Kinds whose tails are known after the pass `mask` (`sw.ir.tails`).
_MOVES = (ir.Load, ir.Full, ir.Buffer, ir.Transpose, ir.Mask, ir.Cast, ir.Powers)


class _Poisoned(Interpreter):
    """Interpreter on tiles of full size, with poisoned tails.

    Parameters
    ----------
    memory, function_bits
        As of :class:`Interpreter`.
    masks : bool
        Whether the program has masks. Loads then read the tensor, and zeros beyond it, instead of
        poison.
    """

    def __init__(self, memory: dict[str, Array], function_bits: int, masks: bool) -> None:
        super().__init__(memory, function_bits)
        self._masks = masks

    def _extents(self, value: ir.Value) -> tuple[int, int]:
        assert isinstance(value.type, TileType)
        return value.type.rows.extent(self.index), value.type.cols.extent(self.index)

    def room(self, axis: Axis) -> int:
        return axis.room(self.index)

    def settle(self, array: Any, value: ir.Value, node: ir.Node) -> Any:
        moves = isinstance(node, _MOVES)
        if not isinstance(value.type, TileType) or (self._masks and moves):
            return array
        rows, cols = self._extents(value)
        kept = _poison(array.shape, array.dtype)
        kept[: min(rows, len(array)), :cols] = array[:rows, :cols]
        return kept

    def load(self, view: View, type_: TileType) -> Array:
        shape = (self.room(type_.rows), self.room(type_.cols))
        tensor = self.memory[view.tensor]
        if not self._masks:
            part = super().load(view, type_)
            array = _poison(shape, tensor.dtype)
        else:
            box = []
            for entry in view.entries:
                start = entry.start.evaluate(self.index)
                room = 1 if entry.axis is None else self.room(entry.axis)
                box.append(slice(start, start + room))
            part = tensor[tuple(box)]
            kept = [n for n, entry in enumerate(view.entries) if entry.axis is not None]
            sizes = [1] * (2 - len(kept)) + [part.shape[n] for n in kept]
            part = part.reshape(sizes)
            array = np.zeros(shape, tensor.dtype)
        array[: part.shape[0], : part.shape[1]] = part
        return array

    def masked(
        self, operand: ir.Operand, axis: int, number: float, *, asked: bool = False
    ) -> Array:
        array = super().masked(operand, axis, number)
        if (self._masks and not asked) or not isinstance(operand, ir.Value):
            return array
        extent = self._extents(operand)[axis]
        array = array.copy()
        np.moveaxis(array, axis, 0)[extent:] = number
        return array

    def stored(self, value: ir.Value) -> Array:
        rows, cols = self._extents(value)
        array: Array = self.operand(value)[:rows, :cols]
        return array


def _poison(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    worst = np.iinfo(dtype).max if dtype.kind == "i" else np.nan
    return np.full(shape, worst).astype(dtype)
