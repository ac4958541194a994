"""Element operations of ``map``: one entry has the name, notation, golden arithmetic and text.

Tracing, inference, the text form, golden execution, hints and documentation follow this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.numeric import compositions, elementwise, functions
from hw.numeric.formats import Format, int32

__all__ = ["FUNCTIONS", "OPERATIONS", "ElementOperation", "element_table", "notation"]

_Arithmetic = Callable[..., npt.NDArray[Any]]


@dataclass(frozen=True)
class ElementOperation:
    """Operation on the elements of one to three tiles of a shape.

    Parameters
    ----------
    name : str
        Name in the text form, after ``map.``.
    fp32 : function
        Arithmetic on arrays of float32, bit-exact with the hardware units.
    int32 : function or None
        Arithmetic on arrays of int32, modulo 2^32; None if operands become fp32.
    operands : int
        One to three.
    notation : str
        How programs write it; by default the name.
    text : str
        What the function of the language returns; empty for an operator.
    compares : bool
        Whether the result is a condition.
    chooses : bool
        Whether the first operand is a condition, the result of a comparison.
    takes_width : bool
        Whether the arithmetic takes ``width``, the significand bits of a chip's special functions.
    internal : bool
        Whether passes alone make it, and no program of the language.
    """

    name: str
    fp32: _Arithmetic
    int32: _Arithmetic | None = None
    operands: int = 2
    notation: str = ""
    text: str = ""
    compares: bool = False
    chooses: bool = False
    takes_width: bool = False
    internal: bool = False

    def arithmetic(self, format_: Format, function_bits: int) -> _Arithmetic:
        """Arithmetic on arrays of a format, int32 or fp32, on chips of these function bits."""
        if format_ == int32 and self.int32:
            return self.int32
        return partial(self.fp32, width=function_bits) if self.takes_width else self.fp32


def _function(name: str, fp32: _Arithmetic, text: str) -> ElementOperation:
    return ElementOperation(name, fp32, operands=1, text=text, takes_width=True)


def _comparison(
    name: str, notation: str, fp32: _Arithmetic, int32: _Arithmetic
) -> ElementOperation:
    return ElementOperation(name, fp32, int32, notation=notation, compares=True)


_less, _equal = elementwise.less, elementwise.equal

#: Every operation by name.
OPERATIONS: Mapping[str, ElementOperation] = MappingProxyType(
    {
        each.name: each
        for each in (
            ElementOperation("add", elementwise.add, np.add, notation="+"),
            ElementOperation("sub", compositions.subtract, np.subtract, notation="-"),
            ElementOperation("mul", elementwise.multiply, np.multiply, notation="*"),
            ElementOperation("div", compositions.divide, notation="/", takes_width=True),
            ElementOperation("neg", np.negative, np.negative, 1, notation="-"),
            ElementOperation("abs", np.abs, np.abs, 1),
            _comparison("eq", "==", _equal, np.equal),
            _comparison("ne", "!=", lambda a, b: ~_equal(a, b), np.not_equal),
            _comparison("lt", "<", _less, np.less),
            _comparison("le", "<=", lambda a, b: _less(a, b) | _equal(a, b), np.less_equal),
            _comparison("gt", ">", lambda a, b: _less(b, a), np.greater),
            _comparison("ge", ">=", lambda a, b: _less(b, a) | _equal(a, b), np.greater_equal),
            ElementOperation(
                "max",
                elementwise.maximum,
                np.maximum,
                notation="maximum",
                text="the greater number of each pair; NaN if either is NaN",
            ),
            ElementOperation(
                "min",
                elementwise.minimum,
                np.minimum,
                notation="minimum",
                text="the lesser number of each pair; NaN if either is NaN",
            ),
            ElementOperation(
                "where",
                np.where,
                np.where,
                3,
                text="x where a comparison holds, y where it does not",
                chooses=True,
            ),
            ElementOperation(
                "fma", elementwise.fma, operands=3, text="x * y + z, rounded once to fp32"
            ),
            _function("exp", functions.exp, "e to the power x; that of minus infinity is +0"),
            _function("exp2", functions.exp2, "2 to the power x; that of minus infinity is +0"),
            _function("log", compositions.log, "the natural logarithm"),
            _function("sqrt", compositions.sqrt, "the square root"),
            _function("rsqrt", functions.rsqrt, "1 / sqrt(x)"),
            _function("reciprocal", functions.reciprocal, "1 / x"),
            _function("sigmoid", compositions.sigmoid, "1 / (1 + exp(-x))"),
            _function("silu", compositions.silu, "x / (1 + exp(-x))"),
            _function("tanh", compositions.tanh, "the hyperbolic tangent"),
            _function("gelu", compositions.gelu, "the Gaussian error linear unit, tanh form"),
            ElementOperation(
                "bits",
                compositions.bits,
                operands=1,
                text="the bits of x as an int32, converted to fp32",
                internal=True,
            ),
        )
    }
)

#: Operations that are functions of the language, by the function's name.
FUNCTIONS: Mapping[str, ElementOperation] = MappingProxyType(
    {
        each.notation or each.name: each
        for each in OPERATIONS.values()
        if each.text and not each.internal
    }
)


def notation(name: str) -> str:
    """How programs write an operation."""
    return OPERATIONS[name].notation or name if name in OPERATIONS else name


def element_table() -> str:
    """Markdown table of the operations, as in the documentation."""
    lines = ["| operation | in programs | formats | gives |", "|---|---|---|---|"]
    for each in OPERATIONS.values():
        written, formats = notation(each.name), "fp32, int32" if each.int32 else "fp32"
        operands = "condition, x, y" if each.chooses else ", ".join("xyz"[: each.operands])
        call = f"{written}({operands})"
        if not written.isidentifier():
            call = f"x {written} y" if each.operands == 2 else f"{written}x"
        gives = "a condition" if each.compares else each.text
        gives += "; passes alone make it" if each.internal else ""
        lines.append(f"| `map.{each.name}` | `{call}` | {formats} | {gives} |")
    return "\n".join(lines) + "\n"
