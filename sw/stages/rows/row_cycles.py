"""Estimate of the cycles of a pipeline with rows on lanes, and a bound before it is built."""

from __future__ import annotations

import dataclasses

from hw.arch.lanes.lane_room import kept_groups
from hw.arch.lanes.phase_word import PhaseSource
from hw.numeric.division import ceil_div
from sw.lane_codes.joined_codes import strip_cycles
from sw.lane_codes.lane_code import LaneCode, changes
from sw.stages.bus_cycles import box_cycles, boxes_in
from sw.stages.pipeline import Pipeline
from sw.stages.region import TilePart
from sw.stages.rows.row_frame import RowFrame, Streamed
from sw.stages.stage_graph import Load, Store
from sw.timing.prediction import LATENCY
from sw.timing.timed_lanes import CHANGE, PHASE_CHANGE

__all__ = ["least_cycles", "row_cycles"]

#: Cycles from a free slot until memory has filled it.
_FILLED = LATENCY + 30


@dataclasses.dataclass(frozen=True)
class _Transfers:
    """Boxes of the busiest AGCU in one direction.

    Parameters
    ----------
    cycles : float
        Beats of all boxes.
    box : float
        Beats of the largest box.
    boxes : int
        Boxes of a stream and a block of rows.
    slots : int
        Least slots of a buffer that takes or gives several boxes.
    """

    cycles: float
    box: float
    boxes: int
    slots: int


def row_cycles(frame: RowFrame, pipeline: Pipeline) -> float:
    """Cycles, estimated: of the lanes, and of the bus where they wait for it.

    A slot is filled again behind memory's latency. Copies that send columns do so in turn, so none
    begins a block before the others have theirs. The first boxes of all copies are loaded before
    that, and the last box is stored behind it. The first phase begins when all tiles of the first
    block are there, and over rows in slots it ends then at the earliest. A piece of a row takes its
    part of memory's latency, as it has slots, at least. Results that no buffer holds
    for a whole block are stored while the last phase sends them. A PCU that several chains share
    takes their groups one after the other, the last of which begins so late.
    """
    turns = frame.turns(len(frame.codes) - 1)
    results = frame.blocks * turns
    loads = _transfers(frame, pipeline, Load, frame.blocks)
    stores = _transfers(frame, pipeline, Store, results)
    lanes, first, last = _lanes(frame, loads.slots)
    in_turn = not all(
        code.sends_statistic(value)
        for number, code in enumerate(frame.codes)
        for value in frame.sent(number)
    )
    if loads.slots == 1:
        lanes += loads.cycles / (1 if in_turn else frame.copies)
    if stores.slots == 1:
        lanes += stores.cycles
    elif stores.slots < stores.boxes:
        stored = stores.cycles / results
        lanes += results * max(0.0, stored - last)
    begin, lanes = _begun(frame, loads.box, loads.cycles, lanes, first)
    end = _sharing(frame) * stores.box
    return max(loads.cycles, stores.cycles, lanes) + begin + end


def _begun(
    frame: RowFrame, box: float, loads: float, lanes: float, first: float
) -> tuple[float, float]:
    """Cycles of the first boxes of all copies, and of the lanes, which wait for the first block."""
    begin, block = _sharing(frame) * frame.copies * box, loads / frame.blocks
    if frame.streamed is Streamed.NOTHING:
        return max(begin, block), lanes
    late = block - begin - first if frame.streamed is Streamed.ONCE else 0.0
    return begin, lanes + max(0.0, late)


def _sharing(frame: RowFrame) -> int:
    """Lines that share an AGCU, whose boxes take turns."""
    return ceil_div(frame.lines, frame.parts.config.agcu.count)


def least_cycles(frame: RowFrame) -> float:
    """Cycles that no pipeline of a frame is estimated below: of busy lanes, or of the bus.

    All slots of a PMU are free for rows, tiles pass once, and all AGCUs have as many beats.
    """
    config, region = frame.parts.config, frame.region
    lanes, first, _ = _lanes(frame, config.pmu.slots)
    rows = frame.lines * frame.blocks * frame.copies * frame.group
    beats, box, streams = 0.0, 0.0, 0
    for value, each in region.inputs.items():
        if each.part is TilePart.BLOCK:
            beats += rows * ceil_div(region.columns, frame.parts.vector(frame.form_of(value)))
            box = max(box, frame.group * frame.chunks(value))
            # Rows that are taken in two ways have a stream each.
            streams += 2 * frame.lines * ceil_div(frame.copies, frame.beside(value))
    loads = beats / max(1, min(config.agcu.count, streams))
    begin, lanes = _begun(frame, box, loads, lanes, first)
    return max(loads, lanes) + begin


def _lanes(frame: RowFrame, slots: int) -> tuple[float, float, float]:
    """Cycles of the lanes with so many slots for rows, and of first and last phase over a block."""
    phases = [_phases(frame, code, slots) for code in frame.codes]
    sums = [sum(each) + _changes(code) for each, code in zip(phases, frame.codes, strict=True)]
    block = max(frame.turns(number) * each for number, each in enumerate(sums))
    if not frame.in_pieces:
        block = max(block, (_FILLED + block) / max(1, slots // frame.row_slots))
    turns = frame.turns(len(frame.codes) - 1)
    return frame.blocks * block + (turns - 1) * sums[-1], phases[0][0], phases[-1][-1]


def _transfers(
    frame: RowFrame, pipeline: Pipeline, kind: type[Load | Store], blocks: int
) -> _Transfers:
    graph, config = pipeline.graph, frame.parts.config
    sources = {
        sink.stage: [end.stage for end, _ in each.sources]
        for each in graph.streams
        for sink in each.sinks
    }
    cycles, largest, boxes, slots = [0.0] * config.agcu.count, 0.0, 1, config.pmu.slots
    for name, each in graph.of(kind):
        box, count = box_cycles(each.descriptor, config), boxes_in(each.loops)
        cycles[each.agcu] += box * count
        largest, boxes = max(largest, box), max(boxes, count // blocks)
        beside = [*sources.get(name, ()), *(end.stage for end in graph.sinks(name))]
        if count > 1:
            ends = (pipeline.homes[end].slots for end in beside if end in pipeline.homes)
            slots = min(slots, *ends)
    return _Transfers(max(cycles), largest, boxes, slots)


def _changes(code: LaneCode) -> int:
    """Cycles between the phases over one packet, and to the first one over the next."""
    packets = len(code.program.joined)
    return PHASE_CHANGE * packets if packets > 1 else 0


def _phases(frame: RowFrame, code: LaneCode, slots: int) -> list[float]:
    """Cycles of each phase of a lane program over a block of rows, with so many slots for rows."""
    config, form = frame.parts.config, code.formats[code.source]
    vector = frame.parts.vector(form)
    pieces = frame.pieces(form) if frame.in_pieces else None
    if pieces and code.source in frame.region.inputs:
        pieces = frame.input_pieces(code.source)
    kept = kept_groups(width_bits=config.width_bits, lanes=config.pcu.lanes)
    found = []
    for joined in code.program.joined:
        if joined.source is PhaseSource.STATISTICS:
            continue
        phases, groups = joined.phases, vector / config.pcu.lanes
        strip = min(kept, int(frame.region.columns * frame.halves(form) * groups))
        groups *= strip_cycles(len(phases), changes(phases), config, strip)
        if joined.reduction.runs:
            groups = max(groups, CHANGE)
        column = frame.halves(form) * groups
        if pieces:
            busy = (pieces.width * column, pieces.last * column)
            piece, last = (max(each, (_FILLED + each) / slots) for each in busy)
            found.append(piece * (pieces.slots - 1) + last)
        else:
            found.append(frame.region.columns * column)
    return found
