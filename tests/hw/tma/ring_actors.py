"""Producer, loader and consumer of a ring of stages, synchronised by a barrier bank alone.

Stage s has two barriers: full (2 s), which counts the bytes of a tile, and empty (2 s + 1), at
which the consumer arrives. One waiter of the bank serves the producer, the other the consumer.
"""

from dataclasses import dataclass, field
from typing import Any

from hw.tma.barriers.barrier_bank import BarrierBank
from hw.tma.barriers.barrier_layouts import BarrierOperation as Op
from tests.hw.tma.bank_bench import act, simulate, wait

TILE_BYTES = 4096
_LONG = 5000


def parity_of(turn: int) -> int:
    """Parity of the phase that is complete once the barrier has completed ``turn`` + 1 phases."""
    return turn % 2


@dataclass
class Ring:
    """A ring of stages in a bank of barriers, for tiles that pass one after the other."""

    stages: int
    load_cycles: int
    compute_cycles: int
    bytes_first: bool = False
    slots: list[int | None] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    cycle: int = 0

    def bank(self) -> BarrierBank:
        """The bank of the ring: two barriers a stage."""
        return BarrierBank(barriers=2 * self.stages, ports=3, waiters=2)

    def run(self, *loops: int) -> None:
        """Pass the tiles of each loop, one loop after the other, on the same barriers."""
        bank = self.bank()
        self.slots = [None] * self.stages
        orders: list[tuple[int, int]] = []
        landed: list[int] = []
        jobs: list[tuple[int, int, int | None]] = []
        ready: list[int] = []
        issued = [0] * self.stages

        async def clock(ctx: Any) -> None:
            while True:
                await ctx.tick()
                self.cycle += 1

        async def producer(ctx: Any) -> None:
            for stage in range(self.stages):
                await act(ctx, bank, 0, Op.INIT, 2 * stage, arrivals=1)
                await act(ctx, bank, 0, Op.INIT, 2 * stage + 1, arrivals=1)
            await ctx.tick()
            ready.append(1)
            for tile, stage in self._tiles(loops):
                # The first wait passes: the phase before the first counts as complete.
                parity = parity_of(issued[stage] + 1)
                issued[stage] += 1
                found = await wait(ctx, bank, 2 * stage + 1, parity, _LONG, waiter=0)
                assert found["passed"] and not found["error"]
                if self.bytes_first:
                    orders.append((tile, stage))
                    for _ in range(self.load_cycles + 5):
                        await ctx.tick()
                await self._expect(ctx, bank, stage)
                if not self.bytes_first:
                    orders.append((tile, stage))

        async def loader(ctx: Any) -> None:
            while True:
                while not orders:
                    await ctx.tick()
                tile, stage = orders.pop(0)
                for _ in range(self.load_cycles):
                    await ctx.tick()
                # What the consumer has not released must not be overwritten.
                assert self.slots[stage] is None
                self.slots[stage] = tile
                landed.append(stage)

        async def landing(ctx: Any) -> None:
            while True:
                while not landed:
                    await ctx.tick()
                stage = landed.pop(0)
                answer = await act(ctx, bank, 1, Op.COMPLETE, 2 * stage, bytes=TILE_BYTES)
                assert not answer["error"]

        async def consumer(ctx: Any) -> None:
            used = [0] * self.stages
            while not ready:
                await ctx.tick()
            free = 0
            for tile, stage in self._tiles(loops):
                found = await wait(ctx, bank, 2 * stage, parity_of(used[stage]), _LONG, waiter=1)
                assert found["passed"] and not found["error"]
                used[stage] += 1
                while self.cycle < free:
                    await ctx.tick()
                self.starts.append(self.cycle)
                free = self.cycle + self.compute_cycles
                jobs.append((free, stage, self.slots[stage]))
                assert self.slots[stage] == tile

        async def computing(ctx: Any) -> None:
            for _ in range(sum(loops)):
                while not jobs or self.cycle < jobs[0][0]:
                    await ctx.tick()
                _, stage, tile = jobs.pop(0)
                # It has been there, unchanged, from the first to the last cycle of the work.
                assert tile is not None and self.slots[stage] == tile
                self.seen.append(tile)
                self.slots[stage] = None
                await act(ctx, bank, 2, Op.ARRIVE, 2 * stage + 1, arrivals=1)

        simulate(bank, producer, consumer, computing, helpers=(clock, loader, landing))
        assert self.seen == list(range(sum(loops)))
        assert not orders and not jobs and self.slots == [None] * self.stages

    async def _expect(self, ctx: Any, bank: BarrierBank, stage: int) -> None:
        answer = await act(ctx, bank, 0, Op.ARRIVE_EXPECT, 2 * stage, arrivals=1, bytes=TILE_BYTES)
        assert not answer["error"]
        assert answer["tx"] == -TILE_BYTES * self.bytes_first

    def _tiles(self, loops: tuple[int, ...]) -> list[tuple[int, int]]:
        """Number and stage of every tile; each loop begins at stage 0."""
        stages = [index % self.stages for count in loops for index in range(count)]
        return list(enumerate(stages))
