"""The configuration word of a PMU: its layout and the names of its values."""

from amaranth.lib import data, enum

from hw.arch.limits import MAX_MODULUS
from hw.arch.loops import chain_layout
from hw.arch.scratchpad import Access

__all__ = [
    "ADDRESS_LOOPS",
    "COUNT_BITS",
    "LOOPS",
    "Level",
    "TokenSource",
    "engine_layout",
    "pmu_layout",
]

#: Loops inside a slot.
ADDRESS_LOOPS = 4
#: Bits of a loop's index.
COUNT_BITS = 16


class Level(enum.IntEnum):
    """Positions of the loops in an engine's nest; address loop i stands at ``ADDRESS + i``."""

    LAUNCHES = 0
    WINDOWS = 1
    REPEATS = 2
    SLOTS = 3
    ADDRESS = 4


#: Loops of an engine's chain.
LOOPS = Level.ADDRESS.value + ADDRESS_LOOPS


class TokenSource(enum.Enum, shape=3):
    """What a token output reports: an engine's filled or freed slots."""

    OFF = 0
    W0 = 1
    W1 = 2
    R0 = 3
    R1 = 4


def engine_layout(*, position_bits: int, slots: int) -> data.StructLayout:
    """Layout of one engine's program; a level of ``LOOPS + 1`` marks nothing."""
    return data.StructLayout(
        {
            "enable": 1,
            "buffer": 1,
            "base": position_bits,
            "slot_stride": position_bits,
            "slot_count": range(slots + 1),
            "element": 2,
            "access": Access,
            "chain": chain_layout(loops=LOOPS, count_bits=COUNT_BITS, offset_bits=position_bits),
            "last_level": range(LOOPS + 2),
            "final_level": range(LOOPS + 2),
            "limited": 1,
            "limit_loop": range(LOOPS),
            "limit": COUNT_BITS,
            "constant": 32,
            "modulus": range(MAX_MODULUS + 1),
            "index": range(MAX_MODULUS),
        }
    )


def pmu_layout(*, capacity_bytes: int, slots: int) -> data.StructLayout:
    """Layout of a PMU's configuration: engines W0, W1, R0, R1, then the token outputs."""
    engine = engine_layout(position_bits=capacity_bytes.bit_length() - 1, slots=slots)
    return data.StructLayout(
        {"engines": data.ArrayLayout(engine, 4), "tokens": data.ArrayLayout(TokenSource, 2)}
    )
