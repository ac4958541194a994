"""tma-b: rings of stages between a command chain and its consumer (H100-1), ragged and single."""

import numpy as np
import pytest

from hw.arch.descriptor import Descriptor, ElementFormat
from hw.tma.barriers.barrier_layouts import BarrierOperation
from hw.tma.scratchpads.local_memory import users_of
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.host_port.chain_actors import AT, operate, start, wait
from tests.hw.tma.model import random_bytes
from tests.hw.tma.standalone.top_bench import OKAY, TopBench

_BASE = 0x2000
_EMPTY = 16
_ROW = 32
_BEAT = 8

pytestmark = [
    pytest.mark.slow,
    pytest.mark.must("tma-b", goal="every item of the list and every regression, by name"),
]


class RingOfBoxes:
    """A chain that loads boxes of rows into a ring, and a consumer that works on each.

    Of several scratchpads the ring is in the first one.
    """

    def __init__(self, stages, rows, height, *, seed=1, latency=20, pads=1):
        data = random_bytes(seed, _BASE + rows * _ROW)
        memory = {"readable": [(AT, len(data))], "latency": latency}
        self.bench = TopBench(data, barriers=32, seed=seed, pads=pads, **memory)
        self.bench.describe(
            AT,
            Descriptor(
                base=_BASE,
                format=ElementFormat.FP32,
                dims=(_ROW // 4, rows),
                strides=(_ROW,),
                box=(_ROW // 4, height),
            ),
        )
        self.stages, self.rows, self.height = stages, rows, height
        self.tiles = -(-rows // height)
        self.box = height * _ROW
        #: Cycles of each wait of the consumer.
        self.waited = []
        #: Bytes of each scratchpad at the end.
        self.contents = []
        self._ready = False

    def wanted(self, tile):
        """Bytes of a box: rows behind the last one are zero."""
        first = _BASE + tile * self.box
        inside = self.bench.data[first : _BASE + self.rows * _ROW][: self.box]
        return inside.tobytes().ljust(self.box, b"\0")

    def run(self, work_cycles, *, compared=True, home=0, meanwhile=None):
        """Pass all tiles; the user of scratchpad ``home`` frees the slots.

        ``meanwhile`` is what the host does beside the chain, and ends with its own completions.
        """
        bench, stages = self.bench, self.stages
        done = []

        async def clock(ctx):
            self.now = 0
            while True:
                await ctx.tick()
                self.now += 1

        async def consumer(ctx):
            while not self._ready:
                await ctx.tick()
            for tile in range(self.tiles):
                slot, turn = tile % stages, tile // stages
                begun = self.now
                result = await wait(bench, ctx, slot, turn % 2)
                self.waited.append(self.now - begun)
                assert result.passed and not result.flag
                if compared:
                    got = await self._content(ctx, slot)
                    assert got == self.wanted(tile), tile
                for _ in range(work_cycles):
                    await ctx.tick()
                await operate(bench, ctx, BarrierOperation.ARRIVE, _EMPTY + slot, home=home)
                done.append(tile)

        async def host(ctx):
            for barrier in range(2 * _EMPTY):
                await bench.operate(ctx, BarrierOperation.INIT, barrier, arrivals=1)
            self._ready = True
            options = {"slots": stages, "pitch": self.box, "nbytes": self.box}
            loops = [(1, self.tiles, self.height)]
            given = await start(bench, ctx, loops, barrier=0, empty=_EMPTY, **options)
            assert given == OKAY
            if meanwhile is not None:
                await meanwhile(ctx)
            assert await bench.completion(ctx) == (5, 0)
            while len(done) < self.tiles:
                await ctx.tick()
            for pad in range(len(users_of(bench.top))):
                self.contents.append(await bench.content(ctx, pad=pad))

        bench.simulator.add_testbench(clock, background=True)
        bench.run(host, consumer)
        assert done == list(range(self.tiles))

    async def _content(self, ctx, slot):
        port, answer, found = self.bench.top.i_reads, self.bench.top.o_data, []
        ctx.set(port.valid, 1)
        for number in range(self.box // _BEAT):
            ctx.set(port.payload, slot * self.box // _BEAT + number)
            await ctx.tick()
            found.append(int(ctx.get(answer.data)).to_bytes(_BEAT, "little"))
        ctx.set(port.valid, 0)
        return b"".join(found)


@pytest.fixture(scope="module")
def load_cycles():
    """Cycles from a slot's release to its next tile: with one stage, a wait is one whole load."""
    ring = RingOfBoxes(1, rows=8, height=2)
    ring.run(0, compared=False)
    (cycles,) = set(ring.waited[2:])
    return cycles


@pytest.mark.parametrize("stages", range(1, 17))
def test_h100_1_a_ring_has_no_bubble_once_a_load_takes_no_longer_than_the_work(
    stages, load_cycles, figure
):
    ring = RingOfBoxes(stages, rows=2 * (2 * stages + 3), height=2)
    ring.run(load_cycles, compared=False)
    later = ring.waited[1:]
    at_once = 3  # a wait for a phase that is complete, from its request to its result
    figure(f"{stages} stages: load {load_cycles} cycles, waits {min(later)} to {max(later)}")
    if stages == 1:
        assert min(later) > at_once
    else:
        assert set(later) == {at_once}


@pytest.mark.parametrize("stages", [1, 3, 16])
def test_a_loop_of_a_single_iteration_passes_its_tile(stages):
    ring = RingOfBoxes(stages, rows=2, height=2)
    ring.run(5)


@pytest.mark.parametrize(("stages", "height"), [(2, 16), (3, 8)])
def test_a_ragged_length_of_250_counts_the_bytes_of_whole_boxes(stages, height):
    assert 250 % height
    ring = RingOfBoxes(stages, rows=250, height=height)
    ring.run(3)
    assert not np.frombuffer(ring.wanted(ring.tiles - 1), np.uint8)[-_ROW:].any()


@pytest.mark.parametrize("stages", [1, 3])
def test_h100_1_a_ring_in_a_unit_with_several_scratchpads(stages):
    """A user of another one frees the slots; loads to the others pass between the chain's steps."""
    ring = RingOfBoxes(stages, rows=40, height=2, pads=3)
    bench, local, barrier = ring.bench, 1024, 9
    at = [(0, 6 * number) for number in range(3)]

    async def meanwhile(ctx):
        for pad in (1, 2):
            await bench.operate(ctx, BarrierOperation.INIT, barrier, arrivals=1, pad=pad)
        await bench.write(ctx, "DESTINATIONS", mask=0b110)
        steps = []
        for number, corner in enumerate(at):
            fields = {"id": 20 + number, "local": local + number * ring.box, "barrier": barrier}
            assert await bench.submit(ctx, TmaOperation.LOAD, AT, corner, **fields) == OKAY
            assert await bench.completion(ctx) == (20 + number, 0)
            steps.append(await bench.read(ctx, "CHAIN_STEPS"))
        assert 0 < steps[0] < steps[-1] < ring.tiles
        for pad in range(3):
            counts = BarrierOperation.PENDING_COUNT
            answer = await bench.operate(ctx, counts, barrier, pad=pad)
            loaded = len(at) * ring.box if pad else 0
            assert (answer["phase"], answer["error"]) == (0, 0)
            assert await bench.read(ctx, "BARRIER_TX") == -loaded % (1 << 32)

    ring.run(5, home=1, meanwhile=meanwhile)
    for pad in (1, 2):
        wanted = np.zeros(bench.capacity, np.uint8)
        for number, (_, row) in enumerate(at):
            box = np.frombuffer(ring.wanted(row // ring.height), np.uint8)
            wanted[local + number * ring.box :][: ring.box] = box
        assert np.array_equal(ring.contents[pad], wanted), pad
