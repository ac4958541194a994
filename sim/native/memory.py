"""Memory of a chip: how it behaves, and what crossed its ports."""

import ctypes
import dataclasses
from typing import Literal

from hw.errors import BadInputError

__all__ = [
    "CHANNELS",
    "MOST_ERRORS",
    "ErrorAt",
    "MemoryConditions",
    "PlantedError",
    "PortState",
    "PortTraffic",
    "Settings",
    "settings_of",
]

#: Channels of an AXI4 port.
CHANNELS = ("AR", "R", "AW", "W", "B")
_DIRECTIONS = {"read": 1, "write": 2, "launch": 3}
_RESPONSES = {"slverr": 2, "decerr": 3}
#: Most errors of one launch.
MOST_ERRORS = 3


@dataclasses.dataclass(frozen=True)
class ErrorAt:
    """An error that memory gives once.

    Parameters
    ----------
    direction : str
        ``"read"`` or ``"write"`` at the AGCUs' ports, or ``"launch"``: a read of the command
        processor (launch list, arguments, image).
    beat : int
        Which beat of that direction, from 0, counted over the ports in the order in which beats
        cross. The whole burst of a write fails, and nothing of it is written.
    response : str
        ``"slverr"`` or ``"decerr"``.

    Raises
    ------
    BadInputError
        If one of them is something else.
    """

    direction: Literal["read", "write", "launch"]
    beat: int
    response: Literal["slverr", "decerr"]

    def __post_init__(self) -> None:
        if self.direction not in _DIRECTIONS:
            raise BadInputError(
                f"Error direction must be read, write or launch, not {self.direction!r}"
            )
        if self.response not in _RESPONSES:
            raise BadInputError(f"Error response must be slverr or decerr, not {self.response!r}")
        if self.beat < 0:
            raise BadInputError(f"Error beat must be at least 0, not {self.beat}")


@dataclasses.dataclass(frozen=True)
class MemoryConditions:
    """How memory behaves.

    Parameters
    ----------
    latency : int
        Cycles from a read's address to its first beat, and from a write's last beat to its answer
        (1 to 65,535).
    jitter : int
        Cycles more, at random for each burst, from 0 to this; answers keep their order.
    stall : float
        Probability that memory's side of a channel pauses in a cycle, for each channel of each
        port on its own (0 to below 1).
    seed : int
        Seed of all that is random.
    error : ErrorAt, or tuple of up to `MOST_ERRORS` of them, optional
    channel_stalls : tuple of float, optional
        One probability per channel of `CHANNELS`, in place of `stall`.

    Raises
    ------
    BadInputError
        If a number lies outside its range.
    """

    latency: int = 100
    jitter: int = 0
    stall: float = 0.0
    seed: int = 1
    error: ErrorAt | tuple[ErrorAt, ...] | None = None
    channel_stalls: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for name, value, low in (("latency", self.latency, 1), ("jitter", self.jitter, 0)):
            if not low <= value <= 65_535:
                raise BadInputError(f"Memory {name} must be from {low} to 65535, not {value}")
        for stall in (self.stall, *self.stalls):
            if not 0 <= stall < 1:
                raise BadInputError(f"Memory stall must be from 0 to below 1, not {stall}")
        if len(self.stalls) != len(CHANNELS):
            raise BadInputError(
                f"Memory channel stalls must be {len(CHANNELS)}, not {len(self.stalls)}"
            )
        if len(self.errors) > MOST_ERRORS:
            raise BadInputError(
                f"Memory errors must be at most {MOST_ERRORS}, not {len(self.errors)}"
            )
        if not 0 <= self.seed < 1 << 63:
            raise BadInputError(f"Memory seed must be from 0 to 2^63 - 1, not {self.seed}")

    @property
    def errors(self) -> tuple[ErrorAt, ...]:
        """Every planted error."""
        if self.error is None:
            return ()
        return self.error if isinstance(self.error, tuple) else (self.error,)

    @property
    def stalls(self) -> tuple[float, ...]:
        """Probability of a pause, by channel."""
        if self.channel_stalls is not None:
            return self.channel_stalls
        return (self.stall,) * len(CHANNELS)


@dataclasses.dataclass(frozen=True)
class PortTraffic:
    """What crossed one AXI4 port.

    Members
    -------
    name : str
    beats : dict of str to int
        Beats by channel.
    reads_owed, writes_owed : int
        Bursts that memory has not answered.
    """

    name: str
    beats: dict[str, int]
    reads_owed: int
    writes_owed: int


class PlantedError(ctypes.Structure):
    """``PlantedError`` of the harness; direction 0 is none."""

    _fields_ = [
        ("beat", ctypes.c_int64),
        ("direction", ctypes.c_uint32),
        ("response", ctypes.c_uint32),
    ]


class Settings(ctypes.Structure):
    """``Conditions`` of the harness."""

    _fields_ = [
        ("memory", ctypes.c_void_p),
        ("memory_bytes", ctypes.c_uint64),
        ("seed", ctypes.c_uint64),
        ("errors", PlantedError * MOST_ERRORS),
        ("latency", ctypes.c_uint32),
        ("jitter", ctypes.c_uint32),
        ("stall", ctypes.c_uint32 * len(CHANNELS)),
    ]


class PortState(ctypes.Structure):
    """``PortState`` of the harness."""

    _fields_ = [
        ("beats", ctypes.c_int64 * len(CHANNELS)),
        ("written_bytes", ctypes.c_int64),
        ("reads_owed", ctypes.c_int64),
        ("writes_owed", ctypes.c_int64),
    ]


def settings_of(view: "ctypes.Array[ctypes.c_uint8]", given: MemoryConditions) -> Settings:
    """Conditions as the harness takes them, with the bytes of memory."""
    planted = [
        PlantedError(each.beat, _DIRECTIONS[each.direction], _RESPONSES[each.response])
        for each in given.errors
    ]
    return Settings(
        memory=ctypes.addressof(view),
        memory_bytes=len(view),
        seed=given.seed,
        errors=(PlantedError * MOST_ERRORS)(*planted),
        latency=given.latency,
        jitter=given.jitter,
        stall=(ctypes.c_uint32 * len(CHANNELS))(*(int(each * 2**32) for each in given.stalls)),
    )
