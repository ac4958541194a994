"""Golden against the author's float64 answer: errors, and whether the bound holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.numeric.formats import Format, bf16
from sw.arrays import ArraySpec
from sw.ir.nodes import Buffer, Cast, Full, Load, Loop, Map, Matmul, Store, Transpose
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.language import Kernel

__all__ = ["Errors", "compare_with_reference"]

Array = npt.NDArray[Any]

_UNIT_ROUNDOFF = 2.0**-24
_SMALLEST_SUBNORMAL = 2.0**-149
_LARGEST = float(np.finfo(np.float32).max)


@dataclasses.dataclass(frozen=True)
class Errors:
    """How far golden is from the reference.

    Members
    -------
    bound, absolute, relative : float or None
        Largest bound, and largest errors among the elements for which a bound can be promised:
        not those where an operand is not finite or an overflow is possible. None if there is no
        such element.
    within : bool
        Whether the bound holds for each of them. False where no bound is known for the kernel.
    products : int or None
        Multiply-accumulates of the kernel; None if it is more than products.
    """

    bound: float | None
    absolute: float | None
    relative: float | None
    within: bool
    products: int | None


def compare_with_reference(
    kernel: Kernel,
    program: Program,
    inputs: Mapping[str, Array],
    golden: Mapping[str, Array],
    outputs: tuple[ArraySpec, ...],
) -> Errors:
    """Compare golden with the kernel's reference.

    The bound is that of a sum of products, each added with one rounding to fp32, and rounded once
    more to the format stored. What it needs, the reference gives: on ones, how many terms a sum
    has; on magnitudes, the sum of the terms' magnitudes.

    Raises
    ------
    ProgramError
        If the kernel has no reference.
    """
    names = list(inputs)
    with np.errstate(all="ignore"):
        exact = _answers(kernel, [inputs[name] for name in names])
        sizes = [np.abs(_wide(inputs[name])) for name in names]
        magnitudes = _answers(kernel, sizes)
        terms = _answers(kernel, [np.ones(size.shape) for size in sizes])
    known = _sums_products(program)
    only_products = known and not any(isinstance(node, Map) for node in walk(program.nodes))
    parts: list[tuple[Array, Array, Array]] = []
    for spec, truth, magnitude, count in zip(outputs, exact, magnitudes, terms, strict=True):
        answer = _wide(golden[spec.name])
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.abs(answer - truth)
            bound = _bound(magnitude, float(np.max(count)), spec.format)
        promised = np.isfinite(bound) if known else np.isfinite(error)
        parts.append((bound[promised], error[promised], np.abs(truth)[promised]))
    bounds, errors, truths = (
        np.concatenate([part[i].reshape(-1) for part in parts]) for i in (0, 1, 2)
    )
    scaled = errors[truths > 0] / truths[truths > 0]
    return Errors(
        bound=float(bounds.max()) if known and bounds.size else None,
        absolute=float(errors.max()) if errors.size else None,
        relative=float(scaled.max()) if scaled.size else None,
        within=known and bool((errors <= bounds).all()),
        products=int(sum(each.sum() for each in terms)) if only_products else None,
    )


def _wide(array: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return array.astype(np.float64)


def _answers(kernel: Kernel, arrays: list[Array]) -> tuple[Array, ...]:
    found = kernel.reference(*arrays)
    return tuple(
        np.asarray(each, np.float64) for each in (found if isinstance(found, tuple) else (found,))
    )


def _sums_products(program: Program) -> bool:
    """Whether every output is a sum of products of loaded elements, rounded only when stored."""
    nodes = list(walk(program.nodes))
    linear = (Loop, Load, Full, Buffer, Transpose, Matmul, Store, Cast, Map)
    if not all(isinstance(node, linear) for node in nodes):
        return False
    # A constant has no magnitude that the reference could be asked for.
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


def _bound(magnitude: Array, terms: float, target: Format) -> Array:
    """Bound on the error of sums of so many terms; infinity where nothing can be promised.

    `hw.numeric.reference.error_bound` derives it.
    """
    if not target.is_float:
        return np.where(magnitude <= 2.0 ** (target.bits - 1) - 1, 0.0, np.inf)
    gamma = terms * _UNIT_ROUNDOFF / (1 - terms * _UNIT_ROUNDOFF)
    gamma_reference = (terms + 1) * 2.0**-53 / (1 - (terms + 1) * 2.0**-53)
    magnitude = magnitude * (1 + gamma_reference)
    bound = gamma * magnitude + terms * _SMALLEST_SUBNORMAL / 2 * (1 + gamma)
    reach = magnitude + bound
    if target == bf16:
        rounding = np.maximum(2.0**-8 * reach, 2.0**-134)
        bound, reach = bound + rounding, reach + rounding
    bound = bound + gamma_reference * magnitude
    return np.where(np.isfinite(reach) & (reach <= _LARGEST), bound, np.inf)
