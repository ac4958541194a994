"""Forward error analysis: bounds of golden's distance from exact arithmetic, element by element.

A program is interpreted in float64, each number with a bound of the error that golden's number has
at this place. An operation passes on the errors of its operands, and adds its own rounding, which
docs/numerics.md states for each. So every program has a bound, derived from its text alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.config import PcuConfig
from hw.arch.errors import BadInputError
from hw.numeric.formats import Format, fp32
from sim.golden import Interpreter
from sim.row_numbers import scatter_rows
from sim.run.operation_errors import EXACT, PROPAGATED, Estimate, applied_estimate, own_error
from sim.run.softmax_errors import powers_estimate, rescaled_estimate
from sw.ir import nodes as ir
from sw.ir.format_rules import pred, widens
from sw.ir.program import Program
from sw.ir.types import Role, TileType, View

__all__ = ["error_bounds"]

Array = npt.NDArray[Any]

_UNIT_ROUNDOFF = 2.0**-24
_INT32 = np.iinfo(np.int32)
_SMALLEST_SUBNORMAL = 2.0**-149


def error_bounds(
    program: Program,
    arrays: Mapping[str, Array],
    function_bits: int = PcuConfig.function_bits,
) -> dict[str, Array]:
    """Bound of golden's error of every element of the outputs; infinite where there is none.

    There is none where an operand is not finite (but for infinities that only pass, as those that
    `exp` takes to zero), where a sum, product or cast may overflow, where integers may wrap or be
    saturated, and where the error decides a comparison or reaches a pole.

    Parameters
    ----------
    program : Program
        The program that golden interprets, with all block sizes chosen.
    arrays : mapping of str to array
        Inputs by name.
    function_bits : int
        Significand bits of exp2, exp, reciprocal and rsqrt.

    Returns
    -------
    dict of str to float64 array
        By output.
    """
    with np.errstate(all="ignore"):
        memory = {
            tensor.name: arrays[tensor.name].astype(np.float64)
            if tensor.name in arrays
            else np.zeros(tensor.type.shape)
            for tensor in program.tensors
        }
        formats = {tensor.name: tensor.type.format for tensor in program.tensors}
        analysis = _Analysis(memory, formats, function_bits)
        analysis.run(program.nodes)
    roles = {tensor.name: tensor.type.role for tensor in program.tensors}
    stored = (Role.OUT, Role.INOUT)
    return {name: each for name, each in analysis.errors.items() if roles[name] in stored}


class _Analysis(Interpreter):
    """Interpreter whose values are an `Estimate` each.

    Parameters
    ----------
    memory : dict of str to array
        Exact contents of the tensors in float64.
    formats : mapping of str to Format
        Formats of the tensors.
    function_bits : int
    """

    def __init__(
        self, memory: dict[str, Array], formats: Mapping[str, Format], function_bits: int
    ) -> None:
        super().__init__(memory, function_bits)
        self.errors = {
            name: np.where(np.isnan(array), np.inf, 0.0) for name, array in memory.items()
        }
        self._formats = formats

    def results(self, node: ir.Node) -> tuple[Any, ...]:
        match node:
            case ir.Load():
                return (self._loaded(node.view, _type(node.result)),)
            case ir.Store():
                self.store(node)
                return ()
            case ir.Matmul():
                return (self._product(node),)
            case ir.Map():
                return (self._mapped(node),)
            case ir.Reduce():
                return (self._reduced(node),)
            case ir.Full():
                shape = (self.room(node.rows), self.room(node.cols))
                filled = _constant(node.value.value, node.format)
                return (Estimate(*(np.full(shape, each) for each in filled)),)
            case ir.Iota():
                (numbers,) = super().results(node)
                return (Estimate(numbers.astype(np.float64), np.zeros(numbers.shape)),)
            case ir.Cast():
                return (_cast(self.operand(node.operands[0]), node.values[0], node.format),)
            case ir.Buffer() | ir.Mask():
                return (self.operand(node.operands[0]),)
            case ir.Powers():
                scores, old = (self.operand(each) for each in node.operands)
                return powers_estimate(scores, old, node.scale, self.function_bits)
            case ir.Rescale():
                return (rescaled_estimate(*(self.operand(each) for each in node.operands)),)
            case ir.Transpose():
                x = self.operand(node.operands[0])
                return (Estimate(x.exact.T, x.error.T),)
            case ir.Columns():
                first = node.first.evaluate(self.index)
                x = self.operand(node.operands[0])
                return (Estimate(*(each[:, first : first + node.count] for each in x)),)
            case ir.Join():
                tiles = [self.operand(each) for each in node.operands]
                return (Estimate(*(np.concatenate(each, axis=1) for each in zip(*tiles))),)
            case ir.Gather() | ir.Take():
                return (self._gathered(node),)
            case ir.Scatter():
                self.scatter(node)
                return ()
        raise BadInputError(f"Error analysis does not know `{node.kind}` yet")

    def _loaded(self, view: View, type_: TileType) -> Estimate:
        shape = (type_.rows.extent(self.index), type_.cols.extent(self.index))
        box = self.box(view)
        parts = (each[view.tensor][box] for each in (self.memory, self.errors))
        return Estimate(*(part.reshape(shape).copy() for part in parts))

    def _gathered(self, node: ir.Gather | ir.Take) -> Estimate:
        if isinstance(node, ir.Take):
            table = self.operand(node.operands[0])
        else:
            rows, cols = node.view.axes
            table = self._loaded(node.view, TileType(rows, cols, self._formats[node.view.tensor]))
        numbers = self.operand(node.values[-1]).exact.astype(np.int64)
        named, _ = self.named_rows(node, numbers)
        return Estimate(table.exact[named], table.error[named])

    def store(self, node: ir.Store) -> None:
        name, box = node.view.tensor, self.box(node.view)
        written = _cast(self.operand(node.values[0]), node.values[0], self._formats[name])
        for target, part in zip((self.memory[name], self.errors[name]), written, strict=True):
            target[box] = part.reshape(target[box].shape)

    def scatter(self, node: ir.Scatter) -> None:
        name = node.view.tensor
        numbers = self.operand(node.operands[0]).exact.astype(np.int64)
        written = _cast(self.operand(node.operands[1]), node.values[1], self._formats[name])
        box = self.box(node.view)
        tables = (each[name][box] for each in (self.memory, self.errors))
        scatter_rows(node, numbers, zip(tables, written, strict=True))
        if node.op == "add":
            table, error = (each[name][box] for each in (self.memory, self.errors))
            error[~((table >= _INT32.min) & (table <= _INT32.max))] = np.inf

    def _product(self, node: ir.Matmul) -> Estimate:
        a, b = (self.operand(each) for each in node.operands[:2])
        a = Estimate(a.exact.T, a.error.T) if node.ta else a
        b = Estimate(b.exact.T, b.error.T) if node.tb else b
        start = Estimate(np.zeros(()), np.zeros(()))
        if len(node.operands) == 3:
            start = self.operand(node.operands[2])
        left, right = np.abs(a.exact), np.abs(b.exact)
        passed = start.error
        if a.error.any() or b.error.any():
            passed = passed + left @ b.error + a.error @ (right + b.error)
        magnitude = np.abs(start.exact) + left @ right + passed
        return _summed(
            a.exact @ b.exact + start.exact, passed, magnitude, a.exact.shape[1], _format(node)
        )

    def _reduced(self, node: ir.Reduce) -> Estimate:
        x = self.operand(node.operands[0])
        if node.op == "sum":
            exact, passed = (each.sum(axis=node.axis, keepdims=True) for each in x)
            magnitude = (np.abs(x.exact) + x.error).sum(axis=node.axis, keepdims=True)
            return _summed(exact, passed, magnitude, x.exact.shape[node.axis], _format(node))
        extreme = np.max if node.op == "max" else np.min
        return Estimate(
            extreme(x.exact, axis=node.axis, keepdims=True),
            x.error.max(axis=node.axis, keepdims=True),
        )

    def _mapped(self, node: ir.Map) -> Estimate:
        format_ = _format(node)
        given = [
            _constant(each.value, fp32 if isinstance(each.value, float) else format_)
            if isinstance(each, ir.Constant)
            else self.operand(each)
            for each in node.operands
        ]
        if node.function is not None:
            return applied_estimate(node.function, *given)
        exact = EXACT[node.op](*(each.exact for each in given))
        passed = PROPAGATED[node.op](exact, *given)
        if format_ == pred:
            return Estimate(exact, passed)
        error = passed
        if format_.is_float:
            error = passed + own_error(node.op, np.abs(exact) + passed, given, self.function_bits)
        error = _within(np.abs(exact), error, format_)
        return Estimate(exact, np.where(_sure_infinity(node.op, exact, given), 0, error))


def _sure_infinity(name: str, exact: Array, given: Sequence[Estimate]) -> Array:
    """Where the result is an infinity in golden too, as an operand is; else it may overflow."""
    if name not in ("add", "sub", "neg", "abs", "max", "min", "where"):
        return np.zeros((), np.bool_)
    numbers, conditions = given[-2:], given[:-2]
    passes: Array = np.zeros((), np.bool_)
    known = np.isinf(exact)
    for each in numbers:
        passes = passes | (np.isinf(each.exact) & (each.error == 0))
        known = known & np.isfinite(each.error)
    for each in conditions:
        known = known & (each.error == 0)
    return known & passes


def _type(value: ir.Value) -> TileType:
    assert isinstance(value.type, TileType)
    return value.type


def _format(node: ir.Node) -> Format:
    return _type(node.result).format


def _constant(number: float, format_: Format) -> Estimate:
    """A number of the program and its rounding to a format."""
    exact = np.asarray(number, np.float64)
    error = np.zeros(())
    if format_.is_float and np.isfinite(exact):
        error = np.abs(exact - exact.astype(format_.dtype).astype(np.float64))
    return Estimate(exact, error)


def _within(magnitude: Array, error: Array, format_: Format) -> Array:
    """Errors; infinite where the number may leave the range of its format."""
    if format_.is_float:
        largest = float(format_.from_bits(format_.largest).astype(np.float64))
    else:
        largest = 2.0 ** (format_.bits - 1) - 1
    return np.where(magnitude + error <= largest, error, np.inf)


def _summed(exact: Array, passed: Array, magnitude: Array, terms: int, format_: Format) -> Estimate:
    """Sum of so many terms, one rounding each; `hw.numeric.reference.error_bound` derives it."""
    if not format_.is_float:
        return Estimate(exact, _within(magnitude, passed, format_))
    gamma = terms * _UNIT_ROUNDOFF / (1 - terms * _UNIT_ROUNDOFF)
    gamma_reference = (terms + 1) * 2.0**-53 / (1 - (terms + 1) * 2.0**-53)
    magnitude = magnitude * (1 + gamma_reference)
    rounding = gamma * magnitude + terms * _SMALLEST_SUBNORMAL / 2 * (1 + gamma)
    rounding = _within(magnitude, rounding, format_) + gamma_reference * magnitude
    return Estimate(exact, passed + rounding)


def _cast(x: Estimate, value: ir.Value, target: Format) -> Estimate:
    """Estimate after the conversion of a value to a format."""
    source = _type(value).format
    if widens(source, target):
        return x
    magnitude, error = np.abs(x.exact), x.error
    if target.is_float:
        smallest = 2.0 ** (1 - target.bias - target.fraction_bits)
        half = 2.0**-target.significand_bits * (magnitude + error)
        error = error + np.maximum(half, smallest / 2)
    whole = source.is_float and not target.is_float
    error = _within(magnitude, error, target)
    # Golden rounds to a whole number, and the author may.
    return Estimate(x.exact, error + 1.0 if whole else error)
