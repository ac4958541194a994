"""Memory conditions of a launch (latency, jitter, stalls, planted errors) and port traffic."""

import ctypes
import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

from sim.rules import (
    MOST_SEEDS,
    OPTIONS,
    Integer,
    Rule,
    bad_value,
    optional,
    probability,
)

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
    """A planted memory error, which occurs once.

    Parameters
    ----------
    direction : str
        ``"read"`` or ``"write"`` at the AGCUs' ports, or ``"launch"``: a read of the command
        processor (launch list, arguments, image).
    beat : int
        Index of the beat in that direction, counted over all ports in the order of transfers. A
        failing write burst writes nothing.
    response : str
        ``"slverr"`` or ``"decerr"``.

    Raises
    ------
    BadInputError
        If a parameter is invalid.
    """

    direction: Literal["read", "write", "launch"]
    beat: int
    response: Literal["slverr", "decerr"]

    def __post_init__(self) -> None:
        for name, known in (("direction", _DIRECTIONS), ("response", _RESPONSES)):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in known:
                *most, last = known
                raise bad_value(f"Error {name}", value, f"{', '.join(most)} or {last}")
        _normalize(self, beat=Integer(0, MOST_SEEDS - 1).check("Error beat", self.beat))


@dataclasses.dataclass(frozen=True)
class MemoryConditions:
    """Timing and errors of memory.

    Parameters
    ----------
    latency : int
        Cycles from a read address to its first beat, and from the last beat of a write to its
        response (1 to 65,535).
    jitter : int
        Most random additional cycles per burst; responses stay in order.
    stall : float
        Probability per cycle that memory stalls a channel, independent for each channel of each
        port (from 0 to below 1).
    seed : int
        Seed of all random choices.
    error : ErrorAt, or tuple of up to `MOST_ERRORS` of them, optional
    channel_stalls : tuple of float, optional
        One probability per channel of `CHANNELS`, instead of `stall`.

    Raises
    ------
    BadInputError
        If a number is out of range.
    """

    latency: int = 100
    jitter: int = 0
    stall: float = 0.0
    seed: int = 1
    error: ErrorAt | tuple[ErrorAt, ...] | None = None
    channel_stalls: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        numbers = ("latency", "jitter", "stall", "seed")
        _normalize(
            self, **{name: OPTIONS[name].check(name, getattr(self, name)) for name in numbers}
        )
        _normalize(self, error=_ERRORS.check("error", self.error))
        if self.channel_stalls is not None:
            _normalize(self, channel_stalls=_STALLS.check("channel_stalls", self.channel_stalls))

    @property
    def errors(self) -> tuple[ErrorAt, ...]:
        """All planted errors as a tuple."""
        if self.error is None:
            return ()
        return self.error if isinstance(self.error, tuple) else (self.error,)

    @property
    def stalls(self) -> tuple[float, ...]:
        """Stall probability by channel."""
        if self.channel_stalls is not None:
            return self.channel_stalls
        return (self.stall,) * len(CHANNELS)


def _normalize(made: ErrorAt | MemoryConditions, **values: Any) -> None:
    """Validate the fields, and convert them to plain data."""
    for name, value in values.items():
        object.__setattr__(made, name, value)


def _errors(value: Any) -> Any:
    found = tuple(value) if isinstance(value, list | tuple) else (value,)
    if len(found) > MOST_ERRORS or not all(isinstance(each, ErrorAt) for each in found):
        raise ValueError
    return found if isinstance(value, list | tuple) else value


def _stalls(value: Any) -> tuple[float, ...]:
    found = tuple(probability.check("stall", each) for each in value)
    if len(found) != len(CHANNELS):
        raise ValueError
    return found


_ERRORS = optional(Rule(f"an ErrorAt, or up to {MOST_ERRORS} of them", _errors))
_STALLS = Rule(f"{len(CHANNELS)} probabilities, each {probability.text}", _stalls)


@dataclasses.dataclass(frozen=True)
class PortTraffic:
    """Traffic of one AXI4 port.

    Members
    -------
    name : str
    beats : dict of str to int
        Beats by channel.
    reads_owed, writes_owed : int
        Outstanding bursts.
    """

    name: str
    beats: dict[str, int]
    reads_owed: int
    writes_owed: int


class PlantedError(ctypes.Structure):
    """C structure ``PlantedError`` of the harness; direction 0 means none."""

    _fields_ = [
        ("beat", ctypes.c_int64),
        ("direction", ctypes.c_uint32),
        ("response", ctypes.c_uint32),
    ]


class Region(ctypes.Structure):
    """C structure ``Region`` of the harness."""

    _fields_ = [("first", ctypes.c_uint64), ("end", ctypes.c_uint64)]


class Settings(ctypes.Structure):
    """C structure ``Conditions`` of the harness."""

    _fields_ = [
        ("memory", ctypes.c_void_p),
        ("memory_bytes", ctypes.c_uint64),
        ("regions", ctypes.POINTER(Region)),
        ("region_count", ctypes.c_uint64),
        ("seed", ctypes.c_uint64),
        ("errors", PlantedError * MOST_ERRORS),
        ("latency", ctypes.c_uint32),
        ("jitter", ctypes.c_uint32),
        ("stall", ctypes.c_uint32 * len(CHANNELS)),
    ]


class PortState(ctypes.Structure):
    """C structure ``PortState`` of the harness."""

    _fields_ = [
        ("beats", ctypes.c_int64 * len(CHANNELS)),
        ("written_bytes", ctypes.c_int64),
        ("reads_owed", ctypes.c_int64),
        ("writes_owed", ctypes.c_int64),
    ]


def settings_of(
    view: "ctypes.Array[ctypes.c_uint8]",
    given: MemoryConditions,
    regions: Sequence[tuple[int, int]] = (),
) -> Settings:
    """Convert memory conditions to the harness's structure.

    Parameters
    ----------
    view : array of bytes
        Memory.
    given : MemoryConditions
    regions : sequence of (int, int)
        First byte, and the one after the last, of what a burst may touch; by default all of memory.
    """
    planted = [
        PlantedError(each.beat, _DIRECTIONS[each.direction], _RESPONSES[each.response])
        for each in given.errors
    ]
    return Settings(
        memory=ctypes.addressof(view),
        memory_bytes=len(view),
        regions=(Region * len(regions))(*(Region(*each) for each in regions)) if regions else None,
        region_count=len(regions),
        seed=given.seed,
        errors=(PlantedError * MOST_ERRORS)(*planted),
        latency=given.latency,
        jitter=given.jitter,
        stall=(ctypes.c_uint32 * len(CHANNELS))(*(int(each * 2**32) for each in given.stalls)),
    )
