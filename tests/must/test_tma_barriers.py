"""tma-b: items MBAR-1 to MBAR-4: barriers beside the scratchpad of a TMA unit on RTL."""

import functools
import random

import numpy as np
import pytest

from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.error_codes import BarrierError
from hw.tma.barriers.barrier_layouts import BarrierOperation as Op
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.bank_model import BankModel
from tests.hw.tma.standalone.item_bench import ITEM_SIZES, ItemBench
from tests.hw.tma.standalone.native_unit import UnitCommand
from tests.native.native_memory import MemoryTiming

pytestmark = pytest.mark.slow

_TABLE, _DATA = 0x100, 0x1000
_MOST = (1 << 20) - 1
_TX = 1 << 21
_TILE = Descriptor(
    base=_DATA, format=ElementFormat.BF16, dims=(32, 160), strides=(64,), box=(32, 16)
)
_BYTES = _TILE.box_bytes


@pytest.fixture
def model(tma_unit):
    return tma_unit


class _Barrier:
    """One barrier of a unit: its operations by name, and its state."""

    def __init__(self, bench, number):
        self.unit, self.number = bench.unit, number

    def __call__(self, operation, arrivals=0, bytes=0, **fields):
        """The error of an operation."""
        fields |= {"arrivals": arrivals, "bytes": bytes}
        return self.unit.operate(operation, self.number, **fields)["error"]

    @property
    def state(self):
        """Phase, expected and pending arrivals, bytes, flag."""
        answer = self.unit.operate(Op.PENDING_COUNT, self.number)
        assert answer["error"] == 0
        tx = answer["tx"] - _TX * (answer["tx"] >= _TX // 2)
        return (answer["phase"], answer["expected"], answer["pending"], tx, answer["flag"])

    def passed(self, parity, cycles=0):
        """What a test, or a try, of a parity gives."""
        result = self.unit.wait(self.number, parity, cycles)
        assert result["error"] == 0 and result["passed"] + result["timed_out"] == 1
        return result["passed"]


@pytest.mark.must("tma-b", goal="MBAR-1: phase, arrivals to 2^20 - 1, signed bytes to 2^20 - 1")
def test_mbar_1_state(model, seed, figure):
    bench = ItemBench(model, seed)
    for number in range(ITEM_SIZES.barriers):
        at = _Barrier(bench, number)
        assert at(Op.PENDING_COUNT) == BarrierError.UNINITIALISED.value
        for arrivals in (1, _MOST):
            assert at(Op.INIT, arrivals) == 0
            assert at.state == (0, arrivals, arrivals, 0, 0)
        assert at(Op.INIT, 0) == BarrierError.EXPECTED.value
        # Bytes reach both limits, and not one beyond.
        assert at(Op.INIT, _MOST) == at(Op.EXPECT, bytes=_MOST) == 0
        assert at.state == (0, _MOST, _MOST, _MOST, 0)
        assert at(Op.EXPECT, bytes=1) == BarrierError.TX.value
        assert at.state == (0, _MOST, _MOST, _MOST, 1)
        for _ in range(2):
            assert at(Op.COMPLETE, bytes=_MOST) == 0
        assert at.state == (0, _MOST, _MOST, -_MOST, 1)
        assert at(Op.COMPLETE, bytes=1) == BarrierError.TX.value
        assert at(Op.EXPECT, bytes=_MOST) == 0
        # So do arrivals, and the phase turns with the last of them.
        assert at(Op.ARRIVE, _MOST - 1) == 0
        assert at.state == (0, _MOST, 1, 0, 1)
        assert at(Op.ARRIVE, 2) == BarrierError.ARRIVALS.value
        assert at(Op.ARRIVE, 1) == 0
        assert at.state == (1, _MOST, _MOST, 0, 1)
        # The flag stays until the next init.
        assert at(Op.INIT, 3) == 0 and at.state == (0, 3, 3, 0, 0)
        assert at(Op.INVALIDATE) == 0
        assert at(Op.ARRIVE, 1) == BarrierError.UNINITIALISED.value
    figure(f"{ITEM_SIZES.barriers} barriers, counts to {_MOST:,}")


@pytest.mark.must("tma-b", goal="MBAR-2: a phase completes iff pending and bytes are 0, and once")
def test_mbar_2_completion(model, seed, figure):
    bench = ItemBench(model, seed, timing=MemoryTiming(latency=40, jitter=40))
    at, pointer = _Barrier(bench, 1), bench.describe(_TABLE, _TILE)
    assert at(Op.INIT, 2) == 0
    load = {"signals": 1, "barrier": 1}
    orders = 0
    # Each order of two arrivals, the expectation and the bytes of a box; of the first three, each
    # by itself leaves the phase open.
    steps = {
        "one": lambda: at(Op.ARRIVE, 1),
        "other": lambda: at(Op.ARRIVE_EXPECT, 1, _BYTES),
        "bytes": lambda: bench.code(TmaOperation.LOAD, pointer, (0, 16), **load),
    }
    for names in (
        ("one", "other", "bytes"),
        ("one", "bytes", "other"),
        ("other", "one", "bytes"),
        ("other", "bytes", "one"),
        ("bytes", "one", "other"),
        ("bytes", "other", "one"),
    ):
        phase = orders % 2
        pending, tx = 2, 0
        for name in names:
            assert at.state == (phase, 2, pending, tx, 0), (names, name)
            assert not at.passed(phase)
            assert steps[name]() == 0
            pending -= name != "bytes"
            tx += _BYTES * ((name == "other") - (name == "bytes"))
        # At once the phase has turned and expects its arrivals again; no second phase follows.
        assert at.state == (1 - phase, 2, 2, 0, 0)
        assert at.passed(phase) and not at.passed(1 - phase, 50)
        orders += 1
    # Bytes alone complete nothing while an arrival is pending, nor arrivals alone.
    assert at(Op.EXPECT, bytes=48) == at(Op.COMPLETE, bytes=48) == 0
    assert at.state == (0, 2, 2, 0, 0)
    assert at(Op.EXPECT, bytes=16) == at(Op.ARRIVE, 2) == 0
    assert at.state == (0, 2, 0, 16, 0)
    assert at(Op.COMPLETE, bytes=16) == 0 and at.state == (1, 2, 2, 0, 0)
    # The last arrival leaves it open, too, while bytes have come that nobody has expected.
    assert at(Op.COMPLETE, bytes=48) == at(Op.ARRIVE, 2) == 0
    assert at.state == (1, 2, 0, -48, 0) and not at.passed(1)
    assert at(Op.EXPECT, bytes=16) == 0 and at.state == (1, 2, 0, -32, 0)
    assert at(Op.EXPECT, bytes=32) == 0 and at.state == (0, 2, 2, 0, 0)
    figure(f"{orders} orders of arrivals, expectation and bytes of a load")


@pytest.mark.must("tma-b", goal="MBAR-3: every operation, test and try wait by parity, time-out")
def test_mbar_3_operations_and_waits(model, seed, figure):
    bench = ItemBench(model, seed)
    at = _Barrier(bench, 2)
    assert at(Op.INIT, 4) == 0
    assert at(Op.ARRIVE, 1) == at(Op.ARRIVE_NO_COMPLETE, 2) == 0
    assert at.state == (0, 4, 1, 0, 0)
    assert at(Op.ARRIVE_EXPECT, 1, 64) == 0
    assert at.state == (0, 4, 0, 64, 0) and not at.passed(0)
    assert at(Op.EXPECT, bytes=32) == at(Op.COMPLETE, bytes=64) == 0
    assert at.state == (0, 4, 0, 32, 0)
    assert at(Op.COMPLETE, bytes=32) == 0
    assert at.state == (1, 4, 4, 0, 0) and at.passed(0) and not at.passed(1)
    # An arrival that is not to complete; one that leaves the barrier for good.
    assert at(Op.ARRIVE, 3) == 0
    assert at(Op.ARRIVE_NO_COMPLETE, 1) == BarrierError.COMPLETES.value
    assert at.state == (1, 4, 1, 0, 1)
    assert at(Op.DROP, 1) == 0
    assert at.state == (0, 3, 3, 0, 1)
    assert at(Op.INIT, 2) == at(Op.DROP, 2) == 0
    assert at(Op.ARRIVE, 1) == BarrierError.RETIRED.value
    assert at(Op.INIT, 1) == 0
    # A try waits as long as it is told, and ends with the bytes of a load that is on its way.
    bench.describe(_TABLE, _TILE)
    for cycles in (0, 1, 500):
        assert not at.passed(0, cycles)
    assert at(Op.ARRIVE_EXPECT, 1, _BYTES) == 0
    fields = {"signals": 1, "barrier": 2}
    bench.unit.give([UnitCommand(TmaOperation.LOAD, _TABLE, (0, 0), fields)])
    assert not at.passed(0) and at.passed(0, 2000) and not at.passed(1)
    assert bench.unit.take(1) == [(0, 0)]
    # What is none: an operation, a barrier, a wait at a barrier without a phase.
    beyond = _Barrier(bench, ITEM_SIZES.barriers)
    assert beyond(Op.ARRIVE, 1) == BarrierError.INDEX.value
    assert bench.unit.wait(beyond.number, 0, 9)["error"] == BarrierError.INDEX.value
    assert bench.unit.wait(3, 0, 9)["error"] == BarrierError.UNINITIALISED.value
    (answer,) = bench.unit.operate_all([{"operation": None, "barrier": 2}])
    assert answer["error"] == BarrierError.OPERATION.value
    figure(f"{len(Op)} operations")


def _drawn(rng, counts):
    """A random operation that is refused seldom."""
    barrier = rng.randrange(ITEM_SIZES.barriers)
    at = counts.each[barrier]
    if not at.valid or not at.wanted or rng.random() < 0.002:
        kind = rng.choice([Op.INIT] * 9 + [Op.INVALIDATE])
        return {"operation": kind, "barrier": barrier, "arrivals": rng.choice([1, 2, 5, _MOST])}
    left = at.wanted - at.came
    owed = at.asked - at.landed
    size = rng.choice([16, 512, rng.randrange(1, 5000)])
    kinds = [Op.ARRIVE, Op.ARRIVE_EXPECT, Op.EXPECT, Op.COMPLETE, Op.COMPLETE, Op.PENDING_COUNT]
    kind = rng.choice([*kinds, Op.ARRIVE_NO_COMPLETE, Op.DROP if at.wanted > 1 else Op.ARRIVE])
    arrivals = rng.choice([left, min(left, 1), rng.randint(0, left)]) if left else 0
    if kind is Op.DROP:
        arrivals = min(arrivals, at.wanted - at.dropped - 1)
    if kind is Op.COMPLETE and owed > 0 and rng.random() < 0.7:
        size = owed
    if kind is Op.EXPECT and owed < 0 and rng.random() < 0.7:
        size = -owed
    return {"operation": kind, "barrier": barrier, "arrivals": arrivals, "bytes": size}


@pytest.mark.must("tma-b", goal="MBAR-4: random interleavings lose, double and skip no phase")
def test_mbar_4_no_phase_is_lost_doubled_or_skipped(model, seed, figure):
    rng = random.Random(seed)
    # Random operations, one per cycle, against a model that counts what came.
    bench = ItemBench(model, seed)
    counts = BankModel(ITEM_SIZES.barriers, _MOST, _MOST)
    given, expected = [], []
    for _ in range(20_000):
        given.append(_drawn(rng, counts))
        fields = given[-1] | {"operation": given[-1]["operation"].value}
        expected.append(counts.apply(**fields))
        expected[-1]["tx"] %= _TX
    assert bench.unit.operate_all(given) == expected
    refused = sum(answer["error"] != 0 for answer in expected)
    assert counts.completed > len(given) // 20 and refused < len(given) // 10
    # The bytes of loads meet arrivals in any order; a consumer waits phase by phase.
    timing = MemoryTiming(latency=20, jitter=150, stalls=(0.2, 0.5, 0, 0, 0), early_reads=True)
    bench = ItemBench(model, seed, timing=timing)
    at, pointer, seen = _Barrier(bench, 0), bench.describe(_TABLE, _TILE), 0
    assert at(Op.INIT, 3) == 0
    for number in range(60):
        tile = np.frombuffer(rng.randbytes(_BYTES), np.uint8)
        bench.memory[_DATA : _DATA + _BYTES] = tile
        halves = rng.choice([0, 16, _BYTES - 16])
        load = [UnitCommand(TmaOperation.LOAD, pointer, (0, 0), {"signals": 1, "barrier": 0})]
        steps = [
            functools.partial(at, Op.ARRIVE, 1),
            functools.partial(at, Op.ARRIVE_EXPECT, 1, halves),
            functools.partial(at, Op.EXPECT, bytes=_BYTES - halves),
            functools.partial(bench.unit.give, load),
        ]
        rng.shuffle(steps)
        for step in steps:
            assert not step()
            assert not at.passed(number % 2)
        # The last arrival comes with or after the last expectation.
        assert at(Op.ARRIVE, 1) == 0
        assert at.passed(number % 2, 3000) and not at.passed(1 - number % 2, rng.randrange(50))
        assert np.array_equal(bench.unit.dump()[:_BYTES], tile)
        assert bench.unit.take(1) == [(0, 0)]
        seen += 1
    assert at.state == (seen % 2, 3, 3, 0, 0)
    figure(f"{len(given):,} operations, {counts.completed:,} phases; {seen} tiles, each seen once")
