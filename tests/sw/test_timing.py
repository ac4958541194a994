"""The timed run: the moves of the proof, in the cycles of the hardware."""

import dataclasses
import itertools
import random

import numpy as np
import pytest

from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.arch.loops import LoopProgram
from hw.arch.pcu import FilterProgram
from hw.arch.pmu import EngineProgram, PmuProgram
from hw.arch.unit_kind import PCU
from hw.arch.words.pmu_word import ENGINE_LOOPS, Level
from hw.lib.axi import BOUNDARY_BYTES, MAX_BURST_BEATS
from hw.numeric.formats import bf16, int8
from hw.pcu.lane import Lane
from hw.pcu.overlapping_phases import OverlappingPhases
from hw.pcu.statistics import Statistics
from hw.pmu.banks import READ_LATENCY
from sw.chip_program import ChipProgram
from sw.compiler import compile_kernel
from sw.fabric.nets import find_nets
from sw.fabric.place import place
from sw.kernels.matmul import matmul
from sw.kernels.softmax import softmax
from sw.passes import part_steps
from sw.prove import prove, stream_packets
from sw.prove.stream_packets import StreamPackets
from sw.timing import prediction, timed_engines, timed_lanes, timed_machine, timed_network
from sw.timing.flow import Flow, Run
from sw.timing.iterations import iterated
from sw.timing.launch_cycles import launch_cycles, ready_cycles
from sw.timing.list_prediction import predict_list
from sw.timing.prediction import END, Prediction, predict_cycles
from sw.timing.timed_network import TimedNetwork
from tests.lane_jobs import draw_job, draw_softmax
from tests.sw.chips import pcu_changed, product
from tests.sw.test_prove import random_product

SMALL, TINY = named["small"], named["tiny"]


def timed(program, *, latency=100, whole=False):
    """A timed run that has ended."""
    nets = find_nets(program)
    network = TimedNetwork(program, nets, StreamPackets(program, nets), latency=latency)
    network.run(whole=whole)
    return network


def compiled(m, n, k, fmt=bf16, config=SMALL):
    return compile_kernel(matmul, config, dims={"M": m, "N": n, "K": k}, dtype=fmt).parts[0].chip


def test_a_run_is_cut_where_it_is_taken():
    run = Run(10, 16, 4)
    assert [run.at(number) for number in range(4)] == [10, 12, 14, 16]
    assert run.cut(1) == (Run(10, 10, 1), Run(12, 16, 3))


def test_a_path_has_room_when_its_consumer_has_taken():
    flow = Flow(delay=3, back=2, capacity=4)
    flow.send(Run(0, 1, 2))
    flow.send(Run(7, 9, 3))
    assert flow.arrived(4) == Run(0, 8, 4)
    flow.take(Run(20, 23, 4))
    ready = (100).__add__
    assert [flow.took(number, ready) for number in range(-1, 6)] == [0, 20, 21, 22, 23, 100, 101]


def test_the_last_payloads_are_found_among_many_runs(seed):
    """As many payloads as the buffers of a path hold, however they were taken."""
    draw = random.Random(seed)
    flow, taken, now = Flow(delay=3, back=2, capacity=64), [], 0
    for _ in range(300):
        size, now = draw.randint(1, 3), now + draw.randint(1, 5)
        run = Run(now, now + 2 * (size - 1), size)
        flow.take(run)
        taken += [run.at(number) for number in range(size)]
        now = taken[-1]
        first = max(0, len(taken) - 64)
        assert [flow.took(each, float) for each in range(first, len(taken))] == taken[first:]
    assert flow.took(0, float) == 0.0
    assert flow.took(len(taken) + 5, float) == 5.0


def test_a_fork_is_asked_for_the_first_and_the_last_payload_of_a_move(monkeypatch):
    asked, most = [], 0
    opens, push = timed_machine._Fork.opens, timed_machine.TimedChannel.push

    def counted(fork, number):
        asked.append((fork, number))
        return opens(fork, number)

    def checked(channel, count):
        nonlocal most
        asked.clear()
        push(channel, count)
        assert len(asked) == len(set(asked))
        most = max(most, len(asked))

    monkeypatch.setattr(timed_machine._Fork, "opens", counted)
    monkeypatch.setattr(timed_machine.TimedChannel, "push", checked)
    timed(compiled(64, 64, 64))
    assert most > 2  # there are streams with several forks


def test_runs_of_phases_are_enumerated_once_per_lane_program(monkeypatch):
    found, phase_runs = [], stream_packets.phase_runs

    def counted(program, words, streams):
        found.append(program)
        return phase_runs(program, words, streams)

    monkeypatch.setattr(stream_packets, "phase_runs", counted)
    part = compile_kernel(softmax, SMALL, dims={"M": 20, "N": 64}, dtype=bf16).parts[0]
    found.clear()
    timed(part.chip)
    units = [unit for kind, _, unit in part.chip.units() if kind is PCU]
    assert len(found) == sum(unit.lanes is not None for unit in units) > 0


def moves_alike(program):
    """Check that a timed run makes the moves of the proof; returns whether they were compared."""
    answer = prove(program)
    short, whole = timed(program), timed(program, whole=True)
    stopped = any(actor.reasons() for actor in short.actors if actor.ends_launch)
    assert answer.live <= (not stopped)
    assert short.machine.moved == whole.machine.moved
    assert short.end == pytest.approx(whole.end, rel=1 / 256)
    if not answer.live or answer.open_order:
        return False  # a proof of two orders counts the moves of both
    assert short.machine.moved == answer.moved
    return True


def test_the_proof_and_the_timed_run_make_the_same_moves(seed):
    rng = random.Random(seed)
    assert sum(moves_alike(random_product(rng, twin=number % 2)) for number in range(6)) >= 5


def test_programs_of_lanes_and_softmax_are_timed(seed):
    rng = np.random.default_rng(seed)
    jobs = [(draw_job(rng) if number % 3 else draw_softmax(rng)).job for number in range(9)]
    assert sum(moves_alike(job.program()) for job in jobs) >= 8


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("m", "n", "k", "fmt"),
    [
        (256, 256, 256, bf16),
        (512, 512, 64, bf16),
        pytest.param(512, 512, 256, int8, marks=pytest.mark.slow),
    ],
)
def test_repeats_that_are_left_out_take_as_long(m, n, k, fmt):
    program = compiled(m, n, k, fmt)
    short, whole = timed(program), timed(program, whole=True)
    # Parts that move may differ by one in 256 cycles of a period.
    assert short.end == pytest.approx(whole.end, rel=1 / 256)
    assert short.first_issue == whole.first_issue
    assert short.machine.moved == whole.machine.moved
    assert short.machine.steps < whole.machine.steps


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("side", "config"),
    [(4, TINY), (20, TINY), (64, SMALL), pytest.param(256, SMALL, marks=pytest.mark.slow)],
)
def test_iterations_are_predicted_from_the_first_ones(side, config):
    """Nine iterations run in full end when the prediction from five says."""
    program = compiled(side, side, side, config=config)
    once = predict_cycles(program).kernel
    whole = timed(iterated(program, 9)).end + END
    found = predict_cycles(program, repeat=9)
    assert found.kernel == pytest.approx(whole, rel=0.02)
    assert once < found.kernel < 9 * once
    assert predict_cycles(program, repeat=2).kernel == timed(iterated(program, 2)).end + END
    # One iteration more moves exactly as much more.
    moved = [timed(iterated(program, count)).machine.moved for count in (1, 2, 3)]
    assert moved[0] == timed(program).machine.moved
    assert moved[2] - moved[1] == moved[1] - moved[0] == moved[0]


def test_an_iteration_like_the_one_before_is_left_out():
    """Lists of an issuer that follow themselves have the periods of the iterations."""
    program = compiled(128, 128, 64, config=TINY)
    five, nine = (timed(iterated(program, count)) for count in (5, 9))
    assert nine.machine.steps == five.machine.steps
    assert 8 / 4 == pytest.approx(
        (nine.end - timed(program).end) / (five.end - timed(program).end), rel=0.01
    )


def marks_of(engine):
    """Whether each vector of an iteration is a last one, and a final one."""
    counts = [loop.base for loop in engine.chain.loops]
    steps = itertools.product(*(range(count) for count in counts))
    ends = [[at == count - 1 for at, count in zip(step, counts, strict=True)] for step in steps]
    return [
        tuple(level is not None and all(end[level:]) for level in (last, final))
        for end in ends
        for last, final in [(engine.last_level, engine.final_level)]
    ]


def test_iterations_in_one_have_the_marks_of_each():
    """Counts of the outer loops × levels of the marks: few have no engine that equals them."""
    levels = (None, *range(ENGINE_LOOPS + 1))
    program, compared, none = product(), 0, 0
    at, tile = next((at, t) for at, t in program.tiles.items() if isinstance(t.unit, PmuProgram))
    for launches, windows, repeats, last, final in itertools.product(
        (1, 2), (1, 2), (1, 2), levels, levels
    ):
        if final is not None and (last is None or last < final):
            continue
        engine = EngineProgram(
            tile.unit.readers[0].ring,
            (LoopProgram(base=2),),
            launches=LoopProgram(base=launches),
            windows=LoopProgram(base=windows),
            repeats=LoopProgram(base=repeats),
            last_level=last,
            final_level=final,
        )
        unit = dataclasses.replace(tile.unit, readers=(engine, None))
        tiles = {**program.tiles, at: dataclasses.replace(tile, unit=unit)}
        several = iterated(dataclasses.replace(program, tiles=tiles), 3)
        if several is None:
            none += 1
            assert launches == windows == 2 and {last, final} == {Level.LAUNCHES, Level.WINDOWS}
            continue
        compared += 1
        assert marks_of(several.tiles[at].unit.readers[0]) == 3 * marks_of(engine)
    assert compared > 100 and none == 2


def test_a_list_is_predicted_entry_by_entry():
    one = Prediction(kernel=1000, before=474, ready=13, to_multiply=None, busy={}, vectors={})
    short = Prediction(kernel=50, before=300, ready=9, to_multiply=None, busy={}, vectors={})
    found = predict_list([one, short, one])
    # The second was fetched during the first, the third had 50 cycles for it.
    assert found.cycles == 474 + 1000 + 9 + 50 + (474 - 50) + 1000
    assert found.warm_cycles == found.cycles - 474 + 13
    assert predict_list([one]).cycles == one.cycles
    assert predict_list([one]).warm_cycles == one.warm_cycles


def test_busy_shares_are_of_the_cycles_of_the_kernel():
    program = compiled(256, 256, 256)
    found = predict_cycles(program)
    vectors = 256**3 // (8 * SMALL.grid_rows * SMALL.grid_columns)
    for row, column in program.tiles:
        if SMALL.unit_at(row, column).name == "PCU":
            assert found.busy[f"pcu_{row}_{column}"] == pytest.approx(vectors / found.kernel)
    assert len(found.busy) == len(list(program.units())) and max(found.busy.values()) < 1
    # The beats of two operands, at least; results are written meanwhile.
    beats = 2 * 256 * 256 * 2 // 32
    assert sum(found.busy[f"agcu_{number}"] for number in range(2)) >= beats / found.kernel


def test_a_launch_is_fetched_before_it_or_behind_another():
    cold = launch_cycles(SMALL, 8192 + 16, 8, latency=100)
    assert cold == 474  # docs/command.md
    after = Prediction(
        kernel=1, before=cold, ready=ready_cycles(8), to_multiply=None, busy={}, vectors={}
    ).after
    assert (after(300), after(10**6)) == (174, 13)
    found = predict_cycles(compiled(64, 64, 64), latency=10)
    assert found.cycles == found.before + found.kernel
    assert found.warm_cycles == found.between + found.kernel < found.cycles


def test_one_image_is_run_once_wherever_its_arrays_begin_in_a_burst(monkeypatch):
    program = compiled(64, 64, 72)
    run, runs = prediction._timed, []

    def counted(program, latency, arguments):
        runs.append((latency, arguments))
        return run(program, latency, arguments)

    monkeypatch.setattr(prediction, "_timed", counted)
    prediction._predicted.cache_clear()
    found = predict_cycles(program)
    again = ChipProgram.unpack(program.config, program.pack())
    assert predict_cycles(again, arguments=(4096, 8192, 0)) == found and len(runs) == 1
    # Elsewhere in a burst, at another latency or of other iterations it is another case.
    predict_cycles(again, arguments=(64,))
    assert len(runs) == 2 and runs[-1] == (100, (64,))
    assert predict_cycles(again, latency=400).kernel > found.kernel and len(runs) == 3
    assert predict_cycles(again, repeat=2).kernel > found.kernel and len(runs) == 5


def test_a_timed_plan_that_is_chosen_is_placed_once(monkeypatch):
    placed = []

    def counted(netlist, config, *, seed):
        placed.append((netlist, seed))
        return place(netlist, config, seed=seed)

    monkeypatch.setattr(part_steps, "place", counted)
    compiled(64, 64, 64, config=TINY)
    assert placed and all(each not in placed[:number] for number, each in enumerate(placed))


def test_constants_are_those_of_the_hardware():
    assert timed_engines.READ == READ_LATENCY + 2
    assert timed_lanes.CHANGE == Statistics.step_cycles
    assert timed_lanes.PHASE_CHANGE == 1 + Lane.latency + Statistics.step_cycles
    assert timed_lanes.FOLLOWING == OverlappingPhases.latency + 1
    assert timed_network._BURST_BEATS == MAX_BURST_BEATS
    assert timed_network._BURST_BYTES == BOUNDARY_BYTES


def test_what_has_no_number_of_cycles_is_refused():
    program = product()
    with pytest.raises(BadInputError, match="Latency must be at least 0 cycles, not -1"):
        predict_cycles(program, latency=-1)
    stopped = pcu_changed(program, (0, 0), activation=FilterProgram(2, 0))
    with pytest.raises(BadInputError, match="Program must be live to be timed, but .* waits for"):
        predict_cycles(stopped)


def test_a_program_without_units_takes_no_time():
    empty = dataclasses.replace(product(), tiles={}, agcus={})
    found = predict_cycles(empty)
    assert found.kernel <= 3 and found.to_multiply is None and found.busy == {}
