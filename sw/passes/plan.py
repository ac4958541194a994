"""Plan of a matrix product on a chip: PCU grid, blocks and K-blocks."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math

from hw.arch.config import ChipConfig
from hw.arch.loops import COUNT_SHIFT
from hw.numeric.division import ceil_div
from hw.numeric.formats import Format
from sw.lane_codes.joined_codes import cycles_per_group
from sw.passes.product_recognition import Product
from sw.stages.operand_slot import OperandSlot

__all__ = ["MOST_BLOCKS", "Plan", "fewest_rows", "load_streams", "spread"]

#: Column blocks of which the last may have a pass less: the count of its loop is shifted.
MOST_BLOCKS = 2 + 2**COUNT_SHIFT.high - 1


@functools.lru_cache(maxsize=4096)
def spread(count: int, over: int) -> tuple[tuple[int, int], ...]:
    """Divide ``count`` items over at most ``over`` owners: first item and number of each owner."""
    over = min(over, count)
    edges = [index * count // over for index in range(over + 1)]
    return tuple((start, stop - start) for start, stop in itertools.pairwise(edges))


def fewest_rows(config: ChipConfig) -> int:
    """Least rows per tile that hide the sum latency and the wavefront of the weight swap."""
    sums = config.grid_rows * config.pcu.cell_latency
    wave = (config.grid_rows - 1) * config.pcu.cell_latency + config.grid_columns
    return max(sums, wave) + 2


def load_streams(config: ChipConfig) -> int:
    """Load streams of all AGCUs: two each, or one beside one vector track or one token track."""
    return config.agcu.count * (1 if 1 in (config.tracks, config.token_tracks) else 2)


@dataclasses.dataclass(frozen=True)
class Plan:
    """A product on a grid of ``row_par`` × ``col_par`` PCUs.

    A row group is a stream of activations to ``col_par`` PCUs; all PCUs of a grid column have the
    same weights. A pass computes ``col_par`` · C columns of a row block over the whole sum. A
    column block takes ``halves`` × ``passes`` passes. A PCU's weights are whole columns of a block
    in the scratchpad, so where a pass is narrower than such a block, its halves are loaded in
    sequence.

    The plan of a turned product computes Cᵀ = Bᵀ·Aᵀ: here A is the matrix that streams, in memory
    B, and a row of C is a column in memory.

    Parameters
    ----------
    product : Product
    config : ChipConfig
    row_par, col_par : int
        The PCU grid.
    rows : int
        Rows per group in a row block.
    row_blocks : int
    passes : int
        Passes per window of B, ``pass_stride`` columns apart.
    halves : int
        Windows of B per column block.
    col_blocks : int
    tiles : int
        K tiles of the sum that are loaded, padding included.
    a_slab, b_slab : int
        Tiles per slot of A and of B; both divide the tiles of a segment of the sum.
    resident : bool
        Whether a row group's whole panel stays for all passes; otherwise every pass fetches it.
    grouped : bool
        Whether the passes of a column block run at once: each tile of A meets the weights of all.
    """

    product: Product
    config: ChipConfig
    row_par: int
    col_par: int
    rows: int
    row_blocks: int
    passes: int
    halves: int
    col_blocks: int
    tiles: int
    a_slab: int
    b_slab: int
    resident: bool
    grouped: bool = False

    @functools.cached_property
    def lanes(self) -> int:
        """Operand elements per vector, which are the terms per tile."""
        return self.config.width_bits // self.product.fmt.bits

    @property
    def grid(self) -> tuple[int, int]:
        """PCUs over which rows and columns of C are split, as it lies in memory."""
        grid = self.row_par, self.col_par
        return grid[::-1] if self.product.turned else grid

    @property
    def out_lanes(self) -> int:
        """Result elements per vector."""
        return self.config.width_bits // self.product.out.bits

    @property
    def vector_bytes(self) -> int:
        """Bytes of a vector."""
        return self.config.width_bits // 8

    @property
    def one_operand(self) -> bool:
        """Whether an AGCU loads only A or only B."""
        return load_streams(self.config) == self.config.agcu.count

    @property
    def out_rows(self) -> int:
        """Rows of results per vector, which holds C elements of each."""
        return self.out_lanes // self.config.grid_columns

    @property
    def packet_rows(self) -> int:
        """Rows of results per packet, if a pass is `cut`: those of the longest vector."""
        epilogue = self.product.epilogue
        return epilogue.rows if epilogue else self.out_rows

    @functools.cached_property
    def result_lanes(self) -> int:
        """Elements of the longest vector of the result or of a tile beside it."""
        return self.config.width_bits // self.product.narrowest

    @property
    def lane_cycles(self) -> int:
        """Cycles in which a row of C elements passes the lanes of a PCU in a phase."""
        return self.config.grid_columns // max(1, self.config.pcu.lanes)

    @functools.cached_property
    def drain_cycles(self) -> int:
        """Cycles in which a row of sums leaves a PCU."""
        epilogue = self.product.epilogue
        if not epilogue or not epilogue.first:
            return 1
        return math.ceil(self.lane_cycles * cycles_per_group(epilogue.first, self.config))

    @property
    def lane_packets(self) -> int:
        """Packets that the lane programs of the epilogue take."""
        epilogue, columns = self.product.epilogue, self.all_passes * self.pass_columns
        if epilogue is None:
            return 0
        rows = ceil_div(self.row_blocks * self.block_rows, epilogue.rows)
        return rows * ceil_div(columns, self.config.grid_columns) * len(epilogue.codes)

    @property
    def side_inputs(self) -> int:
        """Inputs of the epilogue."""
        return len(self.product.epilogue.inputs) if self.product.epilogue else 0

    @property
    def pass_columns(self) -> int:
        """Columns per pass."""
        return self.col_par * self.config.grid_columns

    @functools.cached_property
    def pass_stride(self) -> int:
        """Columns from one pass of a window to the next."""
        if self.product.turned and self.product.b_along_k:
            return self.pass_columns
        return max(self.pass_columns, self.lanes, self.result_lanes)

    @property
    def columns(self) -> int:
        """Columns per column block."""
        return self.passes * self.pass_stride

    @functools.cached_property
    def c_blocks(self) -> int:
        """Slots of C per column block: one per half if that is whole vectors, or rows of memory."""
        if self.grouped:
            return 1 if self.c_split else self.passes
        whole = self.product.turned or not self.pass_columns % self.result_lanes
        return self.halves if self.passes == 1 and whole else 1

    @property
    def c_slots(self) -> int:
        """Slots of C per block of rows."""
        return self.col_blocks * self.c_blocks - (0 if self.c_split else self.spare_passes)

    @property
    def c_columns(self) -> int:
        """Columns per slot of C."""
        return self.pass_columns if self.c_blocks > 1 else self.columns

    def box_columns(self, form: Format) -> int:
        """Columns of memory per slot of C, or of a tile of a format beside it.

        They are whole vectors or, of a turned product, rows there.
        """
        lanes = self.config.width_bits // form.bits
        if self.product.turned and self.product.n <= lanes:
            return min(self.c_columns, self.product.n)
        if self.col_blocks * self.c_blocks > 1:
            return self.c_columns
        return min(self.c_columns, ceil_div(self.product.n, lanes) * lanes)

    def held_columns(self, form: Format) -> int:
        """Columns of a format that a slot of C has room for: whole vectors."""
        lanes = self.config.width_bits // form.bits
        return ceil_div(self.c_columns, lanes) * lanes

    @functools.cached_property
    def spare_tiles(self) -> int:
        """Tiles of padding, at the end of the last slab, that are not read.

        The count of a loop over tiles is that of the last slab if it is one less, or if there are
        at most two slabs (`sw.stages.operand_walks.tile_loop`).
        """
        if self.product.segments > 1:
            return 0
        spare = self.tiles - ceil_div(self.product.k, self.lanes)
        slabs = ((self.a_slabs, self.a_slab), (self.b_slabs, self.b_slab))
        short = all(
            spare < tiles and (spare < 2 or count < 3) and count <= MOST_BLOCKS
            for count, tiles in slabs
        )
        return spare if short else 0

    @property
    def read_tiles(self) -> int:
        """Tiles of the sum that are read and multiplied."""
        return self.tiles - self.spare_tiles

    @functools.cached_property
    def a_slot(self) -> OperandSlot:
        """Contents of a slot of A."""
        return OperandSlot(self.rows, self.a_slab, self.lanes, self.product.a_along_k)

    @functools.cached_property
    def b_slot(self) -> OperandSlot:
        """Contents of a slot of B: along k only the columns that are read."""
        unread = self.pass_stride - self.pass_columns if self.product.b_along_k else 0
        return OperandSlot(self.columns - unread, self.b_slab, self.lanes, self.product.b_along_k)

    @property
    def rows_shared(self) -> bool:
        """Whether two AGCUs can share the slots of A of the only row group."""
        alone = self.row_par == 1 and self.config.agcu.count > 1 and not self.product.turned
        return alone and self.a_slot.halves(self.product.m, self.product.adjacent)

    @property
    def b_kept(self) -> bool:
        """Whether B is loaded once and kept for all row blocks."""
        slots, size = self.config.pmu.slots, self.config.pmu.capacity_bytes
        fits = self.b_slabs <= slots and self.b_slabs * self.b_bytes <= size
        return self.product.turned and self.all_passes == 1 and fits

    @property
    def b_windows(self) -> int:
        """Windows of B that are loaded."""
        return 1 if self.b_kept else self.row_blocks * self.col_blocks * self.halves

    @property
    def block_rows(self) -> int:
        """Rows per row block, over all groups."""
        return self.row_par * self.rows

    @property
    def all_passes(self) -> int:
        """Passes per row block."""
        return self.col_blocks * self.halves * self.passes - self.spare_passes

    @property
    def together(self) -> int:
        """Passes that run at once, in all column blocks but perhaps the last."""
        return self.passes if self.grouped else 1

    @functools.cached_property
    def spare_passes(self) -> int:
        """Passes at once that the last column block has less than the others."""
        if not self.grouped:
            return 0
        return self.col_blocks * self.passes - ceil_div(self.product.n, self.pass_stride)

    @property
    def b_split(self) -> bool:
        """Whether a vector of a row of B is divided between two passes at once."""
        across = self.grouped and not self.product.b_along_k
        return across and self.pass_columns % self.lanes > 0

    @property
    def c_split(self) -> bool:
        """Whether a vector of a row of C is divided between two passes at once."""
        return self.grouped and self.pass_columns % self.result_lanes > 0

    @property
    def last_vectors(self) -> int:
        """Vectors of a row of C that are stored of the last column block, if one is `c_split`."""
        if self.col_blocks > MOST_BLOCKS:
            return self.columns // self.result_lanes
        last = self.product.n - (self.col_blocks - 1) * self.columns
        return ceil_div(last, self.result_lanes)

    @property
    def panel_reads(self) -> int:
        """Times that a row block's panel of A is read."""
        return self.col_blocks if self.grouped else self.all_passes

    @property
    def a_slabs(self) -> int:
        """Slots per panel of A."""
        return self.tiles // self.a_slab

    @property
    def b_slabs(self) -> int:
        """Slots per window of B."""
        return self.tiles // self.b_slab

    @property
    def a_bytes(self) -> int:
        """Bytes per slot of A."""
        return self.a_slot.elements * self.product.fmt.bits // 8

    @property
    def b_bytes(self) -> int:
        """Bytes per slot of B."""
        return self.b_slot.elements * self.product.fmt.bits // 8

    @property
    def held_rows(self) -> int:
        """Rows per group in a slot of C: whole vectors of results."""
        return self.result_vectors * self.out_rows

    @property
    def result_vectors(self) -> int:
        """Result vectors per PCU and pass."""
        return ceil_div(self.rows, self.out_rows)

    @property
    def one_pass(self) -> bool:
        """Whether a slot of C has the results of one pass, so that its rows are complete in turn.

        A slot may then have only some of the rows.
        """
        if self.grouped:
            return not self.c_split
        return self.passes == 1 and self.halves == self.c_blocks

    @property
    def cut(self) -> bool:
        """Whether result packets have `packet_rows` rows instead of those of a whole pass."""
        return self.grouped or self.one_pass or self.product.epilogue is not None

    def block_bytes(self, form: Format, groups: int, columns: int, pieces: int) -> int:
        """Bytes per slot of C, or of a tile of a format beside it.

        A piece of the rows of row groups, the results of PCU columns.
        """
        rows = 32 // form.bits
        held = ceil_div(self.rows, rows) * rows // pieces
        stored = self.held_columns(form) * columns // self.col_par
        return groups * held * stored * form.bits // 8

    @property
    def macs_issued(self) -> int:
        """Multiply-accumulates issued, padding included."""
        columns = self.all_passes * self.pass_columns
        return self.row_blocks * self.block_rows * columns * self.read_tiles * self.lanes

    @property
    def tile_cycles(self) -> int:
        """Cycles per tile: the largest of its rows, the sum latency and the weight load."""
        # The weights of all PCU columns share one link. Those of a PCU's next tile wait until those
        # of the last one are in use, and others pass meanwhile, if there are any.
        weights = max(self.pass_columns, 2 * self.config.grid_columns)
        least = fewest_rows(self.config) if self.read_tiles > 1 else 1
        return max(self.rows, least, weights)

    @property
    def grid_cycles(self) -> int:
        """Cycles of all tiles of a PCU."""
        return self.row_blocks * self.all_passes * self.read_tiles * self.tile_cycles

    def describe(self) -> str:
        """The plan as a line of text."""
        kind = "resident" if self.resident else "streamed"
        turned = "transposes, " if self.product.turned else ""
        at_once = " at once" if self.grouped else ""
        return (
            f"{turned}grid {self.row_par} x {self.col_par}, {self.row_blocks} blocks of "
            f"{self.row_par} x {self.rows} rows, {self.col_blocks} blocks of {self.columns} "
            f"columns in {self.halves * self.passes} passes{at_once}, "
            f"{self.read_tiles} tiles of {self.lanes}, "
            f"slabs of {self.a_slab} (A, {kind}) and {self.b_slab} (B)"
        )
