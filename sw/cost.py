"""Cost model of the search: cycles of a plan, before it is lowered, K-block by K-block."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence

from hw.arch.config import ChipConfig
from hw.arch.descriptor import BASE_ALIGNMENT
from hw.numeric.division import ceil_div
from hw.numeric.formats import Format
from sw.epilogue.collector import Collector
from sw.fabric.merges import MERGED
from sw.lane_codes.joined_codes import cycles_per_group
from sw.passes.fit import Fit
from sw.passes.plan import Plan, load_streams
from sw.search.operand_agcus import MEETING, a_shares
from sw.timing.prediction import LATENCY

__all__ = [
    "Shares",
    "box_cycles",
    "last_cycles",
    "load_cycles",
    "predict",
    "shares",
]

#: Cycles between two commands.
_COMMAND = 8
#: Cycles from the start of a kernel to its first command.
_BEGIN = 15
#: Cycles from the last answer of memory to the end of the kernel.
_END = 3
#: Cycles from the last vector of a K-block in an AGCU to the first in a PCU.
_CROSSING = 24
#: Row blocks, and column blocks in each, that are simulated; the others equal the last.
_ROW_BLOCKS, _COLUMN_BLOCKS = 3, 5


@functools.lru_cache(maxsize=4096)
def _row_cycles(beat: int, outstanding: int, row_bytes: int, length: int) -> float:
    """Cycles per box row, bound by its beats or by the bursts in flight.

    `length` is that of the tensor's rows in bytes.
    """
    beats = float(max(1, ceil_div(row_bytes, beat)))
    # Of rows that begin at every alignment, some take one beat more.
    alignments = beat // math.gcd(beat, ceil_div(length, BASE_ALIGNMENT) * BASE_ALIGNMENT)
    beats += 1 - 1 / alignments
    # One burst beyond the outstanding ones waits on AR.
    return max(beats, (LATENCY + beats) / (outstanding + 1))


def box_cycles(config: ChipConfig, fmt: Format, elements: int, rows: int, length: int) -> float:
    """Cycles of a box.

    Parameters
    ----------
    config : ChipConfig
    fmt : Format
    elements : int
        Of a row of the box.
    rows : int
    length : int
        Elements of a row of the tensor.
    """
    size, port = fmt.bits // 8, (config.width_bits // 8, config.agcu.outstanding)
    return max(float(_COMMAND), rows * _row_cycles(*port, elements * size, length * size))


@dataclasses.dataclass
class _Loads:
    """A load stream: cycles per box, number of boxes, slots of its buffer."""

    cycles: float
    total: int
    slots: int
    #: Cycles in which its PMU writes a box.
    writes: float
    done: list[float] = dataclasses.field(default_factory=list)
    freed: list[float] = dataclasses.field(default_factory=list)

    def ready(self) -> float | None:
        """Cycle in which the next load may begin; None if it is not known yet or none is left."""
        number = len(self.done) - self.slots
        if len(self.done) == self.total:
            return None
        if number < 0:
            return 0.0
        return self.freed[number] if number < len(self.freed) else None


class _Port:
    """The read port of an AGCU: serves the load stream that is ready first, on ties in turn."""

    def __init__(self, streams: tuple[_Loads, ...]) -> None:
        self.streams = streams
        self.time = 0.0
        self.turn = 0

    def until(self, stream: _Loads, number: int) -> float:
        """Cycle in which K-block `number` of a stream has landed."""
        while len(stream.done) <= number:
            best: tuple[float, int, int] | None = None
            for index, each in enumerate(self.streams):
                at = each.ready()
                if at is not None:
                    key = (max(at, self.time), (index - self.turn) % 2, index)
                    best = key if best is None or key < best else best
            if best is None:
                raise RuntimeError("A slab waits for a slot that no pass frees")
            chosen = self.streams[best[2]]
            self.time = best[0] + chosen.cycles
            before = chosen.done[-1] if chosen.done else 0.0
            landed = max(self.time + LATENCY + _CROSSING, before + chosen.writes)
            chosen.done.append(max(landed, best[0] + LATENCY + _CROSSING + chosen.writes))
            self.turn = best[2] + 1
        return stream.done[number]


@dataclasses.dataclass(frozen=True)
class Shares:
    """Cycles of the busiest AGCU per box of A, K-block of B and block of results."""

    #: Boxes per K-block of A: row groups it loads.
    groups: int
    a: float
    b: float
    c: float
    #: Cycles in which a PMU writes a slot of A or of B.
    a_writes: float
    b_writes: float
    #: One AGCU loads both A and B.
    both: bool
    #: Result vectors per pass of the largest result writer.
    results: float
    #: Cycles per block of results in which the tiles beside the sums are loaded.
    side: float

    def at_port(self, a: float, b: float) -> float:
        """Cycles of loads of A and of B at the busiest port."""
        return a + b if self.both else max(a, b)


def shares(
    plan: Plan,
    groups: int,
    a_parts: int,
    b_parts: int,
    collected: tuple[int, int, int],
    *,
    both: bool,
) -> Shares:
    """Cycles of the busiest AGCU per load and store of a plan.

    Parameters
    ----------
    plan : Plan
    groups : int
        Row groups of A that it loads.
    a_parts, b_parts : int
        AGCUs that share the slots of A, and of B.
    collected : (int, int, int)
        Row groups and PCUs of each of which its result writer takes results, and such writers.
    both : bool
        Whether it loads A and B.
    """
    config, product = plan.config, plan.product
    rows, columns, writers = collected
    stored = plan.box_columns(product.out) * columns // plan.col_par
    # Elements and rows of a box, and length of a row in memory.
    a_box = *plan.a_slot.box(a_parts), product.adjacent if product.a_along_k else product.m
    b_box = *plan.b_slot.box(b_parts), product.adjacent if product.b_along_k else product.n
    if plan.c_split:
        # Boxes of one vector each.
        c_box = plan.result_lanes, plan.rows * stored // plan.result_lanes, product.n
    else:
        c_box = _box(plan, stored)
    # Whole packets are merged one after the other.
    own: float = plan.held_rows * plan.drain_cycles
    merged = _merged(plan, rows, columns)
    if not plan.cut:
        own *= merged
    if product.epilogue is not None and product.epilogue.chain:
        # One chain takes the sums of all PCUs that are merged.
        chain = max(cycles_per_group(each, config) for each in product.epilogue.chain)
        own = max(own, merged * plan.held_rows * plan.lane_cycles * chain)
    return Shares(
        groups=groups,
        a=box_cycles(config, product.fmt, *a_box),
        b=box_cycles(config, product.fmt, *b_box),
        c=writers * rows * box_cycles(config, product.out, *c_box),
        # A PMU takes one vector per cycle, however many AGCUs send to it.
        a_writes=plan.a_bytes / plan.vector_bytes if a_parts > 1 else 0.0,
        b_writes=plan.b_bytes / plan.vector_bytes * (MEETING if b_parts > 1 else 1.0),
        both=both,
        results=max(own, rows * columns * plan.result_vectors),
        side=_side_cycles(plan),
    )


def _merged(plan: Plan, groups: int, columns: int) -> int:
    """PCUs at the busier input of a result writer, between whose inputs they are divided."""
    if plan.c_split:
        return groups * ceil_div(columns, 2)
    if groups * columns <= MERGED:
        return groups * columns
    if groups > 1:
        return ceil_div(groups, 2) * columns
    # Each input has whole vectors of columns.
    whole = max(1, plan.result_lanes // plan.config.grid_columns)
    return ceil_div(ceil_div(columns, whole), 2) * whole


def _box(plan: Plan, columns: int) -> tuple[int, int, int]:
    """Elements and rows of a box of some columns of results, and length of a row in memory."""
    if plan.product.turned:
        return plan.rows, max(1, columns), plan.product.m
    return columns, plan.rows, plan.product.n


def _side_cycles(plan: Plan) -> float:
    """Cycles per block of results in which an AGCU loads its share of tiles beside the sums."""
    epilogue, config = plan.product.epilogue, plan.config
    if epilogue is None or not epilogue.tiles:
        return 0.0
    formats = epilogue.formats(epilogue.tiles)
    boxes = (box_cycles(config, form, *_box(plan, plan.box_columns(form))) for form in formats)
    # Streams that A, B and vectors leave; those of a tile are of different AGCUs.
    streams = load_streams(config) - a_shares(plan) - 1 - (plan.side_inputs - len(formats))
    return sum(boxes) * plan.row_par / min(config.agcu.count, max(1, streams // len(formats)))


def load_cycles(plan: Plan, share: Shares) -> float:
    """Cycles of all loads of the busiest AGCU, or of the busiest PMU that they are written to."""
    panels = plan.row_blocks * (1 if plan.resident else plan.panel_reads)
    a, b = panels * plan.a_slabs * share.groups, plan.b_windows * plan.b_slabs
    ports = share.at_port(a * share.a, b * share.b)
    beside = plan.row_blocks * plan.c_slots * share.side
    return max(ports, a * share.a_writes, b * share.b_writes) + beside


def last_cycles(plan: Plan, share: Shares, pieces: int) -> float:
    """Cycles in which the last results leave: each piece of rows is stored when it is complete.

    Parameters
    ----------
    plan : Plan
    share : Shares
    pieces : int
        Slots per block of rows.
    """
    passes = plan.together - plan.spare_passes
    results, stores = passes * share.results, passes * share.c
    if plan.c_split:
        return results + share.c * plan.last_vectors * plan.result_lanes / plan.c_columns
    pieces *= passes
    return max(results + stores / pieces, results / pieces + stores)


def _busiest(collectors: Sequence[Collector]) -> tuple[int, int]:
    """Row groups and PCU columns of the result writer that takes the results of most PCUs."""
    busiest = max(collectors, key=lambda each: each.groups * each.columns)
    return busiest.groups, busiest.columns


def predict(plan: Plan, places: Fit) -> int:
    """Predicted cycles of a kernel, from its start to its end.

    Parameters
    ----------
    plan : Plan
    places : Fit

    Notes
    -----
    A port loads K-blocks in the order of its boxes, as slots become free; a pass waits for each
    K-block to land. A block takes at least as long as its results take to leave. All AGCUs are
    assumed to be equally loaded.
    """
    both = any(agcu in places.b_agcus for agcu, _, _ in places.a_agcus)
    share = shares(
        plan,
        max(groups for _, _, groups in places.a_agcus),
        places.a_parts,
        len(places.b_agcus),
        (*_busiest(places.collectors), 1 + max(each.stream for each in places.collectors)),
        both=both,
    )
    run = _Run(plan, places, share)
    wave = 3 * plan.config.grid_columns + plan.config.grid_rows * plan.config.pcu.cell_latency + 40
    last = last_cycles(plan, share, places.pieces)
    # Row blocks that were not simulated may wait for loads that came ahead of the first ones.
    cycles = max(run.cycles(), load_cycles(plan, share))
    return round(_BEGIN + cycles + wave + last + LATENCY + _END)


class _Run:
    """Simulation of the passes of a plan against the loads they wait for."""

    def __init__(self, plan: Plan, places: Fit, share: Shares) -> None:
        self.plan = plan
        self.share = share
        rows, columns = plan.row_blocks, min(plan.col_blocks, _COLUMN_BLOCKS)
        passes = columns * plan.halves * plan.passes // plan.together
        panels = rows * (1 if plan.resident else passes) * plan.a_slabs * share.groups
        windows = (1 if plan.b_kept else rows * columns * plan.halves) * plan.b_slabs
        slots = share.groups * places.homes["a0"].slots
        self.a = _Loads(share.a, panels, slots, share.a_writes)
        self.b = _Loads(share.b, windows, places.homes["b"].slots, share.b_writes)
        self.port_a = _Port((self.a, self.b) if share.both else (self.a,))
        self.port_b = self.port_a if share.both else _Port((self.b,))
        self.tile = plan.tile_cycles * places.slowdown
        # Boundaries of K-blocks: tiles, then whether A and B begin and end there.
        starts = sorted({*range(0, plan.tiles, plan.a_slab), *range(0, plan.tiles, plan.b_slab)})
        edges = {at: (not at % plan.a_slab, not at % plan.b_slab) for at in (*starts, plan.tiles)}
        self.segments = [
            (min(stop, plan.read_tiles) - start, *edges[start], *edges[stop])
            for start, stop in zip(starts, [*starts[1:], plan.tiles], strict=True)
        ]
        self.a_next = self.b_next = 0
        self.time = self.stored = 0.0

    def cycles(self) -> float:
        """Cycles from the first command to the end of the last pass."""
        plan = self.plan
        blocks = min(plan.row_blocks, _ROW_BLOCKS)
        ends = [0.0]
        for _ in range(blocks):
            self.row_block()
            ends.append(self.time)
        return self.time + (plan.row_blocks - blocks) * (ends[-1] - ends[-2])

    def row_block(self) -> None:
        """Advance over all passes of a row block; its middle column blocks are assumed alike."""
        plan = self.plan
        columns = min(plan.col_blocks, _COLUMN_BLOCKS)
        panel = self.a_next
        skipped = plan.col_blocks - columns
        for block in range(columns):
            begin = self.time
            steps = plan.passes // plan.together
            # Passes at once, of which the last block has perhaps fewer.
            together = plan.together - plan.spare_passes * (block == columns - 1)
            for half in range(plan.halves):
                for step in range(steps):
                    ends = block == columns - 1 and half == plan.halves - 1 and step == steps - 1
                    if plan.resident:
                        self.a_next = panel
                    again = step < steps - 1 or plan.b_kept
                    frees_a = ends or not plan.resident
                    self.one_pass(together, frees_a=frees_a, frees_b=not again)
                    if again:
                        self.b_next -= plan.b_slabs
            stored = max(self.share.c, self.share.side) * plan.c_blocks
            self.time = max(self.time, begin + stored)
            if skipped and block == columns - 2:
                self.skip(skipped * (self.time - begin))

    def skip(self, cycles: float) -> None:
        """Advance all times by the cycles of column blocks that are not simulated."""
        self.time += cycles
        for port in {id(each): each for each in (self.port_a, self.port_b)}.values():
            port.time += cycles
        for stream in (self.a, self.b):
            stream.done = [each + cycles for each in stream.done]
            stream.freed = [each + cycles for each in stream.freed]

    def one_pass(self, together: int, *, frees_a: bool, frees_b: bool) -> None:
        """Advance over one pass, or some at once, which takes all K-blocks."""
        begin = time = self.time
        for tiles, a_begins, b_begins, a_ends, b_ends in self.segments:
            if a_begins:
                self.a_next += self.share.groups
                time = max(time, self.port_a.until(self.a, self.a_next - 1))
            if b_begins:
                time = max(time, self.port_b.until(self.b, self.b_next))
                self.b_next += 1
            time += together * tiles * self.tile
            if a_ends and frees_a:
                self.a.freed += [time] * self.share.groups
            if b_ends and frees_b:
                self.b.freed.append(time)
        self.time = max(time, begin + together * self.share.results)
