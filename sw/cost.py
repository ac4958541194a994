"""The cost model: cycles of a plan, worked out slab by slab without its data."""

from __future__ import annotations

import dataclasses

from hw.config import ChipConfig
from sw.passes.fit import Fit
from sw.passes.plan import Plan

__all__ = ["LATENCY", "predict", "rough"]

#: Cycles of memory latency that predictions assume.
LATENCY = 100
#: Cycles of a burst in an AGCU beside its latency and beats, and between two commands.
_BURST, _COMMAND = 12, 8
#: Cycles from the write that launches to the first command, without the image's beats.
_LAUNCH = 3 * LATENCY + 110
#: Cycles from the last vector of a slab in an AGCU to the first in a PCU.
_CROSSING = 24
#: Row blocks that are worked out; those after them are like the last.
_BLOCKS = 3


def _row_cycles(config: ChipConfig, row_bytes: int) -> float:
    """Cycles of a box row: its beats, or its share of the bursts in flight."""
    beats = max(1, -(-row_bytes // (config.width_bits // 8)))
    return max(float(beats), (LATENCY + _BURST + beats) / config.agcu.outstanding)


def _box_cycles(config: ChipConfig, rows: int, row_bytes: int) -> float:
    return max(float(_COMMAND), rows * _row_cycles(config, row_bytes))


@dataclasses.dataclass
class _Loads:
    """One stream of boxes: how long one takes, and how many slots hold it back."""

    cycles: float
    slots: int
    total: int
    done: list[float] = dataclasses.field(default_factory=list)
    freed: list[float] = dataclasses.field(default_factory=list)

    def ready(self) -> float | None:
        """When the next may begin; None if that is not known, or there is none."""
        number = len(self.done)
        if number >= self.total:
            return None
        if number < self.slots:
            return 0.0
        return self.freed[number - self.slots] if number - self.slots < len(self.freed) else None


class _Port:
    """The read port of an AGCU: boxes of two streams in turn."""

    def __init__(self, streams: tuple[_Loads, ...]) -> None:
        self.streams = streams
        self.time = 0.0
        self.turn = 0

    def advance(self) -> bool:
        """Load one box; False if none may begin."""
        ready = [stream.ready() for stream in self.streams]
        known = [(max(at, self.time), (number - self.turn) % len(ready), number)
                 for number, at in enumerate(ready) if at is not None]  # fmt: skip
        if not known:
            return False
        start, _, number = min(known)
        stream = self.streams[number]
        self.time = start + stream.cycles
        stream.done.append(self.time + LATENCY + _CROSSING)
        self.turn = number + 1
        return True

    def until(self, stream: _Loads, number: int) -> float:
        """When a slab is there."""
        while len(stream.done) <= number:
            if not self.advance():
                raise RuntimeError("A slab waits for a slot that no pass frees")
        return stream.done[number]


def _shapes(plan: Plan, places: Fit) -> tuple[float, float, float]:
    """Cycles of a port for a slab of A, for one of B, and for a block of results."""
    config, product = plan.config, plan.product
    groups = max(groups for _, _, groups in places.a_agcus)
    a_row = plan.a_slab * plan.lanes * product.fmt.bits // 8
    a_cycles = groups * _box_cycles(config, plan.rows // places.a_parts, a_row)
    b_rows = plan.b_slab * plan.lanes // len(places.b_agcus)
    b_cycles = _box_cycles(config, b_rows, plan.columns * product.fmt.bits // 8)
    collected = max(each.groups for each in places.collectors)
    c_row = plan.stored_columns * product.out.bits // 8
    return a_cycles, b_cycles, collected * _box_cycles(config, plan.rows, c_row)


def rough(plan: Plan, places: Fit) -> float:
    """A quick estimate, to choose what to work out.

    Parameters
    ----------
    plan : Plan
    places : Fit
    """
    a_cycles, b_cycles, c_cycles = _shapes(plan, places)
    compute = plan.row_blocks * plan.all_passes * plan.tiles * plan.tile_cycles * places.slowdown
    panels = plan.row_blocks * (1 if plan.resident else plan.all_passes)
    a_total = panels * plan.a_slabs * a_cycles
    windows = plan.row_blocks * plan.col_blocks * plan.halves
    b_total = windows * plan.b_slabs * b_cycles
    c_total = plan.row_blocks * plan.col_blocks * c_cycles
    first = plan.a_slabs * a_cycles + plan.b_slabs * b_cycles
    return max(compute, a_total + b_total, c_total) + first


def predict(plan: Plan, places: Fit, image_bytes: int = 0) -> int:
    """Cycles of a cold launch.

    Parameters
    ----------
    plan : Plan
    places : Fit
    image_bytes : int
        Size of the image, if it is known.

    Notes
    -----
    Slabs are loaded by one port in the order of its boxes as slots come free; a pass takes a slab
    when it is there. Results bound a block from below. AGCUs are taken to be alike.
    """
    config = plan.config
    a_cycles, b_cycles, c_cycles = _shapes(plan, places)
    blocks = min(plan.row_blocks, _BLOCKS)
    panels = blocks * (1 if plan.resident else plan.all_passes)
    windows = blocks * plan.col_blocks * plan.halves
    a = _Loads(a_cycles, places.homes["a0"].slots, panels * plan.a_slabs)
    b = _Loads(b_cycles, places.homes["b"].slots, windows * plan.b_slabs)
    # An AGCU that loads only one of them is faster; the slowest loads both if there is one.
    both = any(agcu in places.b_agcus for agcu, _, _ in places.a_agcus)
    port_a = _Port((a, b) if both else (a,))
    port_b = port_a if both else _Port((b,))
    result = plan.col_par * plan.result_vectors * max(each.groups for each in places.collectors)
    tile = plan.tile_cycles * places.slowdown
    time = 0.0
    ends = []
    stored = 0.0
    for block in range(blocks):
        for window in range(plan.col_blocks * plan.halves):
            begin = time
            for step in range(plan.passes):
                start = time
                number = (window * plan.passes) + step
                panel = block if plan.resident else block * plan.all_passes + number
                b_window = block * plan.col_blocks * plan.halves + window
                for k in range(plan.tiles):
                    slab, rest = divmod(k, plan.a_slab)
                    if not rest:
                        at = port_a.until(a, panel * plan.a_slabs + slab)
                        time = max(time, at)
                    b_slab, b_rest = divmod(k, plan.b_slab)
                    if not b_rest:
                        time = max(time, port_b.until(b, b_window * plan.b_slabs + b_slab))
                    time += tile
                    last_a = not plan.resident or number == plan.all_passes - 1
                    if last_a and rest == plan.a_slab - 1:
                        a.freed.append(time)
                    if step == plan.passes - 1 and b_rest == plan.b_slab - 1:
                        b.freed.append(time)
                time = max(time, start + result)
            time = max(time, begin + c_cycles / plan.halves, stored)
            stored = time + c_cycles / plan.halves
        ends.append(time)
    if plan.row_blocks > blocks:
        time += (plan.row_blocks - blocks) * (ends[-1] - ends[-2])
    drain = result + plan.rows * plan.stored_columns / plan.out_lanes + LATENCY
    wave = 3 * config.grid_columns + config.grid_rows * config.pcu.cell_latency + 40
    launch = _LAUNCH + image_bytes // plan.vector_bytes
    return round(launch + time + wave + max(drain, c_cycles + LATENCY))
