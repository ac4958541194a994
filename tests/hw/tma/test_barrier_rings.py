"""Rings of stages between producer and consumer, synchronised by a barrier bank."""

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest

from hw.tma.barriers.barrier_bank import BarrierBank
from hw.tma.barriers.barrier_layouts import BarrierOperation as Op
from tests.hw.tma.bank_bench import act, simulate, wait
from tests.hw.tma.ring_actors import Ring
from tests.slow_cases import quick_first

#: Cycles of a turn of a stage that are neither load nor work: two waits, three operations and the
#: steps of the actors between them.
_HANDSHAKE = 9
_COMPUTE = 12


def _periods(ring: Ring) -> list[int]:
    """Cycles from each tile's work to the next one's."""
    return [later - former for former, later in itertools.pairwise(ring.starts)]


@pytest.mark.parametrize("stages", quick_first([1, 2, 5, 16, 3, 4, *range(6, 16)], 4))
def test_h100_1_a_ring_has_no_bubble_once_a_load_is_no_longer_than_the_work(stages: int) -> None:
    # While one stage is worked on, the others turn: a load and a handshake must fit there.
    spare = (stages - 1) * _COMPUTE - _HANDSHAKE
    ring = Ring(
        stages, load_cycles=min(spare, _COMPUTE) if stages > 1 else 5, compute_cycles=_COMPUTE
    )
    ring.run(3 * stages + 2)
    period = _COMPUTE if stages > 1 else _COMPUTE + 5 + _HANDSHAKE
    assert _periods(ring) == [period] * (3 * stages + 1)


def test_h100_1_a_longer_load_sets_the_period() -> None:
    ring = Ring(4, load_cycles=_COMPUTE + 5, compute_cycles=_COMPUTE)
    ring.run(12)
    assert _periods(ring) == [_COMPUTE + 5] * 11
    # One cycle less than two stages need.
    ring = Ring(2, load_cycles=_COMPUTE - _HANDSHAKE + 1, compute_cycles=_COMPUTE)
    ring.run(8)
    assert _periods(ring) == [_COMPUTE, _COMPUTE + 1] * 3 + [_COMPUTE]


@pytest.mark.parametrize("stages", [1, 2, 5])
def test_a_loop_of_a_single_iteration_passes_its_tile(stages: int) -> None:
    ring = Ring(stages, load_cycles=7, compute_cycles=4)
    ring.run(1)
    assert ring.seen == [0]


@pytest.mark.parametrize("loops", [(1, 1, 1), (3, 1, 4), (5, 2, 6)])
def test_parity_follows_from_the_history_of_a_barrier(loops: tuple[int, ...]) -> None:
    # The loops leave the barriers of a stage at either parity, and no two stages alike.
    Ring(3, load_cycles=3, compute_cycles=5).run(*loops)


def test_parity_from_the_index_of_a_loop_would_pass_too_early() -> None:
    bank = BarrierBank(barriers=2)

    async def bench(ctx: Any) -> None:
        await act(ctx, bank, 0, Op.INIT, 0, arrivals=1)
        passed = []
        for _ in range(2):
            passed.append((await wait(ctx, bank, 0, 0, 0))["passed"])
            await act(ctx, bank, 0, Op.ARRIVE, 0, arrivals=1)
        # Before the second phase nothing has come, yet parity 0 counts as complete; 1 does not.
        assert passed == [0, 1]

    simulate(bank, bench)


@pytest.mark.parametrize("stages", [1, 3])
def test_tiles_whose_bytes_land_before_they_are_expected_pass_once(stages: int) -> None:
    Ring(stages, load_cycles=4, compute_cycles=6, bytes_first=True).run(3 * stages + 1)


def _pieces(rng: random.Random, total: int) -> list[int]:
    """Random parts of a whole."""
    cuts = sorted(rng.randrange(total + 1) for _ in range(rng.randrange(3)))
    return [high - low for low, high in itertools.pairwise([0, *cuts, total])]


def _work(rng: random.Random, ports: int, arrivals: int) -> list[list[tuple[Op, int, int]]]:
    """One phase's operations of each port: what expects bytes comes before its arrival."""
    queues: list[list[tuple[Op, int, int]]] = [[] for _ in range(ports)]
    landing: list[int] = []
    for _ in range(arrivals):
        size = rng.randint(0, 300)
        joined = [(Op.ARRIVE_EXPECT, 1, size)]
        apart = [(Op.EXPECT, 0, each) for each in _pieces(rng, size)] + [(Op.ARRIVE, 1, 0)]
        rng.choice(queues).extend(joined if rng.random() < 0.5 else apart)
        landing += _pieces(rng, size)
    for size in landing:
        queue = rng.choice(queues)
        queue.insert(rng.randint(0, len(queue)), (Op.COMPLETE, 0, size))
    return queues


def test_mbar_4_a_consumer_that_waits_phase_by_phase_sees_every_tile_once(
    seed: int, draws: Callable[[int, int], int]
) -> None:
    rng = random.Random(seed)
    phases, ports = draws(150, 1000), 3
    bank = BarrierBank(barriers=2, arrivals=7, tx_bytes=3000, ports=ports)
    begun: list[int] = []
    landed = [0] * phases
    sizes = [0] * phases
    queues: list[list[tuple[Op, int, int]]] = [[] for _ in range(ports)]
    flips: list[int] = []
    seen: list[int] = []

    async def director(ctx: Any) -> None:
        for phase in range(phases):
            if phase % 10 == 0:
                arrivals = rng.randint(1, 7)
                await act(ctx, bank, 0, Op.INIT, 1, arrivals=arrivals)
                await ctx.tick()
            work = _work(rng, ports, arrivals)
            sizes[phase] = sum(
                size for queue in work for kind, _, size in queue if kind is Op.COMPLETE
            )
            begun.append(phase)
            for queue, each in zip(queues, work):
                queue.extend(each)
            # As in a ring, a stage is filled again when its tile has been seen.
            while any(queues) or len(seen) <= phase:
                await ctx.tick()

    def porter(port: int) -> Callable[[Any], Any]:
        async def run(ctx: Any) -> None:
            while True:
                while not queues[port] or rng.random() < 0.3:
                    await ctx.tick()
                kind, arrivals, size = queues[port][0]
                if kind is Op.COMPLETE:
                    landed[begun[-1]] += size
                answer = await act(ctx, bank, port, kind, 1, arrivals=arrivals, bytes=size)
                assert not answer["error"]
                # The next phase begins when all operations of this one have been applied.
                queues[port].pop(0)

        return run

    async def consumer(ctx: Any) -> None:
        for phase in range(phases):
            while len(begun) <= phase:
                await ctx.tick()
            found = await wait(ctx, bank, 1, phase % 10 % 2, 5000)
            assert found == {"passed": 1, "flag": 0, "timed_out": 0, "error": 0}
            assert landed[phase] == sizes[phase]
            seen.append(phase)
            for _ in range(rng.randrange(12)):
                await ctx.tick()

    async def watch(ctx: Any) -> None:
        former = 0
        while True:
            await ctx.tick()
            phase = ctx.get(bank.o_phases) >> 1 & 1
            if phase != former:
                flips.append(len(begun))
            former = phase

    helpers = (watch, *(porter(port) for port in range(ports)))
    simulate(bank, director, consumer, helpers=helpers)
    assert seen == list(range(phases))
    # Each phase flipped once, while it was on: ten of them leave parity 0.
    assert flips == list(range(1, phases + 1))
