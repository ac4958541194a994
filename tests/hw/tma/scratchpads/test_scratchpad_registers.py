"""Several scratchpads of a TMA unit, by its registers."""

import numpy as np
import pytest

from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.error_codes import TmaError
from hw.tma.barriers.barrier_layouts import BarrierOperation
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.model import box_load, random_bytes
from tests.hw.tma.standalone.top_bench import OKAY, SLVERR, TopBench
from tests.slow_cases import quick_first

_AT = 0x800
_BOX = Descriptor(base=0x1000, format=ElementFormat.FP32, dims=(16, 16), strides=(64,), box=(16, 4))


def _bench(pads):
    bench = TopBench(
        random_bytes(5, 0x2000),
        width_bits=128,
        capacity=1024,
        pads=pads,
        readable=[(0x800, 0x2000)],
    )
    bench.describe(_AT, _BOX)
    return bench


def test_a_host_loads_copies_and_waits_at_the_scratchpads_that_it_names():
    bench = _bench(4)
    pending = BarrierOperation.PENDING_COUNT

    async def host(ctx):
        assert await bench.fields(ctx, "DESTINATIONS") == {
            "mask": 1,
            "source": 0,
            "scratchpads": 4,
        }
        for pad in range(4):
            await bench.operate(ctx, BarrierOperation.INIT, 2, arrivals=1, pad=pad)
        for pad in (1, 3):
            given = {"arrivals": 1, "bytes": _BOX.box_bytes, "pad": pad}
            await bench.operate(ctx, BarrierOperation.ARRIVE_EXPECT, 2, **given)
        assert await bench.write(ctx, "DESTINATIONS", mask=0b1010) == OKAY
        assert await bench.submit(ctx, TmaOperation.LOAD, _AT, (0, 3), id=5, barrier=2) == OKAY
        await bench.write(ctx, "WAIT_CYCLES", 1000)
        for pad in (3, 1):
            assert await bench.write(ctx, "WAIT", parity=0, barrier=2, scratchpad=pad) == OKAY
            result = await bench.until(ctx, "WAIT_RESULT", "valid")
            assert (result["passed"], result["error"]) == (1, 0)
        assert await bench.completion(ctx) == (5, 0)
        phases = [(await bench.operate(ctx, pending, 2, pad=pad))["phase"] for pad in range(4)]
        assert phases == [0, 1, 0, 1]
        # Without an arrival, a wait at scratchpad 2 ends by time.
        await bench.write(ctx, "WAIT_CYCLES", 3)
        await bench.write(ctx, "WAIT", parity=0, barrier=2, scratchpad=2)
        assert (await bench.until(ctx, "WAIT_RESULT", "valid"))["timed_out"]
        await bench.write(ctx, "DESTINATIONS", mask=0b0101, source=3)
        await bench.submit(ctx, TmaOperation.COPY, 64, (128,), id=6, local=512)
        assert await bench.completion(ctx) == (6, 0)
        moved = box_load(bench.data, _BOX, (0, 3))
        for pad in range(4):
            found = await bench.content(ctx, pad=pad)
            at, wanted = (0, moved) if pad in (1, 3) else (512, moved[64:192])
            assert np.array_equal(found[at : at + wanted.size], wanted), pad
            assert not np.delete(found, np.s_[at : at + wanted.size]).any()

    bench.run(host)


@pytest.mark.parametrize("pads", quick_first([4, 3, 1]))
def test_scratchpads_beyond_the_last_are_refused(pads):
    bench = _bench(pads)

    async def host(ctx):
        for pad in (pads, 15):
            answer = await bench.write(ctx, "WAIT", parity=1, scratchpad=pad)
            assert answer == SLVERR
            fields = {"operation": BarrierOperation.INIT.value, "scratchpad": pad}
            assert await bench.write(ctx, "BARRIER_OPERATION", **fields) == SLVERR
        assert not (await bench.fields(ctx, "BARRIER_ANSWER"))["valid"]
        assert not (await bench.fields(ctx, "WAIT_RESULT"))["valid"]
        written = await bench.write(ctx, "DESTINATIONS", mask=1 << pads)
        assert written == (SLVERR if pads == 1 else OKAY)
        await bench.submit(ctx, TmaOperation.LOAD, _AT, id=1)
        code = 0 if pads == 1 else TmaError.DESTINATION.value
        assert await bench.completion(ctx) == (1, code)

    bench.run(host)
