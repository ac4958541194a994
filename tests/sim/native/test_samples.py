"""Samples of a native model: exact at the ends of a kernel, and without effect on the run."""

import numpy as np
import pytest

from hw.arch.config import named
from hw.numeric.formats import bf16
from sim.backends.emitted import design_of
from sim.backends.interface import Setup
from sim.launch_memory import LaunchMemory
from sim.native.chip_model import ChipModel
from sim.native.samples import PORT_COUNTS
from sim.operands import random_inputs
from sim.run.job import Problem
from sw.kernels.matmul import matmul

CHIP = named["tiny"]


@pytest.fixture(scope="module")
def runs(heavy_lock):
    """Runs of one launch list of two kernels, by the cycles from sample to sample."""
    problem = Problem(matmul, CHIP, {"M": 16, "N": 16, "K": 16}, bf16)
    place = LaunchMemory.of_kernel(problem.compile(), seed=1, launches=2)
    before = place.bytes_before(random_inputs(problem.inputs, 1))
    design, _ = design_of(Setup(CHIP))
    with heavy_lock(), ChipModel(design, CHIP) as model:
        found = {}
        for every in (0, 1, 7, 10_000):
            model.reset()
            memory = bytearray(before)
            run = model.run(
                memory,
                list_address=place.list_address,
                entries=place.entries,
                sample_every=every,
            )
            found[every] = run, bytes(memory)
    return found


def test_samples_change_neither_cycles_nor_memory(runs):
    plain, memory = runs[0]
    assert plain.status == "done" and plain.samples == ()
    for every in (1, 7, 10_000):
        run, after = runs[every]
        assert (run.cycles, run.counters, after) == (plain.cycles, plain.counters, memory)


@pytest.mark.parametrize("every", [1, 7, 10_000])
def test_samples_begin_with_zeros_and_end_with_the_counters(runs, every):
    run, _ = runs[every]
    assert len(run.samples) == 2 and all(each.ended for each in run.samples)
    for each in run.samples:
        cycles = np.diff(each.cycles)
        assert (cycles[:-1] == every).all() and 0 < cycles[-1] <= max(every, cycles[-1])
        for words in each.units.values():
            assert not words[0, :4].any()
            assert words[-1, :4].sum() == each.cycles[-1] - each.cycles[0]
    last = np.concatenate([words[-1] for words in run.samples[-1].units.values()])
    assert last.tolist() == run.counters
    kernels = sum(each.cycles[-1] - each.cycles[0] for each in run.samples)
    assert 0 < kernels < run.cycles and run.launched < run.samples[0].cycles[0]


def test_fewer_samples_are_some_of_all(runs):
    every, few = runs[1][0].samples[0], runs[7][0].samples[0]
    kept = np.isin(every.cycles - every.cycles[0], few.cycles - few.cycles[0])
    for unit, words in few.units.items():
        assert (every.units[unit][kept] == words).all()


def test_ports_count_the_beats_of_the_run(runs):
    run, _ = runs[1]
    port = run.samples[-1].ports["memory[0]"][-1]
    counts = dict(zip(PORT_COUNTS, port.tolist(), strict=True))
    assert counts["read_beats"] == run.ports[0].beats["R"]
    assert counts["write_beats"] == run.ports[0].beats["W"]
    # Memory without pauses takes what it is offered; its latency is what it owes.
    assert counts["address_held"] == counts["write_held"] == 0 < counts["read_owed"]
