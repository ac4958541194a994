"""tma-d: two streams on one memory port, one of them blocked for ever."""

import numpy as np
import pytest

from hw.arch.agcu import AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram, Wait
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.launch import MAX_ARGUMENTS
from hw.arch.loops import BoxLoop
from hw.command.argument_reader import argument_write_layout
from hw.tma.standalone.unit_commands import TmaOperation
from hw.tma.standalone.vector_scratchpad import scratchpad_write_layout
from sim.drivers.agcu_case import MEMORY_BYTES
from tests.hw.agcu.agcu_stand import AGCU_SETS
from tests.hw.lib.stalling_memory import WORDS_AT_ONCE
from tests.hw.tma.standalone.item_bench import ITEM_SIZES, ItemBench
from tests.hw.tma.standalone.native_unit import NativeUnit, UnitCommand
from tests.native.native_memory import MemoryTiming, NativeMemory
from tests.native.port_glue import words_of

pytestmark = pytest.mark.slow

_LEAST = 0.98
_GOAL = "B keeps >= 0.98 of its rate alone while A is blocked for ever"
_SIZES = AGCU_SETS["a"]
#: Vectors of a box, those of the stream that is measured, and of these the first, which are not.
_BOX, _VECTORS, _BEFORE = 16, 3200, 160
_BEAT = _SIZES.width_bits // 8


def _nest(descriptor, boxes, waits=()):
    """Boxes at the same place, one after another."""
    return IssuerProgram(descriptor, (BoxLoop(boxes, 0, 0),), waits)


def _program(blocked, measured):
    """Stream 0 of a side, if there is one, with tokens for two boxes, and stream 1 of a side."""
    sides = {"load": [None, None], "store": [None, None]}
    if blocked:
        sides[blocked][0] = _nest(0, 50, (Wait(0, 1),))
    sides[measured][1] = _nest(1, _VECTORS // _BOX)
    columns = _BOX * _BEAT // 2
    tables = [
        (Descriptor(base=base, format=ElementFormat.BF16, dims=(columns,), box=(columns,)), 0)
        for base in (0, MEMORY_BYTES // 2)
    ]
    return AgcuProgram(
        loads=tuple(sides["load"]),
        stores=tuple(sides["store"]),
        descriptors=tuple(tables),
        credits=(2 if blocked else 0, 0),
    )


def _agcu_rate(model, blocked, measured):
    """Vectors per cycle of stream 1, once stream 0 has moved its two boxes and is blocked."""
    model.reset(1)
    model.set("agcu_config", _program(blocked, measured).pack(_SIZES.token_tracks))
    link = words_of(_SIZES.width_bits + 2)
    layout = argument_write_layout()
    arguments = [
        layout.const({"index": number, "value": 0, "stride": 0}).as_value().value
        for number in range(MAX_ARGUMENTS)
    ]
    count = words_of(layout.size)
    raw = b"".join(each.to_bytes(4 * count, "little") for each in arguments)
    memory = np.zeros((MEMORY_BYTES // (WORDS_AT_ONCE * _BEAT), WORDS_AT_ONCE * _BEAT // 4), "<u4")
    inputs = {
        "agcu_i_memory": memory,
        "agcu_i_argument": np.frombuffer(raw, "<u4").reshape(-1, count),
    }
    counts = {}
    for name, number, vectors in ((blocked, 0, 2 * _BOX), (measured, 1, _BEFORE)):
        if name == "load":
            counts[f"agcu_o_load_{number}"] = vectors
        elif name == "store":
            inputs[f"agcu_i_store_{number}"] = np.zeros((vectors, link), np.uint32)
    model.run(inputs, counts)
    left = _VECTORS - _BEFORE
    if measured == "load":
        moved = model.run({}, {"agcu_o_load_1": left})["agcu_o_load_1"]
    else:
        given = {"agcu_i_store_1": np.zeros((left, link), np.uint32)}
        moved = model.run(given, {})["agcu_i_store_1"]
    assert model.get("agcu_o_error") == 0
    return left / (moved.last_cycle - moved.first_cycle + 1)


@pytest.mark.must("tma-d", goal=_GOAL)
@pytest.mark.parametrize("measured", ["load", "store"])
@pytest.mark.parametrize("blocked", ["load", "store"])
def test_a_stream_of_an_agcu_keeps_its_rate(units_with_memories, blocked, measured, figure):
    alone, beside = (_agcu_rate(units_with_memories, each, measured) for each in (None, blocked))
    assert beside >= _LEAST * alone and alone > 0.8
    figure(f"{measured}s beside blocked {blocked}s: {beside:.3f} of {alone:.3f} vectors per cycle")


#: Boxes of 32 beats; those of the side that is blocked, and of the one that is measured.
_BLOCKED, _MEASURED = 4, 200
_SIDES = {"load": (TmaOperation.LOAD, "R"), "store": (TmaOperation.STORE, "W")}
_TABLE, _DATA = 0x100, 0x1000


def _unit_rate(model, measured, blocks=None, blocked_by="memory"):
    """Beats per cycle of a side, while the other one is blocked by memory or by the user."""
    bench = ItemBench(model, 1)
    tile = Descriptor(
        base=_DATA, format=ElementFormat.BF16, dims=(64, 64), strides=(128,), box=(64, 8)
    )
    pointer = bench.describe(_TABLE, tile)
    assert bench.code(TmaOperation.PREFETCH, pointer) == 0
    stalls = [0.0] * 5
    if blocks and blocked_by == "memory":
        stalls["AR R AW W B".split().index("R" if blocks == "load" else "W")] = 1.0
    timing = MemoryTiming(latency=10, stalls=stalls)
    memory = NativeMemory(bench.memory, timing=timing)
    unit = NativeUnit(model, "tma", ITEM_SIZES, memory)
    commands = [UnitCommand(_SIDES[blocks][0], pointer)] * _BLOCKED if blocks else []
    commands += [
        UnitCommand(_SIDES[measured][0], pointer, (0, 8 * (number % 8)), {"local": 4096})
        for number in range(_MEASURED)
    ]
    sent, counts = {"tma_i_commands": unit.words(commands)}, {"tma_o_completions": _MEASURED}
    cycles = 40 * _MEASURED
    if blocks and blocked_by == "user":
        # A vector of the user in every cycle; the boxes end once the user does.
        counts["tma_o_completions"] += _BLOCKED
        if blocks == "load":
            layout = scratchpad_write_layout(ITEM_SIZES.width_bits, ITEM_SIZES.vectors)
            sent["tma_i_writes"] = np.zeros((cycles, words_of(layout.size)), np.uint32)
        else:
            sent["tma_i_reads"] = np.zeros((cycles, 1), np.uint32)
            counts["tma_o_data"] = cycles
    crossed = model.run(sent, counts)
    channel = _SIDES[measured][1]
    if blocks and blocked_by == "user":
        user = crossed["tma_i_writes" if blocks == "load" else "tma_i_reads"]
        assert user.last_cycle - user.first_cycle + 1 == cycles
        assert memory.last[channel] < user.last_cycle
        other = _SIDES[blocks][1]
        assert memory.beats[other] == _BLOCKED * 32
    elif blocks:
        assert memory.beats[_SIDES[blocks][1]] == 0
    assert memory.beats[channel] == _MEASURED * 32
    return memory.beats[channel] / (memory.last[channel] - memory.first[channel] + 1)


@pytest.mark.must("tma-d", goal=_GOAL)
@pytest.mark.parametrize("blocked_by", ["memory", "user"])
@pytest.mark.parametrize(("blocked", "measured"), [("load", "store"), ("store", "load")])
def test_a_side_of_a_unit_keeps_its_rate(tma_unit, blocked, measured, blocked_by, figure):
    alone = _unit_rate(tma_unit, measured)
    beside = _unit_rate(tma_unit, measured, blocked, blocked_by)
    assert beside >= _LEAST * alone and alone > 0.9
    figure(
        f"{measured}s beside {blocked}s blocked by {blocked_by}: {beside:.3f} of {alone:.3f} beats "
        "per cycle"
    )
