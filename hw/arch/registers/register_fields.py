"""Registers behind an AXI4-Lite port: their fields, and what a write does to each."""

import dataclasses
import enum
from collections.abc import Sequence

from amaranth.lib import data

__all__ = ["Field", "Register", "RegisterAccess", "register_table", "word_register"]


class RegisterAccess(enum.Enum):
    """Effect of a write on a field."""

    #: Read-only; a write answers SLVERR if the register has no other field.
    READ_ONLY = "RO"
    READ_WRITE = "RW"
    #: Part of what the write does; reads as 0.
    WRITE_ONLY = "WO"
    #: Write 1 to act; writing 0 has no effect; reads as 0.
    WRITE_ONE = "W1"
    #: Write 1 to clear; writing 0 has no effect.
    WRITE_ONE_CLEARS = "W1C"


@dataclasses.dataclass(frozen=True)
class Field:
    """Field of a register: bits from ``low`` upwards."""

    name: str
    low: int
    bits: int
    access: RegisterAccess
    text: str


@dataclasses.dataclass(frozen=True)
class Register:
    """Register of 32 bits at a byte offset; bits of no field read as 0 and ignore writes."""

    name: str
    offset: int
    fields: tuple[Field, ...]

    @property
    def writable(self) -> bool:
        """Whether a write has an effect on some field."""
        return any(field.access is not RegisterAccess.READ_ONLY for field in self.fields)

    @property
    def mask(self) -> int:
        """Ones in the bits of the fields."""
        return sum(((1 << field.bits) - 1) << field.low for field in self.fields)

    @property
    def layout(self) -> data.FlexibleLayout:
        """Layout of the register's fields, by their names."""
        return data.FlexibleLayout(
            max(field.low + field.bits for field in self.fields),
            {field.name: data.Field(field.bits, field.low) for field in self.fields},
        )

    def word(self, **values: int) -> int:
        """Word of the fields that are named; the others are 0.

        Raises
        ------
        ValueError
            If there is no such field, or it has too few bits.
        """
        word = 0
        for field in self.fields:
            value = values.pop(field.name, 0)
            if not 0 <= value < 1 << field.bits:
                raise ValueError(f"{self.name}.{field.name} has {field.bits} bits: {value}")
            word |= value << field.low
        if values:
            raise ValueError(f"{self.name} has no field {', '.join(values)}")
        return word

    def values(self, word: int) -> dict[str, int]:
        """Value of each field of a word."""
        return {each.name: word >> each.low & (1 << each.bits) - 1 for each in self.fields}


def word_register(
    name: str, offset: int, access: RegisterAccess, text: str, bits: int = 32
) -> Register:
    """Register of one field, ``value``, from bit 0 on."""
    return Register(name, offset, (Field("value", 0, bits, access, text),))


def register_table(registers: Sequence[Register]) -> str:
    """Markdown table of a register map, as in the documentation."""
    lines = ["| offset | register | bits | field | access | meaning |", "|---|---|---|---|---|---|"]
    for each in registers:
        for position, field in enumerate(each.fields):
            head = f"0x{each.offset:02X} | `{each.name}`" if position == 0 else " | "
            high = field.low + field.bits - 1
            bits = f"{high}:{field.low}" if field.bits > 1 else f"{field.low}"
            lines.append(
                f"| {head} | {bits} | `{field.name}` | {field.access.value} | {field.text} |"
            )
    return "\n".join(lines) + "\n"
