"""Runs that end with a rest in front of each kind of consumer, and runs that are too long."""

import dataclasses

import pytest

from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.words.pmu_word import Level
from sim.emulator.scratchpad import Scratchpad
from sw.prove import LivenessError, prove, require_live
from sw.prove.unrolled_loops import MOST_STEPS, StepLimitError, walk
from tests.sw.chips import TINY, agcu_changed, copier, operands_changed, product, unit_changed

ALIKE = [(0, 1), (1, 1)]
UNUSED = "PCU (0, 0) holds weights that no tile uses"


def _more_weights(*, columns):
    """Product of one tile, to which the weights of so many more columns are sent."""
    program = product(m=8, n=2, k=4, slab=4, slots=2)
    unit, (load_a, load_b) = program.tiles[1, 0].unit, program.agcus[0].loads
    (write_a, write), (read_a, read) = unit.writers, unit.readers
    two = LoopProgram(2)
    # The second window is sent once, with fewer columns.
    repeats = dataclasses.replace(read.repeats, slope=-1, outer=Level.WINDOWS)
    column = dataclasses.replace(read.loops[1], slope=columns - 2, outer=Level.WINDOWS)
    loops = (read.loops[0], column, *read.loops[2:])
    program = operands_changed(
        program,
        writers=(write_a, dataclasses.replace(write, windows=two)),
        readers=(read_a, dataclasses.replace(read, windows=two, repeats=repeats, loops=loops)),
    )
    load_b = dataclasses.replace(load_b, loops=(BoxLoop(2), *load_b.loops[1:]))
    return agcu_changed(program, loads=(load_a, load_b))


@pytest.mark.parametrize("columns", [1, 2], ids=["part of a tile", "a whole tile"])
def test_weights_that_no_tile_uses_are_refused(columns):
    """In the shadow registers, and nothing in front of the port: that alone is the fault."""
    answer = prove(_more_weights(columns=columns))
    assert (answer.live, answer.waits, answer.faults) == (False, (), (UNUSED,))
    with pytest.raises(LivenessError, match="holds weights that no tile uses"):
        require_live(_more_weights(columns=columns))


def test_tokens_that_a_full_count_does_not_take_are_refused():
    """A count of tokens holds 255, two of them credits; one more stays on the way to it."""
    full, over = (
        prove(copier(first=ALIKE, second=ALIKE, packet=8, blocks=blocks, waits=False))
        for blocks in (253, 254)
    )
    assert full.live
    names = [f"AGCU 0 token port {port}" for port in (0, 1)]
    assert over.waits == ()
    assert over.faults == tuple(f"1 left over in front of {name}" for name in names)


def test_results_that_no_box_of_a_store_takes_are_refused():
    """The last line of the results stands in the buffer of a store that has all its boxes."""
    program = product(m=8, n=2, k=4, slab=4, slots=2)
    descriptors = list(program.agcus[0].descriptors)
    (store, _) = program.agcus[0].stores
    tensor, argument = descriptors[store.descriptor]
    rows, lines = tensor.box[:2]
    descriptors[store.descriptor] = (
        dataclasses.replace(tensor, box=(rows, lines - 1, *tensor.box[2:])),
        argument,
    )
    answer = prove(agcu_changed(program, descriptors=tuple(descriptors)))
    assert (answer.live, answer.waits) == (False, ())
    assert answer.faults == ("2 left over in front of AGCU 0 store 0",)


def test_what_waits_when_the_chip_ends_is_left_over():
    """The collector takes one of two blocks of results, and nothing needs the other one."""
    program = product(m=32, n=2, k=4, slab=4, slots=2)
    collector = program.tiles[0, 1].unit
    (write, _), (read, _) = collector.writers, collector.readers
    assert write.windows == read.windows == LoopProgram(2)
    one = LoopProgram(1)
    collector = dataclasses.replace(
        collector,
        writers=(dataclasses.replace(write, windows=one), None),
        readers=(dataclasses.replace(read, windows=one), None),
    )
    short = unit_changed(program, (0, 1), lambda _: collector)
    (store, _) = short.agcus[0].stores
    loops = (BoxLoop(1, 1, 16), *store.loops[1:])
    done = agcu_changed(short, stores=(dataclasses.replace(store, loops=loops), None))
    answer = prove(done)
    assert (answer.live, answer.waits) == (False, ())
    assert answer.faults[:2] == (
        "PCU (0, 0) result waits for room in PMU (0, 1) W0",
        "PMU (0, 1) W0 has ended",
    )
    # A store that is still to come keeps the chip from ending.
    assert prove(short).waits == (
        "AGCU 0 store 0 waits for a vector from PMU (0, 1) R0",
        "PMU (0, 1) R0 has ended",
    )


def test_a_read_engine_ends_when_its_last_vector_has_left():
    """Weights that no tile uses: left in a switch they let the chip end, in the output not."""
    answers = {columns: prove(_more_weights(columns=columns)) for columns in range(1, 30)}
    assert not any(answer.live for answer in answers.values())
    first = next(columns for columns, answer in answers.items() if answer.waits)
    assert all(bool(answers[columns].waits) == (columns >= first) for columns in answers)
    # The output takes seven more before the engine itself cannot close its slot.
    moved = {columns: answer.moved - answers[first].moved for columns, answer in answers.items()}
    assert (moved[first - 1], moved[first + 7], moved[first + 8]) == (-1, 7, 6)


def test_a_run_of_more_steps_than_the_limit_is_refused_by_name():
    program = product()
    steps = prove(program).steps
    assert prove(program, limit=steps).live
    answer = prove(program, limit=steps - 1)
    assert not answer.live
    assert answer.waits == (
        f"Token-level run must have at most {steps - 1} steps, not {steps} or more",
    )


def test_a_nest_of_more_steps_than_can_be_followed_is_refused_before_it_is_made():
    """Counts of an image may be anything; 2^32 steps would be an array of 32 GiB."""
    most = LoopProgram(MOST_STEPS)
    assert len(walk([most]).offset) == MOST_STEPS
    with pytest.raises(StepLimitError, match="Loop nest must have at most 4,194,304 steps, not"):
        walk([most, LoopProgram(2)])
    program = product()
    unit = program.tiles[1, 0].unit
    long = LoopProgram((1 << 16) - 1)
    for outer, inner, said in (
        (long, unit.readers[0].loops, "Stream of packets must have at most 4,194,304 steps, not"),
        (LoopProgram(1), (long,) * 4, "Stream of vectors must have at most 1,152,921,504,606,846"),
    ):
        readers = tuple(
            dataclasses.replace(each, launches=outer, windows=outer, loops=inner)
            for each in unit.readers
        )
        with pytest.raises(LivenessError, match=said):
            require_live(operands_changed(program, readers=readers))


def test_the_emulator_refuses_what_it_cannot_follow():
    long = LoopProgram(60_000, slope=1, outer=Level.WINDOWS)
    unit = product().tiles[1, 0].unit
    reader = dataclasses.replace(unit.readers[1], windows=LoopProgram(99), loops=(long,))
    unit = dataclasses.replace(unit, readers=(unit.readers[0], reader))
    pad = Scratchpad(TINY, unit, "PMU", lambda *_: b"")
    with pytest.raises(StepLimitError, match="Loop nest must have at most 4,194,304 steps, not"):
        pad.read(1)
