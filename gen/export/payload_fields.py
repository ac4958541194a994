"""Fields of a payload or of a structured port, with places that other languages can use."""

import dataclasses
import enum
from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data

__all__ = ["PayloadField", "payload_enums", "payload_fields"]


@dataclasses.dataclass(frozen=True)
class PayloadField:
    """Field of a payload.

    Members
    -------
    name : str
        Names and numbers on the path to it, joined by underscores; empty if it is the whole.
    low, width : int
        First bit and number of bits.
    is_signed : bool
    """

    name: str
    low: int
    width: int
    is_signed: bool


def payload_fields(shape: Any, name: str = "", low: int = 0) -> Iterator[PayloadField]:
    """Fields of a shape, those of nested structures and arrays too, in order of their bits.

    Parameters
    ----------
    shape : shape-like
    name : str
        Name of the shape in what contains it.
    low : int
        Its first bit there.
    """
    if isinstance(shape, data.StructLayout | data.ArrayLayout):
        for key, field in shape:
            label = f"{name}_{key}" if name else str(key)
            yield from payload_fields(field.shape, label, low + field.offset)
        return
    bits = Shape.cast(shape)
    if bits.width:
        yield PayloadField(name, low, bits.width, bits.signed)


def payload_enums(shape: Any) -> Iterator[type[enum.Enum]]:
    """Enumerations among the fields of a shape, each as often as a field has it."""
    if isinstance(shape, data.StructLayout | data.ArrayLayout):
        for _, field in shape:
            yield from payload_enums(field.shape)
    elif isinstance(shape, type) and issubclass(shape, enum.Enum):
        yield shape
