"""Lanes of a PCU in the emulator: whole launches against the golden model, packet by packet."""

import time

import numpy as np
import pytest

from hw.arch.config import named
from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.phase_word import (
    AuxiliaryUse,
    Fetched,
    Operand,
    PhaseSource,
    Reduction,
    ResultForm,
    UnitOrder,
)
from hw.arch.pcu import PcuInput, PcuOutput, PcuProgram
from hw.arch.unit_kind import PCU
from hw.numeric import reference
from hw.numeric.formats import bf16
from hw.numeric.lane_model import LaneModel
from sim.backends.emitted import emitted_chip
from sim.emulator import emulate
from sim.emulator.emulator_error import EmulatorError
from sim.launch_memory import ImageRuns, LaunchMemory
from sim.native.chip_model import ChipModel, MemoryConditions
from sw.fabric.nets import Output, find_nets
from sw.parts.part import Argument, PartLaunch
from sw.prove.stream_packets import StreamPackets
from tests.hw.pcu.softmax_program import SOFTMAX
from tests.lane_jobs import data_of, draw_job
from tests.units_lanes import CHIP, Feed, LaneJob


def stored(job, data, seed):
    """Vectors that a launch of a job stores."""
    layout, memory = job.memory(data, seed % 1000)
    run = emulate(CHIP, memory, list_address=layout.list_address)
    assert run.status == "done", run
    return layout.read(memory, "Z").view(np.uint32)


def result_packets(program):
    """Packets that leave the only PCU of a program."""
    ((_, at, _),) = (each for each in program.units() if each[0] is PCU)
    packets = StreamPackets(program, find_nets(program))
    return packets.leaving(Output(PCU, at, PcuOutput.RESULT))


def test_random_programs_equal_the_golden_model(seed):
    rng = np.random.default_rng(seed)
    for _ in range(25):
        drawn = draw_job(rng)
        got = stored(drawn.job, drawn.data, seed)
        assert (got == drawn.expected.words).all(), drawn.job.unit


def test_result_packets_are_known_beforehand(seed):
    """Lengths and marks of the result packets, cut as the program says, before anything runs."""
    rng = np.random.default_rng(seed)
    for _ in range(15):
        drawn = draw_job(rng)
        lengths, finals, length = [], [], 0
        for last, final in zip(drawn.expected.last, drawn.expected.final, strict=True):
            length += 1
            if last or length == drawn.job.unit.packet_vectors:
                lengths.append(length)
                finals.append(final)
                length = 0
        packets = result_packets(drawn.job.program())
        assert packets.lengths.tolist() == lengths and packets.tail == 0
        assert packets.finals.tolist() == finals


def test_softmax_of_a_thousand_rows_is_fast(seed):
    """Rows on lanes, four of a vector; each slot is read three times."""
    rng = np.random.default_rng(seed)
    rows, keys = 1000, 64
    values = reference.cast(rng.normal(0, 4, (rows // 4, keys, 4)).astype(np.float32), bf16)
    unit = PcuProgram(lanes=SOFTMAX)
    feed = Feed(rows // 4, 1, keys, repeats=3)
    job = LaneJob(unit, {PcuInput.ACTIVATION: feed}, rows // 4 * keys)
    data = {"X": values.reshape(-1, 4).view(np.uint32)}
    begin = time.process_time()
    got = stored(job, data, seed).view(bf16.dtype).reshape(values.shape)
    assert time.process_time() - begin < 3
    expected = LaneModel(SOFTMAX, width_bits=64, function_bits=16).run(job.streams(data)).words
    assert (got.reshape(-1, 4).view(np.uint32) == expected).all()
    sums = got.astype(np.float64).sum(axis=1)
    assert abs(sums - 1).max() < keys * 2**-9


def counting_job(config):
    """Sums of five packets, each with a count of the rounds behind the words of a vector."""
    phases = (
        LanePhase(PhaseSource.ACTIVATION, reduction=Reduction.SUM),
        LanePhase(
            PhaseSource.STATISTICS,
            y=Fetched.STATISTIC_0,
            fma=(Operand.Y, Operand.ONE, Operand.ONE),
            order=UnitOrder.SFU_ALU_FMA,
            argument=Operand.Y,
            reduction=Reduction.REPLACE,
            result=ResultForm.WORD,
        ),
    )
    unit = PcuProgram(lanes=LaneProgram(phases))
    return LaneJob(unit, {PcuInput.ACTIVATION: Feed(5, 1, 3)}, 10, config)


def test_statistics_left_by_an_earlier_round_are_carried(seed):
    """Positions behind the words of a vector: only the finish step changes and sends them."""
    rng = np.random.default_rng(seed)
    job = counting_job(CHIP)
    got = stored(job, data_of(rng, job.feeds, CHIP), seed).view(np.float32)
    assert got[1::2].tolist() == [[count, count] for count in range(1, 6)]


def repeated(job, data, seed, run):
    """Vectors that remain of a job's three iterations, each over those of the one before."""
    arguments = tuple(Argument(each.name) for each in job.arrays)
    images = [ImageRuns(job.program().pack(), (PartLaunch(arguments, 3),))]
    layout = LaunchMemory(job.config, images, job.arrays, seed=seed % 1000)
    memory = layout.bytes_before({name: each.view(np.int32) for name, each in data.items()})
    assert run(memory, layout.list_address).status == "done"
    return layout.read(memory, "Z").view(np.float32)


def test_statistics_left_by_an_iteration_are_carried_to_the_next_one(seed):
    job = counting_job(CHIP)
    data = data_of(np.random.default_rng(seed), job.feeds, CHIP)
    got = repeated(job, data, seed, lambda *at: emulate(CHIP, at[0], list_address=at[1]))
    assert got[1::2].tolist() == [[count, count] for count in range(11, 16)]


@pytest.mark.slow
def test_statistics_left_by_an_iteration_are_those_of_the_rtl(heavy, seed):
    config = named["small"]
    job = counting_job(config)
    data = data_of(np.random.default_rng(seed), job.feeds, config)
    got = repeated(job, data, seed, lambda *at: emulate(config, at[0], list_address=at[1]))
    with ChipModel(emitted_chip(config), config, seed=5) as chip:
        conditions = MemoryConditions(jitter=20, seed=seed % 1000)

        def run(memory, address):
            return chip.run(memory, list_address=address, conditions=conditions, max_cycles=100_000)

        rtl = repeated(job, data, seed, run)
    # By bits: sums may be NaN.
    assert (rtl.view(np.uint32) == got.view(np.uint32)).all()
    assert (got[1::2] == np.arange(11, 16)[:, np.newaxis]).all()


def test_a_packet_that_never_ends_is_refused(seed):
    """Three packets for two phases that read one each, the last without the vectors beside it."""
    rng = np.random.default_rng(seed)
    phase = LanePhase(
        PhaseSource.ACTIVATION,
        auxiliary=AuxiliaryUse.HELD,
        y=Fetched.AUXILIARY,
        result=ResultForm.WORD,
    )
    unit = PcuProgram(lanes=LaneProgram((phase,)))
    feeds = {PcuInput.ACTIVATION: Feed(3, 1, 4), PcuInput.AUXILIARY: Feed(2, 1, 1)}
    job = LaneJob(unit, feeds, 12)
    with pytest.raises(EmulatorError, match="stop in phase 0 with 4 vectors of its source and 1"):
        stored(job, data_of(rng, feeds, CHIP), seed)
