"""Trace of a launch: its events against the record of the simulation."""

import random

import pytest

from hw.arch.launch import TRACE_EVENTS, TraceKind
from sim.launch_trace import TraceEvent, trace_event
from tests.hw.command.bench import ABORT, DONE, ERROR, INTERRUPT, Bench, random_kernel

KINDS = {"clear": TraceKind.CLEAR, "start": TraceKind.START, "stop": TraceKind.STOP}


def launch_list(rng, count, segments=((70,),)):
    return [
        random_kernel(rng, width_bits=64, segments=segments, arguments=0)[0] for _ in range(count)
    ]


async def read(bench, ctx):
    """Every event of the ring, and the count of those dropped."""
    events = []
    while low := await bench.value(ctx, "TRACE_LO"):
        events.append(trace_event(low | await bench.value(ctx, "TRACE_HI") << 32))
    return events, await bench.value(ctx, "TRACE_DROPPED")


def recorded(bench, lengths):
    """Events of a launch that ends well, by the record of the fabric's model."""
    events = [TraceEvent(TraceKind.LAUNCH, 0, 0)]
    for cycle, what, *_ in bench.log:
        entry = max(0, sum(each.kind is TraceKind.CLEAR for each in events) - (what != "clear"))
        if what in KINDS:
            events.append(TraceEvent(KINDS[what], entry, cycle - bench.launched))
        if what == "start":
            end = cycle + lengths[entry] - bench.launched
            events.append(TraceEvent(TraceKind.END, entry, end))
    return events


@pytest.mark.few(2)
@pytest.mark.parametrize("count", [1, 3, 30])
def test_events_are_the_record_of_the_simulation(count, seed):
    """Of three kernels back to back; and of more than the ring holds."""
    rng = random.Random(seed)
    bench = Bench(segments=((70,),), latency=rng.randint(1, 60))
    lengths = [rng.randint(1, 80) for _ in range(count)]
    bench.store(launch_list(rng, count))

    async def story(ctx):
        for _ in range(2):
            bench.log.clear()
            bench.runs = [(length, None) for length in lengths]
            await bench.begin(ctx, count)
            assert await bench.end(ctx, limit=20_000) == DONE
            events, dropped = await read(bench, ctx)
            expected = recorded(bench, lengths)
            assert len(expected) == 1 + 3 * count
            assert events == expected[:TRACE_EVENTS]
            assert dropped == len(expected) - len(events)
            assert await bench.value(ctx, "TRACE_LO") == 0

    bench.run(story)


def test_an_error_and_an_abort_are_events(seed):
    rng = random.Random(seed)
    bench = Bench(segments=((70,),))
    bench.store(launch_list(rng, 2))
    bench.runs = [(25, None), (30, (34, 7)), (10_000, None)]

    async def story(ctx):
        await bench.begin(ctx, 2)
        assert await bench.end(ctx) == ERROR
        events, dropped = await read(bench, ctx)
        kinds = ["LAUNCH", "CLEAR", "START", "END", "CLEAR", "START", "STOP"]
        assert [each.kind.name for each in events] == kinds and dropped == 0
        stop = bench.when("stop")[0] - bench.launched
        assert events[-1] == TraceEvent(TraceKind.STOP, 1, stop)
        await bench.write(ctx, "STATUS", ERROR)
        bench.log.clear()
        await bench.begin(ctx, 1)
        while not bench.when("start"):
            await ctx.tick()
        await bench.write(ctx, "CONTROL", ABORT | INTERRUPT)
        await bench.idle(ctx)
        events, _ = await read(bench, ctx)
        assert [each.kind.name for each in events] == ["LAUNCH", "CLEAR", "START", "STOP"]
        assert events[-1].cycle == bench.when("stop")[0] - bench.launched

    bench.run(story)
