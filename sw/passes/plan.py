"""What a product of matrices becomes on a chip: the grid of units, blocks and slabs."""

from __future__ import annotations

import dataclasses

from hw.arch.config import ChipConfig
from sw.passes.stage import Product

__all__ = ["Plan", "fewest_rows"]


def fewest_rows(config: ChipConfig) -> int:
    """Rows a tile needs so that neither its sums nor its weights' wave are waited for."""
    sums = config.grid_rows * config.pcu.cell_latency
    wave = (config.grid_rows - 1) * config.pcu.cell_latency + config.grid_columns
    return max(sums, wave) + 2


@dataclasses.dataclass(frozen=True)
class Plan:
    """A product on a grid of ``row_par`` × ``col_par`` PCUs.

    A row group is a stream of activations that ``col_par`` PCUs take; every PCU of a column of
    the grid has the same weights. A pass makes ``col_par`` · C columns of a block of rows, over
    the whole sum; a block of columns is loaded at once and gone through in ``halves`` × ``passes``
    passes. A PCU's weights come from whole columns of a scratchpad's block, so where a pass is
    narrower than one, its halves are loaded one after the other.

    Parameters
    ----------
    product : Product
    config : ChipConfig
    row_par, col_par : int
        The grid.
    rows : int
        Rows of a group in a block.
    row_blocks : int
    passes : int
        Passes of a window of B, each a further ``pass_stride`` columns.
    halves : int
        Windows of B a block of columns.
    col_blocks : int
    tiles : int
        Tiles of the sum, padding included.
    a_slab, b_slab : int
        Tiles in a slot of A and of B; both divide ``tiles``.
    resident : bool
        A row group's whole panel stays for all passes; else it is fetched for each.
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

    @property
    def lanes(self) -> int:
        """Operand elements of a vector, and terms of a tile."""
        return self.config.width_bits // self.product.fmt.bits

    @property
    def out_lanes(self) -> int:
        """Result elements of a vector."""
        return self.config.width_bits // self.product.out.bits

    @property
    def vector_bytes(self) -> int:
        """Bytes of a vector."""
        return self.config.width_bits // 8

    @property
    def one_operand(self) -> bool:
        """An AGCU loads A or B, not both: the chip has one track for vectors or for tokens."""
        return 1 in (self.config.tracks, self.config.token_tracks)

    @property
    def packed(self) -> bool:
        """A vector of results holds two rows."""
        return self.out_lanes == 2 * self.config.grid_columns

    @property
    def pass_columns(self) -> int:
        """Columns of a pass."""
        return self.col_par * self.config.grid_columns

    @property
    def pass_stride(self) -> int:
        """Columns from one pass of a window to the next."""
        return max(self.pass_columns, self.lanes)

    @property
    def columns(self) -> int:
        """Columns of a block."""
        return self.passes * self.pass_stride

    @property
    def c_blocks(self) -> int:
        """Slots of C that a block of columns fills: one a half, where that is whole vectors."""
        alone = self.passes == 1 and not self.pass_columns % self.out_lanes
        return self.halves if alone else 1

    @property
    def c_columns(self) -> int:
        """Columns of a slot of C."""
        return self.pass_columns if self.c_blocks > 1 else self.columns

    @property
    def stored_columns(self) -> int:
        """Columns of a slot of C that are stored, in whole vectors."""
        if self.col_blocks * self.c_blocks > 1:
            return self.c_columns
        return min(self.c_columns, -(-self.product.n // self.out_lanes) * self.out_lanes)

    @property
    def block_rows(self) -> int:
        """Rows of a block, of all groups."""
        return self.row_par * self.rows

    @property
    def all_passes(self) -> int:
        """Passes over a block of rows."""
        return self.col_blocks * self.halves * self.passes

    @property
    def a_slabs(self) -> int:
        """Slots that a panel of A fills."""
        return self.tiles // self.a_slab

    @property
    def b_slabs(self) -> int:
        """Slots that a window of B fills."""
        return self.tiles // self.b_slab

    @property
    def a_bytes(self) -> int:
        """Bytes of a slot of A."""
        return self.rows * self.a_slab * self.vector_bytes

    @property
    def b_bytes(self) -> int:
        """Bytes of a slot of B."""
        return self.b_slab * self.lanes * self.columns * self.product.fmt.bits // 8

    @property
    def held_rows(self) -> int:
        """Rows a group takes in a slot of C: whole vectors of results."""
        return self.rows + (self.rows & 1 if self.packed else 0)

    @property
    def result_vectors(self) -> int:
        """Vectors that a PCU gives a pass."""
        return -(-self.rows // 2) if self.packed else self.rows

    def c_bytes(self, groups: int) -> int:
        """Bytes of a slot of C for some row groups."""
        return groups * self.held_rows * self.c_columns * self.product.out.bits // 8

    @property
    def macs_issued(self) -> int:
        """Multiply-accumulates of the grid, padding included."""
        columns = self.all_passes * self.pass_columns
        return self.row_blocks * self.block_rows * columns * self.tiles * self.lanes

    @property
    def tile_cycles(self) -> int:
        """Cycles of a tile: its rows, its accumulators' or its weights', whichever are most."""
        # Weights of all columns come over one link, and one column's are waited for by all.
        weights = self.pass_columns + self.config.grid_columns
        least = fewest_rows(self.config) if self.tiles > 1 else 1
        return max(self.rows, least, weights)

    def describe(self) -> str:
        """The plan as a line of text."""
        kind = "resident" if self.resident else "streamed"
        return (
            f"grid {self.row_par} x {self.col_par}, {self.row_blocks} blocks of "
            f"{self.row_par} x {self.rows} rows, {self.col_blocks} blocks of {self.columns} "
            f"columns in {self.halves * self.passes} passes, {self.tiles} tiles of {self.lanes}, "
            f"slabs of {self.a_slab} (A, {kind}) and {self.b_slab} (B)"
        )
