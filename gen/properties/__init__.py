"""Formal properties of the hardware blocks, each a harness around its block."""

from gen.formal import Property
from gen.properties.arrays import ARRAY_PROPERTIES
from gen.properties.axi_reads import ReadsKeepAxi
from gen.properties.axi_writes import WritesKeepAxi
from gen.properties.bank_phases import BankCompletes
from gen.properties.bank_waits import WaitsEnd
from gen.properties.barriers import BarrierCompletes
from gen.properties.burst_bounds import BurstsStayInside
from gen.properties.interlocks import PagesHaveOneHolder
from gen.properties.streams import (
    BufferIsAQueue,
    FilterTakesItsOwn,
    ForkGivesOnce,
    MergeRotates,
)
from gen.properties.tma import TMA_PROPERTIES
from hw.arch.limits import BARRIER_ARRIVALS, BARRIER_TX_BYTES

__all__ = ["PROPERTIES"]

_SPLITTER = {"width_bits": 64, "address_bits": 20, "streams": 2, "burst_beats": 256}
#: An engine of 64 bits with the longest bursts of AXI4.
_READS = {"width_bits": 64, "address_bits": 48, "burst_beats": 256, "outstanding": 16}
_WRITES = {"width_bits": 64, "address_bits": 13, "most_beats": 2, "outstanding": 3}
_BARRIER = {"arrivals": 3, "tx_bytes": 7}
_BANK = {"barriers": 3} | _BARRIER
#: As wide as a bank can be.
_WIDE = {"barriers": 3, "arrivals": BARRIER_ARRIVALS.high, "tx_bytes": BARRIER_TX_BYTES.high}
#: As many pages as ports: which of them are equal is all that the interlock looks at.
_INTERLOCK = {"ports": 4, "page_bits": 2}
_NO_PHASE = "no phase of a bank is lost, counted twice or skipped"

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
    Property("barrier_bank", _NO_PHASE, _BANK, lambda: BankCompletes(**_BANK)),
    Property("barrier_bank", _NO_PHASE, _WIDE, lambda: BankCompletes(**_WIDE), faults=0),
    Property(
        "barrier_bank",
        "a wait ends once, in time, by what ends it first",
        {"barriers": 3},
        lambda: WaitsEnd(barriers=3),
    ),
    Property(
        "tma",
        "bursts cross no 4 KiB boundary and add up",
        _SPLITTER,
        lambda: BurstsStayInside(**_SPLITTER),
    ),
    Property(
        "tma",
        "AR breaks no rule of AXI4",
        _READS,
        lambda: ReadsKeepAxi(**_READS),
        method="PDR",
        faults=0,
    ),
    Property(
        "tma",
        "AW and W break no rule of AXI4",
        _WRITES,
        lambda: WritesKeepAxi(**_WRITES),
        method="PDR",
        faults=0,
    ),
    *TMA_PROPERTIES,
    Property(
        "reduction_interlock",
        "a page has one holder, and those that wait are served in order",
        _INTERLOCK,
        lambda: PagesHaveOneHolder(**_INTERLOCK),
        method="PDR",
    ),
    *ARRAY_PROPERTIES,
)
