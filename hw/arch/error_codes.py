"""Error codes of launches, TMA engines and units, and their names for the user."""

from amaranth.lib import enum

from hw.arch.config import ChipConfig
from hw.arch.counters import unit_kinds
from hw.arch.registers.chip_registers import register

__all__ = [
    "BarrierError",
    "UnitError",
    "agcu_number",
    "error_detail",
    "error_unit",
    "LaunchError",
    "ReadPhase",
    "TmaError",
]


class LaunchError(enum.Enum, shape=8):
    """Error code of a launch."""

    NONE = 0
    #: The host wrote ``abort``.
    ABORTED = 1
    #: The launch list has no entries.
    NO_ENTRIES = 2
    #: Address of the launch list is misaligned or beyond the address width.
    LIST_ADDRESS = 3
    #: Address of an image is misaligned or beyond the address width.
    IMAGE_ADDRESS = 4
    #: Bytes of an image are 0, not whole beats, or more than `MAX_IMAGE_BYTES`.
    IMAGE_BYTES = 5
    #: Address of an argument table is misaligned or beyond the address width.
    ARGUMENT_ADDRESS = 6
    #: More arguments than `MAX_ARGUMENTS`.
    ARGUMENT_COUNT = 7
    #: Repeat count of 0.
    REPEAT = 8
    #: A reserved bit of an entry or header is set.
    RESERVED = 9
    #: The image does not begin with the magic number.
    MAGIC = 16
    #: The image has another version.
    VERSION = 17
    #: The image is for another chip.
    FINGERPRINT = 18
    #: A word of the image is for no segment of this chip, or behind the segment's end.
    RUN = 19
    #: The image ends before the words of its last directory.
    IMAGE_SIZE = 20
    #: The checksum of the image's beats is not the one of its header.
    CHECKSUM = 21
    #: Memory answered a read with SLVERR; ``detail`` is the `ReadPhase`.
    READ_SLVERR = 32
    #: Memory answered a read with DECERR; ``detail`` is the `ReadPhase`.
    READ_DECERR = 33
    #: A unit reported an error; ``detail`` is its code, ``unit`` its number: tiles, then AGCUs.
    UNIT = 64


class ReadPhase(enum.Enum, shape=8):
    """Data that was being read when memory answered with an error."""

    LIST = 0
    ARGUMENTS = 1
    IMAGE = 2


class TmaError(enum.Enum, shape=8):
    """Error code of a TMA engine or unit: 1 to 31 refuse a command, others are responses."""

    NONE = 0
    RANK = 1
    FORMAT = 2
    BASE = 3
    STRIDE = 4
    DIMENSION = 5
    BOX = 6
    ROW_BYTES = 7
    ELEMENT_STRIDE = 8
    INTERLEAVE = 9
    SWIZZLE = 10
    OOB_FILL = 11
    MODE = 12
    REDUCE = 13
    IM2COL = 14
    #: The box does not fit the scratchpad from its address on, or its address is misaligned.
    DESTINATION = 15
    #: Address of a descriptor is misaligned or beyond the address width.
    POINTER = 16
    #: No such operation.
    OPERATION = 17
    #: The command was ended by an abort before its box had moved.
    ABORTED = 18
    #: A replacement of no field, of none with that index, or by a value of more bits than it has.
    FIELD = 19
    #: A mode of CUDA that reads pixels of W alone, im2col::w or im2col::w::128.
    IM2COL_WIDE = 20
    #: The offsets of an im2col command have more bits than those of its rank.
    OFFSETS = 21
    #: A loop of a chain has no index, or a coordinate two loops or none such, or a ring no barrier.
    CHAIN = 22
    #: The error flag of a barrier that a chain waits for is up.
    FLAG = 23
    READ_SLVERR = 32
    READ_DECERR = 33
    WRITE_SLVERR = 34
    WRITE_DECERR = 35


class BarrierError(enum.Enum, shape=8):
    """Error code of an operation or a wait at a bank of barriers; `TmaError` has other codes."""

    NONE = 0
    #: No such barrier.
    INDEX = 64
    #: No such operation.
    OPERATION = 65
    #: A barrier cannot begin with this number of arrivals.
    EXPECTED = 66
    #: The barrier is not initialised.
    UNINITIALISED = 67
    #: All arrivals of the barrier have been dropped, and its last phase is complete.
    RETIRED = 68
    #: More arrivals than pending.
    ARRIVALS = 69
    #: Transaction count out of range.
    TX = 70
    #: An arrival that was not to complete the phase would complete it.
    COMPLETES = 71


class UnitError(enum.IntEnum):
    """Error details beside those of TMA engines, whose codes are lower."""

    #: Index of a gather or scatter that is at or above its limit, or outside its tensor.
    INDEX = 0xFD
    #: Broken program of a tile: a barrier counted more arrivals than it expects.
    PROGRAM = 0xFE


def agcu_number(chip: ChipConfig, agcu: int) -> int:
    """Number of an AGCU among the units: tiles by row, then AGCUs."""
    return chip.rows * chip.columns + agcu


def error_detail(detail: int) -> str:
    """Name of an error detail."""
    for codes in (TmaError, UnitError):
        for each in codes:
            if each.value == detail:
                return each.name
    return f"code {detail}"


def error_unit(chip: ChipConfig, unit: int) -> str | None:
    """Name of the unit that reported an error; None if no unit did.

    The register ERROR has the low bits of its number, so on a chip of more units than these tell
    apart it is one of several.
    """
    names = list(unit_kinds(chip))[unit :: 1 << register("ERROR").layout["unit"].width]
    return " or ".join(names) if names else None
