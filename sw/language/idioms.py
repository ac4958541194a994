"""Error messages for numpy and torch idioms, naming the language's equivalent."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, ParamSpec, TypeVar

from hw.arch.errors import did_you_mean, shown
from sw.ir.element_operations import FUNCTIONS
from sw.language.program_error import ProgramError, caller_span
from sw.language.trace import refusal

__all__ = ["HABITS", "MissingNameError", "NotAnArray", "missing_name", "operator", "taking"]

P = ParamSpec("P")
R = TypeVar("R")

#: Equivalent in the language, and the names of other libraries that it replaces.
_EQUIVALENTS = {
    "`tw.{name}`": " ".join((*FUNCTIONS, "matmul")),
    "`x + y`": "add",
    "`x - y`": "subtract",
    "`x * y`": "multiply",
    "`x / y`": "divide true_divide",
    "`-x`": "negative neg",
    "`abs(x)`": "absolute abs",
    "`x == y`": "equal",
    "`x != y`": "not_equal",
    "`x < y`": "less",
    "`x <= y`": "less_equal",
    "`x > y`": "greater",
    "`x >= y`": "greater_equal",
    "`tw.row_sum(x)` for axis 1, `tw.col_sum(x)` for axis 0": "sum",
    "`tw.row_max(x)` for axis 1, `tw.col_max(x)` for axis 0": "max amax",
    "`tw.row_min(x)` for axis 1, `tw.col_min(x)` for axis 0": "min amin",
    "`tw.row_mean(x)` for axis 1; for axis 0 `tw.col_sum(x) / rows`": "mean",
    "`tw.col_sum(x) / rows`, by the number of rows": "col_mean",
    "`e = tw.exp(x - tw.row_max(x))`, then `e / tw.row_sum(e)`": "softmax",
    "`tw.maximum(x, 0.0)`": "relu",
    "`tw.minimum(tw.maximum(x, low), high)`": "clip clamp",
    "`a @ b`": "dot mm",
    "`a @ b` in a loop of `tw.each`": "bmm",
    "`a @ b`, transposed by `.T` where needed": "einsum",
    "`x * x`": "square",
    "`x * x`, or `tw.exp(p * tw.log(x))`": "power pow",
    "`tw.log(x)` times 1.4426950408889634": "log2",
    "`(tw.exp(x) - tw.exp(-x)) * 0.5`": "sinh",
    "`(tw.exp(x) + tw.exp(-x)) * 0.5`": "cosh",
    "`x.T`": "transpose permute swapaxes t",
    "`x.to(tw.fp32)`, or another format": "astype cast type",
    "`x.to(tw.fp32)`": "float",
    "`x.to(tw.bf16)`": "bfloat16",
    "`x.to(tw.fp16)`": "half",
    "`x.to(tw.int32)`": "int",
    "`tw.split_cols` and `tw.join_cols`; a tile has rows and columns, and no other shape": (
        "reshape view ravel flatten squeeze unsqueeze"
    ),
    "`tw.split_cols(x, parts)`": "split chunk",
    "`tw.join_cols(x, y)`": "concatenate concat cat hstack",
    "`x.rows`, `x.cols` or `x.shape`": "size ndim",
    "index the tensor before `tw.load_tile`; a tile has numbers on the chip alone": (
        "item numpy tolist asarray array"
    ),
    "`tw.buffer(x)` for room of its own; nothing changes a tile": "copy clone",
    "`tw.full(rows, cols, 1)`": "ones",
    "`tw.zeros(x.rows, x.cols)`": "zeros_like",
    "`tw.full(x.rows, x.cols, 1)`": "ones_like",
    "`tw.full(x.rows, x.cols, value)`": "full_like",
    "`tw.row_index(i)` or `tw.col_index(i)` of a block": "arange",
    "`tw.each(n)`, or `tw.metapipe(n, size)` for blocks": "range",
    "`tw.store_tile(view, tile)`": "store",
}
#: Equivalent in the language of names from other libraries.
HABITS: Mapping[str, str] = {
    name: text.format(name=name) for text, names in _EQUIVALENTS.items() for name in names.split()
}
_REVERSED = {
    "add": "__radd__",
    "subtract": "__rsub__",
    "multiply": "__rmul__",
    "divide": "__rtruediv__",
    "matmul": "__rmatmul__",
    "equal": "__eq__",
    "not_equal": "__ne__",
    "less": "__gt__",
    "less_equal": "__ge__",
    "greater": "__lt__",
    "greater_equal": "__le__",
}


class MissingNameError(ProgramError, AttributeError):
    """An unknown name; the message says what to write instead."""


def missing_name(
    owner: str, name: str, known: tuple[str, ...], *, first: str = ""
) -> MissingNameError:
    """Make the error for an attribute that does not exist.

    Parameters
    ----------
    owner : str
        The object without the attribute; the message begins with it.
    name : str
    known : tuple of str
        Attributes that the object has.
    first : str
        Advice that precedes the hint.
    """
    message = f"{owner} has no `{name}`"
    if name in HABITS:
        message += f": {first}write {HABITS[name]}"
    else:
        message += did_you_mean(name, known)
    return MissingNameError("operation", message, caller_span(), value=name)


def operator(symbol: str, hint: str = "") -> Callable[..., NoReturn]:
    """Return a method that refuses an operator outside the language."""

    def refuse(self: NotAnArray, *_: object) -> NoReturn:
        wanted = self._first + (f"write {hint}" if hint else "compute with that")
        raise refusal("operation", f"{self._noun} has no operator `{symbol}`: {wanted}")

    return refuse


class NotAnArray:
    """Base class of a program's values: numpy functions and attributes are refused with a hint."""

    #: Noun with which messages begin, and advice that precedes any hint.
    _noun = "A tile"
    _first = ""

    __pow__ = __rpow__ = operator("**", HABITS["pow"])
    __floordiv__ = __rfloordiv__ = operator("//", "`x / y`, then `.to(tw.int32)`")
    __mod__ = __rmod__ = operator("%", "it with `/`, `*` and `-`")
    __and__ = __rand__ = operator("&", "`tw.where` in `tw.where` for two conditions")
    __or__ = __ror__ = operator("|", "`tw.where` in `tw.where` for two conditions")
    __xor__ = __rxor__ = operator("^", "`x * x` for a square")
    __invert__ = operator("~", "`tw.where` with its last two operands exchanged")
    __lshift__ = __rshift__ = operator("<<", "a product with a power of two")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Evaluate ``number * tile`` for a numpy number; refuse other numpy functions."""
        name = ufunc.__name__
        reverse = getattr(self, _REVERSED.get(name, ""), None)
        if method == "__call__" and reverse and inputs[0] is not self and not options:
            return reverse(inputs[0])
        self._refuse_numpy(name if method == "__call__" else {"add": "sum"}.get(name, name))

    def __array_function__(self, function: Any, *_: object) -> NoReturn:
        """Refuse other numpy functions."""
        self._refuse_numpy(function.__name__)

    def __array__(self, *_: object, **__: object) -> NoReturn:
        """Refuse conversion to an array."""
        self._refuse_numpy("asarray")

    def _refuse_numpy(self, name: str) -> NoReturn:
        hint = f": {self._first}write {HABITS[name]}" if name in HABITS else ""
        raise refusal(
            "operation",
            f"`np.{name}` takes arrays; {self._noun.lower()} is none{hint}",
            value=name,
        )

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        known = tuple(each for each in dir(type(self)) if not each.startswith("_"))
        raise missing_name(self._noun, name, known, first=self._first)


def taking(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a language function: calls with wrong arguments are errors at the user's line."""

    @functools.wraps(function)
    def call(*arguments: P.args, **options: P.kwargs) -> R:
        try:
            return function(*arguments, **options)
        except TypeError as error:
            trace = error.__traceback__
            if isinstance(error, ProgramError) or trace is None or trace.tb_next is not None:
                raise
            raise _wrong_call(function, arguments, options) from error

    return call


def _wrong_call(
    function: Callable[..., Any], arguments: tuple[Any, ...], options: Mapping[str, Any]
) -> ProgramError:
    name = function.__name__
    names = [
        f"*{each.name}" if each.kind is each.VAR_POSITIONAL else each.name
        for each in inspect.signature(function).parameters.values()
    ]
    message = f"`{name}` takes ({', '.join(names)})"
    axis, _, op = name.partition("_")
    wrong = [each for each in options if each not in names]
    if axis in ("row", "col") and {"axis", "dim"} & set(wrong):
        other = "col" if axis == "row" else "row"
        number = 0 if axis == "row" else 1
        along = HABITS.get(f"{other}_{op}", f"`tw.{other}_{op}(x)`")
        message += f" and no axis: write `tw.{name}(x)`; axis {number} is {along}"
    elif arguments and isinstance(arguments[0], tuple) and "rows" in names:
        parts = ", ".join(names[: len(names) - 1])
        message += f", rows and columns apart: write `tw.{name}({parts})`"
    elif wrong:
        message += f", not `{wrong[0]}={shown(options[wrong[0]])}`{did_you_mean(wrong[0], names)}"
    else:
        message += f", not {len(arguments)} arguments"
    return refusal("operation", message, value=name)
