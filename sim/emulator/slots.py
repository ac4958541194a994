"""Access positions of PMU engines, as arrays of element positions and byte numbers."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from hw.arch.pmu import EngineProgram
from hw.arch.words.pmu_word import Level, bit_reverse, lane_count, rows_log2
from sw.prove.unrolled_loops import address_walk, plain_counts, walk

__all__ = ["SlotPattern", "bytes_of", "slot_pattern", "turn_positions"]

Ints = npt.NDArray[np.int64]


def _piece(engine: EngineProgram, width_bits: int) -> Ints:
    """Lane positions of a piece, relative to its first lane."""
    lanes = lane_count(width_bits=width_bits, element_bytes=engine.element_bytes)
    rows = 1 << rows_log2(engine.access, lanes=lanes)
    across = np.arange(lanes // rows)
    return (np.arange(rows)[:, np.newaxis] * lanes + across).ravel()


@dataclasses.dataclass(frozen=True)
class SlotPattern:
    """Access pattern of an engine that is the same in all slots.

    Parameters
    ----------
    windows, repeats, slots : int
        Windows, repetitions of each window, and slots per window.
    positions : (repeats, vectors, lanes) array
        Positions relative to the beginning of slot 0.
    """

    windows: int
    repeats: int
    slots: int
    positions: Ints


def slot_pattern(engine: EngineProgram, width_bits: int) -> SlotPattern | None:
    """Access pattern of an engine; None if it is not the same in all slots."""
    counts = plain_counts(engine)
    outer = (engine.launches, engine.windows, engine.slots)
    if counts is None or any(loop.stride for loop in outer):
        return None
    repeats = counts[Level.REPEATS]
    steps = walk((engine.repeats, *engine.chain.loops[Level.ADDRESS :]))
    offsets = engine.ring.base + steps.offset.reshape(repeats, -1, 1)
    return SlotPattern(
        counts[Level.LAUNCHES] * counts[Level.WINDOWS],
        repeats,
        counts[Level.SLOTS],
        offsets + _piece(engine, width_bits),
    )


def turn_positions(engine: EngineProgram, width_bits: int, turns: Ints) -> Ints:
    """Positions at every step of an engine, given the turn number of each step."""
    ring = engine.ring
    base = ring.base + turns % ring.count * ring.stride + address_walk(engine).offset
    positions: Ints = base[:, np.newaxis] + _piece(engine, width_bits)
    return positions


def bytes_of(positions: Ints, element_bytes: int, width_bits: int) -> Ints:
    """Byte numbers (address × banks + bank) of elements, in an additional last axis."""
    lanes = lane_count(width_bits=width_bits, element_bytes=element_bytes)
    bits = lanes.bit_length() - 1
    reverse = np.array([bit_reverse(row, bits) for row in range(lanes)])
    address, column = positions // lanes, positions % lanes
    group = column ^ reverse[address % lanes]
    first = address * (width_bits // 8) + group * element_bytes
    numbers: Ints = first[..., np.newaxis] + np.arange(element_bytes)
    return numbers
