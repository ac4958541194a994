"""Launch list and argument table: the host's data structures in memory for one launch."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from amaranth.hdl import signed
from amaranth.lib import enum

from hw.arch.checks import require_bool, require_int
from hw.arch.errors import BadInputError, shown
from hw.arch.words.word_layout import WordLayout

__all__ = [
    "ARGUMENT_BYTES",
    "ENTRY_BYTES",
    "ENTRY_NUMBER_BITS",
    "HEADER_BYTES",
    "MAX_ARGUMENTS",
    "MAX_IMAGE_BYTES",
    "REPEAT_BITS",
    "Argument",
    "TRACE_EVENTS",
    "LaunchEntry",
    "TraceKind",
    "alignment_bytes",
    "argument_layout",
    "entry_layout",
    "header_layout",
    "pack_arguments",
    "pack_list",
    "trace_layout",
]

#: Bytes of an entry of the launch list.
ENTRY_BYTES = 64
#: Width of an entry's number in the list, and of the list's length.
ENTRY_NUMBER_BITS = 16
#: Bytes of an argument.
ARGUMENT_BYTES = 16
#: Most arguments of an entry.
MAX_ARGUMENTS = 16
#: Width of an entry's number of iterations.
REPEAT_BITS = 32
#: Trace events that wait for the host; further ones are dropped and counted.
TRACE_EVENTS = 64
#: Most bytes of an image.
MAX_IMAGE_BYTES = (1 << 24) - 1


#: Header of an image in memory order, part of an entry; ``checksum`` is that of the image's beats.
header_layout: WordLayout = WordLayout(
    {"magic": 32, "version": 16, "reserved": 16, "fingerprint": 32, "checksum": 32}
)
#: Bytes of a header.
HEADER_BYTES = header_layout.size // 8

#: One entry of the launch list in memory order.
entry_layout = WordLayout(
    {
        "image_address": 64,
        "argument_address": 64,
        "image_bytes": 32,
        "argument_count": 32,
        "repeat": REPEAT_BITS,
        "header": header_layout,
        "hold_next": 1,
        "reserved": 159,
    }
)


class TraceKind(enum.Enum, shape=8):
    """Kind of a trace event of a launch."""

    #: No event: the ring is empty.
    NONE = 0
    #: The host wrote the launch.
    LAUNCH = 1
    #: The fabric is reset for an entry.
    CLEAR = 2
    #: The kernel of an entry starts.
    START = 3
    #: The kernel of an entry has ended.
    END = 4
    #: The launch stops: an error, or the host's abort.
    STOP = 5


#: A trace event; its cycle is counted as the register CYCLES counts.
trace_layout = WordLayout({"kind": TraceKind, "entry": ENTRY_NUMBER_BITS, "cycle": 40})

#: One argument in memory order; it is ``value + stride × iteration``.
argument_layout = WordLayout({"value": 64, "stride": signed(64)})


def alignment_bytes(width_bits: int) -> int:
    """Alignment of lists, tables and images, and stride of list entries: a whole beat or 64."""
    return max(ENTRY_BYTES, width_bits // 8)


def _require_address(noun: str, value: int) -> None:
    require_int(noun, value, 0, (1 << 64) - 1)
    if value % ENTRY_BYTES:
        raise BadInputError(f"{noun} must be a multiple of {ENTRY_BYTES}, not {value:#x}")


@dataclasses.dataclass(frozen=True)
class Argument:
    """Launch argument: a base address or other value that AGCUs add, and its step per repeat.

    Parameters
    ----------
    value : int
        64-bit value in the first iteration.
    stride : int
        Signed 64-bit step.
    """

    value: int
    stride: int = 0

    def __post_init__(self) -> None:
        require_int("Argument value", self.value, 0, (1 << 64) - 1)
        require_int("Argument stride", self.stride, -(1 << 63), (1 << 63) - 1)

    def pack(self) -> bytes:
        """The 16 bytes in memory."""
        fields = {"value": self.value, "stride": self.stride}
        return argument_layout.pack(fields).to_bytes(ARGUMENT_BYTES, "little")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LaunchEntry:
    """Entry of a launch list: one kernel.

    Parameters
    ----------
    image_address, image_bytes : int
        Address and size of the image's beats; the address is aligned to `alignment_bytes`.
    header : bytes
        The image's header.
    argument_address, argument_count : int
        Address (aligned likewise; ignored without arguments) and length (0 to
        `MAX_ARGUMENTS`) of the argument table.
    repeat : int
        Iterations of the kernel (1 to 2**32 - 1).
    hold_next : bool
        The next entry is fetched after this kernel has ended, which may so write it: its number of
        iterations, arguments or image. Else it is fetched while this kernel runs.
    """

    image_address: int
    image_bytes: int
    header: bytes
    argument_address: int = 0
    argument_count: int = 0
    repeat: int = 1
    hold_next: bool = False

    def __post_init__(self) -> None:
        _require_address("Image address", self.image_address)
        _require_address("Argument address", self.argument_address)
        require_int("Image bytes", self.image_bytes, 1, MAX_IMAGE_BYTES)
        require_int("Argument count", self.argument_count, 0, MAX_ARGUMENTS)
        require_int("Repeat", self.repeat, 1, (1 << REPEAT_BITS) - 1)
        require_bool("Hold of the next entry", self.hold_next)
        if len(self.header) != HEADER_BYTES:
            raise BadInputError(
                f"Image header must have {HEADER_BYTES} bytes, not {shown(self.header)}"
            )

    def pack(self) -> bytes:
        """The 64 bytes in memory."""
        values: dict[int | str, Any] = {"reserved": 0}
        values.update((field.name, getattr(self, field.name)) for field in _entry_fields())
        values["header"] = int.from_bytes(self.header, "little")
        return entry_layout.pack(values).to_bytes(ENTRY_BYTES, "little")

    @classmethod
    def unpack(cls, raw: bytes) -> "LaunchEntry":
        """Entry from its 64 bytes.

        Raises
        ------
        BadInputError
            If `pack` makes no such bytes.
        """
        if len(raw) != ENTRY_BYTES:
            raise BadInputError(f"Launch entry must have {ENTRY_BYTES} bytes, not {len(raw)}")
        fields: Any = entry_layout.unpack(int.from_bytes(raw, "little"))
        if fields["reserved"]:
            raise BadInputError("Reserved bytes of a launch entry must be 0")
        header = fields["header"].bits.to_bytes(HEADER_BYTES, "little")
        numbers = {each.name: fields[each.name] for each in _entry_fields()}
        return cls(**numbers | {"header": header, "hold_next": bool(fields["hold_next"])})


def _entry_fields() -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(LaunchEntry)


def pack_list(entries: Sequence[LaunchEntry], width_bits: int) -> bytes:
    """Launch list in memory for a chip of the given link width."""
    pitch = alignment_bytes(width_bits)
    return b"".join(entry.pack().ljust(pitch, b"\0") for entry in entries)


def pack_arguments(arguments: Sequence[Argument]) -> bytes:
    """Argument table in memory.

    Raises
    ------
    BadInputError
        If there are more than `MAX_ARGUMENTS`.
    """
    if len(arguments) > MAX_ARGUMENTS:
        raise BadInputError(f"Arguments must be at most {MAX_ARGUMENTS}, not {len(arguments)}")
    return b"".join(argument.pack() for argument in arguments)
