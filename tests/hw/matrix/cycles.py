"""Closed-form cycle counts of a product on a stand-alone matrix unit.

Derived from the timing that the components state and used by no simulator: tests compare it with
the emitted Verilog, to the cycle.
"""

from hw.arch.checks import require_int
from hw.arch.errors import BadInputError, shown
from hw.numeric.division import ceil_div

__all__ = ["product_cycles", "scale_sim_cycles"]


_MOST = 1 << 32


def _check(dataflow: str, m: int, n: int, k: int, rows: int, columns: int) -> None:
    if dataflow not in ("ws", "os", "is"):
        raise BadInputError(f"Dataflow must be one of ws, os, is, not {shown(dataflow)}")
    extents = {"M": m, "N": n, "K": k, "Rows": rows, "Columns": columns}
    for noun, value in extents.items():
        require_int(noun, value, 1, _MOST)


def product_cycles(
    dataflow: str,
    m: int,
    n: int,
    k: int,
    *,
    rows: int,
    columns: int,
    latency: int = 1,
    products: int = 1,
    accumulator_rows: int = 512,
    adder: str = "top",
) -> int:
    """Cycles from the first operand's handshake to the last result's, if no stream stalls.

    Weight-stationary, M is split into ``B`` blocks of m rows each, which stream past each of ``G``
    groups of columns; each such visit has ``T`` tiles along the inner extent. A tile takes the
    greatest of its rows, the swap distance of the next tile and, between tiles of one visit, the
    accumulate latency of a sum:

    ======================  ==================================================
    first vector            after R cycles, at least 3: the first tile is loaded
    last tile of a visit    max(m, S), S = max(R, 3, (R - 1)·(L - 1) + C)
    other tiles             max(m, S, R·L + 2), or max(m, S, L + 2) with an adder
                            below each column
    last vector             after the m vectors of its tile
    last result             R·L + C + 4 cycles later, and L + 1 with such an adder
    ======================  ==================================================

    Input-stationary is the same with M and N exchanged. Output-stationary, a tile of R·L × C sums
    takes K·L / ``products`` cycles, but at least R·L, since one row of results leaves per cycle.
    The last result comes R·L + R + C + L + 3 cycles after the last vector.

    Parameters
    ----------
    dataflow : str
        ``"ws"``, ``"os"`` or ``"is"``.
    m, n, k : int
        Extents of the product.
    rows, columns, latency : int
        The array: R, C, L.
    products : int
        Products per cell and cycle: 1 of 16-bit operands, 2 of 8-bit, 4 of 4-bit ones.
    accumulator_rows : int
        Greatest number of rows of a block; unlimited if one tile holds the whole inner extent.
    adder : str
        ``"top"`` or ``"bottom"``: where sums of successive tiles are added.

    Raises
    ------
    BadInputError
        A parameter is outside its domain.
    """
    _check(dataflow, m, n, k, rows, columns)
    require_int("Latency", latency, 1, _MOST)
    require_int("Products", products, 1, _MOST)
    require_int("Accumulator rows", accumulator_rows, 1, _MOST)
    if adder not in ("top", "bottom"):
        raise BadInputError(f"Adder must be one of top, bottom, not {shown(adder)}")
    if dataflow == "os":
        steps = ceil_div(k, products) * latency
        tiles = ceil_div(m, rows * latency) * ceil_div(n, columns)
        last = rows * latency + rows + columns + latency + 3
        return 1 + (tiles - 1) * max(steps, rows * latency) + steps + last
    moving, other = (n, m) if dataflow == "is" else (m, n)
    tiles = ceil_div(k, rows * products)
    groups = ceil_div(other, columns)
    blocks = 1 if tiles == 1 else ceil_div(moving, accumulator_rows)
    swap = max(rows, 3, (rows - 1) * (latency - 1) + columns)
    edges = [index * moving // blocks for index in range(blocks + 1)]
    way = rows * latency + columns + 4
    former = rows * latency + 2
    if adder == "bottom":
        way += latency + 1
        former = latency + 2
    cycles = max(rows, 3)
    for start, stop in zip(edges[:-1], edges[1:], strict=True):
        height = stop - start
        cycles += groups * ((tiles - 1) * max(height, swap, former) + max(height, swap))
    return cycles - max(height, swap) + height + way


def scale_sim_cycles(dataflow: str, m: int, n: int, k: int, *, rows: int, columns: int) -> int:
    """Compute cycles by SCALE-Sim v3's model for the same product on an array of this size.

    Each fold loads its stationary tile, streams and drains; folds do not overlap.

    Raises
    ------
    BadInputError
        A parameter is outside its domain.
    """
    _check(dataflow, m, n, k, rows, columns)
    if dataflow == "os":
        return ceil_div(m, rows) * ceil_div(n, columns) * (k + rows + columns - 2) - 1
    moving, other = (n, m) if dataflow == "is" else (m, n)
    folds = ceil_div(k, rows) * ceil_div(other, columns)
    return folds * (2 * rows + columns + moving - 2) - 1
