"""tma-b: items TMA-8 and TMA-9, groups of stores and replaced fields, and named regressions."""

import dataclasses

import numpy as np
import pytest

from hw.arch.boxes.descriptor_fields import DescriptorField
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.tma.barriers.barrier_layouts import BarrierOperation
from hw.tma.standalone.unit_commands import TmaOperation
from sim.tb._refusals import with_field
from tests.hw.tma.model import random_bytes
from tests.hw.tma.standalone.item_bench import ItemBench
from tests.hw.tma.standalone.native_unit import UnitCommand
from tests.native.native_memory import MemoryTiming

pytestmark = pytest.mark.slow

_LOAD, _STORE = TmaOperation.LOAD, TmaOperation.STORE
_ORIGIN = 1 << 40
_TABLE, _DATA = 0x100, 0x1000
_TX = 1 << 21
#: A tile, and a tensor of tiles below one another.
_TILE = Descriptor(
    base=_ORIGIN + _DATA,
    format=ElementFormat.BF16,
    dims=(32, 160),
    strides=(64,),
    box=(32, 16),
)
_BYTES = _TILE.box_bytes


@pytest.fixture
def model(tma_unit):
    return tma_unit


def _pass_time(unit, cycles):
    """Wait for a phase that does not come."""
    unit.operate(BarrierOperation.INIT, 3, arrivals=1)
    assert unit.wait(3, 0, cycles)["timed_out"]


@pytest.mark.must("tma-b", goal="TMA-8: groups; wait.read: source reusable; wait: visible")
def test_tma_8_groups_of_stores(model, seed, figure):
    timing = MemoryTiming(latency=1500, late_writes=True, stalls=(0, 0, 0, 0.3, 0))
    bench = ItemBench(model, seed, origin=_ORIGIN, timing=timing)
    tile_bytes = (small := dataclasses.replace(_TILE, box=(32, 4))).box_bytes
    unit, pointer = bench.unit, bench.describe(_TABLE, small)
    assert bench.code(TmaOperation.PREFETCH, pointer) == 0
    groups, commands = ((0, 1), (2,), (), (3, 4, 5)), []
    before, expected = bench.memory.copy(), bench.memory.copy()
    for tiles in groups:
        for tile in tiles:
            at = (0, 4 * tile)
            commands.append(UnitCommand(_STORE, pointer, at, {"local": tile_bytes * tile}))
            bench.expect_store(expected, small, at, tile_bytes * tile)
        commands.append(UnitCommand(TmaOperation.COMMIT))
    unit.give(commands)
    # As soon as a group is read, its source is written anew.
    reused, other, completions = 0, random_bytes(seed + 2, 3 * tile_bytes), []
    for _ in range(1000):
        read, stored = unit.groups
        assert stored == 0 and np.array_equal(bench.memory, before)
        for tiles in groups[reused:read]:
            if tiles:
                unit.fill(other[: tile_bytes * len(tiles)], tile_bytes * tiles[0])
        reused = read
        if read == len(groups):
            break
        _pass_time(unit, 1)
    # All sources are free before the first group is visible.
    assert unit.groups == (len(groups), 0)
    seen = []
    while len(completions) < len(commands):
        completions += unit.take(1)
        assert completions[-1] == (len(completions) - 1, 0)
        _, stored = unit.groups
        commits = sum(
            commands[number].operation is TmaOperation.COMMIT for number, _ in completions
        )
        assert stored >= commits
        seen += [stored] * (stored not in seen)
        for tile in (tile for tiles in groups[:stored] for tile in tiles):
            where = slice(_DATA + tile_bytes * tile, _DATA + tile_bytes * (tile + 1))
            assert np.array_equal(bench.memory[where], expected[where])
        if stored < 2:
            after = slice(_DATA + 3 * tile_bytes, None)
            assert np.array_equal(bench.memory[after], before[after])
    assert np.array_equal(bench.memory, expected) and unit.groups == (4, 4)
    assert {0, 1} < set(seen) and seen == sorted(seen)
    figure(f"{len(groups)} groups all read before the first is stored; then stored {seen}")


def _replaced(described, field, index, value):
    """The descriptor with another value in a field, in Python."""
    name = field.name.lower()
    old = getattr(described, name, None)
    if isinstance(old, tuple):
        value = tuple(value if at == index else each for at, each in enumerate(old))
    return dataclasses.replace(described, **{name: value})


@pytest.mark.must("tma-b", goal="TMA-9: fields replaced between uses; prefetch; one issuer")
def test_tma_9_replaced_and_prefetched(model, seed, figure):
    bench = ItemBench(model, seed, origin=_ORIGIN, timing=MemoryTiming(latency=60, jitter=40))
    described = dataclasses.replace(_TILE, dims=(32, 100), strides=(80,))
    pointer = bench.describe(_TABLE, described)
    assert bench.code(TmaOperation.PREFETCH, pointer) == 0
    reads = bench.unit.memory.beats["R"]
    assert reads == 128 * 8 // 256
    commands = [UnitCommand(_LOAD, pointer, (0, 90))]
    bench.expect_load(described, (0, 90))
    uses = (
        (DescriptorField.BASE, 0, _ORIGIN + _DATA + 0x800),
        (DescriptorField.BOX, 1, 7),
        (DescriptorField.DIMS, 1, 93),
        (DescriptorField.STRIDES, 0, 112),
        (DescriptorField.BOX, 0, 24),
        (DescriptorField.DIMS, 0, 21),
    )
    for number, (field, index, value) in enumerate(uses, start=1):
        described = _replaced(described, field, index, value)
        given = (field.value, index, value & 0xFFFFFFFF, value >> 32)
        commands.append(UnitCommand(TmaOperation.REPLACE, pointer, given))
        commands.append(UnitCommand(_LOAD, pointer, (0, 90), {"local": _BYTES * number}))
        bench.expect_load(described, (0, 90), _BYTES * number)
    # Two dimensions become one.
    given = (DescriptorField.RANK.value, 0, 1)
    row = dataclasses.replace(
        described, dims=described.dims[:1], strides=(), box=described.box[:1], element_strides=()
    )
    commands.append(UnitCommand(TmaOperation.REPLACE, pointer, given))
    commands.append(UnitCommand(_LOAD, pointer, (0, 90), {"local": 7 * _BYTES}))
    bench.expect_load(row, (0,), 7 * _BYTES)
    assert bench.codes(*commands) == [0] * len(commands)
    bench.check()
    packed = with_field(described.pack(), "rank", 0, 1)
    assert bench.memory[_TABLE : _TABLE + 128].tobytes() == packed
    # A box that is prefetched needs one command and one read of no descriptor.
    wide = dataclasses.replace(_TILE, box=(32, 64))
    pointer = bench.describe(_TABLE + 128, wide)
    assert bench.code(TmaOperation.PREFETCH, pointer) == 0
    bursts, beats = (bench.unit.memory.beats[each] for each in ("AR", "R"))
    bench.expect_load(wide, (0, 3))
    assert bench.code(_LOAD, pointer, (0, 3)) == 0
    bench.check()
    assert bench.unit.memory.beats["R"] - beats == wide.box_bytes * 8 // 256
    figure(
        f"{len(uses) + 1} fields replaced; one command moves {wide.box_bytes // 2:,} elements in "
        f"{bench.unit.memory.beats['AR'] - bursts} bursts"
    )


class _Ring:
    """Stages of a ring: a slot, a full and an empty barrier, and the phases that each had."""

    def __init__(self, bench, stages):
        self.unit, self.stages, self.turns = bench.unit, stages, [0] * stages
        self.pointer = bench.describe(_TABLE, _TILE)
        self.bench = bench
        for barrier in range(2 * stages):
            self.unit.operate(BarrierOperation.INIT, barrier, arrivals=1)

    def load(self, stage, tile):
        """Wait until the stage is empty, and load a tile."""
        # Of an empty barrier that no consumer has arrived at, the phase before counts as complete.
        assert self.unit.wait(2 * stage + 1, (self.turns[stage] + 1) % 2, 2000)["passed"]
        self.unit.operate(BarrierOperation.ARRIVE_EXPECT, 2 * stage, arrivals=1, bytes=_BYTES)
        fields = {"local": _BYTES * stage, "signals": 1, "barrier": 2 * stage}
        self.unit.give([UnitCommand(_LOAD, self.pointer, (0, 16 * tile), fields)])

    def work(self, stage, tile):
        """Wait for a tile, and compare it."""
        assert self.unit.wait(2 * stage, self.turns[stage] % 2, 2000)["passed"]
        self.bench.expect_load(_TILE, (0, 16 * tile), _BYTES * stage)
        where = slice(_BYTES * stage, _BYTES * (stage + 1))
        assert np.array_equal(self.unit.dump()[where], self.bench.scratchpad[where])
        self.unit.operate(BarrierOperation.ARRIVE, 2 * stage + 1, arrivals=1)
        self.turns[stage] += 1

    def loop(self, tiles):
        """Tiles through the ring, from stage 0 on; each is loaded as early as its stage allows."""
        for number in range(tiles + self.stages - 1):
            if number < tiles:
                self.load(number % self.stages, number)
            done = number - self.stages + 1
            if done >= 0:
                self.work(done % self.stages, done)
                assert self.unit.take(1)[0][1] == 0


@pytest.mark.must("tma-b", goal="regression: a loop of a single iteration ends")
@pytest.mark.parametrize("stages", [1, 2])
def test_regression_a_loop_of_a_single_iteration(model, seed, stages, figure):
    bench = ItemBench(model, seed, origin=_ORIGIN, timing=MemoryTiming(latency=30, jitter=200))
    ring = _Ring(bench, stages)
    ring.loop(1)
    assert ring.turns == [1] + [0] * (stages - 1)
    figure(f"{stages} stages, one tile")


@pytest.mark.must("tma-b", goal="regression: parity follows from the history of a barrier")
def test_regression_parity_from_the_history_of_a_barrier(model, seed, figure):
    bench = ItemBench(model, seed, origin=_ORIGIN, timing=MemoryTiming(latency=30, jitter=200))
    ring, loops = _Ring(bench, 2), (1, 1, 3, 4, 1, 2)
    for tiles in loops:
        before = ring.turns[0]
        ring.loop(tiles)
        if before % 2:
            continue
        # The index of the next loop's tile is 0, but its parity is not, if the turns are odd.
        stale = bench.unit.wait(0, 0, 20)["passed"]
        fresh = bench.unit.wait(0, ring.turns[0] % 2, 20)["passed"]
        assert (stale, fresh) == (ring.turns[0] % 2, 0)
    assert sum(ring.turns) == sum(loops)
    figure(f"loops of {loops} tiles on the same barriers")


@pytest.mark.must("tma-b", goal="regression: ragged length 250")
def test_regression_a_ragged_length_of_250(model, seed, figure):
    bench = ItemBench(model, seed, origin=_ORIGIN, timing=MemoryTiming(latency=30, jitter=100))
    described = dataclasses.replace(_TILE, dims=(32, 250), box=(32, 64))
    target = dataclasses.replace(described, base=_ORIGIN + _DATA + 250 * 64 + 64, dims=(31, 90))
    pointers = bench.describe(_TABLE, described), bench.describe(_TABLE + 128, target)
    unit = bench.unit
    unit.operate(BarrierOperation.INIT, 0, arrivals=1)
    for tile in range(4):
        local = 4096 * (tile % 2)
        expect = {"arrivals": 1, "bytes": described.box_bytes}
        unit.operate(BarrierOperation.ARRIVE_EXPECT, 0, **expect)
        fields = {"local": local, "signals": 1, "barrier": 0}
        unit.give([UnitCommand(_LOAD, pointers[0], (0, 64 * tile), fields)])
        assert unit.wait(0, tile % 2, 4000)["passed"]
        bench.expect_load(described, (0, 64 * tile), local)
        bench.check()
        assert unit.take(1) == [(0, 0)]
    # The last tile has 58 rows and zeros; its store ends after 26 rows, and after 31 columns.
    assert not bench.scratchpad[4096 + 58 * 64 : 8192].any()
    expected = bench.memory.copy()
    bench.expect_store(expected, target, (0, 64), 4096)
    assert bench.code(_STORE, pointers[1], (0, 64), local=4096) == 0
    bench.check(expected)
    figure("4 tiles of 64 rows, the last with 58")


@pytest.mark.must("tma-b", goal="regression: bytes land before they are expected")
def test_regression_bytes_before_they_are_expected(model, seed, figure):
    bench = ItemBench(model, seed, origin=_ORIGIN)
    unit, pointer = bench.unit, bench.describe(_TABLE, _TILE)
    unit.operate(BarrierOperation.INIT, 2, arrivals=1)
    for phase in range(3):
        parity = phase % 2
        assert bench.code(_LOAD, pointer, (0, 16 * phase), signals=1, barrier=2) == 0
        answer = unit.operate(BarrierOperation.PENDING_COUNT, 2)
        assert (answer["phase"], answer["pending"], answer["tx"]) == (parity, 1, _TX - _BYTES)
        assert unit.wait(2, parity, 100)["timed_out"]
        if phase == 0:
            unit.operate(BarrierOperation.ARRIVE, 2, arrivals=1)
            assert unit.wait(2, parity, 100)["timed_out"]
            unit.operate(BarrierOperation.EXPECT, 2, bytes=_BYTES)
        else:
            unit.operate(BarrierOperation.ARRIVE_EXPECT, 2, arrivals=1, bytes=_BYTES)
        answer = unit.operate(BarrierOperation.PENDING_COUNT, 2)
        assert (answer["phase"], answer["pending"], answer["tx"]) == (1 - parity, 1, 0)
        assert unit.wait(2, parity)["passed"] and not unit.wait(2, 1 - parity, 100)["passed"]
    figure("3 phases, each completed once")


@pytest.mark.must("tma-b", goal="regression: a descriptor that changes between uses")
def test_regression_a_descriptor_changed_between_uses(model, seed, figure):
    bench = ItemBench(model, seed, origin=_ORIGIN, timing=MemoryTiming(latency=100, jitter=100))
    shifted = dataclasses.replace(_TILE, base=_TILE.base + 0x1000)
    pointer = bench.describe(_TABLE, _TILE)
    uses = 0
    for _ in range(3):
        for old, new in ((_TILE, shifted), (shifted, _TILE)):
            bench.expect_load(old, (0, 3))
            assert bench.code(_LOAD, pointer, (0, 3)) == 0
            bench.check()
            # Before the fence the old one is used, behind it the new one.
            bench.describe(_TABLE, new)
            bench.expect_load(old, (0, 4), _BYTES)
            bench.expect_load(new, (0, 4), 2 * _BYTES)
            codes = bench.codes(
                UnitCommand(_LOAD, pointer, (0, 4), {"local": _BYTES}),
                UnitCommand(TmaOperation.INVALIDATE, pointer),
                UnitCommand(_LOAD, pointer, (0, 4), {"local": 2 * _BYTES}),
            )
            assert codes == [0, 0, 0]
            bench.check()
            uses += 3
    # The unit itself changes it while uses of the old one are in flight.
    commands = []
    for number in range(6):
        base = (_TILE, shifted)[number % 2].base
        given = (DescriptorField.BASE.value, 0, base & 0xFFFFFFFF, base >> 32)
        commands.append(UnitCommand(TmaOperation.REPLACE, pointer, given))
        commands.append(UnitCommand(_LOAD, pointer, (0, 5), {"local": _BYTES * number}))
        bench.expect_load((_TILE, shifted)[number % 2], (0, 5), _BYTES * number)
    assert bench.codes(*commands) == [0] * len(commands)
    bench.check()
    figure(f"{uses} uses around changes by the host, 6 by the unit")
