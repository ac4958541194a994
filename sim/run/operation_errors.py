"""Errors of element operations: what they pass on of their operands', and what they add."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hw.arch.lanes.lane_function import LaneFunction

__all__ = [
    "EXACT",
    "PROPAGATED",
    "ROUNDING",
    "SMALLEST_NORMAL",
    "Estimate",
    "applied_estimate",
    "own_error",
]

Array = npt.NDArray[Any]

#: A rounding to fp32, and as much as the float64 answer to compare with may take for one.
ROUNDING = 2.0**-24 + 2.0**-48
_HALF_SUBNORMAL = 2.0**-150
SMALLEST_NORMAL = 2.0**-126
#: Argument below which e^-x may overflow, and what sigmoid and silu are then off at most.
_FAR, _FAR_ERROR = -87.0, 2.0**-119
#: Largest slopes of silu and gelu.
_SILU_SLOPE, _GELU_SLOPE = 1.1, 1.13


class Estimate(NamedTuple):
    """Numbers and their error in golden.

    Members
    -------
    exact : array of float64
        The numbers in exact arithmetic, but for float64's own roundings.
    error : array of float64
        Bound of the distance of golden's numbers; of a condition, 0 where golden decides as exact
        arithmetic does, and infinity where it may not.
    """

    exact: Array
    error: Array


def _gelu(x: Array) -> Array:
    found: Array = x / (1 + np.exp(-2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return found


#: Operations of `sw.ir.element_operations.OPERATIONS` in float64.
EXACT: Mapping[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "abs": np.abs,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "max": np.maximum,
    "min": np.minimum,
    "where": np.where,
    "fma": lambda x, y, z: x * y + z,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "gelu": _gelu,
}


def _added(exact: Array, a: Estimate, b: Estimate) -> Array:
    return a.error + b.error


def _multiplied(exact: Array, a: Estimate, b: Estimate) -> Array:
    # Zero times infinity is no error where the other factor is exact.
    first = np.where(b.error == 0, 0, np.abs(a.exact) * b.error)
    return first + np.where(a.error == 0, 0, a.error * (np.abs(b.exact) + b.error))


def _divided(exact: Array, a: Estimate, b: Estimate) -> Array:
    left = np.abs(b.exact) - b.error
    passed = (a.error + np.abs(exact) * b.error) / left
    # Beyond, the reciprocal is subnormal or infinite.
    usual = (left >= SMALLEST_NORMAL) & (np.abs(b.exact) + b.error <= 2.0**126)
    return np.where(usual, passed, np.inf)


def _compared(exact: Array, a: Estimate, b: Estimate) -> Array:
    error = a.error + b.error
    sure = (np.abs(a.exact - b.exact) > error) | (error == 0)
    return np.where(sure, 0.0, np.inf)


def _chosen(exact: Array, condition: Estimate, x: Estimate, y: Estimate) -> Array:
    either = np.maximum(x.error, y.error) + np.abs(x.exact - y.exact)
    return np.where(condition.error == 0, np.where(condition.exact, x.error, y.error), either)


def _kept(exact: Array, x: Estimate) -> Array:
    return x.error


def _greater(exact: Array, x: Estimate, y: Estimate) -> Array:
    return np.maximum(x.error, y.error)


def _exponential(exact: Array, x: Estimate) -> Array:
    return np.where(x.error == 0, 0, exact * np.expm1(x.error))


def _binary_exponential(exact: Array, x: Estimate) -> Array:
    return np.where(x.error == 0, 0, exact * np.expm1(x.error * np.log(2)))


def _least(x: Estimate) -> Array:
    """The least magnitude, NaN where it may be zero."""
    least: Array = np.abs(x.exact) - x.error
    return np.where(least > 0, least, np.where(x.error == 0, np.abs(x.exact), np.nan))


def _by_distance(function: Callable[[Array], Array]) -> Callable[..., Array]:
    """Error of a function that changes most towards zero: at its least argument."""

    def passed(exact: Array, x: Estimate) -> Array:
        far = np.abs(function(_least(x)) - function(np.abs(x.exact)))
        return np.where(x.error == 0, 0, np.where(np.isnan(far), np.inf, far))

    return passed


def _square_root(exact: Array, x: Estimate) -> Array:
    # The slope is greatest below; golden may leave the domain there.
    far: Array = exact - np.sqrt(x.exact - x.error)
    return np.where(x.error == 0, 0, np.where(np.isnan(far), np.inf, far))


def _by_slope(slope: float) -> Callable[..., Array]:
    def passed(exact: Array, x: Estimate) -> Array:
        return slope * x.error

    return passed


#: Error of the result if the operation itself were exact: of the exact result and the operands.
PROPAGATED: Mapping[str, Callable[..., Array]] = {
    **dict.fromkeys(("add", "sub"), _added),
    "mul": _multiplied,
    "div": _divided,
    **dict.fromkeys(("neg", "abs"), _kept),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), _compared),
    **dict.fromkeys(("max", "min"), _greater),
    "where": _chosen,
    "fma": lambda exact, x, y, z: _multiplied(exact, x, y) + z.error,
    "exp": _exponential,
    "exp2": _binary_exponential,
    "log": _by_distance(np.log),
    "sqrt": _square_root,
    "rsqrt": _by_distance(lambda x: 1 / np.sqrt(x)),
    "reciprocal": _by_distance(lambda x: 1 / x),
    "sigmoid": _by_slope(0.25),
    "silu": _by_slope(_SILU_SLOPE),
    "tanh": _by_slope(1.0),
    "gelu": _by_slope(_GELU_SLOPE),
}

#: Units in the last significant bit of the function bits that a function may be off.
_UNITS: Mapping[str, float] = {
    "exp": 1.1,
    "exp2": 1.1,
    "reciprocal": 1.1,
    "rsqrt": 1.1,
    "div": 2.0,
    "sqrt": 2.0,
    "sigmoid": 3.5,
    "silu": 3.5,
}
_EXACT_ONES = ("neg", "abs", "max", "min", "where")
_ROUNDED = ("add", "sub", "mul", "fma")


def applied_estimate(function: LaneFunction, given: Estimate) -> Estimate:
    """Result of a user's function, which is exact where its operand is; else nothing is known."""
    with np.errstate(over="ignore"):
        rounded = given.exact.astype(np.float32)
    exact = function.applied(rounded).astype(np.float64)
    known = (given.error == 0) & (rounded == given.exact) & np.isfinite(exact)
    return Estimate(exact, np.where(known, 0.0, np.inf))


def _of_logarithm(magnitude: Array, x: Estimate, function_bits: int) -> Array:
    """Error of the logarithm: that of the power of two by which x is divided, and roundings."""
    # Beyond 2^126 the power is subnormal.
    unit = np.where(x.exact + x.error <= 2.0**126, 2.0, 8.0) * 2.0**-function_bits
    error = unit + 2.0**-21 + 2.0**-23 * magnitude
    return np.where(x.exact - x.error >= SMALLEST_NORMAL, error, np.inf)


def own_error(
    name: str, magnitude: Array, given: Sequence[Estimate], function_bits: int
) -> Array | float:
    """Error that an operation adds to what it passes on, as docs/numerics.md bounds it.

    Parameters
    ----------
    name : str
        Name of the operation, with a result in fp32.
    magnitude : array
        Largest magnitude of the result.
    given : sequence of Estimate
        The operands.
    function_bits : int
    """
    if name in _EXACT_ONES:
        return 0.0
    normal = np.maximum(magnitude, SMALLEST_NORMAL)
    if name in _UNITS:
        unit = normal * 2.0 ** (1 - function_bits)
        error = _UNITS[name] * unit
        if name in ("sigmoid", "silu"):
            near = given[0].exact - given[0].error >= _FAR
            return np.where(near, error, error + _FAR_ERROR)
        return error
    if name == "tanh":
        return 2.0 ** (2 - function_bits)
    if name == "gelu":
        reach: Array = (np.abs(given[0].exact) + given[0].error) * 2.0 ** (2 - function_bits)
        return reach + 2 * _HALF_SUBNORMAL
    if name == "log":
        return _of_logarithm(magnitude, given[0], function_bits)
    if name not in _ROUNDED:
        raise KeyError(name)
    # An addition of fp32 is exact where it is subnormal; a product is not.
    return ROUNDING * magnitude + _HALF_SUBNORMAL
