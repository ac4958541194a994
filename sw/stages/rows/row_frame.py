"""Geometry of a pipeline with rows on lanes: groups of rows, vectors per column, slots of a row."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from enum import Enum

from hw.arch.agcu import AGCU_STREAMS
from hw.arch.config import ChipConfig
from hw.arch.descriptor import MAX_BOX
from hw.arch.lanes.phase_word import Fetched
from hw.numeric.division import ceil_div
from hw.numeric.formats import Format
from sw.array_spec import ArraySpec
from sw.fabric.merges import MOST_COLLECTED
from sw.lane_codes.lane_code import LaneCode
from sw.passes.field_limits import require_count, unfit
from sw.stages.grids import Grid
from sw.stages.long_rows import chunks_of
from sw.stages.pipeline import PipelineParts, require_first_statistics
from sw.stages.region import Region, TilePart
from sw.stages.rows.row_pieces import RowPieces

__all__ = ["ResultBuffers", "RowFrame", "Streamed"]

#: Columns, at least, of a piece of a row that is loaded once: bursts of some beats.
_SHORTEST = 64


class Streamed(Enum):
    """Inputs of a pipeline that pass in pieces, and how often these are loaded."""

    NOTHING = "nothing"
    #: Rows, loaded once: their pieces stay in slots until the last packet.
    ONCE = "once"
    #: Rows, loaded again for each packet of a block of rows.
    ROWS = "rows"
    #: Rows, and vectors along the columns, loaded again for each packet.
    VECTORS = "vectors"


@dataclasses.dataclass(frozen=True)
class ResultBuffers:
    """How results of a pipeline are collected and stored.

    Parameters
    ----------
    widest : int
        Most columns of a stored box, and of a piece of rows that pass in pieces.
    engines : int
        Write engines of a buffer; two where one cannot serve all copies.
    apart : bool
        No AGCU stores two results, so that none waits for its turn behind the other.
    """

    widest: int
    engines: int
    apart: bool = False


class RowFrame:
    """Groups of rows on lanes, and how much of a tensor lies in a slot.

    Parameters
    ----------
    region : Region
    codes : tuple of LaneCode
        Lane programs; all but the first have one phase.
    arrays : tuple of ArraySpec
        Arguments of the launch.
    config : ChipConfig
    grid : Grid
        Lines of an AGCU each, and copies of the chain of lane programs in a line. Copies that share
        all programs but the first send whole rows, in turn.
    streamed : Streamed
        What passes in pieces.
    results : ResultBuffers

    Raises
    ------
    Unfit
        If no pipeline of this kind has these lane programs, or there are too few AGCUs for results
        that are stored apart.
    """

    def __init__(
        self,
        region: Region,
        codes: tuple[LaneCode, ...],
        arrays: tuple[ArraySpec, ...],
        config: ChipConfig,
        grid: Grid,
        streamed: Streamed,
        results: ResultBuffers,
    ) -> None:
        self.region, self.codes, self.arrays = region, codes, arrays
        self.parts = PipelineParts(config)
        self.copies, self.share = grid.copies, grid.share
        self.streamed, self.results = streamed, results
        #: Whether rows pass in pieces that are loaded again.
        self.in_pieces = streamed in (Streamed.ROWS, Streamed.VECTORS)
        #: Whether the packets of the first code are whole rows.
        self.whole = bool(region.whole) or len(codes[0].phases) > 1
        #: Slots of a row that is loaded once.
        self.row_slots = self._row_slots() if streamed is Streamed.ONCE else 1
        #: Rows of a group: positions of a vector of the source, or of the longest vector.
        self.group = self.parts.vector(codes[0].formats[codes[0].source])
        if not self.whole:
            self.group = max(self.parts.vector(form) for form in self.formats())
        blocks = ceil_div(region.rows, self.group * self.copies)
        self.lines = min(grid.lines, blocks)
        # Streams that all lines share take as many packets in each: some last blocks lie outside.
        self.blocks = ceil_div(blocks, self.lines)
        require_count("blocks of rows", self.blocks)
        self._require_streams()
        self._require_apart()
        for number in filter(self.stores, range(len(codes))):
            if (rows := self.group * self.count(number) // self.result_parts(number)) > MAX_BOX:
                raise unfit("Rows of a block of results", f"be at most {MAX_BOX}", rows)
        require_first_statistics(codes)
        for number in range(len(codes)):
            sent = self.sent(number)
            if len(sent) > 1 and not region.outputs.keys() >= set(sent):
                rule = "send one value, or only such as are stored"
                raise unfit("A lane program with row statistics", rule, len(sent))
        #: Columns that come once for a packet of the first code, in the order of its phases.
        self.kept = tuple(
            value
            for each in codes[0].phases
            for value in each.beside
            if each.source is None and value in region.inputs
        )
        self._require_kept()
        if self.share > 1:
            self._require_sharing()

    def _require_streams(self) -> None:
        """Every input has a load stream in each line, and a vector along the columns one for all.

        Raises
        ------
        Unfit
            If there are fewer; to know it before a pipeline is built takes less time.
        """
        if not self._has_streams(1):
            raise self.parts.too_many_streams("Load", self.parts.load_streams)

    def _require_apart(self) -> None:
        """Results that are stored apart have AGCUs of their own.

        Raises
        ------
        Unfit
            If there are fewer.
        """
        needed, most = len(self.region.outputs) * self._storing(), self.parts.config.agcu.count
        if self.results.apart and needed > most:
            raise unfit("AGCUs of results stored apart", f"be at most {most}", needed)

    def _storing(self) -> int:
        """AGCUs that store each result that is stored apart: one a line if there are enough."""
        enough = len(self.region.outputs) * self.lines <= self.parts.config.agcu.count
        return self.lines if enough else ceil_div(self.lines, AGCU_STREAMS)

    def result_agcu(self, line: int, value: str) -> int:
        """AGCU that stores a result of a line."""
        if not self.results.apart:
            return line
        each = self._storing()
        return [*self.region.outputs].index(value) * each + line * each // self.lines

    def _require_kept(self) -> None:
        """Columns that become statistics are taken once, and by the first program.

        Raises
        ------
        Unfit
            If one is taken again.
        """
        phases = [each for code in self.codes for each in code.phases]
        for value in self.kept:
            uses = sum(value in each.beside for each in phases)
            if uses > 1:
                raise unfit(f"Uses of `{value}` as a statistic", "be 1", uses)

    @property
    def shares_kept(self) -> bool:
        """Whether one buffer of a line has the kept columns of all its chains.

        They are then all that passes the auxiliary port of the first program, in one format.
        """
        beside = [value for each in self.codes[0].phases for value in each.beside]
        forms = {self.form_of(value) for value in self.kept}
        return len(self.kept) in (1, 2) and beside == [*self.kept] and len(forms) == 1

    def _require_sharing(self) -> None:
        """Programs behind the first take only what it sends, and vectors along the columns.

        Raises
        ------
        Unfit
            If they take or send more.
        """
        made = {value for number in range(len(self.codes)) for value in self.sent(number)}
        later = [each for code in self.codes[1:] for each in code.phases]
        taken = {value for each in later for value in (each.source, *each.beside) if value}
        tiles = {each for each in taken if each not in made and not self.is_row(each)}
        stored = set(self.sent(0)) & self.region.outputs.keys()
        numbers = any(Fetched.ROW in (each.phase.y, each.phase.z) for each in later)
        if not self.whole or len(self.codes) == 1 or tiles or stored or numbers:
            rule = "have row statistics in the first, and take only its results and vectors behind"
            raise unfit("Lane programs that chains share", rule, len(tiles | stored))

    def _row_slots(self) -> int:
        """The most equal pieces of a row, in whole vectors and at least `_SHORTEST` columns each.

        Raises
        ------
        Unfit
            If a row has none, or there is no packet of whole rows.
        """
        columns, most = self.region.columns, self.parts.config.pmu.slots // 2
        tiles = (each for each in self.region.inputs.values() if each.part is not TilePart.ROW)
        unit = max(self.parts.vector(self.region.formats[each.tensor]) for each in tiles)
        for count in range(min(most, columns // _SHORTEST), 1, -1):
            if self.whole and columns % (count * unit) == 0 and columns // count <= MAX_BOX:
                return count
        raise unfit("Slots of a row", f"be 2 to {most}, of whole vectors", 1)

    def count(self, number: int) -> int:
        """PCUs of a line that run a lane program."""
        return self.copies if number == 0 else self.copies // self.share

    def result_parts(self, number: int) -> int:
        """Buffers that take the results of a line, each of as many PCUs.

        Raises
        ------
        Unfit
            If its PCUs are not divided equally.
        """
        count = self.count(number)
        parts = ceil_div(count, MOST_COLLECTED)
        if count % parts:
            raise unfit("Copies of a chain", f"be a multiple of {parts}", count)
        return parts

    def turns(self, number: int) -> int:
        """Groups of rows of a block that pass a PCU of a lane program, one after the other."""
        return self.copies // self.count(number)

    def beside(self, value: str) -> int:
        """Copies of a line that one load stream serves: all, or those that send at a time.

        The others wait for their turn, with slots that are full. So rows in pieces need streams of
        their own, and slots of a row have them if there are enough: their tokens take turns, too.
        Where there are fewer lines than AGCUs, several load the tiles of a line.
        """
        apart = self.streams(value) or (self.in_slots(value) and self._has_streams(self.share))
        if apart and self.share > 1:
            return self.copies // self.share
        if self.in_pieces or self.share > 1 or self.columns(value) < self.region.columns:
            return self.copies
        most = self.parts.config.agcu.count // self.lines
        fitting = (
            each
            for each in range(most, 1, -1)
            if self.copies % each == 0
            and self._has_streams(1, of_tiles=each)
            and self._last_row(self.copies // each) < self.region.rows
        )
        return self.copies // next(fitting, 1)

    def _last_row(self, beside: int) -> int:
        """First row of the last load stream, if each serves so many copies."""
        return (self.lines * self.copies - beside) * self.group

    def _has_streams(self, turns: int, of_tiles: int = 1) -> bool:
        """Whether the AGCUs have load streams of each input for so many turns of every line.

        A tile has several, ``of_tiles``, for each turn.
        """
        kinds = [each.part for each in self.region.inputs.values()]
        rows, tiles = kinds.count(TilePart.ROW), kinds.count(TilePart.BLOCK)
        needed = self.lines * turns * (len(kinds) - rows + tiles * (of_tiles - 1)) + rows
        return needed <= self.parts.config.agcu.count * self.parts.load_streams

    def takes_rows(self, number: int) -> bool:
        """Whether the packets of a lane program are whole rows, not single columns."""
        return self.whole and (number == 0 or self.share > 1)

    def sent(self, number: int) -> tuple[str, ...]:
        """Values that a lane program sends, in order."""
        return tuple(each.result for each in self.codes[number].phases if each.result is not None)

    def stores(self, number: int) -> bool:
        """Whether all that a lane program sends is stored."""
        return self.region.outputs.keys() >= set(self.sent(number))

    def formats(self) -> Iterator[Format]:
        """Formats of what has an element for every row."""
        for code in self.codes:
            for value, form in code.formats.items():
                if not self.is_row(value):
                    yield form

    def halves(self, form: Format) -> int:
        """Vectors of a format per column of a group."""
        return max(1, self.group // self.parts.vector(form))

    def columns(self, value: str) -> int:
        """Columns of an input in memory."""
        return 1 if self.region.inputs[value].part is TilePart.COLUMN else self.region.columns

    def form_of(self, value: str) -> Format:
        """Format of an input in memory and in its buffers."""
        return self.region.formats[self.region.inputs[value].tensor]

    def taken(self, value: str) -> int:
        """Elements that lanes take of a vector of an input: all, or those of its lower half."""
        return self.parts.vector(self.region.inputs[value].type.format)

    def input_pieces(self, value: str) -> RowPieces:
        """Pieces in which rows of an input pass."""
        return self.pieces(self.form_of(value))

    def pieces(self, form: Format) -> RowPieces:
        """Pieces in which rows pass."""
        vector = self.parts.vector(form)
        room = self.parts.config.pmu.capacity_bytes * 8 // form.bits // 4
        most = min(self.results.widest, room // (self.halves(form) * vector))
        return RowPieces.fitting(self.region.columns, vector, most)

    def chunks(self, value: str) -> int:
        """Vectors of a row of an input in a slot."""
        form, columns = self.form_of(value), self.columns(value)
        if self.in_pieces and columns == self.region.columns:
            return self.input_pieces(value).size
        if self.in_slots(value):
            return columns // self.row_slots // self.parts.vector(form)
        return chunks_of(columns, form, self.parts.vector(form))

    def band(self, value: str) -> int:
        """Elements of as many rows of an input as a vector has elements."""
        return self.chunks(value) * self.parts.vector(self.form_of(value)) ** 2

    def streams(self, value: str) -> bool:
        """Whether an input passes in pieces."""
        return self.in_pieces and self.columns(value) == self.region.columns

    def in_slots(self, value: str) -> bool:
        """Whether each row of an input fills several slots and is loaded once."""
        return self.row_slots > 1 and self.columns(value) == self.region.columns

    def statistic_vectors(self, form: Format) -> int:
        """Vectors of a statistic that is sent or taken: an element for each of its positions."""
        return max(1, self.parts.config.width_bits // 16 // self.parts.vector(form))

    def require_first_row(self, row: int) -> None:
        """Refuse a load stream whose first box is behind the tensor.

        Raises
        ------
        Unfit
        """
        if row >= self.region.rows:
            raise unfit("First row of a load stream", f"be below {self.region.rows}", row)

    def is_row(self, value: str) -> bool:
        source = self.region.inputs.get(value)
        return source is not None and source.part is TilePart.ROW
