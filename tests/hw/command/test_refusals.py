"""Launches that the command processor refuses: the code of each fault, and that nothing starts."""

import random

import pytest

from hw.arch.error_codes import LaunchError
from hw.arch.image import IMAGE_VERSION, checksum
from hw.command.fetch import LaunchFetcher
from tests.hw.command.bench import (
    ERROR,
    FINGERPRINT,
    LIST,
    Bench,
    check_runs,
    random_kernel,
    recovers,
)


def spoil(address, raw):
    """Fault: bytes of memory at an address."""
    return lambda bench, entries: bench.memory.put(address(entries), raw)


def entry_word(offset, value, size=4):
    return spoil(lambda _: LIST + offset, value.to_bytes(size, "little"))


def image_word(offset, value, size=4):
    return spoil(lambda entries: entries[0].image_address + offset, value.to_bytes(size, "little"))


FAULTS = {
    "image address not aligned": (entry_word(0, 0x10_0020, 8), LaunchError.IMAGE_ADDRESS),
    "image address too high": (entry_word(0, 1 << 40, 8), LaunchError.IMAGE_ADDRESS),
    "image of no bytes": (entry_word(16, 0), LaunchError.IMAGE_BYTES),
    "image of half a beat": (entry_word(16, 4 * 8 + 4), LaunchError.IMAGE_BYTES),
    "image too long": (entry_word(16, 1 << 24), LaunchError.IMAGE_BYTES),
    "arguments not aligned": (entry_word(8, 0x10_0008, 8), LaunchError.ARGUMENT_ADDRESS),
    "arguments too high": (entry_word(8, 1 << 63, 8), LaunchError.ARGUMENT_ADDRESS),
    "17 arguments": (entry_word(20, 17), LaunchError.ARGUMENT_COUNT),
    "no repeat": (entry_word(24, 0), LaunchError.REPEAT),
    "reserved word of entry": (entry_word(60, 1 << 31), LaunchError.RESERVED),
    "magic": (entry_word(28, 0x4D49_5755), LaunchError.MAGIC),
    "version": (entry_word(32, IMAGE_VERSION + 1, 2), LaunchError.VERSION),
    "reserved word of header": (entry_word(34, 3, 2), LaunchError.RESERVED),
    "fingerprint": (entry_word(36, FINGERPRINT ^ 1), LaunchError.FINGERPRINT),
    "checksum of header": (entry_word(40, 0), LaunchError.CHECKSUM),
    "row of a run": (image_word(0, 2, 1), LaunchError.RUN),
    "segment of a run": (image_word(1, 2, 1), LaunchError.RUN),
    "word of a run": (image_word(2, 255, 1), LaunchError.RUN),
}


def cut(beats):
    """Fault: an image without its last beats, with the checksum of those that are left."""

    def spoiled(bench, entries):
        entry, beat = entries[0], bench.width_bits // 8
        size = entry.image_bytes - beats * beat
        body = bytes(bench.memory.bytes[entry.image_address + at] for at in range(size))
        bench.memory.put(LIST + 16, size.to_bytes(4, "little"))
        bench.memory.put(LIST + 40, checksum(body).to_bytes(4, "little"))

    return spoiled


def flip_first_word(bench, entries):
    """Fault: one bit of a program, behind the first directory."""
    bench.memory.bytes[entries[0].image_address + bench.width_bits // 8] ^= 1


FAULTS |= {
    "bit of a program": (flip_first_word, LaunchError.CHECKSUM),
    "image ends early": (cut(1), LaunchError.IMAGE_SIZE),
    "last beat is cut off, checksum as before": (
        lambda bench, entries: bench.memory.put(
            LIST + 16, (entries[0].image_bytes - bench.width_bits // 8).to_bytes(4, "little")
        ),
        LaunchError.CHECKSUM,
    ),
}


@pytest.mark.few(15)
@pytest.mark.parametrize(
    "width_bits, name", [(width_bits, name) for width_bits in (64, 256) for name in FAULTS]
)
def test_what_cannot_run_is_refused_and_nothing_starts(width_bits, name):
    fault, code = FAULTS[name]
    rng = random.Random(name)
    kernel, config = random_kernel(rng, width_bits=width_bits, arguments=4)
    bench = Bench(width_bits=width_bits)
    entries = bench.store([kernel])
    fault(bench, entries)

    async def story(ctx):
        assert await bench.begin(ctx, 1) == 0
        assert await bench.end(ctx) == ERROR
        assert await bench.value(ctx, "ERROR") == code.value
        assert await bench.value(ctx, "ERROR_ENTRY") == 0
        assert await bench.value(ctx, "LAUNCHES") == 0
        assert not bench.events("load", "start")
        assert not bench.memory.owed
        bench.store([kernel])
        await recovers(bench, ctx)

    bench.run(story)
    check_runs(bench, [kernel], [config])


@pytest.mark.parametrize("name", ["checksum of header", "bit of a program"])
def test_a_checksum_that_is_ignored_is_noticed(name, planted):
    """Planted fault: the processor compares no checksum."""
    refuse = LaunchFetcher._refuse

    def careless(self, m, *rules):
        refuse(self, m, *(rule for rule in rules if rule[0] is not LaunchError.CHECKSUM))

    planted.setattr(LaunchFetcher, "_refuse", careless)
    with pytest.raises(AssertionError):
        test_what_cannot_run_is_refused_and_nothing_starts(64, name)
