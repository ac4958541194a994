"""Where an element lies in the scratchpad: the conflict-free map, in Python."""

from amaranth.lib import enum

from hw.arch.errors import BadInputError

__all__ = [
    "ELEMENT_BYTES",
    "Access",
    "bit_reverse",
    "lane_count",
    "locate",
    "piece_positions",
    "rows_log2",
]

#: Element widths in bytes; a configuration word holds the index.
ELEMENT_BYTES = (1, 2, 4)


class Access(enum.Enum, shape=2):
    """Shape of the piece of a block that one vector access moves."""

    #: One row.
    ROW = 0
    #: Two rows, half a row each.
    TWO_ROWS = 1
    #: Four rows, a quarter of a row each.
    FOUR_ROWS = 2
    #: One column.
    COLUMN = 3


def bit_reverse(value: int, bits: int) -> int:
    """Number whose bit ``bits - 1 - i`` is bit i of the value."""
    return sum((value >> i & 1) << (bits - 1 - i) for i in range(bits))


def lane_count(*, width_bits: int, element_bytes: int) -> int:
    """Elements of one vector, n: also rows and columns of a block."""
    return width_bits // 8 // element_bytes


def rows_log2(access: Access, *, lanes: int) -> int:
    """Logarithm of the rows of a piece.

    Raises
    ------
    BadInputError
        If the vector has fewer lanes than the piece has rows.
    """
    most = lanes.bit_length() - 1
    rows = most if access is Access.COLUMN else int(access.value)
    if rows > most:
        raise BadInputError(
            f"Access {access.name} must have at least {1 << rows} lanes, not {lanes}"
        )
    return rows


def locate(position: int, *, lanes: int) -> tuple[int, int]:
    """Bank group of an element position, and the address in each of its banks."""
    bits = lanes.bit_length() - 1
    column = position % lanes
    row = position // lanes % lanes
    return column ^ bit_reverse(row, bits), position // lanes


def piece_positions(position: int, *, lanes: int, rows_log2: int) -> tuple[int, ...]:
    """Element position of each lane of the piece of ``2**rows_log2`` rows that starts there.

    Raises
    ------
    BadInputError
        If the piece is not aligned to its own size.
    """
    columns = lanes >> rows_log2
    row, column = divmod(position, lanes)
    if row % (1 << rows_log2) or column % columns:
        raise BadInputError(
            f"Position must start a piece of {1 << rows_log2} by {columns} elements, not {position}"
        )
    return tuple(position + i * lanes + j for i in range(1 << rows_log2) for j in range(columns))
