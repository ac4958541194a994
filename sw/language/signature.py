"""Signatures of kernels: ``"A[M, K], B[K, N] -> C[M, N]: bf16"``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from hw.arch.errors import BadInputError
from sw.ir.format_rules import Format, format_of
from sw.ir.types import Role, Span
from sw.language.program_error import ProgramError, unserved

__all__ = ["Argument", "Signature", "dynamic", "parse_signature"]

_NAME = r"[^\W\d]\w*"
_ARGUMENT = re.compile(rf"\s*({_NAME})\s*(?:\[([^\[\]]*)\])?\s*(?::\s*({_NAME}))?\s*")


@dataclass(frozen=True)
class Argument:
    """A tensor argument.

    Parameters
    ----------
    name : str
        Its name.
    dims : tuple of str or int
        Name or size of each dimension.
    format : Format or None
        Declared format; None if there is none.
    role : Role
        Input, output, or both for a name on both sides.
    """

    name: str
    dims: tuple[str | int, ...]
    format: Format | None
    role: Role


@dataclass(frozen=True)
class Signature:
    """A kernel's tensors.

    Parameters
    ----------
    text : str
        The signature as written.
    arguments : tuple of Argument
        Inputs, including those updated in place, then outputs, in the order written.
    """

    text: str
    arguments: tuple[Argument, ...]

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """Arguments of a call, in order."""
        return tuple(each for each in self.arguments if each.role is not Role.OUT)

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """Results of a call: outputs and arguments updated in place."""
        return tuple(each for each in self.arguments if each.role is not Role.IN)

    @property
    def dims(self) -> tuple[str, ...]:
        """Distinct names of the dimensions."""
        names = (dim for each in self.arguments for dim in each.dims if isinstance(dim, str))
        return tuple(dict.fromkeys(names))


def parse_signature(text: str, span: Span | None = None) -> Signature:
    """Parse a signature.

    A name on both sides of the arrow is updated in place; its dimensions are then written once.

    Raises
    ------
    ProgramError
        If the text is not a signature.
    """

    def fail(message: str, value: str = text) -> ProgramError:
        return ProgramError("signature", message, span, value=value)

    sides = text.split("->")
    if len(sides) != 2:
        raise fail(f"Signature must be `inputs -> outputs`, not {text!r}")
    left = [_argument(part, Role.IN, fail) for part in _parts(sides[0])]
    right = [_argument(part, Role.OUT, fail) for part in _parts(sides[1])]
    for side in (left, right):
        names = [each.name for each in side]
        for name in names:
            if names.count(name) > 1:
                raise fail(f"Signature must name `{name}` once on each side", name)
    if not right:
        raise fail("Signature must have an output")
    known = {each.name: number for number, each in enumerate(left)}
    outputs = []
    for each in right:
        if each.name not in known:
            if not each.dims:
                raise fail(f"Output `{each.name}` must have dimensions", each.name)
            outputs.append(each)
            continue
        before = left[known[each.name]]
        if each.dims and each.dims != before.dims:
            raise fail(f"`{each.name}` must have the same dimensions on both sides", each.name)
        if each.format and before.format not in (None, each.format):
            raise fail(f"`{each.name}` must have one format", each.name)
        format_ = before.format or each.format
        left[known[each.name]] = Argument(each.name, before.dims, format_, Role.INOUT)
    for each in left:
        if not each.dims:
            raise fail(f"Input `{each.name}` must have dimensions", each.name)
    return Signature(text, (*left, *outputs))


def _parts(side: str) -> list[str]:
    """Split the arguments of one side at the commas outside brackets."""
    if not side.strip():
        return []
    return re.split(r",(?![^\[]*\])", side)


def _argument(part: str, role: Role, fail: Callable[..., ProgramError]) -> Argument:
    match = _ARGUMENT.fullmatch(part)
    if match is None:
        raise fail(f"Argument must be `name[dim, ...]` or `name[dim, ...]: format`, not {part!r}")
    name, inside, declared = match.groups()
    dims: list[str | int] = []
    for item in inside.split(",") if inside is not None else ():
        dim = item.strip()
        if not re.fullmatch(rf"{_NAME}|[1-9]\d*", dim):
            raise fail(f"Dimension of `{name}` must be a name or a number, not {dim!r}", dim)
        dims.append(int(dim) if dim.isdigit() else dim)
    format_ = None
    if declared is not None:
        try:
            format_ = format_of(declared)
        except BadInputError as error:
            raise fail(str(error), declared) from error
    return Argument(name, tuple(dims), format_, role)


def dynamic(*_: object, **__: object) -> NoReturn:
    """Make a dimension a launch argument, which is not supported yet: a call is refused."""
    raise unserved("tw.dynamic")
