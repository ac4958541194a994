"""Common interface of the back ends: setup, launch, and the result of a launch."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from gen.design import Design
from hw.arch.config import ChipConfig
from sim.closing import Closing
from sim.native.conditions import MemoryConditions
from sim.native.samples import KernelSamples
from sim.progress import Progress

__all__ = ["Answer", "Backend", "BuildFigures", "LaunchOrder", "Setup"]


@dataclasses.dataclass(frozen=True)
class Setup:
    """Parameters with which a back end is opened.

    Parameters
    ----------
    config : ChipConfig
    conditions : MemoryConditions
        Memory timing and errors; its seed also determines the initial values of state without
        reset.
    design : Design or None
        Verilog to simulate instead of emitting it.
    waves : Path or None
        File for waveforms.
    use_cache : bool
        Whether a cached build of the same content may be used.
    progress : Progress
        Display of the steps under way.
    sample_every : int
        Cycles from one sample of the counters to the next, on the back end ``rtl``; 0 for none.
    """

    config: ChipConfig
    conditions: MemoryConditions = MemoryConditions()
    design: Design | None = None
    waves: Path | None = None
    use_cache: bool = True
    progress: Progress = Progress()
    sample_every: int = 0


@dataclasses.dataclass(frozen=True)
class BuildFigures:
    """Times and cache hit of opening a back end; None for steps it does not have."""

    verilog_sha256: str | None = None
    emit_seconds: float | None = None
    build_seconds: float | None = None
    cache_hit: bool | None = None


@dataclasses.dataclass(frozen=True)
class Answer:
    """Status and measurements of a launch; None for values the back end does not provide.

    Members
    -------
    status : str
        ``"done"``, ``"error"`` or ``"hang"``.
    cycles : int
        Cycles from the launch write to the last cycle in which the chip is busy.
    launch_cycles : int
        Cycles of the last entry of the list outside its kernel.
    entry_begin : int
        Cycle, counted from the launch write, in which the last entry but one ended; 0 for a single
        entry.
    error_code, error_detail, error_unit, error_entry : int
        Fields of the registers ERROR and ERROR_ENTRY.
    bytes_read, bytes_written : int
        Bytes over all AXI ports, including that of the command processor.
    counters : sequence of int
        Counter words of all units, in the order of `hw.arch.counters`.
    first_mac : int
        Cycles from the launch write to the first product.
    simulated_cycles, seconds
        Cost of the simulation, including register reads and resets.
    error_met : bool
        Whether the beat with a planted memory error occurred.
    reason : str
        After a hang: why the watchdog ended the launch.
    counter_steps : sequence of int
        After a hang: increment of each word of `counters` over some further cycles.
    owed : mapping of str to str
        After a hang: outstanding responses of memory, by AXI port.
    samples : tuple of KernelSamples
        Samples of each kernel, if they were asked for.
    launched : int
        Cycle of the launch write, counted as the samples' cycles are.
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
    launch_cycles: int | None = None
    entry_begin: int = 0
    simulated_cycles: int | None = None
    error_met: bool = False
    reason: str = ""
    counter_steps: Sequence[int] = ()
    owed: Mapping[str, str] = dataclasses.field(default_factory=dict)
    samples: tuple[KernelSamples, ...] = ()
    launched: int = 0


@dataclasses.dataclass(frozen=True)
class LaunchOrder:
    """A launch list to run.

    Parameters
    ----------
    list_address, entries : int
        The list.
    max_cycles : int
        Cycles after which the launch counts as a hang, on a back end with timing.
    expected_cycles : int or None
        Expected cycles, for the display of progress.
    regions : tuple of (int, int)
        First byte, and the one after the last, of what the launch may touch; by default all of
        memory. A chip's RTL ends at the first beat in none of them.
    """

    list_address: int
    entries: int
    max_cycles: int
    expected_cycles: int | None = None
    regions: tuple[tuple[int, int], ...] = ()


class Backend(Closing, abc.ABC):
    """Abstract back end: a chip that is ready for launches.

    Parameters
    ----------
    setup : Setup

    Raises
    ------
    MissingToolError
        If a tool of the build is missing.
    RuntimeError
        If the build fails.
    """

    figures: BuildFigures

    @abc.abstractmethod
    def launch(self, memory: bytearray, order: LaunchOrder) -> Answer:
        """Run a launch list; `memory`, which is the whole memory, is updated in place."""
