"""Blocks of element math: a matrix in memory, cut so that lines of chains have equal shares.

Where no tensor has gaps between its rows, its elements are a matrix of any width that divides their
number. So rows need not be filled up to whole packets, nor begin within a beat of memory.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator

from hw.arch.config import ChipConfig
from hw.arch.descriptor import BASE_ALIGNMENT, MAX_BOX, Descriptor
from hw.arch.lanes.lane_room import ACTIVATION_ROOM, kept_groups
from hw.arch.loops import BoxLoop
from hw.numeric.division import ceil_div
from sw.array_spec import ArraySpec
from sw.fabric.merges import MERGED
from sw.lane_codes.joined_codes import cycles_per_group
from sw.lane_codes.lane_code import LaneCode
from sw.passes.field_limits import unfit
from sw.prologue.lane_chains import packet_elements
from sw.stages.grids import Grid
from sw.stages.region import Region, Source, TilePart
from sw.stages.segment_digits import are_in_segments
from sw.stages.stage_graph import argument_of, boxes_of
from sw.timing.prediction import LATENCY

__all__ = ["SLOTS", "ElementBlocks", "block_cycles", "element_blocks", "least_cycles"]

#: Elements of a slot: large enough for whole bursts, small enough to begin soon.
_SLOT_ELEMENTS = 2048
#: Numbers of blocks that are tried, from the fewest on, so that the last one is not a short one.
_MORE = 4
#: Slots of an input's buffer.
SLOTS = 4
#: Cycles from a free slot until memory has filled it.
_FILLED = LATENCY + 30
#: How much slower blocks of longer rows may be, whose bursts are fewer.
_SLOWER = 1.01
#: Latency of memory at which rows of blocks are long enough to keep pace.
_SLOW = 4 * LATENCY


@dataclasses.dataclass(frozen=True)
class ElementBlocks:
    """Blocks of a matrix, and how they are dealt out to lines.

    Parameters
    ----------
    arrays : tuple of ArraySpec
        The tensors, as this matrix.
    packet : int
        Elements of a packet: of rows one after another.
    columns, rows : int
        Of a block.
    across, down : int
        Blocks each way.
    lines : int
    by_columns : bool
        Whether lines share the columns of blocks instead of their rows.
    """

    arrays: tuple[ArraySpec, ...]
    packet: int
    columns: int
    rows: int
    across: int
    down: int
    lines: int
    by_columns: bool

    @property
    def packets(self) -> int:
        """Packets of a block."""
        return self.rows * self.columns // self.packet

    def place(self, line: int) -> tuple[int, int]:
        """Row and column at which the first block of a line begins."""
        return (0, line * self.columns) if self.by_columns else (line * self.rows, 0)

    def counts(self, line: int) -> tuple[int, int]:
        """Blocks of a line, down and across."""
        if self.by_columns:
            return self.down, ceil_div(self.across - line, self.lines)
        return ceil_div(self.down - line, self.lines), self.across

    def steps(self) -> tuple[int, int]:
        """Rows, and columns, from a block of a line to its next one."""
        if self.by_columns:
            return self.rows, self.columns * self.lines
        return self.rows * self.lines, self.columns

    def is_single(self, source: Source) -> bool:
        """Whether an input is one element, for all rows."""
        array = argument_of(self.arrays, source.tensor)[1]
        return source.part is TilePart.COLUMN and array.pitch == 0 and array.segments is None

    def loop(self, line: int, axis: int, dimension: int) -> BoxLoop:
        """Loop over the blocks of a line, down for axis 0 and across for 1, in a dimension."""
        count = self.counts(line)[axis]
        return BoxLoop(count, dimension, self.steps()[axis] if count > 1 else 0)

    def boxes(self, line: int, tensor: str) -> tuple[tuple[Descriptor, int], list[BoxLoop]]:
        """Descriptor and launch argument of a line's blocks, and the loops over them."""
        box = boxes_of(self.arrays, tensor, (self.columns, self.rows), *self.place(line))
        return box, [self.loop(line, 0, 1), self.loop(line, 1, 0)]


def element_blocks(
    region: Region,
    codes: tuple[LaneCode, ...],
    arrays: tuple[ArraySpec, ...],
    config: ChipConfig,
    lines: int,
    copies: int,
) -> ElementBlocks:
    """The blocks that take the fewest cycles; of nearly equal ones those of the tensors' rows.

    Parameters
    ----------
    region : Region
        One without reductions. Beside vectors its matrix is cut as it is, and packets are parts of
        rows or several of them.
    codes : tuple of LaneCode
        Its chain of lane programs.
    arrays : tuple of ArraySpec
        Arguments of the launch.
    config : ChipConfig
    lines : int
        Most lines.
    copies : int
        Chains of a line. The packets of a block are a multiple, so each begins with the first.
    """
    tensors = {each.tensor for each in region.inputs.values()} | set(region.outputs.values())
    beside = any(each.part is not TilePart.BLOCK for each in region.inputs.values())
    vector = packet_elements(codes, config)
    packets = [vector]
    if any(len(each.phases) > 1 for each in codes):
        # Joined phases have a strip of elements, or half of one where that leaves less to fill up.
        strip = kept_groups(width_bits=config.width_bits, lanes=config.pcu.lanes)
        packets = [max(vector, strip * config.pcu.lanes // part) for part in (1, 2)]
    bytes_each = max(form.bits // 8 for code in codes for form in code.formats.values())
    most = min(_SLOT_ELEMENTS, config.pmu.capacity_bytes // 4 // bytes_each)
    # A line begins at a multiple of the alignment, in a tensor of any format.
    least = min(each.format.bits // 8 for each in arrays if each.name in tensors)
    aligned = max(1, BASE_ALIGNMENT // least)
    # Blocks of another width have all of it, so lines pass memory in its order.
    choices = [
        each
        for matrix in itertools.islice(_matrices(region, arrays, tensors, vector), beside or None)
        for packet in packets
        for each in _cut(matrix, vector, packet, lines, copies, most)
        if matrix[0] is arrays or each.across == 1
        if not beside or not (each.columns % packet and packet % each.columns)
        if not each.by_columns or each.lines == 1 or not each.columns % aligned
        if all(are_in_segments(array, each.rows) for array in arrays)
    ]
    if not choices:
        raise unfit("Rows of a block", "be a multiple or a part of those of segments", region.rows)
    cycles = [block_cycles(each, region, codes, config, copies, _SLOW) for each in choices]
    limit = _SLOWER * min(cycles)
    near = [each for each in zip(cycles, choices, strict=True) if each[0] <= limit]
    first = near[0][1]
    same = (each for each in near if each[1].columns == first.columns)
    return min(same, key=lambda each: each[0])[1]


def _matrices(
    region: Region, arrays: tuple[ArraySpec, ...], tensors: set[str], vector: int
) -> Iterator[tuple[tuple[ArraySpec, ...], int, int]]:
    """The tensors by their rows, then as matrices of other widths; rows and columns of each."""
    yield arrays, region.rows, region.columns
    elements = region.rows * region.columns
    own = [each for each in arrays if each.name in tensors]
    if any(
        each.pitch != each.row_bytes or math.prod(each.shape) != elements or each.segments
        for each in own
    ):
        return
    for columns in range(MAX_BOX // vector * vector, 0, -vector):
        aligned = all(columns * each.format.bits // 8 % BASE_ALIGNMENT == 0 for each in own)
        if elements % columns == 0 and aligned:
            shape = elements // columns, columns
            view = (
                dataclasses.replace(each, shape=shape) if each.name in tensors else each
                for each in arrays
            )
            yield tuple(view), *shape


def _cut(
    matrix: tuple[tuple[ArraySpec, ...], int, int],
    vector: int,
    packet: int,
    lines: int,
    copies: int,
    most: int,
) -> Iterator[ElementBlocks]:
    """Blocks of a matrix, of at most so many elements but for the copies, those of most first."""
    arrays, rows, columns = matrix
    chunks = ceil_div(columns, vector)
    fewest = ceil_div(chunks * vector, min(MAX_BOX, max(vector, most)))
    widths = dict.fromkeys(ceil_div(chunks, across) for across in range(fewest, chunks + 1))
    for width, by_columns in itertools.product(widths, (False, True)):
        wide, across = width * vector, ceil_div(chunks, width)
        turn = copies * packet // vector
        step = turn // math.gcd(turn, width)
        share = rows if by_columns else ceil_div(rows, lines)
        wanted = min(max(most // wide, 1), MAX_BOX, share)
        blocks = ceil_div(share, wanted)
        fewer = (ceil_div(share, each) for each in range(blocks, blocks + _MORE))
        for high in dict.fromkeys((wanted, *fewer)):
            whole = max(step, min(ceil_div(high, step) * step, MAX_BOX // step * step))
            down = ceil_div(rows, whole)
            used = min(lines, across if by_columns else down)
            yield ElementBlocks(arrays, packet, wide, whole, across, down, used, by_columns)


def block_cycles(
    blocks: ElementBlocks,
    region: Region,
    codes: tuple[LaneCode, ...],
    config: ChipConfig,
    copies: int,
    latency: int = LATENCY,
) -> float:
    """Estimated cycles of the first line: its first load, all boxes at the slowest pace, a packet.

    The pace is that of its chains, of a stream to them, of its loads or of its stores.

    Parameters
    ----------
    blocks : ElementBlocks
    region : Region
    codes : tuple of LaneCode
    config : ChipConfig
    copies : int
        Chains of a line.
    latency : int
        Of memory, which short rows wait for.
    """
    down, across = blocks.counts(0)
    boxes = down * across
    packet = blocks.packet // config.pcu.lanes
    cycles = [packet * cycles_per_group(each, config, packet) for each in codes]
    lanes = blocks.packets / copies * max(cycles)
    pace = latency / config.agcu.outstanding
    loads = sum(_loaded(blocks, each, config, pace) for each in region.inputs.values())
    stores = max(_row(blocks, each, config, pace) for each in region.outputs.values())
    collected = blocks.rows * stores if copies > MERGED else 0
    first = [each for each in codes if each.source in region.inputs]
    fed = blocks.packets * max((_fed(each, blocks, config) for each in first), default=0)
    slots, load = _slots(blocks, region, config, collects=copies > MERGED), blocks.rows * loads
    busy = max(lanes, fed, load, blocks.rows * stores, _FILLED / slots)
    # A single slot is filled when its packets have gone.
    alone = load + _FILLED if slots == 1 else 0
    return load + boxes * (busy + alone) + sum(cycles) + collected


def _slots(blocks: ElementBlocks, region: Region, config: ChipConfig, *, collects: bool) -> int:
    """Slots of an input's buffer, if all PMUs have as many buffers."""
    buffers = blocks.lines * (len(region.inputs) + len(region.outputs) * collects)
    form = max(each.type.format.bits for each in region.inputs.values())
    needed = blocks.rows * blocks.columns * form // 8 * ceil_div(buffers, config.pmu_count)
    return max(1, min(SLOTS, config.pmu.capacity_bytes // needed))


def _fed(code: LaneCode, blocks: ElementBlocks, config: ChipConfig) -> float:
    """Cycles until a PCU has a packet, behind which the stream goes on to the next one.

    A FIFO takes its first vectors, and the first phase the others.
    """
    elements = config.width_bits // code.formats[code.source].bits
    vectors = blocks.packet // elements
    return max(vectors, (vectors - ACTIVATION_ROOM) * elements / config.pcu.lanes)


def least_cycles(
    region: Region, codes: tuple[LaneCode, ...], config: ChipConfig, grid: Grid
) -> float:
    """Cycles that no blocks on a grid take less than: of busy lanes, or of whole beats."""
    lanes = max(cycles_per_group(each, config) for each in codes) / config.pcu.lanes
    tiles = (each for each in region.inputs.values() if each.part is TilePart.BLOCK)
    loads = sum(each.type.format.bits for each in tiles)
    stores = max(region.formats[each].bits for each in region.outputs.values())
    beats = max(loads, stores) / config.width_bits
    return region.rows * region.columns / grid.lines * max(lanes / grid.copies, beats)


def _loaded(blocks: ElementBlocks, source: Source, config: ChipConfig, least: float) -> float:
    """Cycles to load what an input has for a row of a block; of one element there is nothing."""
    match source.part:
        case TilePart.ROW:
            return _row(blocks, source.tensor, config, least) / blocks.rows
        case TilePart.COLUMN:
            copies = config.width_bits // source.type.format.bits
            return 0 if blocks.is_single(source) else copies * max(1, least) / blocks.across
    return _row(blocks, source.tensor, config, least)


def _row(blocks: ElementBlocks, tensor: str, config: ChipConfig, least: float) -> float:
    """Cycles of a row of a block in memory, half of which begin within a beat if one does."""
    (array,) = (each for each in blocks.arrays if each.name == tensor)
    beats = ceil_div(blocks.columns * array.format.bits, config.width_bits)
    within = array.pitch * 8 % config.width_bits > 0
    return max(beats + within / 2, least)
