"""AXI4 memory of a native model: bytes shared with numpy, its timing, and what it has counted."""

import ctypes
import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["CHANNELS", "MemoryTiming", "NativeMemory", "Violation"]

#: Channels of an AXI4 port, in the order of the counts.
CHANNELS = ("AR", "R", "AW", "W", "B")

Bytes = npt.NDArray[np.uint8]


class Violation(AssertionError):
    """A broken promise of the design: an access not allowed, an assertion, a changed offer."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MemoryTiming:
    """Timing of a memory, and what of it is drawn at random.

    Parameters
    ----------
    latency, jitter : int
        Cycles from an address to its first data, and from the last data of a write to its
        response; up to ``jitter`` more at random.
    stalls : sequence of float
        Probability per cycle that the memory's side of a channel waits, by channel of `CHANNELS`.
    interleaves : bool
        Read data of bursts of different IDs come interleaved, in any order.
    early_reads : bool
        Data read are of the cycle of their address; otherwise of the cycle before they are shown.
    late_writes : bool
        A write is visible at its response; otherwise at its last data.
    """

    latency: int = 10
    jitter: int = 0
    stalls: Sequence[float] = (0.0,) * len(CHANNELS)
    interleaves: bool = False
    early_reads: bool = False
    late_writes: bool = False


class _Region(ctypes.Structure):
    _fields_ = [
        ("start", ctypes.c_uint64),
        ("end", ctypes.c_uint64),
        ("code", ctypes.c_uint32),
    ]


class _State(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("data", "readable", "writable", "failing")),
        *((name, ctypes.c_uint64) for name in ("origin", "size", "failing_count", "seed")),
        *((name, ctypes.c_uint32) for name in ("latency", "jitter")),
        ("stall", ctypes.c_uint32 * len(CHANNELS)),
        *((name, ctypes.c_uint32) for name in ("interleaves", "early_reads", "late_writes")),
        *((name, ctypes.c_int64 * len(CHANNELS)) for name in ("beats", "first", "last")),
        *((name, ctypes.c_int64) for name in ("owed", "most_reads", "most_writes")),
        ("violation", ctypes.c_char * 160),
    ]


class NativeMemory:
    """Memory from address ``origin`` on, for `StreamModel.attach`.

    Parameters
    ----------
    data : array of uint8
        The bytes; writes change them.
    readable, writable : array of bool, optional
        Whether a byte may be accessed, by default all: a beat read has at least one readable
        byte, a byte written is writable. Another access ends the run by a `Violation`.
    origin : int
        Address of the first byte, a multiple of 4,096.
    timing : MemoryTiming
    seed : int
    failing : sequence of (start, end, response)
        Addresses whose beats, and bursts of a write, are answered with an error. Such writes
        are done.

    Members
    -------
    beats, first, last : dict of str to int
        Transfers by channel, and the cycles of the first and the last.
    idle : dict of str to int
        Cycles without a transfer, by channel, between the first and the last.
    owed : int
        Bursts without their last data or response.
    most_reads, most_writes : int
        Bursts outstanding at most.
    """

    def __init__(
        self,
        data: Bytes,
        *,
        readable: npt.NDArray[np.bool_] | None = None,
        writable: npt.NDArray[np.bool_] | None = None,
        origin: int = 0,
        timing: MemoryTiming = MemoryTiming(),
        seed: int = 0,
        failing: Sequence[tuple[int, int, int]] = (),
    ) -> None:
        # What the structure points to stays alive with it.
        everything = np.ones(len(data), np.bool_)
        self._kept = [
            data,
            everything if readable is None else np.ascontiguousarray(readable, np.bool_),
            everything if writable is None else np.ascontiguousarray(writable, np.bool_),
        ]
        self._failing = (_Region * (len(failing) + 1))(*(_Region(*each) for each in failing))
        self.state = _State(
            *(each.ctypes.data for each in self._kept),
            ctypes.addressof(self._failing),
            *(origin, len(data), len(failing), seed),
            *(timing.latency, timing.jitter),
            (ctypes.c_uint32 * len(CHANNELS))(*(int(each * (2**32 - 1)) for each in timing.stalls)),
            *(timing.interleaves, timing.early_reads, timing.late_writes),
        )

    def _by_channel(self, name: str) -> dict[str, int]:
        return dict(zip(CHANNELS, getattr(self.state, name)))

    @property
    def beats(self) -> dict[str, int]:
        return self._by_channel("beats")

    @property
    def first(self) -> dict[str, int]:
        return self._by_channel("first")

    @property
    def last(self) -> dict[str, int]:
        return self._by_channel("last")

    @property
    def idle(self) -> dict[str, int]:
        first, last, beats = self.first, self.last, self.beats
        return {
            name: last[name] - first[name] + 1 - count for name, count in beats.items() if count
        }

    @property
    def owed(self) -> int:
        return int(self.state.owed)

    @property
    def most_reads(self) -> int:
        return int(self.state.most_reads)

    @property
    def most_writes(self) -> int:
        return int(self.state.most_writes)

    @property
    def violation(self) -> str:
        """The access that was not allowed; empty if there was none."""
        return bytes(self.state.violation).decode()
