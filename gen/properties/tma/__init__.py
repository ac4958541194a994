"""Formal properties of the TMA engine: responses, times, addresses inside the tensor."""

from typing import Any

from gen.formal import Property
from gen.properties.tma.box_times import LoadsEnd, StoresEnd, TimeBound
from gen.properties.tma.load_completions import LoadsAreCompleted
from gen.properties.tma.load_responses import ReadsLand
from gen.properties.tma.read_boxes import BoxesAreClipped
from gen.properties.tma.read_reports import (
    BeatsKeepOrder,
    BoxesHaveTheirBeats,
    BurstsKeepOrder,
)
from gen.properties.tma.read_times import BoxesComeInTime
from gen.properties.tma.rows_inside import RowsStayInside
from gen.properties.tma.strobes import StrobesStayInside
from gen.properties.tma.write_reports import WritesAreReported

__all__ = ["TMA_PROPERTIES"]

#: Fields of two bits: sizes and strides of 0 to 3, coordinates of -4 to 3.
_BOXES = {"rank": 2, "bits": 2}
_READS = {"width_bits": 16, "landing_beats": 16, "outstanding": 2}
_QUEUE = {"depth": 4, "bits": 2}
_IDS = {"depth": 4, "outstanding": 4, "read_ids": 2, "longest": 1}
_BURSTS = {"depth": 4, "outstanding": 2, "read_ids": 2, "longest": 2}
_ROWS = {"width_bits": 16, "vectors": 3}
_PACKED = {"width_bits": 256, "vectors": 2}
_LIMITS = {"arrivals": 1, "tx_bytes": 1}
_WRITES = {"width_bits": 16, "outstanding": 2, "beats": 1}
_ENGINE = {"width_bits": 16, "address_bits": 8, "outstanding": 4}
#: Longest stall, and most beats of the box that are checked with it.
_STALLS = ((0, 8), (1, 6), (2, 4))
#: Reading and check of a descriptor; five coordinates of four bytes; an iteration of 33 bits.
_READ_CYCLES = 2 + 5 * 4 + 5
_STROBES = {"width_bits": 16, "address_bits": 8, "vectors": 2}


def _ends(side: str, harness: Any, stalls: int, stall: int, most: int, **sizes: int) -> Property:
    """Bounded check of the time of a box, in traces that are longer than the longest bound."""
    bound = TimeBound(fixed=8, stalls=stalls, stall=stall)
    return Property(
        "tma",
        f"a box is {side} within 8 + {stalls}s + n(1 + s) cycles",
        {"stall": stall, "beats": most, **sizes},
        lambda: harness(**sizes, most=most, bound=bound),
        method="bounded",
        faults=0,
        cycles=bound.cycles(most) + 2,
    )


def _by_pdr(name: str, harness: Any, sizes: dict[str, int], **how: bool) -> Property:
    """Property that PDR proves of a harness of these sizes."""
    return Property("tma", name, sizes, lambda: harness(**sizes, **how), method="PDR", faults=0)


#: Properties of responses and addresses, in the order of proof.
TMA_PROPERTIES = (
    _by_pdr("a box is where its descriptor and coordinates say", BoxesAreClipped, _BOXES),
    Property(
        "tma",
        "no row of a box leaves the tensor",
        _BOXES,
        lambda: RowsStayInside(**_BOXES),
        faults=0,
    ),
    _by_pdr("strobes are those of a row's bytes in the tensor", StrobesStayInside, _STROBES),
    _by_pdr("R never waits, and its errors are kept", ReadsLand, _READS, joined=False),
    _by_pdr("beats leave the landing FIFO once, in order", BeatsKeepOrder, _QUEUE),
    _by_pdr("beats of several IDs leave in the order of their bursts", BurstsKeepOrder, _IDS),
    Property(
        "tma",
        "beats of bursts of several IDs leave in their order",
        _BURSTS,
        lambda: BurstsKeepOrder(**_BURSTS),
        method="bounded",
        faults=0,
        cycles=11,
    ),
    _by_pdr(
        "a box has its own beats and their responses", BoxesHaveTheirBeats, _ROWS, packed=False
    ),
    _by_pdr(
        "a box of packed rows has its own beats and their responses",
        BoxesHaveTheirBeats,
        _PACKED,
        packed=True,
    ),
    _by_pdr("each load is completed once, with its code", LoadsAreCompleted, _LIMITS),
    _by_pdr("each B is taken, and reported with its box", WritesAreReported, _WRITES),
    Property(
        "tma",
        "a command is a box, or refused, within 27 cycles",
        {"cycles": _READ_CYCLES},
        lambda: BoxesComeInTime(cycles=_READ_CYCLES),
        method="bounded",
        faults=0,
        cycles=2 * _READ_CYCLES + 3,
    ),
    *(_ends("loaded", LoadsEnd, 2, *each, **_ENGINE, landing_beats=8) for each in _STALLS),
    *(_ends("stored", StoresEnd, 3, *each, **_ENGINE) for each in _STALLS),
)
