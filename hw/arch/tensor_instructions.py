"""Tensor unit: its instruction set (opcodes, encoding, faults) and the sizes programs depend on."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from amaranth.lib import data

from hw.arch.errors import BadInputError
from hw.numeric.division import ceil_div
from hw.numeric.formats import Format

__all__ = ["INSTRUCTION", "Fault", "Instruction", "Opcode", "TensorSizes", "pack"]


class Opcode(enum.IntEnum):
    """Operation of an instruction.

    Members
    -------
    READ_HOST
        ``rows`` vectors of the host are written to the buffer at ``address``.
    MULTIPLY
        ``rows`` vectors of the buffer are multiplied by the next weight tile; ``accumulate`` adds
        the products to the sums of the multiply before, ``finish`` turns the sums into results.
    ACTIVATE
        The ``rows`` results of the multiply before are written to the buffer.
    WRITE_HOST
        ``rows`` vectors of the buffer are sent to the host.
    CONFIGURE
        Sets ``relu``, ``scale`` and ``shift`` of all later results.
    """

    READ_HOST = 1
    MULTIPLY = 2
    ACTIVATE = 3
    WRITE_HOST = 4
    CONFIGURE = 5


class Fault(enum.IntEnum):
    """Reason why an instruction was refused.

    Members
    -------
    NONE
        Not refused.
    OPCODE
        There is no such instruction.
    ROWS
        No rows; more rows than accumulators in a multiply that needs them; a number of rows other
        than that of the multiply before, in an activate or an accumulating multiply.
    ADDRESS
        Some of the vectors are not in the buffer.
    SLOT
        A vector has no such slot.
    ORDER
        An activate that does not follow a multiply with ``finish``, or anything else that does; an
        accumulating multiply after one without sums to add to.
    OVERLAP
        Results would overwrite vectors that their own multiply reads.
    SCALING
        A scale of 2^16 or more, or a shift of more than 47, in a unit that requantizes integers.
    """

    NONE = 0
    OPCODE = 1
    ROWS = 2
    ADDRESS = 3
    SLOT = 4
    ORDER = 5
    OVERLAP = 6
    SCALING = 7


#: Layout of an instruction, 128 bits; fields that an instruction does not need are ignored.
INSTRUCTION = data.StructLayout(
    {
        "opcode": 4,
        "accumulate": 1,
        "finish": 1,
        "relu": 1,
        "reserved": 1,
        "shift": 8,
        "slot": 16,
        "rows": 32,
        "address": 32,
        "scale": 32,
    }
)


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Parameters
    ----------
    opcode : int
        One of `Opcode`, unless the instruction is to be refused.
    address, rows : int
        First vector in the buffer, and number of vectors.
    accumulate, finish : bool
        Of a multiply: add to the sums of the multiply before; the sums leave as results.
    slot : int
        Of an activate, where vectors hold several rows of results: the slot to write.
    relu, scale, shift
        Of a configure. Integer sums are multiplied by ``scale`` and divided by 2^``shift``; for
        fp32 sums, in a unit with a bias, ``scale`` is the bits of an fp32.
    """

    opcode: int
    address: int = 0
    rows: int = 0
    accumulate: bool = False
    finish: bool = False
    slot: int = 0
    relu: bool = False
    scale: int = 0
    shift: int = 0


def pack(instructions: Iterable[Instruction]) -> npt.NDArray[np.uint32]:
    """Encode instructions as words, instructions × 4, least significant word first.

    Raises
    ------
    BadInputError
        A value does not fit its field.
    """
    packed = bytearray()
    for each in instructions:
        word = 0
        for name, field in INSTRUCTION:
            value = int(getattr(each, name, 0))
            if not 0 <= value < 1 << field.width:
                raise BadInputError(
                    f"Instruction {name} must have {field.width} bits at most, not {value}"
                )
            word |= value << field.offset
        packed += word.to_bytes(INSTRUCTION.size // 8, "little")
    return np.frombuffer(packed, np.uint32).reshape(-1, 4)


@dataclass(frozen=True)
class TensorSizes:
    """Sizes of a tensor unit that its programs depend on.

    A vector of the buffer has R lanes, so E operands; a row of results has C. If E ≥ C, a vector
    has E // C slots, each for one row of results, and zeros after the last. If E < C, a row takes
    several vectors, the last one padded with zeros.

    Parameters
    ----------
    rows, columns : int
        Rows R and columns C of the array.
    accumulator_rows, buffer_rows : int
        Rows of sums, and vectors of the unified buffer.
    format : Format
        Format of operands and results.
    bias : bool
        Whether the unit has a bias stream.
    """

    rows: int
    columns: int
    accumulator_rows: int
    buffer_rows: int
    format: Format
    bias: bool

    @property
    def elements(self) -> int:
        """Operands per vector (E)."""
        return self.rows * self.format.products_per_cycle

    @property
    def slots(self) -> int:
        """Rows of results per vector; 1 if a row takes several vectors."""
        return max(1, self.elements // self.columns)

    @property
    def parts(self) -> int:
        """Vectors per row of results."""
        return ceil_div(self.columns, self.elements)
