"""The memory of a native TMA unit: its bytes, its timing, its errors, and accesses outside."""

import dataclasses

import numpy as np
import pytest

from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.error_codes import TmaError
from hw.tma.barriers.barrier_layouts import BarrierOperation
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.model import box_load, box_store, random_bytes, tensor_bytes
from tests.hw.tma.standalone.native_unit import NativeUnit, UnitCommand
from tests.hw.tma.standalone.unit_stand import STAND_SIZES
from tests.native.native_memory import MemoryTiming, NativeMemory, Violation

pytestmark = pytest.mark.slow

_SIZES = STAND_SIZES[256]
_ORIGIN = 0x7F_FFFF_F000
_TABLE, _BASE = 0x1000, 0x2000
_BOX = Descriptor(
    base=_BASE, format=ElementFormat.BF16, dims=(100, 20), strides=(208,), box=(64, 8)
)
_END = _BASE + tensor_bytes(_BOX)
_POINTER = _ORIGIN + _TABLE
#: They move parts of the tensor that do not meet, since a load and a store have no order.
_LOAD = UnitCommand(TmaOperation.LOAD, _POINTER, (40, 5), {"local": 1024})
_STORE = UnitCommand(TmaOperation.STORE, _POINTER, (-3, 14), {"local": 2048})


def _unit(model, seed, **memory):
    """The unit after reset, and the bytes of its memory."""
    model.reset(seed)
    data = random_bytes(seed, 0x4000)
    placed = dataclasses.replace(_BOX, base=_ORIGIN + _BASE)
    data[_TABLE : _TABLE + 128] = np.frombuffer(placed.pack(), np.uint8)
    served = NativeMemory(data, origin=_ORIGIN, seed=seed, **memory)
    return NativeUnit(model, "tma", _SIZES, served), data


def _only(*ranges):
    mask = np.zeros(0x4000, np.bool_)
    for start, end in ranges:
        mask[start:end] = True
    return mask


@pytest.mark.parametrize(
    "timing",
    [
        MemoryTiming(latency=3),
        MemoryTiming(
            latency=30,
            jitter=50,
            stalls=(0.9, 0.5, 0.2, 0.8, 0.95),
            interleaves=True,
            early_reads=True,
            late_writes=True,
        ),
    ],
)
def test_boxes_are_those_of_numpy(tma_unit, seed, timing):
    allowed = {"readable": _only((_TABLE, _END)), "writable": _only((_BASE, _END))}
    unit, data = _unit(tma_unit, seed, timing=timing, **allowed)
    content = random_bytes(seed + 1, _SIZES.scratchpad_bytes)
    expected, box = data.copy(), box_load(data, _BOX, (40, 5))
    unit.fill(content)
    assert np.array_equal(unit.dump(), content)
    signalling = dataclasses.replace(_LOAD, fields={**_LOAD.fields, "signals": 1, "barrier": 2})
    unit.operate(BarrierOperation.INIT, 2, arrivals=1)
    run = unit.run([signalling, _STORE], command_stall=0.5, completion_stall=0.5)
    assert sorted(run.completions) == [(0, 0), (1, 0)]
    box_store(expected, _BOX, (-3, 14), content[2048 : 2048 + _BOX.box_bytes])
    content[1024 : 1024 + _BOX.box_bytes] = box
    assert np.array_equal(data, expected)
    assert np.array_equal(unit.dump(), content)
    answer = unit.operate(BarrierOperation.PENDING_COUNT, 2)
    assert (answer["pending"], -answer["tx"] % (1 << 21)) == (1, _BOX.box_bytes)


def test_counts_are_those_of_the_bursts(tma_unit, seed):
    unit, _ = _unit(tma_unit, seed, timing=MemoryTiming(latency=40))
    run = unit.run([_LOAD] * 3)
    memory = unit.memory
    # A row of the box has 120 bytes of the tensor; a burst is of one row at most.
    starts = [_BASE + 208 * (5 + row) + 80 for row in range(8)]
    beats = sum((start + 119) // 32 - start // 32 + 1 for start in starts)
    bursts = memory.beats["AR"]
    assert memory.beats == {"AR": bursts, "R": 4 + 3 * beats, "AW": 0, "W": 0, "B": 0}
    assert 1 + 3 * 8 <= bursts <= 4 + 3 * beats
    assert memory.first["R"] - memory.first["AR"] == 40
    assert run.first_command < memory.first["AR"] and memory.last["R"] < run.last_completion
    assert memory.idle["R"] == memory.last["R"] - memory.first["R"] + 1 - memory.beats["R"]
    assert memory.most_reads > 1 and memory.owed == 0


@pytest.mark.parametrize(
    ("command", "mask", "message"),
    [
        (_LOAD, "readable", "read of a beat without a byte to be read"),
        (_STORE, "writable", "write of a byte not to be written"),
    ],
)
def test_an_access_outside_ends_the_run(tma_unit, seed, command, mask, message):
    """Of the last row of the box, one byte too few is allowed."""
    row, column = (12, 99) if command is _LOAD else (19, 60)
    last = _BASE + 208 * row + 2 * column + 1
    near = last // 32 * 32 if command is _LOAD else last
    for end in (last + 1, near):
        unit, _ = _unit(tma_unit, seed, **{mask: _only((_TABLE, end))})
        if end > last:
            assert unit.run([command]).completions == [(0, 0)]
        else:
            with pytest.raises(Violation, match=message):
                unit.run([command])


def test_failing_addresses_end_commands_with_their_codes(tma_unit, seed):
    start = _ORIGIN + _BASE + 208 * 15
    failing = [(start, start + 1, 2), (_ORIGIN + _BASE + 208 * 9 + 100, start - 208, 3)]
    unit, _ = _unit(tma_unit, seed, failing=failing)
    codes = [code for _, code in sorted(unit.run([_LOAD, _STORE]).completions)]
    assert codes == [TmaError.READ_DECERR.value, TmaError.WRITE_SLVERR.value]
