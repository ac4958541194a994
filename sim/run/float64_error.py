"""Comparison of golden with the float64 reference: errors and error bound."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.numeric.formats import Format, fp32
from sim.golden import Interpreter
from sw.array_spec import ArraySpec
from sw.ir.format_rules import widens
from sw.ir.nodes import Buffer, Cast, Full, Load, Loop, Map, Matmul, Node, Store, Transpose
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.ir.types import Role, Span, TileType
from sw.language import Kernel, ProgramError

__all__ = ["Errors", "compare_with_reference"]

Array = npt.NDArray[Any]

_UNIT_ROUNDOFF = 2.0**-24
_SMALLEST_SUBNORMAL = 2.0**-149


@dataclasses.dataclass(frozen=True)
class Errors:
    """Errors of golden against the reference; None for unavailable figures.

    Members
    -------
    bound, absolute : float or None
        Largest bound and largest error among the elements with a bound: those without non-finite
        operands or possible overflow. None if there is no such element; the bound also if none is
        known for the kernel.
    of_bound : float or None
        Largest ratio of an element's error to its bound.
    relative : float or None
        Largest error relative to the largest value of its output.
    within : bool or None
        Whether every such element is within its bound. None without a reference, or if no bound
        is known for the kernel.
    """

    bound: float | None = None
    absolute: float | None = None
    of_bound: float | None = None
    relative: float | None = None
    within: bool | None = None


def compare_with_reference(
    kernel: Kernel,
    program: Program,
    inputs: Mapping[str, Array],
    golden: Mapping[str, Array],
    outputs: tuple[ArraySpec, ...],
) -> Errors:
    """Compare golden with the kernel's reference, if it has one.

    The bound is that of a sum of products, each added with one rounding to fp32, with a final
    rounding to the format stored. The reference is called once, on the inputs; number and
    magnitudes of the terms come from the program.

    Parameters
    ----------
    kernel : Kernel
    program : Program
        The program that golden interpreted, with all block sizes chosen.
    inputs, golden : mapping of str to array
        Arrays by name.
    outputs : tuple of ArraySpec

    Raises
    ------
    ProgramError
        If the reference does not return numeric arrays of the outputs' shapes.
    """
    if kernel.reference.function is None:
        return Errors()
    with np.errstate(all="ignore"):
        exact = _answers(kernel, list(inputs.values()), outputs)
    known = _sums_products(program)
    magnitudes, terms = (_magnitudes(program, inputs), _terms(program)) if known else ({}, {})
    bounds, errors, shares, scaled = [], [], [], []
    for spec, truth in zip(outputs, exact):
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.abs(golden[spec.name].astype(np.float64) - truth)
        promised = np.isfinite(error)
        if known:
            count = float(np.max(terms[spec.name]))
            bound = _bound(magnitudes[spec.name], count, spec.format)
            promised = np.isfinite(bound)
            bounds.append(bound[promised])
            shares.append(_share(error[promised], bound[promised]))
        errors.append(error[promised])
        scaled.append(_share(error[promised], np.abs(truth[promised]).max(initial=0.0)))
    return Errors(
        bound=_largest(bounds),
        absolute=_largest(errors),
        of_bound=_largest(shares),
        relative=_largest(scaled),
        within=all(bool((share <= 1).all()) for share in shares) if known else None,
    )


def _share(error: Array, whole: Array) -> Array:
    """Ratio of errors to bounds: 0/0 is 0, any other error over 0 is infinite."""
    with np.errstate(all="ignore"):
        return np.where(error == 0, 0.0, error / whole)


def _largest(parts: Sequence[Array]) -> float | None:
    """Largest element of several arrays; None if all are empty."""
    found = [float(part.max()) for part in parts if part.size]
    return max(found) if found else None


def _answers(
    kernel: Kernel, arrays: list[Array], outputs: tuple[ArraySpec, ...]
) -> tuple[Array, ...]:
    """Results of the reference, checked against the outputs."""
    found = kernel.reference(*arrays)
    each = [np.asarray(one) for one in (found if isinstance(found, tuple) else (found,))]
    if any(one.dtype.kind not in "biuf" for one in each):
        given = ", ".join(str(one.dtype) for one in each)
        rule = "numbers"
    elif [one.shape for one in each] != [spec.shape for spec in outputs]:
        given = ", ".join(str(one.shape) for one in each) or "nothing"
        rule = ", ".join(f"{spec.name} of shape {spec.shape}" for spec in outputs)
    else:
        return tuple(one.astype(np.float64) for one in each)
    message = f"Reference of `{kernel.name}` must give {rule}, not {given}"
    raise ProgramError("argument", message, _first_line(kernel.reference.function))


def _first_line(function: Any) -> Span:
    code = function.__code__
    return Span(code.co_filename, code.co_firstlineno, 0, code.co_firstlineno, 0)


def _sums_products(program: Program) -> bool:
    """Whether every output is a sum of products of loaded elements, rounded only at the store."""
    nodes = list(walk(program.nodes))
    linear = (Loop, Load, Full, Buffer, Transpose, Matmul, Store, Cast, Map)
    if not all(isinstance(node, linear) for node in nodes):
        return False
    # A constant has no magnitude from inputs; a narrowing cast rounds in addition to the store.
    if any(isinstance(node, Cast) and not _widening(node) for node in nodes):
        return False
    if any(
        (isinstance(node, Map) and (node.op != "add" or len(node.values) < len(node.operands)))
        or (isinstance(node, Full) and node.value.value != 0)
        for node in nodes
    ):
        return False
    products: set[str] = set()
    before = -1
    while len(products) > before:
        before = len(products)
        for node in nodes:
            taken = node.nexts if isinstance(node, Loop) else node.values
            if isinstance(node, Matmul) or any(value.name in products for value in taken):
                products.update(value.name for value in node.results)
                if isinstance(node, Loop):
                    products.update(value.name for value in node.carries)
    return not any(
        isinstance(node, Matmul | Cast) and any(value.name in products for value in node.values[:2])
        for node in nodes
    )


def _widening(node: Cast) -> bool:
    source = node.values[0].type
    return isinstance(source, TileType) and widens(source.format, node.format)


def _bound(magnitude: Array, terms: float, target: Format) -> Array:
    """Error bound of sums by number of terms; infinite where there is no guarantee.

    `hw.numeric.reference.error_bound` derives it.
    """
    if not target.is_float:
        return np.where(magnitude <= 2.0 ** (target.bits - 1) - 1, 0.0, np.inf)
    gamma = terms * _UNIT_ROUNDOFF / (1 - terms * _UNIT_ROUNDOFF)
    gamma_reference = (terms + 1) * 2.0**-53 / (1 - (terms + 1) * 2.0**-53)
    magnitude = magnitude * (1 + gamma_reference)
    bound = gamma * magnitude + terms * _SMALLEST_SUBNORMAL / 2 * (1 + gamma)
    reach = magnitude + bound
    if target != fp32:
        smallest = 2.0 ** (1 - target.bias - target.fraction_bits)
        rounding = np.maximum(2.0**-target.significand_bits * reach, smallest / 2)
        bound, reach = bound + rounding, reach + rounding
    bound = bound + gamma_reference * magnitude
    largest = float(target.from_bits(target.largest).astype(np.float64))
    return np.where(np.isfinite(reach) & (reach <= largest), bound, np.inf)


def _magnitudes(program: Program, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Sum of term magnitudes of each output element: \\|A\\|·\\|B\\| of a product.

    Parameters
    ----------
    program : Program
        Program whose outputs are sums of products of loaded elements, all block sizes chosen.
    inputs : mapping of str to array

    Returns
    -------
    dict of str to float64 array
        By output.
    """
    with np.errstate(invalid="ignore"):
        sizes = {name: np.abs(array.astype(np.float64)) for name, array in inputs.items()}
    return _sums(program, sizes)


def _terms(program: Program) -> dict[str, Array]:
    """Number of terms of each output element; parameters as of `_magnitudes`."""
    ones = {
        tensor.name: np.ones(tensor.type.shape)
        for tensor in program.tensors
        if tensor.type.role is not Role.OUT
    }
    return _sums(program, ones)


def _sums(program: Program, inputs: Mapping[str, Array]) -> dict[str, Array]:
    roles = {tensor.name: tensor.type.role for tensor in program.tensors}
    memory = {
        tensor.name: inputs[tensor.name].copy()
        if tensor.name in inputs
        else np.zeros(tensor.type.shape)
        for tensor in program.tensors
    }
    with np.errstate(all="ignore"):
        _Sums(memory).run(program.nodes)
    return {name: array for name, array in memory.items() if roles[name] is not Role.IN}


class _Sums(Interpreter):
    """Float64 interpreter without rounding to narrower formats, for sums and products only."""

    def results(self, node: Node) -> tuple[Any, ...]:
        match node:
            case Full():
                return (np.zeros((self.room(node.rows), self.room(node.cols))),)
            case Cast():
                return (self.operand(node.operands[0]),)
            case Map():
                left, right = (self.operand(each) for each in node.operands)
                return (left + right,)
        return super().results(node)

    def matmul(self, node: Matmul) -> Array:
        a, b = (self.operand(each) for each in node.operands[:2])
        product: Array = (a.T if node.ta else a) @ (b.T if node.tb else b)
        return product + self.operand(node.operands[2]) if len(node.operands) == 3 else product

    def store(self, node: Store) -> None:
        target = self.memory[node.view.tensor]
        box = self.box(node.view)
        target[box] = self.stored(node.values[0]).reshape(target[box].shape)
