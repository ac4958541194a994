"""Binding of a call's arrays to the signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.errors import BadInputError
from sw.ir.format_rules import Format, format_of
from sw.language.program_error import ProgramError, near_misses
from sw.language.signature import Argument, Signature

__all__ = ["Bound", "bind_arrays"]


@dataclass(frozen=True)
class Bound:
    """Arrays of a call, checked against the signature.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        Inputs by name.
    dims : mapping of str to int
        Sizes by the names of dimensions.
    formats : mapping of str to Format
        Formats of the inputs by name.
    """

    arrays: Mapping[str, npt.NDArray[Any]]
    dims: Mapping[str, int]
    formats: Mapping[str, Format]


def bind_arrays(
    kernel: str,
    signature: Signature,
    arrays: Sequence[npt.ArrayLike],
    named: Mapping[str, npt.ArrayLike],
) -> Bound:
    """Check the inputs of a kernel, and return them with their sizes and formats.

    Parameters
    ----------
    kernel : str
        Name of the kernel, for errors.
    signature : Signature
        Signature of the kernel.
    arrays : sequence of array
        Inputs in the signature's order.
    named : mapping of str to array
        Inputs by name.

    Raises
    ------
    ProgramError
        If arrays are missing, of the wrong rank or format, or disagree in a dimension.
    """

    def fail(message: str, value: str = "") -> ProgramError:
        return ProgramError("argument", f"`{kernel}` {message}", None, value=value)

    inputs = signature.inputs
    names = [each.name for each in inputs]
    if len(arrays) > len(inputs):
        raise fail(f"takes {len(inputs)} arrays, not {len(arrays)}", str(len(arrays)))
    given = dict(zip(names, arrays))
    for name, array in named.items():
        if name not in names:
            raise fail(f"has no input `{name}`; {near_misses(name, names, 'inputs')}", name)
        if name in given:
            raise fail(f"is given `{name}` twice", name)
        given[name] = array
    dims: dict[str, int] = {}
    found: dict[str, npt.NDArray[Any]] = {}
    formats: dict[str, Format] = {}
    for each in inputs:
        name = each.name
        if name not in given:
            raise fail(f"must be given `{name}`", name)
        try:
            found[name] = np.asarray(given[name])
        except (TypeError, ValueError) as error:
            raise fail(f"cannot take `{name}`: it must be an array of numbers") from error
        try:
            formats[name] = format_of(found[name].dtype)
        except BadInputError as error:
            raise fail(
                f"cannot take `{name}`: {error}{_converted(name, found[name].dtype)}",
                str(found[name].dtype),
            ) from error
        if each.format is not None and each.format != formats[name]:
            raise fail(
                f"takes `{name}` in {each.format.name}, not {formats[name].name}",
                formats[name].name,
            )
        _sizes(each, found[name].shape, dims, fail)
    return Bound(found, dims, formats)


def _converted(name: str, dtype: np.dtype[Any]) -> str:
    """Advice on converting an array of an unsupported type; empty for a type without numbers."""
    if dtype.kind in "iub":
        return f"; write `{name}.astype(np.int32)`, or `np.int8` for a product"
    if dtype.kind == "f":
        return f"; write `{name}.astype(np.float32)`, or `ml_dtypes.bfloat16` for a product"
    return ""


def _sizes(
    argument: Argument,
    shape: tuple[int, ...],
    dims: dict[str, int],
    fail: Callable[[str, str], ProgramError],
) -> None:
    """Check the shape of one array, and record dimensions not seen before."""
    name = argument.name
    if len(shape) != len(argument.dims):
        raise fail(
            f"takes `{name}` with {len(argument.dims)} dimensions, not {len(shape)}",
            str(len(shape)),
        )
    for dim, size in zip(argument.dims, shape):
        wanted = dims.setdefault(dim, size) if isinstance(dim, str) else dim
        if size < 1:
            raise fail(f"takes `{name}` with {dim} of 1 or more, not {size}", str(size))
        if size != wanted:
            raise fail(f"takes `{name}` with {dim} = {wanted}, not {size}", str(size))
