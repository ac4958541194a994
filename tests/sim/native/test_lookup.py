"""Rows of tables looked up by indices on the chip `tiny`: RTL, emulator and numpy."""

import dataclasses

import numpy as np
import pytest

from hw.arch.error_codes import LaunchError, UnitError, error_unit
from sim.backends.emitted import emitted_chip
from sim.emulator import emulate
from sim.native.chip_model import ChipModel, MemoryConditions
from tests.sw.gather_chip import CHIP, LIST, RESULT, ROWS, launch_memory, lookup


@pytest.fixture(scope="module")
def model(heavy_lock):
    """Model of `tiny`, shared by the tests of this file."""
    with heavy_lock(), ChipModel(emitted_chip(CHIP), CHIP, seed=5) as chip:
        yield chip


def operands(rng, tables, indices):
    """Random tables and indices, with what fills the last index vector of each table."""
    content = rng.integers(0, 256, (tables, ROWS, CHIP.width_bits // 8), dtype=np.uint8)
    words = rng.integers(0, ROWS, (tables, -(-indices // 2) * 2), dtype=np.uint32)
    words[:, indices:] = 0xFFFFFFFF
    return content, words


@pytest.mark.parametrize("stall", [0.0, 0.5])
@pytest.mark.parametrize(("tables", "indices"), [(1, 1), (5, 7), (9, 20)])
def test_looked_up_rows_equal_numpy(model, seed, tables, indices, stall):
    rng = np.random.default_rng(seed)
    content, words = operands(rng, tables, indices)
    memory = launch_memory(lookup(tables=tables, indices=indices), content, words)
    copy = bytearray(memory)
    conditions = MemoryConditions(latency=20, jitter=9, stall=stall, seed=seed)
    run = model.run(memory, list_address=LIST, conditions=conditions, max_cycles=100_000)
    assert run.status == "done"
    assert emulate(CHIP, copy, list_address=LIST).status == "done"
    assert memory == copy
    rows = np.concatenate([table[one[:indices]] for table, one in zip(content, words)])
    assert memory[RESULT : RESULT + rows.nbytes] == rows.tobytes()


def test_looked_up_words_equal_numpy(model, seed):
    rng = np.random.default_rng(seed)
    content = rng.integers(0, 256, (4, ROWS, CHIP.width_bits // 8), dtype=np.uint8)
    words = rng.integers(0, ROWS * CHIP.width_bits // 32, (4, 9, 2), dtype=np.uint32)
    memory = launch_memory(lookup(tables=4, indices=9, elements=True), content, words)
    copy = bytearray(memory)
    run = model.run(memory, list_address=LIST, max_cycles=100_000)
    assert run.status == emulate(CHIP, copy, list_address=LIST).status == "done"
    assert memory == copy
    rows = [table.view(np.uint32).ravel()[one] for table, one in zip(content, words)]
    expected = np.concatenate(rows).tobytes()
    assert memory[RESULT : RESULT + len(expected)] == expected


def test_an_index_out_of_range_ends_the_launch(model, seed):
    rng = np.random.default_rng(seed)
    content, words = operands(rng, 3, 6)
    words[1, 4] = ROWS
    memory = launch_memory(lookup(tables=3, indices=6), content, words)
    other = emulate(CHIP, bytearray(memory), list_address=LIST)
    run = model.run(memory, list_address=LIST, max_cycles=100_000)
    for each in (run, other):
        ends = dataclasses.asdict(each) if each is other else vars(each)
        assert ends["status"] == "error"
        assert (ends["error_detail"], ends["error_unit"]) == (UnitError.INDEX.value, 2)
    assert run.error_code == LaunchError.UNIT.value and other.error_code is LaunchError.UNIT
    assert error_unit(CHIP, 2) == "pmu_1_0"
