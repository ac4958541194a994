"""Products whose results are drained by nine PCUs and merged at one PMU, and their cycles."""

import dataclasses

import numpy as np

from hw.arch.agcu import AgcuInput, AgcuOutput, AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram, Wait
from hw.arch.config import AgcuConfig, ChipConfig, PcuConfig, PmuConfig
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.phase_word import Operand, PhaseSource, ResultForm, UnitOrder
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import FilterProgram, PcuInput, PcuOutput, PcuProgram
from hw.arch.pmu import EngineProgram, PmuInput, PmuOutput, PmuProgram, SlotRing
from hw.arch.words.pmu_word import Access, Level, TokenSource
from hw.numeric.alu_codes import AluOperation
from hw.numeric.formats import bf16, fp32
from sim.launch_memory import LaunchMemory
from sim.operands import random_operand
from sim.oracle import product
from sw.array_spec import ArraySpec
from sw.fabric.assemble import assemble
from sw.fabric.place import place
from sw.fabric.route import route
from sw.netlist import Net, Netlist, Pin
from tests.hw.pcu.launched_cycles import launched_cycles

CHIP = ChipConfig(
    rows=4,
    columns=3,
    width_bits=64,
    pattern="mmm/ccc/ccc/ccc",
    pcu=PcuConfig(accumulator_rows=128, lanes=1),
    pmu=PmuConfig(capacity_bytes=32768),
    agcu=AgcuConfig(count=1),
)
PCUS = 9
LANES, COLUMNS = 4, 2
#: The lanes send the sums as they are, rounded to bf16.
ROUND = LaneProgram(
    (
        LanePhase(
            PhaseSource.ACCUMULATORS,
            alu=AluOperation.OR,
            alu_operands=(Operand.X, *(Operand.ZERO,) * 3),
            order=UnitOrder.FMA_SFU_ALU,
            result=ResultForm.BF16,
        ),
    )
)

__all__ = ["CHIP", "PCUS", "Case", "Merged", "cycles_of_a_pass"]


@dataclasses.dataclass(frozen=True)
class Merged:
    """The transpose of C[M, 18] = A[M, 4] · B[4, 18] in bf16: nine PCUs with two columns each.

    Rows of A go to all PCUs, columns of B to one each. A pass is one tile. The result packets are
    merged in turn at one write engine, whose loops place each vector; columns are read and stored.

    Parameters
    ----------
    blocks, rows : int
        Passes, and rows of each; rows are even.
    packet_vectors : int
        Vectors of a result packet, which divide a pass; two rows each.
    lanes : bool
        The lanes drain the sums, not the matrix unit.
    """

    blocks: int
    rows: int
    packet_vectors: int
    lanes: bool = False

    @property
    def arrays(self):
        m = self.blocks * self.rows
        return (
            ArraySpec("A", (m, LANES), bf16),
            ArraySpec("BT", (PCUS * COLUMNS, LANES), bf16),
            ArraySpec("CT", (PCUS * COLUMNS, m), bf16, output=True),
        )

    def _operands(self):
        slot = self.rows * LANES
        a_ring = SlotRing(buffer=0, base=0, stride=slot, count=2)
        b_ring = SlotRing(buffer=1, base=2 * slot, count=1)
        blocks = LoopProgram(self.blocks)
        rows = (LoopProgram(self.rows, stride=LANES),)
        writers = (
            EngineProgram(ring=a_ring, loops=rows, element_bytes=2, windows=blocks),
            EngineProgram(
                ring=b_ring, loops=(LoopProgram(PCUS * COLUMNS, stride=LANES),), element_bytes=2
            ),
        )
        readers = (
            dataclasses.replace(writers[0], last_level=Level.ADDRESS, final_level=Level.ADDRESS),
            EngineProgram(
                ring=b_ring,
                loops=(
                    LoopProgram(PCUS, stride=COLUMNS * LANES),
                    LoopProgram(COLUMNS, stride=LANES),
                ),
                element_bytes=2,
                repeats=blocks,
                last_level=Level.ADDRESS + 1,
            ),
        )
        return PmuProgram(writers=writers, readers=readers, tokens=(TokenSource.R0,))

    def _results(self):
        block = self.rows * LANES
        ring = SlotRing(buffer=0, base=0, stride=PCUS * block, count=2)
        packets, blocks = self.rows // 2 // self.packet_vectors, LoopProgram(self.blocks)
        write = EngineProgram(
            ring=ring,
            loops=(
                LoopProgram(packets, stride=self.packet_vectors * 2 * LANES),
                LoopProgram(PCUS, stride=block),
                LoopProgram(self.packet_vectors, stride=2 * LANES),
            ),
            element_bytes=2,
            access=Access.TWO_ROWS,
            windows=blocks,
        )
        read = EngineProgram(
            ring=ring,
            loops=(
                LoopProgram(PCUS, stride=block),
                LoopProgram(COLUMNS, stride=1),
                LoopProgram(self.rows // LANES, stride=LANES * LANES),
            ),
            element_bytes=2,
            access=Access.COLUMN,
            windows=blocks,
        )
        return PmuProgram(writers=(write, None), readers=(read, None))

    def _agcu(self):
        def tensor(number, box):
            array = self.arrays[number]
            dims, pitch = array.shape[::-1], (array.pitch,)
            return Descriptor(
                base=0, format=ElementFormat.BF16, dims=dims, strides=pitch, box=box
            ), number

        return AgcuProgram(
            loads=(
                IssuerProgram(0, (BoxLoop(self.blocks, 1, self.rows),), (Wait(0),)),
                IssuerProgram(1, (BoxLoop(1),)),
            ),
            stores=(IssuerProgram(2, (BoxLoop(self.blocks, 0, self.rows),)),),
            descriptors=(
                tensor(0, (LANES, self.rows)),
                tensor(1, (LANES, PCUS * COLUMNS)),
                tensor(2, (self.rows, PCUS * COLUMNS)),
            ),
            credits=(2,),
        )

    def image(self):
        names = [f"pcu{number}" for number in range(PCUS)]
        units = {"operands": self._operands(), "results": self._results(), "agcu": self._agcu()}
        for number, name in enumerate(names):
            units[name] = PcuProgram(
                fmt=bf16,
                out=fp32 if self.lanes else bf16,
                lanes=ROUND if self.lanes else None,
                weight=FilterProgram(PCUS, number),
                packet_vectors=self.packet_vectors,
            )

        def net(name, sources, sinks, **kinds):
            turns = tuple((Pin(*source), 1) for source in sources)
            return Net(name, turns, tuple(Pin(*sink) for sink in sinks), **kinds)

        netlist = Netlist(
            units,
            (
                net("a", [("agcu", AgcuOutput.LOAD_0)], [("operands", PmuInput.W0)]),
                net("b", [("agcu", AgcuOutput.LOAD_1)], [("operands", PmuInput.W1)]),
                net(
                    "rows",
                    [("operands", PmuOutput.R0)],
                    [(name, PcuInput.ACTIVATION) for name in names],
                ),
                net(
                    "columns",
                    [("operands", PmuOutput.R1)],
                    [(name, PcuInput.WEIGHT) for name in names],
                ),
                net(
                    "sums",
                    [(name, PcuOutput.RESULT) for name in names],
                    [("results", PmuInput.W0)],
                ),
                net("c", [("results", PmuOutput.R0)], [("agcu", AgcuInput.STORE_0)]),
                net("a_free", [("operands", 0)], [("agcu", 0)], tokens=True),
            ),
            {"agcu": 0},
        )
        placement = place(netlist, CHIP, seed=1)
        routes = route(netlist, placement, CHIP, seed=1)
        return assemble(netlist, placement, routes, CHIP).pack()


class Case:
    """Memory of a launch before and after, and the transpose that it must hold."""

    def __init__(self, job, seed):
        rng = np.random.default_rng(seed)
        a, bt, _ = (random_operand(rng, each.shape, bf16) for each in job.arrays)
        self.layout = LaunchMemory.of_image(CHIP, job.image(), job.arrays, seed=seed % (1 << 32))
        self.memory = self.layout.bytes_before({"A": a, "BT": bt})
        self.golden = product(a, np.ascontiguousarray(bt.T), bf16.dtype).T

    def equal(self):
        return self.layout.read(self.memory, "CT").tobytes() == self.golden.tobytes()


def cycles_of_a_pass(model, seed, **fields):
    """Cycles of a pass of 128 rows among many, once also with a memory that stalls."""
    launched_cycles(model, Case(Merged(3, 128, **fields), seed), seed, stall=0.3)
    cases = (Case(Merged(blocks, 128, **fields), seed) for blocks in (4, 12))
    few, many = (launched_cycles(model, case, seed) for case in cases)
    return (many - few) / 8
