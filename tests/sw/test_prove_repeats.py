"""Repeats that the token-level run leaves out: the verdict and all counts stay the same."""

import dataclasses
import itertools
import random

import numpy as np
import pytest

from hw.arch.config import named
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import FilterProgram
from hw.arch.words.pmu_word import Level, TokenSource
from hw.numeric.formats import bf16
from sw.compiler import compile_kernel
from sw.fabric.nets import find_nets
from sw.kernels.silu import silu
from sw.kernels.softmax import softmax
from sw.prove import prove
from sw.prove.machine import Machine, Port
from sw.prove.network import Network
from sw.prove.packets import Packets, even_packets
from sw.prove.pattern import Pattern
from sw.prove.pcu_actors import Grid
from sw.prove.pmu_actors import Engine
from sw.prove.stream_packets import StreamPackets
from tests.sw.chips import (
    TINY,
    agcu_changed,
    copier,
    operands_changed,
    product,
    unit_changed,
)
from tests.sw.naive import ends

ALIKE = [(0, 1), (1, 1)]


def compared(program):
    """Answers with and without repeats, the same in all but steps."""
    short, whole = prove(program), prove(program, whole=True)
    assert dataclasses.replace(short, steps=0) == dataclasses.replace(whole, steps=0)
    return short, whole


def engine_changed(program, at, number, **fields):
    """Program with another engine, of W0, W1, R0, R1, in a PMU."""

    def change(unit):
        engines = list(unit.engines)
        engines[number] = dataclasses.replace(engines[number], **fields)
        return dataclasses.replace(unit, writers=tuple(engines[:2]), readers=tuple(engines[2:]))

    return unit_changed(program, at, change)


def boxes_changed(program, side, number, more):
    """Program one of whose issuers has more boxes, or fewer."""
    issuers = list(getattr(program.agcus[0], side))
    first, *others = issuers[number].loops
    loops = (BoxLoop(max(1, first.count + more), first.dimension, first.step), *others)
    issuers[number] = dataclasses.replace(issuers[number], loops=loops)
    return agcu_changed(program, **{side: tuple(issuers)})


def windows_changed(program, at, number, more):
    """Program one of whose engines goes through more windows, or fewer."""
    windows = program.tiles[at].unit.engines[number].windows
    return engine_changed(program, at, number, windows=LoopProgram(max(1, windows.base + more)))


@pytest.mark.parametrize("chip", ["tiny", "small"])
def test_units_of_a_long_row_are_periods_of_its_packet(chip):
    """A packet of lanes that is a whole row has as many periods as the row has blocks."""
    parts = compile_kernel(softmax, named[chip], dims={"M": 16, "N": 4096}, dtype=bf16).parts
    short, whole = compared(parts[0].chip)
    assert short.steps < 0.7 * whole.steps


def triangles(count, *, base=1, waits=False):
    """Copier whose slot i, in its first PMU, has ``base + i`` vectors."""
    total = sum(base + i for i in range(count))
    assert total % 8 == 0
    program = copier(first=ALIKE, second=ALIKE, packet=8, blocks=total // 8, waits=waits)
    inner = (LoopProgram(base, stride=8, slope=1, outer=Level.WINDOWS),)
    fields = {"windows": LoopProgram(count), "loops": inner}
    for number in range(4):
        marks = {"last_level": 4} if number > 1 else {}
        program = engine_changed(program, (1, 0), number, **fields, **marks)
    return program


def test_steps_do_not_grow_with_the_trip_count():
    steps = set()
    for blocks in (20, 200, 2000):
        answer = prove(product(m=16 * blocks, n=2, k=32))
        assert answer.live
        assert answer.moved > blocks * 400
        steps.add(answer.steps)
    assert len(steps) == 1
    assert steps.pop() < 500


@pytest.mark.parametrize("rows", [64, 128, 192])
def test_a_nest_of_repeats_is_left_out_at_every_level(rows):
    """Blocks of rows, columns and a window of k: each level repeats in the one around it."""
    short, whole = compared(product(m=rows, n=90, k=40, slots=5))
    assert short.live
    assert short.steps < whole.steps / 10


LATE = {
    "a slot more is filled at the end": lambda: windows_changed(
        product(m=1600, n=2, k=32), (1, 0), 0, 1
    ),
    "the last slot is not read": lambda: windows_changed(product(m=1600, n=2, k=32), (0, 1), 2, -1),
    "a store more than there are results": lambda: boxes_changed(
        product(m=1600, n=2, k=32), "stores", 0, 1
    ),
    "a box of A fewer": lambda: boxes_changed(product(m=1600, n=2, k=32), "loads", 0, -1),
    "a box of one side of a merge fewer": lambda: boxes_changed(
        copier(first=ALIKE, second=ALIKE, packet=8, blocks=120), "loads", 1, -1
    ),
    "a rotation that starves after half": lambda: copier(
        first=[(0, 1), (1, 2)], second=[(0, 1), (1, 2)], packet=4, blocks=100
    ),
}


@pytest.mark.parametrize("make", LATE.values(), ids=LATE)
def test_what_fails_only_at_the_end_is_refused(make):
    short, whole = compared(make())
    assert not short.live
    assert short.steps < whole.steps / 5


def test_a_leak_of_one_token_an_iteration_is_never_a_repeat():
    """Nobody takes the tokens: their count of 255 is full after as many slots."""
    answers = [
        compared(copier(first=ALIKE, second=ALIKE, packet=8, blocks=blocks, waits=False))[0]
        for blocks in (250, 300)
    ]
    assert [answer.live for answer in answers] == [True, False]


def test_slots_that_grow_are_never_a_repeat():
    answer, whole = compared(triangles(31))
    assert answer.live
    assert answer.moved == whole.moved > 31 * 32 * 3
    # Two boxes are a slot until slots have outgrown them.
    assert not compared(engine_changed(triangles(31), (1, 0), 0, windows=LoopProgram(32)))[0].live


def two_launches(*, sizes=(0, 0, 0, 0)):
    """Copier with slots of 8 vectors, then of as many more as each engine of PMU (1, 0) says."""
    total = 40 * (2 * 8 + sizes[0])
    program = copier(first=ALIKE, second=ALIKE, packet=8, blocks=total // 8, waits=False)
    program = operands_changed(program, tokens=(TokenSource.OFF, TokenSource.OFF))
    for number, more in enumerate(sizes):
        inner = (LoopProgram(8, stride=8, slope=more, outer=Level.LAUNCHES),)
        fields = {"launches": LoopProgram(2), "windows": LoopProgram(40), "loops": inner}
        marks = {"last_level": 4} if number > 1 else {}
        program = engine_changed(program, (1, 0), number, **fields, **marks)
    return program


def test_a_shorter_tail_is_run():
    assert compared(two_launches())[0].live
    short, whole = compared(two_launches(sizes=(-4, -4, -4, -4)))
    assert short.live
    assert short.steps < whole.steps / 2
    assert not compared(two_launches(sizes=(-4, -4, -3, -4)))[0].live


def test_passes_that_grow_late_are_run():
    """Forty passes over two slots of k, then forty over three."""
    program = product(m=1600, n=2, k=16)
    slots = LoopProgram(2, slope=1, outer=Level.LAUNCHES)
    for number in range(4):
        program = engine_changed(
            program,
            (1, 0),
            number,
            launches=LoopProgram(2),
            windows=LoopProgram(40),
            slots=slots,
        )
    for number in (0, 2):
        program = windows_changed(program, (0, 1), number, -20)
    short, whole = compared(boxes_changed(program, "stores", 0, -20))
    assert short.live
    assert short.steps < whole.steps / 2


def _random_program(rng):
    """A program of many iterations that may or may not be live."""
    if rng.random() < 0.5:
        count = rng.choice([1, 1, 2])
        program = copier(
            first=[(0, count), (1, count)],
            second=[(0, count), (1, count)][:: rng.choice([1, 1, 1, -1])],
            packet=rng.choice([2, 4, 8, 16]),
            blocks=2 * rng.randint(15, 45),
            waits=rng.random() < 0.7,
        )
        places = [(at, number) for at in ((1, 0), (0, 1)) for number in range(4)]
    else:
        slab = rng.choice([8, 16])
        k = rng.randint(1, 64 // slab) * slab
        program = product(
            m=rng.randint(1, 300), n=rng.randint(1, 20), k=k, slab=slab, slots=64 // slab
        )
        places = [((1, 0), number) for number in range(4)]
    change = rng.randrange(9)
    off = rng.choice([-2, -1, 1, 2])
    if change == 0:
        at, number = rng.choice(places)
        return windows_changed(program, at, number, off)
    if change == 1:
        return boxes_changed(program, "loads", rng.randrange(2), off)
    if change == 2:
        return boxes_changed(program, "stores", 0, off)
    if change == 3:
        return agcu_changed(program, credits=tuple(rng.randint(1, 5) for _ in range(2)))
    if change == 4:
        sources = [TokenSource.R0, TokenSource.R1, TokenSource.W0, TokenSource.W1]
        return operands_changed(program, tokens=tuple(rng.choice(sources) for _ in range(2)))
    if change == 5:
        at, number = rng.choice(places)
        return engine_changed(program, at, number, repeats=LoopProgram(2))
    if change == 6 and program.tiles[0, 0].unit is not None:
        two = FilterProgram(2, rng.randrange(2))
        return unit_changed(program, (0, 0), lambda unit: dataclasses.replace(unit, activation=two))
    return program


def _or_none(rng):
    """A random program, or none where an engine cannot be like that."""
    try:
        return _random_program(rng)
    except ValueError:
        return None


def test_random_programs_have_the_same_answer_with_and_without_repeats(seed):
    rng = random.Random(seed)
    live = fewer = late = 0
    for _ in range(40):
        program = _or_none(rng)
        if program is None:
            continue
        short, whole = compared(program)
        live += short.live
        left_out = short.steps < whole.steps / 2
        fewer += left_out
        late += left_out and not short.live
    assert live >= 5
    assert fewer >= 10
    assert late >= 1


def test_the_slow_run_agrees_where_repeats_are_left_out(seed, draws):
    rng = random.Random(seed)
    checked, count = 0, draws(2, 4)
    while checked < count:
        program = _or_none(rng)
        if program is None:
            continue
        short, whole = compared(program)
        if short.live and whole.moved < 40_000 and short.steps < whole.steps / 2:
            assert ends(program, seed + checked)
            checked += 1


def test_marks_and_filters_are_part_of_a_pattern():
    """Tiles that end a pass, and packets that are not for a port, are not like the others."""
    machine = Machine()
    every_second = np.arange(40) % 2 == 1
    every_second[20] = True
    grid = Grid(machine, "grid", TINY, Packets(np.full(40, 4), every_second))
    assert grid.pattern().repeats(0, 2, 99) == 8
    port = Port(machine, "weight", grid, 4, even_packets(40, 4, final=False), 2, 1)
    assert port.pattern().repeats(0, 1, 99) == 0
    assert port.pattern().repeats(0, 2, 99) == 18


def test_repeats_of_a_pattern_are_those_of_its_definition(seed):
    rng = random.Random(seed)
    found = 0
    for _ in range(300):
        length = rng.randint(1, 400)
        unit = [rng.randrange(2) for _ in range(rng.randint(1, 6))]
        column = np.resize(np.array(unit), length)
        if rng.random() < 0.7:
            column[rng.randrange(length)] ^= 1
        begin, period = rng.randrange(length), rng.randint(1, 12)
        most = rng.choice([3, 1 << 62])
        places = [*column.tolist(), None]
        count = 0
        while (
            count < most
            and begin + (count + 2) * period < length
            and all(
                places[i] == places[i + (count + 1) * period]
                for i in range(begin, begin + period + 1)
            )
        ):
            count += 1
        assert Pattern(length, (column,)).repeats(begin, period, most) == count
        found += count > 1
    assert found > 20


def lines(rows):
    """Program of element math whose two lines have nothing in common: blocks of rows, by turns."""
    dims = {"M": rows, "N": 256}
    return compile_kernel(silu, named["small"], dims=dims, dtype=bf16).parts[0].chip


def run_of(program):
    """The network of a program before its run."""
    nets = find_nets(program)
    return Network(program, nets, StreamPackets(program, nets))


def test_each_line_that_nothing_connects_with_the_others_has_repeats_of_its_own():
    few, many = compared(lines(480)), compared(lines(1920))
    assert many[0].live and many[0].steps == few[0].steps
    assert many[1].steps > 3 * few[1].steps


@pytest.mark.parametrize(
    ("make", "count"),
    [(lambda: lines(64), 2), (lambda: product(m=64, n=90, k=40, slots=5), 1)],
    ids=["two lines", "product"],
)
def test_the_run_of_a_group_moves_no_part_of_another(make, count, monkeypatch):
    network = run_of(make())
    groups = network._groups()
    assert sorted(map(id, itertools.chain(*groups))) == sorted(map(id, network._parts()))
    ran = []
    for group in groups:
        others = {part for each in groups if each is not group for part in each}
        before = {part: part.state() for part in others}
        monkeypatch.setattr(network, "_groups", lambda group=group: [group])
        network.run()
        assert {part: part.state() for part in others} == before
        ran.append(sum(isinstance(part, Engine) for part in group))
    assert not any(actor.reasons() for actor in network.actors)
    assert len([engines for engines in ran if engines]) == count
