"""Instructions of a tensor unit: what they are called, their bits, and what is wrong with one."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from amaranth.hdl import Shape
from amaranth.lib import data

from hw.arch.errors import BadInputError

__all__ = ["INSTRUCTION", "Fault", "Instruction", "Opcode", "pack"]


class Opcode(enum.IntEnum):
    """What an instruction does.

    Members
    -------
    READ_HOST
        ``rows`` vectors of the host go into the buffer at ``address``.
    MULTIPLY
        ``rows`` vectors of the buffer meet the next tile of weights; ``accumulate`` adds their
        sums to those of the multiply before, ``finish`` makes results of them.
    ACTIVATE
        The results of the multiply before, ``rows`` of them, go into the buffer.
    WRITE_HOST
        ``rows`` vectors of the buffer go to the host.
    CONFIGURE
        Sets ``relu``, ``scale`` and ``shift`` of all results to come.
    """

    READ_HOST = 1
    MULTIPLY = 2
    ACTIVATE = 3
    WRITE_HOST = 4
    CONFIGURE = 5


class Fault(enum.IntEnum):
    """Why an instruction was refused.

    Members
    -------
    NONE
        It was not.
    OPCODE
        There is no such instruction.
    ROWS
        No rows; more rows than accumulators in a multiply that needs them; other rows than the
        multiply before has, in one that accumulates or in an activate.
    ADDRESS
        The vectors are not all in the buffer.
    SLOT
        A vector has no such slot.
    ORDER
        An activate does not follow a multiply that finishes, or something else does; an
        accumulating multiply follows none that leaves sums.
    OVERLAP
        Results would go where their own multiply reads.
    SCALING
        A scale of 2^16 or more, or a shift of more than 47, of a unit that scales integers.
    """

    NONE = 0
    OPCODE = 1
    ROWS = 2
    ADDRESS = 3
    SLOT = 4
    ORDER = 5
    OVERLAP = 6
    SCALING = 7


#: Layout of an instruction, 128 bits; what an instruction does not need is ignored.
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

_WORDS = np.dtype(
    [("control", "<u2"), ("slot", "<u2"), ("rows", "<u4"), ("address", "<u4"), ("scale", "<u4")]
)


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Parameters
    ----------
    opcode : int
        One of `Opcode`, if it is to be carried out.
    address, rows : int
        First vector in the buffer, and how many.
    accumulate, finish : bool
        Of a multiply: add to the sums of the one before; the sums leave as results.
    slot : int
        Of an activate, where vectors hold several rows of results: which of them is written.
    relu, scale, shift
        Of a configure. Integer sums are multiplied by ``scale`` and divided by 2^``shift``; for
        fp32 sums, of a unit with a bias, ``scale`` is the bits of an fp32.
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
    """Instructions as words, instructions × 4, least significant word first.

    Raises
    ------
    BadInputError
        A field has more bits than its place.
    """
    packed = []
    for each in instructions:
        for name, shape in INSTRUCTION.members.items():
            value = int(getattr(each, name, 0))
            bits = Shape.cast(shape).width
            if not 0 <= value < 1 << bits:
                raise BadInputError(
                    f"Instruction {name} must have {bits} bits at most, not {value}"
                )
        control = each.opcode | each.accumulate << 4 | each.finish << 5 | each.relu << 6
        packed.append((control | each.shift << 8, each.slot, each.rows, each.address, each.scale))
    return np.array(packed, _WORDS).view(np.uint32).reshape(-1, 4)
