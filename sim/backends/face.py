"""The common face of the back ends: what one is asked, and what it answers."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from gen.verilog import Design
from hw.arch.config import ChipConfig
from sim.closing import Closing
from sim.native.memory import MemoryConditions
from sim.progress import Progress

__all__ = ["Answer", "Backend", "BuildFigures", "Setup"]


@dataclasses.dataclass(frozen=True)
class Setup:
    """What a back end is opened with.

    Parameters
    ----------
    config : ChipConfig
    conditions : MemoryConditions
        How memory behaves; its seed is also that of what uninitialised state holds.
    design : Design or None
        Verilog to simulate in place of the chip's own.
    waves : Path or None
        File for waves.
    use_cache : bool
        Whether a finished build of the same content may be taken.
    progress : Progress
        Shows what is done and how far it is.
    """

    config: ChipConfig
    conditions: MemoryConditions = MemoryConditions()
    design: Design | None = None
    waves: Path | None = None
    use_cache: bool = True
    progress: Progress = Progress()


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
        From the launch write to the last cycle in which the chip is busy.
    launch_cycles : int
        Cycles of the last entry of the list outside its kernel.
    entry_begin : int
        Cycle, counted from the launch write, in which the entry before the last ended; 0 if there
        is none.
    error_code, error_detail, error_unit, error_entry : int
        Fields of the registers ERROR and ERROR_ENTRY.
    bytes_read, bytes_written : int
        Bytes that crossed the AXI ports, those of the command processor among them.
    counters : sequence of int
        Words of all units, as `hw.arch.counters` orders them.
    first_mac : int
        Cycles from the launch write to the first product.
    simulated_cycles, seconds
        What the simulation took, reading of registers and resets included.
    error_met : bool
        Whether the beat that memory should answer with an error came.
    reason : str
        Of a hang: why the watchdog ended it.
    counter_steps : sequence of int
        Of a hang: how far each word of `counters` moves in some cycles more.
    owed : mapping of str to str
        Of a hang: what memory owes, by AXI port.
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


class Backend(Closing, abc.ABC):
    """A chip that is ready to be launched."""

    figures: BuildFigures

    @abc.abstractmethod
    def launch(
        self,
        memory: bytearray,
        *,
        list_address: int,
        entries: int,
        max_cycles: int,
        expected_cycles: int | None = None,
    ) -> Answer:
        """Run a launch list; `memory` is changed as the chip changes it.

        Parameters
        ----------
        memory : bytearray
        list_address, entries : int
            The launch list.
        max_cycles : int
            Cycles after which the run counts as hung.
        expected_cycles : int, optional
            Cycles that it is expected to take, for progress.
        """
