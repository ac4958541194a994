"""Pipelines of two products with a softmax of rows between them: scores units and values units.

A group of queries lies in the columns of all pairs of PCUs. Blocks of keys go to every scores unit,
those of values to every values unit; a scores unit gives its powers to the values unit of its pair
without a buffer between them (docs/fused_softmax.md). Vectors of the results come from all pairs in
turn, and are stored as rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from hw.arch.agcu import AGCU_STREAMS
from hw.arch.config import ChipConfig
from hw.arch.descriptor import BASE_ALIGNMENT, MAX_BOX, Descriptor
from hw.arch.lanes.key_mask import KeyMask
from hw.arch.lanes.softmax_program import SoftmaxProgram, SoftmaxRole
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import FilterProgram, PcuInput, PcuOutput, PcuProgram
from hw.arch.pmu import Beyond
from hw.arch.words.pmu_word import Access, Level
from hw.numeric.division import ceil_div
from hw.numeric.formats import bf16
from hw.numeric.fused_softmax import score_scale
from sw.array_spec import ArraySpec
from sw.passes.field_limits import Unfit, require_count, unfit
from sw.stages.chip_share import beside_text, of_all_points, share_of
from sw.stages.long_rows import rows_of, whole_pieces_of
from sw.stages.pipeline import Pipeline, PipelineParts, fitting
from sw.stages.softmax.chosen_sizes import SoftmaxSizes
from sw.stages.softmax.softmax_product import SoftmaxProduct
from sw.stages.softmax.softmax_sizes import (
    BLOCK_SLOTS,
    pieces_of_depth,
    require_joined,
    softmax_sizes,
)
from sw.stages.stage_graph import Hold, Socket, Walk, boxes_of
from sw.stages.walk_loops import loop

__all__ = ["softmax_pipelines"]

#: Bits of 1 in bf16.
_ONE = 0x3F80
#: Load streams for keys, values and queries.
_LOADS = 3


def softmax_pipelines(
    work: SoftmaxProduct, arrays: tuple[ArraySpec, ...], config: ChipConfig, name: str
) -> Iterator[Pipeline]:
    """Pipelines for two products with a softmax between them on a chip, best first.

    Parameters
    ----------
    work : SoftmaxProduct
    arrays : tuple of ArraySpec
        Arguments of the launch.
    config : ChipConfig
    name : str
        The kernel.

    Raises
    ------
    BadInputError
        If none fits; the message names what is needed and what there is.
    """
    return fitting(_candidates(work, arrays, config), name)


def _candidates(
    work: SoftmaxProduct, arrays: tuple[ArraySpec, ...], config: ChipConfig
) -> Iterator[Pipeline | Unfit]:
    def of_width(problem: Unfit) -> Unfit:
        rows = f"keys of {work.depth} elements and values of {work.width}"
        return Unfit(f"{rows}: {problem}", value=problem.value, rule=problem.rule)

    try:
        share = share_of(config, work.points)
        choices = softmax_sizes(work, share)
    except Unfit as problem:
        yield of_width(problem)
        return
    for sizes in choices:
        try:
            yield _Builder(work, arrays, share, sizes).pipeline(config)
        except Unfit as problem:
            yield of_width(problem)


class _Builder:
    def __init__(
        self,
        work: SoftmaxProduct,
        arrays: tuple[ArraySpec, ...],
        config: ChipConfig,
        sizes: SoftmaxSizes,
    ) -> None:
        self.work, self.arrays, self.sizes = work, arrays, sizes
        self.parts = PipelineParts(config)
        self.r, self.columns = config.grid_rows, config.grid_columns
        #: Tiles of a row of keys, and vectors of one of a part of the values.
        self.query_boxes, self.deep = pieces_of_depth(work.depth, self.r)
        self.wide = sizes.wide
        self.agcus = config.agcu.count
        #: Whether keys and values come by one stream, one after the other.
        self.joined = self.agcus * min(AGCU_STREAMS, config.token_tracks) < _LOADS
        require_count("groups of queries", sizes.groups)
        require_count("blocks of keys", sizes.blocks)

    def pipeline(self, config: ChipConfig) -> Pipeline:
        """The pipeline of all points on a chip, of which each has a share."""
        work, sizes = self.work, self.sizes
        if self.joined:
            require_joined(sizes, self.deep, self.parts.config)
        self._keys()
        for part in range(sizes.column_parts):
            self._values(part)
        if self.joined:
            self._load_joined()
        for part, (first, pairs) in enumerate(sizes.shares):
            self._queries(part, first, pairs)
        for part in range(sizes.column_parts):
            self._output(part)
        found = of_all_points(self.parts, config, self.arrays, work.points).done(
            beside_text(work.points) + sizes.text,
            sizes.queries,
            work.width,
            sizes.block,
        )
        # Columns of keys, and values with the row of ones, in whole tiles.
        deep = self.deep * self.r + sizes.column_parts * (self.wide * self.r + 1)
        counts = sizes.count.of(sizes.groups)
        issued = work.points * int(counts.sum()) * sizes.block * sizes.queries * deep
        return dataclasses.replace(
            found, macs_issued=issued, cycles=sizes.cycles, start=sizes.start
        )

    def _rows(
        self, tensor: str, columns: int, rows: int, row: int = 0, column: int = 0
    ) -> tuple[Descriptor, int]:
        """Boxes of rows, from a row and a column on, and the launch argument."""
        if column * 2 % BASE_ALIGNMENT:
            raise unfit("Bytes before a column", f"be a multiple of {BASE_ALIGNMENT}", 2 * column)
        if columns <= MAX_BOX:
            return boxes_of(self.arrays, tensor, (columns, rows), row, column)
        pieces = whole_pieces_of(columns, bf16, self.r)
        return rows_of(self.arrays, tensor, pieces, rows, row)

    def _written(self, walk: Walk, modulus: int, index: int) -> Walk:
        """Walk over the slots of blocks as they are written, by some boxes of a load stream."""
        sizes = self.sizes
        walk = dataclasses.replace(walk, modulus=modulus, index=index)
        if sizes.kept:
            return dataclasses.replace(walk, slots=LoopProgram(sizes.blocks))
        windows, slots = LoopProgram(sizes.groups), sizes.count.loop(Level.WINDOWS)
        return dataclasses.replace(walk, windows=windows, slots=slots)

    def _read(self, walk: Walk) -> Walk:
        """Walk over the slots of blocks, as they are read for each group."""
        sizes = self.sizes
        groups = LoopProgram(sizes.groups)
        if sizes.kept:
            slots = sizes.count.loop(Level.REPEATS)
            return dataclasses.replace(walk, repeats=groups, slots=slots)
        return dataclasses.replace(walk, windows=groups, slots=sizes.count.loop(Level.WINDOWS))

    def _hold_blocks(self, name: str, hold: Hold, alignment: int) -> None:
        least, wanted = (self.sizes.blocks,) * 2 if self.sizes.kept else (2, BLOCK_SLOTS)
        self.parts.hold(
            name, hold, least=least, wanted=wanted, rate=1.0, alignment=alignment, tokens=True
        )

    def _load_blocks(
        self,
        agcu: int,
        tensor: tuple[Descriptor, int],
        sinks: list[Socket],
        across: tuple[int, int],
    ) -> None:
        """Load of the boxes of blocks, in turn to buffers, whose boxes are steps apart.

        Parameters
        ----------
        across : tuple of (int, int)
            Dimension and elements of a step.
        """
        sizes, dimension = self.sizes, tensor[0].rank - 1
        step = sizes.block if sizes.blocks > 1 else 0
        loops: tuple[BoxLoop, ...] = (BoxLoop(sizes.blocks, dimension, step),)
        if not sizes.kept:
            loops = (BoxLoop(sizes.groups), sizes.count.boxes(0, dimension, step))
        if len(sinks) > 1:
            loops += (BoxLoop(len(sinks), *across),)
        first = sinks[0]
        self.parts.load(f"{first.stage}_load{first.port}", agcu, tensor, loops, sinks)

    def _keys(self) -> None:
        """Blocks of keys: rows, sent tile by tile, a packet each."""
        sizes, block, r = self.sizes, self.sizes.block, self.r
        rows, tiles = block // sizes.parts, self.deep // sizes.key_buffers
        pieces = loop(tiles, block * r)
        names = [f"keys{number}" for number in range(sizes.key_buffers)]
        for number, name in enumerate(names):
            turn = (2, 0) if self.joined else (len(names), number)
            writes = tuple(
                self._written(Walk((loop(rows, r), pieces), offset=part * rows * r), *turn)
                for part in range(sizes.parts)
            )
            read = Walk(
                (pieces, loop(block, r)),
                last_level=Level.ADDRESS + 1,
                final_level=Level.ADDRESS if name == names[-1] else None,
            )
            hold = Hold(block * tiles * r * 2, 2, writes, (self._read(read),))
            self._hold_blocks(name, hold, 2)
        for part in range(0 if self.joined else sizes.parts):
            tensor = self._rows(self.work.k, tiles * r, rows, part * rows)
            sinks = [Socket(name, part) for name in names]
            self._load_blocks(part, tensor, sinks, (0, tiles * r))
        sources = [(Socket(name), tiles if names[1:] else 1) for name in names]
        self.parts.join("keys", sources, self._all("scores", PcuInput.ACTIVATION))

    def _values(self, part: int) -> None:
        """Blocks of a part of values: columns of R keys, as tiles with a row of ones behind."""
        sizes, r, wide = self.sizes, self.r, self.wide
        names = [f"values{part}_{number}" for number in range(sizes.value_buffers)]
        down, loads = sizes.block // r // len(names), sizes.parts
        by_keys = down % loads == 0
        if not by_keys and wide % loads:
            loads = 1
        own = (down // loads, wide) if by_keys else (down, wide // loads)
        offset = own[0] * wide * r**2 if by_keys else own[1] * r**2
        squares = loop(down, wide * r**2)
        filled = loop(own[0], squares.stride), LoopProgram(r, stride=r), loop(own[1], r**2)
        phase = Level.ADDRESS + 1
        across = dataclasses.replace(loop(wide, r**2), slope=1 - wide, outer=phase)
        for number, name in enumerate(names):
            turn = (2, 1) if self.joined else (len(names), number)
            writes = tuple(
                self._written(Walk(filled, offset=each * offset), *turn) for each in range(loads)
            )
            read = Walk(
                (squares, LoopProgram(2), across, LoopProgram(r, 1, slope=1 - r, outer=phase)),
                access=Access.COLUMN,
                last_level=phase,
                final_level=Level.SLOTS if name == names[-1] else None,
                beyond=Beyond(phase, 1, _ONE),
            )
            self._hold_blocks(name, Hold(down * wide * r**2 * 2, 2, writes, (self._read(read),)), r)
        for each in range(0 if self.joined else loads):
            row, column = (each * own[0] * r, 0) if by_keys else (0, each * own[1] * r)
            column += part * wide * r
            tensor = self._rows(self.work.v, own[1] * r, own[0] * r, row, column)
            sinks = [Socket(name, each) for name in names]
            dimension = tensor[0].rank - 1
            self._load_blocks(self.agcus // 2 + each, tensor, sinks, (dimension, down * r))
        sources = [(Socket(name), down if names[1:] else 1) for name in names]
        self.parts.join(f"values{part}", sources, self._all(f"sums{part}_", PcuInput.ACTIVATION))

    def _load_joined(self) -> None:
        """One load stream of all keys, then all values."""
        rows, once = self.sizes.blocks * self.sizes.block, (BoxLoop(1),)
        values = self._rows(self.work.v, self.wide * self.r, rows)
        self.parts.load(
            "blocks_load",
            0,
            self._rows(self.work.k, self.deep * self.r, rows),
            once,
            [Socket("keys0"), Socket("values0_0")],
            slots=self.sizes.blocks,
            following=((*values, once),),
        )

    def _queries(self, part: int, first: int, pairs: int) -> None:
        """Queries of some pairs: tiles of C of them, unit after unit, again for each block."""
        sizes, r, name, boxes = self.sizes, self.r, f"queries{part}", self.query_boxes
        rows, tiles = pairs * self.columns, self.deep // boxes
        pieces, windows = loop(tiles, rows * r), LoopProgram(sizes.groups)
        # Each box of a row fills a slot.
        slots = LoopProgram(boxes)
        write = Walk((loop(rows, r), pieces), windows=windows, slots=slots)
        read = Walk(
            (pieces, loop(pairs, self.columns * r), LoopProgram(self.columns, stride=r)),
            windows=windows,
            repeats=sizes.count.loop(Level.WINDOWS),
            slots=slots,
            last_level=Level.ADDRESS + 2,
            final_level=Level.REPEATS,
        )
        hold = Hold(rows * tiles * r * 2, 2, (write,), (read,))
        rate = min(1.0, rows / sizes.block)
        self.parts.hold(
            name, hold, least=boxes, wanted=2 * boxes, rate=rate, alignment=2, tokens=True
        )
        tensor = self._rows(self.work.q, tiles * r, rows, first * self.columns)
        step = sizes.queries if sizes.groups > 1 else 0
        loops: tuple[BoxLoop, ...] = (BoxLoop(sizes.groups, tensor[0].rank - 1, step),)
        if boxes > 1:
            loops += (BoxLoop(boxes, 0, tiles * r),)
        self.parts.load(f"{name}_load", part, tensor, loops, [Socket(name)])
        units = self._all("scores", PcuInput.WEIGHT)[first : first + pairs]
        self.parts.join(name, [(Socket(name), 1)], units)
        for number in range(pairs):
            self._pair(first + number, FilterProgram(pairs, number))

    def _all(self, kind: str, port: PcuInput | PcuOutput) -> list[Socket]:
        """A port of all units of a kind."""
        return [Socket(f"{kind}{number}", port) for number in range(self.sizes.pairs)]

    def _mask(self, number: int) -> KeyMask:
        """Keys that the queries of a pair see."""
        work, sizes = self.work, self.sizes
        length = work.keys if sizes.blocks * sizes.block > work.keys else 0
        if work.offset is None:
            return KeyMask(length=length)
        return KeyMask(
            length=length,
            causal=True,
            window=work.window,
            offset=work.offset + number * self.columns,
            query_step=sizes.queries,
            groups=sizes.groups,
        )

    def _pair(self, number: int, weight: FilterProgram) -> None:
        """A scores unit, and the values units to which it gives its powers."""
        factor = float(score_scale(self.work.scale))
        self.parts.product(
            f"scores{number}",
            PcuProgram(
                softmax=SoftmaxProgram(SoftmaxRole.SCORES, factor, self._mask(number)),
                weight=weight,
            ),
        )
        names = [f"sums{part}_{number}" for part in range(self.sizes.column_parts)]
        for name in names:
            # Packets of one vector: the drains of all pairs overlap.
            self.parts.product(
                name,
                PcuProgram(
                    softmax=SoftmaxProgram(SoftmaxRole.VALUES),
                    weights_by_row=True,
                    packet_vectors=1,
                ),
            )
        source = Socket(f"scores{number}", PcuOutput.RESULT)
        sinks = [Socket(name, PcuInput.WEIGHT) for name in names]
        self.parts.join(f"powers{number}", [(source, 1)], sinks)

    def _pair_loops(self, outer: int) -> tuple[LoopProgram, ...]:
        """Loops over pairs in a slot of results: two lie beside each other, the last may be one.

        Parameters
        ----------
        outer : int
            Position of the first loop.
        """
        pairs, square = self.sizes.pairs, self.wide * self.r**2
        if pairs == 1:
            return ()
        down = ceil_div(pairs, 2)
        beside = LoopProgram(2, stride=self.columns)
        if pairs % 2:
            # 2, and 1 in the last step.
            shift = (down - 1).bit_length()
            base = (2 << shift) + down - 2
            beside = LoopProgram(base, stride=self.columns, slope=-1, outer=outer, shift=shift)
        return loop(down, square), beside

    def _output(self, part: int) -> None:
        """Results of a group: pieces of two columns of all pairs in turn, sent as rows."""
        sizes, r, name = self.sizes, self.r, f"output{part}"
        squares = loop(self.wide, r**2)
        windows = LoopProgram(sizes.groups)
        rows = loop(r // 2, 2 * r)
        write = Walk(
            (squares, rows, *self._pair_loops(Level.ADDRESS + 2)),
            access=Access.TWO_ROWS,
            windows=windows,
        )
        read = Walk(
            (*self._pair_loops(Level.ADDRESS), LoopProgram(self.columns, stride=1), squares),
            access=Access.COLUMN,
            windows=windows,
        )
        slot = ceil_div(sizes.pairs, 2) * self.wide * r**2 * 2
        hold = Hold(slot, 2, (write,), (read,))
        self.parts.hold(name, hold, wanted=2, rate=0.1, alignment=r, tokens=False)
        results = self._all(f"sums{part}_", PcuOutput.RESULT)
        self.parts.join(f"results{part}", [(each, 1) for each in results], [Socket(name)])
        columns = self.wide * r
        tensor = self._rows(self.work.o, columns, sizes.queries, 0, part * columns)
        step = sizes.queries if sizes.groups > 1 else 0
        loops = (BoxLoop(sizes.groups, 1, step),)
        self.parts.store(f"{name}_store", self.agcus - 1, tensor, loops, [(Socket(name), 1)])
