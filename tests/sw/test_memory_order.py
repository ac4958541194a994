"""Order of loads and stores in memory: refused exactly where iterations meet without a token."""

import dataclasses
import random

import numpy as np
import pytest

from hw.arch.config import named
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.launch import Argument
from hw.arch.pmu import PmuProgram
from sim.run.job import Problem
from sw.chip_program import ChipProgram
from sw.kernels.numbered.scatter_add import scatter_add
from sw.prove import memory_order
from sw.prove.memory_order import memory_faults, overwritten, runs_meet, runs_of
from tests.units_chain import GemvChain

CHAIN = GemvChain(named["tiny"], 16, 8)
#: Bytes that a matrix, and a vector with its padding but that of the last element, take.
MATRIX, VECTOR = 16 * 32, 15 * 16 + 2
WEIGHTS = Argument(1 << 20, MATRIX)


def faults(x, y, repeat, *, ordered=True, weights=WEIGHTS):
    """Texts of the faults of the chain with other places of its vectors."""
    chain = GemvChain(CHAIN.config, 16, 8, ordered=ordered)
    found = memory_faults(chain.program, [weights, x, y], repeat)
    assert all(each.text.startswith(f"AGCU {each.agcu} ") for each in found)
    return tuple(each.text for each in found)


def test_a_chain_is_in_order_by_its_token():
    weights, x, y = CHAIN.arguments
    for repeat in (1, 2, 8, 10**6):
        assert faults(x, y, repeat, weights=Argument(1 << 40, MATRIX)) == ()
    assert faults(x, y, 8, ordered=False) == (
        "AGCU 0 load 1 must wait for a token of AGCU 0 store 1, which writes what it reads "
        "1 iterations later",
    )
    assert faults(x, y, 1, ordered=False) == ()
    assert weights.stride == MATRIX


@pytest.mark.parametrize("distance", range(-4, 5))
def test_only_what_was_stored_in_an_earlier_iteration_may_be_read(distance):
    """The vector is read so many iterations after it was written."""
    x = Argument(1 << 16, 256)
    y = Argument((1 << 16) + 256 * distance, 256)
    later = "AGCU 0 load 1 must not read where AGCU 0 store 1 writes in a later iteration"
    waits = "AGCU 0 load 1 must wait for a token of AGCU 0 store 1, which writes what it reads"
    for ordered in (True, False):
        found = faults(x, y, 4, ordered=ordered)
        if abs(distance) >= 4 or (distance > 0 and ordered):
            assert found == ()
        elif distance < 0:
            assert found == (later,)
        else:
            assert found == (waits + (f" {distance} iterations later" if distance else ""),)


@pytest.mark.parametrize("count", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_iterations_that_meet_are_those_whose_ranges_do(count, seed):
    """Against ranges compared pair by pair, strides of either sign."""
    rng = random.Random(seed)
    for _ in range(count):
        stride = 16 * rng.randint(-20, 20)
        x = Argument(1 << 16, stride)
        y = Argument((1 << 16) + 16 * rng.randint(-60, 60), stride)
        repeat = rng.randint(1, 6)
        meets = {
            i - j
            for i in range(repeat)
            for j in range(repeat)
            if x.value + i * stride < y.value + j * stride + VECTOR
            and y.value + j * stride < x.value + i * stride + VECTOR
        }
        found = faults(x, y, repeat, ordered=False)
        assert bool(found) == bool(meets), (x, y, repeat)
        if meets:
            assert ("wait for a token" in found[0]) == (min(meets) >= 0)


@pytest.mark.parametrize("count", [60, pytest.param(600, marks=pytest.mark.slow)])
def test_rows_between_others_meet_where_bytes_do(count, seed):
    """Rows of two accesses with one stride, against sets of bytes."""
    rng = random.Random(seed)

    def access(stride):
        start, pitch, size = rng.randrange(100), rng.randint(1, 40), rng.randint(1, 12)
        first = np.array([start + row * pitch for row in range(rng.randint(1, 5))])
        runs = first, first + size
        where = {byte for begin in first for byte in range(begin, begin + size)}
        return memory_order._Access("", None, min(where), max(where) + 1, stride, runs), where

    for _ in range(count):
        stride, repeat = rng.choice((-1, 1)) * rng.randint(1, 50), rng.randint(1, 6)
        (one, first), (other, second) = access(stride), access(stride)
        met = [
            distance
            for distance in range(1 - repeat, repeat)
            if {each + distance * stride for each in first} & second
        ]
        found = memory_order._distances(one, other, repeat)
        assert found == (range(met[0], met[-1] + 1) if met else range(0))


def test_other_strides_must_never_meet():
    x = Argument(1 << 16, 256)
    assert faults(x, Argument((1 << 16) + 8 * 256, 512), 8) == ()
    assert len(faults(x, Argument((1 << 16) + 8 * 256, -512), 8)) == 1


def in_place():
    """A table that is loaded, changed in a PMU and stored where it was, and its arguments."""
    problem = Problem(scatter_add, named["small"], {"V": 600, "D": 20, "N": 90}, None, None)
    compiled = problem.compile()
    program = ChipProgram.unpack(problem.config, compiled.parts[0].image)
    return program, [Argument(1 << 20), Argument(1 << 21), Argument(1 << 22)]


def test_what_is_stored_may_overwrite_what_it_depends_on():
    program, arguments = in_place()
    assert memory_faults(program, arguments) == ()
    assert set(overwritten(program, arguments).values()) == {True}
    assert len(memory_faults(program, arguments, 2)) > 0


def test_a_store_that_may_begin_before_the_last_row_is_read_is_refused():
    """The table's slot is read in two turns, so the first one is filled by half of the rows."""
    program, arguments = in_place()
    at, tile = next(
        (at, each)
        for at, each in program.tiles.items()
        if isinstance(each.unit, PmuProgram) and each.unit.indexed
    )
    unit = tile.unit
    writer, reader = unit.writers[0], unit.readers[0]
    rows, across = reader.loops[:2]
    turns = dataclasses.replace(reader.windows, base=2)
    half = dataclasses.replace(rows, base=rows.base // 2)
    writer = dataclasses.replace(
        writer, windows=turns, loops=(half, across), beyond=None, last_level=None
    )
    reader = dataclasses.replace(reader, windows=turns, loops=(half, across))
    unit = dataclasses.replace(unit, writers=(writer, None), readers=(reader, None), indexed=None)
    tiles = {**program.tiles, at: dataclasses.replace(tile, unit=unit)}
    early = dataclasses.replace(program, tiles=tiles)
    # Each half is written where it was read.
    assert memory_faults(early, arguments) == ()
    agcus = {index: moved(each, 20 * rows.base) for index, each in early.agcus.items()}
    early = dataclasses.replace(early, agcus=agcus)
    (fault,) = memory_faults(early, arguments)
    assert "must wait for a token of AGCU" in fault.text
    assert False in overwritten(early, arguments).values()


def moved(agcu, distance):
    """An AGCU whose stores begin so many bytes further, in whole vectors."""
    stored = {
        program.descriptor for each in agcu.stores if each is not None for program in each.programs
    }
    descriptors = list(agcu.descriptors)
    for number in stored:
        descriptor, argument = descriptors[number]
        base = descriptor.base + distance // 32 * 32
        descriptors[number] = dataclasses.replace(descriptor, base=base), argument
    return dataclasses.replace(agcu, descriptors=tuple(descriptors))


@pytest.mark.parametrize("count", [60, pytest.param(600, marks=pytest.mark.slow)])
def test_runs_meet_where_bytes_do(count, seed):
    rng = np.random.default_rng(seed)
    met = 0
    for _ in range(count):
        found = [random_runs(rng) for _ in range(2)]
        wanted = bool(found[0][1] & found[1][1])
        assert runs_meet(found[0][0], found[1][0]) == wanted
        met += wanted
    assert 0 < met < count


def random_runs(rng):
    """Runs of boxes at random points of a small tensor, and their bytes one by one."""
    rank = int(rng.integers(1, 4))
    dims = tuple(int(each) for each in rng.integers(1, 6, rank))
    strides = tuple(16 * int(each) for each in rng.integers(1, 9, rank - 1))
    box = (4, *(int(each) for each in rng.integers(1, 3, rank - 1)))
    shortfall = int(rng.integers(0, dims[0])) if rank > 1 else 0
    descriptor = Descriptor(
        base=0,
        format=ElementFormat.INT32,
        dims=dims,
        strides=strides,
        box=box,
        shortfall=shortfall,
    )
    points = np.zeros((int(rng.integers(1, 3)), 5), np.int64)
    points[:, :rank] = rng.integers(-1, dims, (len(points), rank))
    base, touched = 16 * int(rng.integers(0, 4)), set()
    for point in points[:, :rank]:
        for inside in np.ndindex(box):
            place = point + inside
            end = np.array(dims)
            end[0] -= shortfall * (rank > 1 and place[1] == dims[1] - 1)
            if ((place >= 0) & (place < end)).all():
                begin = base + int((place * (4, *strides)).sum())
                touched |= set(range(begin, begin + 4))
    runs = runs_of(descriptor, base, points)
    assert {byte for first, end in zip(*runs) for byte in range(first, end)} == touched
    return runs, touched


def test_too_many_runs_are_not_enumerated(monkeypatch):
    monkeypatch.setattr(memory_order, "_MOST_RUNS", 3)
    descriptor = Descriptor(
        base=0, format=ElementFormat.INT32, dims=(4, 8), strides=(16,), box=(4, 4)
    )
    assert runs_of(descriptor, 0, np.zeros((1, 5), np.int64)) is None
