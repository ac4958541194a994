"""Structure layout of program words and records that also packs and unpacks Python integers."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data

from hw.arch.errors import BadInputError, shown

__all__ = ["Word", "WordLayout"]

#: Value of a field from its bits, and bits of a field from its value.
_Read = Callable[[int], Any]
_Write = Callable[[Any], int]
#: Offset and mask of each field, by name or index, and what reads it.
_Reads = Mapping[Any, tuple[int, int, _Read]]
_Writes = Mapping[Any, tuple[int, int, _Write]]


class Word:
    """A word, or a field of one that has fields itself.

    ``word["name"]`` is a field of a structure, ``word[index]`` an entry of an array: an integer, a
    member of an enum, or a `Word`.

    Members
    -------
    bits : int
        All its bits.
    """

    __slots__ = ("_reads", "bits")

    def __init__(self, reads: _Reads, bits: int) -> None:
        self._reads = reads
        self.bits = bits

    def __getitem__(self, key: str | int) -> Any:
        offset, mask, read = self._reads[key]
        return read(self.bits >> offset & mask)


class WordLayout(data.StructLayout):
    """A structure layout whose words software packs and unpacks as integers.

    In hardware it is a `data.StructLayout`. Software could use that too (``const`` and
    ``from_bits``), but each call works out the place of every field anew, and an image has
    thousands of fields. Here the places are worked out once for a layout.
    """

    @functools.cached_property
    def _shape(self) -> Shape:
        return super().as_shape()

    def as_shape(self) -> Shape:
        """Shape of the whole word."""
        return self._shape

    @property
    def bits(self) -> int:
        """Bits of the whole word."""
        return self._shape.width

    @functools.cached_property
    def _read(self) -> _Reads:
        return _reads(self)

    @functools.cached_property
    def _write(self) -> _Writes:
        return _writes(self)

    def pack(self, values: Mapping[Any, Any]) -> int:
        """Word with these values; a field without one is 0.

        Parameters
        ----------
        values : Mapping
            By name of the field: an integer, cut to the field's bits; a member of its enum; or, of
            a field that has fields, their values (a list, a mapping) or all its bits.

        Raises
        ------
        KeyError
            If there is no such field.
        """
        return _packed(self._write, values)

    def unpack(self, bits: int) -> Word:
        """Fields of a word.

        Raises
        ------
        BadInputError
            If it does not have the layout's width.
        """
        if not 0 <= bits < 1 << self.bits:
            raise BadInputError(f"Word must have {self.bits} bits, not {shown(bits)}")
        return Word(self._read, bits)


def _fields(layout: data.Layout) -> Iterable[tuple[Any, data.Field, int]]:
    """Key, field and mask of each field of a layout."""
    for key, field in layout:
        yield key, field, (1 << field.width) - 1


def _reads(layout: data.Layout) -> _Reads:
    return {key: (at.offset, mask, _reader(at.shape)) for key, at, mask in _fields(layout)}


def _reader(shape: Any) -> _Read:
    if isinstance(shape, data.Layout):
        return functools.partial(Word, _reads(shape))
    if isinstance(shape, type) and issubclass(shape, enum.Enum):
        return shape
    cast = Shape.cast(shape)
    sign = 1 << cast.width - 1 if cast.signed else 0
    return lambda bits: (bits ^ sign) - sign


def _writes(layout: data.Layout) -> _Writes:
    return {key: (at.offset, mask, _writer(at.shape)) for key, at, mask in _fields(layout)}


def _writer(shape: Any) -> _Write:
    if isinstance(shape, data.Layout):
        return functools.partial(_packed, _writes(shape))
    if isinstance(shape, type) and issubclass(shape, enum.Enum):
        return lambda value: int(shape(value).value)
    return int


def _packed(writes: _Writes, values: Any) -> int:
    if isinstance(values, int):
        return values
    bits = 0
    for key, value in values.items() if isinstance(values, Mapping) else enumerate(values):
        offset, mask, write = writes[key]
        bits |= (write(value) & mask) << offset
    return bits
