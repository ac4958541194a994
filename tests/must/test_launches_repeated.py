"""unit-i: iterations of a kernel overlap, as one launch; kernels follow and write one another."""

import dataclasses
import itertools
import time

import numpy as np
import pytest

from gen.verilog import emit
from hw.arch.config import named
from hw.arch.launch import (
    HEADER_BYTES,
    Argument,
    LaunchEntry,
    TraceKind,
    alignment_bytes,
    entry_layout,
    pack_arguments,
    pack_list,
)
from hw.chip import Chip
from hw.numeric.formats import bf16, int8, int32
from sim.emulator import EmulatorError, emulate
from sim.native.chip_model import ChipModel, MemoryConditions
from sim.oracle import product
from sw.compiler import compile_kernel
from sw.kernels.matmul import matmul
from sw.prove import prove
from sw.prove.memory_order import memory_faults
from tests.gemv_layers import GemvLayers

CHIP = named["small"]
LAYERS = 8
#: Places in memory: list, argument tables, images, vectors, other arrays, matrices.
_LIST, _TABLES, _IMAGES, _VECTORS, _ARRAYS, _MATRICES = (
    0x1000, 0x2000, 0x4000, 0x10_000, 0x30_000, 0x80_000,
)  # fmt: skip
_SMALL = GemvLayers(CHIP, 256, 64, 64)


@pytest.fixture(scope="module")
def model(heavy_lock):
    """Model of `small`."""
    with heavy_lock(), ChipModel(emit(Chip(CHIP)), CHIP, seed=5) as chip:
        yield chip


@dataclasses.dataclass(frozen=True)
class Kernel:
    """Image, arguments, iterations of an entry."""

    image: bytes
    arguments: tuple[Argument, ...]
    repeat: int = 1
    hold_next: bool = False


def memory_of(kernels, data):
    """Memory before a launch of kernels, in order, and of data by address."""
    size = max(address + len(content) for address, content in data.items())
    memory = bytearray(size + 64)
    entries, image_at = [], _IMAGES
    for number, kernel in enumerate(kernels):
        table_at = _TABLES + 256 * number
        beats = kernel.image[HEADER_BYTES:]
        table = pack_arguments(kernel.arguments)
        entries.append(
            LaunchEntry(
                image_address=image_at,
                image_bytes=len(beats),
                header=kernel.image[:HEADER_BYTES],
                argument_address=table_at,
                argument_count=len(kernel.arguments),
                repeat=kernel.repeat,
                hold_next=kernel.hold_next,
            )
        )
        memory[table_at : table_at + len(table)] = table
        memory[image_at : image_at + len(beats)] = beats
        image_at += -(-len(beats) // 64) * 64
    assert image_at <= _VECTORS
    for address, content in {_LIST: pack_list(entries, CHIP.width_bits), **data}.items():
        memory[address : address + len(content)] = content
    return memory


def layers_kernels(layers, count, *, together):
    """Entries of a chain: one that repeats, or one a layer."""
    image = layers.program.pack()
    arguments = layers.arguments(_MATRICES, _VECTORS)
    if together:
        return [Kernel(image, arguments, count)]
    moved = (
        tuple(Argument(each.value + number * each.stride) for each in arguments)
        for number in range(count)
    )
    return [Kernel(image, each) for each in moved]


def rows_of(spec, array):
    """Bytes of a matrix in memory, its rows padded."""
    assert array.shape == spec.shape
    return b"".join(row.tobytes().ljust(spec.pitch, b"\0") for row in array)


def vectors_in(memory, layers, count):
    """Bytes of the first vectors in memory."""
    size = layers.vector_bytes
    return [bytes(memory[at : at + size]) for at in range(_VECTORS, _VECTORS + count * size, size)]


def chain_data(matrices, x):
    """What a chain reads."""
    return {_MATRICES: b"".join(each.tobytes() for each in matrices), _VECTORS: x.tobytes()}


def run(model, memory, entries, **conditions):
    """Run a launch that must end well."""
    given = MemoryConditions(**{"latency": 100} | conditions)
    found = model.run(memory, list_address=_LIST, entries=entries, conditions=given)
    assert (found.status, found.errors_met) == ("done", 0)
    return found


def share_of_bus(found):
    """Share of the cycles of the kernels in which the ports of the AGCUs move a beat."""
    times = {kind: [e.cycle for e in found.trace if e.kind is kind] for kind in TraceKind}
    ends = zip(times[TraceKind.START], times[TraceKind.END], strict=True)
    cycles = sum(end - start for start, end in ends)
    ports = [port for port in found.ports if port.name != "launch"]
    assert len(ports) == CHIP.agcu.count
    beats = sum(port.beats["R"] + port.beats["W"] for port in ports)
    return beats / (cycles * len(ports))


@pytest.mark.slow
@pytest.mark.must("unit-i", goal="8 layers of 1,024 as one launch: bus >= 0.95 busy, equal bytes")
def test_a_chain_of_layers_is_one_launch(model, seed, figure):
    layers = GemvLayers(CHIP, 1024, 128, 64)
    matrices, x = layers.operands(np.random.default_rng(seed), LAYERS)
    found, shares, cycles = [], [], []
    for together in (True, False):
        kernels = layers_kernels(layers, LAYERS, together=together)
        memory = memory_of(kernels, chain_data(matrices, x))
        ended = run(model, memory, len(kernels))
        shares.append(share_of_bus(ended))
        cycles.append(ended.cycles)
        found.append(vectors_in(memory, layers, LAYERS + 1))
    assert found[0] == found[1] == layers.expected(matrices, x)
    figure(
        f"bus {shares[0]:.4f} busy, {cycles[0]:,} cycles; as {LAYERS} launches "
        f"{shares[1]:.4f}, {cycles[1]:,}"
    )
    assert shares[0] >= 0.95 and cycles[0] < cycles[1]


@pytest.mark.must("unit-i", goal="10^6 repeats proved in < 2 s")
def test_a_million_iterations_are_proved_at_once(figure):
    program = GemvLayers(CHIP, 1024, 128, 64).program
    begin = time.monotonic()
    answer = prove(program, repeat=10**6)
    seconds = time.monotonic() - begin
    figure(f"{seconds:.3f} s")
    assert answer.live and seconds < 2


@pytest.mark.slow
@pytest.mark.must("unit-i", goal="a RAW without its token is refused, and reads too early in RTL")
def test_a_load_without_its_token_is_refused(model, seed):
    hasty = dataclasses.replace(_SMALL, ordered=False)
    matrices, x = hasty.operands(np.random.default_rng(seed), LAYERS)
    kernels = layers_kernels(hasty, LAYERS, together=True)
    (fault,) = memory_faults(hasty.program, kernels[0].arguments, LAYERS)
    assert fault.text.startswith("AGCU 0 load 1 must wait for a token of AGCU 0 store 1")
    assert memory_faults(_SMALL.program, kernels[0].arguments, LAYERS) == ()
    memory = memory_of(kernels, chain_data(matrices, x))
    with pytest.raises(EmulatorError, match="AGCU 0 load 1 must wait for a token"):
        emulate(CHIP, bytearray(memory), list_address=_LIST)
    run(model, memory, 1)
    assert vectors_in(memory, hasty, LAYERS + 1) != hasty.expected(matrices, x)


def _digits(value):
    """A value as 127 · a + b, both of int8."""
    high, low = divmod(value, 127)
    assert high < 128
    return high, low


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 5, 8])
@pytest.mark.must("unit-i", goal="a repeat count from a word that the kernel before wrote")
def test_a_kernel_writes_the_iterations_of_the_next(model, seed, count):
    """An int8 product has the three words from `image_bytes` to `repeat` as its result."""
    rng = np.random.default_rng([seed, count])
    matrices, x = _SMALL.operands(rng, LAYERS)
    (chain,) = layers_kernels(_SMALL, 1, together=True)
    job = compile_kernel(matmul, CHIP, dims={"M": 1, "K": 2, "N": 3}, dtype=int8, out=int32)
    a, b, c = job.arrays
    left = np.array([[127, 1]], np.int8)
    words = (len(chain.image) - HEADER_BYTES, 3, count)
    right = np.array([_digits(word) for word in words], np.int8).T
    assert product(left, right, int32).tolist() == [list(words)]
    pitch = alignment_bytes(CHIP.width_bits)
    target = _LIST + pitch + entry_layout["image_bytes"].offset // 8
    addresses = {a.name: _ARRAYS, b.name: _ARRAYS + 0x1000, c.name: target}
    first = Kernel(
        job.parts[0].image,
        tuple(Argument(addresses[each.name]) for each in job.arrays),
        hold_next=True,
    )
    data = chain_data(matrices, x)
    data |= {_ARRAYS: rows_of(a, left), _ARRAYS + 0x1000: rows_of(b, right)}
    memory = memory_of([first, dataclasses.replace(chain, repeat=LAYERS)], data)
    copy = bytearray(memory)
    run(model, memory, 2, jitter=20, stall=0.1)
    expected = _SMALL.expected(matrices[:count], x)
    assert vectors_in(memory, _SMALL, count + 1) == expected
    untouched = vectors_in(memory, _SMALL, LAYERS + 1)[count + 1 :]
    assert not any(map(any, untouched))
    assert emulate(CHIP, copy, list_address=_LIST, entries=2).status == "done"
    assert copy == memory
    # Without the hold the emulator refuses it: the entry may have been fetched before.
    hasty = memory_of([dataclasses.replace(first, hold_next=False), chain], data)
    if count > 1:
        with pytest.raises(EmulatorError, match="must not write entry 1"):
            emulate(CHIP, hasty, list_address=_LIST, entries=2)


@pytest.mark.slow
@pytest.mark.must(
    "unit-i", goal="three kernels back to back, each on the results of the one before"
)
def test_three_kernels_run_back_to_back(model, seed, figure):
    """A product, a chain of layers on its result, and a product of that; as the trace says."""
    rng = np.random.default_rng(seed)
    matrices, _ = _SMALL.operands(rng, 4)
    side, lanes = _SMALL.side, CHIP.width_bits // 16
    first = compile_kernel(
        matmul, CHIP, dims={"M": side // lanes, "K": 64, "N": lanes}, dtype=bf16, out=bf16
    )
    last = compile_kernel(
        matmul, CHIP, dims={"M": side // lanes, "K": lanes, "N": 48}, dtype=bf16, out=bf16
    )
    a, b = (_SMALL.operands(rng, 1)[0][0] for _ in range(2))
    a, b = a[: side // lanes, :64], b[:64, :lanes]
    w = _SMALL.operands(rng, 1)[0][0][:lanes, :48]
    at = {name: _ARRAYS + 0x8000 * number for number, name in enumerate("abwc")}
    step = _SMALL.vector_bytes

    def kernel(job, *places):
        return Kernel(job.parts[0].image, tuple(map(Argument, places)))

    kernels = [
        kernel(first, at["a"], at["b"], _VECTORS),
        Kernel(_SMALL.program.pack(), _SMALL.arguments(_MATRICES, _VECTORS), 4),
        kernel(last, _VECTORS + 4 * step, at["w"], at["c"]),
    ]
    data = {
        _MATRICES: b"".join(each.tobytes() for each in matrices),
        at["a"]: rows_of(first.arrays[0], a),
        at["b"]: rows_of(first.arrays[1], b),
        at["w"]: rows_of(last.arrays[1], w),
    }
    memory = memory_of(kernels, data)
    copy = bytearray(memory)
    ended = run(model, memory, 3)
    x = product(a, b, bf16).reshape(side, 1)
    vectors = _SMALL.expected(matrices, x)
    assert vectors_in(memory, _SMALL, 5) == vectors
    y = np.frombuffer(vectors[4], bf16.dtype).reshape(side // lanes, lanes)
    result = rows_of(last.arrays[2], product(y, w, bf16))
    assert memory[at["c"] : at["c"] + len(result)] == result
    assert emulate(CHIP, copy, list_address=_LIST, entries=3).status == "done"
    assert copy == memory
    kinds = [each.kind for each in ended.trace]
    each_entry = [TraceKind.CLEAR, TraceKind.START, TraceKind.END]
    assert kinds == [TraceKind.LAUNCH, *each_entry * 3]
    events = [each for each in ended.trace if each.kind in (TraceKind.START, TraceKind.END)]
    gaps = [b.cycle - a.cycle for a, b in itertools.pairwise(events)][1::2]
    figure(f"{ended.cycles:,} cycles; from the end of a kernel to the next start {gaps}")
    assert all(gap <= 12 for gap in gaps)
    # The simulation's own count, and the registers.
    assert events[-1].cycle == ended.cycles == ended.registers_cycles
    assert events[-3].cycle == ended.entry_begin
    assert events[-2].cycle == ended.entry_begin + ended.launch_cycles
