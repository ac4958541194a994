# amaranth: UnusedElaboratable=no
"""The barrier against a mirror in Python, and against the story it exists for."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from amaranth.sim import Simulator

from hw.arch.errors import BadInputError
from hw.lib.barrier import Barrier


@dataclass
class Mirror:
    """The rules of docs/barrier.md, one cycle at a time."""

    bound: int
    expected: int = 0
    pending: int = 0
    phase: int = 0
    tx: int = 0
    error: bool = False
    completed: int = 0

    def init(self, expected: int) -> None:
        self.expected = self.pending = expected
        self.phase = self.tx = self.completed = 0
        self.error = False

    def step(self, arrive: int = 0, drop: int = 0, expect: int = 0, complete: int = 0) -> None:
        if self.error or not (arrive or drop or expect or complete):
            return
        pending = self.pending - arrive - drop
        tx = self.tx + expect - complete
        if pending < 0 or abs(tx) > self.bound or (self.expected == 0 and self.tx == 0):
            self.error = True
            return
        self.expected -= drop
        self.pending, self.tx = pending, tx
        if pending == 0 and tx == 0:
            self.phase ^= 1
            self.pending = self.expected
            self.completed += 1


def drive(dut: Barrier, ctx: Any, **values: int) -> None:
    for name in ("init", "expected", "arrive", "drop", "expect", "complete"):
        if hasattr(dut, f"i_{name}"):
            ctx.set(getattr(dut, f"i_{name}"), values.get(name, 0))


def compare(dut: Barrier, ctx: Any, mirror: Mirror) -> None:
    assert ctx.get(dut.o_phase) == mirror.phase
    assert ctx.get(dut.o_pending) == mirror.pending
    assert ctx.get(dut.o_expected) == mirror.expected
    assert ctx.get(dut.o_error) == mirror.error
    if dut.tx_bytes:
        assert ctx.get(dut.o_tx) == mirror.tx


def simulate(dut: Barrier, testbench: Any) -> None:
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()


def phase_work(rng: random.Random, expected: int, bound: int) -> list[dict[str, int]]:
    """One phase's operations in a random but legal order: arrivals, drops, bytes both ways."""
    operations: list[dict[str, int]] = []
    left = expected
    while left:
        count = rng.randint(1, left)
        left -= count
        operations.append({"drop" if rng.random() < 0.1 and expected > 1 else "arrive": count})
    if bound:
        total = 0
        for _ in range(rng.randint(0, 3)):
            size = rng.randint(1, (bound - total) // 4 or 1)
            total += size
            operations.append({"expect": size})
        while total:
            size = rng.randint(1, total)
            total -= size
            operations.append({"complete": size})
    rng.shuffle(operations)
    return operations


@pytest.mark.few(1)
@pytest.mark.parametrize("bound", [0, 200])
def test_random_interleavings_lose_double_and_skip_no_phase(
    bound: int, seed: int, draws: Callable[[int, int], int]
) -> None:
    rng = random.Random(seed)
    arrivals = 7
    dut = Barrier(arrivals=arrivals, tx_bytes=bound)
    mirror = Mirror(bound)
    interleavings = draws(3_000, 10_000) if bound else 2_000

    async def bench(ctx: Any) -> None:
        watched = 0
        for _ in range(interleavings):
            if mirror.expected == 0 or mirror.error:
                expected = rng.randint(1, arrivals)
                drive(dut, ctx, init=1, expected=expected)
                await ctx.tick()
                mirror.init(expected)
                compare(dut, ctx, mirror)
                watched = 0
            completed = mirror.completed
            operations = phase_work(rng, mirror.expected, bound)
            while operations:
                merged: dict[str, int] = {}
                while operations and rng.random() < 0.8 and not operations[0].keys() & merged:
                    merged |= operations.pop(0)
                drive(dut, ctx, **merged)
                before = ctx.get(dut.o_phase)
                await ctx.tick()
                mirror.step(**merged)
                compare(dut, ctx, mirror)
                # A consumer that waits phase by phase: it sees each flip once.
                watched += ctx.get(dut.o_phase) != before
            assert watched == mirror.completed
            # Operations in an unlucky order may settle early; all of them leave the barrier
            # settled, so at least one phase completed unless bytes of the next are due.
            assert mirror.error or mirror.completed > completed
            if mirror.tx != 0:
                mirror.expected = 0

    simulate(dut, bench)


def test_bytes_before_they_are_expected_complete_one_phase() -> None:
    dut = Barrier(arrivals=1, tx_bytes=4096)

    async def bench(ctx: Any) -> None:
        drive(dut, ctx, init=1, expected=1)
        await ctx.tick()
        phases = []
        for operation in ({"complete": 4096}, {"arrive": 1, "expect": 4096}, {}, {}):
            drive(dut, ctx, **operation)
            await ctx.tick()
            phases.append(ctx.get(dut.o_phase))
        assert phases == [0, 1, 1, 1]

    simulate(dut, bench)


@pytest.mark.parametrize(
    ("operations", "errors"),
    [
        ([{"arrive": 3}], [1]),
        ([{"arrive": 2}, {"arrive": 2}], [0, 0]),
        ([{"arrive": 2, "drop": 1}], [1]),
        ([{"expect": 64}, {"arrive": 2}, {"arrive": 1}], [0, 0, 1]),
        ([{"expect": 100}, {"expect": 1}], [0, 1]),
        ([{"complete": 100}, {"complete": 1}], [0, 1]),
        ([{"complete": 100}, {"complete": 100, "expect": 100}], [0, 0]),
        ([{"drop": 2}, {"arrive": 1}], [0, 1]),
        ([{"drop": 2}, {"expect": 1}], [0, 1]),
        # The last phase is complete when its bytes have landed, and not before.
        ([{"expect": 9}, {"drop": 2}, {"complete": 9}, {"complete": 1}], [0, 0, 0, 1]),
        ([{"expect": 9}, {"drop": 2}, {"complete": 8}, {"arrive": 1}], [0, 0, 0, 1]),
        ([{"arrive": 3}, {"arrive": 1}, {}], [1, 1, 1]),
    ],
)
def test_errors_are_found_and_stick(operations: list[dict[str, int]], errors: list[int]) -> None:
    dut = Barrier(arrivals=3, tx_bytes=100)

    async def bench(ctx: Any) -> None:
        drive(dut, ctx, init=1, expected=2)
        await ctx.tick()
        for operation, error in zip(operations, errors):
            drive(dut, ctx, **operation)
            await ctx.tick()
            assert ctx.get(dut.o_error) == error
        drive(dut, ctx, init=1, expected=1)
        await ctx.tick()
        assert ctx.get(dut.o_error) == 0

    simulate(dut, bench)


@pytest.mark.parametrize("initialised", [False, True])
@pytest.mark.parametrize("name", ["arrive", "drop", "expect", "complete"])
def test_a_barrier_that_expects_nothing_takes_nothing(name: str, initialised: bool) -> None:
    dut = Barrier(arrivals=3, tx_bytes=100)

    async def bench(ctx: Any) -> None:
        drive(dut, ctx, init=initialised, expected=0)
        await ctx.tick()
        compare(dut, ctx, Mirror(100))
        drive(dut, ctx, **{name: 1})
        await ctx.tick()
        assert ctx.get(dut.o_error) == 1 and ctx.get(dut.o_phase) == 0

    simulate(dut, bench)


def test_a_drop_lowers_the_expected_count_before_its_phase_ends() -> None:
    dut = Barrier(arrivals=3, tx_bytes=0)

    async def bench(ctx: Any) -> None:
        drive(dut, ctx, init=1, expected=3)
        await ctx.tick()
        drive(dut, ctx, drop=1)
        await ctx.tick()
        assert (ctx.get(dut.o_phase), ctx.get(dut.o_expected), ctx.get(dut.o_pending)) == (0, 2, 2)

    simulate(dut, bench)


@pytest.mark.parametrize(("arrivals", "tx_bytes"), [(0, 0), (1 << 20, 0), (1, -1), (1, 1 << 20)])
def test_parameters_outside_their_domain_are_refused(arrivals: int, tx_bytes: int) -> None:
    with pytest.raises(
        BadInputError, match=r"Barrier (arrivals|transaction bytes) must be an integer from .*not"
    ):
        Barrier(arrivals=arrivals, tx_bytes=tx_bytes)
