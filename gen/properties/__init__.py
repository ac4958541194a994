"""Formal properties of the hardware blocks, each a harness around its block."""

from gen.formal import Property
from gen.properties.arrays import ARRAY_PROPERTIES
from gen.properties.barriers import BarrierCompletes
from gen.properties.burst_bounds import BurstsStayInside
from gen.properties.streams import (
    BufferIsAQueue,
    FilterTakesItsOwn,
    ForkGivesOnce,
    MergeRotates,
)

__all__ = ["PROPERTIES"]

_SPLITTER = {"width_bits": 64, "address_bits": 20, "streams": 2, "burst_beats": 256}
_BARRIER = {"arrivals": 3, "tx_bytes": 7}

#: Every property, in the order of proof.
PROPERTIES = (
    Property("stream", "a buffer is a queue of two", {"payload_bits": 2}, BufferIsAQueue),
    Property(
        "fork", "each branch gets each payload once", {"branches": 3}, lambda: ForkGivesOnce(3)
    ),
    Property(
        "merge",
        "packets keep the rotation",
        {"sources": 3, "turns": 3},
        lambda: MergeRotates(3, 3),
    ),
    Property(
        "packet_filter",
        "packet i passes if i mod P is the index",
        {"width_bits": 2},
        lambda: FilterTakesItsOwn(2),
    ),
    Property(
        "barrier",
        "a phase completes exactly when both counts are zero",
        _BARRIER,
        lambda: BarrierCompletes(**_BARRIER),
    ),
    Property(
        "tma",
        "bursts cross no 4 KiB boundary and add up",
        _SPLITTER,
        lambda: BurstsStayInside(**_SPLITTER),
    ),
    *ARRAY_PROPERTIES,
)
