import random

import pytest

from hw.arch.error_codes import LaunchError, ReadPhase
from hw.arch.launch import HEADER_BYTES
from tests.hw.command.bench import (
    ABORT,
    BUSY,
    DONE,
    ERROR,
    INTERRUPT,
    LAUNCH,
    LIST,
    Bench,
    check_runs,
    random_kernel,
    recovers,
)
from tests.slow_cases import quick_first


@pytest.mark.parametrize("width_bits", [64, 128, 256, 1024])
@pytest.mark.parametrize("entries", [1, 2, 4])
def test_kernels_of_a_list_run_in_order(width_bits, entries):
    rng = random.Random(f"{width_bits} {entries}")
    kernels, configs = zip(
        *(random_kernel(rng, width_bits=width_bits) for _ in range(entries)), strict=True
    )
    bench = Bench(width_bits=width_bits)
    bench.store(kernels)

    async def story(ctx):
        assert await bench.begin(ctx, entries) == 0
        assert await bench.end(ctx) == DONE
        assert await bench.value(ctx, "LAUNCHES") == 1
        assert await bench.value(ctx, "ERROR") == 0
        log = list(bench.log)
        await bench.begin(ctx, 0)
        await bench.idle(ctx)
        assert await bench.value(ctx, "ERROR_ENTRY") == 0
        bench.log = log

    bench.run(story)
    check_runs(bench, kernels, configs)


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(6))
def test_slow_memory_changes_no_kernel(seed):
    rng = random.Random(seed)
    width_bits = rng.choice([64, 256])
    segments = tuple(
        tuple(rng.randint(1, 600) for _ in range(rng.randint(1, 3)))
        for _ in range(rng.randint(1, 4))
    )
    kernels, configs = zip(
        *(random_kernel(rng, width_bits=width_bits, segments=segments) for _ in range(3)),
        strict=True,
    )
    bench = Bench(
        width_bits=width_bits,
        segments=segments,
        latency=rng.randint(1, 60),
        jitter=rng.choice([0, 20]),
        stall=rng.uniform(0.2, 0.8),
        seed=seed,
    )
    bench.store(kernels)

    async def story(ctx):
        for launch in range(2):
            await bench.begin(ctx, 3)
            assert await bench.end(ctx) == DONE
            assert await bench.value(ctx, "LAUNCHES") == launch + 1

    bench.run(story)
    check_runs(bench, 2 * kernels, 2 * configs)


@pytest.mark.parametrize("arguments", [0, 5, 16])
@pytest.mark.parametrize("rows, words", [(4, 10), (4, 64)])
def test_cold_launch_at_latency_100(arguments, rows, words):
    """The budget is 40 cycles, two latencies and a cycle for each 32 bytes of image."""
    rng = random.Random(f"{arguments} {words}")
    segments = ((128 * words, 128 * words),) * rows
    kernel, config = random_kernel(rng, width_bits=256, segments=segments, arguments=arguments)
    bench = Bench(width_bits=256, segments=segments, latency=100)
    bench.store([kernel])

    async def story(ctx):
        await bench.begin(ctx, 1)
        assert await bench.end(ctx) == DONE
        cycles = await bench.value(ctx, "CYCLES_LO")
        assert cycles == bench.when("start")[0] + bench.run_cycles - bench.launched

    bench.run(story)
    check_runs(bench, [kernel], [config])
    image_beats = (len(kernel[0]) - HEADER_BYTES) // 32
    start = bench.when("start")[0] - bench.launched
    assert start == 200 + image_beats + 10 + arguments
    assert start <= 40 + 200 + image_beats


def test_next_image_is_fetched_while_a_kernel_runs():
    rng = random.Random(5)
    kernels, configs = zip(
        *(random_kernel(rng, width_bits=64, arguments=3) for _ in range(3)), strict=True
    )
    bench = Bench(latency=100)
    bench.run_cycles = 400
    bench.store(kernels)

    async def story(ctx):
        await bench.begin(ctx, 3)
        assert await bench.end(ctx) == DONE

    bench.run(story)
    check_runs(bench, kernels, configs)
    starts = bench.when("start")
    # After i_done: decode, clear, three arguments, one to see that none is left, load, start.
    assert [b - a for a, b in zip(starts, starts[1:])] == [400 + 8] * 2


@pytest.mark.parametrize("holds", [False, True])
def test_a_kernel_may_write_the_entry_that_is_held(holds):
    rng = random.Random(6)
    kernels, configs = zip(
        *(random_kernel(rng, width_bits=64, arguments=2) for _ in range(3)), strict=True
    )
    bench = Bench(latency=30)
    bench.run_cycles = 600
    bench.store(kernels, holding=[0] if holds else [])
    image, arguments, repeat = kernels[1]
    written = (image, arguments, repeat ^ 0xFFFF)

    async def kernel(ctx):
        """The kernel of entry 0 writes the next one's number of iterations as it ends."""
        while not bench.when("start"):
            await ctx.tick()
        for _ in range(bench.run_cycles - 5):
            await ctx.tick()
        bench.memory.put(bench.entry_address(1) + 24, written[2].to_bytes(4, "little"))

    async def story(ctx):
        await bench.begin(ctx, 3)
        assert await bench.end(ctx) == DONE

    bench.run(story, kernel)
    check_runs(bench, [kernels[0], written if holds else kernels[1], kernels[2]], configs)
    first, second, third = bench.when("start")
    assert (second - first > 600 + 2 * 30) == holds
    assert third - second == 600 + 7


def test_an_abort_ends_the_wait_for_a_held_entry():
    rng = random.Random(7)
    kernel, config = random_kernel(rng, width_bits=64)
    bench = Bench()
    bench.store([kernel] * 2, holding=[0])

    async def story(ctx):
        await bench.begin(ctx, 2)
        while not bench.when("start"):
            await ctx.tick()
        await bench.write(ctx, "CONTROL", ABORT | INTERRUPT)
        await bench.idle(ctx)
        await recovers(bench, ctx)

    bench.run(story)
    check_runs(bench, [kernel], [config])


@pytest.mark.parametrize(
    "entries, address, code",
    [
        (0, LIST, LaunchError.NO_ENTRIES),
        (1, LIST + 32, LaunchError.LIST_ADDRESS),
        (1, LIST + (1 << 40), LaunchError.LIST_ADDRESS),
    ],
)
def test_a_list_that_cannot_be_read_is_refused(entries, address, code):
    kernel, config = random_kernel(random.Random(1), width_bits=64)
    bench = Bench()
    bench.store([kernel])

    async def story(ctx):
        assert await bench.begin(ctx, entries, address) == 0
        assert await bench.end(ctx) == ERROR
        assert await bench.value(ctx, "ERROR") == code.value
        assert not bench.memory.bursts
        await recovers(bench, ctx)

    bench.run(story)
    check_runs(bench, [kernel], [config])


@pytest.mark.parametrize("response", [2, 3])
@pytest.mark.parametrize("beat", ["first", "last"])
@pytest.mark.parametrize("phase", list(ReadPhase))
@pytest.mark.parametrize("entry", [0, 1])
def test_error_answers_end_the_launch_at_their_entry(response, beat, phase, entry):
    rng = random.Random(f"{response} {beat} {phase} {entry}")
    kernels, configs = zip(
        *(random_kernel(rng, width_bits=64, arguments=4) for _ in range(2)), strict=True
    )
    bench = Bench(latency=20, stall=0.2)
    placed = bench.store(kernels)
    start, size = {
        ReadPhase.LIST: (bench.entry_address(entry), 64),
        ReadPhase.ARGUMENTS: (placed[entry].argument_address, 64),
        ReadPhase.IMAGE: (placed[entry].image_address, placed[entry].image_bytes),
    }[phase]
    bench.memory.errors[start if beat == "first" else start + size - 8] = response

    async def story(ctx):
        await bench.begin(ctx, 2)
        assert await bench.end(ctx) == ERROR
        code = LaunchError.READ_SLVERR if response == 2 else LaunchError.READ_DECERR
        assert await bench.value(ctx, "ERROR") == code.value | phase.value << 8
        assert await bench.value(ctx, "ERROR_ENTRY") == entry
        assert not bench.memory.owed
        # The kernel before the fault ran to its end.
        assert bench.events("start") == [("start", configs[i], kernels[i][2]) for i in range(entry)]
        bench.memory.errors.clear()
        await recovers(bench, ctx)

    bench.run(story)
    check_runs(bench, kernels[:1], configs[:1])


def test_a_kernel_that_cannot_follow_keeps_no_read_waiting():
    rng = random.Random(8)
    segments = ((64 * 40,), (64 * 50,))
    kernels, configs = zip(
        *(random_kernel(rng, width_bits=64, segments=segments) for _ in range(2)), strict=True
    )
    bench = Bench(segments=segments)
    bench.runs = [(400, None)]
    placed = bench.store(kernels)
    # Errors behind the first one are not told.
    bench.memory.put(placed[1].image_address, bytes([255]))
    bench.memory.errors[placed[1].image_address + 30 * 8] = 3

    async def story(ctx):
        await bench.begin(ctx, 2)
        while not bench.when("start"):
            await ctx.tick()
        await ctx.tick().repeat(300)
        _, address, beats = bench.memory.bursts[-1]
        assert address + 8 * beats == placed[1].image_address + placed[1].image_bytes
        assert not bench.memory.owed
        assert await bench.value(ctx, "STATUS") == BUSY
        assert await bench.end(ctx) == ERROR
        assert await bench.value(ctx, "ERROR") == LaunchError.RUN.value
        assert await bench.value(ctx, "ERROR_ENTRY") == 1
        assert bench.cycle - bench.when("start")[0] > 400

    bench.run(story)
    assert [event[1] for event in bench.events("start")] == [configs[0]]


def test_error_of_a_unit_stops_drains_and_resets():
    kernels, configs = zip(
        *(random_kernel(random.Random(i), width_bits=64) for i in range(2)), strict=True
    )
    bench = Bench()
    bench.runs = [(30, None), (25, (34, 7))]
    bench.store(kernels)

    async def story(ctx):
        await bench.begin(ctx, 2)
        assert await bench.end(ctx) == ERROR
        assert await bench.value(ctx, "ERROR") == LaunchError.UNIT.value | 34 << 8 | 7 << 16
        assert await bench.value(ctx, "ERROR_ENTRY") == 1
        start, stop, clear = (bench.when(kind)[-1] for kind in ("start", "stop", "clear"))
        assert stop == start + 25 + 1
        assert clear == stop + bench.drain_cycles + 1
        await recovers(bench, ctx)

    bench.run(story)
    check_runs(bench, kernels[:1], configs[:1])


@pytest.mark.parametrize(
    "stall, seed",
    # Every fifth cycle from five on: of all cycles in `make regress`.
    quick_first([(0.0, each) for each in range(5)] + [(0.5, 0)]),
)
def test_abort_at_any_time_leaves_a_chip_that_works(stall, seed):
    """Aborts at every phase: reading entry, arguments, image; running, with reads ahead."""
    rng = random.Random(3)
    kernels, configs = zip(
        *(random_kernel(rng, width_bits=64, arguments=6) for _ in range(2)), strict=True
    )
    bench = Bench(latency=9, stall=stall)
    bench.store(kernels)

    async def story(ctx):
        for delay in range(seed, 200, 5):
            bench.log.clear()
            await bench.begin(ctx, 2)
            for _ in range(delay):
                await ctx.tick()
            if await bench.value(ctx, "STATUS") & DONE:
                break
            await bench.write(ctx, "CONTROL", ABORT | INTERRUPT)
            aborted = bench.wrote
            await bench.idle(ctx)
            if await bench.value(ctx, "STATUS") == DONE:
                # It ended before the abort came, which reset an idle chip.
                break
            assert await bench.value(ctx, "STATUS") == ERROR
            assert await bench.value(ctx, "ERROR") == LaunchError.ABORTED.value
            assert not bench.memory.owed
            assert bench.when("stop")[-1] == aborted + 1
            assert bench.when("clear")[-1] > bench.when("stop")[-1]
            assert not [cycle for cycle in bench.when("start") if cycle > aborted]
            await bench.write(ctx, "STATUS", ERROR)
            bench.log.clear()
            await bench.begin(ctx, 1)
            assert await bench.end(ctx) == DONE
            check_runs(bench, kernels[:1], configs[:1])
        assert delay > 90

    bench.run(story)


def test_abort_while_idle_resets_the_fabric():
    bench = Bench()

    async def story(ctx):
        await bench.write(ctx, "CONTROL", ABORT | LAUNCH | INTERRUPT)
        assert await bench.value(ctx, "STATUS") & BUSY
        await bench.idle(ctx)
        assert await bench.value(ctx, "STATUS") == 0
        assert bench.events("clear", "stop", "start") == [("stop",), ("clear",)]

    bench.run(story)


def test_launch_while_busy_is_refused_and_changes_nothing():
    kernel, config = random_kernel(random.Random(1), width_bits=64)
    bench = Bench()
    bench.store([kernel])

    async def story(ctx):
        await bench.begin(ctx, 1)
        assert await bench.write(ctx, "CONTROL", LAUNCH) == 2
        # The registers of the next launch may be written ahead.
        assert await bench.write(ctx, "LIST_ENTRIES", 9) == 0
        assert await bench.end(ctx) == DONE
        assert await bench.value(ctx, "LAUNCHES") == 1

    bench.run(story)
    check_runs(bench, [kernel], [config])
