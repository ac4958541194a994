"""Chains with joined phases, by the work of the PCUs of a chip."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from hw.arch.config import ChipConfig
from hw.arch.lanes.phase_word import PHASES
from sw.lane_codes.joined_codes import KnownJoins, cycles_per_group, joined_codes
from sw.lane_codes.lane_code import LaneCode

__all__ = ["balanced_codes"]


def balanced_codes(
    codes: Sequence[LaneCode], outputs: Collection[str], config: ChipConfig
) -> list[tuple[LaneCode, ...]]:
    """The chain, and those of it with joined phases, by the work of the PCUs of a chip: best first.

    A chain of more programs than there are PCUs is left out where parts take less time: for one of
    a single program, with what passes between them in memory.

    Parameters
    ----------
    codes : sequence of LaneCode
        Chain of programs of one phase each.
    outputs : collection of str
        Values that are stored.
    config : ChipConfig
    """
    known: KnownJoins = {}
    chains, pcus = _chains(codes, outputs, known), config.pcu_count
    limits = dict.fromkeys((False, True), math.inf)
    if len(codes) > pcus:
        # Parts of as many programs as there are PCUs, and one of the others.
        whole, rest = divmod(len(codes), pcus)
        limits[False] = whole + (1 / (pcus // rest) if rest else 0)
        if any(len(each) == 1 for each in chains):
            limits[True] = _cycles_in_parts(codes, outputs, config, known)
    found = [each for each in chains if _cycles(each, config) <= limits[len(each) == 1]]
    # One that does not fit says why.
    return sorted(found, key=lambda each: _cycles(each, config)) or [tuple(codes)]


def _chains(
    codes: Sequence[LaneCode], outputs: Collection[str], known: KnownJoins
) -> list[tuple[LaneCode, ...]]:
    """The chain, with more and more phases of a program joined."""
    found: list[tuple[LaneCode, ...]] = []
    for most in range(1, PHASES + 1):
        if (chain := joined_codes(codes, outputs, most, known=known)) not in found:
            found.append(chain)
    return found


def _cycles(chain: tuple[LaneCode, ...], config: ChipConfig) -> float:
    """Cycles of the lanes of all PCUs for a group of elements."""
    copies = config.pcu_count // len(chain)
    longest = max(cycles_per_group(each, config) for each in chain)
    return longest / copies if copies else math.inf


def _cycles_in_parts(
    codes: Sequence[LaneCode], outputs: Collection[str], config: ChipConfig, known: KnownJoins
) -> float:
    """Cycles for a group of elements of the fastest way to cut a chain into parts, at least two.

    A part takes the time of its lanes or of memory, in which values pass from part to part.
    """
    taken = [{each.source, *each.beside} for each in codes]
    formats = {name: form for code in codes for name, form in code.formats.items()}
    rate = config.pcu.lanes / config.width_bits / config.agcu.count

    def cycles(first: int, end: int) -> float:
        part = codes[first:end]
        made = {each.result for each in part}
        sent = made & set().union(outputs, *taken[end:])
        lanes = min(_cycles(each, config) for each in _chains(part, sent, known))
        moved = set().union(*taken[first:end]) - made, sent
        return max(lanes, *(rate * sum(formats[each].bits for each in values) for values in moved))

    count = len(codes)
    least = [0.0]
    for end in range(1, count + 1):
        firsts = range(end == count, end)
        least.append(min(least[first] + cycles(first, end) for first in firsts))
    return least[-1]
