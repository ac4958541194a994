"""tma-f: error responses, broken descriptors and bad commands of the TMA unit."""

import dataclasses

import numpy as np
import pytest

from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.error_codes import TmaError
from hw.tma.barriers.barrier_layouts import BarrierOperation
from hw.tma.standalone.unit_commands import TmaOperation
from sim.tb._refusals import with_field
from tests.hw.tma.model import box_load, box_store, random_bytes
from tests.hw.tma.standalone.unit_bench import UnitBench

_LOAD, _STORE = TmaOperation.LOAD, TmaOperation.STORE
_AT_GOOD, _AT_OUT, _AT_BROKEN = 0x1000, 0x1080, 0x1100
_GOOD = Descriptor(
    base=0x2000, format=ElementFormat.FP32, dims=(16, 8, 3), strides=(64, 512), box=(16, 4, 2)
)
_OUT = dataclasses.replace(_GOOD, base=0x3000)
#: Field of `_GOOD` by its index, values that are refused, and their code.
_FIELDS = [
    ("rank", (0,), (0, 6, 7, 255), TmaError.RANK),
    ("format", (0,), (3, 0x0D, 0x81, 255), TmaError.FORMAT),
    ("base", (0,), (0x2008, 0x2001, 1 << 32, 1 << 63), TmaError.BASE),
    ("strides", (0, 1), (8, 72, 1 << 40, 1 << 63), TmaError.STRIDE),
    ("dims", (0, 1, 2), (0,), TmaError.DIMENSION),
    ("box", (0, 1, 2), (0, 257, 65_535), TmaError.BOX),
    ("box", (0,), (1, 2, 3, 5, 6, 7, 9), TmaError.ROW_BYTES),
    ("element_strides", (0, 1, 2), (0, 9, 255), TmaError.ELEMENT_STRIDE),
    ("interleave", (0,), (1, 2, 255), TmaError.INTERLEAVE),
    ("swizzle", (0,), (1, 4, 255), TmaError.SWIZZLE),
    ("oob_fill", (0,), (2, 255), TmaError.OOB_FILL),
    ("mode", (0,), (1, 2, 255), TmaError.MODE),
    ("mode", (0,), (3,), TmaError.IM2COL),
    ("mode", (0,), (4, 5), TmaError.IM2COL_WIDE),
    ("reduce", (0,), (1, 255), TmaError.REDUCE),
    ("im2col_lower", (0, 1, 2), (1, -1), TmaError.IM2COL),
    ("im2col_upper", (0, 1, 2), (1, -1), TmaError.IM2COL),
    ("im2col_channels", (0,), (1,), TmaError.IM2COL),
    ("im2col_pixels", (0,), (1,), TmaError.IM2COL),
    # The tensor passes 2^32: at its start, in its rows, by its strides and its numbers of indices.
    ("base", (0,), (0xFFFF_FFF0, (1 << 32) - 0x5F0), TmaError.BASE),
    ("strides", (0,), (613_566_752, (1 << 40) - 16), TmaError.BASE),
    ("strides", (1,), (1 << 31, (1 << 40) - 16), TmaError.BASE),
    ("dims", (0,), ((1 << 30) - 0x900, (1 << 32) - 1), TmaError.BASE),
    ("dims", (1,), ((1 << 26), (1 << 32) - 1), TmaError.BASE),
    ("dims", (2,), ((1 << 23), (1 << 32) - 1), TmaError.BASE),
    # More than the scratchpad.
    ("box", (1,), (256,), TmaError.DESTINATION),
]
_BROKEN = [
    (with_field(_GOOD.pack(), field, index, value), code)
    for field, indices, values, code in _FIELDS
    for index in indices
    for value in values
]
#: Operation, address of the descriptor, other fields, and the code.
_COMMANDS = [
    *((operation, _AT_GOOD, {}, TmaError.OPERATION) for operation in (9, *range(12, 16))),
    *(
        (operation, _AT_GOOD + step, {}, TmaError.POINTER)
        for operation in (_LOAD, _STORE, TmaOperation.PREFETCH, TmaOperation.INVALIDATE)
        for step in (1, 16, 64, 127)
    ),
    *(
        (operation, _AT_GOOD, {"local": local}, TmaError.DESTINATION)
        for operation in (_LOAD, _STORE)
        for local in (1, 16, 4096 - 480, 4096, (1 << 20) - 32)
    ),
]


def _bench():
    data = random_bytes(11, 0x4000)
    bench = UnitBench(
        data,
        width_bits=256,
        capacity=4096,
        entries=4,
        latency=5,
        readable=[(0x1000, 0x3000)],
        writable=[(0x3000, 0x4000)],
    )
    bench.describe(_AT_GOOD, _GOOD)
    bench.describe(_AT_OUT, _OUT)
    return bench


class _Commands:
    """Commands one at a time, each with the code of its completion."""

    def __init__(self, bench, ctx):
        self.bench, self.ctx, self.given = bench, ctx, 0

    async def code(self, operation, pointer, at=(), **fields):
        await self.bench.command(self.ctx, operation, pointer, at, id=self.given, **fields)
        self.given += 1
        await self.bench.completed(self.ctx, self.given)
        id, code = self.bench.completions[-1]
        assert id == self.given - 1 and len(self.bench.completions) == self.given
        return code

    async def succeeds(self, row):
        """A box is loaded, and stored elsewhere."""
        data = self.bench.data
        assert await self.code(_LOAD, _AT_GOOD, (0, row, 0), local=1024) == 0
        expected = data.copy()
        box_store(expected, _OUT, (0, 2, 1), box_load(data, _GOOD, (0, row, 0)))
        assert await self.code(_STORE, _AT_OUT, (0, 2, 1), local=1024) == 0
        assert np.array_equal(data, expected)


@pytest.mark.slow
@pytest.mark.must("tma-f", goal=">= 60 broken descriptors, pointers, commands: a code each")
def test_what_is_refused_touches_nothing(figure):
    bench = _bench()

    async def work(ctx):
        commands = _Commands(bench, ctx)
        await commands.succeeds(0)
        for number, (packed, code) in enumerate(_BROKEN):
            bench.describe(_AT_BROKEN, packed)
            assert await commands.code(TmaOperation.INVALIDATE, _AT_BROKEN) == 0
            before, scratchpad = bench.data.copy(), await bench.content(ctx)
            reads, writes = len(bench.memory.read_bursts), len(bench.memory.write_bursts)
            for operation in (_LOAD, _STORE):
                assert await commands.code(operation, _AT_BROKEN) == code.value, (number, code)
            # The descriptor was fetched, once.
            assert bench.memory.read_bursts[reads:] == [(_AT_BROKEN, 4)]
            assert len(bench.memory.write_bursts) == writes
            assert np.array_equal(bench.data, before)
            assert np.array_equal(await bench.content(ctx), scratchpad)
            await commands.succeeds(number % 5)
        for operation, pointer, fields, code in _COMMANDS:
            before, scratchpad = bench.data.copy(), await bench.content(ctx)
            reads, writes = len(bench.memory.read_bursts), len(bench.memory.write_bursts)
            assert await commands.code(operation, pointer, **fields) == code.value, (fields, code)
            assert len(bench.memory.read_bursts) == reads
            assert len(bench.memory.write_bursts) == writes
            assert np.array_equal(bench.data, before)
            assert np.array_equal(await bench.content(ctx), scratchpad)
        await commands.succeeds(1)

    bench.run(work)
    assert len(_BROKEN) >= 60
    figure(f"{len(_BROKEN)} broken descriptors, each loaded and stored, {len(_COMMANDS)} commands")


@pytest.mark.slow
@pytest.mark.must("tma-f", goal="SLVERR and DECERR on first, middle, last beat, fetch and B")
def test_a_response_ends_its_command_with_a_code(figure):
    bench = _bench()
    # First and last beat of the box, and the last of its first plane.
    boxes, stored = ([base, base + 0xE0, base + 0x2E0] for base in (_GOOD.base, _OUT.base))
    fetched = [_AT_BROKEN + 32 * beat for beat in (0, 2, 3)]
    cases = []

    async def work(ctx):
        commands = _Commands(bench, ctx)
        bench.describe(_AT_BROKEN, _GOOD)
        await commands.succeeds(0)
        slverr = (TmaError.READ_SLVERR, TmaError.WRITE_SLVERR)
        decerr = (TmaError.READ_DECERR, TmaError.WRITE_DECERR)
        for response, (read, write) in ((2, slverr), (3, decerr)):
            for place in boxes:
                await bench.operate(ctx, BarrierOperation.INIT, 2, arrivals=1)
                expect = {"arrivals": 1, "bytes": _GOOD.box_bytes}
                await bench.operate(ctx, BarrierOperation.ARRIVE_EXPECT, 2, **expect)
                bench.memory.failing[:] = [(place, place + 32, response)]
                signals = {"barrier": 2, "signals": 1}
                code = await commands.code(_LOAD, _AT_GOOD, (0, 0, 0), **signals)
                cases.append((code, read.value))
                # The phase is complete, and the flag stays until the next init.
                for _ in range(2):
                    answer = await bench.operate(ctx, BarrierOperation.PENDING_COUNT, 2)
                    assert (answer["phase"], answer["tx"], answer["flag"]) == (1, 0, 1)
                bench.memory.failing.clear()
                await commands.succeeds(3)
            for place in stored:
                bench.memory.failing[:] = [(place, place + 32, response)]
                cases.append((await commands.code(_STORE, _AT_OUT, (0, 0, 0)), write.value))
                bench.memory.failing.clear()
                await commands.succeeds(2)
            for place in fetched:
                for operation in (_LOAD, _STORE, TmaOperation.PREFETCH):
                    await commands.code(TmaOperation.INVALIDATE, _AT_BROKEN)
                    bench.memory.failing[:] = [(place, place + 32, response)]
                    cases.append((await commands.code(operation, _AT_BROKEN), read.value))
                    bench.memory.failing.clear()
                    await commands.succeeds(1)

    bench.run(work)
    assert [code for code, _ in cases] == [wanted for _, wanted in cases]
    figure(f"{len(cases)} responses")
