"""Liveness of kernels that repeat: one iteration decides, and unrolled loops agree."""

import dataclasses
import itertools
import time

import pytest

from hw.arch.boxes.issuer_program import Wait
from hw.arch.config import named
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pmu import PmuProgram
from hw.arch.words.pmu_word import TokenSource
from hw.numeric.formats import bf16, fp32
from sw.prove import prove
from tests.sw.chips import agcu_changed, copier, operands_changed, product, twins, unit_changed
from tests.units_chain import GemvChain
from tests.units_matmul import UnitsMatmul

ALIKE = ((0, 1), (1, 1))
TINY = named["tiny"]


def unrolled(program, iterations):
    """Program that runs so many iterations by a loop of its own, outside all others."""
    tiles = {}
    for at, tile in program.tiles.items():
        unit = tile.unit
        if isinstance(unit, PmuProgram):
            engines = [
                each
                and dataclasses.replace(each, launches=LoopProgram(iterations * each.launches.base))
                for each in unit.engines
            ]
            unit = dataclasses.replace(unit, writers=tuple(engines[:2]), readers=tuple(engines[2:]))
        tiles[at] = dataclasses.replace(tile, unit=unit)

    def longer(issuers):
        return tuple(
            each and dataclasses.replace(each, loops=(BoxLoop(iterations), *each.loops))
            for each in issuers
        )

    agcus = {
        index: dataclasses.replace(agcu, loads=longer(agcu.loads), stores=longer(agcu.stores))
        for index, agcu in program.agcus.items()
    }
    return dataclasses.replace(program, tiles=tiles, agcus=agcus)


def test_what_may_repeat_is_live_unrolled_too():
    """Copies in every pair of short rotations: those whose iterations end as they began."""
    turns = [((0, a), (1, b)) for a, b in itertools.product((1, 2), repeat=2)]
    verdicts = set()
    for first, second, blocks in itertools.product(turns, turns, (2, 3)):
        program = copier(first=first, second=second, packet=8, blocks=blocks)
        once = prove(program).live
        often = prove(program, repeat=3).live
        verdicts.add((once, often))
        if often:
            assert all(prove(unrolled(program, n)).live for n in (2, 3)), (first, second, blocks)
    # Live but not to be repeated: one iteration ends within a rotation.
    assert verdicts == {(True, True), (True, False), (False, False)}


@pytest.mark.parametrize("repeat", [2, 10**6, (1 << 32) - 1])
def test_any_number_of_iterations_costs_one(repeat):
    begin = time.process_time()
    for program in (product(), copier(first=ALIKE, second=ALIKE, packet=8)):
        once, often = prove(program), prove(program, repeat=repeat)
        assert once.live and often == once
    assert prove(GemvChain(TINY, 16, 8).program, repeat=repeat).live
    assert time.process_time() - begin < 2


def test_tokens_must_return_to_the_credits():
    program = copier(first=ALIKE, second=ALIKE, packet=8, waits=False)
    assert prove(program).live
    answer = prove(program, repeat=2)
    assert not answer.live
    assert answer.faults[0] == (
        "AGCU 0 token port 0 ends an iteration with 8 tokens, not with its 2 credits"
    )
    # More credits than an iteration takes: they hide it in the first one alone.
    chain = GemvChain(TINY, 16, 2)
    agcu = chain.program.agcus[0]
    load = dataclasses.replace(agcu.loads[1], waits=(Wait(1, 3),))
    greedy = agcu_changed(chain.program, loads=(agcu.loads[0], load), credits=(2, 3))
    assert prove(greedy).live
    assert prove(greedy, repeat=2).faults == (
        "AGCU 0 token port 1 ends an iteration with 2 tokens, not with its 3 credits",
    )
    assert not prove(unrolled(greedy, 3)).live


def test_rotations_must_end_where_they_began():
    rotation = ((0, 1), (1, 2))
    program = copier(first=rotation, second=rotation, packet=8, blocks=2)
    assert prove(program).live
    assert prove(program, repeat=2).faults[0] == (
        "merge at (0, 1) to unit port 0 ends an iteration within its rotation"
    )
    # Even groups of columns go to one PCU, odd ones to the other; their results are merged.
    assert prove(twins(UnitsMatmul(TINY, 16, 4, 16, bf16, fp32, 16, 16, 2)), repeat=5).live


def test_filters_must_end_where_they_began():
    """Ten packets of results, of which every third is collected: two windows of two."""
    program = product(m=80, n=4, k=8)
    collector = program.tiles[0, 1].unit
    two = LoopProgram(2)
    writer = dataclasses.replace(collector.writers[0], windows=two, modulus=3)
    reader = dataclasses.replace(collector.readers[0], windows=two)
    collector = dataclasses.replace(collector, writers=(writer, None), readers=(reader, None))
    program = unit_changed(program, (0, 1), lambda _: collector)
    store = dataclasses.replace(program.agcus[0].stores[0], loops=(BoxLoop(2, 1, 16),))
    program = agcu_changed(program, stores=(store,))
    assert prove(program).live
    assert prove(program, repeat=2).faults == (
        "PMU (0, 1) W0 ends an iteration after 10 packets, of which it takes one in 3",
    )


def test_an_open_order_of_boxes_may_not_repeat():
    program = copier(first=ALIKE, second=ALIKE, packet=8, blocks=3)
    load_x, load_y = program.agcus[0].loads
    hasty = agcu_changed(program, loads=(load_x, dataclasses.replace(load_y, waits=())))
    assert prove(hasty, repeat=2).faults[0] == (
        "Order of boxes must be covered by tokens in a kernel that repeats, "
        "not left open at AGCU 0 load 0 and AGCU 0 load 1"
    )


def two_copies(box):
    """Two copies apart from one another, whose loads take no tokens; boxes of the second."""
    turns = {"first": ((0, 1),), "second": ((1, 1),)}
    program = copier(**turns, packet=8, blocks=4, waits=False)
    program = operands_changed(program, tokens=(TokenSource.OFF, TokenSource.OFF))

    def shorter(unit):
        engines = [dataclasses.replace(e, windows=LoopProgram(4)) for e in unit.engines]
        return dataclasses.replace(unit, writers=tuple(engines[:2]), readers=tuple(engines[2:]))

    program = unit_changed(program, (0, 1), shorter)
    agcu = program.agcus[0]
    x, (descriptor, argument), *stored = agcu.descriptors
    second = dataclasses.replace(agcu.loads[1], loops=(BoxLoop(256 // box, 0, box),))
    return agcu_changed(
        program,
        loads=(agcu.loads[0], second),
        stores=tuple(dataclasses.replace(e, loops=(BoxLoop(4, 0, 64),)) for e in agcu.stores),
        descriptors=(x, (dataclasses.replace(descriptor, box=(box,)), argument), *stored),
        credits=(),
    )


def test_streams_in_turns_need_as_many_boxes_of_each():
    """Boxes of loads without waits alternate: over several iterations, the shorter one leads."""
    assert prove(two_copies(64), repeat=2).live
    assert prove(two_copies(128)).live
    assert prove(two_copies(128), repeat=2).faults == (
        "AGCU 0 load 1 and AGCU 0 load 0 take turns, so an iteration must have as many boxes of "
        "each",
    )
