"""Random attention on a chip: a scores unit, a values unit, and the streams that they take."""

import dataclasses

from hw.arch.lanes.key_mask import KeyMask
from hw.arch.pcu import PcuInput, PcuOutput
from hw.arch.pmu import PmuInput, PmuOutput
from hw.numeric.lane_model import VectorStream
from sim.drivers.softmax_case import random_key_mask
from sw.netlist import Net, Netlist, Pin
from tests.hw.pcu.attention_pair import random_attention
from tests.lane_jobs import Drawn
from tests.units_lanes import CHIP, Feed, LaneJob

__all__ = ["AttentionJob", "draw_attention"]

_MOST_ROWS = 200


def _net(name, source, sink):
    return Net(name, ((Pin(*source), 1),), (Pin(*sink),), False)


@dataclasses.dataclass(frozen=True)
class AttentionJob(LaneJob):
    """A scores unit in the place of the one PCU, wired to a values unit, which sends the results.

    Its streams are keys X, queries W, and Y, which goes to the values unit: values and ones.
    """

    values: object = None

    @classmethod
    def drawn(cls, case):
        """Job of an `Attention`, the blocks of which all have as many keys."""
        r, c = case.chip.grid_rows, case.chip.grid_columns
        groups, blocks, m = len(case.blocks), len(case.blocks[0]), case.blocks[0][0]
        depth, rows = case.queries.shape[2] // r, case.values.shape[2] + 1
        feeds = {
            PcuInput.ACTIVATION: Feed(groups * blocks, depth, m),
            PcuInput.WEIGHT: Feed(groups, blocks * depth, c),
            PcuInput.AUXILIARY: Feed(groups, blocks * m // r, rows),
        }
        streams, results, programs = case.streams(), case.results(), case.programs
        data = {
            name: streams[stream][:, :-1].copy()
            for name, stream in (("X", "i_keys"), ("W", "i_queries"), ("Y", "i_values"))
        }
        marks = results[:, -1]
        expected = VectorStream(results[:, :-1], marks & 1 > 0, marks > 1)
        job = cls(programs["scores"], feeds, len(results), case.chip, programs["values"])
        return Drawn(job, data, expected)

    def netlist(self):
        base = super().netlist()
        moved = {"send Y": ("values", PcuInput.ACTIVATION), "give Z": ("results", PmuInput.W0)}
        nets = [net for net in base.nets if net.name not in moved]
        nets += [
            _net("send Y", ("beside", PmuOutput.R0), moved["send Y"]),
            _net("give P", ("pcu", PcuOutput.RESULT), ("values", PcuInput.WEIGHT)),
            _net("give Z", ("values", PcuOutput.RESULT), moved["give Z"]),
        ]
        return Netlist({**base.units, "values": self.values}, tuple(nets), base.fixed)


def draw_attention(rng, *, config=CHIP):
    """Random extents and mask, of which every slot fits into a box."""
    r = config.grid_rows
    while True:
        groups, blocks, tiles, depth, dv = (int(each) for each in rng.integers(1, (5, 5, 5, 4, 17)))
        if blocks * tiles * (dv + 1) > _MOST_ROWS or depth * tiles * r > _MOST_ROWS:
            continue
        mask = random_key_mask(rng, blocks * tiles * r, groups) if rng.integers(3) else KeyMask()
        sizes = [[tiles * r] * blocks] * groups
        case = random_attention(rng, config, sizes, d=depth * r, dv=dv, mask=mask)
        return AttentionJob.drawn(case)
