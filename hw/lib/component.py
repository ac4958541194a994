"""Base class of hardware components: modules named by class and parameters."""

import dataclasses
import enum
import functools
import hashlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, Self

from amaranth.hdl import Shape
from amaranth.lib import data, wiring

from hw.arch.errors import BadInputError, shown
from hw.arch.unit_kind import UnitKind
from hw.numeric.formats import Format

__all__ = ["Component"]

#: Characters of one parameter in a module's name, beyond which a digest stands for it.
_MOST = 56


class Component(wiring.Component):
    """Base class of components: it records the constructor call, which names the module.

    A subclass checks its parameters before ``super().__init__``: a refused component leaves no
    ``UnusedElaboratable`` warning. An instance that exists after it but is never elaborated is a
    mistake, and Amaranth warns about it.
    """

    _constructor_call: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **named: Any) -> Self:
        new: Any = super().__new__
        # Source location of the constructor call is in the caller of this method.
        component: Self = new(cls, *args, src_loc_at=1, **named)
        component.__dict__["_constructor_call"] = args, named
        return component

    def __del__(self) -> None:
        # An instance has its signature from `wiring.Component.__init__` on.
        if hasattr(self, "signature"):
            above: Any = super()
            above.__del__()

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the constructor call by name, defaults included."""
        positional, named = self._constructor_call
        bound = _constructor(type(self).__init__).bind(*positional, **named)
        bound.apply_defaults()
        return dict(bound.arguments)

    @property
    def definition_name(self) -> str:
        """Name of the shared module: the class and every parameter, in the constructor's order.

        A number follows the initial of its parameter. Only the first value of a type that may take
        several words (a tuple, a text) does take them, so equal names have equal parameters: every
        other value is one word. A digest stands for what is longer, and for a tuple of values that
        are not one word each.
        """
        words = [re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()]
        first = True
        for name, value in self.parameters.items():
            spelled: list[str] = []
            for leaf in _leaves(name, value):
                several = _may_be_several(leaf[1])
                each = _words(*leaf)
                spelled += each if len(each) == 1 or several and first else [_digest(name, value)]
                first = first and not several
            words += spelled if len("_".join(spelled)) <= _MOST else [_digest(name, value)]
        return "_".join(words)


@functools.cache
def _constructor(call: Callable[..., None]) -> inspect.Signature:
    """Signature of a class's own constructor, without `self`."""
    own = call is not wiring.Component.__init__
    parameters = inspect.signature(call).parameters.values() if own else ()
    return inspect.Signature(list(parameters)[1:])


def _leaves(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Names and values of a parameter, those of its fields if it is a dataclass."""
    if dataclasses.is_dataclass(value) and not isinstance(value, Format | UnitKind):
        for field in _named_fields(value):
            yield from _leaves(field, getattr(value, field))
    else:
        yield name, value


def _named_fields(value: Any) -> list[str]:
    """Fields of a dataclass that tell its values apart; an empty tuple has no word."""
    fields = dataclasses.fields(value)
    return [each.name for each in fields if each.compare and getattr(value, each.name) != ()]


def _words(name: str, value: object) -> list[str]:
    """Words of a module's name for one value."""
    match value:
        case enum.Enum():
            return value.name.lower().split("_")
        case Format() | UnitKind():
            return [value.name]
        case int():
            return [f"{name[0]}{value:d}".replace("-", "m")]
        case None:
            return ["none"]
        case str() if re.fullmatch(r"[a-z0-9_]+", value):
            return value.split("_")
        case tuple() if all(len(_words(name, each)) == 1 for each in value):
            return [word for each in value for word in _words(name, each)]
        case data.Layout():
            return [f"{name[0]}{value.size}{_digest('x', value)}"]
    return [_digest(name, value)]


def _may_be_several(value: object) -> bool:
    """Whether values of this type are not always one word of a module's name."""
    if isinstance(value, enum.Enum):
        return any("_" in each.name for each in type(value))
    return isinstance(value, tuple | str)


def _digest(name: str, value: object) -> str:
    return f"{name[0]}{hashlib.sha256(_canonical(value).encode()).hexdigest()[:8]}"


def _canonical(value: object) -> str:
    """Text of a value that is equal for equal values, in every process."""
    match value:
        case enum.Enum() | Format() | UnitKind():
            return f"{type(value).__name__}.{value.name}"
        case int() | str() | None:
            return repr(value)
        case Shape() | range() | enum.EnumType():
            return repr(Shape.cast(value))
        case type():
            return f"{value.__module__}.{value.__qualname__}"
        case tuple():
            return f"({','.join(map(_canonical, value))})"
        case data.Layout():
            fields = (f"{key}@{field.offset}:{_canonical(field.shape)}" for key, field in value)
            return f"{value.size}[{','.join(fields)}]"
    if dataclasses.is_dataclass(value):
        fields = (f"{name}={_canonical(getattr(value, name))}" for name in _named_fields(value))
        return f"{type(value).__name__}({','.join(fields)})"
    raise BadInputError(f"Parameter must be a value that can name a module, not {shown(value)}")
