"""Trace of a launch: the events that the command processor recorded, read through its registers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from hw.arch.launch import TraceKind, trace_layout

__all__ = ["TraceEvent", "read_trace", "trace_event"]


@dataclasses.dataclass(frozen=True)
class TraceEvent:
    """Event of a launch.

    Parameters
    ----------
    kind : TraceKind
    entry : int
        Entry of the launch list, from 0.
    cycle : int
        Cycle since the launch write, as the register ``CYCLES`` counts.
    """

    kind: TraceKind
    entry: int
    cycle: int


def trace_event(word: int) -> TraceEvent:
    """Event of the 64 bits of a trace event."""
    fields: Any = trace_layout.unpack(word)
    return TraceEvent(fields["kind"], fields["entry"], fields["cycle"])


def read_trace(read: Callable[[str], int]) -> tuple[TraceEvent, ...]:
    """Take every event out of the ring, oldest first.

    Parameters
    ----------
    read : function
        Reads a register by its name.
    """
    events = []
    while low := read("TRACE_LO"):
        events.append(trace_event(low | read("TRACE_HI") << 32))
    return tuple(events)
