"""Room for vectors in the lanes of a PCU."""

from __future__ import annotations

from hw.numeric.division import ceil_div

__all__ = [
    "ACTIVATION_ROOM",
    "AUXILIARY_ROOM",
    "ROUND_TRIP",
    "kept_groups",
    "result_room",
    "strip_units",
]

#: Vectors of the activation stream that wait in the lanes' FIFO. Packets of other units pass while
#: the lanes work on them.
ACTIVATION_ROOM = 4
#: Vectors of the auxiliary stream that wait in the lanes' FIFO.
AUXILIARY_ROOM = 32
#: Cycles from the reservation of a vector of one group until its room is free again.
ROUND_TRIP = 23
_LEAST_ROOM = 8
_LEAST_KEPT = 64


def result_room(*, width_bits: int, lanes: int) -> int:
    """Vectors of results that may be begun and not yet taken: enough for a group in every cycle.

    Parameters
    ----------
    width_bits : int
        Link width W.
    lanes : int
        Lanes t.
    """
    groups = width_bits // 32 // lanes
    return max(_LEAST_ROOM, ceil_div(ROUND_TRIP, groups) + 1)


def kept_groups(*, width_bits: int, lanes: int) -> int:
    """Groups of t elements that have kept words: a strip, of whole vectors in every form.

    Parameters
    ----------
    width_bits : int
        Link width W.
    lanes : int
        Lanes t.
    """
    return max(_LEAST_KEPT, width_bits // 8 // lanes)


def strip_units(*, width_bits: int, lanes: int) -> int:
    """The same in units of as many elements as a vector has words."""
    return kept_groups(width_bits=width_bits, lanes=lanes) * lanes // (width_bits // 32)
