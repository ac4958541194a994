"""Im2col commands of a stand-alone TMA unit: columns of a convolution, random ones, refusals."""

import dataclasses
import random

import numpy as np
import pytest

import tilewright as tw
from hw.arch.boxes.im2col_box import packed_offsets
from hw.arch.descriptor import Descriptor, ElementFormat, Mode
from hw.arch.error_codes import TmaError
from hw.tma.barriers.barrier_layouts import BarrierOperation
from hw.tma.standalone.unit_commands import TmaOperation
from sim.tb._refusals import with_field
from tests.hw.tma.im2col_model import (
    im2col_load,
    im2col_store,
    random_im2col_case,
    random_im2col_place,
)
from tests.hw.tma.model import random_bytes
from tests.hw.tma.standalone.unit_bench import UnitBench, place_of, swizzled_places

_LOAD, _STORE = TmaOperation.LOAD, TmaOperation.STORE
_TABLE, _READ, _WRITTEN = 0x1000, (0x2000, 0x6000), (0x6000, 0xA000)
#: Channels, width, height and images, and the taps of a side of the filter.
_C, _W, _H, _N, _TAPS = 16, 6, 5, 2, 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width_bits", "memory"),
    [
        (64, {"latency": 9, "jitter": 9, "stall": 0.3}),
        (256, {"latency": 20}),
        (512, {"latency": 5, "stall": 0.9}),
    ],
)
def test_random_columns_of_a_scratchpad_are_those_of_numpy(width_bits, memory, seed):
    rng = random.Random(seed)
    capacity, count = 8192, 24
    half = capacity // 2
    data = random_bytes(seed, _WRITTEN[1])
    bench = UnitBench(
        data,
        seed=seed,
        width_bits=width_bits,
        capacity=capacity,
        readable=[(_TABLE, _READ[1])],
        writable=[_WRITTEN],
        **memory,
    )
    kinds = {_LOAD: [], _STORE: []}
    for side, region in ((_LOAD, _READ), (_STORE, _WRITTEN)):
        while len(kinds[side]) < 3:
            case = random_im2col_case(rng, width_bits=width_bits, region=region, max_vectors=40)
            if case[0].box_bytes <= half:
                bench.describe(_TABLE + 128 * (len(kinds[side]) + 4 * (side is _STORE)), case[0])
                kinds[side].append(case[0])
    scratchpad = random_bytes(seed + 1, capacity)
    before, expected = scratchpad.copy(), data.copy()
    jobs, counted = [], 0
    for id in range(count):
        side, number = rng.choice([_LOAD, _STORE]), rng.randrange(3)
        descriptor = kinds[side][number]
        at, offsets = random_im2col_place(rng, descriptor)
        step, last = place_of(descriptor, half, width_bits)
        local = rng.randrange(0, last + 1, step) + half * (side is _STORE)
        places = swizzled_places(local, descriptor.box_bytes, descriptor.swizzle)
        fields = {"id": id, "local": local, "offsets": packed_offsets(offsets)}
        if side is _LOAD:
            scratchpad[places] = im2col_load(expected, descriptor, at, offsets)
            fields |= {"signals": 1, "barrier": 3}
            counted += descriptor.box_bytes
        else:
            im2col_store(expected, descriptor, at, offsets, scratchpad[places])
        jobs.append((side, _TABLE + 128 * (number + 4 * (side is _STORE)), at, fields))

    async def work(ctx):
        await bench.fill(ctx, 0, before)
        await bench.operate(ctx, BarrierOperation.INIT, 3, arrivals=1)
        await bench.operate(ctx, BarrierOperation.EXPECT, 3, bytes=counted)
        for operation, pointer, at, fields in jobs:
            await bench.command(ctx, operation, pointer, at, **fields)
        await bench.completed(ctx, count)
        await ctx.tick().repeat(20)
        answer = await bench.operate(ctx, BarrierOperation.PENDING_COUNT, 3)
        assert (answer["tx"], answer["flag"]) == (0, 0)
        found.append(await bench.content(ctx))

    found = []
    bench.run(work)
    assert dict(bench.completions) == dict.fromkeys(range(count), 0)
    assert np.array_equal(data, expected)
    assert np.array_equal(found[0], scratchpad)


def _images(**change):
    """The map of a convolution of 3 × 3 taps with a padding of 1: columns of 32 pixels."""
    arguments = {
        "tensor_data_type": "UINT8",
        "global_address": _READ[0],
        "global_dim": (_C, _W, _H, _N),
        "global_strides": (_C, _C * _W, _C * _W * _H),
        "pixel_box_lower_corner": (-1, -1),
        "pixel_box_upper_corner": (1 - (_TAPS - 1),) * 2,
        "channels_per_pixel": _C,
        "pixels_per_column": 32,
    }
    return tw.TensorMap.encode_im2col(**arguments | change)


@pytest.mark.slow
def test_the_columns_of_a_convolution_are_those_of_numpy(seed):
    data = random_bytes(seed, _READ[1])
    images = data[_READ[0] :][: _C * _W * _H * _N].reshape(_N, _H, _W, _C)
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (_TAPS, _TAPS), axis=(1, 2))
    # By tap, then pixel of the output, then channel.
    columns = windows.transpose(4, 5, 0, 1, 2, 3).reshape(_TAPS * _TAPS, -1, _C)
    bench = UnitBench(
        data, width_bits=128, capacity=16384, latency=9, readable=[(_TABLE, _READ[1])]
    )
    tensor_map = _images()
    bench.describe(_TABLE, bytes(tensor_map))
    step = tensor_map.descriptor.im2col.pixels

    async def work(ctx):
        id = 0
        for tap in range(_TAPS * _TAPS):
            for first in (0, step):
                n, place = divmod(first, _W * _H)
                h, w = divmod(place, _W)
                await bench.command(
                    ctx,
                    _LOAD,
                    _TABLE,
                    (0, w - 1, h - 1, n),
                    id=id,
                    local=(2 * tap * step + first) * _C,
                    offsets=packed_offsets((tap % _TAPS, tap // _TAPS)),
                )
                id += 1
        await bench.completed(ctx, id)
        found.append(await bench.content(ctx))

    found = []
    bench.run(work)
    loaded = found[0][: 2 * _TAPS * _TAPS * step * _C].reshape(_TAPS * _TAPS, 2 * step, _C)
    pixels = _N * _H * _W
    assert np.array_equal(loaded[:, :pixels], columns)
    # Behind the last image.
    assert not loaded[:, pixels:].any()


#: Field of an im2col descriptor of rank 4, its index, values that are refused, and the code.
_FIELDS = [
    ("rank", 0, (1, 2), TmaError.RANK),
    ("rank", 0, (0, 6), TmaError.RANK),
    ("dims", 1, (0,), TmaError.DIMENSION),
    ("im2col_channels", 0, (0, 257, 0x8010), TmaError.IM2COL),
    ("im2col_channels", 0, (8, 15), TmaError.ROW_BYTES),
    ("im2col_pixels", 0, (0, 1025), TmaError.IM2COL),
    ("im2col_lower", 0, (-129, 128, 5), TmaError.IM2COL),
    ("im2col_lower", 1, (-129, 128, 4), TmaError.IM2COL),
    ("im2col_upper", 0, (-129, 128, -7), TmaError.IM2COL),
    ("im2col_upper", 1, (-129, 128, -6), TmaError.IM2COL),
    ("element_strides", 1, (0, 9), TmaError.ELEMENT_STRIDE),
    ("swizzle", 0, (4,), TmaError.SWIZZLE),
    ("mode", 0, (4, 5), TmaError.IM2COL_WIDE),
    # Other modes have a box.
    ("mode", 0, (0, 1, 2, 6), TmaError.BOX),
    # More than the scratchpad.
    ("im2col_pixels", 0, (1024,), TmaError.DESTINATION),
]


@pytest.mark.slow
def test_each_field_is_refused_and_nothing_moves():
    data = random_bytes(5, _READ[1])
    bench = UnitBench(data, width_bits=128, capacity=4096, readable=[(_TABLE, _READ[1])])
    good = bytes(_images())
    deep = {"global_dim": (_C, 4, 3, 2, 2), "global_strides": (16, 64, 192, 384)}
    deep |= {"pixel_box_lower_corner": (0, 0, 0), "pixel_box_upper_corner": (0, 0, 0)}
    bench.describe(_TABLE + 128, bytes(_images(**deep)))
    broken = [
        (with_field(good, field, index, value), code)
        for field, index, values, code in _FIELDS
        for value in values
    ]
    codes = []

    async def code(ctx, operation, pointer, **fields):
        await bench.command(ctx, operation, pointer, (0, 0, 0, 0), id=0, **fields)
        await bench.completed(ctx, len(codes) + 1)
        codes.append(bench.completions[-1][1])
        return codes[-1]

    async def work(ctx):
        before = await bench.content(ctx)
        for packed, wanted in broken:
            bench.describe(_TABLE, packed)
            await code(ctx, TmaOperation.INVALIDATE, _TABLE)
            for operation in (_LOAD, _STORE):
                assert await code(ctx, operation, _TABLE) == wanted.value, (packed, wanted)
        bench.describe(_TABLE, good)
        await code(ctx, TmaOperation.INVALIDATE, _TABLE)
        # Offsets of rank 5 have 15 bits, and four rows are of two dimensions.
        assert await code(ctx, _LOAD, _TABLE + 128, offsets=0x8000) == TmaError.OFFSETS.value
        assert await code(ctx, TmaOperation.GATHER4, _TABLE) == TmaError.RANK.value
        assert all(address < _READ[0] for address, _ in bench.memory.read_bursts)
        assert np.array_equal(await bench.content(ctx), before)
        assert await code(ctx, _LOAD, _TABLE, offsets=0xFFFF) == 0
        assert await code(ctx, _LOAD, _TABLE + 128, offsets=0x7FFF) == 0
        assert not (await bench.content(ctx))[: 32 * _C].any()

    bench.run(work)
    assert not bench.memory.write_bursts


def test_a_packed_descriptor_is_that_which_was_made():
    descriptor = _images(element_strides=(1, 2, 1, 1)).descriptor
    assert Descriptor.unpack(descriptor.pack()) == descriptor
    assert descriptor.format is ElementFormat.UINT8
    assert (descriptor.row_bytes, descriptor.rows, descriptor.box_bytes) == (16, 32, 512)
    broken = with_field(descriptor.pack(), "mode", 0, 0)
    with pytest.raises(tw.BadInputError, match="im2col fields must be 0 of a tile"):
        Descriptor.unpack(broken)
    with pytest.raises(tw.BadInputError, match=r"Mode must be Mode.IM2COL with im2col, not"):
        dataclasses.replace(descriptor, mode=Mode.TILE)
