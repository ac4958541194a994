"""units: lowering of a plan and its buffer allocation to unit programs and nets."""

from __future__ import annotations

from hw.arch.agcu import AgcuInput, AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram, Wait
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import FilterProgram, PcuInput, PcuOutput, PcuProgram
from hw.arch.pmu import EngineProgram, PmuProgram, SlotRing
from hw.arch.pmu_word import Access, Level, TokenSource
from hw.arch.ports import UnitProgram
from sw.array_spec import ArraySpec
from sw.netlist import Net, Netlist, Pin
from sw.passes.fit import Collector, Fit
from sw.passes.pack import Home
from sw.passes.plan import Plan

__all__ = ["units"]

#: Token port of an AGCU for freed slots of A.
_A_PORT = 0
_READERS = (TokenSource.R0, TokenSource.R1)


def units(plan: Plan, places: Fit, arrays: tuple[ArraySpec, ...]) -> Netlist:
    """Generate the programs of all units, and the nets.

    Parameters
    ----------
    plan : Plan
    places : Fit
    arrays : tuple of ArraySpec
        Arguments of the launch.
    """
    return _Lowering(plan, places, arrays).netlist()


def pcu_name(group: int, column: int) -> str:
    """Name of the PCU at a row group and a grid column."""
    return f"pcu{group}_{column}"


def _stream(agcu: int, operand: int) -> int:
    """Load stream of an operand (0 for A, 1 for B) at an AGCU.

    Odd AGCUs swap the two: each AGCU begins with the same stream number, and two AGCUs that begin
    with B would compete for the write port of its PMU.
    """
    return operand ^ agcu & 1


def _loop(count: int, stride: int) -> LoopProgram:
    """Loop with a stride, which is dropped for one iteration: its field may be too small."""
    return LoopProgram(count, stride=stride if count > 1 else 0)


def _nest(*loops: tuple[int, int]) -> tuple[LoopProgram, ...]:
    """Loop nest from counts and strides, without loops of one iteration."""
    return tuple(LoopProgram(count, stride=stride) for count, stride in loops if count > 1)


class _Lowering:
    def __init__(self, plan: Plan, places: Fit, arrays: tuple[ArraySpec, ...]) -> None:
        self.plan = plan
        self.fit = places
        self.b_port = 0 if plan.one_operand else 1
        self.arrays = {each.name: (number, each) for number, each in enumerate(arrays)}
        self.writers: dict[int, dict[int, EngineProgram]] = {}
        self.readers: dict[int, dict[int, EngineProgram]] = {}
        self.tokens: dict[int, dict[int, TokenSource]] = {}
        self.nets: list[Net] = []

    def netlist(self) -> Netlist:
        """The complete netlist."""
        self._a()
        self._b()
        for each in self.fit.collectors:
            self._c(each)
        named: dict[str, UnitProgram] = {}
        for group in range(self.plan.row_par):
            for column in range(self.plan.col_par):
                named[pcu_name(group, column)] = PcuProgram(
                    fmt=self.plan.product.fmt,
                    weight_fmt=self.plan.product.b_fmt,
                    out=self.plan.product.out,
                    weight=FilterProgram(self.plan.col_par, column),
                )
        for pmu in range(self.fit.pmus):
            writers, readers = self.writers.get(pmu, {}), self.readers.get(pmu, {})
            tokens = self.tokens.get(pmu, {})
            named[f"pmu{pmu}"] = PmuProgram(
                writers=(writers.get(0), writers.get(1)),
                readers=(readers.get(0), readers.get(1)),
                tokens=(tokens.get(0, TokenSource.OFF), tokens.get(1, TokenSource.OFF)),
            )
        fixed = {}
        for agcu in self.fit.agcus:
            named[f"agcu{agcu}"] = self._agcu(agcu)
            fixed[f"agcu{agcu}"] = agcu
        return Netlist(named, tuple(self.nets), fixed)

    def _ring(self, home: Home, slot_bytes: int, element: int, offset: int = 0) -> SlotRing:
        return SlotRing(
            buffer=home.number,
            base=home.base_bytes // element + offset,
            stride=slot_bytes // element if home.slots > 1 else 0,
            count=home.slots,
        )

    def _place(
        self,
        home: Home,
        writers: list[EngineProgram],
        reader: EngineProgram,
        tokens: int = 0,
    ) -> None:
        for number, writer in enumerate(writers):
            self.writers.setdefault(home.pmu, {})[home.writer + number] = writer
        self.readers.setdefault(home.pmu, {})[home.number] = reader
        for number in range(tokens):
            entry = self.tokens.setdefault(home.pmu, {})
            entry[home.token + number] = _READERS[home.number]

    def _net(
        self, name: str, sources: list[Pin], sinks: list[Pin], *, tokens: bool = False
    ) -> None:
        self.nets.append(Net(name, tuple((each, 1) for each in sources), tuple(sinks), tokens))

    def _a(self) -> None:
        """Units of the panels of A: K-blocks written row by row, read tile by tile."""
        plan, element = self.plan, self.plan.product.fmt.bits // 8
        parts = self.fit.a_parts
        lanes, part_rows = plan.lanes, plan.rows // parts
        launches = LoopProgram() if plan.resident else LoopProgram(plan.row_blocks)
        windows = LoopProgram(plan.row_blocks if plan.resident else plan.all_passes)
        for agcu, first, groups in self.fit.a_agcus:
            part = agcu if parts > 1 else 0
            sinks, sources = [], []
            for group in range(first, first + groups):
                home = self.fit.homes[f"a{group}"]
                sinks.append(Pin(f"pmu{home.pmu}", home.writer + part))
                sources.append(Pin(f"pmu{home.pmu}", home.token + part))
            self._net(f"a_load{agcu}", [Pin(f"agcu{agcu}", _stream(agcu, 0))], sinks)
            self._net(f"a_free{agcu}", sources, [Pin(f"agcu{agcu}", _A_PORT)], tokens=True)
        for group in range(plan.row_par):
            home = self.fit.homes[f"a{group}"]
            owner = next(each for each in self.fit.a_agcus if each[1] <= group < each[1] + each[2])
            writers = [
                EngineProgram(
                    ring=self._ring(
                        home, plan.a_bytes, element, part * part_rows * plan.a_slab * lanes
                    ),
                    loops=_nest((part_rows * plan.a_slab, lanes)),
                    element_bytes=element,
                    launches=launches,
                    windows=windows,
                    slots=LoopProgram(plan.a_slabs),
                    modulus=owner[2],
                    index=group - owner[1],
                )
                for part in range(parts)
            ]
            reader = EngineProgram(
                ring=self._ring(home, plan.a_bytes, element),
                loops=(_loop(plan.a_slab, lanes), _loop(plan.rows, plan.a_slab * lanes)),
                element_bytes=element,
                launches=launches,
                windows=windows,
                repeats=LoopProgram(plan.all_passes if plan.resident else 1),
                slots=LoopProgram(plan.a_slabs),
                last_level=Level.ADDRESS + 1,
                final_level=Level.SLOTS,
            )
            self._place(home, writers, reader, parts)
            pcus = (pcu_name(group, column) for column in range(plan.col_par))
            self._net(
                f"rows{group}",
                [Pin(f"pmu{home.pmu}", home.number)],
                [Pin(pcu, PcuInput.ACTIVATION) for pcu in pcus],
            )

    def _b(self) -> None:
        """Units of the blocks of B: written by rows of k, read by columns, C per grid column."""
        plan, element = self.plan, self.plan.product.fmt.bits // 8
        home = self.fit.homes["b"]
        lanes, square = plan.lanes, plan.lanes**2
        across = plan.columns // lanes
        parts = len(self.fit.b_agcus)
        # Two writers share a slot by tiles, or, where it has one, by rows of the tile.
        tiles, rows = plan.b_slab, lanes
        if parts > 1:
            tiles, rows = (tiles // parts, rows) if tiles > 1 else (tiles, rows // parts)
        launches = LoopProgram(plan.row_blocks)
        windows = LoopProgram(plan.col_blocks * plan.halves)
        slots = LoopProgram(plan.b_slabs)
        writers = []
        for part, agcu in enumerate(self.fit.b_agcus):
            offset = part * (tiles * across * square if plan.b_slab > 1 else rows * lanes)
            writers.append(
                EngineProgram(
                    ring=self._ring(home, plan.b_bytes, element, offset),
                    loops=_nest((tiles, across * square), (rows, lanes), (across, square)),
                    element_bytes=element,
                    launches=launches,
                    windows=windows,
                    slots=slots,
                )
            )
            pmu = f"pmu{home.pmu}"
            self._net(
                f"b_load{agcu}",
                [Pin(f"agcu{agcu}", _stream(agcu, 1))],
                [Pin(pmu, home.writer + part)],
            )
            self._net(
                f"b_free{agcu}",
                [Pin(pmu, home.token + part)],
                [Pin(f"agcu{agcu}", self.b_port)],
                tokens=True,
            )
        width, columns = min(lanes, plan.pass_columns), self.plan.config.grid_columns
        loops = (
            *_nest(
                (plan.b_slab, across * square),
                (plan.pass_columns // width, square),
                (width // columns, columns),
            ),
            LoopProgram(columns, stride=1),
        )
        reader = EngineProgram(
            ring=self._ring(home, plan.b_bytes, element),
            loops=loops,
            element_bytes=element,
            access=Access.COLUMN,
            launches=launches,
            windows=windows,
            repeats=_loop(plan.passes, plan.pass_stride // lanes * square),
            slots=slots,
            last_level=Level.ADDRESS + len(loops) - 1,
        )
        self._place(home, writers, reader, parts)
        self._net(
            "weights",
            [Pin(f"pmu{home.pmu}", home.number)],
            [
                Pin(pcu_name(group, column), PcuInput.WEIGHT)
                for group in range(plan.row_par)
                for column in range(plan.col_par)
            ],
        )

    def _c(self, collector: Collector) -> None:
        """Units of the blocks of C: written in the order of results, read by rows."""
        plan, element = self.plan, self.plan.product.out.bits // 8
        home = self.fit.homes[collector.name]
        lanes, columns = plan.out_lanes, plan.config.grid_columns
        held = plan.held_rows
        # All rows of one column of vectors lie one after the other.
        column_stride = collector.groups * held * lanes
        per_vector = lanes // columns
        blocks = plan.col_blocks * plan.c_blocks

        def position(group_of_columns: int) -> int:
            quotient, rest = divmod(group_of_columns, per_vector)
            return quotient * column_stride + rest * columns

        launches, windows = LoopProgram(plan.row_blocks), LoopProgram(blocks)
        pmu = f"pmu{home.pmu}"
        writers = []
        for number, (start, count) in enumerate(collector.ports):
            first, taken = (0, plan.col_par) if collector.by_rows else (start, count)
            row_first, row_count = (start, count) if collector.by_rows else (0, collector.groups)
            inner = min(taken, per_vector)
            writers.append(
                EngineProgram(
                    ring=self._ring(
                        home,
                        plan.c_bytes(collector.groups),
                        element,
                        position(first) + row_first * held * lanes,
                    ),
                    loops=_nest(
                        (plan.halves // plan.c_blocks, position(plan.col_par)),
                        (plan.passes, position(plan.pass_stride // columns)),
                        (taken // inner, position(per_vector)),
                        (inner, position(1)),
                        (row_count * plan.result_vectors, (2 if plan.packed else 1) * lanes),
                    ),
                    element_bytes=element,
                    access=Access.TWO_ROWS if plan.packed else Access.ROW,
                    launches=launches,
                    windows=windows,
                )
            )
            sources = [
                Pin(pcu_name(collector.first + row_first + row, first + column), PcuOutput.RESULT)
                for column in range(taken)
                for row in range(row_count)
            ]
            self._net(
                f"{collector.name}_results{number}", sources, [Pin(pmu, home.writer + number)]
            )
        reader = EngineProgram(
            ring=self._ring(home, plan.c_bytes(collector.groups), element),
            loops=(
                _loop(collector.groups, held * lanes),
                _loop(plan.rows, lanes),
                _loop(plan.stored_columns // lanes, column_stride),
            ),
            element_bytes=element,
            launches=launches,
            windows=windows,
            last_level=Level.ADDRESS + 1,
        )
        self._place(home, writers, reader)
        self._net(
            f"{collector.name}_store",
            [Pin(pmu, home.number)],
            [Pin(f"agcu{collector.agcu}", AgcuInput.STORE_0)],
        )

    def _descriptor(self, name: str, row: int, box: tuple[int, int]) -> tuple[Descriptor, int]:
        """Descriptor of a tensor from a row on, with a box of columns × rows, and its argument."""
        number, array = self.arrays[name]
        rows, columns = array.shape
        return (
            Descriptor(
                base=row * array.pitch,
                format=ElementFormat.of(array.format),
                dims=(columns, rows - row),
                strides=(array.pitch,),
                box=box,
            ),
            number,
        )

    def _agcu(self, agcu: int) -> AgcuProgram:
        plan, product = self.plan, self.plan.product
        loads: list[IssuerProgram | None] = [None, None]
        stores: list[IssuerProgram | None] = [None]
        descriptors: list[tuple[Descriptor, int]] = []
        credits = [0, 0]
        share = next((each for each in self.fit.a_agcus if each[0] == agcu), None)
        if share is not None:
            _, first, groups = share
            rows = plan.rows // self.fit.a_parts
            start = first * plan.rows + (agcu * rows if self.fit.a_parts > 1 else 0)
            loops = [BoxLoop(plan.row_blocks, 1, plan.block_rows)]
            if not plan.resident:
                loops.append(BoxLoop(plan.all_passes))
            loops += [
                BoxLoop(plan.a_slabs, 0, plan.a_slab * plan.lanes),
                BoxLoop(groups, 1, plan.rows),
            ]
            loads[_stream(agcu, 0)] = IssuerProgram(
                len(descriptors), tuple(loops), (Wait(_A_PORT),)
            )
            descriptors.append(self._descriptor(product.a, start, (plan.a_slab * plan.lanes, rows)))
            slots = [self.fit.homes[f"a{group}"].slots for group in range(first, first + groups)]
            credits[_A_PORT] = sum(slots)
        if agcu in self.fit.b_agcus:
            rows = plan.b_slab * plan.lanes // len(self.fit.b_agcus)
            loads[_stream(agcu, 1)] = IssuerProgram(
                len(descriptors),
                (
                    BoxLoop(plan.row_blocks),
                    BoxLoop(plan.col_blocks, 0, plan.columns),
                    BoxLoop(plan.halves, 0, plan.pass_columns),
                    BoxLoop(plan.b_slabs, 1, plan.b_slab * plan.lanes),
                ),
                (Wait(self.b_port),),
            )
            part = self.fit.b_agcus.index(agcu)
            descriptors.append(self._descriptor(product.b, part * rows, (plan.columns, rows)))
            credits[self.b_port] = self.fit.homes["b"].slots
        collector = next((each for each in self.fit.collectors if each.agcu == agcu), None)
        if collector is not None:
            stores[0] = IssuerProgram(
                len(descriptors),
                (
                    BoxLoop(plan.row_blocks, 1, plan.block_rows),
                    BoxLoop(plan.col_blocks, 0, plan.columns),
                    BoxLoop(plan.c_blocks, 0, plan.pass_columns),
                    BoxLoop(collector.groups, 1, plan.rows),
                ),
            )
            box = (plan.stored_columns, plan.rows)
            descriptors.append(self._descriptor(product.c, collector.first * plan.rows, box))
        return AgcuProgram(
            loads=tuple(loads),
            stores=tuple(stores),
            descriptors=tuple(descriptors),
            credits=tuple(credits[: plan.config.token_tracks]),
        )
