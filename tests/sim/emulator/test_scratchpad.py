"""Scratchpads: what read engines send, against the engines' models step by step."""

import random

import numpy as np
import pytest

from hw.arch.config import named
from hw.arch.loops import LoopProgram
from hw.arch.pmu import Beyond, EngineProgram, PmuProgram, SlotRing
from hw.arch.words.pmu_word import Access, Level, bit_reverse, piece_positions, rows_log2
from sim.emulator import EmulatorError
from sim.emulator.scratchpad import Scratchpad
from tests.hw.step_model import moves_of
from tests.sw.chips import TINY

SMALL = named["small"]


def _lane_bytes(engine, position, width_bits):
    """Bytes of the scratchpad that a vector's lanes are."""
    lanes = width_bits // 8 // engine.element_bytes
    bits = lanes.bit_length() - 1
    found = []
    rows = rows_log2(engine.access, lanes=lanes)
    for place in piece_positions(position, lanes=lanes, rows_log2=rows):
        row = place // lanes
        group = place % lanes ^ bit_reverse(row % lanes, bits)
        first = row * width_bits // 8 + group * engine.element_bytes
        found += range(first, first + engine.element_bytes)
    return found


def _model(program, port, data):
    """What a reader sends, by its model in Python: turns of writers before it, one at a time."""
    reader = program.readers[port]
    memory = bytearray(b"\xff" * TINY.pmu.capacity_bytes)
    writers = [
        [moves_of(engine), iter(data[number]), engine, None]
        for number, engine in enumerate(program.writers)
        if engine is not None and engine.ring.buffer == reader.ring.buffer
    ]
    done = -1
    out = []
    for move in moves_of(reader):
        turn = move.lap * reader.ring.count + move.slot
        while done < turn:
            done += 1
            for moves, vectors, engine, _ in writers:
                for step in moves:
                    for at, byte in zip(
                        _lane_bytes(engine, step.position, TINY.width_bits), next(vectors)
                    ):
                        memory[at] = byte
                    if step.closes:
                        break
        if move.beyond:
            size = reader.element_bytes
            constant = (reader.beyond.constant & (1 << 8 * size) - 1).to_bytes(size, "little")
            out.append(constant * (8 // size))
        else:
            line = _lane_bytes(reader, move.position, TINY.width_bits)
            out.append(bytes(memory[at] for at in line))
    return b"".join(out)


def _random_engines(rng, *, plain):
    """Writers and a reader of one buffer whose slots lie apart."""
    size = rng.choice([1, 2, 4])
    lanes = 8 // size
    square = lanes * lanes
    count = rng.randint(1, 3)
    blocks = rng.randint(1, 3)
    ring = SlotRing(0, square * rng.randint(0, 2), 4 * square, count)
    slots = rng.randint(1, count)
    windows = rng.randint(1, 4)
    accesses = [Access.ROW, Access.COLUMN, *([Access.TWO_ROWS] if lanes > 1 else [])]

    def loops(access, slope=0):
        block = LoopProgram(blocks << shift, stride=square, slope=slope, outer=1, shift=shift)
        if access is Access.ROW:
            return (block, LoopProgram(lanes, stride=lanes))
        if access is Access.COLUMN:
            return (block, LoopProgram(lanes, stride=1))
        return (block, LoopProgram(lanes // 2, stride=2 * lanes), LoopProgram(2, stride=lanes // 2))

    turns = {"windows": LoopProgram(windows), "slots": LoopProgram(slots)}
    slope = 0 if plain or blocks + windows > 4 else 1
    shift = rng.randint(0, 2) if slope else 0
    access = rng.choice(accesses)
    write = EngineProgram(ring, loops(access, slope), element_bytes=size, access=access, **turns)
    access = rng.choice(accesses)
    beyond = (
        Beyond(rng.choice([2, 4, 5]), rng.randint(0, 2), 0x12345678) if rng.random() < 0.4 else None
    )
    read = EngineProgram(
        ring,
        loops(access, slope),
        element_bytes=size,
        access=access,
        repeats=LoopProgram(rng.randint(1, 3)),
        last_level=4,
        beyond=beyond,
        **turns,
    )
    return PmuProgram((write, None), (read, None))


@pytest.mark.parametrize("plain", [True, False], ids=["all slots alike", "slots that grow"])
def test_scratchpads_equal_the_engines_model(plain, seed):
    rng = random.Random(seed)
    for _ in range(25):
        program = _random_engines(rng, plain=plain)
        steps = sum(1 for _ in moves_of(program.writers[0]))
        data = np.frombuffer(rng.randbytes(8 * steps), np.uint8).reshape(-1, 8)
        pad = Scratchpad(TINY, program, "PMU", lambda _, count, data=data: data[:count])
        assert pad.read(0).tobytes() == _model(program, 0, [data]), program


def test_elements_of_two_widths_lie_where_the_banks_have_them(seed):
    """Bytes written as 16-bit elements and read as 32-bit ones."""
    rng = random.Random(seed)
    ring = SlotRing(0, 0, 64, 2)
    rows = (LoopProgram(4, stride=4),)
    write = EngineProgram(ring, rows, element_bytes=2, windows=LoopProgram(3))
    wide = (LoopProgram(4, stride=2),)
    read = EngineProgram(SlotRing(0, 0, 32, 2), wide, element_bytes=4, windows=LoopProgram(3))
    program = PmuProgram((write, None), (read, None))
    data = np.frombuffer(rng.randbytes(8 * 12), np.uint8).reshape(-1, 8)
    pad = Scratchpad(TINY, program, "PMU", lambda _, count: data[:count])
    got = pad.read(0).tobytes()
    assert got == _model(program, 0, [data])
    assert got != data.tobytes()


@pytest.mark.parametrize("sizes", [(2, 4), (4, 2), (1, 4), (4, 1), (1, 2)])
def test_slots_of_as_many_elements_but_of_other_sizes_are_not_alike(sizes, seed):
    """Their strides are equal numbers, of elements; their bytes are not."""
    rng = random.Random(seed)
    wrote, reads = sizes
    ring = SlotRing(0, 0, 64, 1)
    write, read = (
        EngineProgram(
            ring,
            (LoopProgram(2, stride=8 // size),),
            element_bytes=size,
            windows=LoopProgram(3),
        )
        for size in (wrote, reads)
    )
    data = np.frombuffer(rng.randbytes(8 * 6), np.uint8).reshape(-1, 8)
    program = PmuProgram((write, None), (read, None))
    pad = Scratchpad(TINY, program, "PMU", lambda _, count: data[:count])
    assert pad.read(0).tobytes() == _model(program, 0, [data])


@pytest.mark.parametrize("grows", ["writer", "reader", "second writer"])
def test_one_engine_whose_slots_grow_is_enough_to_leave_the_quick_path(grows, seed):
    """The others fill and empty their slots alike every time."""
    rng = random.Random(seed)

    def engine(name, base, lines):
        slope = int(name == grows)
        line = LoopProgram(lines - slope, stride=4, slope=slope, outer=Level.WINDOWS)
        return EngineProgram(SlotRing(0, base, 64, 2), (line,), windows=LoopProgram(3))

    writers = (engine("writer", 0, 4), engine("second writer", 32, 4))
    program = PmuProgram(writers, (engine("reader", 0, 12), None))
    data = [np.frombuffer(rng.randbytes(8 * 20), np.uint8).reshape(-1, 8) for _ in writers]
    pad = Scratchpad(TINY, program, "PMU", lambda number, count: data[number][:count])
    assert pad.read(0).tobytes() == _model(program, 0, data)


def test_two_writers_fill_one_slot(seed):
    rng = random.Random(seed)
    rows = (LoopProgram(4, stride=4),)
    halves = tuple(
        EngineProgram(SlotRing(0, 16 * half, 32, 2), rows, windows=LoopProgram(5))
        for half in (0, 1)
    )
    read = EngineProgram(SlotRing(0, 0, 32, 2), (LoopProgram(8, stride=4),), windows=LoopProgram(5))
    program = PmuProgram(halves, (None, read))
    data = [np.frombuffer(rng.randbytes(160), np.uint8).reshape(-1, 8) for _ in range(2)]
    pad = Scratchpad(TINY, program, "PMU", lambda number, count: data[number][:count])
    assert pad.read(1).tobytes() == _model(program, 1, data)


def _pad(write_ring, read_ring, count=4, **fields):
    rows = (LoopProgram(4, stride=4),)
    write = EngineProgram(write_ring, rows, windows=LoopProgram(count))
    read = EngineProgram(read_ring, rows, windows=LoopProgram(4))
    program = PmuProgram((write, fields.get("writer")), (read, fields.get("reader")))
    zeros = np.zeros((64, 8), np.uint8)
    return Scratchpad(TINY, program, "PMU (0, 1)", lambda _, number: zeros[:number])


@pytest.mark.parametrize(
    ("pad", "rule"),
    [
        (
            lambda: _pad(SlotRing(0, 0, 4, 2), SlotRing(0, 0, 4, 2)),
            "Slots of PMU (0, 1) must lie apart",
        ),
        (
            lambda: _pad(
                SlotRing(0, 0, 16, 2),
                SlotRing(0, 0, 16, 2),
                writer=EngineProgram(SlotRing(1, 16, 16, 1), (LoopProgram(4, stride=4),)),
            ),
            "Buffers of PMU (0, 1) must lie apart",
        ),
        (
            lambda: _pad(
                SlotRing(0, 0, 16, 2),
                SlotRing(0, 0, 16, 2),
                writer=EngineProgram(
                    SlotRing(0, 0, 16, 2), (LoopProgram(4, stride=4),), windows=LoopProgram(4)
                ),
            ),
            "Writers of a buffer of PMU (0, 1) must not meet",
        ),
        (
            lambda: _pad(SlotRing(0, 0, 16, 2), SlotRing(0, 0, 16, 2), count=3),
            "must be filled 4 times for R0, not 3",
        ),
        (
            lambda: _pad(SlotRing(1, 0, 16, 2), SlotRing(0, 64, 16, 2)),
            "Buffer 0 of PMU (0, 1) must have a writer",
        ),
    ],
)
def test_scratchpads_whose_values_depend_on_time_are_refused(pad, rule):
    with pytest.raises(EmulatorError) as caught:
        pad().read(0)
    assert rule in caught.value.message
