"""Plans of a product that are tried: PCU grids, blocks and slabs."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator

from hw.arch.config import ChipConfig
from hw.arch.descriptor import BASE_ALIGNMENT, MAX_BOX
from hw.arch.errors import BadInputError
from hw.arch.limits import MAX_MODULUS
from hw.numeric.division import ceil_div
from sw.epilogue.collector import store_streams
from sw.fabric.merges import MOST_COLLECTED
from sw.passes.plan import MOST_BLOCKS, Plan, fewest_rows
from sw.passes.product_recognition import Product
from sw.search.constraints import Constraints
from sw.search.segmented_lines import divides_segments

__all__ = ["no_plan", "plans_of", "require_grid"]

#: Lengths of slabs of an operand that are tried.
_SLABS = 5


def _bad(field: str, rule: str, value: object) -> BadInputError:
    return BadInputError(
        f"{field} must be {rule}, not {value}", kind="schedule", where=field, value=value, rule=rule
    )


def _widths(product: Product, config: ChipConfig) -> list[int]:
    """Columns that a PCU grid may have."""
    # The columns of a pass are loaded in one box.
    most = min(config.pcu_count, MAX_MODULUS, MAX_BOX // config.grid_columns)
    # The weights of a pass are whole vectors of a row of B, a part that divides a vector, or, if
    # two passes run at once, whole vectors and a half.
    lanes = config.width_bits // product.fmt.bits
    return [
        each
        for each in range(1, most + 1)
        if not each & (each - 1)
        or not each * config.grid_columns % lanes
        or _paired(product, config, each)
    ]


def _paired(product: Product, config: ChipConfig, col_par: int) -> bool:
    """Whether two passes at once are whole vectors, but one of them is not."""
    width, result = col_par * config.grid_columns, config.width_bits // product.out.bits
    lanes = max(config.width_bits // product.fmt.bits, result)
    if product.turned or product.epilogue is not None:
        return False
    if product.segments > 1 or product.digits[1]:
        return False
    if width < lanes or not width % lanes or 2 * width % lanes or 2 * width > MAX_BOX:
        return False
    # The writers of C take the results of every other PCU.
    return not width % result or result == 2 * config.grid_columns


def _stride(product: Product, config: ChipConfig, col_par: int) -> int:
    """Columns from one pass to the next: as many as its PCUs have, in whole vectors."""
    width = col_par * config.grid_columns
    if _paired(product, config, col_par):
        return 2 * width
    lanes = config.width_bits // product.fmt.bits
    if product.turned:
        return width if product.b_along_k else max(width, lanes)
    return max(width, lanes, config.width_bits // product.narrowest)


def _within_tile(
    widths: list[int], product: Product, config: ChipConfig, constraints: Constraints
) -> list[int]:
    """Columns of a grid whose passes are no wider than the schedule's tile, or the least wide."""
    strides = {each: _stride(product, config, each) for each in widths}
    most = max(constraints.column_tile or MAX_BOX, min(strides.values()))
    return [each for each in widths if strides[each] <= most]


def require_grid(product: Product, config: ChipConfig, constraints: Constraints) -> None:
    """Refuse a schedule whose PCU grid no plan can have.

    Raises
    ------
    BadInputError
        With the grids there are.
    """
    pcus, widths = _grid_pcus(product, config), _widths(product, config)
    rows, columns = constraints.row_par, constraints.col_par
    names = f"of `{product.product}`" if product.product else "of the product"
    if columns is not None and columns not in widths:
        raise _bad(f"col_par {names}", f"one of {', '.join(map(str, widths))}", columns)
    if columns is not None and columns not in _within_tile(widths, product, config, constraints):
        least = _stride(product, config, columns)
        raise _bad(
            f"tile of `{product.loops['column']}`",
            f"at least {least}, the columns of a pass with col_par={columns}",
            constraints.column_tile,
        )
    if (rows or 1) * (columns or 1) > pcus:
        taken = config.pcu_count - pcus
        others = f" less {taken} for element math behind the product" if taken else ""
        raise _bad(
            f"row_par x col_par {names}",
            f"at most the chip's {config.pcu_count} PCUs{others}",
            f"{rows or 1} x {columns or 1}",
        )


def no_plan(product: Product, config: ChipConfig) -> BadInputError:
    """Refusal of a product for which `plans_of` gives nothing: no rows of a block are possible."""
    unit = math.lcm(_row_unit(product, config), product.epilogue.rows if product.epilogue else 1)
    most = min(config.pcu.accumulator_rows, MAX_BOX)
    rule = f"a multiple of {unit} and at most {most}"
    return BadInputError(
        f"`{product.kernel}` must fit the chip; Rows of a block of the product must be {rule}: "
        f"whole vectors where they lie along memory, and no more than `pcu.accumulator_rows`",
        kind="does-not-fit",
        where=product.kernel,
        value=unit,
        rule=rule,
    )


def _grid_pcus(product: Product, config: ChipConfig) -> int:
    """PCUs left for the grid beside lane programs behind the product."""
    chain = () if product.epilogue is None else product.epilogue.chain
    return config.pcu_count - len(chain)


def _grids(product: Product, config: ChipConfig, constraints: Constraints) -> list[tuple[int, int]]:
    """PCU grids to try: rows and columns."""
    pcus, rows, columns = _grid_pcus(product, config), constraints.row_par, constraints.col_par
    found = [
        (row, column)
        for column in _within_tile(_widths(product, config), product, config, constraints)
        if columns in (None, column)
        for row in ([rows] if rows else range(1, min(pcus // column, MAX_MODULUS) + 1))
        if row * column <= pcus
    ]
    # Grids with units that would only process padding are left out.
    groups = ceil_div(product.n, config.grid_columns)
    useful = [each for each in found if constraints.col_par or each[1] < 2 * groups] or found
    return [each for each in useful if _collected(each, config)] or useful


def _collected(grid: tuple[int, int], config: ChipConfig) -> bool:
    """Whether result writers of all store streams may take the results of all PCUs of a grid."""
    (rows, columns), writers = grid, store_streams(config)
    across = max(1, writers // rows)
    return ceil_div(rows, writers) * ceil_div(columns, across) <= MOST_COLLECTED


def plans_of(
    product: Product, config: ChipConfig, constraints: Constraints, slabs: int = _SLABS
) -> Iterator[tuple[Plan, list[tuple[int, int]]]]:
    """Plans to try, by groups: one with the longest slabs, and the slabs of A and of B of all.

    Of each operand so many lengths of slabs are tried, the longest ones. A grid whose passes end
    within a vector has more streams and longer stores, so it is tried if its tiles take fewer
    cycles than those of all other grids.
    """
    grids = _grids(product, config, constraints)
    fewest: int | None = None
    for grid in grids:
        if not _paired(product, config, grid[1]):
            for plan, each in _plans_on(grid, product, config, constraints, slabs):
                fewest = min(plan.grid_cycles, fewest or plan.grid_cycles)
                yield plan, each
    for grid in grids:
        if _paired(product, config, grid[1]):
            for plan, each in _plans_on(grid, product, config, constraints, slabs):
                if fewest is None or plan.grid_cycles < fewest:
                    yield plan, each


def _plans_on(
    grid: tuple[int, int],
    product: Product,
    config: ChipConfig,
    constraints: Constraints,
    most: int,
) -> Iterator[tuple[Plan, list[tuple[int, int]]]]:
    """The plans of `plans_of` on a PCU grid."""
    for shape, columns in _shapes(grid, product, config, constraints):
        lanes = config.width_bits // product.fmt.bits
        for tiles, slabs in _slabs(product.adjacent, lanes, constraints, most).items():
            whole = tiles * product.segments, tiles, tiles
            plan = Plan(product, config, shape[0], grid[1], *shape[1:], *columns, *whole, True)
            if not _paired(product, config, grid[1]):
                yield plan, slabs
            grouped = _grouped(plan)
            if grouped is not None:
                yield grouped, slabs


def _shapes(
    grid: tuple[int, int], product: Product, config: ChipConfig, constraints: Constraints
) -> Iterator[tuple[tuple[int, int, int], tuple[int, int, int]]]:
    """Row groups, their rows and blocks of rows; passes, halves and blocks of columns."""
    row_par, col_par = grid
    most_rows = min(config.pcu.accumulator_rows, MAX_BOX)
    column_tile = min(constraints.column_tile or MAX_BOX, product.n)
    if product.digits[1]:
        column_tile = min(column_tile, *(sizes[0] for sizes in product.digits[1]))
    shapes = set()
    for rows in _rows(row_par, product, config, constraints, most_rows):
        groups = min(row_par, ceil_div(product.m, rows))
        shapes.add((groups, rows, ceil_div(product.m, groups * rows)))
    if _paired(product, config, col_par):
        across = [(2, 1, ceil_div(product.n, _stride(product, config, col_par)))]
    else:
        within = constraints.column_tile is not None and column_tile < product.n
        across = [
            each
            for each in _columns(config, col_par, column_tile, product, within=within)
            if divides_segments(product.digits[1], each[0] * _stride(product, config, col_par))
        ]
    yield from itertools.product(sorted(shapes), across)


def _rows(
    row_par: int, product: Product, config: ChipConfig, constraints: Constraints, most: int
) -> Iterator[int]:
    """Rows per row group to try, at most so many."""
    row_tile = min(constraints.row_tile or product.m, product.m)
    least_blocks = max(ceil_div(product.m, row_tile), ceil_div(product.m, row_par * most))
    segments = {sizes[0] for sizes in product.digits[0]}
    least_rows = min(fewest_rows(config), 16, *segments)
    unit, counts = _row_unit(product, config, row_par), {*_block_counts(least_blocks)}
    # Of rows in segments, those of a group are an even part of one.
    for size in segments:
        parts = (rows for rows in range(1, size + 1) if size % rows == 0)
        counts |= {ceil_div(product.m, row_par * rows) for rows in parts}
    for count in sorted(each for each in counts if each >= least_blocks):
        rows = ceil_div(product.m, row_par * count)
        if unit > 1:
            rows = ceil_div(rows, unit) * unit
            if product.turned and constraints.row_tile and row_par * rows > max(row_tile, unit):
                continue
        elif row_par == 1 and config.agcu.count > 1 and rows > 1:
            rows += rows & 1
        if product.epilogue is not None:
            rows = ceil_div(rows, product.epilogue.rows) * product.epilogue.rows
        few = count > least_blocks and rows < least_rows
        if rows <= most and not few and divides_segments(product.digits[0], rows):
            yield rows


def _grouped(plan: Plan) -> Plan | None:
    """The plan with the passes of a column block at once, if hardware and buffers have room."""
    product, config = plan.product, plan.config
    if plan.passes == 1 or plan.halves > 1 or product.turned or product.epilogue is not None:
        return None
    if product.segments > 1:
        return None
    # A vector of results has rows of one pass, and a slot of C whole vectors.
    rows = ceil_div(plan.rows, plan.out_rows) * plan.out_rows
    paired = _paired(product, config, plan.col_par)
    whole = plan.pass_stride == plan.pass_columns and not plan.pass_columns % plan.result_lanes
    if not whole and not paired:
        return None
    groups = min(plan.row_par, ceil_div(product.m, rows))
    blocks = ceil_div(product.m, groups * rows)
    found = dataclasses.replace(plan, row_par=groups, rows=rows, row_blocks=blocks, grouped=True)
    if spare := found.spare_passes:
        # A last column block that is shorter has one pass less, or is the second. Passes are then
        # a loop of their own, beside those over tiles and within a pass.
        if plan.col_blocks > 2 and (spare > 1 or plan.col_blocks > MOST_BLOCKS):
            return None
        if not product.b_along_k and plan.pass_columns > plan.lanes and not paired:
            return None
    if product.digits[1] and (spare or found.b_split or found.c_split):
        return None
    return found if plan.passes * rows <= config.pcu.accumulator_rows else None


def _block_counts(least: int) -> list[int]:
    """Counts of blocks of rows to try: multiples of the least one, and the next two."""
    multiples = (least * factor for factor in (1, 2, 3, 4, 6, 8, 12, 16, 32))
    return sorted({*multiples, least + 1, least + 2})


def _row_unit(product: Product, config: ChipConfig, row_par: int = 1) -> int:
    """Rows of which a group has a multiple: whole vectors, where they lie along rows in memory."""
    bits = (product.fmt.bits,) * (not product.a_along_k) + (product.narrowest,) * product.turned
    if not bits:
        return 1
    # Several AGCUs and result writers begin at rows of their own, which is an aligned address.
    writers = store_streams(config) if product.turned else 1
    several = config.agcu.count > 1 or min(row_par, writers) > 1
    aligned = 8 * BASE_ALIGNMENT if several else 0
    return max(config.width_bits, aligned) // min(bits)


def _columns(
    config: ChipConfig, col_par: int, tile: int, product: Product, *, within: bool
) -> list[tuple[int, int, int]]:
    """Candidates for passes, halves and number of column blocks.

    A block of several passes is at most a tile wide if it must be `within`, else less than a pass
    wider.
    """
    n, width = product.n, col_par * config.grid_columns
    stride = _stride(product, config, col_par)
    if product.turned:
        # A slot of C has one pass, whose columns are rows of memory.
        blocks = ceil_div(n, stride)
        halves = stride // width
        return [(1, halves if blocks > 1 else min(halves, ceil_div(n, width)), blocks)]
    found = {}
    most = max(1, tile // stride) if within else ceil_div(tile, stride)
    for shift in range(9):
        passes = most >> shift
        if not passes:
            break
        passes = min(passes, MAX_BOX // stride)
        blocks = ceil_div(n, passes * stride)
        halves = stride // width
        if blocks == 1 and passes == 1:
            halves = min(halves, ceil_div(n, width))
        found[passes] = (passes, halves, blocks)
    return list(found.values())


def _slabs(
    adjacent: int, lanes: int, constraints: Constraints, lengths: int
) -> dict[int, list[tuple[int, int]]]:
    """Candidates for the tiles of the sum, padded: of each, the tiles per slot of A and of B."""
    most, covers = MAX_BOX // lanes, ceil_div(adjacent, lanes)
    found = {}
    # An extent with few divisors is padded to one with more, if that is cheap.
    for tiles in dict.fromkeys((covers, covers + covers % 2, ceil_div(covers, 4) * 4)):
        if tiles > covers and 16 * (tiles - covers) > covers and covers <= most:
            continue
        divisors = [each for each in range(min(tiles, most), 0, -1) if not tiles % each]
        if constraints.sum_tile is not None:
            within = constraints.sum_tile < adjacent
            wanted = max(1, constraints.sum_tile // lanes) if within else tiles
            divisors = [max(each for each in divisors if each <= wanted)]
        choices = {}
        for name in "ab":
            # A single slot holds the whole tile, if a box can be that long.
            whole = (
                constraints.slots.get(name) == 1 and tiles <= most and constraints.sum_tile is None
            )
            choices[name] = [tiles] if whole else divisors[:lengths]
        found[tiles] = list(itertools.product(choices["a"], choices["b"]))
    return found
