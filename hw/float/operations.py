"""Catalog of the combinational operations on single words, and a component for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from amaranth.hdl import Module, Signal, Value
from amaranth.lib.wiring import In, Out

from hw.arch.errors import BadInputError, shown
from hw.float import convert as conversion
from hw.float import fp32 as fp32_units
from hw.lib.component import Component
from hw.numeric.formats import OPERANDS, Format

__all__ = ["OPERATIONS", "OperationUnit", "operation"]


def _widen(m: Module, bits: Value, format_: Format) -> Value:
    return conversion.widen(m, bits[: format_.bits], format_)


def _saturate_int8(m: Module, bits: Value) -> Value:
    return conversion.saturate_int8(bits)


def _operations() -> dict[str, tuple[Callable[..., Value], int]]:
    found: dict[str, tuple[Callable[..., Value], int]] = {
        "add": (fp32_units.add_fp32, 2),
        "multiply": (fp32_units.multiply_fp32, 2),
        "fma": (fp32_units.fma_fp32, 3),
        "less": (fp32_units.less, 2),
        "equal": (fp32_units.equal, 2),
        "minimum": (fp32_units.minimum, 2),
        "maximum": (fp32_units.maximum, 2),
        "round_to_integral": (conversion.round_to_integral, 1),
        "to_int32": (conversion.to_int32, 1),
        "from_int32": (conversion.from_int32, 1),
        "saturate_int8": (_saturate_int8, 1),
    }
    for format_ in (each for each in OPERANDS if each.is_float and not each.has_scale):
        found[f"from_{format_.name}"] = (partial(_widen, format_=format_), 1)
        for saturate in (False, True) if format_.has_nan else (True,):
            build = partial(conversion.narrow, format_=format_, saturate=saturate)
            found[f"to_{format_.name}{'_saturated' * saturate}"] = (build, 1)
    return found


#: Builder and number of operand words of each operation. ``fma`` is a * b + c; the others are
#: those of :mod:`hw.numeric.elementwise`, and casts between fp32 and shorter floats.
OPERATIONS: Mapping[str, tuple[Callable[..., Value], int]] = MappingProxyType(_operations())


def operation(name: str) -> tuple[Callable[..., Value], int]:
    """Builder of an operation and its number of operand words, by its name.

    Raises
    ------
    BadInputError
        There is no such operation.
    """
    if name not in OPERATIONS:
        raise BadInputError(f"Operation must be one of {', '.join(OPERATIONS)}, not {shown(name)}")
    return OPERATIONS[name]


class OperationUnit(Component):
    """One arithmetic operation of the catalog, combinational.

    Parameters
    ----------
    name : str
        Key in :data:`OPERATIONS`.

    Members
    -------
    a, b, c : 32 bits
        Operand words, as many as the operation takes; shorter formats in the low bits.
    o : 32 bits
        Result.

    Raises
    ------
    BadInputError
        There is no such operation.
    """

    a: Signal
    b: Signal
    c: Signal
    o: Signal

    def __init__(self, name: str) -> None:
        self._build, words = operation(name)
        self._name = name
        self._ports = ("a", "b", "c")[:words]
        super().__init__({**{port: In(32) for port in self._ports}, "o": Out(32)})

    @property
    def ports(self) -> tuple[str, ...]:
        """Names of the operand words."""
        return self._ports

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.o.eq(self._build(m, *(getattr(self, port) for port in self._ports)))
        return m
