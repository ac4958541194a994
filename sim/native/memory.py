"""Memory of a chip: how it behaves, and what crossed its ports."""

import ctypes
import dataclasses
from typing import Literal

__all__ = [
    "CHANNELS",
    "ErrorAt",
    "MemoryConditions",
    "PortState",
    "PortTraffic",
    "Settings",
    "settings_of",
]

#: Channels of an AXI4 port.
CHANNELS = ("AR", "R", "AW", "W", "B")
_DIRECTIONS = {"read": 1, "write": 2}
_RESPONSES = {"slverr": 2, "decerr": 3}


@dataclasses.dataclass(frozen=True)
class ErrorAt:
    """An error that memory gives once.

    Parameters
    ----------
    direction : str
        ``"read"`` or ``"write"``.
    beat : int
        Which beat, from 0, counted over the AGCUs' ports in the order in which beats cross. The
        whole burst of a write fails, and nothing of it is written.
    response : str
        ``"slverr"`` or ``"decerr"``.

    Raises
    ------
    ValueError
        If one of them is something else.
    """

    direction: Literal["read", "write"]
    beat: int
    response: Literal["slverr", "decerr"]

    def __post_init__(self) -> None:
        if self.direction not in _DIRECTIONS:
            raise ValueError(f"Error direction must be read or write, not {self.direction!r}")
        if self.response not in _RESPONSES:
            raise ValueError(f"Error response must be slverr or decerr, not {self.response!r}")
        if self.beat < 0:
            raise ValueError(f"Error beat must be at least 0, not {self.beat}")


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
    error : ErrorAt, optional

    Raises
    ------
    ValueError
        If a number lies outside its range.
    """

    latency: int = 100
    jitter: int = 0
    stall: float = 0.0
    seed: int = 1
    error: ErrorAt | None = None

    def __post_init__(self) -> None:
        for name, value, low in (("latency", self.latency, 1), ("jitter", self.jitter, 0)):
            if not low <= value <= 65_535:
                raise ValueError(f"Memory {name} must be from {low} to 65535, not {value}")
        if not 0 <= self.stall < 1:
            raise ValueError(f"Memory stall must be from 0 to below 1, not {self.stall}")
        if not 0 <= self.seed < 1 << 63:
            raise ValueError(f"Memory seed must be from 0 to 2^63 - 1, not {self.seed}")


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


class Settings(ctypes.Structure):
    """``Conditions`` of the harness."""

    _fields_ = [
        ("memory", ctypes.c_void_p),
        ("memory_bytes", ctypes.c_uint64),
        ("seed", ctypes.c_uint64),
        ("error_beat", ctypes.c_int64),
        ("latency", ctypes.c_uint32),
        ("jitter", ctypes.c_uint32),
        ("stall", ctypes.c_uint32),
        ("error_direction", ctypes.c_uint32),
        ("error_response", ctypes.c_uint32),
    ]


class PortState(ctypes.Structure):
    """``PortState`` of the harness."""

    _fields_ = [
        ("beats", ctypes.c_int64 * len(CHANNELS)),
        ("written_bytes", ctypes.c_int64),
        ("reads_owed", ctypes.c_int64),
        ("writes_owed", ctypes.c_int64),
        ("last_b_cycle", ctypes.c_int64),
    ]


def settings_of(view: "ctypes.Array[ctypes.c_uint8]", given: MemoryConditions) -> Settings:
    """Conditions as the harness takes them, with the bytes of memory."""
    error = given.error
    return Settings(
        memory=ctypes.addressof(view),
        memory_bytes=len(view),
        seed=given.seed,
        error_beat=error.beat if error else -1,
        latency=given.latency,
        jitter=given.jitter,
        stall=int(given.stall * 2**32),
        error_direction=_DIRECTIONS[error.direction] if error else 0,
        error_response=_RESPONSES[error.response] if error else 0,
    )
