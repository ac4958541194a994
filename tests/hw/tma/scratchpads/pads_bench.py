"""A TMA unit with several scratchpads and its memory: contents and counts of all of them."""

import numpy as np

from hw.arch.descriptor import Descriptor, ElementFormat
from hw.tma.barriers.barrier_layouts import BarrierOperation
from tests.hw.tma.model import random_bytes
from tests.hw.tma.standalone.unit_bench import UnitBench

__all__ = [
    "AT",
    "BASE",
    "BOX",
    "CAPACITY",
    "OUT",
    "begin",
    "compare",
    "counts",
    "filled",
    "pads_bench",
]

#: Addresses of the descriptor of `BOX`, of its tensor, and of memory that may be written.
AT, BASE, OUT = 0x800, 0x1000, 0x3000
BOX = Descriptor(base=BASE, format=ElementFormat.FP32, dims=(16, 16), strides=(64,), box=(16, 4))
CAPACITY = 2048


def pads_bench(scratchpads, *, width_bits=128, **given):
    """A unit with so many scratchpads and its memory."""
    bench = UnitBench(
        random_bytes(3, 0x4000),
        width_bits=width_bits,
        capacity=CAPACITY,
        scratchpads=scratchpads,
        latency=5,
        readable=[(0x800, 0x3000)],
        writable=[(0x2800, 0x4000)],
        **given,
    )
    bench.describe(AT, BOX)
    return bench


async def filled(bench, ctx):
    """Contents of the scratchpads, which are different noise."""
    wanted = [random_bytes(70 + pad, CAPACITY) for pad in range(len(bench.users))]
    for pad, content in enumerate(wanted):
        await bench.fill(ctx, 0, content, pad=pad)
    return wanted


async def compare(bench, ctx, wanted):
    """Every byte of every scratchpad."""
    for pad, content in enumerate(wanted):
        found = await bench.content(ctx, pad=pad)
        assert np.array_equal(found, content), (pad, np.flatnonzero(found != content)[:4])


async def counts(bench, ctx, barrier):
    kind = BarrierOperation.PENDING_COUNT
    return [await bench.operate(ctx, kind, barrier, pad=pad) for pad in range(len(bench.users))]


async def begin(bench, ctx, barrier):
    for pad in range(len(bench.users)):
        await bench.operate(ctx, BarrierOperation.INIT, barrier, pad=pad, arrivals=1)
