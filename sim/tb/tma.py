"""The TMA engine against cocotbext-axi's memory: random boxes on all streams at once."""

import itertools
from collections.abc import Iterator
from typing import Any

import cocotb
import numpy as np
import numpy.typing as npt
from cocotb.triggers import FallingEdge
from cocotbext.axi import AxiBus, AxiRam

from hw.tma.descriptor import Descriptor, ElementFormat
from hw.tma.engine import TmaEngine
from sim.bench_support import Sink, Source, bench, clocks, random_generator, start

__all__ = ["boxes_equal_numpy_on_all_streams", "design"]

_WIDTH_BITS = 64
_DESCRIPTORS = 8
_BOXES = 40
_FORMATS = (ElementFormat.INT8, ElementFormat.BF16, ElementFormat.FP32)
#: The stores of each stream have memory of their own, with a guard behind it.
_REGION, _GUARD = 0x4000, 0x1000
_STORES = 0x8000

Bytes = npt.NDArray[np.uint8]


def design() -> TmaEngine:
    """The engine under test."""
    return TmaEngine(
        width_bits=_WIDTH_BITS, address_bits=32, landing_beats=64, descriptors=_DESCRIPTORS
    )


def _random_descriptor(rng: np.random.Generator, start_address: int) -> Descriptor:
    fmt = _FORMATS[rng.integers(len(_FORMATS))]
    rank = int(rng.integers(1, 6))
    box = [int(rng.integers(1, 5)) * _WIDTH_BITS // 8 // fmt.bytes]
    box += [int(rng.integers(1, 4)) for _ in range(rank - 1)]
    dims = [int(rng.integers(1, extent + 4)) for extent in box]
    strides, pitch = [], -(-dims[0] * fmt.bytes // 16) * 16
    for extent in dims[1:]:
        strides.append(pitch + 16 * int(rng.integers(0, 2)))
        pitch = strides[-1] * extent
    base = start_address + int(rng.integers(0, (_REGION - pitch) // 16 + 1)) * 16
    return Descriptor(base=base, format=fmt, dims=dims, strides=strides, box=box)


def _addresses(descriptor: Descriptor, at: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """(byte of the box, byte address) of each element in the tensor."""
    size = descriptor.format.bytes
    pitch = (size, *descriptor.strides)
    indices = itertools.product(*(range(extent) for extent in reversed(descriptor.box)))
    for flat, index in enumerate(indices):
        where = [c + i for c, i in zip(at, reversed(index))]
        if all(0 <= w < n for w, n in zip(where, descriptor.dims)):
            yield flat * size, descriptor.base + sum(w * p for w, p in zip(where, pitch))


def _load(memory: Bytes, descriptor: Descriptor, at: tuple[int, ...]) -> Bytes:
    box = np.zeros(descriptor.box_bytes, np.uint8)
    size = descriptor.format.bytes
    for place, address in _addresses(descriptor, at):
        box[place : place + size] = memory[address : address + size]
    return box


def _store(memory: Bytes, descriptor: Descriptor, at: tuple[int, ...], box: Bytes) -> None:
    size = descriptor.format.bytes
    for place, address in _addresses(descriptor, at):
        memory[address : address + size] = box[place : place + size]


def _vectors(box: Bytes) -> list[int]:
    """Payloads of a box's vectors: data, then the mark `last`."""
    lines = box.reshape(-1, _WIDTH_BITS // 8)
    words = [int.from_bytes(line.tobytes(), "little") for line in lines]
    words[-1] |= 1 << _WIDTH_BITS
    return words


def _command(index: int, at: tuple[int, ...]) -> int:
    bits = index
    for number, coordinate in enumerate(at):
        bits |= (coordinate & 0xFFFF_FFFF) << (_DESCRIPTORS.bit_length() - 1 + 32 * number)
    return bits


def _stall(name: str, probability: float) -> Iterator[bool]:
    rng = random_generator(name)
    while True:
        yield bool(rng.random() < probability)


class _Work:
    """The commands of one stream and the boxes they move."""

    def __init__(self, rng: np.random.Generator, first: int, start_address: int) -> None:
        self.first = first
        self.descriptors = [_random_descriptor(rng, start_address) for _ in range(2)]
        self.jobs: list[tuple[Descriptor, tuple[int, ...]]] = []
        self.commands: list[int] = []
        for _ in range(_BOXES):
            kind = int(rng.integers(2))
            descriptor = self.descriptors[kind]
            at = tuple(
                int(rng.integers(-extent, n + 1))
                for extent, n in zip(descriptor.box, descriptor.dims)
            )
            self.jobs.append((descriptor, at))
            self.commands.append(_command(first + kind, at))

    def words(self) -> list[int]:
        """Payloads that write the descriptors."""
        index_bits = _DESCRIPTORS.bit_length() - 1
        return [
            (self.first + kind)
            | word << index_bits
            | int.from_bytes(descriptor.pack()[8 * word : 8 * word + 8], "little")
            << (index_bits + 4)
            for kind, descriptor in enumerate(self.descriptors)
            for word in range(16)
        ]


async def _count_stored(dut: Any, counts: list[int]) -> None:
    while True:
        await FallingEdge(dut.clk)
        stored = int(dut.o_stored.value)
        for number in range(2):
            counts[number] += stored >> number & 1


@bench(limit_cycles=60_000)
async def boxes_equal_numpy_on_all_streams(dut: Any) -> None:
    """Two streams load and two store, with pauses on every channel."""
    rng = random_generator()
    size = _STORES + 2 * (_REGION + _GUARD)
    before = rng.integers(0, 256, size).astype(np.uint8)
    ram = AxiRam(AxiBus.from_prefix(dut, "axi_"), dut.clk, dut.rst, size=size)
    ram.write(0, before.tobytes())
    for half, channels in ((ram.read_if, "ar r"), (ram.write_if, "aw w b")):
        for channel in channels.split():
            getattr(half, f"{channel}_channel").set_pause_generator(_stall(channel, 0.3))
    write = Source(dut, "i_descriptor_write")
    loads = [_Work(rng, 2 * number, 0) for number in range(2)]
    stores = [
        _Work(rng, 4 + 2 * number, _STORES + number * (_REGION + _GUARD)) for number in range(2)
    ]
    commands = [Source(dut, f"i_load_commands__{number}", stall=0.2) for number in range(2)]
    commands += [Source(dut, f"i_store_commands__{number}", stall=0.2) for number in range(2)]
    sinks = [Sink(dut, f"o_loaded__{number}", stall=0.2) for number in range(2)]
    sources = [Source(dut, f"i_vectors__{number}", stall=0.2) for number in range(2)]
    await start(dut, i_drain=0)

    expected = before.copy()
    boxes: list[list[int]] = [[], []]
    for number, work in enumerate(stores):
        for descriptor, at in work.jobs:
            box = rng.integers(0, 256, descriptor.box_bytes).astype(np.uint8)
            boxes[number] += _vectors(box)
            _store(expected, descriptor, at, box)
    wanted = [
        [word for descriptor, at in work.jobs for word in _vectors(_load(before, descriptor, at))]
        for work in loads
    ]

    await write.send([word for work in (*loads, *stores) for word in work.words()])
    counts = [0, 0]
    cocotb.start_soon(_count_stored(dut, counts))
    for source, work in zip(commands, (*loads, *stores)):
        cocotb.start_soon(source.send(work.commands))
    for number in range(2):
        cocotb.start_soon(sources[number].send(boxes[number]))
    takes = [cocotb.start_soon(sinks[number].take(len(wanted[number]))) for number in range(2)]
    for number, take in enumerate(takes):
        assert await take == wanted[number]
    while counts != [_BOXES, _BOXES]:
        await clocks(dut, 1)
    await clocks(dut, 20)
    assert counts == [_BOXES, _BOXES]
    assert dut.o_idle.value == 1
    assert dut.o_error.value == 0
    after = np.frombuffer(ram.read(0, size), np.uint8)
    assert np.array_equal(after, expected)
