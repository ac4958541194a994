"""Liveness: what is accepted, what is refused with which words, and a slow oracle for both."""

import copy
import dataclasses
import random
import time

import numpy as np
import pytest

from hw.arch.boxes.issuer_program import Wait
from hw.arch.config import named
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import FilterProgram
from hw.arch.ports import Direction, Link, UnitPort
from hw.arch.switch import OutputProgram, SwitchProgram, Turn
from hw.arch.words.pmu_word import TokenSource
from hw.numeric.division import ceil_div
from hw.numeric.formats import bf16, fp32, int8, int32
from sw.chip_program import ChipProgram
from sw.prove import LivenessError, prove, require_live
from sw.prove.agcu_actors import BoxServer, BoxStream, TokenCount
from sw.prove.machine import Actor, Channel, Consumer, Machine, Port
from sw.prove.packets import even_packets
from sw.prove.pcu_actors import Grid, ResultDrain
from tests.sw.chips import (
    TINY,
    agcu_changed,
    copier,
    operands_changed,
    pcu_changed,
    product,
    twins,
)
from tests.sw.naive import ends
from tests.units_matmul import UnitsMatmul

ALIKE = [(0, 1), (1, 1)]
CROSSED = [(1, 1), (0, 1)]


def random_product(rng, *, twin=False):
    fmt = rng.choice([bf16, int8])
    out = int32 if fmt == int8 else rng.choice([bf16, fp32])
    m, n, k = rng.randint(1, 40), rng.randint(1, 13), rng.randint(1, 40)
    slab = 16 if fmt == int8 else rng.choice([8, 16])
    slots = max(1, ceil_div(k, slab)) + rng.randint(0, 1)
    job = UnitsMatmul(TINY, m, n, k, fmt, out, 16, slab, slots)
    return twins(job) if twin else ChipProgram.unpack(TINY, job.image())


@pytest.mark.parametrize("twin", [False, True], ids=["one", "two"])
def test_products_are_live(twin, seed):
    rng = random.Random(seed)
    for _ in range(6):
        answer = prove(random_product(rng, twin=twin))
        assert answer.live, answer
        assert not answer.waits and not answer.faults


def test_a_product_on_small_is_proved_in_a_second():
    job = UnitsMatmul(named["small"], 256, 256, 256, bf16, bf16, 64, 64, 4)
    program = ChipProgram.unpack(job.config, job.image())
    start = time.process_time()
    answer = require_live(program)
    assert time.process_time() - start < 1
    assert answer.moved > 200_000
    assert answer.steps < answer.moved / 10


def _loads(program, change):
    return tuple(change(number, load) for number, load in enumerate(program.agcus[0].loads))


def _no_waits(program):
    loads = _loads(program, lambda _, load: dataclasses.replace(load, waits=()))
    return agcu_changed(program, loads=loads)


def _more_stores(program):
    (store, _) = program.agcus[0].stores
    loops = (BoxLoop(store.loops[0].count + 1, 1, 16), *store.loops[1:])
    return agcu_changed(program, stores=(dataclasses.replace(store, loops=loops), None))


def _short_ring(program):
    """Rings one slot too few for the window that is gone through twice."""

    def short(engine):
        # No program of an engine may be like this: an image could hold it none the less.
        other = copy.copy(engine)
        ring = dataclasses.replace(engine.ring, count=engine.ring.count - 1)
        object.__setattr__(other, "ring", ring)
        return other

    unit = program.tiles[1, 0].unit
    sides = {name: tuple(map(short, getattr(unit, name))) for name in ("writers", "readers")}
    return operands_changed(program, **sides)


def _rerouted(program, at, outputs):
    """Program with more outputs on at a vector switch."""
    tile = program.tiles[at]
    switch = SwitchProgram(tile.vectors.ports, (*tile.vectors.outputs, *outputs))
    tiles = dict(program.tiles) | {at: dataclasses.replace(tile, vectors=switch)}
    return dataclasses.replace(program, tiles=tiles)


def _off_the_chip(program):
    edge = OutputProgram(Link(Direction.SOUTH, 0), (Turn(UnitPort(0)),))
    return _rerouted(program, (1, 0), [edge])


def _to_a_unit_that_is_off(program):
    side = OutputProgram(UnitPort(1), (Turn(Link(Direction.WEST, 0)),))
    return _rerouted(program, (0, 1), [side])


def _filtered(program, **fields):
    filters = {name: FilterProgram(*value) for name, value in fields.items()}
    return pcu_changed(program, (0, 0), **filters)


def _longer(program):
    """Slots of A are filled once more than they are read."""
    write_a, write_b = program.tiles[1, 0].unit.writers
    windows = LoopProgram(write_a.windows.base + 1)
    changed = (dataclasses.replace(write_a, windows=windows), write_b)
    return operands_changed(program, writers=changed)


def _unmarked(program):
    """Tiles of A whose pass never ends."""
    read_a, read_b = program.tiles[1, 0].unit.readers
    return operands_changed(
        program, readers=(dataclasses.replace(read_a, final_level=None), read_b)
    )


REFUSED = [
    ("short ring", lambda: _short_ring(product(k=40, slab=8, slots=5)), "PMU (1, 0) R0 waits for"),
    (
        "no credits",
        lambda: agcu_changed(product(), credits=(0, 4)),
        "AGCU 0 load 0 waits for a token from PMU (1, 0) token 0",
    ),
    (
        "credits for part of a window",
        lambda: agcu_changed(product(k=32), credits=(4, 3)),
        "AGCU 0 load 1 waits for a token from PMU (1, 0) token 1",
    ),
    (
        "more credits than slots, so that A comes before B and does not fit",
        lambda: agcu_changed(product(k=32), credits=(7, 4)),
        "AGCU 0 load 0 and AGCU 0 load 1 waits for room in PMU (1, 0) W0",
    ),
    (
        "crossed merges",
        lambda: copier(first=ALIKE, second=CROSSED, packet=8),
        "merge at (0, 1) to unit port 1 waits for",
    ),
    (
        "a rotation that asks one source for more",
        lambda: copier(first=[(0, 1), (1, 2)], second=[(0, 1), (1, 2)], packet=4),
        "waits for a packet from PMU (1, 0) R1; PMU (1, 0) R1 has ended",
    ),
    ("a store of what never comes", lambda: _more_stores(product()), "store 0 waits for a vector"),
    (
        "a net nobody reads",
        lambda: _off_the_chip(product()),
        "R0 goes to edge of the chip at (1, 0)",
    ),
    (
        "a unit that is off",
        lambda: _to_a_unit_that_is_off(product()),
        "goes to PMU (0, 1) W1, which is off",
    ),
    (
        "weights that another unit is to take",
        lambda: _filtered(product(), weight=(2, 1)),
        "weights from PMU (1, 0) R1",
    ),
    (
        "tiles that another unit is to take",
        lambda: _filtered(product(), activation=(2, 0)),
        "waits for",
    ),
    ("a slot that is never read", lambda: _longer(product()), "PMU (1, 0) W0 waits for a vector"),
    (
        "a pass without an end",
        lambda: _unmarked(product()),
        "PCU (0, 0) result has ended; PCU (0, 0) holds a pass that no mark ends",
    ),
]


@pytest.mark.parametrize(
    ("make", "words"), [case[1:] for case in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_programs_that_stop_are_refused_with_their_waits(make, words):
    program = make()
    with pytest.raises(LivenessError) as caught:
        require_live(program)
    assert words in caught.value.message
    assert caught.value.record()["kind"] == "not-live"
    assert caught.value.code == 2


def test_a_cycle_is_named_from_end_to_end():
    answer = prove(agcu_changed(product(k=32), credits=(4, 3)))
    names = [wait.split(" waits for ")[0] for wait in answer.waits]
    assert names[0] == "AGCU 0 load 1" or "AGCU 0 load 1" in names
    assert len(set(names)) == len(names) > 2
    # Who is waited for is the next to wait, round the cycle.
    assert "PMU (1, 0) R1" in names


def test_what_is_left_over_is_a_fault():
    answer = prove(_filtered(product(m=8, n=2, k=8, slots=2), weight=(1, 0)))
    assert answer.live
    # One window of weights more than tiles need: they stay in front of the grid.
    program = product(m=8, n=2, k=8, slots=2)
    unit = program.tiles[1, 0].unit
    write, read = unit.writers[1], unit.readers[1]
    two = LoopProgram(2)
    program = operands_changed(
        program,
        writers=(unit.writers[0], dataclasses.replace(write, windows=two)),
        readers=(unit.readers[0], dataclasses.replace(read, windows=two)),
    )
    load_a, load_b = program.agcus[0].loads
    loops = (BoxLoop(2), *load_b.loops[1:])
    program = agcu_changed(program, loads=(load_a, dataclasses.replace(load_b, loops=loops)))
    answer = prove(program)
    assert not answer.live
    assert "PCU (0, 0)" in " ".join(answer.faults + answer.waits)


def test_streams_that_wait_for_nothing_take_turns():
    """Loads without tokens are live only because the arbiter serves them in turn."""
    program = _no_waits(product(k=32))
    assert prove(program).live
    assert all(ends(program, number) for number in range(3))
    # With a wait on one side nothing fixes the order any more.
    (load_a, load_b) = program.agcus[0].loads
    mixed = agcu_changed(
        program, loads=(load_a, dataclasses.replace(load_b, waits=(Wait(1),))), credits=(0, 8)
    )
    assert not prove(mixed).live


def _random_program(rng):
    """A program that may or may not be live."""
    kind = rng.randrange(4)
    if kind == 0:
        rotations = []
        for _ in range(2):
            count = rng.choice([1, 1, 2, 4])
            turns = [(0, count), (1, count)]
            rotations.append(turns[:: rng.choice([1, 1, -1])])
        packet = rng.choice([1, 2, 4, 8, 16])
        blocks = rng.choice([2, 4])
        return copier(
            first=rotations[0],
            second=rotations[1],
            packet=packet,
            blocks=blocks,
            waits=rng.random() < 0.7,
        )
    program = random_product(rng, twin=kind == 1)
    change = rng.randrange(7)
    if change == 0:
        return agcu_changed(program, credits=tuple(rng.randint(0, 6) for _ in range(2)))
    if change == 1:
        loads = _loads(
            program,
            lambda _, load: dataclasses.replace(
                load, waits=() if rng.random() < 0.5 else load.waits
            ),
        )
        return agcu_changed(program, loads=loads)
    if change == 2:
        return operands_changed(program, tokens=tuple(rng.choices(list(TokenSource)[1:], k=2)))
    if change == 3:
        return _filtered(program, weight=(2, rng.randrange(2)), activation=(1, 0))
    if change == 4:
        return _unmarked(program)
    if change == 5:
        for at in ((0, 0), (1, 1))[: 1 + (kind == 1)]:
            program = pcu_changed(program, at, packet_vectors=rng.choice([1, 2, 3, 8, 16, 255]))
    return program


def test_the_oracle_agrees_on_random_programs(seed):
    """What is proved live ends in every random order; what is refused mostly stops in one."""
    rng = random.Random(seed)
    live = refused = confirmed = 0
    for number in range(16):
        program = _random_program(rng)
        answer = prove(program)
        outcomes = [ends(program, seed + number + turn) for turn in range(2)]
        if answer.live:
            live += 1
            assert all(outcomes), (number, answer)
        else:
            refused += 1
            confirmed += not all(outcomes)
    assert live >= 3
    assert refused >= 2
    # Less room than the chip's may refuse a few that would end.
    assert confirmed >= 0.5 * refused, (confirmed, refused)


class _Giver(Actor):
    """Producer that gives all it can."""

    def __init__(self, machine, channel):
        super().__init__(machine, "giver")
        self.channel = channel
        channel.producer = self

    def advance(self):
        while (count := self.channel.room()) > 0:
            self.channel.push(min(count, 100))
            if self.channel.written > 1000:
                return

    def reasons(self):
        return []

    def state(self):
        return (0,)


class _Closed(Consumer):
    """Consumer that never takes anything."""

    def demand(self):
        return 0

    def take(self, count):
        raise AssertionError(f"{self.name} must take nothing, not {count}")

    def holder(self):
        return None

    def state(self):
        return (0,)


def _fed(machine, consumer, room):
    channel = Channel(machine, f"to {consumer.name}")
    channel.attach(consumer, room)
    machine.wake(_Giver(machine, channel))
    return channel


def test_a_grid_holds_two_passes_and_two_tiles_of_weights():
    """What it takes before its results leave is what both banks and all registers hold."""
    machine = Machine()
    columns = TINY.grid_columns
    tiles = even_packets(9, 4, final=True)
    grid = Grid(machine, "grid", TINY, tiles)
    grid.activation = Port(machine, "activation", grid, 2)
    grid.weight = Port(machine, "weight", grid, 4)
    grid.results = ResultDrain(machine, "result", grid, np.full(9, 4))
    grid.results.channel = Channel(machine, "out")
    grid.results.channel.attach(_Closed("nowhere"), 3)
    activations = _fed(machine, grid.activation, 1)
    weights = _fed(machine, grid.weight, 1)
    machine.run()
    assert grid.results.channel.written == 3
    # Two banks of 4 rows, the port's buffer, and the channel.
    assert activations.written == 2 * 4 + 2 + 1
    # Weights of both tiles, of the third in the shadow registers, of two in the port, and one.
    assert weights.written == (2 + 1) * columns + 4 + 1
    assert grid.reasons()[0][0] == "a free bank from result"


def test_a_stream_that_is_not_preferred_waits_for_quiet():
    machine, size = Machine(), np.array([4])
    count = TokenCount(machine, "tokens", 0)
    first, second = (BoxStream("AB"[n], size, 0 * size, [[(count, 1)][n:]]) for n in (0, 1))
    server = BoxServer(machine, [first, second])
    for stream in (first, second):
        stream.channel = Channel(machine, stream.name)
        stream.channel.attach(_Closed("sink"), 9)
    machine.wake(server)
    machine.run()
    assert (first.moved, second.moved) == (0, 0)
    assert server.give_way()
    machine.run()
    assert (first.moved, second.moved) == (0, 1)
    assert not server.give_way()
    assert server.reasons() == [("a token from nothing that sends any at tokens", None)]
    count.waiting = server
    count.take(1)
    machine.run()
    assert first.done
    assert not server.reasons()
