"""Liveness of programs with an index stream: index vectors are counted, their values are not."""

import dataclasses

import pytest

from hw.arch.loops import LoopProgram
from sw.prove import prove
from sw.prove.index_walk import index_walk
from tests.hw.step_model import steps_of
from tests.sw.chips import unit_changed
from tests.sw.gather_chip import CHIP, lookup


@pytest.mark.parametrize("indices", [3, 4, 8, 31])
def test_a_gather_lives_with_exactly_the_vectors_it_needs(indices):
    need = -(-indices // 2)
    assert prove(lookup(tables=5, indices=indices)).live
    short = prove(lookup(tables=5, indices=indices, given=need - 1))
    assert not short.live
    assert any("an index vector at PMU (1, 0) W1" in wait for wait in short.waits), short.waits
    more = prove(lookup(tables=5, indices=indices, given=need + 1))
    assert not more.live


def test_many_tables_are_proved_by_their_periods():
    answer = prove(lookup(tables=20_000, indices=3))
    assert answer.live and answer.steps < 1000


def test_the_walk_counts_vectors_like_the_steps():
    program = lookup(tables=4, indices=5)
    unit = program.tiles[1, 0].unit
    read, indexed = unit.readers[1], unit.indexed
    for level in (4, 5, 8):
        engine = dataclasses.replace(read, loops=(LoopProgram(3), LoopProgram(2, slope=1, outer=1)))
        one = dataclasses.replace(indexed, level=level)
        walk = index_walk(engine, one, CHIP.width_bits)
        at = lane = 0
        for number, step in enumerate(steps_of(engine.chain)):
            assert walk.numbers[number] == 2 * at + lane
            lane += (*step.last, True)[level]
            frees = lane == 2 or (step.last[4] and lane > 0)
            assert walk.frees[number] == frees
            at, lane = (at + 1, 0) if frees else (at, lane)
        assert walk.vectors == at


def test_a_gather_of_elements_takes_a_vector_per_step():
    unit = lookup(tables=3, indices=4).tiles[1, 0].unit
    one = dataclasses.replace(unit.indexed, shift=0, elements=True)
    walk = index_walk(unit.readers[1], one, CHIP.width_bits)
    assert walk.vectors == 12 and walk.frees.all()
    assert walk.numbers.tolist() == list(range(0, 24, 2))


def test_an_index_stream_that_reaches_nothing_is_refused():
    program = lookup(tables=2, indices=2)
    plain = unit_changed(program, (1, 0), lambda unit: dataclasses.replace(unit, indexed=None))
    assert not prove(plain).live
