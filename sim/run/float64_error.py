"""Comparison of golden with the author's float64 reference: errors, and whether bounds hold."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.config import PcuConfig
from sim.run.error_bounds import error_bounds
from sw.array_spec import ArraySpec
from sw.ir.program import Program
from sw.ir.types import Span
from sw.language import Kernel, ProgramError

__all__ = ["Errors", "compare_with_reference"]

Array = npt.NDArray[Any]


@dataclasses.dataclass(frozen=True)
class Errors:
    """Errors of golden against the reference; None for unavailable figures.

    Members
    -------
    bound, absolute : float or None
        Largest bound and largest error among the elements with a bound (`error_bounds`). None if
        there is no such element.
    of_bound : float or None
        Largest ratio of an element's error to its bound.
    relative : float or None
        Largest error relative to the largest value of its output.
    within : bool or None
        Whether every such element is within its bound. None without a reference.
    worst : str
        Description of the element that is farthest beyond its bound; empty if there is none.
    """

    bound: float | None = None
    absolute: float | None = None
    of_bound: float | None = None
    relative: float | None = None
    within: bool | None = None
    worst: str = ""


def compare_with_reference(
    kernel: Kernel,
    program: Program,
    inputs: Mapping[str, Array],
    golden: Mapping[str, Array],
    outputs: tuple[ArraySpec, ...],
    *,
    options: Mapping[str, Any] | None = None,
    function_bits: int = PcuConfig.function_bits,
) -> Errors:
    """Compare golden with the kernel's reference, if it has one.

    The reference is called once, on the inputs; the bounds come from the program alone.

    Parameters
    ----------
    kernel : Kernel
    program : Program
        The program that golden interpreted, with all block sizes chosen.
    inputs, golden : mapping of str to array
        Arrays by name.
    outputs : tuple of ArraySpec
    options : mapping of str to option
        Sizes and options of the kernel, which a reference takes by parameters of their names.
    function_bits : int
        Significand bits of the chip's functions.

    Raises
    ------
    ProgramError
        If the reference does not return numeric arrays of the outputs' shapes.
    """
    if kernel.reference.function is None:
        return Errors()
    with np.errstate(all="ignore"):
        exact = _answers(kernel, list(inputs.values()), options or {}, outputs)
    found = error_bounds(program, inputs, function_bits)
    bounds, errors, shares, scaled = [], [], [], []
    beyond: dict[float, str] = {}
    for spec, truth in zip(outputs, exact):
        with np.errstate(invalid="ignore", over="ignore"):
            answer = golden[spec.name].astype(np.float64)
            # Also of equal infinities.
            error = np.where(answer == truth, 0.0, np.abs(answer - truth))
        bound = found[spec.name]
        promised = np.isfinite(bound)
        bounds.append(bound[promised])
        share = np.where(promised, np.nan_to_num(_share(error, bound), nan=np.inf), 0.0)
        shares.append(share[promised])
        if (share > 1).any():
            place = np.unravel_index(int(share.argmax()), share.shape)
            index = ", ".join(str(int(each)) for each in place)
            beyond[float(share[place])] = (
                f"{spec.name}[{index}] is {answer[place]:g} and should be {truth[place]:g}, "
                f"give or take {bound[place]:.1e}"
            )
        errors.append(error[promised])
        finite = np.abs(truth[promised & np.isfinite(truth)])
        scaled.append(_share(error[promised], finite.max(initial=0.0)))
    return Errors(
        bound=_largest(bounds),
        absolute=_largest(errors),
        of_bound=_largest(shares),
        relative=_largest(scaled),
        within=not beyond,
        worst=beyond[max(beyond)] if beyond else "",
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
    kernel: Kernel,
    arrays: list[Array],
    options: Mapping[str, Any],
    outputs: tuple[ArraySpec, ...],
) -> tuple[Array, ...]:
    """Results of the reference, checked against the outputs."""
    taken = kernel.reference.taken(options, len(arrays))
    _require_parameters(kernel, len(arrays), taken)
    found = kernel.reference(*arrays, **taken)
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


def _require_parameters(kernel: Kernel, arrays: int, options: Mapping[str, Any]) -> None:
    """Refuse a reference that does not take the inputs in their order."""
    function = kernel.reference.function
    assert function is not None
    signature = inspect.signature(function)
    try:
        signature.bind(*range(arrays), **options)
    except TypeError as error:
        names = ", ".join(each.name for each in kernel.signature.inputs) or "nothing"
        raise ProgramError(
            "argument",
            f"Reference of `{kernel.name}` must take the inputs ({names}), and options and sizes "
            f"by their names, not {signature}",
            _first_line(function),
        ) from error


def _first_line(function: Any) -> Span:
    code = function.__code__
    return Span(code.co_filename, code.co_firstlineno, 0, code.co_firstlineno, 0)
