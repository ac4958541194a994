"""Sizes of two products with a softmax between them on a chip: pairs, blocks of keys, cycles."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np

from hw.arch.boxes.issuer_program import MAX_TOKENS
from hw.arch.config import ChipConfig
from hw.arch.descriptor import MAX_BOX
from hw.arch.lanes.key_mask import KEYS
from hw.arch.limits import MAX_MODULUS
from hw.arch.loops import COUNT_BITS, COUNT_SHIFT
from hw.arch.switch import MAX_PACKETS
from hw.numeric.division import ceil_div
from hw.numeric.formats import bf16
from sw.passes.field_limits import Unfit
from sw.stages.long_rows import aligned_elements
from sw.stages.softmax.chosen_sizes import BlockCount, SoftmaxSizes
from sw.stages.softmax.softmax_product import SoftmaxProduct
from sw.timing.prediction import LATENCY

__all__ = [
    "BLOCK_SLOTS",
    "pieces_of_depth",
    "require_joined",
    "softmax_sizes",
]

#: Cycles of the lanes between the first two of the three phases of a block.
_PHASE = 22
#: Cycles until the first beats of memory arrive.
_START = 300
#: Slots of a block that is not kept, so that the next one is loaded meanwhile: fewest and most.
_SLOTS, BLOCK_SLOTS = 2, 4
#: Cycles from a freed slot to the first vector of its next block, besides the latency of memory.
_REFILL = 17
#: Slowdown that keeping blocks on chip may cost, as fewer bytes are loaded.
_RELOADED = 1.01


def softmax_sizes(work: SoftmaxProduct, config: ChipConfig) -> Iterator[SoftmaxSizes]:
    """Choices of sizes, those of fewest cycles first.

    Parameters
    ----------
    work : SoftmaxProduct
    config : ChipConfig

    Raises
    ------
    Unfit
        If no sizes fit: by the columns, keys, window or block of the product, or by the chip.
    """
    _require(work, config)
    r, columns = config.grid_rows, config.grid_columns
    units = 1 + _column_parts(work, config)
    most = min(config.pcu_count // units, MAX_MODULUS, MAX_BOX // columns)
    if not most:
        raise Unfit(
            f"A softmax between two products of {work.width} columns needs {units} PCUs, and the "
            f"chip has {config.pcu_count}",
            value=config.pcu_count,
            rule=f"at least {units} PCUs",
        )
    most_rows = min(config.pcu.accumulator_rows, MAX_BOX)
    if work.block is not None:
        if work.block % r or not r <= work.block <= most_rows:
            rule = f"a multiple of {r}, the rows of a PCU's array, up to {most_rows}"
            raise Unfit(
                f"Keys of a block must be {rule}, not {work.block}", value=work.block, rule=rule
            )
        blocks = [work.block]
    else:
        longest = min(most_rows, ceil_div(work.keys, r) * r)
        blocks = list(range(r, longest + 1, r))
    # As many pairs as are busy: fewer if as many groups come of it.
    groups = {ceil_div(work.queries, each * columns): each for each in range(most, 0, -1)}
    found = [
        sizes
        for pairs in groups.values()
        for block in blocks
        for sizes in _kept_or_not(work, config, pairs, block)
    ]
    if not found:
        raise _without_sizes(work, config, blocks[0], most)
    return iter(sorted(found, key=_rank))


def _without_sizes(work: SoftmaxProduct, config: ChipConfig, block: int, most: int) -> Unfit:
    """Refuse keys and values by their bytes, by the PMUs, or by counts that are on no line."""
    slot, capacity = _SLOTS * block * _row_bytes(work, config), config.pmu.capacity_bytes
    parts, (pieces, _) = _column_parts(work, config), pieces_of_depth(work.depth, config.grid_rows)
    needs = pieces + parts + 1 + parts
    if slot <= capacity and needs > config.pmu_count:
        return Unfit(
            f"{pieces} buffers of keys, 1 of queries, {parts} of values and {parts} of results "
            f"need {needs} PMUs, and the chip has {config.pmu_count}",
            value=needs,
            rule=f"at most {config.pmu_count} PMUs",
        )
    if slot <= capacity and work.ends:
        queries = most * config.grid_columns
        rule = f"a whole number of 1/{1 << COUNT_SHIFT.high}"
        return Unfit(
            f"Queries of a group per key of a block must be {rule}, not {queries} / {block}",
            value=queries,
            rule=rule,
        )
    return Unfit(
        f"{_SLOTS} slots of {block} keys take {slot} bytes, and a PMU has {capacity}",
        value=slot,
        rule=f"at most {capacity} bytes a PMU",
    )


def require_joined(sizes: SoftmaxSizes, deep: int, config: ChipConfig) -> None:
    """Refuse keys, of so many tiles a row, and values that share a load stream, but kept boxes."""
    rows = sizes.blocks * sizes.block
    longest = max(deep, sizes.wide) * config.grid_rows
    taken, room = 2 * rows * longest, config.pmu.capacity_bytes
    for noun, value, most, holds in (
        ("Bytes of keys, and of values,", taken, room, sizes.kept or taken <= room),
        ("Keys in whole blocks", rows, MAX_BOX, rows <= MAX_BOX),
        ("Columns of keys and values", longest, MAX_BOX, longest <= MAX_BOX),
        ("Blocks of keys", sizes.blocks, MAX_TOKENS, sizes.blocks <= MAX_TOKENS),
        ("Blocks of keys", sizes.blocks, config.pmu.slots, sizes.kept),
    ):
        if not holds:
            rule = f"at most {most}"
            raise Unfit(
                f"{noun} must be {rule} where one AGCU loads all, not {value}",
                value=value,
                rule=rule,
            )


def _rank(sizes: SoftmaxSizes) -> tuple[float, int, int]:
    """Cycles, then units; keys and values that are loaded again count as a little slower."""
    cycles = sizes.cycles * (1 if sizes.kept else _RELOADED)
    return cycles, sizes.pairs, sizes.query_parts


def _require(work: SoftmaxProduct, config: ChipConfig) -> None:
    """Refuse a product that no choice of sizes makes fit."""
    r, rows = config.grid_rows, config.pcu.accumulator_rows
    keys, most = max(work.keys, work.queries + abs(work.offset or 0)), KEYS.high
    for noun, value, rule, holds in (
        ("Lanes of a PCU", config.pcu.lanes, "be at least 1", config.pcu.lanes > 0),
        (
            "Accumulator rows of a PCU",
            rows,
            f"be above the {r} rows of its array",
            rows > r,
        ),
        (
            "Keys, and queries with their offset,",
            keys,
            f"be at most {most}, as counters of keys hold",
            keys <= most,
        ),
        (
            "Window of keys",
            work.window,
            f"be at most {most}, and 0 where every query sees every key",
            work.window <= most and (work.offset is not None or not work.window),
        ),
    ):
        if not holds:
            raise Unfit(f"{noun} must {rule}, not {value}", value=value, rule=rule)


def pieces_of_depth(depth: int, r: int) -> tuple[int, int]:
    """Number of equal boxes of a row of keys or of queries, and its tiles of R elements.

    Rows of whole tiles, whose bytes memory aligns, are one box, of several pieces beyond 256
    elements. Of others each box fills with zeros what lies behind the row, and the last one may
    hold a tile of zeros.
    """
    tiles = ceil_div(depth, r)
    pieces = ceil_div(tiles, MAX_BOX // r) if depth % aligned_elements(bf16, r) else 1
    return pieces, pieces * ceil_div(tiles, pieces)


def _column_parts(work: SoftmaxProduct, config: ChipConfig) -> int:
    """Parts of the columns of values: a box wide, and a bank of a PCU has room for their sums."""
    r = config.grid_rows
    return ceil_div(ceil_div(work.width, r), min(config.pcu.accumulator_rows - 1, MAX_BOX) // r)


def _row_bytes(work: SoftmaxProduct, config: ChipConfig) -> int:
    """Bytes of a row of keys or of values on chip, the longer one."""
    r = config.grid_rows
    return ceil_div(max(work.depth, work.width), r) * r * 2


def _needed(work: SoftmaxProduct, queries: int, groups: int, block: int) -> np.ndarray:
    """Blocks that each group meets: up to the last key that a whole group of queries would see."""
    every = ceil_div(work.keys, block)
    if work.offset is None or not work.ends:
        return np.full(groups, every)
    last = (np.arange(groups) + 1) * queries - 1 + work.offset
    needed: np.ndarray = np.minimum(last // block + 1, every)
    return needed


def _count(needed: np.ndarray, step: float, every: int) -> BlockCount | None:
    """A line through the counts of all groups; those of all keys may meet blocks of zeros more."""
    if (needed == needed[0]).all():
        return BlockCount(int(needed[0]))
    groups = np.arange(len(needed))
    for shift in range(COUNT_SHIFT.high + 1):
        for slope in {int(step * 2**shift), int(step * 2**shift) + 1} - {0}:
            base = int(((needed << shift) - slope * groups).max())
            found = BlockCount(base, slope, shift)
            exact = np.minimum(found.of(len(needed)), every) == needed
            if exact.all() and base + slope * int(groups[-1]) < 1 << COUNT_BITS:
                return found
    return None


def _kept_or_not(
    work: SoftmaxProduct, config: ChipConfig, pairs: int, block: int
) -> Iterator[SoftmaxSizes]:
    queries = pairs * config.grid_columns
    groups = ceil_div(work.queries, queries)
    needed = _needed(work, queries, groups, block)
    count = _count(needed, queries / block, ceil_div(work.keys, block))
    if count is None:
        return
    blocks = int(count.of(groups).max())
    r, agcus = config.grid_rows, config.agcu.count
    pieces, deep = pieces_of_depth(work.depth, r)
    parts_across = _column_parts(work, config)
    wide = ceil_div(ceil_div(work.width, r), parts_across)
    # Where there are many AGCUs, two of them load keys, two values, and two queries.
    many = 2 if agcus >= 2 * 2 else 1
    every = itertools.product((True, False), range(1, min(many, pairs) + 1), (1, 2), (1, 2))
    for kept, query_parts, *least in every:
        slots = blocks if kept else _SLOTS
        # One AGCU loads whole blocks alone.
        most = config.pmu_count - query_parts - parts_across if agcus > 1 else 0
        room = config.pmu.capacity_bytes // (2 * r * slots)
        # One of several buffers takes a box, and gives one run of packets.
        longest = min(MAX_PACKETS, MAX_BOX // r)
        key_buffers = _buffers(deep, room // block, max(pieces, least[0]), longest)
        value_buffers = _buffers(block // r, room // (r * wide), least[1], longest)
        if slots > config.pmu.slots or not key_buffers or not value_buffers:
            continue
        if (
            max(key_buffers, value_buffers) > 1
            and key_buffers + parts_across * value_buffers > most
        ):
            continue
        parts = many if not kept and work.keys > block // 2 else 1
        sizes = SoftmaxSizes(
            pairs=pairs,
            column_parts=parts_across,
            wide=wide,
            queries=queries,
            groups=groups,
            block=block,
            blocks=blocks,
            count=count,
            kept=kept,
            key_buffers=key_buffers,
            value_buffers=value_buffers,
            parts=parts,
            query_parts=query_parts,
            cycles=0.0,
            start=0.0,
        )
        cycles, start = _cycles(work, config, sizes)
        yield dataclasses.replace(sizes, cycles=cycles, start=start)


def _buffers(tiles: int, most: int, least: int, shared: int) -> int | None:
    """Least number of buffers for even shares of tiles, at most so many; ``shared`` of several."""
    for count in range(least, tiles + 1):
        share = tiles // count
        if not tiles % count and share <= most and (count == 1 or share <= shared):
            return count
    return None


def _cycles(work: SoftmaxProduct, config: ChipConfig, sizes: SoftmaxSizes) -> tuple[float, float]:
    """Cycles by the rates of grids, lanes, weights and memory ports, and those of the start."""
    r, columns, block = config.grid_rows, config.grid_columns, sizes.block
    (_, deep), wide = pieces_of_depth(work.depth, r), sizes.wide
    # A tile waits until the wave of the last swap has passed, and its weights are loaded.
    swap = (r - 1) * config.pcu.cell_latency + columns + 2
    per_row = columns / config.pcu.lanes
    scores = deep * max(block, swap)
    values = block // r * max(wide * r + 1, swap + columns)
    lanes = per_row * (block + 2) + _PHASE
    weights = max(count for _, count in sizes.shares) * columns * deep
    loaded = 0.0 if sizes.kept else block * max(deep, wide * sizes.column_parts) / sizes.parts
    each = max(scores, values, lanes, weights, loaded)
    if not sizes.kept:
        each = max(each, _refilled(config, sizes, deep))
    drain = per_row * (wide * r + 1) + 2 * _PHASE
    # Rows are bursts; short ones wait for the memory.
    beats = deep // sizes.key_buffers
    slower = max(1.0, (LATENCY + beats) / (config.agcu.outstanding * beats)) - 1
    reading = slower * sizes.blocks * block * deep if sizes.kept else 0.0
    fill = _START + block * deep / sizes.parts + weights + scores + lanes + wide * r
    counts = sizes.count.of(sizes.groups)
    return float(np.maximum(counts * each, drain).sum() + fill + drain + reading), fill


def _refilled(config: ChipConfig, sizes: SoftmaxSizes, deep: int) -> float:
    """Cycles of a block whose slots are read, freed and written again, a vector a cycle."""
    keys = sizes.block * deep // sizes.key_buffers
    values = sizes.block * sizes.wide // sizes.value_buffers
    # The row of ones of each tile is read, and lies in no slot.
    ones = sizes.block // config.grid_rows // sizes.value_buffers
    room = config.pmu.capacity_bytes * 8 // config.width_bits
    return max(
        (read + LATENCY + _REFILL + written) / min(BLOCK_SLOTS, room // written)
        for read, written in ((keys, keys), (values + ones, values))
    )
