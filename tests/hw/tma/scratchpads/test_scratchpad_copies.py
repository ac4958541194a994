"""Copies between the scratchpads of a TMA unit."""

import dataclasses

import numpy as np
import pytest

from hw.arch.error_codes import TmaError
from hw.tma.barriers.barrier_layouts import BarrierOperation
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.model import box_load
from tests.hw.tma.scratchpads.pads_bench import (
    AT,
    BASE,
    BOX,
    CAPACITY,
    begin,
    compare,
    counts,
    filled,
    pads_bench,
)

_COPY = TmaOperation.COPY


@pytest.mark.slow
@pytest.mark.parametrize("width_bits", [64, 128, 512])
def test_a_copy_moves_its_bytes_and_completes_them_at_the_destinations(width_bits):
    """Random ranges from and to random scratchpads; loads of memory go on between them."""
    bench = pads_bench(4, width_bits=width_bits, stall=0.2)
    beat, rng, commands = bench.beat, bench.rng, 30

    async def work(ctx):
        wanted = await filled(bench, ctx)
        await begin(bench, ctx, 2)
        totals = [0] * 4
        for number in range(commands):
            mask, source = rng.randrange(1, 16), rng.randrange(4)
            signals = rng.random() < 0.7
            fields = {"destinations": mask, "barrier": 2, "signals": signals}
            if number % 5 == 4:
                row, local, size = rng.randrange(12), rng.randrange(0, 1024, beat), 256
                await bench.command(
                    ctx, TmaOperation.LOAD, AT, (0, row), id=number, local=local, **fields
                )
                moved = box_load(bench.data, BOX, (0, row))
            else:
                size = 16 * rng.randint(1, 40)
                start, local = rng.randrange(0, 1024, beat), 1024 + rng.randrange(0, 384, beat)
                if rng.random() < 0.5 and start + size <= 1024:
                    start, local = local, start
                local = min(local, (CAPACITY - size) // beat * beat)
                start = min(start, (CAPACITY - size) // beat * beat)
                if mask >> source & 1 and abs(start - local) < size + beat:
                    mask &= ~(1 << source)
                    mask = mask or 1 << (source ^ 1)
                    fields["destinations"] = mask
                place = {"source": source, "local": local}
                await bench.command(ctx, _COPY, start, (size,), id=number, **place, **fields)
                moved = wanted[source][start : start + size].copy()
            for pad in range(4):
                if mask >> pad & 1:
                    wanted[pad][local : local + size] = moved
                    totals[pad] += size * signals
            # A copy may read before earlier commands have written.
            await bench.completed(ctx, number + 1)
            assert bench.completions[-1] == (number, 0)
        assert [answer["tx"] for answer in await counts(bench, ctx, 2)] == [-n for n in totals]
        await compare(bench, ctx, wanted)

    bench.run(work)


@pytest.mark.slow
def test_a_whole_scratchpad_is_copied_while_boxes_of_its_source_are_stored():
    """They take turns, so the copy is complete when half of four such stores are."""
    bench = pads_bench(3)

    async def work(ctx):
        wanted = await filled(bench, ctx)
        memory = bench.data.copy()
        whole = {"source": 1, "destinations": 1}
        store = TmaOperation.STORE_LINEAR
        await bench.command(ctx, store, 0x2800, (CAPACITY,), id=0, source=1)
        await bench.command(ctx, _COPY, 0, (CAPACITY,), id=1, **whole)
        for number in range(2, 5):
            await bench.command(ctx, store, 0x2800, (CAPACITY,), id=number, source=1)
        await bench.completed(ctx, 5)
        assert sorted(bench.completions) == [(number, 0) for number in range(5)]
        assert bench.completions.index((1, 0)) <= 2
        memory[0x2800 : 0x2800 + CAPACITY] = wanted[1]
        wanted[0][:] = wanted[1]
        assert np.array_equal(bench.data, memory)
        await compare(bench, ctx, wanted)

    bench.run(work)


#: Address, bytes, place, destinations, source of copies that are refused, and the code.
_REFUSED = [
    (0, 24, 0, 1, 1, TmaError.ROW_BYTES),
    (0, 0, 0, 1, 1, TmaError.BOX),
    (8, 16, 0, 1, 1, TmaError.DESTINATION),
    (0, 16, 8, 1, 1, TmaError.DESTINATION),
    (CAPACITY - 16, 32, 0, 1, 1, TmaError.DESTINATION),
    (0, 32, CAPACITY - 16, 1, 1, TmaError.DESTINATION),
    (1 << 31, 32, 0, 1, 1, TmaError.DESTINATION),
    (0, (1 << 32) - 16, 0, 1, 1, TmaError.DESTINATION),
    (0, 32, 0, 0, 1, TmaError.DESTINATION),
    (0, 32, 0, 9, 1, TmaError.DESTINATION),
    (0, 32, 0, 1, 3, TmaError.DESTINATION),
    (0, 32, 16, 3, 1, TmaError.DESTINATION),
    (16, 32, 0, 7, 2, TmaError.DESTINATION),
    (64, 16, 64, 1, 0, TmaError.DESTINATION),
]


def test_a_copy_that_does_not_fit_or_overlaps_is_refused():
    bench = pads_bench(3)

    async def work(ctx):
        wanted = await filled(bench, ctx)
        for number, (start, size, local, mask, source, code) in enumerate(_REFUSED):
            await begin(bench, ctx, 1)
            fields = {"local": local, "destinations": mask, "source": source}
            signed = size - (1 << 32) * (size >= 1 << 31)
            await bench.command(
                ctx, _COPY, start, (signed,), id=number, barrier=1, signals=1, **fields
            )
            await bench.completed(ctx, number + 1)
            assert bench.completions[-1] == (number, code.value), _REFUSED[number]
            for pad, answer in enumerate(await counts(bench, ctx, 1)):
                assert (answer["tx"], answer["flag"]) == (0, mask >> pad & 1), (number, pad)
        # Ranges of one scratchpad that touch one another do not overlap.
        await bench.command(ctx, _COPY, 0, (32,), id=99, local=32, destinations=1, source=0)
        await bench.completed(ctx, len(_REFUSED) + 1)
        assert bench.completions[-1] == (99, 0)
        wanted[0][32:64] = wanted[0][:32]
        await compare(bench, ctx, wanted)

    bench.run(work)


def test_a_response_to_a_load_behind_a_copy_is_not_the_copys():
    """The load's only vector waits, with its error, while the copy goes on."""
    small = dataclasses.replace(BOX, box=(4, 1))
    bench = pads_bench(3, failing=[(BASE, BASE + 16, 2)])
    bench.describe(AT + 128, small)

    async def work(ctx):
        wanted = await filled(bench, ctx)
        whole = {"source": 1, "destinations": 1}
        await bench.command(ctx, TmaOperation.PREFETCH, AT + 128, id=0)
        await bench.command(ctx, _COPY, 0, (CAPACITY,), id=1, **whole)
        await bench.command(ctx, TmaOperation.LOAD, AT + 128, id=2, destinations=2)
        await bench.completed(ctx, 3)
        assert bench.completions[1:] == [(1, 0), (2, TmaError.READ_SLVERR.value)]
        wanted[0][:] = wanted[1]
        wanted[1][:16] = 0
        await compare(bench, ctx, wanted)

    bench.run(work)


def test_an_abort_ends_copies():
    bench = pads_bench(3)

    async def work(ctx):
        await begin(bench, ctx, 0)
        for number in range(6):
            fields = {"source": 1, "destinations": 1, "barrier": 0, "signals": 1}
            await bench.command(ctx, _COPY, 0, (CAPACITY,), id=number, **fields)
        await bench.abort(ctx)
        bench.completions.clear()
        wanted = await filled(bench, ctx)
        await begin(bench, ctx, 0)
        await bench.command(ctx, _COPY, 64, (48,), id=9, source=0, destinations=2, local=128)
        await bench.completed(ctx, 1)
        assert bench.completions == [(9, 0)]
        wanted[1][128:176] = wanted[0][64:112]
        await compare(bench, ctx, wanted)
        kind = BarrierOperation.PENDING_COUNT
        assert (await bench.operate(ctx, kind, 0))["flag"] == 0

    bench.run(work)
