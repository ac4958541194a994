"""Attention of many PCUs on a chip: scores units and values units in pairs, placed and routed."""

import dataclasses

import numpy as np

from hw.arch.agcu import AgcuInput, AgcuOutput, AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram, Wait
from hw.arch.config import ChipConfig
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.lanes.softmax_program import SoftmaxProgram, SoftmaxRole
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import FilterProgram, PcuInput, PcuOutput, PcuProgram
from hw.arch.pmu import Beyond, EngineProgram, PmuInput, PmuOutput, PmuProgram, SlotRing
from hw.arch.words.pmu_word import Access, Level, TokenSource
from hw.numeric import reference
from hw.numeric.formats import bf16
from hw.numeric.fused_softmax import score_scale
from sw.array_spec import ArraySpec
from sw.netlist import Net, Netlist, Pin
from tests.hw.pcu.attention_pair import Attention

__all__ = ["PAIRS", "AttentionChip"]

#: Scores units, and values units.
PAIRS = 4
#: Slots of keys, and of values.
_SLOTS = 3
_ONES = 0x3F80


def _net(name, sources, sinks, *, tokens=False):
    turns = tuple((Pin(*source), 1) for source in sources)
    return Net(name, turns, tuple(Pin(*sink) for sink in sinks), tokens)


@dataclasses.dataclass(frozen=True)
class AttentionChip:
    """O = softmax(Q · Kᵀ / √d) · V by four scores units, each wired to a values unit.

    All arrays are row-major, of bf16. Each pair has C queries of a group. Blocks of keys go to all
    scores units and those of values to all values units, both once for each group; queries are read
    again for each block. Rows of the output are merged at one PMU, which sends its columns.

    Parameters
    ----------
    config : ChipConfig
    groups : int
        Query groups of PAIRS · C queries.
    blocks, block : int
        Blocks of keys, and keys of each.
    d : int
        Elements of a query, a key and a value.
    """

    config: ChipConfig
    groups: int
    blocks: int
    block: int
    d: int

    @property
    def queries(self):
        """Queries of a group."""
        return PAIRS * self.config.grid_columns

    @property
    def arrays(self):
        """Arguments of the launch."""
        keys, queries = (self.blocks * self.block, self.d), (self.groups * self.queries, self.d)
        return (
            ArraySpec("Q", queries, bf16),
            ArraySpec("K", keys, bf16),
            ArraySpec("V", keys, bf16),
            ArraySpec("O", queries, bf16, output=True),
        )

    def inputs(self, rng):
        """Unit normal operands."""

        def normal(shape):
            return reference.cast(rng.normal(0, 1, shape).astype(np.float32), bf16)

        return {array.name: normal(array.shape) for array in self.arrays[:3]}

    def golden(self, inputs):
        """The output, by numpy."""
        columns = self.config.grid_columns
        queries = inputs["Q"].reshape(-1, columns, self.d)
        keys, values = (
            np.broadcast_to(inputs[name], (len(queries), *inputs[name].shape)) for name in "KV"
        )
        blocks = [[self.block] * self.blocks] * len(queries)
        case = Attention(self.config, queries, keys, values, blocks)
        rows = case.golden()[1]
        return np.concatenate([np.ascontiguousarray(each.T) for each in rows])

    def _pieces(self, rows):
        """Ring and loops of slots whose rows arrive whole, and lie piece by piece."""
        r = self.config.grid_rows
        ring = SlotRing(0, 0, rows * self.d, _SLOTS)
        return ring, (LoopProgram(rows, stride=r), LoopProgram(self.d // r, stride=rows * r))

    def _keys(self):
        """Blocks of keys: tiles of R elements of all their rows."""
        ring, (rows, pieces) = self._pieces(self.block)
        windows = LoopProgram(self.groups * self.blocks)
        write = EngineProgram(ring, (rows, pieces), windows=windows)
        read = dataclasses.replace(
            write, loops=(pieces, rows), last_level=Level.ADDRESS + 1, final_level=Level.ADDRESS
        )
        return PmuProgram((write, None), (read, None), (TokenSource.R0,))

    def _queries(self):
        """Queries of a group: tiles of C of them, unit after unit, for each block."""
        ring, (rows, pieces) = self._pieces(self.queries)
        windows = LoopProgram(self.groups)
        write = EngineProgram(ring, (rows, pieces), windows=windows)
        columns, r = self.config.grid_columns, self.config.grid_rows
        units = LoopProgram(PAIRS, stride=columns * r)
        read = dataclasses.replace(
            write,
            loops=(pieces, units, LoopProgram(columns, stride=r)),
            repeats=LoopProgram(self.blocks),
            last_level=Level.ADDRESS + 2,
            final_level=Level.REPEATS,
        )
        return PmuProgram((write, None), (read, None), (TokenSource.R0,))

    def _values(self):
        """Blocks of values: tiles of R keys, a vector for each element, and ones behind them."""
        r = self.config.grid_rows
        squares, across = self.block // r, self.d // r
        ring = SlotRing(0, 0, self.block * self.d, _SLOTS)
        down = LoopProgram(squares, stride=across * r * r)
        write = EngineProgram(
            ring,
            (down, LoopProgram(r, stride=r), LoopProgram(across, stride=r * r)),
            windows=LoopProgram(self.groups * self.blocks),
        )
        phase = int(Level.ADDRESS) + 1
        read = EngineProgram(
            ring,
            (
                down,
                LoopProgram(2),
                LoopProgram(across, stride=r * r, slope=1 - across, outer=phase),
                LoopProgram(r, stride=1, slope=1 - r, outer=phase),
            ),
            access=Access.COLUMN,
            windows=LoopProgram(self.groups),
            slots=LoopProgram(self.blocks),
            last_level=phase,
            final_level=Level.SLOTS,
            beyond=Beyond(phase, 1, _ONES),
        )
        return PmuProgram((write, None), (read, None), (TokenSource.R0,))

    def _results(self):
        """Outputs of a group: columns of all pairs, sent as rows of queries."""
        r, columns = self.config.grid_rows, self.config.grid_columns
        across = self.d // r
        beside = r // columns
        down = LoopProgram(PAIRS // beside, stride=across * r * r)
        squares = LoopProgram(across, stride=r * r)
        write = EngineProgram(
            SlotRing(0, 0, self.queries * self.d, 2),
            (
                down,
                LoopProgram(beside, stride=columns),
                squares,
                LoopProgram(r // 2, stride=2 * r),
            ),
            access=Access.TWO_ROWS,
            windows=LoopProgram(self.groups),
        )
        read = dataclasses.replace(
            write, loops=(down, LoopProgram(r, stride=1), squares), access=Access.COLUMN
        )
        return PmuProgram((write, None), (read, None))

    def _tensor(self, number, rows):
        array = self.arrays[number]
        return Descriptor(
            base=0,
            format=ElementFormat.BF16,
            dims=array.shape[::-1],
            strides=(array.pitch,),
            box=(self.d, rows),
        ), number

    def _agcus(self):
        """AGCU 0 loads keys and queries; AGCU 1 loads values and stores the output."""

        def blocks(descriptor):
            loops = (BoxLoop(self.groups), BoxLoop(self.blocks, 1, self.block))
            return IssuerProgram(descriptor, loops, (Wait(0),))

        groups = (BoxLoop(self.groups, 1, self.queries),)
        first = AgcuProgram(
            loads=(blocks(0), IssuerProgram(1, groups, (Wait(1),))),
            descriptors=(self._tensor(1, self.block), self._tensor(0, self.queries)),
            credits=(_SLOTS, _SLOTS),
        )
        second = AgcuProgram(
            loads=(blocks(0),),
            stores=(IssuerProgram(1, groups),),
            descriptors=(self._tensor(2, self.block), self._tensor(3, self.queries)),
            credits=(_SLOTS,),
        )
        return {"agcu0": first, "agcu1": second}

    def netlist(self):
        """Units and nets."""
        factor = float(score_scale(self.d**-0.5))
        units = {
            "keys": self._keys(),
            "queries": self._queries(),
            "values": self._values(),
            "results": self._results(),
            **self._agcus(),
        }
        for number in range(PAIRS):
            units[f"scores{number}"] = PcuProgram(
                softmax=SoftmaxProgram(SoftmaxRole.SCORES, factor),
                weight=FilterProgram(PAIRS, number),
            )
            units[f"values{number}"] = PcuProgram(
                softmax=SoftmaxProgram(SoftmaxRole.VALUES), weights_by_row=True
            )

        def all_of(name, port):
            return [(f"{name}{number}", port) for number in range(PAIRS)]

        loads = (("keys", "agcu0", 0), ("queries", "agcu0", 1), ("values", "agcu1", 0))
        nets = [
            _net("send K", [("keys", PmuOutput.R0)], all_of("scores", PcuInput.ACTIVATION)),
            _net("send Q", [("queries", PmuOutput.R0)], all_of("scores", PcuInput.WEIGHT)),
            _net("send V", [("values", PmuOutput.R0)], all_of("values", PcuInput.ACTIVATION)),
            _net("give O", all_of("values", PcuOutput.RESULT), [("results", PmuInput.W0)]),
            _net("store O", [("results", PmuOutput.R0)], [("agcu1", AgcuInput.STORE_0)]),
        ]
        for name, agcu, number in loads:
            nets += [
                _net(f"load {name}", [(agcu, AgcuOutput(number))], [(name, PmuInput.W0)]),
                _net(f"free {name}", [(name, 0)], [(agcu, number)], tokens=True),
            ]
        for number in range(PAIRS):
            source, sink = (
                (f"scores{number}", PcuOutput.RESULT),
                (f"values{number}", PcuInput.WEIGHT),
            )
            nets.append(_net(f"give P{number}", [source], [sink]))
        return Netlist(units, tuple(nets), {"agcu0": 0, "agcu1": 1})
