"""TMA engine: random boxes of random tensors, loaded and stored through a stalling AXI memory."""

from typing import Any

import cocotb
import numpy as np
from amaranth.hdl import Const
from cocotb.triggers import FallingEdge, Lock, ReadOnly

from hw.arch.descriptor import STORED_WORDS
from hw.lib.axi_rules import broken_rules
from hw.tma.commands import command_layout
from hw.tma.descriptor_file import descriptor_write_layout
from hw.tma.engine import TmaEngine
from sim.cocotb.address_monitor import AddressMonitor
from sim.cocotb.bench_support import Sink, Source, bench, clocks, random_generator, start
from sim.cocotb.checked_component import CheckedComponent
from sim.cocotb.stalled_channels import stalled_memory
from sim.drivers.box_tensor import REGION_BYTES, BoxTensor, box_payloads
from sim.tb._refusals import REFUSALS, with_field

__all__ = [
    "a_refused_descriptor_moves_no_byte",
    "boxes_of_four_streams_are_numpys_slices",
    "design",
]

_WIDTH, _STREAMS, _DESCRIPTORS = 64, 2, 4
_VECTOR_BYTES = _WIDTH // 8
#: Two regions that are loaded from, and two that are stored to.
_MEMORY_BYTES = 4 * REGION_BYTES

_JOBS = 20
_BURSTS_IN_FLIGHT = 4


def design() -> CheckedComponent:
    """The engine under test, with a checker of AXI4 beside its port."""
    engine = TmaEngine(
        width_bits=_WIDTH,
        address_bits=32,
        landing_beats=32,
        outstanding=_BURSTS_IN_FLIGHT,
        descriptors=_DESCRIPTORS,
        load_streams=_STREAMS,
        store_streams=_STREAMS,
    )
    return CheckedComponent(engine, outstanding=_BURSTS_IN_FLIGHT)


class _Bench:
    """Models of memory and descriptor port, with counts of the stored boxes."""

    def __init__(self, dut: Any, stall: float) -> None:
        self.dut = dut
        self.rng = random_generator("bench")
        self.stall = stall
        self.memory = stalled_memory(dut, _MEMORY_BYTES, stall)
        self.image = self.rng.integers(0, 256, _MEMORY_BYTES, dtype=np.uint8)
        self.memory.write(0, self.image.tobytes())
        self.descriptors = Source(dut, "i_descriptor_write")
        self.monitor = AddressMonitor(_MEMORY_BYTES, _VECTOR_BYTES)
        self.lock = Lock()
        self.stored = [0] * _STREAMS

    async def watch(self) -> None:
        """Count stored boxes; see that no rule of AXI4 is broken and no beat leaves a tensor."""
        while True:
            await ReadOnly()
            bits = int(self.dut.o_stored.value)
            for stream in range(_STREAMS):
                self.stored[stream] += bits >> stream & 1
            broken = broken_rules(int(self.dut.o_broken.value))
            assert not broken, [f"{rule.name}: {rule.statement}" for rule in broken]
            if not int(self.dut.rst.value):
                self.monitor.sample(self.dut)
            await FallingEdge(self.dut.clk)

    async def describe(self, index: int, packed: bytes) -> None:
        """Write a descriptor through the shared port."""
        layout = descriptor_write_layout(_DESCRIPTORS)
        words = [int(word) for word in np.frombuffer(packed, np.uint64)[:STORED_WORDS]]
        async with self.lock:
            await self.descriptors.send(
                [Const.cast(layout.const({"index": index, "words": words})).value]
            )

    def command(self, index: int, corner: list[int]) -> int:
        """Payload of a command; coordinates beyond the rank are random."""
        noise = [int(value) for value in self.rng.integers(-9, 9, 5 - len(corner))]
        fields: dict[int | str, Any] = {"descriptor": index, "coordinates": corner + noise}
        return Const.cast(command_layout(_DESCRIPTORS).const(fields)).value

    async def take(self, loaded: Sink, tensor: BoxTensor, corner: list[int]) -> None:
        """Take a loaded box, and compare it with numpy's."""
        address, exists = tensor.where(corner)
        expected = np.where(exists, self.image[np.where(exists, address, 0)], 0)
        wanted = box_payloads(expected.astype(np.uint8), _VECTOR_BYTES)
        got = await loaded.take(len(wanted))
        # The engine does not set `final`.
        got = [payload & (1 << _WIDTH + 1) - 1 for payload in got]
        assert got == wanted, f"box at {corner} of {tensor.descriptor}"

    async def give(self, vectors: Source, tensor: BoxTensor, corner: list[int]) -> None:
        """Send random vectors of a box to be stored."""
        address, exists = tensor.where(corner)
        data = self.rng.integers(0, 256, len(address), dtype=np.uint8)
        self.image[address[exists]] = data[exists]
        await vectors.send(box_payloads(data, _VECTOR_BYTES))

    async def load(self, stream: int) -> None:
        """Load boxes of several tensors on one stream."""
        rng = random_generator(f"load {stream}")
        commands = Source(self.dut, f"i_load_commands__{stream}")
        loaded = Sink(self.dut, f"o_loaded__{stream}", stall=self.stall)
        for _ in range(_JOBS):
            tensor = BoxTensor(rng, stream * REGION_BYTES, _VECTOR_BYTES)
            tensor.owns(self.monitor.readable)
            await self.describe(stream, tensor.descriptor.pack())
            corners = [tensor.corner(rng) for _ in range(rng.integers(1, 6))]
            sending = cocotb.start_soon(
                commands.send(self.command(stream, corner) for corner in corners)
            )
            for corner in corners:
                await self.take(loaded, tensor, corner)
            await sending
        await loaded.expect_silence(30)

    async def store(self, stream: int) -> None:
        """Store boxes on one stream into a separate region."""
        rng = random_generator(f"store {stream}")
        index = _STREAMS + stream
        commands = Source(self.dut, f"i_store_commands__{stream}")
        vectors = Source(self.dut, f"i_vectors__{stream}", stall=self.stall)
        done = 0
        for _ in range(_JOBS):
            tensor = BoxTensor(rng, index * REGION_BYTES, _VECTOR_BYTES)
            tensor.owns(self.monitor.writable)
            await self.describe(index, tensor.descriptor.pack())
            corners = [tensor.corner(rng) for _ in range(rng.integers(1, 6))]
            sending = cocotb.start_soon(
                commands.send(self.command(index, corner) for corner in corners)
            )
            for corner in corners:
                await self.give(vectors, tensor, corner)
            await sending
            done += len(corners)
            while self.stored[stream] < done:
                await clocks(self.dut, 1)
        assert self.stored[stream] == done


@bench(limit_cycles=500_000)
@cocotb.parametrize(stall=[0.0, 0.3, 0.8])
async def boxes_of_four_streams_are_numpys_slices(dut: Any, stall: float) -> None:
    """Concurrent loads and stores; afterwards every byte of memory equals numpy's."""
    test = _Bench(dut, stall)
    actors = [test.load(0), test.load(1), test.store(0), test.store(1)]
    await start(dut, i_drain=0)
    cocotb.start_soon(test.watch())
    tasks = [cocotb.start_soon(actor) for actor in actors]
    for task in tasks:
        await task
    await clocks(dut, 50)
    assert int(dut.o_error.value) == 0
    assert int(dut.o_idle.value) == 1
    memory = np.frombuffer(test.memory.read(0, _MEMORY_BYTES), np.uint8)
    wrong = np.flatnonzero(memory != test.image)
    assert not len(wrong), f"{len(wrong)} bytes differ, the first at {wrong[:1]}"


@bench(limit_cycles=500_000)
async def a_refused_descriptor_moves_no_byte(dut: Any) -> None:
    """Each invalid descriptor, for load and store: error code, no burst, engine continues."""
    test = _Bench(dut, 0.3)
    await start(dut, i_drain=0)
    cocotb.start_soon(test.watch())
    commands = {side: Source(dut, f"i_{side}_commands__0") for side in ("load", "store")}
    loaded, vectors = Sink(dut, "o_loaded__0"), Source(dut, "i_vectors__0")
    for field, place, value, code in REFUSALS:
        for side in commands:
            dut.rst.value = 1
            await clocks(dut, 2)
            dut.rst.value = 0
            test.stored[0] = 0
            tensor = BoxTensor(test.rng, _STREAMS * REGION_BYTES, _VECTOR_BYTES)
            while len(tensor.dims) < 2:
                tensor = BoxTensor(test.rng, _STREAMS * REGION_BYTES, _VECTOR_BYTES)
            tensor.owns(test.monitor.readable if side == "load" else test.monitor.writable)
            good = tensor.descriptor.pack()
            await test.describe(0, with_field(good, field, place, value))
            await test.describe(1, good)
            corner = tensor.corner(test.rng)
            await commands[side].send([test.command(0, corner)])
            for _ in range(100):
                await clocks(dut, 1)
                assert not int(dut.axi__arvalid.value) | int(dut.axi__awvalid.value)
            assert int(dut.o_error.value) == code.value, (field, value)
            assert int(dut.o_idle.value) == 1
            # The next box of the same stream is whole.
            await commands[side].send([test.command(1, corner)])
            if side == "load":
                await test.take(loaded, tensor, corner)
            else:
                await test.give(vectors, tensor, corner)
                while not test.stored[0]:
                    await clocks(dut, 1)
            assert int(dut.o_error.value) == code.value
    memory = np.frombuffer(test.memory.read(0, _MEMORY_BYTES), np.uint8)
    assert (memory == test.image).all()
