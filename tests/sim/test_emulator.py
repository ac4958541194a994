"""The emulator: equal to golden by bytes, and what it refuses by name."""

import dataclasses
import time

import numpy as np
import pytest

from hw.arch.config import named
from hw.arch.error_codes import LaunchError
from hw.arch.launch import HEADER_BYTES, Argument, LaunchEntry, pack_arguments, pack_list
from hw.arch.loops import BoxLoop
from hw.arch.pcu import PcuProgram
from hw.numeric.division import ceil_div
from hw.numeric.formats import bf16, fp32, int8, int32
from hw.numeric.product_formats import RESULT_FORMATS
from sim.drivers.matrix_unit_driver import MatrixTiling
from sim.emulator import EmulatorError, emulate
from sim.emulator.matrix import Passes, results
from sim.operands import random_operand
from sim.oracle import product as oracle
from tests.sw.chips import TINY, agcu_changed, copier, product, twins
from tests.units_matmul import UnitsMatmul

SMALL = named["small"]


def random_job(rng, config=TINY):
    fmt = (bf16, int8)[rng.integers(2)]
    out = int32 if fmt == int8 else (bf16, fp32)[rng.integers(2)]
    sides = (41, 14, 41) if config is TINY else (140, 70, 140)
    m, n, k = (int(side) for side in rng.integers(1, sides))
    lanes = config.width_bits // fmt.bits
    slab = lanes * int(rng.integers(1, 3))
    slots = max(1, ceil_div(k, slab)) + int(rng.integers(0, 2))
    return UnitsMatmul(config, m, n, k, fmt, out, lanes * 2, slab, slots)


def launch(job, a, b, rng, image=None):
    """Run a product; its result, after checks of every byte beside it."""
    layout = job.launch_memory(int(rng.integers(1 << 40)), image=image)
    memory = layout.bytes_before({"A": a, "B": b})
    before = bytes(memory)
    run = emulate(job.config, memory, list_address=layout.list_address)
    assert (run.status, run.error_code, run.launches) == ("done", LaunchError.NONE, 1)
    assert layout.changed_outside(before, memory) is None
    return layout.read(memory, "C"), run


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
        a, b = job.operands(rng, **kinds)
        got, run = launch(job, a, b, rng)
        expected = oracle(a, b, job.out.dtype)
        assert got.tobytes() == expected.tobytes(), job
        assert run.bytes_written == job.m * job.n * job.out.bits // 8
        assert run.units_used == {"pcu": 1, "pmu": 2, "agcu": 1}
        assert run.macs_issued >= job.m * job.n * job.k


@pytest.mark.parametrize("fmt", RESULT_FORMATS, ids=str)
def test_weights_by_row_are_the_columns_of_the_driver(fmt, seed):
    """Both layouts as the driver of the matrix unit sends them to the RTL give the same sums."""
    rng = np.random.default_rng(seed)
    columns, out = TINY.grid_columns, fmt.accumulator
    tiling = MatrixTiling(9, columns, 3 * TINY.width_bits // fmt.bits, columns, 16, fmt, out)
    a, b = (random_operand(rng, shape, fmt) for shape in ((9, tiling.k), (tiling.k, columns)))

    def vectors(words, lines):
        payload = np.ascontiguousarray(words[:, :-1]).view(np.uint8)
        return payload.reshape(1, 3, lines, TINY.width_bits // 8)

    left = vectors(tiling.activations(a), 9)
    for by_row in (False, True):
        right = vectors(tiling.weights(b, by_row=by_row), columns)
        program = PcuProgram(fmt, out, weights_by_row=by_row)
        got = results(TINY, program, Passes(9, left, right))
        assert got.tobytes() == oracle(a, b, out.dtype).tobytes()


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
    expected = oracle(a, b, np.float32)
    assert seen(expected).any()
    assert got.tobytes() == expected.tobytes()


def test_filters_forks_and_merges_equal_golden_by_bytes(seed):
    rng = np.random.default_rng(seed)
    for _ in range(5):
        job = random_job(rng)
        a, b = job.operands(rng, special_share=0.02)
        got, run = launch(job, a, b, rng, image=twins(job).pack())
        expected = oracle(a, b, job.out.dtype)
        assert got.tobytes() == expected.tobytes(), job
        assert run.units_used["pcu"] == 2


def _copy(program, sizes, rng):
    """Run a copier; the tensors that it read and wrote, and how the run ended."""
    image = program.pack()
    memory = bytearray(rng.bytes(1 << 16))
    bases = [0x4000 + 0x2000 * n for n in range(4)]
    entry = LaunchEntry(
        image_address=0x1000,
        image_bytes=len(image) - HEADER_BYTES,
        header=image[:HEADER_BYTES],
        argument_address=0x800,
        argument_count=4,
    )
    memory[0:64] = pack_list([entry], TINY.width_bits)
    table = pack_arguments([Argument(base) for base in bases])
    memory[0x800 : 0x800 + len(table)] = table
    memory[0x1000 : 0x1000 + entry.image_bytes] = image[HEADER_BYTES:]
    run = emulate(TINY, memory, list_address=0)
    tensors = [np.frombuffer(memory, np.uint8)[b : b + s].copy() for b, s in zip(bases, sizes)]
    return tensors, run


@pytest.mark.parametrize("holds", [False, True])
def test_an_entry_that_a_kernel_writes_must_be_held(holds):
    """A copier copies another entry over the one behind its own."""
    program = copier(first=[(0, 6), (1, 6)], second=[(0, 6), (1, 6)], packet=8)
    image = program.pack()
    tables = {0x800: (0x4000, 0x5000, 64, 0x6000), 0x900: (0x4000, 0x5000, 0x7000, 0x8000)}
    first, second = (
        LaunchEntry(
            image_address=0x1000,
            image_bytes=len(image) - HEADER_BYTES,
            header=image[:HEADER_BYTES],
            argument_address=table,
            argument_count=4,
            hold_next=holds,
        )
        for table in tables
    )
    memory = bytearray(0x9000)
    data = {0: pack_list([first, first], TINY.width_bits), 0x1000: image[HEADER_BYTES:]}
    data |= {at: pack_arguments([*map(Argument, each)]) for at, each in tables.items()}
    data |= {0x4000: second.pack(), 0x5000: bytes(range(200))}
    for address, content in data.items():
        memory[address : address + len(content)] = content
    if not holds:
        with pytest.raises(EmulatorError, match="entry 0 must not write entry 1 .* has hold_next"):
            emulate(TINY, memory, list_address=0, entries=2)
        return
    assert emulate(TINY, memory, list_address=0, entries=2).status == "done"
    copied = second.pack().ljust(384, b"\0") + bytes(range(200)).ljust(384, b"\0")
    assert memory[0x7000 : 0x7000 + 768] == memory[0x8000 : 0x8000 + 768] == copied


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


def _emulated(program):
    size = 6 * 64
    return _copy(program, [size, size, 2 * size, 2 * size], np.random.default_rng(0))


def test_streams_that_are_too_short_are_named():
    program = copier(first=[(0, 1), (1, 1)], second=[(0, 1), (1, 1)], packet=8)
    (load, other) = program.agcus[0].loads
    short = dataclasses.replace(load, loops=(BoxLoop(5, 0, 64),))
    with pytest.raises(EmulatorError, match=r"reach PMU \(1, 0\) W0 must be at least 48, not 40"):
        _emulated(agcu_changed(program, loads=(short, other)))
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
    looped = agcu_changed(program, descriptors=(x, y, (c[0], 0), d))
    with pytest.raises(
        EmulatorError, match="AGCU 0 load 0 must wait for a token of AGCU 0 store 0"
    ):
        _emulated(looped)
    twice = agcu_changed(program, descriptors=(x, y, c, (d[0], 2)))
    with pytest.raises(EmulatorError, match="AGCU 0 store 1 must not write where AGCU 0 store 0"):
        _emulated(twice)


def test_512_cubed_takes_well_under_a_second():
    """The goal is a twentieth of RTL's time, which is 8 seconds at the least."""
    job = UnitsMatmul(SMALL, 512, 512, 512, bf16, bf16, 32, 64, 8)
    rng = np.random.default_rng(1)
    a, b = job.operands(rng)
    took = []
    # The machine may be busy: the best of three counts.
    while len(took) < 3 and min(took, default=2.0) >= 1.5:
        start = time.process_time()
        got, _ = launch(job, a, b, rng)
        took.append(time.process_time() - start)
    assert min(took) < 1.5  # the memory of the test and its checks included
    rows = slice(0, 8)
    assert got[rows].tobytes() == oracle(a[rows], b, bf16.dtype).tobytes()
