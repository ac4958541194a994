"""Lists of programs of an AGCU on `tiny`: netlist model, emulator and RTL give the same bytes."""

import random

import numpy as np
import pytest

from sim.backends.emitted import emitted_chip
from sim.emulator import EmulatorError, emulate
from sim.native.chip_model import ChipModel, MemoryConditions
from sw.prove import prove
from sw.prove.memory_order import memory_faults
from tests.sw.chips import TINY
from tests.sw.naive import ends
from tests.sw.netlist_model import run_netlist
from tests.units_lists import Copies, Relay


@pytest.fixture(scope="module")
def model(heavy_lock):
    """Model of `tiny`: the one build of this file."""
    with heavy_lock(), ChipModel(emitted_chip(TINY), TINY, seed=5) as chip:
        yield chip


def expected(job, data):
    """Data after the netlist has run on unbounded streams."""
    places = [at - job.base for at in job.places]
    arrays = [bytearray(data[begin:end]) for begin, end in zip(places, places[1:], strict=False)]
    run_netlist(job.netlist, TINY, arrays)
    return b"".join(arrays) + data[places[-1] :]


def data_of(job, rng):
    return rng.randbytes(job.places[-1] - job.base)


def test_random_lists_are_live_and_copied_by_the_emulator(seed):
    rng = random.Random(seed)
    for _ in range(20):
        job = Copies.random(rng)
        program = job.chip_program()
        assert prove(program).live
        assert ends(program, seed)
        data = data_of(job, rng)
        memory, at = job.launch(data)
        assert emulate(TINY, memory, list_address=at).status == "done"
        assert memory[job.base :] == expected(job, data)


@pytest.mark.few(1)
@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_random_lists_are_copied_by_rtl(model, seed, stall):
    rng = random.Random(seed)
    for _ in range(6):
        job = Copies.random(rng)
        data = data_of(job, rng)
        memory, at = job.launch(data)
        other = bytearray(memory)
        conditions = MemoryConditions(latency=30, jitter=20, stall=stall, seed=seed)
        run = model.run(memory, list_address=at, conditions=conditions)
        assert (run.status, run.errors_met) == ("done", 0)
        assert memory[job.base :] == expected(job, data)
        found = emulate(TINY, other, list_address=at)
        assert other == memory
        assert run.bytes_written == found.bytes_written
        assert run.bytes_read == found.bytes_read + found.launch_bytes_read


def test_a_load_follows_the_stores_of_its_iteration_by_their_tokens(model, seed):
    rng = np.random.default_rng(seed)
    for boxes, repeat in ((2, 1), (7, 4), (15, 3)):
        job = Relay(boxes)
        program, arguments = job.chip_program(), job.arguments(repeat)
        for times in (repeat, 10**6):
            assert prove(program, repeat=times).live
            assert memory_faults(program, job.arguments(times), times) == ()
        data = rng.bytes(3 * repeat * job.size)
        memory, at = job.memory(arguments, data, repeat=repeat)
        other = bytearray(memory)
        run = model.run(memory, list_address=at, conditions=MemoryConditions(latency=60, seed=seed))
        assert run.status == "done"
        x = data[: repeat * job.size]
        assert memory[job.base :] == x + _padded(x, data, 1) + _padded(x, data, 2)
        assert emulate(TINY, other, list_address=at).status == "done"
        assert other == memory


def _padded(x, data, number):
    """A copy of x whose rows keep the padding that they had: 8 of 16 bytes are elements."""
    rows = np.frombuffer(data, np.uint8).reshape(3, -1, 16)[number].copy()
    rows[:, :8] = np.frombuffer(x, np.uint8).reshape(-1, 16)[:, :8]
    return rows.tobytes()


def test_a_load_without_the_tokens_of_its_stores_is_refused_and_reads_too_early(model, seed):
    job = Relay(7, ordered=False)
    program = job.chip_program()
    assert prove(program).live
    said = [
        f"AGCU 0 load 0 program {number} must wait for a token of AGCU 0 store 1 program 0, which "
        "writes what it reads"
        for number in (1, 2)
    ]
    assert [each.text for each in memory_faults(program, job.arguments())] == said
    data = random.Random(seed).randbytes(3 * job.size)
    memory, at = job.memory(job.arguments(), data)
    with pytest.raises(EmulatorError, match="program 1 must wait for a token of AGCU 0 store 1"):
        emulate(TINY, bytearray(memory), list_address=at)
    run = model.run(memory, list_address=at, conditions=MemoryConditions(latency=60, seed=seed))
    assert run.status == "done"
    x = data[: job.size]
    assert memory[job.base :] != x + _padded(x, data, 1) + _padded(x, data, 2)
