# amaranth: UnusedElaboratable=no
"""The banks against the Python map: every piece, every width, full rate."""

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from hw.arch.errors import BadInputError
from hw.arch.words.pmu_word import ELEMENT_BYTES, Access, lane_count, piece_positions, rows_log2
from hw.pmu.banks import READ_LATENCY, Banks
from tests.hw.reused_simulator import Simulation
from tests.slow_cases import quick_first

Request = tuple[int, int, Access]


def legal_requests(width_bits: int, capacity_bytes: int, element: int) -> list[Request]:
    """Every aligned piece of the scratchpad in one element width."""
    element_bytes = ELEMENT_BYTES[element]
    lanes = lane_count(width_bits=width_bits, element_bytes=element_bytes)
    requests = []
    for access in Access:
        if access is not Access.COLUMN and 1 << int(access.value) > lanes:
            continue
        rows = rows_log2(access, lanes=lanes)
        for first in range(0, capacity_bytes // element_bytes, lanes >> rows):
            if first // lanes % (1 << rows) == 0:
                requests.append((first, element, access))
    return requests


def byte_lanes(width_bits: int, request: Request) -> list[int]:
    """Byte of the block-linear memory under each byte lane; the mirror is one such bytearray."""
    position, element, access = request
    size = ELEMENT_BYTES[element]
    lanes = lane_count(width_bits=width_bits, element_bytes=size)
    positions = piece_positions(position, lanes=lanes, rows_log2=rows_log2(access, lanes=lanes))
    return [p * size + i for p in positions for i in range(size)]


def run(width_bits: int, capacity_bytes: int, element: int, seed: int, steps: int) -> None:
    rng = random.Random(seed)
    simulator = Simulation(Banks, width_bits=width_bits, capacity_bytes=capacity_bytes)
    dut = simulator.design
    requests = legal_requests(width_bits, capacity_bytes, element)
    reads: list[Request] = []
    while len(reads) < steps:
        reads += rng.sample(requests, len(requests))
    mirror = bytearray(capacity_bytes)

    async def bench(ctx: Any) -> None:
        due: deque[bytes | None] = deque([None] * (READ_LATENCY - 1))
        for read in reads[:steps]:
            write = rng.choice(requests)
            written, fetched = byte_lanes(width_bits, write), byte_lanes(width_bits, read)
            # A write has no order with a read of the same cycle: leave it out if they meet.
            writes = set(written).isdisjoint(fetched)
            value = rng.randbytes(width_bits // 8)
            for port, request in ((dut.i_write.request, write), (dut.i_read, read)):
                ctx.set(port, dict(zip(("position", "element", "access"), request)))
            ctx.set(dut.i_write.data, int.from_bytes(value, "little"))
            ctx.set(dut.i_write_valid, writes)
            ctx.set(dut.i_read_valid, rng.random() < 0.9)
            due.append(bytes(mirror[b] for b in fetched) if ctx.get(dut.i_read_valid) else None)
            if writes:
                for where, byte in zip(written, value):
                    mirror[where] = byte
            await ctx.tick()
            answer = due.popleft()
            assert ctx.get(dut.o_read_valid) == (answer is not None)
            if answer is not None:
                assert ctx.get(dut.o_read) == int.from_bytes(answer, "little")

    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("element", range(3))
@pytest.mark.parametrize("width_bits", quick_first([64, 128]))
def test_a_write_and_a_read_of_any_piece_every_cycle(
    width_bits: int, element: int, seed: int, draws: Callable[[int, int], int]
) -> None:
    run(width_bits, 4 * (width_bits // 8) ** 2, element, seed, steps=draws(700, 2000))


@pytest.mark.parametrize("element", quick_first([2, 0, 1]))
def test_the_width_of_small_and_large(element: int, seed: int) -> None:
    run(256, 2048, element, seed, steps=400)


def test_a_shape_that_cannot_work_is_refused() -> None:
    with pytest.raises(BadInputError, match="Vector width in bits must be a power of two from 64"):
        Banks(width_bits=96, capacity_bytes=1024)
    with pytest.raises(ValueError, match="at least 1024 bytes at a vector width of 256 bits"):
        Banks(width_bits=256, capacity_bytes=512)
