"""Status and measurements of one launch of a native model."""

from __future__ import annotations

import dataclasses
from typing import Literal

from sim.launch_trace import TraceEvent
from sim.native.conditions import PortTraffic
from sim.native.samples import KernelSamples

__all__ = ["ChipRun"]


@dataclasses.dataclass(frozen=True)
class ChipRun:
    """Status and measurements of one launch.

    Members
    -------
    status : str
        ``"done"``, ``"error"`` or ``"hang"``.
    cycles : int
        Cycles from the handshake of the launch write to the last cycle in which the chip is busy,
        counted by the harness; after a hang, to the end of the run.
    error_code, error_detail, error_unit, error_entry : int
        Registers ``ERROR`` and ``ERROR_ENTRY``.
    errors_met : int
        Planted errors of ``MemoryConditions.errors`` that occurred.
    bytes_read, bytes_written : int
        R beats over all ports × bytes per beat; strobed bytes of W.
    counters : list of int
        Counter words in the order of ``COUNTER_SELECT``.
    counter_steps : list of int
        After a hang: increment of each counter over 64 cycles, which shows what a unit waits for.
    first_mac : int or None
        Register ``FIRST_MAC``, if the register map has it.
    registers_cycles, launch_cycles, entry_begin : int
        Registers ``CYCLES``, ``LAUNCH_CYCLES`` and ``ENTRY_BEGIN``.
    trace : tuple of TraceEvent
        Events that the command processor recorded.
    simulated_cycles : int
        All simulated cycles, including register accesses.
    seconds : float
        Wall time of the run.
    hang_reason : str
        Why the watchdog ended the run.
    ports : tuple of PortTraffic
        The AGCUs' ports, then the command processor's.
    samples : tuple of KernelSamples
        Of each kernel, if samples were asked for.
    launched : int
        Cycle of the launch write, counted as the samples' cycles are.
    """

    status: Literal["done", "error", "hang"]
    cycles: int
    error_code: int
    error_detail: int
    error_unit: int
    error_entry: int
    errors_met: int
    bytes_read: int
    bytes_written: int
    counters: list[int]
    counter_steps: list[int]
    first_mac: int | None
    registers_cycles: int
    launch_cycles: int
    entry_begin: int
    trace: tuple[TraceEvent, ...]
    simulated_cycles: int
    seconds: float
    hang_reason: str
    ports: tuple[PortTraffic, ...]
    samples: tuple[KernelSamples, ...] = ()
    launched: int = 0
