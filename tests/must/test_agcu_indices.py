"""unit-h: gather and scatter of rows and pages in memory by an AGCU, on the chip `tiny` in RTL."""

import numpy as np
import pytest

from gen.verilog import emit
from hw.chip import Chip
from sim.emulator import emulate
from sim.native.chip_model import ChipModel, MemoryConditions
from sw.prove import prove
from tests.sw.chips import TINY
from tests.units_indexed import Indexed

JOBS = 30


@pytest.mark.slow
@pytest.mark.must(
    "unit-h", goal="random gathers and scatters of an AGCU in RTL equal numpy by bytes"
)
def test_gathers_and_scatters_of_an_agcu_equal_numpy(seed, figure, heavy):
    rng = np.random.default_rng(seed)
    boxes = 0
    with ChipModel(emit(Chip(TINY)), TINY, seed=5) as model:
        for number in range(2 * JOBS):
            job = Indexed.random(rng, scatter=number % 2 == 1)
            assert prove(job.chip_program()).live
            arrays = job.arrays(rng)
            memory, at = job.launch(arrays)
            other = bytearray(memory)
            conditions = MemoryConditions(
                latency=int(rng.integers(1, 120)),
                jitter=int(rng.integers(40)),
                stall=(0.0, 0.4)[number // 2 % 2],
                seed=seed + number,
            )
            run = model.run(memory, list_address=at, conditions=conditions)
            assert (run.status, run.errors_met) == ("done", 0)
            assert memory[job.base :] == job.data(job.expected(arrays))
            assert emulate(TINY, other, list_address=at).status == "done" and other == memory
            boxes += sum(table.count for table in job.tables)
    figure(f"{boxes} boxes of {JOBS} gathers and {JOBS} scatters")
