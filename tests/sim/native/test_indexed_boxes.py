"""Gather and scatter of an AGCU on `tiny`: numpy, emulator and RTL give the same bytes."""

import numpy as np
import pytest

from hw.arch.error_codes import LaunchError, UnitError, agcu_number
from hw.arch.launch import Argument
from sim.backends.emitted import emitted_chip
from sim.emulator import emulate
from sim.native.chip_model import ChipModel, MemoryConditions
from sw.prove import prove
from sw.prove.memory_order import memory_faults
from tests.sw.chips import TINY
from tests.units_indexed import Indexed, Table


@pytest.fixture(scope="module")
def model(heavy_lock):
    """Model of `tiny`: the one build of this file."""
    with heavy_lock(), ChipModel(emitted_chip(TINY), TINY, seed=5) as chip:
        yield chip


@pytest.mark.parametrize("scatter", [False, True])
def test_random_indices_are_live_and_followed_by_the_emulator(scatter, seed):
    rng = np.random.default_rng(seed)
    for _ in range(15):
        job = Indexed.random(rng, scatter=scatter)
        answer = prove(job.chip_program())
        assert answer.live, answer
        arrays = job.arrays(rng)
        memory, at = job.launch(arrays)
        assert emulate(TINY, memory, list_address=at).status == "done"
        assert memory[job.base :] == job.data(job.expected(arrays))


@pytest.mark.few(2)
@pytest.mark.parametrize("stall", [0.0, 0.5])
@pytest.mark.parametrize("scatter", [False, True])
def test_random_indices_are_followed_by_rtl(model, scatter, stall, seed):
    rng = np.random.default_rng(seed)
    for _ in range(4):
        job = Indexed.random(rng, scatter=scatter)
        arrays = job.arrays(rng)
        memory, at = job.launch(arrays)
        other = bytearray(memory)
        conditions = MemoryConditions(latency=30, jitter=20, stall=stall, seed=seed)
        run = model.run(memory, list_address=at, conditions=conditions)
        assert (run.status, run.errors_met) == ("done", 0)
        assert memory[job.base :] == job.data(job.expected(arrays))
        found = emulate(TINY, other, list_address=at)
        assert other == memory
        assert run.bytes_written == found.bytes_written
        assert run.bytes_read == found.bytes_read + found.launch_bytes_read


@pytest.mark.parametrize("scatter", [False, True])
def test_an_index_out_of_range_touches_no_other_byte_and_has_its_code(model, scatter, seed):
    rng = np.random.default_rng(seed)
    for table, index in ((Table(8, 1, 9, 4), 9), (Table(8, 2, 9, 7), -1)):
        job = Indexed((table,), scatter)
        arrays = job.with_index(job.arrays(rng), table.count - 1, index)
        memory, at = job.launch(arrays)
        before, other = bytes(memory), bytearray(memory)
        run = model.run(memory, list_address=at)
        found = emulate(TINY, other, list_address=at)
        code = LaunchError.UNIT, UnitError.INDEX.value
        assert (found.error_code, found.error_detail) == code
        assert other[job.base :] == job.data(job.expected(arrays))
        assert (run.status, run.error_code, run.error_detail) == ("error", code[0].value, code[1])
        assert found.error_unit == agcu_number(TINY, 0)
        # The launch ends at once: every byte is that of before or that of the whole launch.
        pairs = zip(memory, before, other, strict=True)
        assert all(got in (was, will) for got, was, will in pairs)


def test_a_table_may_lie_anywhere_in_a_range_that_a_store_writes():
    """Indices name any page, so the order in memory is that of the whole table."""
    job = Indexed((Table(8, 1, 64, 4),), scatter=False)
    program = job.chip_program()
    arguments = [0x10000, 0x20000, 0x30000]
    assert memory_faults(program, _at(arguments)) == ()
    (fault,) = memory_faults(program, _at([0x10000, 0x10000 + 63 * 16, 0x30000]))
    assert fault.text == (
        "AGCU 0 load 0 must wait for a token of AGCU 0 store 1, which writes what it reads"
    )


def _at(addresses):
    return [Argument(address) for address in addresses]
