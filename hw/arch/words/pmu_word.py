"""Program word of a PMU, and the conflict-free mapping of elements to scratchpad banks."""

import functools

from amaranth.lib import data, enum

from hw.arch.errors import BadInputError
from hw.arch.limits import MAX_MODULUS
from hw.arch.loops import COUNT_BITS, chain_layout
from hw.arch.words.word_layout import WordLayout

__all__ = [
    "ACCESS_OF_ROWS",
    "ELEMENT_BYTES",
    "Access",
    "bit_reverse",
    "lane_count",
    "piece_positions",
    "require_positions",
    "rows_log2",
    "ADDRESS_LOOPS",
    "ENGINE_LOOPS",
    "INDEX_BYTES",
    "IndexUse",
    "Level",
    "TokenSource",
    "engine_layout",
    "index_layout",
    "pmu_layout",
]

#: Element widths in bytes; a program word holds the index.
ELEMENT_BYTES = (1, 2, 4)
#: Address loops inside a slot.
ADDRESS_LOOPS = 4
#: Bytes of an index: a vector of the index stream holds as many as it has 32-bit words.
INDEX_BYTES = 4


class Access(enum.Enum, shape=2):
    """Shape of the block of elements that one vector access moves."""

    #: One row.
    ROW = 0
    #: Two rows, half a row each.
    TWO_ROWS = 1
    #: Four rows, a quarter of a row each.
    FOUR_ROWS = 2
    #: One column.
    COLUMN = 3


#: Accesses to pieces of rows, by the number of rows.
ACCESS_OF_ROWS = {1: Access.ROW, 2: Access.TWO_ROWS, 4: Access.FOUR_ROWS}


def bit_reverse(value: int, bits: int) -> int:
    """Number whose bit ``bits - 1 - i`` is bit i of the value."""
    return sum((value >> i & 1) << (bits - 1 - i) for i in range(bits))


def lane_count(*, width_bits: int, element_bytes: int) -> int:
    """Elements per vector, n: also rows and columns of a block."""
    return width_bits // 8 // element_bytes


def rows_log2(access: Access, *, lanes: int) -> int:
    """Logarithm of the rows of an access.

    Raises
    ------
    BadInputError
        If the vector has fewer lanes than the access has rows.
    """
    most = lanes.bit_length() - 1
    rows = most if access is Access.COLUMN else int(access.value)
    if rows > most:
        raise BadInputError(
            f"Access {access.name} must have at least {1 << rows} lanes, not {lanes}"
        )
    return rows


def piece_positions(position: int, *, lanes: int, rows_log2: int) -> tuple[int, ...]:
    """Element position of each lane of an access with ``2**rows_log2`` rows that starts there.

    Raises
    ------
    BadInputError
        If the access is not aligned to its own size.
    """
    columns = lanes >> rows_log2
    row, column = divmod(position, lanes)
    if row % (1 << rows_log2) or column % columns:
        raise BadInputError(
            f"Position must start a piece of {1 << rows_log2} by {columns} elements, not {position}"
        )
    return tuple(position + i * lanes + j for i in range(1 << rows_log2) for j in range(columns))


def require_positions(
    walks: list[tuple[int, int, int]], *, elements: int, lanes: int, rows_log2: int
) -> None:
    """Refuse positions outside a PMU, or those that do not start a piece.

    Parameters
    ----------
    walks : list of (int, int, int)
        Strides whose multiples add up to the positions, and the least and greatest factor of each.
    elements : int
        Elements of the PMU.
    lanes, rows_log2 : int
        Elements of a vector, and the logarithm of the rows of its piece.
    """
    for choose in (min, max):
        position = sum(choose(stride * first, stride * last) for stride, first, last in walks)
        if not 0 <= position < elements:
            raise BadInputError(
                f"Position must be below the PMU's {elements} elements, not {position}"
            )
    # Whether a piece starts at a position repeats with every block of its rows.
    block = lanes << rows_log2
    columns = lanes >> rows_log2
    if any(p % columns or p >= lanes for p in _remainders(walks, block)):
        for position in sorted(_remainders(walks, elements)):
            piece_positions(position, lanes=lanes, rows_log2=rows_log2)


def _remainders(walks: list[tuple[int, int, int]], modulus: int) -> set[int]:
    """Remainders of all positions of walks."""
    found = {0}
    for stride, first, last in walks:
        if stride % modulus:
            steps = range(first, min(last, first + modulus - 1) + 1)
            found = {(p + stride * i) % modulus for p in found for i in steps}
    return found


class Level(enum.IntEnum):
    """Positions of the loops in an engine's nest; address loop i is at ``ADDRESS + i``."""

    LAUNCHES = 0
    WINDOWS = 1
    REPEATS = 2
    SLOTS = 3
    ADDRESS = 4


#: Loops of an engine's chain.
ENGINE_LOOPS = Level.ADDRESS.value + ADDRESS_LOOPS


class TokenSource(enum.Enum, shape=3):
    """Event that a token output reports: an engine has filled or freed a slot."""

    OFF = 0
    W0 = 1
    W1 = 2
    R0 = 3
    R1 = 4


class IndexUse(enum.Enum, shape=2):
    """Use of the index stream, which arrives at W1."""

    OFF = 0
    #: Added to the positions that R1 reads.
    GATHER = 1
    #: Added to the positions that W0 writes.
    SCATTER = 2
    #: The same, and int32 elements are added to what is there.
    SCATTER_ADD = 3


@functools.cache
def index_layout(*, position_bits: int) -> WordLayout:
    """Layout of an index program; its packet filter is that of W1."""
    return WordLayout(
        {
            "use": IndexUse,
            "elements": 1,
            "limit": position_bits + 1,
            "shift": range(position_bits),
            "level": range(ADDRESS_LOOPS + 1),
        }
    )


@functools.cache
def engine_layout(*, position_bits: int, slots: int) -> WordLayout:
    """Layout of one engine's program; a level of ``ENGINE_LOOPS + 1`` flags no vector."""
    return WordLayout(
        {
            "enable": 1,
            "buffer": 1,
            "base": position_bits,
            "slot_stride": position_bits,
            "slot_count": range(slots + 1),
            "element": 2,
            "access": Access,
            "chain": chain_layout(
                loops=ENGINE_LOOPS, count_bits=COUNT_BITS, offset_bits=position_bits
            ),
            "last_level": range(ENGINE_LOOPS + 2),
            "final_level": range(ENGINE_LOOPS + 2),
            "limited": 1,
            "limit_loop": range(ENGINE_LOOPS),
            "limit": COUNT_BITS,
            "constant": 32,
            "modulus": range(MAX_MODULUS + 1),
            "index": range(MAX_MODULUS),
        }
    )


@functools.cache
def pmu_layout(*, capacity_bytes: int, slots: int) -> WordLayout:
    """Layout of a PMU's program: engines W0, W1, R0, R1, then token outputs and index stream."""
    position_bits = capacity_bytes.bit_length() - 1
    engine = engine_layout(position_bits=position_bits, slots=slots)
    return WordLayout(
        {
            "engines": data.ArrayLayout(engine, 4),
            "tokens": data.ArrayLayout(TokenSource, 2),
            "index": index_layout(position_bits=position_bits),
        }
    )
