"""Plans of a product that are tried: PCU grids, blocks and slabs."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

from hw.arch.config import ChipConfig
from hw.arch.descriptor import BASE_ALIGNMENT, MAX_BOX
from hw.arch.errors import BadInputError
from hw.arch.limits import MAX_MODULUS
from hw.arch.loops import COUNT_SHIFT
from hw.numeric.division import ceil_div
from sw.passes.plan import Plan, fewest_rows
from sw.passes.stage import Product
from sw.search.constraints import Constraints

__all__ = ["plans_of", "require_grid"]


#: Column blocks of which the last may have a pass less: the count of its loop is shifted.
_MOST_BLOCKS = 2 + 2**COUNT_SHIFT.high - 1


def _bad(field: str, rule: str, value: object) -> BadInputError:
    return BadInputError(
        f"{field} must be {rule}, not {value}", kind="schedule", where=field, value=value, rule=rule
    )


def _widths(product: Product, config: ChipConfig) -> list[int]:
    """Columns that a PCU grid may have."""
    # The columns of a pass are loaded in one box.
    most = min(config.pcu_count, MAX_MODULUS, MAX_BOX // config.grid_columns)
    # The weights of a pass are whole vectors of a row of B, or a part that divides a vector.
    lanes = config.width_bits // product.fmt.bits
    return [
        each
        for each in range(1, most + 1)
        if not each & (each - 1) or not each * config.grid_columns % lanes
    ]


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
    if (rows or 1) * (columns or 1) > pcus:
        taken = config.pcu_count - pcus
        others = f" less {taken} for element math behind the product" if taken else ""
        raise _bad(
            f"row_par x col_par {names}",
            f"at most the chip's {config.pcu_count} PCUs{others}",
            f"{rows or 1} x {columns or 1}",
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
        for column in _widths(product, config)
        if columns in (None, column)
        for row in ([rows] if rows else range(1, min(pcus // column, MAX_MODULUS) + 1))
        if row * column <= pcus
    ]
    # Grids with units that would only process padding are left out.
    groups = ceil_div(product.n, config.grid_columns)
    useful = [each for each in found if constraints.col_par or each[1] < 2 * groups]
    return useful or found


def plans_of(
    product: Product, config: ChipConfig, constraints: Constraints
) -> Iterator[tuple[Plan, list[tuple[int, int]]]]:
    """Plans to try, by groups: one with the longest slabs, and the slabs of A and of B of all."""
    lanes = config.width_bits // product.fmt.bits
    most_rows = min(config.pcu.accumulator_rows, MAX_BOX)
    row_tile = min(constraints.row_tile or product.m, product.m)
    column_tile = min(constraints.column_tile or MAX_BOX, product.n)
    covers = ceil_div(product.adjacent, lanes)
    for row_par, col_par in _grids(product, config, constraints):
        least_blocks = max(ceil_div(product.m, row_tile), ceil_div(product.m, row_par * most_rows))
        shapes = set()
        for count in _block_counts(least_blocks):
            rows = ceil_div(product.m, row_par * count)
            unit = _row_unit(product, config)
            if unit > 1:
                rows = ceil_div(rows, unit) * unit
                if product.turned and constraints.row_tile and row_par * rows > max(row_tile, unit):
                    continue
            elif row_par == 1 and config.agcu.count > 1 and rows > 1:
                rows += rows & 1
            if product.epilogue is not None:
                rows = ceil_div(rows, product.epilogue.rows) * product.epilogue.rows
            least_rows = min(fewest_rows(config), 16)
            if rows > most_rows or (count > least_blocks and rows < least_rows):
                continue
            groups = min(row_par, ceil_div(product.m, rows))
            shapes.add((groups, rows, ceil_div(product.m, groups * rows)))
        across = _columns(config, col_par, lanes, column_tile, product)
        for groups, rows, blocks in sorted(shapes):
            for columns, (tiles, slabs) in itertools.product(
                across, _slabs(covers, lanes, constraints).items()
            ):
                shape = groups, col_par, rows, blocks
                plan = Plan(
                    product, config, *shape, *columns, tiles * product.segments, tiles, tiles, True
                )
                yield plan, slabs
                grouped = _grouped(plan)
                if grouped is not None:
                    yield grouped, slabs


def _grouped(plan: Plan) -> Plan | None:
    """The plan with the passes of a column block at once, if hardware and buffers have room."""
    product, config = plan.product, plan.config
    if plan.passes == 1 or plan.halves > 1 or product.turned or product.epilogue is not None:
        return None
    if product.segments > 1:
        return None
    # A vector of results has rows of one pass, and a slot of C the columns of one.
    rows = ceil_div(plan.rows, plan.out_rows) * plan.out_rows
    if plan.pass_stride != plan.pass_columns or plan.pass_columns % plan.result_lanes:
        return None
    groups = min(plan.row_par, ceil_div(product.m, rows))
    blocks = ceil_div(product.m, groups * rows)
    found = dataclasses.replace(plan, row_par=groups, rows=rows, row_blocks=blocks, grouped=True)
    if spare := found.spare_passes:
        # A last column block that is shorter has one pass less, or is the second. Passes are then
        # a loop of their own, beside those over tiles and within a pass.
        if plan.col_blocks > 2 and (spare > 1 or plan.col_blocks > _MOST_BLOCKS):
            return None
        if not product.b_along_k and plan.pass_columns > plan.lanes:
            return None
    return found if plan.passes * rows <= config.pcu.accumulator_rows else None


def _block_counts(least: int) -> list[int]:
    """Counts of blocks of rows to try: multiples of the least one, and the next two."""
    multiples = (least * factor for factor in (1, 2, 3, 4, 6, 8, 12, 16, 32))
    return sorted({*multiples, least + 1, least + 2})


def _row_unit(product: Product, config: ChipConfig) -> int:
    """Rows of which a group has a multiple: whole vectors, where they lie along rows in memory."""
    formats = (product.fmt,) * (not product.a_along_k) + (product.out,) * product.turned
    if not formats:
        return 1
    # Several AGCUs begin at rows of their own, which is an aligned address.
    aligned = 8 * BASE_ALIGNMENT if config.agcu.count > 1 else 0
    return max(config.width_bits, aligned) // min(each.bits for each in formats)


def _columns(
    config: ChipConfig, col_par: int, lanes: int, tile: int, product: Product
) -> list[tuple[int, int, int]]:
    """Candidates for passes, halves and number of column blocks."""
    n, width = product.n, col_par * config.grid_columns
    if product.turned:
        # A slot of C has one pass, whose columns are rows of memory.
        stride = width if product.b_along_k else max(width, lanes)
        blocks = ceil_div(n, stride)
        halves = stride // width
        return [(1, halves if blocks > 1 else min(halves, ceil_div(n, width)), blocks)]
    stride = max(width, lanes, config.width_bits // product.narrowest)
    found = {}
    for shift in range(9):
        passes = ceil_div(tile, stride) >> shift
        if not passes:
            break
        passes = min(passes, MAX_BOX // stride)
        blocks = ceil_div(n, passes * stride)
        halves = stride // width
        if blocks == 1 and passes == 1:
            halves = min(halves, ceil_div(n, width))
        found[passes] = (passes, halves, blocks)
    return list(found.values())


def _slabs(covers: int, lanes: int, constraints: Constraints) -> dict[int, list[tuple[int, int]]]:
    """Candidates for the tiles of the sum, padded: of each, the tiles per slot of A and of B."""
    most = MAX_BOX // lanes
    found = {}
    # An extent with few divisors is padded to one with more, if that is cheap.
    for tiles in dict.fromkeys((covers, covers + covers % 2, ceil_div(covers, 4) * 4)):
        if tiles > covers and 16 * (tiles - covers) > covers and covers <= most:
            continue
        divisors = [each for each in range(min(tiles, most), 0, -1) if not tiles % each]
        if constraints.sum_tile is not None:
            wanted = max(1, ceil_div(constraints.sum_tile, lanes))
            divisors = [max(each for each in divisors if each <= wanted)]
        choices = {}
        for name in "ab":
            # A single slot holds the whole tile, if a box can be that long.
            whole = (
                constraints.slots.get(name) == 1 and tiles <= most and constraints.sum_tile is None
            )
            choices[name] = [tiles] if whole else divisors[:5]
        found[tiles] = list(itertools.product(choices["a"], choices["b"]))
    return found
