"""Pipelines of element math with rows on lanes: row statistics, and vectors along the columns.

A group of rows lies in a slot, as many as the source has elements per vector. A vector of a row is
written as a column of a block, so the columns of the group lie one after the other. If there are
row statistics, the first PCU of a chain reads packets of whole rows, once in each of its phases.
All other PCUs run one phase, and their packets are single columns, so they are joined directly.
Columns of results are collected in buffers, from which rows are stored.

A column of one element per row is read again for every column. A format with more elements per
vector than a group has rows fills only as much of its vectors.
"""

from __future__ import annotations

import dataclasses
import itertools

from hw.arch.descriptor import MAX_BOX, Descriptor
from hw.arch.limits import MAX_CREDITS
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import FilterProgram, PcuInput, PcuOutput
from hw.arch.words.pmu_word import ENGINE_LOOPS, Access, Level
from sw.passes.field_limits import require_count, unfit
from sw.stages.long_rows import pieces_of, rows_of
from sw.stages.pipeline import Pipeline, pcu_name
from sw.stages.region import TilePart
from sw.stages.rows.kept_columns import add_kept
from sw.stages.rows.row_cycles import row_cycles
from sw.stages.rows.row_frame import RowFrame
from sw.stages.rows.row_results import RowResults
from sw.stages.rows.spread_vectors import add_vectors
from sw.stages.segment_digits import in_segments
from sw.stages.stage_graph import Hold, Socket, Walk, boxes_of
from sw.stages.walk_loops import loop

__all__ = ["RowPipeline"]


class RowPipeline(RowFrame):
    """Puts a pipeline with rows on lanes together.

    Its parameters are those of `RowFrame`.
    """

    def pipeline(self) -> Pipeline:
        rows = self.group * self.copies
        for line in range(self.lines):
            together = self.kept if self.shares_kept else ()
            for value, source in self.region.inputs.items():
                if source.part is not TilePart.ROW and value not in together:
                    self._block(line, value)
            if together:
                add_kept(self, line)
            for copy in range(self.copies):
                if self.whole and not together:
                    self._whole_auxiliary(line, copy)
                for number in range(len(self.codes)):
                    if copy < self.count(number):
                        self._code(line, number, copy)
            for number in range(len(self.codes)):
                if self.stores(number):
                    RowResults(self, number).add(line)
        add_vectors(self)
        shared = (
            f", every {self.share} of which share those behind the first" if self.share > 1 else ""
        )
        slots = f" in {self.row_slots} slots" if self.row_slots > 1 else ""
        whole = self.parts.done(
            f"{self.lines * self.copies} chains of {len(self.codes)} PCUs{shared}, "
            f"{self.blocks} blocks of "
            f"{rows} rows each, {self.group} rows per vector, packets of {self.region.columns} "
            f"columns{slots}",
            rows,
            self.region.columns,
        )
        return dataclasses.replace(whole, cycles=row_cycles(self, whole))

    def _takers(self, line: int, copy: int, value: str, *, whole: bool) -> list[Socket]:
        """Sockets that take a value: those of the first code with whole rows, or the others."""
        found = []
        for number, code in enumerate(self.codes):
            if copy >= self.count(number) or self.takes_rows(number) != whole:
                continue
            name = pcu_name(line, number, copy)
            if any(each.source == value for each in code.phases):
                found.append(Socket(name, PcuInput.ACTIVATION))
            beside = any(value in each.beside for each in code.phases)
            if beside and not (whole and number == 0):
                found.append(Socket(name, PcuInput.AUXILIARY))
        return found

    def _uses(self, value: str) -> int:
        """Phases of the first code that take a value from its auxiliary stream."""
        return sum(value in each.beside for each in self.codes[0].phases)

    def _read(self, value: str, repeats: int, *, whole: bool) -> Walk:
        """Walk over the columns of a group, which are one packet or one each."""
        form = self.form_of(value)
        halves, vector = self.halves(form), self.parts.vector(form)
        kept = value in self.kept
        if whole and self.taken(value) > self.group and not kept:
            rule = f"be at most {self.group}, as the source"
            raise unfit("Elements per vector", rule, self.taken(value))
        windows, slots, launches = LoopProgram(self.blocks), LoopProgram(), LoopProgram()
        ends, band = Level.ADDRESS, self.band(value)
        if kept:
            columns = loop(self.statistic_vectors(form) // halves, 0)
        elif self.columns(value) < self.region.columns:
            columns = loop(self.region.columns, 0)
        elif self.in_pieces:
            pieces = self.input_pieces(value)
            (windows, slots), columns = pieces.windows(), pieces.steps(1, vector)
            launches, repeats, ends = LoopProgram(self.blocks * repeats), 1, Level.WINDOWS
        else:
            slots = LoopProgram(self.row_slots)
            columns = loop(self.region.columns // self.row_slots, vector)
            ends = Level.SLOTS if self.row_slots > 1 else ends
        loops = (columns, *([loop(halves, band)] if halves > 1 else []))
        single = Level.ADDRESS + len(loops) - 1 if halves > 1 else ENGINE_LOOPS
        return Walk(
            loops,
            launches=launches,
            windows=windows,
            repeats=LoopProgram(repeats),
            slots=slots,
            last_level=ends if whole else single,
        )

    def _buffer(self, name: str, value: str, write: Walk, read: Walk) -> None:
        """Buffer of a group of rows."""
        form = self.form_of(value)
        element, vector = form.bits // 8, self.parts.vector(form)
        slot = self.halves(form) * self.band(value) * element
        hold = Hold(slot, element, (write,), (read,))
        least = self.row_slots if self.in_slots(value) else 1
        # The free slots of all buffers of a stream are credits of one port.
        most = MAX_CREDITS // self.beside(value)
        if least > most:
            raise unfit("Slots of a row", f"be at most {most}", least)
        wanted = min(2 * least, most)
        self.parts.hold(
            name, hold, least=least, wanted=wanted, rate=0.2, alignment=vector, tokens=True
        )

    def _block(self, line: int, value: str) -> None:
        """Buffers of a tensor's rows for each copy and each way to read them, and their loads."""
        if self.streams(value):
            for whole in (True, False):
                sinks, times = self._buffers(line, value, whole=whole)
                self._loads(line, value, [(sink,) for sink in sinks], times)
        else:
            kinds = (self._buffers(line, value, whole=whole)[0] for whole in (True, False))
            # A box goes to all buffers of a copy.
            self._loads(line, value, [*zip(*(kind for kind in kinds if kind))], 1)

    def _loads(self, line: int, value: str, copies: list[tuple[Socket, ...]], times: int) -> None:
        """Load streams for the buffers of each copy, one for copies that are served together."""
        beside = self.beside(value)
        for first in range(0, len(copies), beside):
            sinks = [sink for each in copies[first : first + beside] for sink in each]
            self._load(line, value, sinks, times, first)

    def _buffers(self, line: int, value: str, *, whole: bool) -> tuple[list[Socket], int]:
        """Buffers of rows, written by rows, for one way to read them; packets of a block."""
        form = self.form_of(value)
        halves, vector = self.halves(form), self.parts.vector(form)
        chunks, band = self.chunks(value), self.band(value)
        rows, beside = min(vector, self.group), self.beside(value)
        uses = self._uses(value) if whole and self.whole else 0
        times = (uses or self.codes[0].packets(value)) if whole else 1
        sinks = []
        for copy in range(self.copies):
            takers = self._takers(line, copy, value, whole=whole)
            if not takers and not uses:
                continue
            if takers and uses:
                raise unfit("Uses of a source as auxiliary stream", "be 0", uses)
            windows, launches = LoopProgram(self.blocks), LoopProgram()
            if self.streams(value):
                require_count("rows in pieces", self.blocks * times)
                windows = LoopProgram(self.input_pieces(value).slots)
                launches = LoopProgram(self.blocks * times)
            elif self.in_slots(value):
                windows, launches = LoopProgram(self.row_slots), LoopProgram(self.blocks)
            write = Walk(
                (loop(halves, band), loop(rows, 1), loop(chunks, vector**2)),
                access=Access.COLUMN,
                launches=launches,
                windows=windows,
                modulus=beside,
                index=copy % beside,
            )
            name = _name(line, copy, value, whole=whole)
            self._buffer(name, value, write, self._read(value, times, whole=whole))
            sinks.append(Socket(name))
            if takers:
                self.parts.join(f"{name}_columns", [(Socket(name), 1)], takers)
        return sinks, times

    def _load(self, line: int, value: str, sinks: list[Socket], times: int, first: int) -> None:
        """Loads of blocks of rows for copies from a first on."""
        beside, row = self.beside(value), (line * self.copies + first) * self.group
        self.require_first_row(row)
        step = self.group * self.copies
        width = self.chunks(value) * self.parts.vector(self.form_of(value))
        pieces = []
        if self.streams(value):
            pieces = [BoxLoop(times), BoxLoop(self.input_pieces(value).slots, 0, width)]
        elif self.in_slots(value):
            pieces = [BoxLoop(self.row_slots, 0, width)]
        tensor = self._rows_of(value, width, row)
        rows = tensor[0].rank - 1
        blocks = BoxLoop(self.blocks, rows, step * self.lines if self.blocks > 1 else 0)
        loops = [blocks, *pieces, BoxLoop(beside, rows, self.group * (beside > 1))]
        self.parts.load(
            f"{sinks[0].stage}_load",
            line + first // beside * self.lines,
            *in_segments(self.arrays, tensor, loops, row),
            sinks,
            takers=len(sinks) // beside,
        )

    def _rows_of(self, value: str, width: int, row: int) -> tuple[Descriptor, int]:
        """Boxes of a group of rows from a row on, and the launch argument."""
        tensor, form = self.region.inputs[value].tensor, self.form_of(value)
        if width <= MAX_BOX:
            return boxes_of(self.arrays, tensor, (width, self.group), row)
        pieces = pieces_of(width, form, self.parts.vector(form))
        return rows_of(self.arrays, tensor, pieces, self.group, row)

    def _whole_auxiliary(self, line: int, copy: int) -> None:
        """Auxiliary stream of the first code: packets of buffers in the order of its phases."""
        taken = [each.beside for each in self.codes[0].phases if each.beside]
        runs = [(values, len(list(same))) for values, same in itertools.groupby(taken)]
        if len({values for values, _ in runs}) != len(runs):
            raise unfit("Turns of an auxiliary stream", "each be of another value", len(runs))
        rows = [values for values, _ in runs if any(map(self.is_row, values))]
        if rows and len(runs) > 1:
            rule = "be the only one of a lane program with statistics"
            raise unfit("Vector along the columns as auxiliary stream", rule, len(runs))
        if runs and not rows:
            sources = [
                (Socket(_name(line, copy, value, whole=True)), count) for (value,), count in runs
            ]
            sink = Socket(pcu_name(line, 0, copy), PcuInput.AUXILIARY)
            self.parts.join(f"{sink.stage}_auxiliary", sources, [sink])

    def _code(self, line: int, number: int, copy: int) -> None:
        """PCU of a lane program, and the stream of what it and those beside it send."""
        code, name = self.codes[number], pcu_name(line, number, copy)
        made = self.sent(number)[-1]
        filters = {}
        if number == 0 and self.shares_kept:
            filters = {PcuInput.AUXILIARY: FilterProgram(self.copies, copy)}
        if made in self.region.outputs:
            self.parts.lanes(name, code, filters, cut=1)
            return
        if self.takes_rows(number) and self.parts.vector(code.formats[made]) > self.group:
            rule = f"have at most {self.group} elements per vector, as the source"
            raise unfit("Result of a lane program with row statistics", rule, self.group)
        rows = self.share > 1
        cut = 0 if rows or code.sends_statistic(made) else self.halves(code.formats[made])
        self.parts.lanes(name, code, filters, cut=cut)
        apart = self.count(number + 1)
        if copy < apart:
            senders = [
                pcu_name(line, number, each) for each in range(copy, self.count(number), apart)
            ]
            takers = self._takers(line, copy, made, whole=rows)
            sources = [(Socket(each, PcuOutput.RESULT), 1) for each in senders]
            self.parts.join(f"{name}_results", sources, takers)


def _name(line: int, copy: int, value: str, *, whole: bool) -> str:
    """Name of a copy's buffer of a value, by the packets that are read."""
    return f"line{line}_{value}_{copy}" + ("" if whole else "_columns")
