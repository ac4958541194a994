"""Parts of fused softmax in the emulator and the proof: whole launches against golden."""

import dataclasses

import numpy as np
import pytest

from hw.arch.config import named
from hw.arch.lanes.key_mask import KeyMask
from hw.arch.pcu import PcuInput
from sim.emulator import emulate
from sim.launch_memory import LaunchMemory
from sw.chip_program import ChipProgram
from sw.prove import prove
from tests.hw.pcu.attention_chip import AttentionChip
from tests.hw.pcu.attention_jobs import draw_attention
from tests.hw.pcu.attention_pair import random_attention
from tests.units_lanes import CHIP, Feed, LaneJob, lane_chip, placed

R, C = CHIP.grid_rows, CHIP.grid_columns
GROUPS, BLOCKS, M, D, DV = 5, 3, 8, 8, 6
MASK = KeyMask(length=20, causal=True, offset=7, query_step=C, groups=2)


def attention(rng, mask):
    return random_attention(rng, CHIP, [[M] * BLOCKS] * GROUPS, d=D, dv=DV, mask=mask)


def scores_job(case):
    """A scores unit, the vectors of its streams, and of its results."""
    expected = case.packets()[:, :-1]
    feeds = {
        PcuInput.ACTIVATION: Feed(GROUPS * BLOCKS, D // R, M),
        PcuInput.WEIGHT: Feed(GROUPS, BLOCKS * D // R, C),
    }
    given = case.streams()
    data = {"X": given["i_keys"][:, :-1], "W": given["i_queries"][:, :-1]}
    return LaneJob(case.programs["scores"], feeds, len(expected)), data, expected


def values_job(case):
    """A values unit, the vectors of its streams, and of its results."""
    expected = case.results()[:, :-1]
    feeds = {
        PcuInput.ACTIVATION: Feed(GROUPS, BLOCKS * M // R, DV + 1),
        PcuInput.WEIGHT: Feed(GROUPS, BLOCKS, 1 + M // 2),
    }
    data = {"X": case.streams()["i_values"][:, :-1], "W": case.packets()[:, :-1]}
    return LaneJob(case.programs["values"], feeds, len(expected)), data, expected


@pytest.mark.parametrize("make", [scores_job, values_job])
@pytest.mark.parametrize("mask", [KeyMask(), MASK], ids=["unmasked", "masked"])
def test_a_launch_equals_golden_and_is_proved_live(make, mask, seed):
    job, data, expected = make(attention(np.random.default_rng(seed), mask))
    assert prove(job.program()).live
    layout, memory = job.memory({name: each.copy() for name, each in data.items()}, seed % 1000)
    run = emulate(CHIP, memory, list_address=layout.list_address)
    assert run.status == "done", run
    assert (layout.read(memory, "Z").view(np.uint32) == expected).all()


def test_a_scores_unit_and_a_values_unit_on_one_chip(seed):
    """Random extents and masks; the values unit gets what the scores unit sends."""
    rng = np.random.default_rng(seed)
    for number in range(4):
        drawn = draw_attention(rng)
        job, data, expected = drawn.job, drawn.data, drawn.expected
        assert prove(job.program()).live
        layout, memory = job.memory(data, seed % 1000 + number)
        assert emulate(CHIP, memory, list_address=layout.list_address).status == "done"
        assert (layout.read(memory, "Z").view(np.uint32) == expected.words).all()


def test_four_pairs_on_a_chip_are_proved_live_and_equal_golden(seed):
    chip = named["small"]
    job = AttentionChip(chip, groups=2, blocks=3, block=32, d=32)
    image = placed(job.netlist(), chip)
    assert prove(ChipProgram.unpack(chip, image)).live
    inputs = job.inputs(np.random.default_rng(seed))
    layout = LaunchMemory.of_image(chip, image, job.arrays, seed=seed % 1000)
    memory = layout.bytes_before(inputs)
    assert emulate(chip, memory, list_address=layout.list_address).status == "done"
    assert layout.read(memory, "O").tobytes() == job.golden(inputs).tobytes()


def faults(job, port, **fields):
    """Faults of a job with other packets on a port."""
    feeds = job.feeds | {port: dataclasses.replace(job.feeds[port], **fields)}
    found = prove(dataclasses.replace(job, feeds=feeds).program())
    assert not found.live
    return " | ".join(found.faults + found.waits)


def test_packets_that_a_part_cannot_take_are_faults(seed):
    case = attention(np.random.default_rng(seed), KeyMask())
    scores, values = scores_job(case)[0], values_job(case)[0]
    found = faults(scores, PcuInput.WEIGHT, packets=BLOCKS, vectors=C * D // R)
    assert f"gets a packet of {C * D // R} weight vectors, its tiles have {C}" in found
    found = faults(values, PcuInput.WEIGHT, vectors=M // 2)
    assert f"gets a packet of {M // 2} weight vectors, not one of rises and whole tiles" in found
    found = faults(values, PcuInput.ACTIVATION, vectors=1)
    assert "gets tiles of 1 row, which is that of the denominators" in found
    # With the row of denominators, 16 rows of values are one too many.
    small = dataclasses.replace(values, config=lane_chip(accumulator_rows=16))
    found = faults(small, PcuInput.ACTIVATION, vectors=17)
    assert "gets a tile of 17 rows, its banks hold 16" in found


def test_one_vector_of_rises_too_few_is_not_live(seed):
    """As many vectors as tiles take, in packets without rises: the last tile waits for weights."""
    case = attention(np.random.default_rng(seed), KeyMask())
    values = values_job(case)[0]
    found = faults(values, PcuInput.WEIGHT, packets=1, vectors=1 + (BLOCKS - 1) * M // 2)
    assert "weights from" in found


@pytest.mark.parametrize(("groups", "live"), [(5, True), (0, False), (2, False)])
def test_a_mask_that_ends_within_its_groups_is_not_repeated(groups, live, seed):
    mask = dataclasses.replace(MASK, groups=groups)
    job = scores_job(attention(np.random.default_rng(seed), mask))[0]
    found = prove(job.program(), repeat=3)
    assert found.live == live
    assert live or "within the query groups of its mask, after 5" in " ".join(found.faults)
