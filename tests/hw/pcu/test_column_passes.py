"""Column passes that share each K-block of A: a product placed by hand, against today's form."""

import dataclasses

import numpy as np
import pytest

from gen.verilog import emit
from hw.arch.config import named
from hw.arch.loops import LoopProgram
from hw.arch.pcu import PcuProgram
from hw.arch.pmu import EngineProgram, PmuProgram, SlotRing
from hw.arch.words.pmu_word import Access, Level, TokenSource
from hw.chip import Chip
from hw.numeric.formats import bf16, fp32, int8, int32
from sim.emulator import EmulatorError, emulate
from sim.native.chip_model import ChipModel
from sim.oracle import product
from sw.chip_program import ChipProgram
from sw.prove import prove, require_live
from tests.hw.pcu.launched_cycles import launched_cycles
from tests.sw.chips import operands_changed, pcu_changed
from tests.sw.naive import ends
from tests.units_matmul import UnitsMatmul

TINY = named["tiny"]
C = TINY.grid_columns


@dataclasses.dataclass(frozen=True)
class SharedRows(UnitsMatmul):
    """The product of `UnitsMatmul`, with q column passes for every K-block of A.

    A box of B has q·C columns. Rows of each tile of A are read q times, B's columns in one loop
    more, whose end has the mark `final`. The ring of A needs two slots however long K is.
    """

    passes: int

    @property
    def box_columns(self):
        return self.passes * C

    def _pcu(self):
        return PcuProgram(fmt=self.fmt, out=self.out, by_group=True)

    def _operands(self):
        lanes, size = self.lanes, self.fmt.bits // 8
        rows, columns, slabs = self.blocks
        square, across = lanes * lanes, self.box_columns // lanes
        slab_blocks, row_blocks = self.slab // lanes, self.block_rows // lanes
        a_slot, b_slot = self.block_rows * self.slab, self.slab * self.box_columns
        a_ring = SlotRing(buffer=0, base=0, stride=a_slot, count=self.slots)
        b_ring = SlotRing(buffer=1, base=self.slots * a_slot, stride=b_slot, count=self.slots)
        row = LoopProgram(lanes, stride=lanes)
        common = {
            "element_bytes": size,
            "windows": LoopProgram(rows * columns),
            "slots": LoopProgram(slabs),
        }
        write_a = EngineProgram(
            ring=a_ring,
            loops=(
                LoopProgram(row_blocks, stride=slab_blocks * square),
                row,
                LoopProgram(slab_blocks, stride=square),
            ),
            **common,
        )
        write_b = EngineProgram(
            ring=b_ring,
            loops=(
                LoopProgram(slab_blocks, stride=across * square),
                row,
                LoopProgram(across, stride=square),
            ),
            **common,
        )
        read_a = EngineProgram(
            ring=a_ring,
            loops=(
                LoopProgram(slab_blocks, stride=square),
                LoopProgram(self.passes),
                LoopProgram(row_blocks, stride=slab_blocks * square),
                row,
            ),
            last_level=Level.ADDRESS + 2,
            final_level=Level.SLOTS,
            **common,
        )
        read_b = EngineProgram(
            ring=b_ring,
            loops=(
                LoopProgram(slab_blocks, stride=across * square),
                LoopProgram(across, stride=square),
                LoopProgram(lanes // C, stride=C),
                LoopProgram(C, stride=1),
            ),
            access=Access.COLUMN,
            last_level=Level.ADDRESS + 3,
            final_level=Level.ADDRESS + 1,
            **common,
        )
        return PmuProgram(
            writers=(write_a, write_b),
            readers=(read_a, read_b),
            tokens=(TokenSource.R0, TokenSource.R1),
        )

    def _results(self):
        lanes = TINY.width_bits // self.out.bits
        square, per_vector = lanes * lanes, lanes // C
        rows, columns, _ = self.blocks
        across = self.box_columns // lanes
        packed = self.out == bf16
        row_blocks = LoopProgram(self.block_rows // lanes, stride=across * square)
        ring = SlotRing(buffer=0, base=0, stride=self.block_rows * self.box_columns, count=2)
        common = {
            "ring": ring,
            "element_bytes": self.out.bits // 8,
            "windows": LoopProgram(rows * columns),
        }
        write = EngineProgram(
            loops=(
                LoopProgram(across, stride=square),
                LoopProgram(per_vector, stride=C),
                row_blocks,
                LoopProgram(lanes // 2 if packed else lanes, stride=2 * lanes if packed else lanes),
            ),
            access=Access.TWO_ROWS if packed else Access.ROW,
            **common,
        )
        read = EngineProgram(
            loops=(
                row_blocks,
                LoopProgram(lanes, stride=lanes),
                LoopProgram(across, stride=square),
            ),
            **common,
        )
        return PmuProgram(writers=(write, None), readers=(read, None))


class Case:
    """Memory of a launch before and after, and the product that it must hold."""

    def __init__(self, job, seed):
        rng = np.random.default_rng(seed)
        a, b = job.operands(rng, special_share=0.02)
        self.layout = job.launch_memory(int(rng.integers(1 << 32)))
        self.memory = self.layout.bytes_before({"A": a, "B": b})
        self.golden = product(a, b, job.out.dtype)

    def equal(self):
        return self.layout.read(self.memory, "C").tobytes() == self.golden.tobytes()

    def emulated(self):
        return emulate(TINY, self.memory, list_address=self.layout.list_address)


def decoded(job):
    return ChipProgram.unpack(TINY, job.image())


def shared(m=32, n=32, k=64, fmt=bf16, out=fp32, rows=16, slab=16, passes=16, slots=2):
    return SharedRows(TINY, m, n, k, fmt, out, rows, slab, slots, passes)


JOBS = [
    shared(20, 30, 19, slab=8, rows=8, passes=8),
    shared(20, 30, 19, out=bf16, slab=8, rows=8, passes=8),
    shared(9, 40, 33, fmt=int8, out=int32, rows=8, slab=8, passes=4, slots=3),
    shared(16, 32, 5, slab=8, rows=16, passes=16, slots=1),
]
#: One with twice the rows that a bank has.
TALL = shared(64, 16, 16, out=bf16, rows=64, passes=8, slots=1)


@pytest.mark.parametrize("job", JOBS, ids=["fp32", "bf16", "int8", "one slab"])
def test_column_passes_are_live_and_give_the_product(job, seed):
    program = decoded(job)
    require_live(program)
    assert prove(program, whole=True).moved == prove(program).moved
    assert ends(program, seed)
    case = Case(job, seed)
    assert case.emulated().status == "done" and case.equal()


def _unmarked(job):
    """The product whose weights have no mark: a pass is one group."""
    program = decoded(job)
    read_a, read_b = program.tiles[1, 0].unit.readers
    read_b = dataclasses.replace(read_b, final_level=None)
    return operands_changed(program, readers=(read_a, read_b))


def _double_packets(job):
    """Two tiles of weights to a packet."""
    program = decoded(job)
    read_a, read_b = program.tiles[1, 0].unit.readers
    read_b = dataclasses.replace(read_b, last_level=Level.ADDRESS + 2)
    return operands_changed(program, readers=(read_a, read_b))


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (decoded(TALL), "a group of 8 tiles of 64 rows, its"),
        (_unmarked(shared()), "a group of 256 tiles of 16 rows, its banks hold 256 rows"),
        (_double_packets(shared()), "a packet of 4 weight vectors, its tiles have 2"),
    ],
    ids=["too many rows", "no mark", "two tiles a packet"],
)
def test_groups_that_a_unit_cannot_run_are_refused(program, words):
    answer = prove(program)
    assert not answer.live
    assert words in " ".join(answer.faults)


def test_groups_of_different_sizes_are_refused():
    """Passes of 12 tiles of A, and marks after every 8 tiles of B."""
    program = decoded(shared(m=16, k=16, passes=8))
    read_a, read_b = program.tiles[1, 0].unit.readers
    read_a = dataclasses.replace(
        read_a, loops=(*read_a.loops[:1], LoopProgram(3), *read_a.loops[2:])
    )
    answer = prove(operands_changed(program, readers=(read_a, read_b)))
    assert "gets groups of different numbers of tiles in one pass" in " ".join(answer.faults)


def test_the_emulator_refuses_what_the_proof_refuses(seed):
    with pytest.raises(EmulatorError, match="a group of 8 tiles of 64 rows"):
        Case(TALL, seed).emulated()


def test_without_the_field_the_same_streams_are_other_passes():
    """Each tile then adds to the rows of the one before: a pass has one column pass."""
    program = decoded(shared(m=16, n=32, k=16))
    plain = pcu_changed(program, (0, 0), by_group=False)
    assert prove(program).live and not prove(plain).live


@pytest.mark.slow
def test_column_passes_read_each_block_of_a_once(seed, heavy):
    """Against a form that reads A for each box of columns: bytes of the bus, and cycles, in RTL.

    With a slow memory the bytes decide; with a fast one the grid, and the longer last pass.
    """
    m, n, k = 32, 32, 64
    jobs = {
        "today": UnitsMatmul(TINY, m, n, k, bf16, fp32, 16, 16, k // 16),
        "shared": shared(m, n, k),
    }
    read = {name: Case(job, seed).emulated().bytes_read for name, job in jobs.items()}
    with ChipModel(emit(Chip(TINY)), TINY) as model:
        for job in JOBS:
            launched_cycles(model, Case(job, seed), seed, stall=0.3, latency=7)
        fast, slow = (
            {
                name: launched_cycles(model, Case(job, seed), seed, stall=stall)
                for name, job in jobs.items()
            }
            for stall in (0.0, 0.7)
        )
    print(f"{m} x {n} x {k}: bytes read {read}, cycles {fast}, with a slow memory {slow}")
    # B is read once for each block of rows by both; A once, or for each of eight boxes of columns.
    assert read["today"] - read["shared"] == 7 * m * k * 2
    assert fast["shared"] <= 1.1 * fast["today"]
    assert slow["shared"] <= 0.7 * slow["today"]
