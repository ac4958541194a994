"""The common face of the back ends: what one is asked, and what it answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from gen.verilog import Design
from hw.config import ChipConfig

__all__ = ["Answer", "Backend", "BuildFigures", "Conditions", "ErrorAt", "Setup"]


@dataclasses.dataclass(frozen=True)
class ErrorAt:
    """The beat that memory answers with an error.

    Parameters
    ----------
    direction : str
        ``"read"`` or ``"write"``.
    beat : int
        Number of the beat, from 0, over all AXI ports of data in the order of time.
    response : str
        ``"slverr"`` or ``"decerr"``.
    """

    direction: str
    beat: int
    response: str


@dataclasses.dataclass(frozen=True)
class Conditions:
    """How memory behaves.

    Parameters
    ----------
    latency : int
        Cycles from a read address to its first beat.
    jitter : int
        Random cycles more, at most.
    stall : float
        Probability that an AXI channel pauses in a cycle.
    error : ErrorAt or None
    """

    latency: int = 100
    jitter: int = 0
    stall: float = 0.0
    error: ErrorAt | None = None


@dataclasses.dataclass(frozen=True)
class Setup:
    """What a back end is opened with.

    Parameters
    ----------
    config : ChipConfig
    conditions : Conditions
    seed : int
        Seed of stalls, jitter and what uninitialised state holds.
    design : Design or None
        Verilog to simulate in place of the chip's own.
    waves : Path or None
        File for waves.
    use_cache : bool
        Whether a finished build of the same content may be taken.
    progress : function or None
        Called now and then with the cycles simulated so far.
    """

    config: ChipConfig
    conditions: Conditions = Conditions()
    seed: int = 1
    design: Design | None = None
    waves: Path | None = None
    use_cache: bool = True
    progress: Callable[[int], None] | None = None


@dataclasses.dataclass(frozen=True)
class BuildFigures:
    """What opening a back end took; None for a part there is not."""

    verilog_sha256: str | None = None
    emit_seconds: float | None = None
    build_seconds: float | None = None
    cache_hit: bool | None = None


@dataclasses.dataclass(frozen=True)
class Answer:
    """How a launch ended; None for what the back end cannot know.

    Members
    -------
    status : str
        ``"done"``, ``"error"`` or ``"hang"``.
    cycles : int
        From the launch write to the last answer to a write.
    error_code, error_detail, error_unit, error_entry : int
        Fields of the registers ERROR and ERROR_ENTRY.
    bytes_read, bytes_written : int
        Bytes that crossed the AXI ports, those of the command processor among them.
    counters : sequence of int
        Words of all units, as `hw.unit_counters` orders them.
    first_mac : int
        Cycles from the launch write to the first product.
    simulated_cycles, seconds
        What the simulation took, that of counters and resets included.
    """

    status: str
    seconds: float
    cycles: int | None = None
    error_code: int = 0
    error_detail: int = 0
    error_unit: int = 0
    error_entry: int = 0
    bytes_read: int | None = None
    bytes_written: int | None = None
    counters: Sequence[int] | None = None
    first_mac: int | None = None
    simulated_cycles: int | None = None


class Backend(Protocol):
    """A chip that is ready to be launched."""

    figures: BuildFigures

    def launch(
        self, memory: bytearray, *, list_address: int, entries: int, max_cycles: int
    ) -> Answer:
        """Run a launch list; `memory` is changed as the chip changes it."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
