"""The emulator: equal to golden by bytes, to the engines' models step by step, and to the chip's
error codes."""

import dataclasses
import random
import time

import numpy as np
import pytest

from hw.agcu.program import BoxLoop
from hw.command.launch import (
    Argument,
    ErrorCode,
    LaunchEntry,
    alignment_bytes,
    pack_arguments,
    pack_list,
)
from hw.configs import named
from hw.counters import LoopProgram
from hw.numeric import reference
from hw.numeric.formats import bf16, fp32, int8, int32
from hw.pcu.program import PcuProgram
from hw.pmu.layout import Access, bit_reverse, piece_positions, rows_log2
from hw.pmu.program import Beyond, EngineProgram, PmuProgram, SlotRing
from hw.tma.descriptor import Descriptor, ElementFormat
from hw.tma.descriptor import ErrorCode as TmaError
from sim.drivers.matrix_unit import MatrixTiling
from sim.drivers.units_matmul import UnitsMatmul
from sim.emulator import EmulatorError, emulate
from sim.emulator.boxes import BoxStream
from sim.emulator.matrix import Passes, results
from sim.emulator.scratchpad import Scratchpad
from sim.operands import random_operand
from sw.image import ImageError
from tests.sw.chips import TINY, copier, portal_changed, product, twins

SMALL = named["small"]


def random_job(rng, config=TINY):
    fmt = (bf16, int8)[rng.integers(2)]
    out = int32 if fmt == int8 else (bf16, fp32)[rng.integers(2)]
    sides = (41, 14, 41) if config is TINY else (140, 70, 140)
    m, n, k = (int(side) for side in rng.integers(1, sides))
    lanes = config.width_bits // fmt.bits
    slab = lanes * int(rng.integers(1, 3))
    slots = max(1, -(-k // slab)) + int(rng.integers(0, 2))
    return UnitsMatmul(config, m, n, k, fmt, out, lanes * 2, slab, slots)


def launch(job, a, b, rng, image=None):
    """Run a product; its result, after checks of every byte beside it."""
    places = job.layout()
    end = max(address + size for address, size in places.values())
    memory = bytearray(rng.bytes(end + 4096))
    for address, data in job.memory(a, b).items():
        memory[address : address + len(data)] = data
    if image is not None:
        address, size = places["image"]
        assert len(image) == size
        memory[address : address + size] = image
    before = bytes(memory)
    run = emulate(job.config, memory, list_address=places["list"][0])
    assert (run.status, run.error_code, run.launches) == ("done", ErrorCode.NONE, 1)
    address, size = places["C"]
    after = bytes(memory)
    assert after[:address] == before[:address]
    assert after[address + size :] == before[address + size :]
    raw = after[address : address + size]
    assert job.padding(raw) == job.padding(before[address : address + size])
    return job.result(raw), run


def operands(rng, job, **kinds):
    return tuple(
        random_operand(rng, shape, job.fmt, **kinds) for shape in ((job.m, job.k), (job.k, job.n))
    )


@pytest.mark.parametrize("config", [TINY, SMALL], ids=["tiny", "small"])
@pytest.mark.parametrize(
    "kinds",
    [
        {},
        {"special_share": 0.05},
        {"exponent_spread": 62},
        {"exponent_spread": 126, "special_share": 0.01},
    ],
    ids=["plain", "special", "wide", "widest"],
)
def test_products_equal_golden_by_bytes(config, kinds, seed):
    rng = np.random.default_rng(seed)
    for _ in range(5 if config is TINY else 2):
        job = random_job(rng, config)
        a, b = operands(rng, job, **kinds)
        got, run = launch(job, a, b, rng)
        expected = reference.cast(reference.matmul(a, b), job.out)
        assert got.tobytes() == expected.tobytes(), job
        assert run.bytes_written == job.m * job.n * job.out.bits // 8
        assert run.units_used == {"pcu": 1, "pmu": 2, "agcu": 1}
        assert run.macs_issued >= job.m * job.n * job.k


@pytest.mark.parametrize("fmt", [bf16, int8])
def test_weights_by_row_are_the_columns_of_the_driver(fmt, seed):
    """Both layouts as the driver of the matrix unit sends them to the RTL give the same sums."""
    rng = np.random.default_rng(seed)
    columns, out = TINY.grid_columns, fp32 if fmt == bf16 else int32
    tiling = MatrixTiling(9, columns, 3 * TINY.width_bits // fmt.bits, columns, 16, fmt, False)
    a, b = (random_operand(rng, shape, fmt) for shape in ((9, tiling.k), (tiling.k, columns)))

    def vectors(words, lines):
        payload = np.ascontiguousarray(words[:, :-1]).view(np.uint8)
        return payload.reshape(1, 3, lines, TINY.width_bits // 8)

    left = vectors(tiling.activations(a), 9)
    for by_row in (False, True):
        right = vectors(tiling.weights(b, by_row=by_row), columns)
        program = PcuProgram(fmt, out, weights_by_row=by_row)
        got = results(TINY, program, Passes(9, left, right))
        assert got.tobytes() == reference.matmul(a, b).tobytes()


@pytest.mark.parametrize(
    ("exponents", "seen"),
    [
        # Products that fp32 cannot hold: sums of subnormals, and below them zeros of either sign.
        ((56, 60), lambda sums: (sums != 0) & (np.abs(sums) < 2.0**-126)),
        ((1, 60), lambda sums: sums == 0),
        # Products that fit while their sums overflow, either way.
        ((187, 190), np.isinf),
        ((185, 200), np.isinf),
    ],
    ids=["subnormal sums", "sums that vanish", "sums too large", "products too large"],
)
def test_sums_at_the_ends_of_the_range_equal_golden(exponents, seen, seed):
    rng = np.random.default_rng(seed)
    job = UnitsMatmul(TINY, 16, 12, 16, bf16, fp32, 8, 16, 2)

    def operand(*shape):
        field = rng.integers(exponents[0], exponents[1] + 1, shape)
        return bf16.from_bits(
            rng.integers(0, 128, shape) | field << 7 | rng.integers(0, 2, shape) << 15
        )

    a, b = operand(16, 16), operand(16, 12)
    got, _ = launch(job, a, b, rng)
    expected = reference.matmul(a, b)
    assert seen(expected).any()
    assert got.tobytes() == expected.tobytes()


def test_filters_forks_and_merges_equal_golden_by_bytes(seed):
    rng = np.random.default_rng(seed)
    for _ in range(5):
        job = random_job(rng)
        a, b = operands(rng, job, special_share=0.02)
        got, run = launch(job, a, b, rng, image=twins(job).pack())
        expected = reference.cast(reference.matmul(a, b), job.out)
        assert got.tobytes() == expected.tobytes(), job
        assert run.units_used["pcu"] == 2


def _copy(program, sizes, rng):
    """Run a copier; the tensors that it read and wrote, and how the run ended."""
    image = program.pack()
    memory = bytearray(rng.bytes(1 << 16))
    bases = [0x4000 + 0x2000 * n for n in range(4)]
    entry = LaunchEntry(
        image_address=0x1000, image_bytes=len(image), argument_address=0x800, argument_count=4
    )
    memory[0:64] = pack_list([entry], TINY.width_bits)
    table = pack_arguments([Argument(base) for base in bases])
    memory[0x800 : 0x800 + len(table)] = table
    memory[0x1000 : 0x1000 + len(image)] = image
    run = emulate(TINY, memory, list_address=0)
    tensors = [np.frombuffer(memory, np.uint8)[b : b + s].copy() for b, s in zip(bases, sizes)]
    return tensors, run


@pytest.mark.parametrize(
    ("first", "second", "packet"),
    [
        ([(0, 1), (1, 1)], [(1, 2), (0, 2)], 4),
        ([(1, 3), (0, 3)], [(0, 1), (1, 1)], 2),
        ([(0, 6), (1, 6)], [(1, 1), (0, 1)], 8),
    ],
)
def test_merges_take_packets_by_rotation(first, second, packet, seed):
    rng = np.random.default_rng(seed)
    program = copier(first=first, second=second, packet=packet)
    size = 6 * 8 * 8
    (*sources, left, right), run = _copy(program, [size, size, 2 * size, 2 * size], rng)
    assert run.status == "done"
    assert (run.boxes, run.bytes_written, run.bytes_read) == (36, 4 * size, 2 * size)
    for got, rotation in ((left, first), (right, second)):
        queues = [list(source.reshape(-1, packet * 8)) for source in sources]
        expected = []
        while any(queues):
            for source, count in rotation:
                expected += queues[source][:count]
                del queues[source][:count]
        assert got.tobytes() == np.concatenate(expected).tobytes()


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
        [engine.moves(), iter(data[number]), engine, None]
        for number, engine in enumerate(program.writers)
        if engine is not None and engine.ring.buffer == reader.ring.buffer
    ]
    done = -1
    out = []
    for move in reader.moves():
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
        block = LoopProgram(blocks, stride=square, slope=slope, outer=1)
        if access is Access.ROW:
            return (block, LoopProgram(lanes, stride=lanes))
        if access is Access.COLUMN:
            return (block, LoopProgram(lanes, stride=1))
        return (block, LoopProgram(lanes // 2, stride=2 * lanes), LoopProgram(2, stride=lanes // 2))

    turns = {"windows": LoopProgram(windows), "slots": LoopProgram(slots)}
    slope = 0 if plain or blocks + windows > 4 else 1
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
        steps = sum(1 for _ in program.writers[0].moves())
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


def test_boxes_of_any_rank_are_gathered_and_scattered(seed):
    """Against an index a byte."""
    rng = np.random.default_rng(seed)
    for _ in range(30):
        rank = int(rng.integers(1, 4))
        dims = [int(x) for x in rng.integers(1, 9, rank)]
        box = [8, *(int(x) for x in rng.integers(1, 4, rank - 1))]
        strides, pitch = [], 16 * (1 + int(rng.integers(0, 2)))
        for extent in dims[1:]:
            strides.append(pitch)
            pitch *= extent
        descriptor = Descriptor(
            base=0, format=ElementFormat.INT8, dims=dims, strides=strides, box=box
        )
        points = np.zeros((3, 5), np.int64)
        points[:, :rank] = rng.integers(-6, 9, (3, rank))
        stream = BoxStream(descriptor, 64, points, 8, 40, 0)
        memory = np.frombuffer(rng.bytes(4096), np.uint8).copy()
        expected = []
        touched = {}
        beats = 0
        for point in points:
            for row in np.ndindex(*box[:0:-1]):
                place = [None, *row[::-1]]
                inside = all(0 <= point[d] + place[d] < dims[d] for d in range(1, rank))
                address = 64 + sum((point[d] + place[d]) * strides[d - 1] for d in range(1, rank))
                rows = set()
                for x in range(box[0]):
                    there = inside and 0 <= point[0] + x < dims[0]
                    expected.append(memory[address + point[0] + x] if there else 0)
                    if there:
                        touched[int(address + point[0] + x)] = len(expected) - 1
                        rows.add((address + point[0] + x) // 8)
                beats += len(rows)
        assert stream.load(memory).ravel().tolist() == expected
        assert stream.beats() == beats
        if touched:
            assert stream.reach() == (min(touched), max(touched) + 1)
        vectors = np.frombuffer(rng.bytes(len(expected)), np.uint8).reshape(-1, 8)
        after = memory.copy()
        stream.store(after, vectors)
        for address, index in touched.items():
            memory[address] = vectors.ravel()[index]
        assert after.tobytes() == memory.tobytes()


def _launched(spoil, entries=1):
    """A product launched after a change of its memory."""
    job = UnitsMatmul(TINY, 5, 3, 4, bf16, fp32, 8, 8, 2)
    rng = np.random.default_rng(0)
    places = job.layout()
    memory = bytearray(max(address + size for address, size in places.values()) + 4096)
    for address, data in job.memory(*operands(rng, job)).items():
        memory[address : address + len(data)] = data
    before = bytes(memory)
    address = spoil(memory, {name: place for name, (place, _) in places.items()})
    run = emulate(TINY, memory, list_address=places["list"][0] if address is None else address,
                  entries=entries)  # fmt: skip
    at, size = places["C"]
    assert memory[at : at + size] == before[at : at + size]
    return run


def _put(memory, address, value, size=4):
    memory[address : address + size] = value.to_bytes(size, "little")


@pytest.mark.parametrize(
    ("spoil", "code", "detail"),
    [
        (lambda m, p: p["list"] + 32, ErrorCode.LIST_ADDRESS, 0),
        (lambda m, p: 1 << 50, ErrorCode.LIST_ADDRESS, 0),
        (lambda m, p: 1 << 30, ErrorCode.READ_DECERR, 0),
        (lambda m, p: _put(m, p["list"], 8), ErrorCode.IMAGE_ADDRESS, 0),
        (lambda m, p: _put(m, p["list"] + 16, 0), ErrorCode.IMAGE_BYTES, 0),
        (lambda m, p: _put(m, p["list"] + 16, 1385), ErrorCode.IMAGE_BYTES, 0),
        (lambda m, p: _put(m, p["list"] + 20, 17), ErrorCode.ARGUMENT_COUNT, 0),
        (lambda m, p: _put(m, p["list"] + 8, 8), ErrorCode.ARGUMENT_ADDRESS, 0),
        (lambda m, p: _put(m, p["list"] + 8, 1 << 30), ErrorCode.READ_DECERR, 1),
        (lambda m, p: _put(m, p["list"] + 24, 0), ErrorCode.REPEAT, 0),
        (lambda m, p: _put(m, p["list"] + 24, 2), ErrorCode.UNIT, 255),
        (lambda m, p: _put(m, p["list"] + 60, 1), ErrorCode.RESERVED, 0),
        (lambda m, p: _put(m, p["list"], 1 << 30), ErrorCode.READ_DECERR, 2),
        (lambda m, p: _put(m, p["image"], 0), ErrorCode.MAGIC, 0),
        (lambda m, p: _put(m, p["image"] + 4, 2, 2), ErrorCode.VERSION, 0),
        (lambda m, p: _put(m, p["image"] + 6, 3, 2), ErrorCode.ROWS, 0),
        (lambda m, p: _put(m, p["image"] + 8, 0), ErrorCode.FINGERPRINT, 0),
        (lambda m, p: _put(m, p["image"] + 12, 1), ErrorCode.RESERVED, 0),
        (lambda m, p: _put(m, p["image"] + 16, 5, 2), ErrorCode.IMAGE_SIZE, 0),
        (lambda m, p: _put(m, p["arguments"], 8), ErrorCode.UNIT, TmaError.BASE.value),
        (lambda m, p: _put(m, p["arguments"], 1 << 30), ErrorCode.UNIT, TmaError.READ_DECERR.value),
        (
            lambda m, p: _put(m, p["arguments"] + 32, 1 << 30),
            ErrorCode.UNIT,
            TmaError.WRITE_DECERR.value,
        ),
    ],
)
def test_bad_launches_end_with_the_codes_of_the_chip(spoil, code, detail):
    run = _launched(spoil)
    assert (run.status, run.error_code, run.error_detail) == ("error", code, int(detail))
    assert run.launches == 0


def test_an_empty_list_is_an_error():
    assert _launched(lambda m, p: None, entries=0).error_code is ErrorCode.NO_ENTRIES


def test_a_later_entry_that_is_wrong_is_named_after_those_before_it_ran():
    job = UnitsMatmul(TINY, 5, 3, 4, bf16, fp32, 8, 8, 2)
    rng = np.random.default_rng(0)
    a, b = operands(rng, job)
    places = job.layout()
    memory = bytearray(1 << 16)
    for address, data in job.memory(a, b).items():
        memory[address : address + len(data)] = data
    run = emulate(TINY, memory, list_address=places["list"][0], entries=2)
    # Behind the list there are zeros.
    assert (run.error_code, run.error_entry, run.launches) == (ErrorCode.IMAGE_BYTES, 1, 1)
    address, size = places["C"]
    assert job.result(bytes(memory[address : address + size])).tobytes() == (
        reference.matmul(a, b).tobytes()
    )
    assert run.launch_bytes_read == 2 * alignment_bytes(64) + 48 + places["image"][1]


def test_words_that_no_program_makes_are_refused():
    def spoil(memory, places):
        memory[places["image"] + 24 + 7] |= 0x80

    with pytest.raises(ImageError):
        _launched(spoil)


def _emulated(program):
    size = 6 * 64
    return _copy(program, [size, size, 2 * size, 2 * size], np.random.default_rng(0))


def test_streams_that_are_too_short_are_named():
    program = copier(first=[(0, 1), (1, 1)], second=[(0, 1), (1, 1)], packet=8)
    (load, other) = program.agcus[0].loads
    short = dataclasses.replace(load, loops=(BoxLoop(5, 0, 64),))
    with pytest.raises(EmulatorError, match=r"reach PMU \(1, 0\) W0 must be at least 48, not 40"):
        _emulated(portal_changed(program, loads=(short, other)))
    with pytest.raises(EmulatorError, match=r"Input PCU \(0, 0\) activation must have a stream"):
        _emulated(_without_activations())


def _without_activations():
    """A product whose activations nothing routes."""
    program = product(4, 4, 4)
    tile = program.tiles[1, 0]
    outputs = [each for each in tile.vectors.outputs if str(each.output) != "north track 0"]
    switch = dataclasses.replace(tile, vectors=type(tile.vectors)(tile.vectors.ports, outputs))
    return dataclasses.replace(program, tiles={**program.tiles, (1, 0): switch})


def test_loads_of_what_the_same_kernel_stores_are_refused():
    program = copier(first=[(0, 1), (1, 1)], second=[(0, 1), (1, 1)], packet=8)
    agcu = program.agcus[0]
    x, y, c, d = agcu.descriptors
    looped = portal_changed(program, descriptors=(x, y, (c[0], 0), d))
    with pytest.raises(EmulatorError, match="AGCU 0 load 0 must not read where AGCU 0 store 0"):
        _emulated(looped)
    twice = portal_changed(program, descriptors=(x, y, c, (d[0], 2)))
    with pytest.raises(EmulatorError, match="AGCU 0 store 1 must not write where AGCU 0 store 0"):
        _emulated(twice)


def test_512_cubed_takes_well_under_a_second():
    """The goal is a twentieth of RTL's time, which is 8 seconds at the least."""
    job = UnitsMatmul(SMALL, 512, 512, 512, bf16, bf16, 32, 64, 8)
    rng = np.random.default_rng(1)
    a, b = operands(rng, job)
    start = time.process_time()
    got, _ = launch(job, a, b, rng)
    assert time.process_time() - start < 1.5  # the memory of the test and its checks included
    rows = slice(0, 8)
    assert got[rows].tobytes() == reference.cast(reference.matmul(a[rows], b), bf16).tobytes()
