"""tma-b: items TMA-1 to TMA-5: descriptors, boxes, fills, swizzles and im2col on RTL."""

import dataclasses
import itertools

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from hw.arch.boxes.im2col_box import Im2colBox, packed_offsets
from hw.arch.descriptor import (
    MAX_ELEMENT_STRIDE,
    MAX_RANK,
    NAN_FORMATS,
    Descriptor,
    ElementFormat,
    Mode,
    OobFill,
    Swizzle,
)
from hw.arch.error_codes import TmaError
from hw.array.cell import Cell
from hw.array.operand import OperandRecoder
from hw.numeric.formats import bf16, fp16, fp32
from hw.tma.barriers.barrier_layouts import BarrierOperation
from hw.tma.standalone.unit_commands import TmaOperation
from sim.tb._refusals import REFUSALS, with_field
from tests.hw.tma.standalone.item_bench import ITEM_SIZES, WINDOW_BYTES, ItemBench

pytestmark = pytest.mark.slow

_LOAD, _STORE = TmaOperation.LOAD, TmaOperation.STORE
#: Of the window: a descriptor and the tensor behind it.
_TABLE, _DATA = 0x100, 0x1000
_FAR = 1 << 40
_INT8, _BF16, _FP32 = ElementFormat.INT8, ElementFormat.BF16, ElementFormat.FP32


@pytest.fixture
def model(tma_unit):
    return tma_unit


def _described(base, dims, box, strides=(), kind=_INT8, **fields):
    return Descriptor(base=base, format=kind, dims=dims, strides=strides, box=box, **fields)


def _dense(rank, kind=_INT8, **fields):
    """A tensor whose rows are 64 bytes apart, with as many dimensions."""
    dims = (40, 6, 4, 3, 2)[:rank]
    strides = (64, 400, 1600, 4800)[: rank - 1]
    box = (32, 5, 3, 2, 2)[:rank]
    return _described(_FAR + _DATA, dims, box, strides, kind, **fields)


def _limits():
    """Field, origin of the memory, descriptor and coordinates of boxes with a field at a limit."""
    top = (1 << ITEM_SIZES.address_bits) - WINDOW_BYTES
    yield "base", 0, _described(0, (16,), (16,)), (0,)
    yield "base", top, _described(top + WINDOW_BYTES - 16, (16,), (16,)), (0,)
    for rank in range(1, MAX_RANK + 1):
        yield "rank", _FAR, _dense(rank), (0,) * rank
        box = (16,) + (2,) * (rank - 1)
        least = _described(_FAR + _DATA, (1,) * rank, box, (16,) * (rank - 1))
        yield "dims", _FAR, least, (0,) * rank
    for kind in ElementFormat:
        count = 32 // kind.bytes
        yield "format", _FAR, _described(_FAR + _DATA, (count, 9), (count, 4), (48,), kind), (1, 6)
    # The last index that a coordinate can name, of the longest dimension.
    last = (1 << 31) - 1
    at = last - 15
    yield "dims", _FAR, _described(_FAR + _DATA - at, ((1 << 32) - 1,), (16,)), (at,)
    for spot in range(1, MAX_RANK):
        rank = spot + 1
        where = (0,) * spot
        dims, most = (16,) + (1,) * (spot - 1), (1 << 40) - 16
        for base, count, stride, index in (
            (_FAR + _DATA - 16 * last, (1 << 32) - 1, 16, last),
            (_FAR + _DATA - most, 2, most, 1),
            (_FAR + _DATA, 7, 0, 3),
        ):
            described = _described(
                base, (*dims, count), (16,) + (1,) * spot, (16,) * (spot - 1) + (stride,)
            )
            yield "dims, strides", _FAR, described, (*where, index)
        for extent in (1, 256):
            box = (16,) + (1,) * (spot - 1) + (extent,)
            described = _described(_FAR + _DATA, (*dims, 256), box, (64,) * spot)
            yield "box", _FAR, described, (0,) * rank
        steps = (8,) + (1,) * (spot - 1) + (MAX_ELEMENT_STRIDE,)
        described = _described(
            _FAR + _DATA, (*dims, 256), (*box[:-1], 250), (64,) * spot, element_strides=steps
        )
        yield "element_strides", _FAR, described, (0,) * spot + (3,)
    for kind in (_INT8, _FP32):
        yield "box", _FAR, _described(_FAR + _DATA, (256,), (256,), (), kind), (0,)
    for swizzle in Swizzle:
        row = min(swizzle.bytes, 128)
        yield (
            "swizzle",
            _FAR,
            _described(_FAR + _DATA, (row, 32), (row, 32), (144,), swizzle=swizzle),
            (0, 0),
        )
    for kind, fill in itertools.product(NAN_FORMATS, OobFill):
        yield "oob_fill", _FAR, _dense(2, kind, oob_fill=fill), (30, 3)


@pytest.mark.must("tma-b", goal="TMA-1: every field at its limits, every refusal by its code")
def test_tma_1_descriptor(model, seed, figure):
    cases = list(_limits())
    for number, (field, origin, described, at) in enumerate(cases):
        bench = ItemBench(model, seed + number, origin=origin)
        pointer = bench.describe(_TABLE, described)
        bench.expect_load(described, at, 1024)
        assert bench.code(_LOAD, pointer, at, local=1024) == 0, (field, described)
        bench.check(bench.memory.copy())
        # Rows that are one in memory have no order among themselves.
        if 0 not in described.strides:
            expected = bench.memory.copy()
            bench.expect_store(expected, described, at, 2048)
            assert bench.code(_STORE, pointer, at, local=2048) == 0, (field, described)
            bench.check(expected)
    good, bad = _dense(5), 0
    bench = ItemBench(model, seed, origin=_FAR)
    for field, index, value, code in REFUSALS:
        if (field, value) in _BUILT:
            continue
        pointer = bench.describe(_TABLE, with_field(good.pack(), field, index, value))
        before = bench.memory.copy()
        assert bench.code(TmaOperation.INVALIDATE, pointer) == 0
        for operation in (_LOAD, _STORE):
            assert bench.code(operation, pointer, (0,) * 5) == code.value, (field, value)
            bad += 1
        bench.check(before)
    figure(f"{len(cases)} boxes with a field at a limit, {bad} refusals")


#: Of `REFUSALS`, which are of an engine without features, those that the unit takes.
_BUILT = (("element_strides", 2), ("swizzle", 1), ("mode", 3))


@pytest.mark.must(
    "tma-b", goal="TMA-2: signed coordinates; fill, drop and full byte count outside the tensor"
)
def test_tma_2_boxes_outside(model, seed, figure):
    boxes = 0
    for rank in range(1, MAX_RANK + 1):
        described = _dense(rank)
        bench = ItemBench(model, seed + rank, origin=_FAR)
        pointer = bench.describe(_TABLE, described)
        for spot in range(rank):
            size, extent = described.dims[spot], described.box[spot]
            outside = (-(1 << 31), -extent, 1 - extent, -1, 0, size - 1, size, (1 << 31) - 1)
            for index in outside:
                at = [0] * rank
                at[spot] = index
                at[rank - 1 - spot] += spot != rank - 1 - spot and 1
                bench.expect_load(described, at)
                bench.unit.operate(BarrierOperation.INIT, 1, arrivals=1)
                assert bench.code(_LOAD, pointer, at, signals=1, barrier=1) == 0
                answer = bench.unit.operate(BarrierOperation.PENDING_COUNT, 1)
                assert -answer["tx"] % (1 << 21) == described.box_bytes
                expected = bench.memory.copy()
                bench.expect_store(expected, described, at, 4096)
                assert bench.code(_STORE, pointer, at, local=4096) == 0
                bench.check(expected)
                boxes += 1
    figure(f"{boxes} boxes loaded and stored")


def _products(kind, activations, weight):
    """Products of a cell with a weight, from bits of activations; at the edge of an array."""
    m = Module()
    m.submodules.cell = cell = Cell(formats=(kind,), latency=1)
    raws = []
    for port, name in ((cell.i_a, "a"), (cell.i_w, "w")):
        m.submodules[name] = recoder = OperandRecoder(formats=(kind,))
        raws.append(Signal(16))
        m.d.comb += [recoder.i_bits.eq(raws[-1]), port.eq(recoder.o_operand)]
    found = []

    async def run(ctx):
        ctx.set(raws[1], weight)
        for port in (cell.i_w_load, cell.i_swap):
            ctx.set(port, 1)
            await ctx.tick()
        for bits in [*activations, 0, 0, 0]:
            ctx.set(raws[0], bits)
            found.append(ctx.get(cell.o_p))
            await ctx.tick()

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(run)
    simulator.run()
    return fp32.from_bits(np.array(found[3:], np.uint32))


@pytest.mark.must("tma-b", goal="TMA-3: NaN fill of float types, which multiplies as zero")
def test_tma_3_nan_fill(model, seed, figure):
    for number, kind in enumerate(ElementFormat):
        count = 32 // kind.bytes
        bench = ItemBench(model, seed + number, origin=_FAR)
        tile = {"dims": (count - 3, 5), "box": (count, 4), "strides": (48,)}
        plain = _described(_FAR + _DATA, kind=kind, **tile)
        pointer = bench.describe(_TABLE, with_field(plain.pack(), "oob_fill", 0, 1))
        if kind not in NAN_FORMATS:
            assert bench.code(_LOAD, pointer, (0, 2)) == TmaError.OOB_FILL.value
            bench.check()
            continue
        filled = dataclasses.replace(plain, oob_fill=OobFill.NAN)
        bench.expect_load(filled, (-2, 2))
        assert bench.code(_LOAD, pointer, (-2, 2)) == 0
        bench.check()
        box = bench.unit.dump()[: filled.box_bytes].view(f"<u{kind.bytes}")
        outside = np.ones((4, count), np.bool_)
        outside[:3, 2 : count - 1] = False
        nan = (1 << 8 * kind.bytes - 1) - 1
        assert (box[outside.reshape(-1)] == nan).all()
        if kind is _FP32:
            continue
        format_ = {_BF16: bf16, ElementFormat.FP16: fp16}[kind]
        # Zeros outside, and values of the memory with small exponents inside.
        bench.memory[_DATA:][1:240:2] &= 0xBF
        assert bench.code(_LOAD, pointer, (-2, 2)) == 0
        box = bench.unit.dump()[: filled.box_bytes].view("<u2")
        values = np.where(outside.reshape(-1), 0, format_.from_bits(box).astype(np.float64))
        three = int(format_.bits_of(np.array(3.0, format_.dtype)))
        got = _products(format_, box.tolist(), three)
        np.testing.assert_array_equal(got, (3 * values).astype(np.float32))
    figure(f"{len(NAN_FORMATS)} formats filled, {len(ElementFormat) - len(NAN_FORMATS)} refused")


#: Banks of a scratchpad: words of 16 bytes side by side.
_BANKS, _WORD = 8, 16


def _conflicts(banks):
    """Accesses beyond the first to a bank, of words read at a time."""
    return len(banks) - len(set(banks))


@pytest.mark.must("tma-b", goal="TMA-4: rows and columns of swizzled tiles without bank conflicts")
def test_tma_4_swizzle(model, seed, figure):
    found = {}
    for swizzle in Swizzle:
        # Without a swizzle, a tile as wide as that of the widest one.
        words = 8 if swizzle is Swizzle.NONE else swizzle.bytes // _WORD
        rows = 16
        bench = ItemBench(model, seed, origin=_FAR)
        tile = (words * _WORD, rows)
        described = _described(_FAR + _DATA, tile, tile, tile[:1], swizzle=swizzle)
        bench.memory[_DATA : _DATA + described.box_bytes] = np.repeat(
            np.arange(rows * words, dtype=np.uint8), _WORD
        )
        pointer = bench.describe(_TABLE, described)
        assert bench.code(_LOAD, pointer, (0, 0), local=1024) == 0
        held = bench.unit.dump()[1024 : 1024 + described.box_bytes].reshape(-1, _WORD)
        assert (held == held[:, :1]).all()
        # Bank of the word in each row and column of the tile.
        banks = np.empty(rows * words, np.int64)
        banks[held[:, 0]] = np.arange(rows * words) % _BANKS
        banks = banks.reshape(rows, words).tolist()
        across = sum(_conflicts(row) for row in banks)
        down = sum(
            _conflicts([banks[row][column] for row in range(first, first + _BANKS)])
            for column in range(words)
            for first in range(0, rows, _BANKS)
        )
        found[swizzle] = (across, down)
        # The way back is the same.
        before = bench.memory.copy()
        bench.memory[_DATA : _DATA + described.box_bytes] = 0
        assert bench.code(_STORE, pointer, (0, 0), local=1024) == 0
        assert np.array_equal(bench.memory, before)
    assert found.pop(Swizzle.NONE) == (0, 2 * 8 * 7)
    assert set(found.values()) == {(0, 0)}
    figure(f"conflicts of {_BANKS} banks: 0 in rows and columns, 112 in columns without a swizzle")


@pytest.mark.must("tma-b", goal="TMA-5: im2col equals numpy's; gather4, scatter4; w modes refused")
def test_tma_5_im2col_and_rows(model, seed, figure):
    bench = ItemBench(model, seed, origin=_FAR)
    # A filter of 3 × 3 with a padding of 1 over images of 6 × 5 pixels of 16 channels.
    channels, width, height, images = 16, 6, 5, 2
    taps = {}
    described = _described(
        _FAR + _DATA,
        (channels, width, height, images),
        (),
        (16, 96, 480),
        mode=Mode.IM2COL,
        im2col=Im2colBox((-1, -1), (-1, -1), channels, width * height * images),
    )
    pointer = bench.describe(_TABLE, described)
    tensor = bench.memory[_DATA : _DATA + 960].reshape(images, height, width, channels)
    padded = np.pad(tensor, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    for tap in itertools.product(range(3), repeat=2):
        offsets = packed_offsets(tap[::-1])
        assert bench.code(_LOAD, pointer, (0, -1, -1, 0), offsets=offsets) == 0
        taps[tap] = bench.unit.dump()[: described.box_bytes]
        assert np.array_equal(taps[tap], windows[..., tap[0], tap[1]].reshape(-1))
    wide = with_field(described.pack(), "mode", 0, Mode.IM2COL_W.value)
    for mode in (Mode.IM2COL_W, Mode.IM2COL_W_128):
        wide = with_field(described.pack(), "mode", 0, mode.value)
        pointer = bench.describe(_TABLE + 0x80 * mode.value, wide)
        for operation in (_LOAD, _STORE):
            code = bench.code(operation, pointer, (0, -1, -1, 0))
            assert code == TmaError.IM2COL_WIDE.value
    bench = ItemBench(model, seed, origin=_FAR)
    table = _described(_FAR + _DATA, (64, 20), (48, 1), (80,))
    pointer = bench.describe(_TABLE, table)
    rows = (7, -1, 19, 7)
    for number, row in enumerate(rows):
        bench.expect_load(table, (8, row), 48 * number)
    assert bench.code(TmaOperation.GATHER4, pointer, (8, *rows)) == 0
    bench.check()
    expected = bench.memory.copy()
    for number, row in enumerate(targets := (3, 20, 0, 12)):
        bench.expect_store(expected, table, (24, row), 4096 + 48 * number)
    assert bench.code(TmaOperation.SCATTER4, pointer, (24, *targets), local=4096) == 0
    bench.check(expected)
    figure(f"{len(taps)} taps, 2 modes refused, 4 rows gathered and scattered")
