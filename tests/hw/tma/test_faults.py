"""Faults put into the engine's source: a test that could not see them would prove nothing."""

import dataclasses
import importlib
import inspect
import types

import numpy as np
import pytest

from hw.arch.descriptor import Descriptor, ElementFormat
from hw.lib import bursts
from hw.tma import burst_splitter, layouts, realign
from tests.hw.tma import test_load, test_store
from tests.hw.tma.model import as_vectors, box_load, box_store, random_bytes


def mutant(module, healthy, faulty):
    """A copy of a module in which one piece of source is another."""
    source = inspect.getsource(module)
    assert source.count(healthy) == 1, f"{healthy!r} is not once in {module.__name__}"
    copy = types.ModuleType(f"{module.__name__}_faulty")
    exec(compile(source.replace(healthy, faulty), module.__file__, "exec"), copy.__dict__)
    return copy


#: Rows of 1 KiB across 4 KiB boundaries, and rows that end within a beat.
ACROSS = Descriptor(
    base=0x1D80, format=ElementFormat.FP32, dims=(256, 4), strides=(1040,), box=(256, 4)
)
RAGGED = dataclasses.replace(ACROSS, dims=(9, 4), box=(16, 4))


def load(descriptor):
    data = random_bytes(1, 0x5000)
    result = test_load.run(
        data, [(descriptor.pack(), (0, 0), 0)], readable=[(0x1000, 0x4000)], latency=3
    )
    return result.vectors[0] == as_vectors(box_load(data, descriptor, (0, 0)), 64)


def store(descriptor):
    data = random_bytes(1, 0x5000)
    expected = data.copy()
    box = random_bytes(2, descriptor.box_bytes)
    box_store(expected, descriptor, (0, 0), box)
    test_store.run(
        data, [(descriptor.pack(), (0, 0), 0, box)], writable=[(0x1000, 0x4000)], latency=3
    )
    return np.array_equal(data, expected)


@pytest.mark.parametrize("side", [load, store])
@pytest.mark.parametrize("descriptor", [ACROSS, RAGGED], ids=["across", "ragged"])
def test_the_healthy_engine_passes_what_catches_the_faults(side, descriptor):
    assert side(descriptor)


@pytest.mark.parametrize("side", [load, store])
@pytest.mark.parametrize("change", ["+ 1", "- 1"])
def test_a_4_kib_split_off_by_one_is_caught(side, change, planted):
    faulty = mutant(
        bursts,
        "room.eq(Const(most) - address[:within])",
        f"room.eq(Const(most) - address[:within] {change})",
    )
    planted.setattr(burst_splitter, "first_burst", faulty.first_burst)
    # Bursts as long as AXI allows, so that the only boundary at stake is 4 KiB.
    planted.setattr(layouts.TmaLayouts, "burst_beats", 128)
    # Cut too early, a load is only wrong; the checker stops the others.
    shorter = side is load and change == "- 1"
    with pytest.raises(AssertionError, match="where False" if shorter else "BOUNDARY: an INCR"):
        assert side(ACROSS)


def test_a_wrong_last_write_strobe_is_caught(planted):
    faulty = mutant(
        realign,
        "last_bytes = Mux(ends, plan.tail, beat_bytes)",
        "last_bytes = Mux(ends, plan.tail + 1, beat_bytes)",
    )
    planted.setattr(
        importlib.import_module("hw.tma.store"), "VectorsToBeats", faulty.VectorsToBeats
    )
    assert not store(RAGGED)


def test_a_missing_zero_fill_is_caught(planted):
    faulty = mutant(realign, "beat.data & _spread(slots.keep)", "beat.data")
    planted.setattr(importlib.import_module("hw.tma.load"), "BeatsToVectors", faulty.BeatsToVectors)
    assert not load(RAGGED)


@pytest.mark.slow
def test_landing_room_not_reserved_is_caught(planted):
    source = inspect.getmodule(test_load.LoadEngine)
    faulty = mutant(source, "(room > burst.length)", "(room != 0)")
    planted.setattr(test_load, "LoadEngine", faulty.LoadEngine)
    data = random_bytes(1, 0x5000)
    with pytest.raises(AssertionError, match="landing room"):
        test_load.run(
            data,
            [(ACROSS.pack(), (0, 0), 0)],
            readable=[(0x1000, 0x4000)],
            landing_beats=16,
            stall=0.7,
        )
