"""Launches on the native model of `tiny`: right bytes, errors that end, runs that repeat."""

import dataclasses

import numpy as np
import pytest

from hw.arch.config import named
from hw.arch.counters import ACTIVITIES, unit_kinds
from hw.arch.error_codes import LaunchError, error_detail, error_unit
from hw.arch.launch import ENTRY_BYTES
from hw.arch.limits import COUNTER_WORDS
from hw.numeric.formats import bf16, fp32
from sim.backends.emitted import emitted_chip
from sim.emulator import EmulatorError, emulate
from sim.native.chip_model import ChipModel, ErrorAt, MemoryConditions, RtlFaultError
from sim.oracle import product
from sw.prove import prove
from sw.prove.memory_order import memory_faults
from tests.left_out_item import LeftOutItem
from tests.sim.launches import SPOILED, put
from tests.units_chain import GemvChain
from tests.units_matmul import UnitsMatmul

CONFIG = named["tiny"]


@pytest.fixture(scope="module")
def model(heavy_lock):
    """Model of `tiny`: the one build of this file."""
    with heavy_lock(), ChipModel(emitted_chip(CONFIG), CONFIG, seed=5) as chip:
        yield chip


class Stuck(UnitsMatmul):
    """A product whose tokens of free slots have no way back to the AGCU."""

    def _routes(self):
        vectors, _ = super()._routes()
        return vectors, {}


def launch(model, job, rng, conditions=None, spoiled=None, max_cycles=200_000):
    """Run a product: the run, and whether its bytes are right and all others untouched."""
    a, b = job.operands(rng, special_share=0.05)
    layout = job.launch_memory(int(rng.integers(1 << 40)))
    memory = layout.bytes_before({"A": a, "B": b})
    if spoiled is not None:
        memory[layout.places["launch list"][0] + spoiled] ^= 0x10
    before = bytes(memory)
    run = model.run(
        memory,
        list_address=layout.list_address,
        conditions=conditions or MemoryConditions(),
        max_cycles=max_cycles,
        regions=layout.regions if spoiled is None else (),
    )
    assert layout.changed_outside(before, memory) is None
    expected = product(a, b, job.out.dtype)
    return run, layout.read(memory, "C").tobytes() == expected.tobytes()


def alike(model, job, rng, spoil, entries=1):
    """Run of a product on RTL and emulator after a change of its memory; they must end alike."""
    layout = job.launch_memory(int(rng.integers(1 << 40)))
    memory = layout.bytes_before(dict(zip("AB", job.operands(rng), strict=True)))
    address = spoil(memory, {name: place for name, (place, _) in layout.places.items()})
    address = layout.list_address if address is None else address
    copy = bytearray(memory)
    run = model.run(memory, list_address=address, entries=entries, max_cycles=200_000)
    other = emulate(CONFIG, copy, list_address=address, entries=entries)
    names = ("status", "error_detail", "error_unit", "error_entry")
    ends = [{name: getattr(each, name) for name in names} for each in (run, other)]
    assert ends[0] == ends[1]
    assert run.error_code == other.error_code.value
    assert memory == copy
    return run


def works(model, rng):
    """Whether the next launch is right."""
    run, right = launch(model, UnitsMatmul.random(CONFIG, rng), rng)
    return run.status == "done" and right


@pytest.mark.parametrize(
    ("left_out", "said"),
    [("A", "AR has a beat"), ("C", "AW has a beat"), ("image", "AR has a beat")],
)
def test_a_beat_in_which_the_launch_has_no_byte_is_a_fault(heavy, seed, left_out, said):
    case = LeftOutItem.random(CONFIG, np.random.default_rng(seed), left_out)
    with ChipModel(emitted_chip(CONFIG), CONFIG, seed=5) as chip:
        with pytest.raises(RtlFaultError, match=said) as caught:
            chip.run(case.memory, list_address=case.list_address, regions=case.others)
        case.check_met(str(caught.value))


@pytest.mark.few
@pytest.mark.parametrize("stall", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("case", range(4))
def test_products_are_right_with_any_memory(model, seed, case, stall):
    rng = np.random.default_rng(seed)
    conditions = MemoryConditions(
        latency=int(2 ** rng.uniform(0, 7.7)),
        jitter=int(rng.integers(0, 60)),
        stall=stall,
        seed=int(rng.integers(1 << 40)),
    )
    job = UnitsMatmul.random(CONFIG, rng)
    run, right = launch(model, job, rng, conditions)
    assert right, (job, conditions)
    assert run.status == "done"
    assert run.bytes_written == job.m * job.n * job.out.bits // 8
    assert run.cycles == run.registers_cycles and run.entry_begin == 0
    check_states(run)
    assert run.error_code == 0 and not run.errors_met


def check_states(run):
    """Every unit's activities and the launch make up the last entry's cycles."""
    for unit in range(len(unit_kinds(CONFIG))):
        kernel = sum(run.counters[COUNTER_WORDS * unit :][: len(ACTIVITIES)])
        assert run.launch_cycles + kernel == run.cycles - run.entry_begin


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_the_second_entry_of_a_list_has_cycles_of_its_own(model, seed, stall):
    rng = np.random.default_rng(seed)
    job = UnitsMatmul(CONFIG, 20, 11, 30, bf16, bf16, 16, 16, 2)
    a, b = job.operands(rng)
    conditions = MemoryConditions(latency=30, stall=stall, seed=seed)
    runs = []
    for entries in (1, 2):
        memory = job.launch_memory(seed, launches=entries)
        runs.append(
            model.run(
                memory.bytes_before({"A": a, "B": b}),
                list_address=memory.list_address,
                entries=entries,
                conditions=conditions,
            )
        )
        check_states(runs[-1])
    cold, warm = runs
    assert 0 < warm.launch_cycles < cold.launch_cycles
    # Pauses are drawn as the simulation goes, which is longer with two entries.
    if stall == 0:
        assert warm.entry_begin == cold.cycles


def test_same_seed_takes_the_same_cycles(model, seed):
    rng = np.random.default_rng(seed)
    job = UnitsMatmul.random(CONFIG, rng)
    slow = MemoryConditions(latency=40, jitter=30, stall=0.5, seed=seed)
    cycles = [launch(model, job, rng, slow)[0].cycles for _ in range(3)]
    others = [dataclasses.replace(slow, seed=seed + number) for number in (1, 2, 3)]
    assert len(set(cycles)) == 1
    assert {launch(model, job, rng, other)[0].cycles for other in others} != set(cycles)


def test_latency_is_counted_in_cycles(model):
    # One read that fails ends this launch: its latency and nothing else is in between.
    cycles = [
        model.run(
            bytearray(4096),
            list_address=1 << 20,
            conditions=MemoryConditions(latency=latency),
        ).registers_cycles
        for latency in (1, 2, 300)
    ]
    assert cycles[1] - cycles[0] == 1
    assert cycles[2] - cycles[1] == 298


@pytest.mark.few(2)
@pytest.mark.parametrize("response", ["slverr", "decerr"])
@pytest.mark.parametrize("direction", ["read", "write"])
def test_an_error_of_memory_ends_the_launch_and_the_next_is_right(model, seed, direction, response):
    rng = np.random.default_rng(seed)
    job = UnitsMatmul(CONFIG, 20, 11, 30, bf16, bf16, 16, 16, 2)
    for beat in (0, 7, int(rng.integers(8, 60))):
        error = ErrorAt(direction, beat, response)
        run, _ = launch(model, job, rng, MemoryConditions(latency=20, stall=0.2, error=error))
        assert run.errors_met == 1
        assert (run.status, run.error_code) == ("error", LaunchError.UNIT.value)
        assert error_detail(run.error_detail) == f"{direction}_{response}".upper()
        assert error_unit(CONFIG, run.error_unit) == "agcu_0"
        assert works(model, rng)


def test_three_errors_of_a_launch_are_met_at_their_beats(model, seed):
    rng = np.random.default_rng(seed)
    job = UnitsMatmul(CONFIG, 20, 11, 30, bf16, bf16, 16, 16, 2)
    image = ErrorAt("launch", 12, "decerr")
    for phase, errors in (("image", (image,)), ("list", (ErrorAt("launch", 0, "slverr"), image))):
        run, _ = launch(model, job, rng, MemoryConditions(latency=9, error=errors))
        assert (run.status, run.errors_met) == ("error", 1), phase
        code = LaunchError.READ_DECERR if phase == "image" else LaunchError.READ_SLVERR
        assert run.error_code == code.value
        assert works(model, rng)
    beats = tuple(ErrorAt("read", beat, "slverr") for beat in (3, 4, 5))
    run, _ = launch(model, job, rng, MemoryConditions(latency=9, error=beats))
    assert (run.status, run.errors_met) == ("error", 3)
    assert works(model, rng)


@pytest.mark.few(2)
@pytest.mark.parametrize("channel", range(5))
def test_each_channel_has_a_stall_of_its_own(model, seed, channel):
    rng = np.random.default_rng(seed)
    job = UnitsMatmul(CONFIG, 20, 11, 30, bf16, bf16, 16, 16, 2)
    stalls = tuple(0.97 * (index == channel) for index in range(5))
    fast, _ = launch(model, job, rng, MemoryConditions(latency=9))
    slow, right = launch(model, job, rng, MemoryConditions(latency=9, channel_stalls=stalls))
    assert right and slow.cycles > fast.cycles


def test_an_error_that_is_not_met_changes_nothing(model):
    rng = np.random.default_rng(3)
    error = ErrorAt("write", 1_000_000, "slverr")
    run, right = launch(model, UnitsMatmul.random(CONFIG, rng), rng, MemoryConditions(error=error))
    assert (run.status, run.errors_met, right) == ("done", 0, True)


@pytest.mark.parametrize(
    ("offset", "code"),
    [(28, LaunchError.MAGIC), (32, LaunchError.VERSION), (36, LaunchError.FINGERPRINT)],
)
def test_a_refused_image_has_its_code(model, seed, offset, code):
    rng = np.random.default_rng(seed)
    run, _ = launch(model, UnitsMatmul.random(CONFIG, rng), rng, spoiled=offset)
    assert (run.status, run.error_code) == ("error", code.value)
    assert works(model, rng)


def test_a_list_outside_memory_is_answered_with_decerr(model, seed):
    run = model.run(bytearray(4096), list_address=1 << 20, max_cycles=10_000)
    assert (run.status, run.error_code) == ("error", LaunchError.READ_DECERR.value)
    assert works(model, np.random.default_rng(seed))


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_iterations_of_a_product_write_its_bytes_again(model, seed, stall):
    """Also the counters say that all of them ran, and the emulator agrees."""
    rng = np.random.default_rng(seed)
    job = UnitsMatmul.random(CONFIG, rng)
    operands = dict(zip("AB", job.operands(rng), strict=True))
    runs = []
    for times in (1, 5):
        layout = job.launch_memory(seed)
        memory = layout.bytes_before(operands)
        put(memory, layout.list_address + 24, times)
        copy = bytearray(memory)
        conditions = MemoryConditions(latency=50, jitter=20, stall=stall, seed=seed)
        run = model.run(memory, list_address=layout.list_address, conditions=conditions)
        assert (run.status, run.errors_met) == ("done", 0)
        other = emulate(CONFIG, copy, list_address=layout.list_address)
        assert memory == copy
        assert (run.bytes_read, run.bytes_written) == (
            other.bytes_read + other.launch_bytes_read,
            other.bytes_written,
        )
        check_states(run)
        runs.append((run, layout.read(memory, "C").tobytes()))
    (once, right), (often, same) = runs
    assert same == right
    assert often.bytes_written == 5 * once.bytes_written
    assert often.cycles < 5 * once.cycles


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_a_chain_of_layers_as_one_launch_equals_one_launch_per_layer(model, seed, stall):
    """Each layer reads the vector that the one before it stored."""
    rng = np.random.default_rng(seed)
    chain = GemvChain(CONFIG, 16, 8)
    assert prove(chain.program, repeat=chain.layers).live
    assert memory_faults(chain.program, chain.arguments, chain.layers) == ()
    matrices, x = chain.operands(rng)
    cycles = []
    for together in (True, False):
        memory, entries = chain.memory(matrices, x, together=together)
        conditions = MemoryConditions(latency=40, jitter=30, stall=stall, seed=seed)
        run = model.run(
            memory, list_address=chain.list_address, entries=entries, conditions=conditions
        )
        assert (run.status, run.errors_met) == ("done", 0)
        found = [chain.vector(memory, number) for number in range(chain.layers + 1)]
        assert found == chain.expected(matrices, x)
        cycles.append(run.cycles)
    assert cycles[0] < cycles[1]


def test_a_chain_without_its_token_reads_too_early(model, seed):
    """What the check of the order in memory refuses, RTL indeed gets wrong."""
    rng = np.random.default_rng(seed)
    chain = GemvChain(CONFIG, 16, 8, ordered=False)
    assert prove(chain.program, repeat=chain.layers).live
    (fault,) = memory_faults(chain.program, chain.arguments, chain.layers)
    assert fault.text.startswith("AGCU 0 load 1 must wait for a token of AGCU 0 store 1")
    matrices, x = chain.operands(rng)
    memory, entries = chain.memory(matrices, x, together=True)
    copy = bytearray(memory)
    run = model.run(memory, list_address=chain.list_address, entries=entries)
    assert run.status == "done"
    assert chain.vector(memory, 8) != chain.expected(matrices, x)[8]
    with pytest.raises(EmulatorError, match="AGCU 0 load 1 must wait for a token of AGCU 0 store"):
        emulate(CONFIG, copy, list_address=chain.list_address)


def test_launches_end_with_the_same_error_on_the_emulator(model, seed):
    """Right ones too."""
    rng = np.random.default_rng(seed)
    job = UnitsMatmul(CONFIG, 5, 3, 4, bf16, fp32, 8, 8, 2)
    run = alike(model, job, rng, lambda memory, places: None)
    assert (run.status, run.error_code, run.error_detail) == ("done", 0, 0)
    for spoil, code, detail in SPOILED:
        run = alike(model, job, rng, spoil)
        assert (run.error_code, run.error_detail) == (code.value, int(detail))
    # Behind the list's one entry: zeros.
    after = ENTRY_BYTES
    run = alike(model, job, rng, lambda m, p: put(m, p["launch list"] + after, 0, after), entries=2)
    assert (run.error_code, run.error_entry) == (LaunchError.IMAGE_BYTES.value, 1)
    assert works(model, rng)


def test_a_stuck_program_ends_as_a_hang_and_the_next_launch_is_right(model, seed):
    rng = np.random.default_rng(seed)
    job = Stuck(CONFIG, 16, 13, 16, bf16, bf16, 16, 8, 2)
    run, right = launch(model, job, rng)
    assert run.status == "hang" and not right
    assert "no beat" in run.hang_reason
    # Every unit still counts: some of its counters moves.
    assert sum(run.counter_steps) >= 64 * 4
    assert works(model, rng)


def test_a_limit_of_cycles_ends_a_run_and_the_next_launch_is_right(model, seed):
    rng = np.random.default_rng(seed)
    run, right = launch(model, UnitsMatmul.random(CONFIG, rng), rng, max_cycles=300)
    assert (run.status, run.cycles, right) == ("hang", 300, False)
    assert "300 cycles" in run.hang_reason
    assert works(model, rng)


def test_progress_tells_the_cycles(model):
    rng = np.random.default_rng(7)
    job = Stuck(CONFIG, 16, 13, 16, bf16, bf16, 16, 8, 2)
    layout, told = job.launch_memory(7), []
    zeros = np.zeros((16, 16), bf16.dtype)
    memory = layout.bytes_before({"A": zeros, "B": zeros[:, :13]})
    run = model.run(
        memory,
        list_address=layout.list_address,
        conditions=MemoryConditions(latency=5000),
        max_cycles=120_000,
        progress=told.append,
    )
    assert run.status == "hang"
    assert told == sorted(told) and told[-1] <= run.cycles
    assert works(model, rng)


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"latency": 0}, "latency must be an integer from 1 to 65535, not 0"),
        ({"jitter": -1}, "jitter must be an integer from 0 to 65535, not -1"),
        ({"stall": 1.0}, "stall must be a number from 0 to below 1, not 1.0"),
        ({"seed": -1}, "seed must be an integer from 0 to"),
        (
            {"channel_stalls": (0.0, 0.5, 1.0, 0.0, 0.0)},
            "channel_stalls must be 5 probabilities, each a number",
        ),
        ({"channel_stalls": (0.0,) * 4}, "channel_stalls must be 5 prob"),
        (
            {"error": (ErrorAt("read", 0, "slverr"),) * 4},
            "error must be an ErrorAt, or up to 3 of them",
        ),
    ],
)
def test_conditions_outside_their_range_are_refused(values, rule):
    with pytest.raises(ValueError, match=rule):
        MemoryConditions(**values)


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        (("both", 1, "slverr"), "Error direction must be read, write or launch, not 'both'"),
        (("read", 1, "okay"), "Error response must be slverr or decerr, not 'okay'"),
        (("read", -1, "slverr"), "Error beat must be an integer from 0 to"),
    ],
)
def test_errors_of_memory_outside_their_range_are_refused(values, rule):
    with pytest.raises(ValueError, match=rule):
        ErrorAt(*values)
