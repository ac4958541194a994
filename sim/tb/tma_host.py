"""TMA unit driven by its registers: random boxes through AXI memories that stall and reorder."""

import dataclasses
import logging
import math
from collections.abc import Iterator
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge, ReadOnly
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from hw.arch.descriptor import DESCRIPTOR_BYTES, MAX_RANK, Descriptor, ElementFormat
from hw.arch.error_codes import TmaError
from hw.arch.registers.tma_registers import tma_register
from hw.arch.tma_sizes import TmaSizes
from hw.lib.axi import RESP_DECERR, RESP_SLVERR
from hw.lib.axi_rules import broken_rules
from hw.numeric.division import ceil_div
from hw.tma.barriers.barrier_layouts import BarrierOperation
from hw.tma.host_port.tma_top import TmaTop
from hw.tma.standalone.unit_commands import TmaOperation
from sim.cocotb.address_monitor import AddressMonitor
from sim.cocotb.bench_support import bench, clocks, random_generator, start
from sim.cocotb.checked_component import CheckedComponent
from sim.cocotb.reordering_memory import ReorderingMemory
from sim.cocotb.stalled_channels import stalled_memory
from sim.drivers.box_tensor import REGION_BYTES, BoxTensor

__all__ = [
    "boxes_by_registers_are_numpys_slices",
    "boxes_out_of_order_are_numpys_slices",
    "design",
    "error_responses_end_their_command",
]

_SIZES = TmaSizes(
    width_bits=64,
    address_bits=32,
    landing_beats=32,
    outstanding=4,
    descriptors=4,
    barriers=4,
    scratchpad_bytes=1 << 15,
)
_COMMANDS = 8
#: Tiles in flight, each with a region of memory to load from, and one to store to.
_TILES = 4
_TILE_BYTES = _SIZES.scratchpad_bytes // _TILES
_DESCRIPTORS = 2 * _TILES * REGION_BYTES
_MEMORY_BYTES = _DESCRIPTORS + 2 * _TILES * DESCRIPTOR_BYTES
_ROUNDS = 8
_BARRIER = 2


def design() -> CheckedComponent:
    """The unit under test, with a checker of AXI4 beside its port."""
    unit = TmaTop(_SIZES, commands=_COMMANDS)
    # Reads of descriptors come on top of the boxes'.
    return CheckedComponent(unit, outstanding=_SIZES.outstanding + 1)


class _Host:
    """Registers by name, through AXI4-Lite."""

    def __init__(self, dut: Any) -> None:
        self._lite = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "host_"), dut.clk, dut.rst)
        for side in (self._lite.write_if, self._lite.read_if):
            side.log.setLevel(logging.WARNING)

    async def write(self, name: str, **fields: int) -> None:
        """Write the fields of a register, the others as 0."""
        each = tma_register(name)
        answer = await self._lite.write(each.offset, each.word(**fields).to_bytes(4, "little"))
        assert answer.resp == AxiResp.OKAY, (name, fields)

    async def read(self, name: str) -> dict[str, int]:
        """Fields of a register."""
        each = tma_register(name)
        answer = await self._lite.read(each.offset, 4)
        assert answer.resp == AxiResp.OKAY, name
        return each.values(int.from_bytes(answer.data, "little"))

    async def until(self, name: str, field: str) -> dict[str, int]:
        """Fields of a register once a field is set."""
        while not (found := await self.read(name))[field]:
            pass
        return found

    async def submit(
        self,
        operation: TmaOperation,
        id: int,
        *,
        descriptor: int = 0,
        corner: tuple[int, ...] | list[int] = (),
        local: int = 0,
        barrier: int | None = None,
    ) -> None:
        """Give a command."""
        await self.write("DESCRIPTOR_LO", value=descriptor)
        for number in range(MAX_RANK):
            coordinate = corner[number] if number < len(corner) else 0
            await self.write(f"COORDINATE_{number}", value=coordinate & 0xFFFF_FFFF)
        await self.write("LOCAL", value=local)
        await self.write("SIGNAL", signals=barrier is not None, barrier=barrier or 0)
        await self.write("SUBMIT", operation=operation.value, id=id)

    async def operate(self, operation: BarrierOperation, **values: int) -> None:
        """Apply an operation to the barrier, which accepts it."""
        await self.write("BARRIER_ARRIVALS", value=values.get("arrivals", 0))
        await self.write("BARRIER_BYTES", value=values.get("bytes", 0))
        await self.write("BARRIER_OPERATION", operation=operation.value, barrier=_BARRIER)
        assert not (await self.until("BARRIER_ANSWER", "valid"))["error"]

    async def completions(self, count: int) -> dict[int, int]:
        """Codes of the next completions, by the commands' identifiers."""
        found = [await self.until("COMPLETION", "valid") for _ in range(count)]
        return {each["id"]: each["code"] for each in found}


@dataclasses.dataclass
class _Tile:
    """A box on its way from one tensor through the scratchpad to another of its size."""

    number: int
    tensor: BoxTensor
    corner: list[int]

    @property
    def pointers(self) -> tuple[int, int]:
        """Addresses of the descriptors to load and to store by."""
        first = _DESCRIPTORS + 2 * self.number * DESCRIPTOR_BYTES
        return first, first + DESCRIPTOR_BYTES

    @property
    def target(self) -> Descriptor:
        """Tensor that is the box and nothing else, its rows one after the other."""
        box, size = self.tensor.box, self.tensor.size
        strides = [ceil_div(box[0] * size, 16) * 16]
        for extent in box[1:-1]:
            strides.append(strides[-1] * extent)
        return dataclasses.replace(
            self.tensor.descriptor,
            base=(_TILES + self.number) * REGION_BYTES,
            dims=box,
            strides=strides[: len(box) - 1],
        )

    @property
    def rows(self) -> Iterator[tuple[int, int]]:
        """First and end address of each row of the target."""
        row = self.tensor.box[0] * self.tensor.size
        for number in range(math.prod(self.tensor.box[1:])):
            first = self.target.base + number * (ceil_div(row, 16) * 16)
            yield first, first + row

    def owns(self, region: Any) -> None:
        """Set the target's bytes of its region, and clear the others."""
        base = self.target.base
        region[base : base + REGION_BYTES] = False
        for first, end in self.rows:
            region[first:end] = True

    def expected(self, image: Any) -> None:
        """Write into the image of memory what the load and the store move."""
        address, exists = self.tensor.where(self.corner)
        taken = np.where(exists, image[np.where(exists, address, 0)], 0)
        row = self.tensor.box[0] * self.tensor.size
        for (first, end), content in zip(self.rows, taken.reshape(-1, row), strict=True):
            image[first:end] = content


def _monitor() -> AddressMonitor:
    """Monitor that allows reads of the descriptors."""
    monitor = AddressMonitor(_MEMORY_BYTES, _SIZES.width_bits // 8)
    monitor.readable[_DESCRIPTORS:] = True
    return monitor


async def _watch(dut: Any, monitor: AddressMonitor) -> None:
    """See that no rule of AXI4 is broken, and that no beat leaves a tensor."""
    while True:
        await ReadOnly()
        broken = broken_rules(int(dut.o_broken.value))
        assert not broken, [f"{rule.name}: {rule.statement}" for rule in broken]
        if not int(dut.rst.value):
            monitor.sample(dut)
        await FallingEdge(dut.clk)


async def _started(dut: Any, monitor: AddressMonitor) -> _Host:
    """Host of the unit, which is reset and watched."""
    host = _Host(dut)
    idle = {"i_reads__valid": 0, "i_writes__valid": 0, "i_waits__0__valid": 0}
    await start(dut, **idle, i_operations__0__valid=0, o_waits__0__ready=1)
    cocotb.start_soon(_watch(dut, monitor))
    return host


async def _interrupted(dut: Any, host: _Host, *causes: str) -> None:
    """Wait for the interrupt by one of its causes, and clear it."""
    await host.write("INTERRUPT_ENABLE", **dict.fromkeys(causes, 1))
    while not int(dut.o_interrupt.value):
        await clocks(dut, 1)
    found = await host.read("INTERRUPT_STATUS")
    assert any(found[cause] for cause in causes)
    await host.write("INTERRUPT_STATUS", **found)


async def _load(dut: Any, host: _Host, tiles: list[_Tile], *, abort_after: int | None) -> bool:
    """Load the tiles, with one command that is refused among them; whether none was aborted."""
    total = sum(tile.tensor.descriptor.box_bytes for tile in tiles)
    await host.operate(BarrierOperation.INIT, arrivals=1)
    await host.operate(BarrierOperation.ARRIVE_EXPECT, arrivals=1, bytes=total)
    await host.write("WAIT_CYCLES", value=1_000_000)
    await host.write("WAIT", parity=0, barrier=_BARRIER)
    load = TmaOperation.LOAD
    for tile in tiles:
        where: dict[str, Any] = {"local": tile.number * _TILE_BYTES, "barrier": _BARRIER}
        pointer = tile.pointers[0]
        await host.submit(load, tile.number, descriptor=pointer, corner=tile.corner, **where)
    await host.submit(load, 99, descriptor=_DESCRIPTORS + 8)
    if abort_after is not None:
        await clocks(dut, abort_after)
        await host.write("CONTROL", abort=1)
    await _interrupted(dut, host, "wait")
    result = await host.until("WAIT_RESULT", "valid")
    codes = await host.completions(_TILES + 1)
    assert codes.pop(99) in (TmaError.POINTER.value, TmaError.ABORTED.value)
    if abort_after is None:
        assert result == {"passed": 1, "flag": 0, "timed_out": 0, "valid": 1, "error": 0}
        assert not any(codes.values())
        return True
    assert set(codes.values()) <= {0, TmaError.ABORTED.value}
    while (await host.read("STATUS"))["aborting"]:
        pass
    assert (await host.read("STATUS"))["idle"]
    return False


@bench(limit_cycles=2_000_000)
@cocotb.parametrize(stall=[0.0, 0.5, 0.9])
async def boxes_by_registers_are_numpys_slices(dut: Any, stall: float) -> None:
    """Tiles pass through the scratchpad; an abort ends some loads; memory is as numpy has it."""
    await _pass_tiles(dut, stalled_memory(dut, _MEMORY_BYTES, stall))


@bench(limit_cycles=2_000_000)
@cocotb.parametrize(stall=[0.0, 0.5], interleaves=[False, True])
async def boxes_out_of_order_are_numpys_slices(dut: Any, stall: float, interleaves: bool) -> None:
    """The same, where data of different IDs come in any order."""
    memory = ReorderingMemory(dut, _MEMORY_BYTES, stall=stall, interleaves=interleaves)
    memory.start()
    await _pass_tiles(dut, memory)
    assert memory.out_of_order


async def _pass_tiles(dut: Any, memory: Any) -> None:
    """Pass random tiles through the scratchpad, abort some loads, and compare the memory."""
    rng = random_generator()
    image = rng.integers(0, 256, _MEMORY_BYTES, dtype=np.uint8)
    memory.write(0, image.tobytes())
    monitor = _monitor()
    host = await _started(dut, monitor)
    aborted = 0
    for round_ in range(_ROUNDS):
        tiles = []
        for number in range(_TILES):
            tensor = BoxTensor(rng, number * REGION_BYTES, _SIZES.width_bits // 8)
            tiles.append(_Tile(number, tensor, tensor.corner(rng)))
            tensor.owns(monitor.readable)
            tiles[-1].owns(monitor.writable)
            for pointer, one in zip(tiles[-1].pointers, (tensor.descriptor, tiles[-1].target)):
                memory.write(pointer, one.pack())
                image[pointer : pointer + DESCRIPTOR_BYTES] = np.frombuffer(one.pack(), np.uint8)
        pointers = [pointer for tile in tiles for pointer in tile.pointers]
        for number, pointer in enumerate(pointers):
            await host.submit(TmaOperation.INVALIDATE, number, descriptor=pointer)
        assert set((await host.completions(len(pointers))).values()) == {0}
        abort_after = int(rng.integers(0, 300)) if round_ % 3 == 1 else None
        if not await _load(dut, host, tiles, abort_after=abort_after):
            aborted += 1
            assert await _load(dut, host, tiles, abort_after=None)
        for tile in tiles:
            where: dict[str, Any] = {
                "descriptor": tile.pointers[1],
                "local": tile.number * _TILE_BYTES,
            }
            await host.submit(TmaOperation.STORE, tile.number, **where)
        groups = (await host.read("GROUPS"))["stored"]
        await host.submit(TmaOperation.COMMIT, 77)
        codes = await host.completions(_TILES + 1)
        assert codes == dict.fromkeys([*range(_TILES), 77], 0)
        assert (await host.read("GROUPS"))["stored"] == groups + 1
        for tile in tiles:
            tile.expected(image)
    assert aborted
    found = np.frombuffer(memory.read(0, _MEMORY_BYTES), np.uint8)
    wrong = np.flatnonzero(found != image)
    assert not len(wrong), f"{len(wrong)} bytes differ, the first at {wrong[:1]}"


@bench(limit_cycles=500_000)
@cocotb.parametrize(response=[RESP_SLVERR, RESP_DECERR])
async def error_responses_end_their_command(dut: Any, response: int) -> None:
    """A load, a store and a read of a descriptor that fail have their code; the next ones work."""
    memory = ReorderingMemory(dut, _MEMORY_BYTES, stall=0.3)
    memory.start()
    monitor = _monitor()
    host = await _started(dut, monitor)
    slave = response == RESP_SLVERR
    read_error = TmaError.READ_SLVERR if slave else TmaError.READ_DECERR
    write_error = TmaError.WRITE_SLVERR if slave else TmaError.WRITE_DECERR
    tensor = Descriptor(base=0, format=ElementFormat.INT8, dims=(64, 4), strides=(64,), box=(64, 4))
    pointer, content = _DESCRIPTORS, random_generator().bytes(tensor.box_bytes)
    memory.write(pointer, tensor.pack())
    memory.write(0, content)
    monitor.readable[: tensor.box_bytes] = monitor.writable[: tensor.box_bytes] = True
    for place, operation, code in (
        (pointer + 64, TmaOperation.LOAD, read_error),
        (128, TmaOperation.LOAD, read_error),
        (128, TmaOperation.STORE, write_error),
    ):
        for failing in (True, False):
            memory.errors[:] = [(place, place + 8, response)] if failing else []
            await host.submit(TmaOperation.INVALIDATE, 1, descriptor=pointer)
            await host.submit(operation, 2, descriptor=pointer)
            ended = await host.completions(2)
            assert ended == {1: 0, 2: code.value if failing else 0}
    assert memory.read(0, tensor.box_bytes) == content
